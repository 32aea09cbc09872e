"""The score of one system."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, betting, bootstrap, clusters
from analysis.stats.arrays import MIN_SPREAD, FloatArray, group_sums, validate_level
from analysis.stats.leaderboard._precision import worst_case_se_in_points
from analysis.stats.leaderboard._rows import BOUNDS, SCALE, ContrastTerm, ScoreRows, contrast_variance
from analysis.stats.results import MODES, Estimate, Interval, ResultWarning


def system_score_in_points(
    values: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    mode: str = "recommended",
    level: float = 0.95,
    items_sampled: bool = True,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "leaderboard.score",
    unit: str = "annotator",
) -> Estimate:
    """Score of one system: 100 times a mean of answers in 0..1.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers in 0..1; NaN is missing.
    items, annotators : array_like, shape (n_rows,)
        Labels of each row's item and annotator.
    rng : numpy.random.Generator
        Source of the random draws.
    mode : {"recommended", "paper"}, default 'recommended'
        "paper": the mean of the answers and the percentile bootstrap over them (warning `annotators_ignored`).
        "recommended": the mean over items of each item's mean, clustered.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    items_sampled : bool, default True
        Whether the claim goes beyond the items of the study.
    resamples : int, default bootstrap.RESAMPLES
        Number of resamples.
    analysis, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The score in points. `n` counts annotators in recommended mode, answers in paper mode. `detail` has `plus` and
        `minus`, the arms of the interval, and the worst-case standard error.

    Raises
    ------
    ValueError
        If `mode` is not allowed.

    Notes
    -----
    V_a leaves one annotator out (CV3). With `items_sampled` V = max(V_a + V_i - V_ai, V_a, V_i), otherwise V = V_a. t
    on the smaller of G* - 1 and the number of items - 1. Sensitivities: the BCa bootstrap over annotators, and the
    mean of the annotators' means. If nine in ten answers are equal and there are fewer than 100 annotators, the
    interval is a betting interval (warning `ceiling`).

    References
    ----------
    Section 6, Uncertainty Quantification.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, items = np.repeat(np.arange(20), 5), np.arange(100)
    >>> result = system_score_in_points(rng.choice([0.5, 0.75, 1], 100), items, annotators, rng=rng, resamples=999)
    >>> round(result.estimate, 1), result.interval.method, result.n
    (76.5, 'cv3_t', 20)
    """
    validate_level(level)
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is not one of {', '.join(MODES)}")
    rows = ScoreRows.from_arrays(values, items, annotators)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "score, 0 to 100: mean of answers" if mode == "paper" else "score, 0 to 100: mean over items",
        "mode": mode,
        "n_rows": len(rows.values),
        "settings": {"level": level, "items_sampled": items_sampled, "resamples": resamples},
    }
    if mode == "paper":
        return _paper_score(rows, level=level, resamples=resamples, rng=rng, common=common)
    common |= {"unit": unit, "n": rows.n_annotators, "n_clusters": rows.n_annotators}
    if len(rows.values) == 0:
        return Estimate(status="no_data", reason="no answer to analyse", **common)
    weights = rows.weights
    estimate = SCALE * float(weights @ rows.values)
    detail: dict[str, Any] = {"n_items": rows.n_items, "n_missing": rows.n_missing, **_worst_case(rows, estimate)}
    if rows.n_annotators == 1:
        return Estimate(
            status="n_lt_2", reason="one annotator has no spread", estimate=estimate, detail=detail, **common
        )
    spread = contrast_variance([ContrastTerm(rows, weights, 1.0)], items_sampled=items_sampled, is_difference=False)
    if spread is None:
        return Estimate(
            status="not_identified",
            reason="without one annotator nothing is left",
            estimate=estimate,
            detail=detail,
            **common,
        )
    detail |= spread.as_dict()
    sizes = np.bincount(rows.annotators)
    warnings = clusters.cluster_warnings(sizes, name=unit)
    means = SCALE * np.bincount(rows.annotators, rows.values) / sizes
    n = rows.n_annotators
    sums, counts = (
        SCALE * group_sums(rows.annotators, weights * rows.values, n),
        group_sums(rows.annotators, weights, n),
    )
    bet = betting.betting_ratio_interval(sums, counts, level=level, bounds=BOUNDS)
    se = SCALE * math.sqrt(spread.variance)
    if se < MIN_SPREAD * SCALE:
        reason = "the annotators' answers do not differ, so the standard error is 0"
        return Estimate(
            status="zero_variance",
            reason=reason,
            estimate=estimate,
            interval=bet,
            warnings=warnings,
            detail=detail,
            **common,
        )
    interval: Interval = basic.t_interval(estimate, se, spread.df, level=level, bounds=BOUNDS, method="cv3_t")
    share = basic.most_frequent_value_share(rows.values)
    if bet is not None and rows.n_annotators < basic.CEILING_N and share >= basic.CEILING_SHARE:
        ends = {"cv3_t_low": interval.low, "cv3_t_high": interval.high}
        warnings = (*warnings, ResultWarning("ceiling", "warn", {"largest_share": share, **ends}))
        interval = bet
    sensitivity = _sensitivities(
        rows, estimate, means, level=level, resamples=resamples, rng=rng, analysis=analysis, unit=unit
    )
    return Estimate(
        estimate=estimate,
        interval=interval,
        sensitivity=sensitivity,
        warnings=warnings,
        detail={**detail, **_arms(estimate, interval)},
        **common,
    )


def _arms(estimate: float, interval: Interval) -> dict[str, float]:
    return {"plus": interval.high - estimate, "minus": estimate - interval.low}


def _worst_case(rows: ScoreRows, estimate: float) -> dict[str, Any]:
    """Return the bound for independent answers, and the same times the root of the observed design effect."""
    parts = clusters.variance_components(rows.values, rows.annotators)
    n, score = len(rows.values), min(SCALE, max(0.0, estimate))
    dependent = (
        None if parts.design_effect is None else worst_case_se_in_points(score, n, design_effect=parts.design_effect)
    )
    return {
        "worst_case_se": worst_case_se_in_points(score, n),
        "worst_case_se_clustered": dependent,
        "annotator_icc": parts.icc,
        "design_effect": parts.design_effect,
    }


def _paper_score(
    rows: ScoreRows, *, level: float, resamples: int, rng: np.random.Generator, common: Mapping[str, Any]
) -> Estimate:
    n = len(rows.values)
    named = {**common, "unit": "answer", "n": n}
    if n == 0:
        return Estimate(status="no_data", reason="no answer to analyse", **named)
    estimate = SCALE * float(np.mean(rows.values))
    detail: dict[str, Any] = {"n_annotators": rows.n_annotators, "n_items": rows.n_items, "n_missing": rows.n_missing}
    detail |= {"worst_case_se": worst_case_se_in_points(min(SCALE, estimate), n)}
    if n == 1:
        return Estimate(status="n_lt_2", reason="one answer has no spread", estimate=estimate, detail=detail, **named)
    scores, counts = np.unique(rows.values, return_counts=True)
    if len(scores) == 1:
        return Estimate(
            status="zero_variance", reason="all answers are equal", estimate=estimate, detail=detail, **named
        )
    draws = SCALE * (rng.multinomial(n, counts / n, resamples) @ scores) / n
    interval = bootstrap.percentile_interval(np.asarray(draws), level)
    warnings = (
        () if rows.n_annotators == n else (ResultWarning("annotators_ignored", "block", {"n": rows.n_annotators}),)
    )
    arms = {} if interval is None else _arms(estimate, interval)
    return Estimate(estimate=estimate, interval=interval, warnings=warnings, detail={**detail, **arms}, **named)


def _sensitivities(
    rows: ScoreRows,
    estimate: float,
    means: FloatArray,
    *,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    analysis: str,
    unit: str,
) -> tuple[Estimate, ...]:
    n = rows.n_annotators
    weights = rows.weights
    sums, counts = (
        SCALE * group_sums(rows.annotators, weights * rows.values, n),
        group_sums(rows.annotators, weights, n),
    )
    draws = bootstrap.ratio_draws(sums[:, None], counts[:, None], bootstrap.multinomial_weights(n, resamples, rng))
    interval = bootstrap.bootstrap_ratio_interval(estimate, draws[:, 0], sums, counts, method="bca", level=level)
    resampled = Estimate(
        analysis=f"{analysis}.bootstrap",
        estimand="score, 0 to 100: mean over items",
        unit=unit,
        n=n,
        n_clusters=n,
        estimate=estimate,
        interval=interval,
        settings={"method": "bca", "level": level, "resamples": resamples},
    )
    of_means = basic.one_sample_t_test(
        np.clip(means, *BOUNDS),
        null=estimate,
        level=level,
        bounds=BOUNDS,
        analysis=f"{analysis}.annotator_means",
        estimand=f"score, 0 to 100: mean of {unit} means",
        unit=unit,
    )
    return resampled, replace(of_means, test=None, effect=None)
