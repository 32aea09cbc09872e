"""Standardised effect sizes with intervals from the noncentral t distribution."""

import math

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats.arrays import MIN_SPREAD, drop_and_count_missing, validate_level
from analysis.stats.results import Effect


def hedges_correction(df: float) -> float | None:
    """Hedges' correction J = 1 - 3 / (4 df - 1).

    Parameters
    ----------
    df : float
        Degrees of freedom.

    Returns
    -------
    float or None
        The factor; None if df <= 1, where it is 0.

    References
    ----------
    Hedges 1981, Distribution theory for Glass's estimator of effect size, eq. (7) approximated.

    Examples
    --------
    >>> round(hedges_correction(9), 4)
    0.9143
    """
    if df <= 1:
        return None
    return 1 - 3 / (4 * df - 1)


def noncentrality_interval(statistic: float, df: float, level: float = 0.95) -> tuple[float, float] | None:
    """Return the confidence interval of the noncentrality parameter of a t statistic on `df` degrees of freedom.

    The ends solve P(T <= t; df, nc) = 1 - (1 - level) / 2 for the lower and (1 - level) / 2 for the upper. The result
    is None if the distribution cannot be evaluated that far out.

    >>> low, high = noncentrality_interval(3.3108876734664063, 9)
    >>> round(low / math.sqrt(10), 6), round(high / math.sqrt(10), 6)
    (0.247535, 1.810886)
    """
    validate_level(level)
    tail = (1 - level) / 2
    low = _noncentrality(statistic, df, 1 - tail)
    high = _noncentrality(statistic, df, tail)
    return None if low is None or high is None else (low, high)


def cohen_dz(values: npt.ArrayLike, *, null: float, level: float = 0.95) -> Effect | None:
    """Compute Cohen's d_z, the standardised distance of a mean from its null, with Hedges' g.

    There is one value per unit; for a paired comparison it is the unit's difference. d_z = (mean - null) / s and g = J
    d_z, and the interval inverts the noncentral t: d = nc / sqrt(n). The result is None with fewer than two values or
    without variance.

    >>> effect = cohen_dz([0.6, 0.7, 0.5, 0.9, 0.4, 0.8, 0.75, 0.65, 0.55, 0.7], null=0.5)
    >>> round(effect.value, 4), round(effect.hedges_g, 4)
    (1.047, 0.9573)
    """
    observed, _ = drop_and_count_missing(values, "values")
    n = len(observed)
    if n < 2:
        return None
    sd = float(np.std(observed, ddof=1))
    if sd < MIN_SPREAD:
        return None
    return cohen_dz_from_t((float(np.mean(observed)) - null) / (sd / math.sqrt(n)), n, level=level)


def cohen_dz_from_t(statistic: float, n: int, *, level: float = 0.95) -> Effect:
    """Compute `cohen_dz` from a one-sample or paired t statistic of n units: d_z = t / sqrt(n).

    >>> round(cohen_dz_from_t(2.0, 16).value, 3)
    0.5
    """
    root = math.sqrt(n)
    value = statistic / root
    correction = hedges_correction(n - 1)
    bounds = noncentrality_interval(statistic, n - 1, level)
    return Effect(
        name="d_z",
        value=value,
        hedges_g=None if correction is None else value * correction,
        low=None if bounds is None else bounds[0] / root,
        high=None if bounds is None else bounds[1] / root,
        level=level,
    )


def cohen_d(x: npt.ArrayLike, y: npt.ArrayLike, *, level: float = 0.95) -> Effect | None:
    """Cohen's d of two independent groups, with Hedges' g and a noncentral t interval.

    Parameters
    ----------
    x, y : array_like, shapes (n_x,) and (n_y,)
        One value per unit.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Effect or None
        d = (mean x - mean y) / pooled s. None with fewer than two values in a group or without variance.

    Notes
    -----
    The interval assumes equal variances. Used for the differences between training conditions in Clark et al. 2021,
    section 4.

    Examples
    --------
    >>> round(cohen_d([1, 2, 3, 4], [0, 1, 2, 3]).value, 4)
    0.7746
    """
    first, _ = drop_and_count_missing(x, "x")
    second, _ = drop_and_count_missing(y, "y")
    n_x, n_y = len(first), len(second)
    if min(n_x, n_y) < 2:
        return None
    df = n_x + n_y - 2
    pooled = math.sqrt(((n_x - 1) * float(np.var(first, ddof=1)) + (n_y - 1) * float(np.var(second, ddof=1))) / df)
    if pooled < MIN_SPREAD:
        return None
    scale = math.sqrt(1 / n_x + 1 / n_y)
    value = (float(np.mean(first)) - float(np.mean(second))) / pooled
    correction = hedges_correction(df)
    bounds = noncentrality_interval(value / scale, df, level)
    return Effect(
        name="cohen_d",
        value=value,
        hedges_g=None if correction is None else value * correction,
        low=None if bounds is None else bounds[0] * scale,
        high=None if bounds is None else bounds[1] * scale,
        level=level,
    )


def _noncentrality(statistic: float, df: float, probability: float) -> float | None:
    # This is about the standard deviation of t around its noncentrality. Three of them cover any level in use.
    tail = 3 * math.sqrt(1 + statistic**2 / (2 * df))

    def excess(noncentrality: float) -> float:
        below = float(special.nctdtr(df, noncentrality, statistic))
        if math.isnan(below) and abs(noncentrality - statistic) > tail:
            # scipy returns nan at single points of the far tails, where the value is known.
            below = float(noncentrality < statistic)
        return below - probability

    # The distribution function falls as the noncentrality rises, so the root is bracketed by widening until the
    # signs differ; nan near the statistic itself ends the search.
    width = 2.0 + abs(statistic)
    for _ in range(12):
        low, high = statistic - width, statistic + width
        at_low, at_high = excess(low), excess(high)
        if math.isnan(at_low) or math.isnan(at_high):
            return None
        if at_low > 0 > at_high:
            try:
                return float(optimize.brentq(excess, low, high, xtol=1e-12, rtol=1e-13))
            except ValueError:  # nan within the bracket
                return None
        width *= 2
    return None
