"""Means with standard errors over annotators and items."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    MIN_SPREAD,
    group_sums,
    label_codes_where,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.clusters._advice import betting_warning
from analysis.stats.clusters._means import confidence_curve_test, weights_of_rows
from analysis.stats.clusters._skewness import combined_skewness, degrees_of_freedom, unexplained_skewness
from analysis.stats.clusters._variances import combine_two_way_variances, pair_sums, two_way_jackknife
from analysis.stats.clusters._warnings import (
    MAX_SKEWNESS,
    TOO_FEW_CLUSTERS,
    TOO_FEW_ITEMS,
    abs_skewness_of_clustered_mean,
    two_way_warnings,
)
from analysis.stats.confidence import ConfidenceCurve, TCurve, betting_curve
from analysis.stats.results import Estimate, ResultWarning
from analysis.stats.score_curve import ScoreCurve


def two_way_clustered_mean(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    null: float | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    analysis: str = "two_way_mean",
    estimand: str = "label-weighted mean",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Mean over rows for annotators and items like these, and the test that it equals `null`.

    Use it for claims that go beyond the items of the study. One method gives the p-value, the interval and the
    equivalence test.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values; NaN is missing.
    annotators, items : array_like, shape (n_rows,)
        Labels of each row's annotator and item.
    weights : array_like, shape (n_rows,), optional
        Positive weights of the rows, for example 1 / (number of rows of the annotator). Equal if None.
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale.
    analysis, estimand, unit, mode : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The mean. `n` counts annotators. With fewer than six annotators or five items there is no test. If the answers
        hardly vary, or their sums per annotator or item are more skewed than the ends of the scale explain, or annotators
        or items are too few, the interval and the test are those of `confidence.betting_curve`, if the scale has bounds
        (`settings["method"] == "betting"`; warning `betting_instead_of_t`). Without bounds, skewed answers get the
        warning `small_n_skew`.

    Raises
    ------
    ValueError
        If a value is infinite or outside `bounds`, a weight is not positive, or `level` is not in 0..1.

    Notes
    -----
    The t distribution with the variance and the degrees of freedom of `two_way_jackknife`. If the scale has bounds, the variance
    is that under the tested mean (`score_curve.ScoreCurve`), at least in proportion to that of independent answers, and each
    way has its `degrees_of_freedom`.
    Rates are measured in each cell of the grid in `tests/calibration/claims.py`: 6 to 60 people, 5 to 100 prompts, uneven
    activity, large effects of prompts, ceilings.

    Examples
    --------
    >>> people, prompts = np.repeat(np.arange(8), 6), np.tile(np.arange(6), 8)
    >>> result = two_way_clustered_mean((people + prompts) % 3 > 0, people, prompts, null=0.5, bounds=(0, 1))
    >>> round(result.estimate, 3), result.settings["method"], result.test.name
    (0.667, 'two_way_cv3', 'two_way_score_t')
    """
    validate_level(level)
    array = vector(values, "values")
    is_observed = ~np.isnan(array)
    observed = array[is_observed]
    if bounds is not None:
        validate_within_bounds(observed, bounds, "values")
    annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
    item_codes, n_items = label_codes_where(items, "items", is_observed)
    row_weights = weights_of_rows(weights, is_observed)
    settings = {"null": null, "method": "two_way_cv3", "level": level, "bounds": bounds}
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": n_annotators,
        "n_clusters": min(n_annotators, n_items) if len(observed) else 0,
        "n_rows": len(observed),
    }
    if len(observed) == 0:
        return Estimate(status="no_data", reason="no value to analyse", settings=settings, **common)
    mean = float(np.sum(row_weights * observed) / np.sum(row_weights))
    if min(n_annotators, n_items) == 1:
        return Estimate(status="n_lt_2", reason="one cluster has no spread", estimate=mean, settings=settings, **common)
    spread, df = two_way_jackknife(observed, row_weights, annotator_codes, item_codes)
    se = math.sqrt(spread.variance)
    total = float(np.sum(row_weights))
    influences = row_weights * (observed - mean) / total
    sums = (
        group_sums(annotator_codes, influences, n_annotators),
        group_sums(item_codes, influences, n_items),
        pair_sums(influences, annotator_codes, item_codes),
    )
    of_annotators, of_items, of_pairs = ((np.sum(part**2), np.sum(part**3)) for part in sums)
    of_mean = combined_skewness(of_annotators, of_items, of_pairs)
    skewness = float(unexplained_skewness(of_mean, se, mean, bounds))
    largest = [abs_skewness_of_clustered_mean(influences, labels) for labels in (annotator_codes, item_codes)]
    if bounds is not None:
        sizes = (
            group_sums(annotator_codes, row_weights, n_annotators),
            group_sums(item_codes, row_weights, n_items),
        )
        dfs = (float(degrees_of_freedom(sums[0], sizes[0])), float(degrees_of_freedom(sums[1], sizes[1])))
        by_pair = spread.annotators + spread.items - spread.combined
        _, df = combine_two_way_variances((spread.annotators, spread.items), by_pair, dfs)
    has_enough = n_annotators >= TOO_FEW_CLUSTERS and n_items >= TOO_FEW_ITEMS
    warnings = two_way_warnings(annotator_codes, item_codes, unit=unit)
    common["detail"] = {
        **spread.detail(),
        "n_annotators": n_annotators,
        "n_items": n_items,
        "n_missing": int((~is_observed).sum()),
        "se": se,
        "df": df,
        "skewness": max(largest),
        "unexplained_skewness": skewness,
    }
    is_t_valid = se >= MIN_SPREAD and skewness <= MAX_SKEWNESS and has_enough
    if bounds is None and se < MIN_SPREAD:
        return Estimate(
            status="zero_variance",
            reason="the standard error is 0",
            estimate=mean,
            warnings=warnings,
            settings=settings,
            **common,
        )
    curve: ConfidenceCurve
    if bounds is None:
        curve = TCurve(mean, se, df, test_name="two_way_t", method="two_way_cv3_t")
        if skewness > MAX_SKEWNESS:
            detail = {"skewness": skewness, "cluster": unit if largest[0] >= largest[1] else "item"}
            warnings = (*warnings, ResultWarning("small_n_skew", "warn", detail))
    elif is_t_valid:
        least = math.sqrt(float(np.sum(row_weights * (observed - mean) ** 2) * np.sum(row_weights**2)) / total**3)
        curve = ScoreCurve(mean, se, df, bounds, "two_way_score_t", "two_way_cv3_score", least)
    else:
        curve = betting_curve(observed, row_weights, annotator_codes, item_codes, bounds=bounds)
        why = "no spread" if se < MIN_SPREAD else "skewed" if skewness > MAX_SKEWNESS else "few clusters"
        ways = [
            (name, group_sums(codes, row_weights * observed, len(size)), size)
            for name, codes, size in zip((unit, "item"), (annotator_codes, item_codes), sizes, strict=True)
        ]
        warnings = (*warnings, betting_warning(why, skewness, curve.interval(level), bounds, ways))
        settings["method"] = "betting"
    return Estimate(
        estimate=mean,
        interval=curve.interval(level),
        test=confidence_curve_test(curve, null) if null is not None and has_enough else None,
        warnings=warnings,
        settings=settings,
        _curve=curve,
        **common,
    )
