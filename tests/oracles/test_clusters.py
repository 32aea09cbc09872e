"""Means, regressions and differences with clusters against clubSandwich, and against mixed models of lme4."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import cluster_models, cluster_variances, clusters, unpaired
from tests.oracles import EXACT, reference

ONE_WAY, CROSSED, UNPAIRED = reference("one_way"), reference("crossed"), reference("unpaired")
ROWS = ONE_WAY["data"]
DIFFERENCES = ROWS["x"] - ROWS["y"]


def n_clusters(labels):
    return len(np.unique(labels))


def half_width(se, df):
    return stats.t.ppf(0.975, df) * se


# CR3 of clubSandwich is the sum of the squared moves without the factor (G - 1) / G of the jackknife.


@pytest.mark.parametrize("way", ["person", "prompt"])
def test_the_variance_of_a_mean_is_cr3_times_its_factor(way):
    expected, n = ONE_WAY[way], n_clusters(ROWS[way])
    result = clusters.clustered_mean(DIFFERENCES, ROWS[way])
    assert_allclose(result.estimate, ONE_WAY["mean"], rtol=EXACT)
    assert_allclose(result.detail["se"] ** 2, (n - 1) / n * expected["CR3"]["se"] ** 2, rtol=EXACT)


@pytest.mark.parametrize("way", ["person", "prompt"])
def test_the_test_of_a_mean_is_close_to_cr2_with_its_degrees_of_freedom(way):
    """CR2 is unbiased if rows are independent. CV3 is a little larger, and G* - 1 has no term for the estimated mean."""
    expected = ONE_WAY[way]["CR2"]
    result = clusters.clustered_mean(DIFFERENCES, ROWS[way], null=0.0)
    assert 1.0 < result.detail["se"] / expected["se"] < 1.02
    assert_allclose(result.detail["df"], expected["df"], rtol=0.005)
    assert_allclose(result.pvalue, expected["p"], atol=0.006)


def test_a_weighted_mean_has_the_variance_of_weighted_least_squares():
    weights = 1 / np.bincount(ROWS["person"])[ROWS["person"]]
    result = clusters.clustered_mean(DIFFERENCES, ROWS["person"], weights=weights)
    n = n_clusters(ROWS["person"])
    assert_allclose(result.estimate, ONE_WAY["weighted"]["mean"], rtol=EXACT)
    assert_allclose(result.detail["se"] ** 2, (n - 1) / n * ONE_WAY["weighted"]["variance_CR3"], rtol=EXACT)


def test_a_regression_has_the_covariances_of_clubsandwich():
    expected, n = reference("regression"), n_clusters(ROWS["person"])
    design = np.column_stack([np.ones(len(DIFFERENCES)), ROWS["y"], ROWS["prompt"]])
    fit = cluster_models.clustered_regression(design, ROWS["x"], ROWS["person"])
    assert_allclose(fit.coefficients, expected["coefficients"], rtol=EXACT)
    assert_allclose(fit.covariance, (n - 1) / n * np.array(expected["CR3"]), rtol=EXACT)
    # G* - 1 does not know how unequally people vary in a column: 10.2 degrees of freedom where CR2 has 7.5. The larger
    # standard error of the jackknife makes up for it, so that the intervals have nearly the same width.
    second = expected["second"]["CR2"]
    assert 1.3 < fit.df / second["df"] < 1.4
    widths = half_width(math.sqrt(fit.covariance[1, 1]), fit.df) / half_width(second["se"], second["df"])
    assert 0.97 < widths < 1.0


def two_way(name):
    expected = CROSSED[name]
    people, prompts, x, y = (np.array(expected["data"][column]) for column in ("person", "prompt", "x", "y"))
    return expected, clusters.two_way_clustered_mean(x - y, people, prompts, null=0.0), (x - y, people, prompts)


@pytest.mark.parametrize("name", CROSSED)
def test_the_two_way_variance_is_that_of_its_three_parts(name):
    expected, result, _ = two_way(name)
    parts = expected["two_way"]
    assert_allclose(result.estimate, expected["mean"], rtol=EXACT)
    found = [result.detail[f"variance_{part}"] for part in ("annotators", "items", "two_way")]
    combined = parts["people"] + parts["prompts"] - parts["pairs"]
    assert_allclose(found, [parts["people"], parts["prompts"], combined], rtol=EXACT)
    assert_allclose(result.detail["se"], math.sqrt(max(found)), rtol=EXACT)


def test_of_a_complete_design_the_two_way_variance_is_below_that_of_the_mixed_model_by_a_known_amount():
    """If all people judge all prompts, the mixed model subtracts the residual mean square, and the jackknife the total
    one. So V is smaller by (total - residual) / N. The share of it is at most about 1 / (the smaller number of clusters)."""
    expected, result, (d, people, prompts) = two_way("complete")
    table = np.zeros((n_clusters(people), n_clusters(prompts)))
    table[people - 1, prompts - 1] = d
    residuals = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    residual = (residuals**2).sum() / ((table.shape[0] - 1) * (table.shape[1] - 1))
    mixed = expected["kenward_roger"]
    assert_allclose(result.estimate, mixed["estimate"], rtol=EXACT)
    shortfall = (table.var(ddof=1) - residual) / table.size
    assert_allclose(mixed["se"] ** 2 - result.detail["variance_two_way"], shortfall, rtol=1e-6)
    assert 0 < shortfall / mixed["se"] ** 2 < 1 / min(table.shape)


# The two designs, of those with at least six people and five prompts, in which this shortfall cost most in a search.
@pytest.mark.slow
@pytest.mark.parametrize(("n_people", "n_prompts"), [(6, 30), (40, 6)])
def test_this_shortfall_costs_little(n_people, n_prompts):
    """Promised: .05. With the residual mean square, 20,000 such studies missed the mean in .057 and .059; with the total, .060 and .061."""
    rng = np.random.default_rng(3)
    people, prompts = np.repeat(np.arange(n_people), n_prompts), np.tile(np.arange(n_prompts), n_people)
    n_studies, ones, missed = 4000, np.ones(len(people)), 0
    for _ in range(n_studies):
        d = rng.normal(size=n_people)[people] + rng.normal(size=n_prompts)[prompts] + rng.normal(size=len(people))
        spread, df = cluster_variances.two_way_jackknife(d, ones, people, prompts)
        missed += abs(d.mean()) > half_width(math.sqrt(spread.variance), df)
    assert 0.045 < missed / n_studies < 0.07


# The standard error of each design against two others: that of Kenward and Roger, and what the fitted mixed model gives to the
# mean of all rows. The mixed model weighs rows, which makes it more precise by up to 4 % where people are unequally active.
# The rest is chance: from so few clusters, a standard error is known to about a tenth.
BOUNDS = {
    "small": ((1.0, 1.08), (1.0, 1.08)),
    "complete": ((0.96, 1.0), (0.96, 1.0)),
    "large": ((1.0, 1.1), (1.0, 1.06)),
}


@pytest.mark.parametrize(("name", "bounds"), BOUNDS.items())
def test_the_two_way_jackknife_is_close_to_a_mixed_model_with_kenward_and_roger(name, bounds):
    expected, result, (d, people, prompts) = two_way(name)
    mixed, variances = expected["kenward_roger"], expected["variances"]
    ours = result.detail["se"]
    assert abs(result.estimate - mixed["estimate"]) < 0.12 * mixed["se"]
    (low, high), (low_of_mean, high_of_mean) = bounds
    assert low < ours / mixed["se"] < high
    squares = [float(np.sum(np.bincount(labels) ** 2)) for labels in (people, prompts)]
    of_mean = variances["person"] * squares[0] + variances["prompt"] * squares[1] + variances["Residual"] * len(d)
    assert low_of_mean < ours * len(d) / math.sqrt(of_mean) < high_of_mean
    assert 0.8 < result.detail["df"] / mixed["df"] < 1.05
    assert abs(result.pvalue - mixed["p"]) < 0.05
    # Both ratings as rows, with random slopes of the system: the same claim, within the same distance.
    slopes = expected["random_slopes"]
    assert 0.9 < slopes["se"] / mixed["se"] < 1.1
    assert abs(slopes["estimate"] - result.estimate) < 0.15 * ours


def unpaired_difference():
    rows = UNPAIRED["data"]
    x, y = rows["is_x"] == 1, rows["is_x"] == 0
    return unpaired.mean_difference(
        rows["rating"][x],
        rows["rating"][y],
        x_annotators=rows["person"][x],
        y_annotators=rows["person"][y],
        x_prompts=rows["prompt"][x],
        y_prompts=rows["prompt"][y],
    )


def test_a_difference_not_side_by_side_has_the_variances_and_degrees_of_freedom_of_clubsandwich():
    result, rows = unpaired_difference(), UNPAIRED["data"]
    assert_allclose(result.estimate, UNPAIRED["estimate"], rtol=EXACT)
    parts, dfs = [], []
    for way, ours in (("person", "annotators"), ("prompt", "items")):
        n = n_clusters(rows[way])
        parts.append((n - 1) / n * UNPAIRED[way]["CR3"]["se"] ** 2)
        dfs.append(UNPAIRED["df_plain"][way])
        assert_allclose(result.detail[f"variance_{ours}"], parts[-1], rtol=EXACT)
        # The degrees of freedom are those of the plain variance. Those of CR2 are smaller by up to 3 %.
        assert 1.0 < dfs[-1] / UNPAIRED[way]["CR2"]["df"] < 1.03
    combined = result.detail["variance_two_way"]
    assert combined > max(parts)
    satterthwaite = combined**2 / sum(part**2 / df for part, df in zip(parts, dfs, strict=True))
    assert_allclose(result.detail["df"], satterthwaite, rtol=EXACT)


def test_a_difference_not_side_by_side_is_close_to_a_mixed_model_with_random_slopes():
    """The mixed model also compares within people and prompts that have both systems, so it is more precise."""
    result, mixed = unpaired_difference(), UNPAIRED["mixed"]
    assert abs(result.estimate - mixed["estimate"]) < 0.15 * mixed["se"]
    assert 1.0 < result.detail["se"] / mixed["se"] < 1.15
    assert 0.8 < result.detail["df"] / mixed["df"] < 1.0
    assert abs(result.pvalue - mixed["p"]) < 0.1
