"""Means and regressions with clustered standard errors: the unit is the cluster (annotator or item), not the row.

The variance is CV3, the jackknife that leaves out one cluster, with at most G* - 1 degrees of freedom. G* = N^2 / sum(n_g^2)
is the effective number of clusters. No interval ignores clusters. The usual sandwich (CR1) is not offered: if a few
annotators gave most of the answers, its intervals can cover as little as 62 % of the time.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic
from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    group_sizes,
    group_sums,
    label_codes,
    label_codes_where,
    matrix,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.cluster_variances import (
    MAX_SKEWNESS,
    PEOPLE,
    PEOPLE_AND_PROMPTS,
    TOO_FEW_CLUSTERS,
    TOO_FEW_ITEMS,
    abs_skewness_of_clustered_mean,
    betting_warning,
    cluster_warnings,
    combine_two_way_variances,
    combined_skewness,
    cv3_variance,
    degrees_of_freedom,
    effective_n_clusters,
    observed_rows,
    pair_sums,
    too_few_prompts,
    two_way_jackknife,
    two_way_warnings,
    unexplained_skewness,
    validate_population,
)
from analysis.stats.confidence import ConfidenceCurve, ScoreCurve, TCurve, betting_curve
from analysis.stats.results import AnswersBehind, Estimate, HypothesisTest, Record, ResultWarning

# Means with standard errors over annotators.


def t_estimate(
    estimate: float,
    se: float,
    df: float,
    *,
    fewest_clusters: int | None,
    level: float,
    method: str,
    null: float | None = None,
    test_name: str = "clustered_t",
    bounds: tuple[float, float] | None = None,
    reason: str = "the standard error is 0",
    **common: Any,
) -> Estimate:
    """Build an estimate from a clustered standard error: the t interval and the t test of `null`.

    `fewest_clusters` is the smallest number of clusters (annotators or items): with fewer than six there is no test,
    and None means independent units, which are always tested. There is also no test if `null` is None. The interval is
    clipped to `bounds`, the ends of the scale. `method` and `test_name` are the names of the interval and of the test
    that are stored, and `common` has the other fields of the `Estimate`; `se` and `df` are added to its `detail`. A
    standard error of 0 gives the status `zero_variance` with this `reason`, without interval and test.

    >>> result = t_estimate(0.6, 0.05, 9, fewest_clusters=10, level=0.95, method="cv3_t", null=0.5, analysis="a",
    ...                    estimand="mean", unit="annotator", n=10)
    >>> round(result.interval.low, 4), round(result.pvalue, 4), result.detail["df"]
    (0.4869, 0.0766, 9)
    """
    common["detail"] = {**common.get("detail", {}), "se": se, "df": df}
    if se < MIN_SPREAD:
        return Estimate(status="zero_variance", reason=reason, estimate=estimate, **common)
    tested = null is not None and (fewest_clusters is None or fewest_clusters >= TOO_FEW_CLUSTERS)
    curve = TCurve(estimate, se, df, bounds, test_name=test_name, method=method)
    return Estimate(
        estimate=estimate,
        interval=curve.interval(level),
        test=confidence_curve_test(curve, null) if null is not None and tested else None,
        _curve=curve,
        **common,
    )


def clustered_mean(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    null: float | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    analysis: str = "clustered_mean",
    estimand: str = "label-weighted mean",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Mean over rows with a clustered standard error, and the t test that it equals `null`.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values; NaN is missing.
    clusters : array_like, shape (n_rows,)
        Label of each row's cluster, usually the annotator.
    weights : array_like, shape (n_rows,), optional
        Positive weights of the rows, for example 1 / (number of rows of the cluster). Equal if None.
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. If the answers hardly vary, or are more skewed than the ends of the scale explain, the interval and
        the test are those of `confidence.betting_curve` (`settings["method"]` is then "betting", otherwise "cv3").
    analysis, estimand, unit, mode : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The mean. `n` counts clusters. The sensitivity is the mean of the cluster means. With fewer than six clusters
        there is no test, and `detail["cluster_means"]` has the points.

    Raises
    ------
    ValueError
        If a value is infinite or outside `bounds`, or `level` is not allowed.

    Notes
    -----
    CV3: V = (G - 1) / G sum_g (mean without g - mean)^2, df = max(1, G* - 1). If the scale has bounds, the variance is that
    under the tested mean (`confidence.ScoreCurve`), with the `degrees_of_freedom` of the clusters' sums.

    The mean of the cluster means is a different estimand if the number of answers is related to the answers.

    References
    ----------
    MacKinnon, Nielsen and Webb 2023, Cluster-robust inference; G* after Kish.

    Examples
    --------
    >>> result = clustered_mean([1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3])
    >>> round(result.estimate, 4), round(result.detail["se"], 4), result.n
    (0.5833, 0.0517, 4)
    """
    validate_level(level)
    observed, positions, n_clusters, n_missing = observed_rows(values, clusters, "clusters")
    if bounds is not None:
        validate_within_bounds(observed, bounds, "values")
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": n_clusters,
        "n_clusters": n_clusters,
        "n_rows": len(observed),
        "settings": {"null": null, "method": "cv3", "level": level, "bounds": bounds},
    }
    if len(observed) == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    row_weights = weights_of_rows(weights, ~np.isnan(vector(values, "values")))
    mean = float(np.sum(row_weights * observed) / np.sum(row_weights))
    if n_clusters == 1:
        return Estimate(status="n_lt_2", reason="one cluster has no spread", estimate=mean, **common)
    sums = group_sums(positions, row_weights * observed, n_clusters)
    sizes = group_sums(positions, row_weights, n_clusters)
    residuals = sums - mean * sizes
    effective = effective_n_clusters(sizes)
    df = max(1.0, effective - 1) if bounds is None else float(degrees_of_freedom(residuals, sizes))
    se = math.sqrt(cv3_variance(sums, sizes))
    # Rounding can put a mean of weighted values outside the scale.
    cluster_means = sums / sizes if bounds is None else np.clip(sums / sizes, *bounds)
    detail: dict[str, Any] = {"effective_clusters": effective, "n_missing": n_missing}
    if n_clusters < TOO_FEW_CLUSTERS:
        detail["cluster_means"] = cluster_means
    by_cluster = basic.one_sample_t_test(
        cluster_means,
        null=mean if null is None else null,
        level=level,
        bounds=bounds,
        mode=mode,
    ).labelled(analysis=f"{analysis}.cluster_means", estimand=f"mean of {unit} means", unit=unit)
    if null is None or n_clusters < TOO_FEW_CLUSTERS:
        by_cluster = replace(by_cluster, test=None, effect=None)
    none = (0.0, 0.0)
    moments = (float(np.sum(residuals**2)), float(np.sum(residuals**3)))
    of_mean = float(combined_skewness(moments, none, none))
    skewness = float(unexplained_skewness(of_mean, se, mean, bounds))
    common |= {
        "sensitivity": (by_cluster,),
        "warnings": cluster_warnings(sizes, name=unit),
        "detail": {**detail, "se": se, "df": df, "skewness": abs(of_mean), "unexplained_skewness": skewness},
    }
    if bounds is None:
        reason = "the clusters' means coincide, so the standard error is 0"
        options: dict[str, Any] = {"level": level, "method": "cv3_t", "null": null, "reason": reason}
        return t_estimate(mean, se, df, fewest_clusters=n_clusters, **options, **common)
    curve: ConfidenceCurve
    if se >= MIN_SPREAD and skewness <= MAX_SKEWNESS:
        curve = ScoreCurve(mean, se, df, bounds, "clustered_score_t", "cv3_score")
    else:
        curve = betting_curve(observed, row_weights, positions, bounds=bounds)
        common["settings"] = {**common["settings"], "method": "betting"}
        why = "no spread" if se < MIN_SPREAD else "skewed"
        advice = betting_warning(why, skewness, curve.interval(level), bounds, [(unit, sums, sizes)])
        common["warnings"] = (*common["warnings"], advice)
    return Estimate(
        estimate=mean,
        interval=curve.interval(level),
        test=confidence_curve_test(curve, null) if null is not None and n_clusters >= TOO_FEW_CLUSTERS else None,
        _curve=curve,
        **common,
    )


