"""Differences between systems over the items that they share."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import label_codes, validate_level, validate_within_bounds, vector
from analysis.stats.leaderboard._rows import SCALE, ContrastTerm, ScoreRows, difference_variance
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.results import Estimate


def score_difference_in_points(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    x: object,
    y: object,
    level: float = 0.95,
    items_sampled: bool = True,
    analysis: str = "leaderboard.difference",
    unit: str = "annotator",
) -> Estimate:
    """Difference of two systems' scores, x - y, over the items with answers for both, with a t test of 0.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers in 0..1; NaN is missing.
    systems, items, annotators : array_like, shape (n_rows,)
        Labels of each row's system, item and annotator.
    x, y : object
        The two systems.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    items_sampled : bool, default True
        Whether the claim goes beyond the items of the study.
    analysis, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The difference. `n` counts annotators, `detail["n_items"]` the shared items. No test with fewer than six
        annotators.

    Notes
    -----
    Each item counts once, with the difference d_i of its mean answers. V_a leaves one annotator out of both systems
    (CV3). With `items_sampled` and five items or more V = max(V_a + V_i - V_ai, V_i): V_i is the variance of the paired
    d_i, V_ai that of the cells of one annotator and one item; the degrees of freedom are Satterthwaite's, as in
    `clusters.two_way_jackknife`. Otherwise V = V_a and t on G* - 1.

    Examples
    --------
    >>> answers, annotators = [1, 0.75, 0.5, 1, 0.5, 0.5, 0.25, 0.5], [1, 2, 3, 4, 1, 2, 3, 4]
    >>> result = score_difference_in_points(answers, ["a"] * 4 + ["b"] * 4, [1, 2, 3, 4] * 2, annotators, x="a", y="b")
    >>> result.estimate, result.detail["n_items"], result.test is None
    (37.5, 4, True)
    """
    validate_level(level)
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    labels = np.asarray(systems)
    label_codes(labels, "systems", len(array))
    item_codes, n_all = label_codes(np.asarray(items), "items", len(array))
    label_codes(np.asarray(annotators), "annotators", len(array))
    is_observed = ~np.isnan(array)
    is_x, is_y = is_observed & np.asarray(labels == x), is_observed & np.asarray(labels == y)
    shared = (np.bincount(item_codes[is_x], minlength=n_all) > 0) & (np.bincount(item_codes[is_y], minlength=n_all) > 0)
    is_used = (is_x | is_y) & shared[item_codes]
    rows = ScoreRows.from_arrays(array[is_used], item_codes[is_used], np.asarray(annotators)[is_used])
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"difference of scores in points, {x} - {y}, over shared items",
        "unit": unit,
        "n": rows.n_annotators,
        "n_clusters": rows.n_annotators,
        "n_rows": len(rows.values),
        "settings": {"x": str(x), "y": str(y), "level": level, "items_sampled": items_sampled},
    }
    detail: dict[str, Any] = {
        "n_items": rows.n_items,
        "n_items_dropped": len(np.unique(item_codes[is_x | is_y])) - rows.n_items,
    }
    if x == y:
        return Estimate(status="not_applicable", reason="a system does not differ from itself", detail=detail, **common)
    if rows.n_items == 0:
        return Estimate(status="no_data", reason="the two systems share no item", detail=detail, **common)
    first = is_x[is_used]
    arms = [ContrastTerm.from_rows(rows, first, 1.0), ContrastTerm.from_rows(rows, ~first, -1.0)]
    estimate = SCALE * sum(arm.sign * arm.mean for arm in arms)
    if rows.n_annotators == 1:
        return Estimate(
            status="n_lt_2", reason="one annotator has no spread", estimate=estimate, detail=detail, **common
        )
    spread = difference_variance(arms, items_sampled=items_sampled)
    if spread is None:
        reason = "all answers of one system come from one annotator"
        return Estimate(status="not_identified", reason=reason, estimate=estimate, detail=detail, **common)
    return clusters.t_estimate(
        estimate,
        SCALE * math.sqrt(spread.variance),
        spread.df,
        fewest_clusters=rows.n_annotators,
        level=level,
        method="cv3_t" if spread.by_item is None else "two_way_cv3_t",
        null=0.0,
        test_name="clustered_t" if spread.by_item is None else "two_way_t",
        bounds=(-SCALE, SCALE),
        reason="the difference does not vary, so the standard error is 0",
        warnings=clusters.cluster_warnings(np.bincount(rows.annotators), name=unit)
        if spread.by_item is None
        else clusters.two_way_warnings(rows.annotators, rows.items, unit=unit),
        detail={**detail, **spread.as_dict()},
        **{**common, "settings": {**common["settings"], "population": spread.population}},
    )


def differences_from_reference_in_points(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    reference: object,
    planned: Sequence[Any] | None = None,
    level: float = 0.95,
    items_sampled: bool = True,
) -> dict[Any, Estimate]:
    """Differences of all other systems from a reference, Holm-adjusted over the planned systems.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers in 0..1; NaN is missing.
    systems, items, annotators : array_like, shape (n_rows,)
        Labels of each row's system, item and annotator.
    reference : object
        The system to compare with, chosen before the data.
    planned : sequence[Any], optional
        Systems to be compared; all others in the data if None. One without answers still counts.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    items_sampled : bool, default True
        Whether the claim goes beyond the items of the study.

    Returns
    -------
    dict[Any, Estimate]
        One `score_difference_in_points` for each system.

    Examples
    --------
    >>> answers, annotators = [1, 0.75, 0.5, 1, 0.5, 0.5, 0.25, 0.5], [1, 2, 3, 4, 1, 2, 3, 4]
    >>> result = differences_from_reference_in_points(answers, ["a"] * 4 + ["b"] * 4, [1, 2, 3, 4] * 2, annotators, reference="b")
    >>> list(result), result["a"].estimate
    (['a'], 37.5)
    """
    names = np.unique(np.asarray(systems)).tolist() if planned is None else list(planned)
    others = [name for name in names if name != reference]
    differences = {
        str(other): score_difference_in_points(
            values, systems, items, annotators, x=other, y=reference, level=level, items_sampled=items_sampled
        )
        for other in others
    }
    after = adjust_pvalues_and_intervals_of_family(
        differences, Family("leaderboard.reference", tuple(differences)), star_scheme=None
    )
    return {other: after[str(other)] for other in others}
