"""Intervals and tests from an estimate and its standard error, and the edge cases without a test."""

from typing import Any

import numpy as np
from scipy import special

from analysis.stats import betting
from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    validate_level,
)
from analysis.stats.results import Estimate, HypothesisTest, Interval


def t_interval(
    estimate: float,
    se: float,
    df: float,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    method: str = "t",
) -> Interval:
    """Confidence interval from the t distribution: estimate -/+ t(df) se.

    Parameters
    ----------
    estimate, se, df : float
        Estimate, its standard error, and the degrees of freedom.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them.
    method : str, default 't'
        Name of the method that is stored.

    Returns
    -------
    Interval
        The interval, clipped to `bounds` if they are given.

    Examples
    --------
    >>> interval = t_interval(0.9, 0.1, 9, bounds=(0, 1))
    >>> round(interval.low, 4), interval.high, interval.clipped
    (0.6738, 1.0, True)
    """
    validate_level(level)
    half = float(special.stdtrit(df, (1 + level) / 2)) * se
    low, high = estimate - half, estimate + half
    if bounds is None:
        return Interval(level, low, high, method)
    clipped = low < bounds[0] or high > bounds[1]
    return Interval(level, max(float(bounds[0]), low), min(float(bounds[1]), high), method, clipped)


def t_test(name: str, estimate: float, null: float, se: float, df: float) -> HypothesisTest:
    """Two-sided t test of `estimate` against `null`: (estimate - null) / se with df degrees of freedom.

    Parameters
    ----------
    name : str
        Name of the test that is stored.
    estimate, null, se, df : float
        Estimate, null hypothesis, standard error, and degrees of freedom.

    Returns
    -------
    HypothesisTest
        The test.

    Examples
    --------
    >>> round(t_test("one_sample_t", 0.6, 0.5, 0.05, 10).pvalue, 4)
    0.0734
    """
    statistic = (estimate - null) / se
    pvalue = min(1.0, 2 * float(special.stdtr(df, -abs(statistic))))
    return HypothesisTest(name=name, null=null, statistic=statistic, df=df, pvalue=pvalue)


def wald_estimate(estimate: float, se: float, *, null: float | None, level: float, **common: Any) -> Estimate:
    """Build an estimate with the large-sample interval, estimate -/+ z se, and the z test that it equals `null`.

    There is no test if `null` is None. The standard error is added to `detail` as `se`, and a standard error of 0 gives
    the status `zero_variance`. `common` has the other fields of the `Estimate`.

    >>> result = wald_estimate(0.5, 0.2, null=0.0, level=0.95, analysis="a", estimand="log odds", unit="label", n=100)
    >>> round(result.interval.low, 3), round(result.pvalue, 4)
    (0.108, 0.0124)
    """
    common["detail"] = {**common.get("detail", {}), "se": se}
    if se < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="the standard error is 0", estimate=estimate, **common)
    half = two_sided_normal_quantile(level) * se
    test = None
    if null is not None:
        statistic = (estimate - null) / se
        pvalue = min(1.0, 2 * float(special.ndtr(-abs(statistic))))
        test = HypothesisTest(name="wald_z", null=null, statistic=statistic, pvalue=pvalue)
    return Estimate(
        estimate=estimate, interval=Interval(level, estimate - half, estimate + half, "wald"), test=test, **common
    )


def two_sided_normal_quantile(level: float) -> float:
    """Two-sided quantile of the standard normal distribution.

    Parameters
    ----------
    level : float
        Probability of the interval -z..z.

    Returns
    -------
    float
        The quantile z.

    Examples
    --------
    >>> round(two_sided_normal_quantile(0.95), 6)
    1.959964
    """
    return float(special.ndtri((1 + level) / 2))


def degenerate_mean_estimate(
    values: FloatArray,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    **common: Any,
) -> Estimate | None:
    """Return the estimate of a mean in an edge case: no value, one value, or no variance.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Values, without missing ones.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. If the values are constant, the interval is a betting interval.
    **common : Any
        Other fields of the `Estimate`.

    Returns
    -------
    Estimate or None
        The estimate with its status, or None if the values are no edge case.

    Examples
    --------
    >>> degenerate_mean_estimate(np.array([0.7, 0.7]), analysis="a", estimand="mean", unit="annotator", bounds=(0, 1)).status
    'zero_variance'
    >>> degenerate_mean_estimate(np.array([0.6, 0.7]), analysis="a", estimand="mean", unit="annotator") is None
    True
    """
    n = len(values)
    if n == 0:
        return Estimate(n=0, status="no_data", reason="no value to analyse", **common)
    if n == 1:
        return Estimate(n=1, status="n_lt_2", reason="one value has no spread", estimate=float(values[0]), **common)
    if float(np.std(values, ddof=1)) < MIN_SPREAD:
        return Estimate(
            n=n,
            status="zero_variance",
            reason="all values are equal",
            estimate=float(values[0]),
            interval=None if bounds is None else betting.betting_interval(values, level=level, bounds=bounds),
            **common,
        )
    return None
