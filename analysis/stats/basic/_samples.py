"""One sample, paired samples, and two independent samples."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import betting, effects
from analysis.stats.arrays import (
    MIN_SPREAD,
    drop_and_count_missing,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.basic._intervals import degenerate_mean_estimate, t_interval, t_test
from analysis.stats.basic._shape import CEILING_N, CEILING_SHARE, SKEW, SKEW_PER_N, most_frequent_value_share, skew
from analysis.stats.confidence import TCurve
from analysis.stats.results import Estimate, ResultWarning


def one_sample_t_test(
    values: npt.ArrayLike,
    *,
    null: float,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    mode: str = "recommended",
) -> Estimate:
    """Mean of one value per unit, and Student's two-sided t test that it equals `null`.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value per unit; NaN is missing.
    null : float
        Value of the null hypothesis.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them. Constant values get a betting interval.
    mode : {"recommended", "paper"}, default 'recommended'
        In mode "paper" the interval is always the t interval.

    Returns
    -------
    Estimate
        The mean with effect d_z = (mean - null) / s.

    Raises
    ------
    ValueError
        If a value is infinite or outside `bounds`, or `level` is not in 0..1.

    Notes
    -----
    t = (mean - null) / (s / sqrt(n)), with s on n - 1, df = n - 1.

    In recommended mode with `bounds`: if nine in ten values are equal and n < 100, the interval is a betting
    interval. The warning `ceiling` then has the t interval and the betting p-value in its detail. The warning
    `small_n_skew` appears if the absolute skewness exceeds 1.5 and skewness^2 / n is .075 or more: at any n up to 30,
    at n = 90 from 2.6.

    References
    ----------
    Ethayarajh and Jurafsky 2022 (the SPA paper), section 5.2, with null = .5.

    Examples
    --------
    >>> result = one_sample_t_test([0.6, 0.7, 0.5, 0.9, 0.4, 0.8, 0.75, 0.65, 0.55, 0.7], null=0.5)
    >>> round(result.estimate, 3), result.test.df, round(result.pvalue, 4)
    (0.655, 9, 0.0091)
    """
    validate_level(level)
    observed, n_missing = drop_and_count_missing(values, "values")
    if bounds is not None:
        validate_within_bounds(observed, bounds, "values")
    common: dict[str, Any] = {
        "analysis": "one_sample",
        "estimand": "mean",
        "unit": "annotator",
        "mode": mode,
        "n_rows": len(observed),
        "settings": {"null": null, "level": level, "bounds": bounds},
    }
    edge = degenerate_mean_estimate(observed, level=level, bounds=bounds, detail={"n_missing": n_missing}, **common)
    if edge is not None:
        return edge
    n = len(observed)
    mean, sd = float(np.mean(observed)), float(np.std(observed, ddof=1))
    se = sd / math.sqrt(n)
    interval = t_interval(mean, se, n - 1, level=level, bounds=bounds)
    warnings = []
    skewness = skew(observed)
    if abs(skewness) > SKEW and skewness**2 >= SKEW_PER_N * n:
        warnings.append(ResultWarning("small_n_skew", "warn", {"n": n, "skewness": skewness}))
    if (
        mode == "recommended"
        and bounds is not None
        and n < CEILING_N
        and most_frequent_value_share(observed) >= CEILING_SHARE
    ):
        t_ends = interval
        bet = betting.betting_interval(observed, level=level, bounds=bounds)
        interval = interval if bet is None else bet
        scaled = (observed - bounds[0]) / (bounds[1] - bounds[0])
        warnings.append(
            ResultWarning(
                "ceiling",
                "warn",
                {
                    "largest_share": most_frequent_value_share(observed),
                    "t_low": t_ends.low,
                    "t_high": t_ends.high,
                    "betting_pvalue": betting.betting_pvalue(scaled, (null - bounds[0]) / (bounds[1] - bounds[0])),
                },
            )
        )
    return Estimate(
        n=n,
        estimate=mean,
        interval=interval,
        test=t_test("one_sample_t", mean, null, se, n - 1),
        # The betting interval of a ceiling is another method than the test, so it has no common curve.
        _curve=TCurve(mean, se, n - 1, bounds, "one_sample_t")
        if interval.method == "t" and mode == "recommended"
        else None,
        effect=effects.cohen_dz(observed, null=null, level=level),
        warnings=tuple(warnings),
        detail={"n_missing": n_missing, "sd": sd, "se": se, "skewness": skewness},
        **common,
    )


def paired_t_test(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    level: float = 0.95,
    mode: str = "recommended",
) -> Estimate:
    """Estimate the mean of x - y over the units that have both values, and test whether it is 0 (paired t test).

    Row i of `x` and row i of `y` are the same unit. NaN is missing, and `detail["n_dropped"]` counts the units with a
    missing value. The test is that of rating differences in the SPA paper, section 6.1.

    >>> paired_t_test([3, 4, 5, 2], [2, 4, 3, None]).estimate
    1.0
    """
    first, second = vector(x, "x"), vector(y, "y")
    if first.shape != second.shape:
        raise ValueError(f"y: {len(second)} values where x has {len(first)}")
    is_complete = ~np.isnan(first) & ~np.isnan(second)
    result = one_sample_t_test(first[is_complete] - second[is_complete], null=0.0, level=level, mode=mode)
    result = result.labelled(analysis="paired", estimand="mean difference x - y")
    test = None if result.test is None else replace(result.test, name="paired_t")
    counts = {"n_complete": int(is_complete.sum()), "n_dropped": int((~is_complete).sum())}
    return replace(result, test=test, detail={**result.detail, **counts})


def welch_t_test(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """Difference of the means of two independent groups, and Welch's t test that it is 0.

    Parameters
    ----------
    x, y : array_like, shapes (n_x,) and (n_y,)
        One value per unit; NaN is missing.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The difference x - y; the effect is Cohen's d with the pooled s. Two constant groups: `zero_variance`.

    Notes
    -----
    The variances of the groups may differ.

    Examples
    --------
    >>> round(welch_t_test([0.6, 0.8, 0.4, 0.6], [0.4, 0.6, 0.4, 0.2]).estimate, 3)
    0.2
    """
    validate_level(level)
    first, missing_x = drop_and_count_missing(x, "x")
    second, missing_y = drop_and_count_missing(y, "y")
    n_x, n_y = len(first), len(second)
    common: dict[str, Any] = {
        "analysis": "welch",
        "estimand": "difference of means x - y",
        "unit": "annotator",
        "n": n_x + n_y,
        "n_rows": n_x + n_y,
        "settings": {"null": 0.0, "level": level},
        "detail": {"n_x": n_x, "n_y": n_y, "n_missing": missing_x + missing_y},
    }
    if min(n_x, n_y) == 0:
        return Estimate(status="no_data", reason="a group has no value", **common)
    difference = float(np.mean(first)) - float(np.mean(second))
    if min(n_x, n_y) == 1:
        return Estimate(status="n_lt_2", reason="a group has one value", estimate=difference, **common)
    part_x, part_y = float(np.var(first, ddof=1)) / n_x, float(np.var(second, ddof=1)) / n_y
    se = math.sqrt(part_x + part_y)
    if se < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="both groups are constant", estimate=difference, **common)
    df = (part_x + part_y) ** 2 / (part_x**2 / (n_x - 1) + part_y**2 / (n_y - 1))
    return Estimate(
        estimate=difference,
        interval=t_interval(difference, se, df, level=level, method="welch_t"),
        test=t_test("welch_t", difference, 0.0, se, df),
        effect=effects.cohen_d(first, second, level=level),
        **common,
    )
