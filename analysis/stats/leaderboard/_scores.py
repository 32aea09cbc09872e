"""The score of one system."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap, clusters
from analysis.stats.arrays import validate_level
from analysis.stats.leaderboard._precision import worst_case_se_in_points
from analysis.stats.leaderboard._rows import BOUNDS, SCALE, ScoreRows
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
    item_groups: npt.ArrayLike | None = None,
    resamples: int = bootstrap.RESAMPLES,
) -> Estimate:
    """Score of one system: 100 times a mean of answers in 0..1.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers in 0..1; NaN is missing.
    items, annotators : array_like, shape (n_rows,)
        Labels of each row's item and annotator.
    rng : numpy.random.Generator
        Source of the random draws of the paper's mode.
    mode : {"recommended", "paper"}, default 'recommended'
        "paper": the mean of the answers and the percentile bootstrap over them (warning `annotators_ignored`).
        "recommended": the mean over items of each item's mean, clustered.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    items_sampled : bool, default True
        Whether the claim goes beyond the items of the study.
    item_groups : array_like, shape (n_rows,), optional
        Labels of what is sampled in place of items, such as the document of each row's item. The items if None.
    resamples : int, default bootstrap.RESAMPLES
        Number of resamples of the paper's mode.

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
    With `items_sampled` and five items or more, `clusters.two_way_clustered_mean` over annotators and items, otherwise
    `clusters.clustered_mean` over annotators; `settings["population"]` says which. Both bet if answers hardly vary or
    are skewed (warning `betting_instead_of_t`). Sensitivities: the mean of the annotators' means and, beside the two-way
    one, the interval over annotators alone.

    References
    ----------
    Section 6, Uncertainty Quantification.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, items = np.repeat(np.arange(20), 5), np.arange(100)
    >>> result = system_score_in_points(rng.choice([0.5, 0.75, 1], 100), items, annotators, rng=rng)
    >>> round(result.estimate, 1), result.interval.method, result.n
    (76.5, 'two_way_cv3_score', 20)
    """
    validate_level(level)
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is not one of {', '.join(MODES)}")
    rows = ScoreRows.from_arrays(values, items, annotators, item_groups)
    common: dict[str, Any] = {
        "analysis": "leaderboard.score",
        "estimand": "score, 0 to 100: mean of answers" if mode == "paper" else "score, 0 to 100: mean over items",
        "mode": mode,
        "n_rows": len(rows.values),
        "settings": {"level": level, "items_sampled": items_sampled, "resamples": resamples},
    }
    if mode == "paper":
        return _paper_score(rows, level=level, resamples=resamples, rng=rng, common=common)
    found = clusters.annotator_prompt_clustered_mean(
        SCALE * rows.values,
        rows.annotators,
        rows.item_groups,
        weights=rows.weights,
        null=None,
        level=level,
        bounds=BOUNDS,
        analysis="leaderboard.score",
        population="people_and_prompts" if items_sampled else "people",
        estimand=common["estimand"],
        unit="annotator",
    )
    detail: dict[str, Any] = {**found.detail, "n_items": rows.n_items, "n_missing": rows.n_missing}
    if found.estimate is not None:
        detail |= _worst_case(rows, found.estimate)
        detail |= {} if found.interval is None else _arms(found.estimate, found.interval)
    settings = {**found.settings, "items_sampled": items_sampled}
    return replace(found, n_clusters=found.n, detail=detail, settings=settings)


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
