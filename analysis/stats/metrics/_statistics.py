"""Agreement statistics of systems' scores, for many resamples at once."""

from collections.abc import Callable

import numpy as np

from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray
from analysis.stats.bootstrap import ratio_draws

BLOCK = 128


def system_means(table: FloatArray) -> FloatArray:
    """Return the mean of each system's scores; missing ones are left out."""
    return np.asarray(weighted_system_means(table, np.ones((1, len(table))))[0])


def weighted_system_means(table: FloatArray, weights: FloatArray) -> FloatArray:
    """Return `system_means` of resampled items; `weights` (resamples, n_items) count the draws of each."""
    is_observed = ~np.isnan(table)
    return ratio_draws(np.nan_to_num(table), is_observed.astype(np.float64), iter([weights]))


def agreement_statistic_by_row(
    statistic: str, first: FloatArray, second: FloatArray, pair_mask: BoolArray | None = None
) -> FloatArray:
    """Return the statistic of each row of two (B, K) arrays; NaN if it is undefined."""
    results = [
        _BY_NAME[statistic](first[start : start + BLOCK], second[start : start + BLOCK], pair_mask)
        for start in range(0, len(first), BLOCK)
    ]
    return np.concatenate(results)


def _pearson(first: FloatArray, second: FloatArray, _: BoolArray | None = None) -> FloatArray:
    centred = [table - table.mean(axis=1, keepdims=True) for table in (first, second)]
    spreads = [np.sqrt(np.sum(table**2, axis=1)) for table in centred]
    varies = (spreads[0] > MIN_SPREAD * _scale(first)[:, 0]) & (spreads[1] > MIN_SPREAD * _scale(second)[:, 0])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.sum(centred[0] * centred[1], axis=1) / (spreads[0] * spreads[1])
    return np.where(varies, np.clip(correlation, -1.0, 1.0), np.nan)


def _spearman(first: FloatArray, second: FloatArray, _: BoolArray | None = None) -> FloatArray:
    # The mid-rank of a value is half the sum of the signs of its distances to all others, up to a constant.
    return _pearson(
        *(
            _sign(table[:, :, None] - table[:, None, :], _scale(table)[:, :, None]).sum(axis=2)
            for table in (first, second)
        )
    )


def _kendall(first: FloatArray, second: FloatArray, _: BoolArray | None = None) -> FloatArray:
    a, b = _signs(first), _signs(second)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sum(a * b, axis=1) / np.sqrt(np.sum(a**2, axis=1) * np.sum(b**2, axis=1)))


def _accuracy(first: FloatArray, second: FloatArray, chosen: BoolArray | None = None) -> FloatArray:
    a, b = _signs(first), _signs(second)
    if chosen is not None:
        a, b = a[:, chosen], b[:, chosen]
    undefined = np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1)
    return np.where(undefined, np.nan, np.mean(a == b, axis=1))


def _signs(scores: FloatArray) -> FloatArray:
    left, right = np.triu_indices(scores.shape[1], 1)
    return _sign(scores[:, left] - scores[:, right], _scale(scores))


def _sign(apart: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the sign of differences of means. Equal scores can differ in the last digit, which counts as a tie."""
    return np.asarray(np.sign(np.where(np.abs(apart) < MIN_SPREAD * scale, 0.0, apart)))


def _scale(scores: FloatArray) -> FloatArray:
    largest: FloatArray = np.max(np.abs(np.nan_to_num(scores)), axis=1, keepdims=True, initial=0.0)
    return np.maximum(1.0, largest)


def divide_by_max_abs(table: FloatArray) -> FloatArray:
    """Return the scores divided by the largest absolute value."""
    largest = float(np.max(np.abs(np.nan_to_num(table)), initial=0.0))
    return table / largest if largest > 0 else table


_BY_NAME: dict[str, Callable[[FloatArray, FloatArray, BoolArray | None], FloatArray]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
    "pairwise_accuracy": _accuracy,
}
