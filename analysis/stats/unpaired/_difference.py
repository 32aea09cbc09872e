"""Difference of the means of two systems."""

import math

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import (
    validate_level,
    validate_within_bounds,
)
from analysis.stats.results import Estimate, ResultWarning
from analysis.stats.unpaired._samples import _common, _fewest, _nothing_of, _Spread, _TwoSamples


def mean_difference(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    x_annotators: npt.ArrayLike,
    y_annotators: npt.ArrayLike,
    x_prompts: npt.ArrayLike,
    y_prompts: npt.ArrayLike,
    systems: tuple[str, str] = ("x", "y"),
    scale: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Mean of all ratings of x minus that of y, for systems that were not judged side by side, and the t test of 0.

    Parameters
    ----------
    x, y : array_like, shapes (n_x,) and (n_y,)
        Ratings; NaN is missing.
    x_annotators, y_annotators, x_prompts, y_prompts : array_like
        Labels of each rating's annotator and prompt.
    systems : tuple[str, str], default ('x', 'y')
        Names of x and y for reasons.
    scale : tuple[float, float], optional
        Ends of the scale. The interval is clipped to the possible range.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The difference. `n` counts annotators; `detail` counts annotators and prompts of x, of y and of both. No test
        with fewer than six annotators or prompts of either system.

    Notes
    -----
    V = V_a + V_p - V_ap, at least V_a and V_p; each term is a jackknife that leaves out one cluster. One t
    distribution with the degrees of freedom of Bell and McCaffrey gives p-value, interval and equivalence.

    Examples
    --------
    >>> x, y = [4, 5, 3, 4, 5, 4], [3, 3, 2, 4, 1, 3]
    >>> result = mean_difference(x, y, x_annotators=list("aabbcc"), y_annotators=list("ddeeff"),
    ...                         x_prompts=[1, 2, 3, 1, 2, 3], y_prompts=[1, 2, 3, 1, 2, 3], scale=(1, 5))
    >>> round(result.estimate, 4), result.n, result.detail["n_prompts_both"], result.detail["n_annotators_both"]
    (1.5, 6, 3, 0)
    """
    validate_level(level)
    rows = _TwoSamples.from_arrays(x, y, x_annotators, y_annotators, x_prompts, y_prompts)
    if scale is not None:
        validate_within_bounds(rows.values, scale, "x and y")
    reach = None if scale is None else scale[1] - scale[0]
    estimand = "mean of ratings of x minus mean of ratings of y (not side by side)"
    settings = {"null": 0.0, "level": level, "scale": scale}
    common = _common(rows, "rating.mean_difference_unpaired", estimand, settings)
    warnings = (
        ResultWarning("not_side_by_side", "info"),
        *((ResultWarning("interval_scale_assumed", "info"),) if scale else ()),
    )
    if min(rows.sizes) == 0:
        return Estimate(status="no_data", reason=_nothing_of(rows, systems), warnings=warnings, **common)
    mean_x, mean_y = (float(np.mean(rows.values[rows.is_x == side])) for side in (1, 0))
    estimate = mean_x - mean_y
    common["detail"] |= {"mean_x": mean_x, "mean_y": mean_y}
    if reach is not None:
        common["detail"]["share_of_range"] = estimate / reach
    if (edge := rows.too_few(systems)) is not None:
        return Estimate(status=edge[0], reason=edge[1], estimate=estimate, warnings=warnings, **common)
    spread = _Spread.from_rows(rows, rows.values)
    common["detail"] |= spread.detail()
    return clusters.t_estimate(
        estimate,
        math.sqrt(spread.two_way.variance),
        spread.df,
        fewest_clusters=_fewest(common["detail"]),
        level=level,
        method="two_way_cv3_t",
        null=0.0,
        test_name="two_way_t",
        bounds=None if reach is None else (-reach, reach),
        warnings=(*rows.warnings(), *warnings),
        **common,
    )
