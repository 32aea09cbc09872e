"""The two-way jackknife on InstEval, 73,421 ratings of lecturers by students (lme4), beside the mixed models of R.

    python -m tests.oracles.insteval

R must be there, for the data. The numbers of the mixed models are those of tests/golden/r_reference.json. They weigh ratings, so
that their estimates are others. "Of these weights" is the standard error that the fitted mixed model gives to our estimate.
"""

import math
import subprocess
import time

import numpy as np

from analysis.stats import clusters, unpaired
from tests.oracles import EXACT, reference

WRITE = 'data(InstEval, package = "lme4"); write.csv(InstEval[c("s", "d", "service", "y")], row.names = FALSE, quote = FALSE)'


def se_of_weights(weights, columns, students, lecturers, fitted):
    """Standard error of the sum of ratings times ``weights`` under the fitted model, whose effects belong to ``columns`` (n, q)."""
    variance = fitted["residual"] * float(np.sum(weights**2))
    for labels, covariance in ((students, fitted["students"]), (lecturers, fitted["lecturers"])):
        sums = np.stack([np.bincount(labels, weights * column) for column in columns.T], axis=1)
        variance += float(np.einsum("gi,ij,gj->", sums, np.reshape(covariance, (columns.shape[1], -1)), sums))
    return math.sqrt(variance)


def compare(name, work, weights, columns, labels, fitted):
    start = time.process_time()
    result = work()
    seconds = time.process_time() - start
    ours = result.detail
    print(f"{name}: {result.estimate:.4f}, se {ours['se']:.4f}, df {ours['df']:.0f}, {seconds:.2f} s of CPU")
    print(f"  mixed model: {fitted['estimate']:.4f}, se {fitted['se']:.4f}, {fitted['seconds']:.1f} s of CPU")
    print(f"  of these weights: se {se_of_weights(weights, columns, *labels, fitted):.4f}")
    return result


def main():
    table = subprocess.run(["Rscript", "-e", WRITE], capture_output=True, text=True, check=True).stdout
    rows = np.array([line.split(",") for line in table.splitlines()[1:]], dtype=np.int64)
    students, lecturers, is_service, ratings = rows.T
    numbers, labels, one = reference("insteval"), (students, lecturers), np.ones((len(rows), 1))
    mean = compare(
        "mean rating",
        lambda: clusters.two_way_clustered_mean(ratings, students, lecturers),
        np.full(len(rows), 1 / len(rows)),
        one,
        labels,
        numbers["intercept"],
    )
    for codes, ours, theirs in ((students, "annotators", "students"), (lecturers, "items", "lecturers")):
        n = len(np.unique(codes))
        ratio = mean.detail[f"variance_{ours}"] / ((n - 1) / n * numbers["CR3"][theirs])
        assert abs(ratio - 1) < EXACT, f"clubSandwich has another variance over {theirs}: ratio {ratio}"
    x = is_service == 1
    compare(
        "service less other lectures",
        lambda: unpaired.mean_difference(
            ratings[x],
            ratings[~x],
            x_annotators=students[x],
            y_annotators=students[~x],
            x_prompts=lecturers[x],
            y_prompts=lecturers[~x],
        ),
        np.where(x, 1 / x.sum(), -1 / (~x).sum()),
        np.column_stack([one, x]),
        labels,
        numbers["random_slopes"],
    )


if __name__ == "__main__":
    main()
