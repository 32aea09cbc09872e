"""Proportions of a sample."""

import math
from typing import Any

from scipy import special, stats

from analysis.stats.arrays import (
    validate_level,
)
from analysis.stats.basic._intervals import two_sided_normal_quantile
from analysis.stats.results import Estimate, HypothesisTest, Interval


def proportion(
    successes: int,
    n: int,
    *,
    null: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """Share of independent units, with Wilson's interval and the exact binomial test.

    Parameters
    ----------
    successes, n : int
        Number of successes and of units.
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The share. `detail` has the Clopper-Pearson interval; base decisions on that one.

    Raises
    ------
    ValueError
        Unless 0 <= successes <= n.

    Notes
    -----
    Use it only if each unit gives one label. For several labels per annotator use `clusters`.

    Examples
    --------
    >>> interval = proportion(8, 10).interval
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.4902, 0.9433)
    """
    validate_level(level)
    if not 0 <= successes <= n:
        raise ValueError(f"successes: {successes} is not in 0..{n}")
    common: dict[str, Any] = {
        "analysis": "proportion",
        "estimand": "proportion",
        "unit": "annotator",
        "n": n,
        "n_rows": n,
        "settings": {"null": null, "level": level},
    }
    if n == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    low, high = wilson_interval(successes, n, level)
    exact_low, exact_high = clopper_pearson_interval(successes, n, level)
    test = None
    if null is not None:
        pvalue = float(stats.binomtest(successes, n, null).pvalue)
        test = HypothesisTest(name="exact_binomial", null=null, statistic=float(successes), pvalue=min(1.0, pvalue))
    return Estimate(
        estimate=successes / n,
        interval=Interval(level, low, high, "wilson"),
        test=test,
        detail={"successes": successes, "clopper_pearson": {"level": level, "low": exact_low, "high": exact_high}},
        **common,
    )


def wilson_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion.

    Parameters
    ----------
    successes, n : int
        Number of successes and of units.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    tuple[float, float]
        Lower and upper end.

    Notes
    -----
    (k + z2/2 -/+ z sqrt(k (n - k) / n + z2/4)) / (n + z2), with z2 = z z.

    Examples
    --------
    >>> tuple(round(end, 4) for end in wilson_interval(0, 10))
    (0.0, 0.2775)
    """
    z = two_sided_normal_quantile(level)
    centre = successes + z * z / 2
    half = z * math.sqrt(successes * (n - successes) / n + z * z / 4)
    low = 0.0 if successes == 0 else (centre - half) / (n + z * z)
    high = 1.0 if successes == n else (centre + half) / (n + z * z)
    return low, high


def clopper_pearson_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact (Clopper-Pearson) interval for a proportion: each binomial tail is (1 - level) / 2.

    Parameters
    ----------
    successes, n : int
        Number of successes and of units.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    tuple[float, float]
        Lower and upper end.

    Examples
    --------
    >>> tuple(round(end, 4) for end in clopper_pearson_interval(8, 10))
    (0.4439, 0.9748)
    """
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(special.betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(special.betaincinv(successes + 1, n - successes, 1 - tail))
    return low, high
