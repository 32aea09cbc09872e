"""Reliability of mean scores, and concordance of rankings."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from analysis.stats.arrays import MIN_SPREAD, FloatArray, matrix, mid_ranks, validate_level
from analysis.stats.bootstrap import percentile_interval
from analysis.stats.results import Estimate, HypothesisTest, ResultWarning

# Split-half reliability of the items' mean scores.


# Number of random halvings.
SPLITS = 500
# Halvings times items that are computed at once. They fit into the processor's cache.
MAX_CELLS = 100_000


def split_half_reliability(
    scores: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> Estimate:
    """Split-half reliability: how well the mean scores of half of the annotators predict those of the other half.

    Parameters
    ----------
    scores : array_like, shape (n_annotators, n_items)
        Scores; NaN is missing.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    Estimate
        The mean over halvings. `n` counts items. Fewer than three items or two annotators: `not_identified`.

    Notes
    -----
    For each halving, the items' means in both halves are correlated (Pearson, over items scored in both) and stepped
    up to all annotators by Spearman and Brown, 2 r / (1 + r). The interval is the percentile bootstrap over items.
    Each resample has its own random halving, so the interval covers both sources of chance.

    Examples
    --------
    >>> truth = np.arange(8.0)
    >>> scores = truth + np.random.default_rng(0).normal(0, 0.1, (10, 8))
    >>> split_half_reliability(scores, rng=np.random.default_rng(1)).estimate > 0.99
    True
    """
    validate_level(level)
    table = matrix(scores, "scores")
    is_observed = ~np.isnan(table)
    table = table[is_observed.any(axis=1)][:, is_observed.any(axis=0)]
    is_observed = ~np.isnan(table)
    n_annotators, n_items = table.shape
    common: dict[str, Any] = {
        "analysis": "split_half_reliability",
        "estimand": "split-half reliability of the items' means (Spearman-Brown)",
        "unit": "item",
        "n": n_items,
        "n_rows": int(is_observed.sum()),
        "settings": {"level": level, "splits": SPLITS, "resamples": resamples},
        "detail": {"n_annotators": n_annotators},
    }
    if table.size == 0:
        return Estimate(status="no_data", reason="no score to analyse", **common)
    if n_items < 3 or n_annotators < 2:
        return Estimate(status="not_identified", reason="needs three items and two annotators", **common)
    # Most people score few of the items.
    filled = sparse.csr_array(np.where(is_observed, table, 0.0).T)
    ones = sparse.csr_array(is_observed.T.astype(np.float64))
    del table, is_observed
    halves = _random_halves(n_annotators, SPLITS, rng)
    defined = np.concatenate(
        [
            _stepped_up(_weighted_correlations(*_means_of_halves(filled, ones, part), np.ones((len(part), n_items))))
            for part in _blocks(halves, n_items)
        ]
    )
    defined = defined[np.isfinite(defined)]
    if len(defined) <= SPLITS / 2:
        return Estimate(status="not_identified", reason="the halves share too few items that differ", **common)
    parts = []
    for part in _blocks(_random_halves(n_annotators, resamples, rng), n_items):
        weights = _resampled_counts(n_items, len(part), rng)
        parts.append(_stepped_up(_weighted_correlations(*_means_of_halves(filled, ones, part), weights)))
    draws = np.concatenate(parts)
    finite = draws[np.isfinite(draws)]
    warnings: tuple[ResultWarning, ...] = ()
    if len(finite) < resamples:
        warnings = (ResultWarning("undefined_resamples", "warn", {"share": 1 - len(finite) / resamples}),)
    interval = percentile_interval(finite, level) if len(finite) > resamples / 2 else None
    return Estimate(estimate=float(np.mean(defined)), interval=interval, warnings=warnings, **common)


def _random_halves(n_annotators: int, splits: int, rng: np.random.Generator) -> FloatArray:
    """Return which annotators are in the first half of each random halving, as 0 and 1; shape (splits, n_annotators)."""
    order = np.argsort(rng.random((splits, n_annotators)), axis=1)
    # With an odd number the extra annotator is in a random half, so neither half is always the larger one.
    size = n_annotators // 2 + (rng.integers(0, 2, size=splits) if n_annotators % 2 else np.zeros(splits, dtype=int))
    return (order < size[:, None]).astype(np.float64)


def _resampled_counts(n_items: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each resample has each item. With many items this takes a tenth of the time of ``rng.multinomial``."""
    chosen = rng.integers(0, n_items, size=(resamples, n_items)) + n_items * np.arange(resamples)[:, None]
    return np.bincount(chosen.ravel(), minlength=resamples * n_items).reshape(resamples, n_items).astype(np.float64)


