"""Mean human score of many outputs, a few judged by people and all scored by a metric or a model.

Prediction-powered inference takes the metric's mean over all outputs and corrects it by the metric's errors on
the judged outputs. It is unbiased for any metric, and narrower with a good metric. The judged outputs must be a
random sample of all. Report it next to the human-only score, not instead of it.

References: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Prediction-powered inference; the weight after
Angelopoulos, Duchi and Zrnic 2023, PPI++.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, bootstrap, clusters
from analysis.stats.arrays import MIN_SPREAD, FloatArray, label_codes_where, validate_level, vector
from analysis.stats.results import Estimate, ResultWarning


def prediction_powered_mean(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    metric_unjudged: npt.ArrayLike,
    *,
    null: float | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    analysis: str = "prediction_powered.mean",
    unit: str = "output",
) -> Estimate:
    """Mean human score of all outputs, from n outputs judged by people and N scored by the metric alone.

    Parameters
    ----------
    human, metric : array_like, shape (n,)
        Human and metric scores of the judged outputs. An output without a human score is left out.
    metric_unjudged : array_like, shape (N,)
        Metric scores of the other outputs.
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them.
    analysis, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The mean. The sensitivity is the human-only mean. `detail["se_ratio"]` compares the standard errors. A
        constant metric: `not_identified`.

    Raises
    ------
    ValueError
        If a judged output has no metric score, or the lengths differ.

    Notes
    -----
    With l = cov(y, f) / (var(f) (1 + n / N)), the covariance over the judged and var(f) pooled over all (ddof = 1):
    theta = mean(y) - l (mean(f judged) - mean(f unjudged)), SE^2 = var(y - l f) / n + l^2 var(f unjudged) / N, and t
    on n - 1 (a normal reference covers .926 at n = 20).

    Examples
    --------
    >>> judged, scores = [0.2, 0.5, 0.9, 0.4, 0.7, 0.6], [0.3, 0.5, 0.8, 0.3, 0.6, 0.7]
    >>> result = prediction_powered_mean(judged, scores, [0.4, 0.6, 0.5, 0.7, 0.3, 0.8, 0.9, 0.2, 0.5, 0.6])
    >>> round(result.estimate, 4), round(result.detail["se"], 4), round(result.detail["weight"], 4)
    (0.5612, 0.0698, 0.6745)
    """
    validate_level(level)
    y, f, rest, n_missing = _judged(human, metric, metric_unjudged)
    n = len(y)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "mean human score of all outputs",
        "unit": unit,
        "n": n,
        "n_rows": n + len(rest),
        "settings": {"null": null, "level": level, "bounds": bounds},
    }
    detail: dict[str, Any] = {"n_judged": n, "n_unjudged": len(rest), "n_missing": n_missing}
    alone = basic.one_sample_t_test(
        y,
        null=0.0 if null is None else null,
        level=level,
        bounds=bounds,
        analysis=f"{analysis}.human_only",
        estimand="mean human score of the judged outputs",
        unit=unit,
    )
    alone = alone if null is not None else replace(alone, test=None, effect=None)
    edge = _undefined(n, f, rest, unit="output")
    if edge is not None:
        return Estimate(status=edge[0], reason=edge[1], sensitivity=(alone,), detail=detail, **common)
    weight = _weight(y, f, rest)
    estimate = float(np.mean(y)) - weight * (float(np.mean(f)) - float(np.mean(rest)))
    variance = float(np.var(y - weight * f, ddof=1)) / n + weight**2 * float(np.var(rest, ddof=1)) / len(rest)
    se = math.sqrt(variance)
    own = float(np.std(y, ddof=1)) / math.sqrt(n)
    detail |= {"weight": weight, "correlation": _correlation(y, f), "se_ratio": _ratio(se, own)}
    return clusters.t_estimate(
        estimate,
        se,
        n - 1,
        fewest_clusters=None,
        level=level,
        method="t",
        null=null,
        test_name="prediction_powered_t",
        bounds=bounds,
        sensitivity=(alone,),
        detail=detail,
        **common,
    )


def clustered_prediction_powered_mean(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    annotators: npt.ArrayLike,
    metric_unjudged: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    null: float | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "prediction_powered.clustered_mean",
    unit: str = "annotator",
) -> Estimate:
    """Mean human score of all outputs, for judgements that share annotators.

    Parameters
    ----------
    human, metric, annotators : array_like, shape (n_rows,)
        Human score, metric score of its output, and annotator of each judgement.
    metric_unjudged : array_like, shape (N,)
        Metric scores of the other outputs.
    rng : numpy.random.Generator
        Source of the random draws.
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them.
    resamples : int, default bootstrap.RESAMPLES
        Number of resamples.
    analysis, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The mean, as in `prediction_powered_mean`. `n` counts annotators. No test with fewer than six.

    Notes
    -----
    Annotators are resampled with all their rows, with a new weight in each resample. The unjudged part l^2 var(f
    unjudged) / N is added. SE is the bootstrap's standard deviation times sqrt(G / (G - 1)), with t on G* - 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, quality = np.repeat(np.arange(25), 4), rng.normal(0.6, 0.2, 1100)
    >>> human = quality[:100] + rng.normal(0, 0.1, 25)[annotators] + rng.normal(0, 0.1, 100)
    >>> result = clustered_prediction_powered_mean(human, quality[:100], annotators, quality[100:], rng=rng, resamples=999)
    >>> result.n, result.detail["se_ratio"] < 1
    (25, True)
    """
    validate_level(level)
    labels = np.asarray(annotators)
    human_scores = vector(human, "human")
    y, f, rest, n_missing = _judged(human, metric, metric_unjudged)
    positions, n_annotators = label_codes_where(labels, "annotators", ~np.isnan(human_scores))
    n = len(y)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "mean human score of all outputs",
        "unit": unit,
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": n + len(rest),
        "settings": {"null": null, "level": level, "bounds": bounds, "resamples": resamples},
    }
    detail: dict[str, Any] = {"n_judged": n, "n_unjudged": len(rest), "n_missing": n_missing}
    alone = clusters.clustered_mean(
        y,
        positions,
        null=null,
        level=level,
        bounds=bounds,
        analysis=f"{analysis}.human_only",
        estimand="mean human score of the judged outputs",
        unit=unit,
    )
    edge = _undefined(n_annotators, f, rest, unit=unit)
    if edge is not None:
        return Estimate(status=edge[0], reason=edge[1], sensitivity=(alone,), detail=detail, **common)
    weight = _weight(y, f, rest)
    mean_rest, spread_rest = float(np.mean(rest)), float(np.var(rest, ddof=1)) / len(rest)
    estimate = float(np.mean(y)) - weight * (float(np.mean(f)) - mean_rest)
    draws = _resampled(y, f, rest, positions, n_annotators, resamples=resamples, rng=rng)
    defined = draws[np.isfinite(draws)]
    warnings: tuple[ResultWarning, ...] = clusters.cluster_warnings(np.bincount(positions), name=unit)
    if len(defined) < len(draws):
        warnings = (*warnings, ResultWarning("undefined_resamples", "warn", {"share": 1 - len(defined) / len(draws)}))
    if len(defined) < max(2, len(draws) / 2):
        reason = "in most resamples the metric does not vary"
        return Estimate(
            status="not_identified", reason=reason, sensitivity=(alone,), warnings=warnings, detail=detail, **common
        )
    between = float(np.var(defined, ddof=1)) * n_annotators / (n_annotators - 1)
    se = math.sqrt(between + weight**2 * spread_rest)
    effective = clusters.effective_n_clusters(np.bincount(positions))
    detail |= {
        "weight": weight,
        "correlation": _correlation(y, f),
        "effective_clusters": effective,
        "se_ratio": _ratio(se, alone.detail.get("se")),
    }
    return clusters.t_estimate(
        estimate,
        se,
        max(1.0, effective - 1),
        fewest_clusters=n_annotators,
        level=level,
        method="bootstrap_se_t",
        null=null,
        test_name="prediction_powered_t",
        bounds=bounds,
        sensitivity=(alone,),
        warnings=warnings,
        detail=detail,
        **common,
    )


def _judged(
    human: npt.ArrayLike, metric: npt.ArrayLike, metric_unjudged: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    y, f, rest = vector(human, "human"), vector(metric, "metric"), vector(metric_unjudged, "metric_unjudged")
    if f.shape != y.shape:
        raise ValueError(f"metric: {len(f)} values where human has {len(y)}")
    is_judged = ~np.isnan(y)
    for name, scores in (("metric", np.where(is_judged, f, 0.0)), ("metric_unjudged", rest)):
        missing = np.flatnonzero(np.isnan(scores))
        if len(missing):
            raise ValueError(f"{name}: row {int(missing[0])} has no score; the metric must score every output")
    return y[is_judged], f[is_judged], rest, int(np.sum(~is_judged))


def _undefined(n: int, f: FloatArray, rest: FloatArray, *, unit: str) -> tuple[str, str] | None:
    if n == 0:
        return "no_data", "no output was judged by people"
    if n == 1:
        return "n_lt_2", f"one {unit} has no spread"
    if len(rest) < 2:
        return "not_applicable", "hardly any output is left that people did not judge"
    if float(np.std(np.concatenate([f, rest]), ddof=1)) < MIN_SPREAD:
        return "not_identified", "the metric does not vary"
    return None


def _weight(y: FloatArray, f: FloatArray, rest: FloatArray) -> float:
    pooled = float(np.var(np.concatenate([f, rest]), ddof=1))
    return float(np.cov(y, f, ddof=1)[0, 1]) / (pooled * (1 + len(y) / len(rest)))


def _ratio(se: float, own: float | None) -> float | None:
    """Return the ratio of the standard error to that of people alone."""
    return None if own is None or own <= MIN_SPREAD else se / own


def _correlation(y: FloatArray, f: FloatArray) -> float | None:
    spread = float(np.std(y)) * float(np.std(f))
    return None if spread < MIN_SPREAD else float(np.mean((y - np.mean(y)) * (f - np.mean(f)))) / spread


def _resampled(
    y: FloatArray,
    f: FloatArray,
    rest: FloatArray,
    positions: npt.NDArray[np.int64],
    n_annotators: int,
    *,
    resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    # Centred sums keep their digits when moments are taken by subtraction.
    centre_y, centre_f = float(np.mean(y)), float(np.mean(f))
    a, b, others = y - centre_y, f - centre_f, rest - centre_f
    columns = (np.ones_like(a), a, b, a * b, b * b)
    sums = np.stack([np.bincount(positions, column, n_annotators) for column in columns], axis=1)
    big, rest_sum, rest_squares = len(rest), float(others.sum()), float(np.sum(others**2))
    draws = []
    for block in bootstrap.multinomial_weights(n_annotators, resamples, rng):
        n, sum_y, sum_f, products, squares = (block @ sums).T
        with np.errstate(invalid="ignore", divide="ignore"):
            covariance = (products - sum_y * sum_f / n) / (n - 1)
            pooled = (squares + rest_squares - (sum_f + rest_sum) ** 2 / (n + big)) / (n + big - 1)
            weight = np.where(pooled > MIN_SPREAD**2, covariance / (pooled * (1 + n / big)), np.nan)
            draws.append(centre_y + sum_y / n - weight * (sum_f / n - rest_sum / big))
    return np.concatenate(draws)
