"""Inference for the mean of bounded values by betting, for cases in which a t interval is not valid.

A gambler bets against "the mean is m" with stakes chosen before each value. If the mean is m, the wealth is an
e-process: it exceeds 1 / (1 - level) with probability at most 1 - level at any n. The values of m that have not
made the gambler rich form a confidence interval. It needs no variance, no symmetry and no large n.

Reference: Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting (the hedged,
convex combination of two predictable plug-in bettors, stakes cut at half of what could be lost).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, drop_and_count_missing, validate_level, validate_within_bounds, vector
from analysis.stats.results import Interval, Record

STAKE_CAP = 0.5
GRID = 1001
# Number of finer grids if a confidence sequence has become narrower than the steps of its grid.
REFINEMENTS = 3
# Number of (null, value) cells that are computed at once. They fit into the processor's cache, which takes less than half of the time.
CELLS = 20_000
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ConfidenceSequence(Record):
    """Confidence intervals after each of n units that all hold at once, so that a study may check at any time.

    `low` and `high` have shape (n,); each interval is within those before it. `drift_at` is the number of units at
    which no value was left (the mean moved), else None. From there on the last interval is repeated, and no
    conclusion is allowed.
    """

    level: float
    low: FloatArray
    high: FloatArray
    method: str
    drift_at: int | None = None

    def interval_after(self, n: int) -> Interval:
        """Return the interval after `n` units, n >= 1. Raise ValueError if there are fewer."""
        if not 1 <= n <= len(self.low):
            raise ValueError(f"n: {n} is not in 1..{len(self.low)}")
        low, high = float(self.low[n - 1]), float(self.high[n - 1])
        return Interval(self.level, low, high, self.method, clipped=low == 0.0 or high == 1.0)


def log_wealth(values: npt.ArrayLike, null: npt.ArrayLike, *, level: float = 0.95) -> FloatArray:
    """Logarithm of the betting e-process against "the mean is `null`" after each value.

    Parameters
    ----------
    values : array_like, shape (n,)
        Values in 0..1 in the order in which they are revealed.
    null : array_like, shape () or (k,)
        Means under the null hypothesis, in 0..1.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    ndarray of float, shape (n,) or (k, n)
        The logarithm.

    Raises
    ------
    ValueError
        If a null or value is outside 0..1.

    Notes
    -----
    With t values seen, the stake is sqrt(2 log(2 / (1 - level)) / (s2[t-1] t log(t + 1))), cut at c / m upwards and c /
    (1 - m) downwards, with c = `STAKE_CAP`. s2 is the running variance started at 1/4, so each stake depends only on
    earlier values.

    Examples
    --------
    >>> wealth = np.exp(log_wealth([0.6, 0.7, 0.5, 0.9], 0.5))
    >>> np.round(wealth, 4).tolist()
    [1.0, 1.02, 1.02, 1.14]
    """
    validate_level(level)
    series = _ordered(values)
    nulls = np.asarray(null, dtype=np.float64)
    outside = np.flatnonzero(~((nulls >= 0) & (nulls <= 1)))
    if len(outside):
        raise ValueError(f"null: {np.atleast_1d(nulls)[outside[0]]:g} is outside 0..1")
    stakes = _stakes(series, level)
    wealth = _wealth(series, stakes, np.atleast_1d(nulls))
    return wealth[0] if nulls.ndim == 0 else wealth


def log_wealth_of_studies(values: FloatArray, null: float | FloatArray, *, level: float = 0.95) -> FloatArray:
    """Compute `log_wealth` of many studies at once, each with its own null or all with the same one.

    `values` (studies, n) are in 0..1, in the order in which they are revealed, with none missing. The result has the
    same shape.

    >>> both = log_wealth_of_studies(np.array([[0.6, 0.7], [0.5, 0.9]]), 0.5)
    >>> bool(np.allclose(both[1], log_wealth([0.5, 0.9], 0.5)))
    True
    """
    return _wealth(values, _stakes(values, level), np.broadcast_to(np.clip(null, 0.0, 1.0), len(values)))


def betting_pvalue(values: npt.ArrayLike, null: float) -> float:
    """Compute a p-value for "the mean is `null`" that is valid at any n: 1 / the largest wealth, at most 1.

    `values` has one value in 0..1 per unit, with NaN for missing. The p-value is 1 without values. The values enter in
    a random order with a fixed seed.

    >>> betting_pvalue([0.5, 0.5, 0.5], 0.5)
    1.0
    """
    series = _shuffled(values)
    if len(series) == 0:
        return 1.0
    return min(1.0, math.exp(-max(0.0, float(np.max(log_wealth(series, null))))))


def betting_confidence_sequence(values: npt.ArrayLike, *, level: float = 0.95, grid: int = GRID) -> ConfidenceSequence:
    """Compute a confidence sequence for the mean of values in 0..1, for any distribution.

    `values` are in the order in which units enter. Given the values before it, each must have the same mean. `level` is
    the probability that all intervals together contain the mean. The interval after each value is the range of the
    means that the wealth has not refuted, among `grid` equally spaced means; it is one step wider on each side, within
    0..1 (Waudby-Smith and Ramdas 2024, the hedged capital confidence sequence). A missing value, a value outside 0..1
    or a grid of fewer than three points raises ValueError.

    >>> sequence = betting_confidence_sequence(np.ones(20))
    >>> np.round(sequence.low[[0, 9, 19]], 3).tolist()
    [0.0, 0.528, 0.711]
    """
    validate_level(level)
    series = _ordered(values)
    if grid < 3:
        raise ValueError(f"grid: {grid} points do not divide 0..1")
    stakes = _stakes(series, level)
    low, high = np.zeros(len(series)), np.ones(len(series))
    drift_at: int | None = None
    lowest_null, highest_null, start = 0.0, 1.0, 0
    for _ in range(1 + REFINEMENTS):
        nulls = np.linspace(lowest_null, highest_null, grid)
        step = (highest_null - lowest_null) / (grid - 1)
        first, last = _never_rich(series, stakes, nulls, math.log(1 / (1 - level)))
        empty = np.flatnonzero(np.isinf(first[start:]))
        end = start + int(empty[0]) if len(empty) else len(series)
        low[start:end], high[start:end] = first[start:end] - step, last[start:end] + step
        if end == len(series):
            break
        # The remaining means can be between two points of the grid, so search the last interval again.
        if end > 0:
            lowest_null, highest_null = max(0.0, float(low[end - 1])), min(1.0, float(high[end - 1]))
        start, drift_at = end, end + 1
    else:
        low[start:], high[start:] = (low[start - 1], high[start - 1]) if start else (0.0, 1.0)
    if end == len(series):
        drift_at = None
    # A finer grid can give an end further out by less than a step; excluded means stay excluded.
    low = np.maximum.accumulate(np.maximum(low, 0.0)) if len(low) else low
    high = np.minimum.accumulate(np.minimum(high, 1.0)) if len(high) else high
    return ConfidenceSequence(level, low, high, "betting", drift_at)


def betting_interval(
    values: npt.ArrayLike,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    rng: np.random.Generator | None = None,
    grid: int = GRID,
) -> Interval | None:
    """Confidence interval for the mean of values within known bounds, for any distribution.

    Use it if values do not vary or are at the edge of their scale; a t interval then covers as little as 60 %.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value per unit; NaN is missing. The order of the units has no effect.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], default (0.0, 1.0)
        Ends of the scale.
    rng : numpy.random.Generator, optional
        Source of the permutation of the sorted values; a fixed seed if None.
    grid : int, default GRID
        Number of equally spaced means that are tested.

    Returns
    -------
    Interval or None
        The range of the means not refuted by the wealth, one step wider and clipped to the bounds; None if empty.

    Examples
    --------
    >>> interval = betting_interval(np.ones(20))
    >>> round(interval.low, 3), interval.high
    (0.711, 1.0)
    """
    observed, _ = drop_and_count_missing(values, "values")
    validate_within_bounds(observed, bounds, "values")
    return betting_ratio_interval(observed, np.ones(len(observed)), level=level, bounds=bounds, rng=rng, grid=grid)


def betting_ratio_interval(
    sums: npt.ArrayLike,
    counts: npt.ArrayLike,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] = (0.0, 1.0),
    rng: np.random.Generator | None = None,
    grid: int = GRID,
) -> Interval | None:
    """Compute `betting_interval` for sum(sums) / sum(counts), a mean to which some units gave more answers than others.

    `sums` and `counts` (n_units,) are each unit's sum of answers (weighted or not), and its number of answers or
    weight. A unit without weight is left out, and the result is None without units. Against "the ratio is m" the bet is
    on m + (sum - m count) / largest count, which is in 0..1 and has mean m. If all units count the same, the interval
    is that of their means; otherwise the mean of the means is another estimand. `bounds` are the ends of the scale of
    the answers, and `rng` permutes the sorted units, with a fixed seed if it is None. Missing values, negative counts
    and means outside the bounds raise ValueError.

    >>> interval = betting_ratio_interval([30.0, *[0.0] * 15], [30.0, *[1.0] * 15])
    >>> interval.low < 30 / 45 < interval.high
    True
    """
    validate_level(level)
    totals, weights = vector(sums, "sums"), vector(counts, "counts")
    if totals.shape != weights.shape:
        raise ValueError(f"counts: {len(weights)} where sums has {len(totals)}")
    if np.isnan(totals).any() or np.isnan(weights).any() or np.any(weights < 0):
        raise ValueError("counts: sums and counts are numbers, and counts not negative")
    totals, weights = totals[weights > 0], weights[weights > 0]
    if len(totals) == 0:
        return None
    means = totals / weights
    # Sums of decimals can be outside the scale by a rounding error.
    near = np.clip(means, *bounds)
    validate_within_bounds(
        np.where(np.abs(means - near) < ROUNDING * max(1.0, *map(abs, bounds)), near, means), bounds, "sums"
    )
    # Sort, so that the labels of the units have no effect.
    scaled = (near - bounds[0]) / (bounds[1] - bounds[0])
    order = (np.random.default_rng(0) if rng is None else rng).permutation(np.lexsort((weights, scaled)))
    scaled, shares = scaled[order], weights[order] / weights.max()
    nulls = np.linspace(0.0, 1.0, grid)
    highest = [np.max(wealth, axis=1) for wealth in _ratio_wealth(scaled, shares, nulls, level)]
    not_refuted = nulls[np.concatenate(highest) < math.log(1 / (1 - level))]
    if len(not_refuted) == 0:
        # All means were refuted, because the values drift. Nothing is known beyond the bounds.
        low, high = 0.0, 1.0
    else:
        step = 1 / (grid - 1)
        low, high = max(0.0, float(not_refuted[0]) - step), min(1.0, float(not_refuted[-1]) + step)
    span = bounds[1] - bounds[0]
    return Interval(
        level=level,
        low=bounds[0] + span * low,
        high=bounds[0] + span * high,
        method="betting",
        clipped=low == 0.0 or high == 1.0,
    )


def _ordered(values: npt.ArrayLike) -> FloatArray:
    series, n_missing = drop_and_count_missing(values, "values")
    if n_missing:
        raise ValueError("values: a missing value has no place in an ordered series; leave it out first")
    validate_within_bounds(series, (0.0, 1.0), "values")
    return series


def _never_rich(
    series: FloatArray, stakes: FloatArray, nulls: FloatArray, threshold: float
) -> tuple[FloatArray, FloatArray]:
    """Return the least and greatest null that no bet has refuted after each value; infinite if bets refuted all of them."""
    low, high = np.full(len(series), np.inf), np.full(len(series), -np.inf)
    block = max(1, CELLS // max(1, len(series)))
    for start in range(0, len(nulls), block):
        some = nulls[start : start + block]
        is_not_refuted = np.maximum.accumulate(_wealth(series, stakes, some), axis=1) < threshold
        has_any = is_not_refuted.any(axis=0)
        low = np.minimum(low, np.where(has_any, some[is_not_refuted.argmax(axis=0)], np.inf))
        high = np.maximum(high, np.where(has_any, some[::-1][is_not_refuted[::-1].argmax(axis=0)], -np.inf))
    return low, high


def _shuffled(values: npt.ArrayLike) -> FloatArray:
    observed, _ = drop_and_count_missing(values, "values")
    validate_within_bounds(observed, (0.0, 1.0), "values")
    return np.asarray(np.random.default_rng(0).permutation(np.sort(observed)), dtype=np.float64)


def _stakes(series: FloatArray, level: float) -> FloatArray:
    """Return the plug-in stakes along the last axis of one series (n,) or one series per null (k, n)."""
    count = np.arange(1, series.shape[-1] + 1)
    running_mean = (0.5 + np.cumsum(series, axis=-1)) / (count + 1)
    running_variance = (0.25 + np.cumsum((series - running_mean) ** 2, axis=-1)) / (count + 1)
    earlier = np.concatenate([np.full((*series.shape[:-1], 1), 0.25), running_variance[..., :-1]], axis=-1)
    return np.asarray(np.sqrt(2 * math.log(2 / (1 - level)) / (earlier * count * np.log(count + 1))))


def _ratio_wealth(means: FloatArray, shares: FloatArray, nulls: FloatArray, level: float) -> Iterator[FloatArray]:
    """Yield the wealth of bets on m + share (mean - m) against each null m, a block of nulls at a time."""
    block, is_even = max(1, CELLS // max(1, len(means))), bool(np.all(shares == 1))
    for some in np.split(nulls, range(block, len(nulls), block)):
        series = means if is_even else some[:, None] + shares * (means - some[:, None])
        yield _wealth(series, _stakes(series, level), some)


def _wealth(series: FloatArray, stakes: FloatArray, nulls: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        upper = np.where(nulls > 0, STAKE_CAP / nulls, np.inf)[:, None]
        lower = np.where(nulls < 1, STAKE_CAP / (1 - nulls), np.inf)[:, None]
    distance = series - nulls[:, None]
    # At a mean of 0 a bet on larger values (at 1, on smaller ones) cannot lose; only the plug-in stake bounds it.
    up = np.cumsum(np.log1p(np.minimum(stakes, upper) * distance), axis=1)
    down = np.cumsum(np.log1p(-np.minimum(stakes, lower) * distance), axis=1)
    return np.asarray(np.logaddexp(up, down) - math.log(2))


# Bets on a known number of units of any size, against "the ratio of sums is m".
#
# `betting` is for values of equal weight that come one after the other. Where all units are known, stakes can be
# larger.


# The largest share of what the largest unit could lose that is staked. Only that unit can lose so much.
FULL_STAKE = 0.95
SMALLEST_VARIANCE = 1e-9
# Factors that are multiplied before the logarithm. They are between 1 - FULL_STAKE and about 1e5.
FACTORS = 32


def final_log_wealth_of_ratio(means: FloatArray, shares: FloatArray, nulls: FloatArray, level: float) -> FloatArray:
    """Compute the log wealth after all of n units against "the ratio of sums is m", for units of any size.

    `means` (n,) are the means of each unit's answers in 0..1, in the order in which units enter. `shares` (n,) are the
    units' sizes divided by the largest. `nulls` (k,) are the ratios m under the null hypothesis, in 0..1, and the
    result has their shape. `level` is that for which the stakes are tuned. Unit i moves the bet by z[i] = share[i]
    (mean[i] - m), at least -m and at most 1 - m. The stake of unit t is sqrt(2 log(2 / (1 - level)) / (n v[t])) with
    v[t] = (m (1 - m) + z[1]^2 + ... + z[t-1]^2) / t, cut at FULL_STAKE / m upwards and FULL_STAKE / (1 - m) downwards.
    The wealth is the mean of two products, of 1 + stake z and of 1 - stake z. It is an e-value: no factor is negative,
    and units are independent draws of a size and a mean with E[size (mean - m)] = 0, so m is the ratio. A stake depends
    only on earlier units, so each factor has the expectation 1 given these, and so has the product. This takes the
    largest size as known: no unit could be larger than the largest of the sample, or sizes say nothing about answers,
    and then the proof holds given all sizes. The stake must not depend on the size of its own unit: E[stake(size) size
    (mean - m)] = 0 needs equal means of large and small units.

    >>> wealth = final_log_wealth_of_ratio(np.ones(4), np.array([1.0, 0.5, 0.5, 1.0]), np.array([0.5, 1.0]), 0.95)
    >>> np.round(wealth, 3).tolist()
    [1.42, 0.0]
    """
    n, block = len(means), max(1, CELLS // max(1, len(means)))
    tuned = 2 * math.log(2 / (1 - level)) * np.arange(1, n + 1) / n
    wealth = []
    for some in np.split(nulls, range(block, len(nulls), block)):
        m = some[:, None]
        moves = shares * (means - m)
        # A mean of 0 or 1 allows no variance, but a stake needs some.
        squares = moves * moves
        variances = np.cumsum(squares, axis=1)
        variances -= squares
        variances += np.maximum(m * (1 - m), SMALLEST_VARIANCE)
        stakes = np.sqrt(np.divide(tuned, variances, out=variances), out=variances)
        with np.errstate(divide="ignore"):
            up = _sum_of_logs(1 + np.minimum(stakes, FULL_STAKE / m) * moves)
            down = _sum_of_logs(1 - np.minimum(stakes, FULL_STAKE / (1 - m)) * moves)
        wealth.append(np.logaddexp(up, down) - math.log(2))
    return np.concatenate(wealth)


def _sum_of_logs(factors: FloatArray) -> FloatArray:
    """Return the sum of the logarithms of each row. Products of a few factors are faster, and neither overflow nor vanish."""
    products = np.multiply.reduceat(factors, np.arange(0, factors.shape[1], FACTORS), axis=1)
    return np.asarray(np.log(products).sum(axis=1))
