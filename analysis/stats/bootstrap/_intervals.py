"""Intervals from resampled estimates."""

from typing import Any

import numpy as np
from scipy import special

from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    validate_level,
)
from analysis.stats.results import Estimate, Interval, ResultWarning


def percentile_interval(draws: FloatArray, level: float = 0.95) -> Interval | None:
    """Percentile bootstrap interval: numpy's linear quantiles of the draws.

    Parameters
    ----------
    draws : ndarray of float, shape (resamples,)
        Resampled estimates.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Interval or None
        The interval; None if a draw is undefined or there are none.

    References
    ----------
    Genie (Khashabi et al. 2021), section 4, for a leaderboard's means.

    Examples
    --------
    >>> interval = percentile_interval(np.arange(101.0))
    >>> round(interval.low, 6), interval.high
    (2.5, 97.5)
    """
    validate_level(level)
    if len(draws) == 0 or not np.isfinite(draws).all():
        return None
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(level, float(low), float(high), "percentile")


def estimate_with_percentile_interval(draws: FloatArray, *, level: float, **estimate_fields: Any) -> Estimate:
    """Build an estimate with the percentile interval of its resamples.

    Parameters
    ----------
    draws : ndarray of float, shape (resamples,)
        Resampled estimates; NaN is undefined.
    level : float
        Confidence level of the interval, between 0 and 1.
    **estimate_fields : Any
        The other fields of the estimate.

    Returns
    -------
    Estimate
        The estimate. Undefined resamples are left out with the warning `undefined_resamples`, because leaving out many
        narrows the interval. If half are undefined, there is no interval. If all are equal: `zero_variance`.

    Examples
    --------
    >>> common = {"analysis": "a", "estimand": "share", "unit": "comment", "n": 9, "estimate": 0.5}
    >>> estimate_with_percentile_interval(np.array([0.5, 0.5, np.nan]), level=0.95, **common).status
    'zero_variance'
    """
    defined = draws[np.isfinite(draws)]
    warnings: tuple[ResultWarning, ...] = estimate_fields.pop("warnings", ())
    if len(defined) < len(draws):
        warnings = (*warnings, ResultWarning("undefined_resamples", "warn", {"share": 1 - len(defined) / len(draws)}))
    if len(defined) and float(np.ptp(defined)) < MIN_SPREAD:
        reason = "all resamples give the same value"
        return Estimate(status="zero_variance", reason=reason, warnings=warnings, **estimate_fields)
    interval = percentile_interval(defined, level) if len(defined) > len(draws) / 2 else None
    return Estimate(interval=interval, warnings=warnings, **estimate_fields)


def bca_interval(estimate: float, draws: FloatArray, jackknife: FloatArray, level: float = 0.95) -> Interval | None:
    """Compute the bias-corrected and accelerated (BCa) bootstrap interval of an estimate.

    `draws` has the resampled estimates, and `jackknife` the estimate without each unit in turn. With z0 the normal
    quantile of the share of draws below the estimate (ties count half), d = mean(jackknife) - jackknife and a =
    sum(d^3) / (6 sum(d^2)^1.5), the ends are the quantiles Phi(z0 + (z0 + z) / (1 - a (z0 + z))) (Efron 1987, Better
    bootstrap confidence intervals). The result is None if the interval is undefined (constant data).

    >>> bca_interval(1.0, np.ones(10), np.ones(5)) is None
    True
    """
    validate_level(level)
    if len(draws) == 0 or not np.isfinite(draws).all() or not np.isfinite(jackknife).all():
        return None
    share = (float(np.mean(draws < estimate)) + float(np.mean(draws <= estimate))) / 2
    distance = np.mean(jackknife) - jackknife
    spread = float(np.sum(distance**2))
    if not 0 < share < 1 or spread < MIN_SPREAD**2:
        return None
    bias = float(special.ndtri(share))
    acceleration = float(np.sum(distance**3)) / (6 * spread**1.5)
    ends = []
    for probability in ((1 - level) / 2, (1 + level) / 2):
        z = bias + float(special.ndtri(probability))
        shrink = 1 - acceleration * z
        if shrink <= 0:
            return None
        ends.append(float(special.ndtr(bias + z / shrink)))
    low, high = np.quantile(draws, ends)
    return Interval(level, float(low), float(high), "bca")


def leave_one_out_ratios(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Compute the ratio sum(sums) / sum(counts) without each unit in turn.

    `sums` and `counts` are each unit's part of the numerator and of the denominator.

    >>> leave_one_out_ratios(np.array([1.0, 2.0, 6.0]), np.ones(3)).tolist()
    [4.0, 3.5, 1.5]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((np.sum(sums) - sums) / (np.sum(counts) - counts))


def bootstrap_ratio_interval(
    estimate: float, draws: FloatArray, sums: FloatArray, counts: FloatArray, *, level: float
) -> Interval | None:
    """Compute the bootstrap interval of one ratio.

    The result is the BCa interval of the resampled ratios, or the percentile interval if BCa is undefined. It is None
    if the draws are undefined or equal. `sums` and `counts` are each unit's part of the numerator and of the
    denominator, for the jackknife.

    >>> bootstrap_ratio_interval(1.0, np.ones(9), np.ones(3), np.ones(3), level=0.95) is None
    True
    """
    is_counted = counts > 0
    interval = bca_interval(estimate, draws, leave_one_out_ratios(sums[is_counted], counts[is_counted]), level)
    if interval is None:
        interval = percentile_interval(draws, level)
    if interval is None or interval.high - interval.low < MIN_SPREAD:
        return None
    return interval
