"""Probability that a rating of x is above a rating of y."""

import math

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, clusters
from analysis.stats.arrays import (
    FloatArray,
    validate_level,
)
from analysis.stats.results import Estimate, Interval, ResultWarning
from analysis.stats.unpaired._samples import (
    BOUNDS,
    _common,
    _fewest,
    _nothing_of,
    _Spread,
    _TwoSamples,
)


def probability_of_superiority(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    x_annotators: npt.ArrayLike,
    y_annotators: npt.ArrayLike,
    x_prompts: npt.ArrayLike,
    y_prompts: npt.ArrayLike,
    systems: tuple[str, str] = ("x", "y"),
    level: float = 0.95,
) -> Estimate:
    """P(x > y) + P(x = y) / 2 for ratings of two systems that were not judged side by side, and the test of one half.

    Parameters
    ----------
    x, y : array_like, shapes (n_x,) and (n_y,)
        Ratings; NaN is missing. Only their order counts.
    x_annotators, y_annotators, x_prompts, y_prompts : array_like
        Labels of each rating's annotator and prompt. An annotator may rate both systems.
    systems : tuple[str, str], default ('x', 'y')
        Names of x and y for reasons.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The probability; `detail` has Cliff's delta. All of x above or below all of y: `separation`, no test. All
        ratings equal: `zero_variance`.

    Notes
    -----
    The estimate is the mean of the placements F_y(x_i), the share of y below x_i, ties count half (Brunner and Munzel
    2000). Annotators and prompts are clusters, as in `mean_difference`. With `separation` the interval is Clopper and
    Pearson's for as many independent pairs that all went one way as the fewest clusters of a system.

    Examples
    --------
    >>> x, y = [4, 5, 3, 4, 5, 4], [3, 3, 2, 4, 1, 3]
    >>> result = probability_of_superiority(x, y, x_annotators=list("aabbcc"), y_annotators=list("ddeeff"),
    ...                                    x_prompts=[1, 2, 3, 1, 2, 3], y_prompts=[1, 2, 3, 1, 2, 3])
    >>> round(result.estimate, 4), round(result.detail["cliff_delta"], 4)
    (0.8889, 0.7778)
    """
    validate_level(level)
    rows = _TwoSamples.from_arrays(x, y, x_annotators, y_annotators, x_prompts, y_prompts)
    estimand = "probability that a rating of x is above one of y, ties half (not side by side)"
    common = _common(rows, "rating.superiority_unpaired", estimand, {"null": 0.5, "level": level})
    warnings = (ResultWarning("not_side_by_side", "info"),)
    if min(rows.sizes) == 0:
        return Estimate(status="no_data", reason=_nothing_of(rows, systems), warnings=warnings, **common)
    first, second = rows.values[rows.is_x == 1], rows.values[rows.is_x == 0]
    # `_TwoSamples` keeps the ratings of x before those of y.
    placements = np.concatenate([_placements(first, second), _placements(second, first)])
    estimate = float(np.mean(placements[: len(first)]))
    common |= {"estimate": estimate, "warnings": warnings}
    common["detail"]["cliff_delta"] = 2 * estimate - 1
    if np.ptp(rows.values) == 0:
        return Estimate(status="zero_variance", reason="all ratings are equal", **common)
    if estimate in BOUNDS:
        return Estimate(
            status="separation",
            reason="all ratings of one system lie above all of the other",
            interval=_separated(estimate, _fewest(common["detail"]), level),
            **common,
        )
    if (edge := rows.too_few(systems)) is not None:
        return Estimate(status=edge[0], reason=edge[1], **common)
    spread = _Spread.from_rows(rows, placements)
    common["detail"] |= spread.detail()
    common["warnings"] = (*rows.warnings(), *warnings)
    return clusters.t_estimate(
        se=math.sqrt(spread.two_way.variance),
        df=spread.df,
        fewest_clusters=_fewest(common["detail"]),
        level=level,
        method="two_way_cv3_t",
        null=0.5,
        test_name="two_way_t",
        bounds=BOUNDS,
        **common,
    )


def _placements(values: FloatArray, others: FloatArray) -> FloatArray:
    """Return the share of the others below each value; ties count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return np.asarray(below / (2 * len(others)))


def _separated(estimate: float, n_pairs: int, level: float) -> Interval:
    low, high = basic.clopper_pearson_interval(n_pairs if estimate == 1 else 0, n_pairs, level)
    return Interval(level, low, high, "clopper_pearson_pairs")