def confidence_curve_test(curve: ConfidenceCurve, null: float) -> HypothesisTest:
    """Return the two-sided test of `null` by the confidence curve of an estimate.

    >>> round(confidence_curve_test(TCurve(0.6, 0.05, 9.0), 0.5).pvalue, 4)
    0.0766
    """
    return HypothesisTest(
        name=curve.test_name, null=null, statistic=curve.statistic(null), df=curve.df, pvalue=curve.pvalue(null)
    )


def weights_of_rows(weights: npt.ArrayLike | None, is_observed: BoolArray) -> FloatArray:
    """Return the weights of the observed rows, 1 if None. Raise ValueError for another length or no positive number.

    >>> weights_of_rows([2.0, 1.0, 0.5], np.array([True, False, True])).tolist()
    [2.0, 0.5]
    """
    if weights is None:
        return np.ones(int(is_observed.sum()))
    array = vector(weights, "weights")
    if array.shape != is_observed.shape:
        raise ValueError(f"weights: {len(array)} where values has {len(is_observed)}")
    used = array[is_observed]
    if not np.all(np.isfinite(used) & (used > 0)):
        raise ValueError("weights: a weight is not a positive number")
    return used


# Means with standard errors over annotators and items.


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
    is that under the tested mean (`confidence.ScoreCurve`), at least in proportion to that of independent answers, and each
    way has its `degrees_of_freedom`.
    Rates are measured in each cell of the grid in `tools/proofs/calibration/claims.py`: 6 to 60 people, 5 to 100 prompts, uneven
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


