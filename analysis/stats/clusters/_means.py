"""Means with standard errors over annotators."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic
from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    group_sums,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.clusters._advice import betting_warning
from analysis.stats.clusters._skewness import combined_skewness, degrees_of_freedom, unexplained_skewness
from analysis.stats.clusters._variances import _rows, cv3_variance
from analysis.stats.clusters._warnings import (
    MAX_SKEWNESS,
    TOO_FEW_CLUSTERS,
    cluster_warnings,
    effective_n_clusters,
)
from analysis.stats.confidence import ConfidenceCurve, TCurve, betting_curve
from analysis.stats.results import Estimate, HypothesisTest
from analysis.stats.score_curve import ScoreCurve


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

    Parameters
    ----------
    estimate, se, df : float
        Estimate, its standard error, and the degrees of freedom.
    fewest_clusters : int or None
        Smallest number of clusters (annotators or items). With fewer than six there is no test. None means
        independent units, which are always tested.
    level : float
        Confidence level of the interval, between 0 and 1.
    method : str
        Name of the interval method that is stored.
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    test_name : str, default 'clustered_t'
        Name of the test that is stored.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them.
    reason : str, default 'the standard error is 0'
        Reason that is stored if the standard error is 0.
    **common : Any
        Other fields of the `Estimate`.

    Returns
    -------
    Estimate
        The interval and the test; `se` and `df` are added to its `detail`. A standard error of 0 gives the status
        `zero_variance` without interval and test.

    Examples
    --------
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
    under the tested mean (`score_curve.ScoreCurve`), with the `degrees_of_freedom` of the clusters' sums.

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
    observed, positions, n_clusters, n_missing = _rows(values, clusters, "clusters")
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
    """Return the two-sided test of `null` by a confidence curve.

    Parameters
    ----------
    curve : ConfidenceCurve
        The curve of the estimate.
    null : float
        Value of the null hypothesis.

    Returns
    -------
    HypothesisTest
        The test.

    Examples
    --------
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
