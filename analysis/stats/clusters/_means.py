"""Means with standard errors over annotators, or over annotators and items."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, betting
from analysis.stats.arrays import (
    MIN_SPREAD,
    group_sizes,
    group_sums,
    label_codes_where,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.clusters._variances import _rows, cr1_variance, cv3_variance, two_way_variance
from analysis.stats.clusters._warnings import TOO_FEW_CLUSTERS, cluster_warnings, effective_n_clusters, two_way_warnings
from analysis.stats.results import Estimate


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
    return Estimate(
        estimate=estimate,
        interval=basic.t_interval(estimate, se, df, level=level, bounds=bounds, method=method),
        test=basic.t_test(test_name, estimate, null, se, df) if null is not None and tested else None,
        **common,
    )


def clustered_mean(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    null: float | None = None,
    method: str = "cv3",
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
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    method : {"cv3", "cr1"}, default 'cv3'
        Variance estimator.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them. If the variance is 0, the interval is a betting interval.
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
        If a value is infinite or outside `bounds`, or `level` or `method` is not allowed.

    Notes
    -----
    "cv3": V = (G - 1) / G sum_g (mean without g - mean)^2, df = max(1, G* - 1). "cr1": V = G / (G - 1) sum_g (sum of
    residuals in g)^2 / N^2, df = G - 1.

    The mean of the cluster means is a different estimand if the number of answers is related to the answers.

    References
    ----------
    MacKinnon, Nielsen and Webb 2023, Cluster-robust inference; G* after Kish.

    Examples
    --------
    >>> result = clustered_mean([1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3],
    ...                         method="cr1")
    >>> round(result.estimate, 4), round(result.detail["se"], 6), result.n
    (0.5833, 0.049431, 4)
    """
    validate_level(level)
    if method not in ("cv3", "cr1"):
        raise ValueError(f"method: {method!r} is neither cv3 nor cr1")
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
        "settings": {"null": null, "method": method, "level": level, "bounds": bounds},
    }
    if len(observed) == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    mean = float(np.mean(observed))
    if n_clusters == 1:
        return Estimate(status="n_lt_2", reason="one cluster has no spread", estimate=mean, **common)
    sums = group_sums(positions, observed, n_clusters)
    sizes = group_sizes(positions, n_clusters)
    effective = effective_n_clusters(sizes)
    if method == "cv3":
        df = max(1.0, effective - 1)
        variance = cv3_variance(sums, sizes)
    else:
        df = float(n_clusters - 1)
        variance = cr1_variance(observed - mean, positions)
    se = math.sqrt(variance)
    cluster_means = sums / sizes
    detail: dict[str, Any] = {"effective_clusters": effective, "n_missing": n_missing}
    if n_clusters < TOO_FEW_CLUSTERS:
        detail["cluster_means"] = cluster_means
    by_cluster = basic.one_sample_t_test(
        cluster_means,
        null=mean if null is None else null,
        level=level,
        bounds=bounds,
        analysis=f"{analysis}.cluster_means",
        estimand=f"mean of {unit} means",
        unit=unit,
        mode="paper" if mode == "paper" else "recommended",
    )
    if null is None or n_clusters < TOO_FEW_CLUSTERS:
        by_cluster = replace(by_cluster, test=None, effect=None)
    result = t_estimate(
        mean,
        se,
        df,
        fewest_clusters=n_clusters,
        level=level,
        method=f"{method}_t",
        null=null,
        bounds=bounds,
        reason="the clusters' means coincide, so the standard error is 0",
        sensitivity=(by_cluster,),
        warnings=cluster_warnings(sizes, name=unit),
        detail=detail,
        **common,
    )
    if result.status == "ok" or bounds is None:
        return result
    return replace(result, interval=betting.betting_interval(cluster_means, level=level, bounds=bounds))


def two_way_clustered_mean(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike,
    *,
    null: float | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    analysis: str = "two_way_mean",
    estimand: str = "label-weighted mean",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Mean over rows with annotators and items as crossed clusters, and the t test that it equals `null`.

    Use it for claims that go beyond the items of the study.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values; NaN is missing.
    annotators, items : array_like, shape (n_rows,)
        Labels of each row's annotator and item.
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them.
    analysis, estimand, unit, mode : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The mean. `n` counts annotators. With fewer than six annotators or items there is no test.

    Raises
    ------
    ValueError
        If a value is infinite or outside `bounds`, or `level` is not in 0..1.

    Notes
    -----
    V = V_a + V_i - V_ai, each term with its own G / (G - 1), and at least the larger of V_a and V_i. df = min(G_a,
    G_i) - 1. The maximum rule keeps the variance positive and the coverage at its level with five annotators.

    References
    ----------
    Cameron, Gelbach and Miller 2011, Robust inference with multiway clustering.

    Examples
    --------
    >>> result = two_way_clustered_mean([1, 0, 1, 1, 0, 1], [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1])
    >>> result.detail["df"], result.detail["is_maximum"]
    (1.0, True)
    """
    validate_level(level)
    array = vector(values, "values")
    is_observed = ~np.isnan(array)
    observed = array[is_observed]
    if bounds is not None:
        validate_within_bounds(observed, bounds, "values")
    annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
    item_codes, n_items = label_codes_where(items, "items", is_observed)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": n_annotators,
        "n_clusters": min(n_annotators, n_items) if len(observed) else 0,
        "n_rows": len(observed),
        "settings": {"null": null, "method": "two_way_cr1", "level": level, "bounds": bounds},
    }
    if len(observed) == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    mean = float(np.mean(observed))
    if min(n_annotators, n_items) == 1:
        return Estimate(status="n_lt_2", reason="one cluster has no spread", estimate=mean, **common)
    spread = two_way_variance(observed - mean, annotator_codes, item_codes)
    counts = {"n_annotators": n_annotators, "n_items": n_items, "n_missing": int((~is_observed).sum())}
    return t_estimate(
        mean,
        math.sqrt(spread.variance),
        float(min(n_annotators, n_items) - 1),
        fewest_clusters=min(n_annotators, n_items),
        level=level,
        method="two_way_t",
        null=null,
        test_name="two_way_t",
        bounds=bounds,
        warnings=two_way_warnings(annotator_codes, item_codes, unit=unit),
        detail={**spread.detail(), **counts},
        **common,
    )