# The mean behind a claim about two systems, and the population that the claim is about.


def annotator_prompt_clustered_mean(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike,
    *,
    null: float | None,
    analysis: str,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    population: str = "",
    **labels: Any,
) -> Estimate:
    """Mean over rows, for people and prompts like these, or for people like these and exactly these prompts.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values; NaN is missing.
    annotators, prompts : array_like, shape (n_rows,)
        Labels of each row's annotator and prompt.
    null : float or None
        Value of the null hypothesis. There is no test if None.
    analysis : str
        Name of the analysis. That over people only, among the sensitivities, has ".by_annotator" after it.
    weights : array_like, shape (n_rows,), optional
        Positive weights of the rows. Equal if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale.
    population : {"", "people_and_prompts", "people"}, default ""
        What the mean is about. "people": exactly these prompts, however many they are. Otherwise prompts like these, unless
        they are fewer than five: no method is valid for so few.
    **labels : Any
        `estimand`, `unit` and `mode`, copied to the record.

    Returns
    -------
    Estimate
        `two_way_clustered_mean`, or `clustered_mean` with fewer than five prompts or for "people". `settings["population"]`
        says which ("people and prompts" or "people"); `detail["n_prompts"]` counts the prompts.

    Raises
    ------
    ValueError
        If `population` is another word.

    Examples
    --------
    >>> people, prompts = np.repeat(np.arange(12), 6), np.tile(np.arange(6), 12)
    >>> values = (people * prompts) % 5 > 1
    >>> result = annotator_prompt_clustered_mean(values, people, prompts, null=0.5, bounds=(0, 1), analysis="demo")
    >>> result.settings["population"], result.detail["n_prompts"], result.sensitivity[-1].analysis
    ('people and prompts', 6, 'demo.by_annotator')
    >>> options = {"null": 0.5, "bounds": (0, 1), "analysis": "demo"}
    >>> annotator_prompt_clustered_mean(values, people, prompts, population="people", **options).settings["population"]
    'people'
    """
    validate_population(population)
    options: dict[str, Any] = {"weights": weights, "null": null, "level": level, "bounds": bounds, **labels}
    _, n_prompts = label_codes_where(prompts, "prompts", ~np.isnan(vector(values, "values")))
    by_annotator = clustered_mean(values, annotators, analysis=f"{analysis}.by_annotator", **options)
    if n_prompts < TOO_FEW_ITEMS or population == "people":
        result = replace(by_annotator, analysis=analysis)
        is_about = PEOPLE
    else:
        result = two_way_clustered_mean(values, annotators, prompts, analysis=analysis, **options)
        result = replace(result, sensitivity=(*by_annotator.sensitivity, replace(by_annotator, sensitivity=())))
        is_about = PEOPLE_AND_PROMPTS
    return replace(
        result,
        settings={**result.settings, "population": is_about},
        detail={**result.detail, "n_prompts": n_prompts},
        _answers=answers_of_mean(values, annotators, None if is_about == PEOPLE else prompts, **options),
    )


