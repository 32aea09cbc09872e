"""Analyse many simulated studies at once with clustered means."""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import clusters, equivalence
from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray, label_codes, validate_level
from analysis.stats.planning._simulation import Outcomes, outcomes_from_estimates
from analysis.stats.results import Estimate


def clustered_mean_outcomes(
    means: npt.ArrayLike,
    *,
    null: float = 0.5,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    margin: float | None = None,
) -> Outcomes:
    """Run `clusters.clustered_mean` on many runs at once, for annotators with equally many answers.

    Parameters
    ----------
    means : array_like, shape (runs, n_annotators)
        Each annotator's mean, none missing.
    null : float, default 0.5
        Value of the null hypothesis.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale.
    margin : float, optional
        Equivalence margin. With it, the outcomes say whether the equivalence test is significant at 1 - level.

    Returns
    -------
    Outcomes
        The outcomes. Runs with hardly any spread or with skewed answers use `clusters.clustered_mean` itself.

    Examples
    --------
    >>> means = np.random.default_rng(0).normal(0.6, 0.1, (3, 30))
    >>> ours, theirs = clustered_mean_outcomes(means), clusters.clustered_mean(means[1], range(30), null=0.5)
    >>> bool(abs(ours.pvalue[1] - theirs.pvalue) < 1e-12)
    True
    """
    validate_level(level)
    table = np.asarray(means, dtype=np.float64)
    n_annotators = table.shape[1]
    mean = table.mean(axis=1)
    if n_annotators < 2:
        nothing = np.full(len(table), np.nan)
        return Outcomes(mean, nothing, nothing, nothing, None if margin is None else np.zeros(len(table), dtype=bool))
    variance, df, skewness = _jackknife(table - mean[:, None], np.arange(n_annotators), n_annotators)
    se = np.sqrt(variance)
    is_plain = se >= MIN_SPREAD
    if bounds is not None:
        is_plain &= skewness <= clusters.MAX_SKEWNESS
    outcomes = _t_outcomes(
        mean, se, np.full(len(table), df), is_plain, null=null, level=level, bounds=bounds, margin=margin
    )
    for row in np.flatnonzero(~is_plain):
        single = clusters.clustered_mean(table[row], np.arange(n_annotators), null=null, level=level, bounds=bounds)
        _fill(outcomes, int(row), single)
        if margin is not None and outcomes.is_equivalent is not None:
            tost = equivalence.equivalence_test_of_estimate(single, null=null, margin=margin, significance=1 - level)
            outcomes.is_equivalent[row] = tost is not None and bool(tost.detail.get("is_equivalent"))
    if n_annotators < clusters.TOO_FEW_CLUSTERS:
        outcomes.pvalue[:] = np.nan
        if outcomes.is_equivalent is not None:
            outcomes.is_equivalent[:] = False
    return outcomes


