"""Why rank sets over few prompts hold in less than .95 of boards of equal systems.

    python -m tests.calibration.rank_sets [--boards 1200]

The first part draws whole boards, as in docs: explanation/board-statistics, and takes the largest deviation by the estimated covariance
(as heval does), by the true one, and by Šidák's bound. The second part draws only independent normal scores of prompts, so
nothing but the number of prompts and of systems matters.
"""

import argparse

import numpy as np
from scipy import stats

from analysis.stats import ranks

LEVEL = 0.95
DESIGNS = ((15, 20, 30), (20, 5, 12))
SIZES = ((15, 4), (15, 10), (15, 30), (30, 4), (30, 10), (30, 30))
K = 4


def as_t(normal: float, df) -> np.ndarray:
    """The t quantile with the same tail."""
    return stats.t.isf(stats.norm.sf(normal), df)


def largest_of_normal(k: int, rng: np.random.Generator) -> float:
    draws = rng.normal(size=(100_000, k))
    return float(np.quantile(draws.max(axis=1) - draws.min(axis=1), LEVEL)) / np.sqrt(2)


def sidak(k: int) -> float:
    return float(stats.norm.isf((1 - LEVEL ** (2 / (k * (k - 1)))) / 2))


def board(rng: np.random.Generator, prompts: int, labels: int, people: int):
    """Answers about four equal systems: values, annotators, systems, prompts."""
    prompt = np.repeat(np.arange(prompts), K * labels)
    system = np.tile(np.repeat(np.arange(K), labels), prompts)
    who = np.concatenate([rng.permutation(people)[:labels] for _ in range(prompts * K)])
    values = 0.15 * rng.normal(size=prompts)[prompt] + 0.08 * rng.normal(size=people)[who]
    values = values + 0.15 * rng.normal(size=(prompts, K))[prompt, system] + 0.15 * rng.normal(size=len(prompt))
    return values, who, system, prompt


def boards(n: int) -> None:
    print("prompts x labels, people  estimated covariance  true covariance  Šidák  mean degrees of freedom")
    rng = np.random.default_rng(1)
    first, second = np.triu_indices(K, 1)
    true, bound = largest_of_normal(K, rng), sidak(K)
    for prompts, labels, people in DESIGNS:
        held, freedom = np.zeros(3), []
        for _ in range(n):
            spread = ranks.score_spread(*board(rng, prompts, labels, people))
            se, df = (table[first, second] for table in spread.of_pairs())
            _, differences = ranks.rank_confidence_sets_from_spread(spread, resamples=999, rng=rng)
            assert differences is not None
            deviations = np.abs(spread.scores[first] - spread.scores[second]) / se
            quantiles = differences.critical_value, true, bound
            held += [bool(np.all(deviations <= as_t(one, df))) for one in quantiles]
            freedom.append(float(np.mean(df)))
        shares = "  ".join(f"{share:.3f}" for share in held / n)
        print(f"{prompts} x {labels}, {people}:  {shares}  {np.mean(freedom):.1f}", flush=True)


def normal_scores(n: int) -> None:
    print("prompts  systems  true covariance  Šidák")
    rng = np.random.default_rng(2)
    for prompts, k in SIZES:
        first, second = np.triu_indices(k, 1)
        largest = []
        for _ in range(n):
            scores = rng.normal(size=(prompts, k))
            apart = scores[:, first] - scores[:, second]
            largest.append(np.max(np.abs(apart.mean(axis=0)) / (apart.std(axis=0, ddof=1) / np.sqrt(prompts))))
        shares = [np.mean(largest <= as_t(one, prompts - 1)) for one in (largest_of_normal(k, rng), sidak(k))]
        print(f"{prompts:7}  {k:7}  {shares[0]:.3f}  {shares[1]:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boards", type=int, default=1200)
    chosen = parser.parse_args()
    boards(chosen.boards)
    normal_scores(10 * chosen.boards)


if __name__ == "__main__":
    main()