def answers_of_mean(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None,
    *,
    weights: npt.ArrayLike | None = None,
    **options: Any,
) -> AnswersBehind:
    """Return the answers behind a mean over annotators, and items if given.

    Rows keep their weights when others are left out. If they are 1 / (number of rows of the annotator), they are computed
    again, so that every annotator still has the same weight. `options` are those of `clustered_mean`.

    >>> answers = answers_of_mean([1, 0, 1, 1], list("aabb"), None, weights=[0.5] * 4)
    >>> answers.influences()[1].tolist(), answers.refit(np.array([True, False, True, True])).estimate
    ([0.125, -0.125, 0.0, 0.0], 1.0)
    """
    array = vector(values, "values")
    is_observed = ~np.isnan(array)
    people = np.asarray(annotators)[is_observed]
    prompts = None if items is None else np.asarray(items)[is_observed]

    @cache
    def rows() -> tuple[FloatArray, FloatArray, IntArray, IntArray | None, FloatArray, bool]:
        """Return what only few estimates need: values, weights, codes of both, rows of the annotator, and whether people are equal."""
        codes, n_people = label_codes(people, "annotators", len(people))
        items = None if prompts is None else label_codes(prompts, "items", len(people))[0]
        row_weights, sizes = weights_of_rows(weights, is_observed), group_sizes(codes, n_people)[codes]
        are_equal = weights is not None and bool(np.allclose(row_weights * sizes, 1))
        return array[is_observed], row_weights, codes, items, sizes, are_equal

    def influences() -> tuple[FloatArray, FloatArray]:
        observed, row_weights, codes, _, sizes, are_people_equal = rows()
        parts = row_weights / np.sum(row_weights)
        shares = parts * (observed - parts @ observed)
        if not are_people_equal:
            return shares, shares
        means = group_sums(codes, row_weights * observed, int(codes.max()) + 1)[codes]
        return shares, np.where(sizes > 1, parts * (observed - means), shares)

    def refit(is_kept: BoolArray) -> Estimate:
        observed, row_weights, codes, items, _, are_people_equal = rows()
        kept, kept_codes = row_weights[is_kept], codes[is_kept]
        if are_people_equal:
            kept = 1 / np.bincount(kept_codes)[kept_codes]
        if items is None:
            return clustered_mean(observed[is_kept], kept_codes, weights=kept, **options)
        return two_way_clustered_mean(observed[is_kept], kept_codes, items[is_kept], weights=kept, **options)

    return AnswersBehind(people, prompts, influences, refit)


def mean_of_population(
    values: npt.ArrayLike, annotators: npt.ArrayLike, prompts: npt.ArrayLike, *, population: str, **options: Any
) -> Estimate:
    """Estimate the mean over rows of one system, without a test, for a table about this population.

    The arrays and `options` are arguments of `annotator_prompt_clustered_mean`. `population` is what the table is
    about: "", "people" or "people_and_prompts". The last is strict: with fewer than five prompts there is no interval,
    and the status is `not_identified` with the reason.

    >>> people, prompts = np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12)
    >>> found = mean_of_population((people * prompts) % 5, people, prompts, population="people_and_prompts", analysis="demo")
    >>> found.interval, found.status, found.settings["population"]
    (None, 'not_identified', 'people and prompts')
    """
    mean = annotator_prompt_clustered_mean(values, annotators, prompts, null=None, population=population, **options)
    if population == "people_and_prompts":
        return without_interval_if_too_few(mean, mean.detail["n_prompts"])
    return mean


def without_interval_if_too_few(estimate: Estimate, n_prompts: int, unit: str = "prompts") -> Estimate:
    """Return an estimate about people and prompts without its interval and test, if there are fewer than five prompts.

    >>> mean = Estimate(analysis="demo", estimand="mean", unit="annotator", n=9, estimate=0.4)
    >>> without_interval_if_too_few(mean, 3).reason
    '3 prompts are too few for an interval about prompts like these, which needs five'
    """
    if n_prompts >= TOO_FEW_ITEMS or estimate.estimate is None:
        return estimate
    return replace(
        estimate,
        status="not_identified",
        reason=too_few_prompts(n_prompts, unit),
        interval=None,
        test=None,
        _curve=None,
        settings={**estimate.settings, "population": PEOPLE_AND_PROMPTS},
    )