def _blocks(halves: FloatArray, n_items: int) -> Iterator[FloatArray]:
    """Yield so many halvings at a time that their items fit into memory."""
    size = max(1, MAX_CELLS // n_items)
    for start in range(0, len(halves), size):
        yield halves[start : start + size]


def _means_of_halves(
    filled: sparse.csr_array, ones: sparse.csr_array, in_first: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the items' means in the two halves of each halving; NaN if a half did not score an item."""
    sums, counts = (filled @ in_first.T).T, (ones @ in_first.T).T
    halves = (sums, counts), (filled.sum(axis=1) - sums, ones.sum(axis=1) - counts)
    first, second = (np.divide(total, n, out=np.full_like(n, np.nan), where=n > 0) for total, n in halves)
    return first, second


def _weighted_correlations(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    """Return Pearson's weighted correlation of each row over its items, or NaN.

    It is NaN with fewer than three items or without variance.
    """
    usable = ~np.isnan(first) & ~np.isnan(second)
    weight = np.where(usable, weights, 0.0)
    x, y = np.where(usable, first, 0.0), np.where(usable, second, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weight.sum(axis=1, keepdims=True)
        x = x - (weight * x).sum(axis=1, keepdims=True) / total
        y = y - (weight * y).sum(axis=1, keepdims=True) / total
        spread_x, spread_y = (weight * x * x).sum(axis=1), (weight * y * y).sum(axis=1)
        correlation = (weight * x * y).sum(axis=1) / np.sqrt(spread_x * spread_y)
    varies = (spread_x > MIN_SPREAD) & (spread_y > MIN_SPREAD) & ((weight > 0).sum(axis=1) >= 3)
    return np.where(varies, correlation, np.nan)


def _stepped_up(correlations: FloatArray) -> FloatArray:
    # A correlation near -1 would step up to minus infinity, so the result is cut at -1.
    with np.errstate(invalid="ignore", divide="ignore"):
        stepped = 2 * correlations / (1 + correlations)
    return np.where(np.isnan(correlations), np.nan, np.maximum(stepped, -1.0))


# Kendall's coefficient of concordance and Friedman's test.


def kendall_w(scores: npt.ArrayLike) -> Estimate:
    """Estimate Kendall's W, the agreement of n rankings of K systems, and test it with Friedman's test.

    A row of `scores` (n, K) has one annotator's scores or ranks of all systems. Only the order within a row counts,
    ties get mid-ranks, and a row with a missing value is left out (`detail["n_incomplete"]`). With R_j the sum of ranks
    of system j and t the sizes of the ties, W = 12 sum_j (R_j - n (K + 1) / 2)^2 / (n^2 (K^3 - K) - n sum (t^3 - t)),
    from 0 (equal mean ranks) to 1 (identical rankings), without an interval (Kendall and Babington Smith 1939, The
    problem of m rankings). `detail["mean_rank_correlation"]` = (n W - 1) / (n - 1) is the mean of Spearman's
    correlations over pairs of rows (exact without ties). The hypothesis of the test (Friedman 1937) is that every order
    is equally likely within each row, with independent rows: chi2 = n (K - 1) W on K - 1 degrees of freedom. It says
    nothing about a pair. Without any agreement W is 1 / n on average, so it is too high with few rows.

    >>> result = kendall_w([[1, 2, 3], [1, 2, 3], [2, 1, 3], [1, 3, 2]])
    >>> round(result.estimate, 4), round(result.test.statistic, 2), result.test.df
    (0.5625, 4.5, 2.0)
    """
    table = matrix(scores, "scores")
    is_complete = ~np.isnan(table).any(axis=1)
    ranks = np.array([mid_ranks(row) for row in table[is_complete]]).reshape(-1, table.shape[1])
    n, k = ranks.shape
    detail: dict[str, Any] = {"n_incomplete": int((~is_complete).sum()), "n_systems": k}
    common: dict[str, Any] = {
        "analysis": "kendall_w",
        "estimand": "Kendall's W",
        "unit": "annotator",
        "n": n,
        "n_rows": n * k,
        "detail": detail,
    }
    if n == 0:
        return Estimate(status="no_data", reason="no complete ranking", **common)
    if n < 2 or k < 2:
        return Estimate(status="n_lt_2", reason="agreement needs two rankings and two systems", **common)
    detail["mean_ranks"] = ranks.mean(axis=0)
    ties = sum(float(np.sum(counts**3 - counts)) for counts in (np.unique(row, return_counts=True)[1] for row in ranks))
    possible = n**2 * (k**3 - k) - n * ties
    if possible < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="every ranking ties all systems", **common)
    estimate = 12 * float(np.sum((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2)) / possible
    detail["mean_rank_correlation"] = (n * estimate - 1) / (n - 1)
    statistic = n * (k - 1) * estimate
    test = HypothesisTest(
        name="friedman",
        null=0.0,
        statistic=statistic,
        pvalue=float(special.chdtrc(k - 1, statistic)),
        df=float(k - 1),
        alternative="greater",
    )
    return Estimate(estimate=estimate, test=test, **common)