def two_way_clustered_mean_outcomes(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike,
    *,
    null: float = 0.5,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Outcomes:
    """Run `clusters.two_way_clustered_mean` on many runs at once.

    Parameters
    ----------
    values : array_like, shape (runs, n_rows)
        Values, none missing.
    annotators, items : array_like, shape (n_rows,)
        Labels of annotator and item, the same in every run.
    null : float, default 0.5
        Value of the null hypothesis.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them.

    Returns
    -------
    Outcomes
        The outcomes.

    Examples
    --------
    >>> values = np.random.default_rng(0).random((2, 60)) < 0.6
    >>> annotators, what = np.repeat(np.arange(12), 5), np.tile(np.arange(20), 3)
    >>> ours = two_way_clustered_mean_outcomes(values, annotators, what)
    >>> bool(abs(ours.pvalue[0] - clusters.two_way_clustered_mean(values[0], annotators, what, null=0.5).pvalue) < 1e-12)
    True
    """
    validate_level(level)
    table = np.asarray(values, dtype=np.float64)
    n_rows = table.shape[1]
    annotator_codes, n_annotators = label_codes(np.asarray(annotators), "annotators", n_rows)
    item_codes, n_items = label_codes(np.asarray(items), "items", n_rows)
    mean = table.mean(axis=1)
    residuals = table - mean[:, None]
    if min(n_annotators, n_items) < 2:
        nothing = np.full(len(table), np.nan)
        return Outcomes(mean, nothing, nothing, nothing)
    cells, n_cells = label_codes(annotator_codes * n_items + item_codes, "cells", n_rows)
    (by_annotator, annotator_df, annotator_skew), (by_item, item_df, item_skew) = (
        _jackknife(residuals, labels, count)
        for labels, count in ((annotator_codes, n_annotators), (item_codes, n_items))
    )
    by_cell = n_cells / (n_cells - 1) * (_summed_runs(residuals, cells, n_cells) ** 2).sum(axis=1) / n_rows**2
    combined = by_annotator + by_item - by_cell
    largest = np.maximum(by_annotator, by_item)
    variance = np.maximum(combined, largest)
    with np.errstate(invalid="ignore", divide="ignore"):
        satterthwaite = combined**2 / (by_annotator**2 / annotator_df + by_item**2 / item_df)
    df = np.where(combined >= largest, satterthwaite, np.where(by_annotator >= by_item, annotator_df, item_df))
    se = np.sqrt(variance)
    has_enough = n_annotators >= clusters.TOO_FEW_CLUSTERS and n_items >= clusters.TOO_FEW_ITEMS
    is_plain = se >= MIN_SPREAD
    if bounds is not None:
        is_plain &= has_enough & (np.maximum(annotator_skew, item_skew) <= clusters.MAX_SKEWNESS)
    outcomes = _t_outcomes(mean, se, df, is_plain, null=null, level=level, bounds=bounds)
    if not has_enough:
        outcomes.pvalue[:] = np.nan
    for row in np.flatnonzero(~is_plain):
        single = clusters.two_way_clustered_mean(table[row], annotators, items, null=null, level=level, bounds=bounds)
        _fill(outcomes, int(row), single)
    return outcomes


def _t_outcomes(
    mean: FloatArray,
    se: FloatArray,
    df: FloatArray,
    is_plain: BoolArray,
    *,
    null: float,
    level: float,
    bounds: tuple[float, float] | None,
    margin: float | None = None,
) -> Outcomes:
    """Return the outcomes of `confidence.TCurve` in each run; only those of plain runs are of use."""
    df = np.maximum(1.0, np.where(is_plain, df, 1.0))
    scale = np.where(is_plain, se, 1.0)
    pvalue = np.minimum(1.0, 2 * special.stdtr(df, -np.abs((mean - null) / scale)))
    half = special.stdtrit(df, (1 + level) / 2) * scale
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = np.maximum(low, bounds[0]), np.minimum(high, bounds[1])
    equivalent = None
    if margin is not None:
        reach = special.stdtrit(df, level) * scale
        equivalent = is_plain & (mean - reach > null - margin) & (mean + reach < null + margin)
    return Outcomes(mean, low, high, pvalue, equivalent)


def _fill(outcomes: Outcomes, row: int, estimate: Estimate) -> None:
    """Put the outcomes of one estimate in the place of one run."""
    alone = outcomes_from_estimates([estimate])
    outcomes.low[row], outcomes.high[row], outcomes.pvalue[row] = alone.low[0], alone.high[0], alone.pvalue[0]


def _summed_runs(residuals: FloatArray, labels: npt.NDArray[np.int64], count: int) -> FloatArray:
    """Return the sum of each group in each run, shape (runs, count)."""
    runs = len(residuals)
    cells = labels[None, :] + count * np.arange(runs)[:, None]
    return np.asarray(np.bincount(cells.ravel(), residuals.ravel(), runs * count), dtype=np.float64).reshape(
        runs, count
    )


def _jackknife(
    residuals: FloatArray, labels: npt.NDArray[np.int64], count: int
) -> tuple[FloatArray, float, FloatArray]:
    """Return `clusters.cv3_variance`, its degrees of freedom, and `clusters.abs_skewness_of_clustered_mean` of each run."""
    sums, sizes = _summed_runs(residuals, labels, count), np.bincount(labels, minlength=count).astype(np.float64)
    n_rows = residuals.shape[1]
    variance = (count - 1) / count * ((-sums / (n_rows - sizes)) ** 2).sum(axis=1)
    spread = np.sqrt(np.mean(sums**2, axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = np.abs(np.mean(sums**3, axis=1)) / spread**3 / math.sqrt(count)
    return variance, max(1.0, clusters.effective_n_clusters(sizes) - 1), np.where(spread < MIN_SPREAD, 0.0, skewness)