# Whether items that follow each other have similar answers, as those of one document have.


# With fewer items no dependence between neighbours can be seen.
FEWEST_ITEMS = 20
# A warning costs a look at the prompts; at most this share of studies with independent items gets one.
FALSE_ALARMS = 0.02
PERMUTATIONS = 1999
# Weights of the next item and those after it. The next item alone is the best test of an autoregression; the other row finds documents.
# If the correlation of neighbours is .2, the larger of both shows in 200 items an autoregression in .73 of studies, and documents of 4, 10
# and 20 items in .81, .87 and .82. The next item alone does so in .78, .75, .69 and .63, the other row in .59, .81, .88 and .83. No test
# finds the autoregression in more than .79, the power of the likelihood ratio with a known mean and variance.
WEIGHTS = ((1.0, 0.0, 0.0, 0.0), (1.0, 0.6, 0.4, 0.2))


@dataclass(frozen=True, slots=True)
class NeighbourDependence(Record):
    """The dependence between neighbouring items.

    `correlation` is that of each item with the next; `pvalue` tests that the order of the items says nothing. Both are None
    if they are undefined, with a `reason`.
    """

    n_items: int
    correlation: float | None = None
    pvalue: float | None = None
    reason: str = ""

    @property
    def is_found(self) -> bool:
        """Return whether neighbours depend on each other, with few false alarms."""
        return self.pvalue is not None and self.pvalue <= FALSE_ALARMS


def neighbour_dependence(contributions: npt.ArrayLike, *, rng: np.random.Generator) -> NeighbourDependence:
    """Test whether neighbouring items contribute alike to one estimate or several.

    `contributions`, of shape (n_items, n_estimates), are the sums of the residuals of each item, such as those of
    answers from their mean, in the order of the items. The statistic is the larger of two sums of products with the items
    that follow, each in standard deviations over the permutations; the result has the correlation of neighbours over all
    estimates and the one-sided p-value. All permutations of the items are equally likely if their order says nothing, whatever the distribution of the
    answers, so the test is exact (Wald and Wolfowitz 1943, An exact test for randomness in the non-parametric case
    based on serial correlation). It permutes the items of all estimates together, because estimates share their
    answers.

    >>> documents = np.repeat(np.random.default_rng(0).normal(size=12), 5)
    >>> found = neighbour_dependence(documents[:, None], rng=np.random.default_rng(1))
    >>> round(found.correlation, 2), found.pvalue, found.is_found
    (0.88, 0.0005, True)
    """
    values = matrix(contributions, "contributions")
    values = values - values.mean(axis=0) if len(values) else values
    n_items, size = len(values), float(np.sum(values**2))
    if n_items < FEWEST_ITEMS:
        return NeighbourDependence(n_items, reason=f"fewer than {FEWEST_ITEMS} items")
    if size < MIN_SPREAD:
        return NeighbourDependence(n_items, reason="the items do not differ")
    sums = [_neighbour_sums(values), *(_neighbour_sums(values[rng.permutation(n_items)]) for _ in range(PERMUTATIONS))]
    # The observed order is one of the permutations, so that all of them are standardised alike.
    spread = np.maximum(np.std(sums, axis=0), 1e-12 * size)
    largest = np.max((sums - np.mean(sums, axis=0)) / spread, axis=1)
    # Equal up to rounding counts as equal.
    n_exceeding = int(np.sum(largest[1:] >= largest[0] - 1e-9))
    return NeighbourDependence(
        n_items, float(np.sum(values[:-1] * values[1:])) / size, (1 + n_exceeding) / (1 + PERMUTATIONS)
    )


def _neighbour_sums(values: FloatArray) -> FloatArray:
    distances = range(1, len(WEIGHTS[0]) + 1)
    return np.array(WEIGHTS) @ [float(np.vdot(values[:-distance], values[distance:])) for distance in distances]
