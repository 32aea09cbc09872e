"""Marginal d' and criterion, pooled over annotators, and their change by condition."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import bootstrap, groups
from analysis.stats.arrays import FloatArray, label_codes
from analysis.stats.detection._answers import (
    bootstrap_column_sums,
    checked_answers_and_truths,
    n_rows_and_signal_counts_by_annotator,
)
from analysis.stats.detection._measures import signal_detection
from analysis.stats.detection._within import mantel_haenszel_log_odds_ratio, random_criterion_d_prime
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionSensitivity(Record):
    """d' and criterion of each condition, and the differences from the reference condition."""

    sensitivity: tuple[Estimate, ...]
    criterion: tuple[Estimate, ...]
    sensitivity_differences: tuple[Estimate, ...]
    criterion_differences: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True)
class _Probits:
    """The weights of z(H) and z(F) in a measure, and its name."""

    estimand: str
    machine: float
    human: float


SENSITIVITY = _Probits("marginal d' (pooled over annotators)", 1.0, -1.0)
CRITERION = _Probits("marginal criterion c (above 0: leans to human)", -0.5, -0.5)


def marginal_d_prime(
    answered_machine: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    sensitivity_resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "humanlike.sensitivity",
) -> Estimate:
    """Marginal sensitivity d', clustered by annotator and, if given, by text, and the test that it is 0.

    Parameters
    ----------
    answered_machine : array_like, shape (n_rows,)
        1 "machine", 0 "human"; NaN is missing.
    is_machine : array_like, shape (n_rows,)
        1 for a machine text, 0 for a human text.
    annotators, items : array_like, shape (n_rows,)
        Labels of each row's annotator and text.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    sensitivity_resamples : int, default bootstrap.RESAMPLES
        Number of resamples of the sensitivity analyses.
    rng : numpy.random.Generator
        Source of the random draws.
    analysis : str, optional
        Name of the analysis, and the first part of the names of its sensitivities.

    Returns
    -------
    Estimate
        d'. Sensitivities: the bootstrap over annotators, `random_criterion_d_prime`, and
        `mantel_haenszel_log_odds_ratio`.

    Notes
    -----
    This is the marginal d', pooled over annotators. Annotators who all have d' = 1 with criteria spread by .8 pool to
    .78, so training that only makes criteria similar raises it. Interval and test are those of the probit contrast of
    both cells (`groups.cell_contrast`), with the log-linear correction. Do not compute d' for single annotators: with
    five texts the correction determines it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth, annotators = rng.random(400) < 0.5, np.repeat(np.arange(80), 5)
    >>> said_machine = rng.random(400) < np.where(truth, 0.7, 0.3)
    >>> result = marginal_d_prime(said_machine, truth, annotators, rng=rng, sensitivity_resamples=199)
    >>> result.estimand, round(result.estimate, 1), [other.analysis.split(".")[-1] for other in result.sensitivity]
    ("marginal d' (pooled over annotators)", 1.0, ['bootstrap', 'random_criterion', 'stratified'])
    """
    result = _marginal(
        SENSITIVITY,
        answered_machine,
        is_machine,
        annotators,
        items,
        sensitivity_resamples,
        rng,
        analysis=analysis,
        level=level,
    )
    if not result.sensitivity:
        return result
    within = random_criterion_d_prime(answered_machine, is_machine, annotators, level=level)
    stratified = mantel_haenszel_log_odds_ratio(answered_machine, is_machine, annotators, level=level)
    others = (
        within.labelled(analysis=f"{analysis}.random_criterion"),
        stratified.labelled(analysis=f"{analysis}.stratified"),
    )
    return replace(result, sensitivity=(*result.sensitivity, *others))


def marginal_criterion(
    answered_machine: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    sensitivity_resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "humanlike.criterion",
) -> Estimate:
    """Criterion c = -(z(H) + z(F)) / 2, clustered, and the test that it is 0.

    Parameters
    ----------
    answered_machine : array_like, shape (n_rows,)
        1 "machine", 0 "human"; NaN is missing.
    is_machine : array_like, shape (n_rows,)
        1 for a machine text, 0 for a human text.
    annotators, items : array_like, shape (n_rows,)
        Labels of each row's annotator and text.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    sensitivity_resamples : int, default bootstrap.RESAMPLES
        Number of resamples of the sensitivity analyses.
    rng : numpy.random.Generator
        Source of the random draws.
    analysis : str, optional
        Name of the analysis, and the first part of the names of its sensitivities.

    Returns
    -------
    Estimate
        c, above 0 if annotators prefer "human". It is marginal, as in `sensitivity`. The sensitivity is the bootstrap
        over annotators.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth, annotators = rng.random(400) < 0.5, np.repeat(np.arange(80), 5)
    >>> marginal_criterion(rng.random(400) < 0.3, truth, annotators, rng=rng, sensitivity_resamples=199).interval.low > 0
    True
    """
    return _marginal(
        CRITERION,
        answered_machine,
        is_machine,
        annotators,
        items,
        sensitivity_resamples,
        rng,
        analysis=analysis,
        level=level,
    )


def d_prime_and_criterion_by_condition(
    answered_machine: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    conditions: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    reference: Any,
    level: float = 0.95,
) -> ConditionSensitivity:
    """Estimate the marginal d' and criterion of each condition, and their differences from the reference, clustered.

    `answered_machine` is 1 for "machine" and 0 for "human", with NaN for missing; `is_machine` is 1 for a machine text
    and 0 for a human text. The estimates are those of the probit model with condition, truth and their interaction,
    d'_k = b1 + b1k and c_k = -[(b0 + b0k) + (b1 + b1k) / 2], as contrasts of its cells. Training can change sensitivity
    or criterion; accuracy cannot separate them.

    >>> rng = np.random.default_rng(0)
    >>> annotators, truth = np.repeat(np.arange(100), 6), np.tile([0, 1], 300)
    >>> arms = np.where(annotators % 2 == 1, "examples", "none")
    >>> result = d_prime_and_criterion_by_condition(rng.random(600) < 0.3 + 0.4 * truth * (arms == "examples"), truth, annotators, arms,
    ...                                  reference="none")
    >>> result.sensitivity_differences[0].settings["condition"], result.sensitivity_differences[0].interval.low > 0
    ('examples', True)
    """
    answers, truths = checked_answers_and_truths(answered_machine, is_machine)
    arms, n_arms = label_codes(np.asarray(conditions), "conditions", len(answers))
    first = np.array([int(np.flatnonzero(arms == arm)[0]) for arm in range(n_arms)], dtype=np.int64)
    names = np.asarray(conditions)[first].tolist()
    if reference not in names:
        raise ValueError(f"reference: {reference!r} is not one of the conditions")
    base = names.index(reference)
    cells = 2 * arms + truths.astype(np.int64)
    annotator_codes, _ = label_codes(np.asarray(annotators), "annotators", len(answers))
    item_codes = None if items is None else label_codes(np.asarray(items), "items", len(answers))[0]
    results: dict[str, list[Estimate]] = {}
    for part, probits in (("sensitivity", SENSITIVITY), ("criterion", CRITERION)):
        name, machine, human = probits.estimand, probits.machine, probits.human
        for arm, label in enumerate(names):
            own = {2 * arm + 1: machine, 2 * arm: human}
            against = {2 * base + 1: -machine, 2 * base: -human}
            kinds = [(part, own, name)]
            if arm != base:
                kinds.append((f"{part}_differences", {**own, **against}, f"difference of {name}"))
            for kind, weights, estimand in kinds:
                result = groups.cell_contrast(
                    answers,
                    cells,
                    weights,
                    annotator_codes,
                    item_codes,
                    link="probit",
                    is_log_linear_corrected=True,
                    level=level,
                    analysis=f"humanlike.condition.{kind}",
                    estimand=estimand,
                )
                named = {key: value for key, value in result.settings.items() if key != "weights"}
                named |= {"condition": str(label)} | ({} if kind == part else {"reference": str(reference)})
                detail = {key: value for key, value in result.detail.items() if key != "cells"}
                results.setdefault(kind, []).append(replace(result, settings=named, detail=detail))
    return ConditionSensitivity(
        sensitivity=tuple(results["sensitivity"]),
        criterion=tuple(results["criterion"]),
        sensitivity_differences=tuple(results.get("sensitivity_differences", ())),
        criterion_differences=tuple(results.get("criterion_differences", ())),
    )


def _marginal(
    probits: _Probits,
    says: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None,
    resamples: int,
    rng: np.random.Generator,
    *,
    analysis: str,
    level: float,
) -> Estimate:
    """Return a contrast of the two probits: clustered, with the bootstrap over annotators as sensitivity."""
    answers, truths = checked_answers_and_truths(says, is_machine)
    weights = {1.0: probits.machine, 0.0: probits.human}
    common: dict[str, Any] = {"estimand": probits.estimand, "level": level}
    result = groups.cell_contrast(
        answers,
        truths,
        weights,
        annotators,
        items,
        link="probit",
        is_log_linear_corrected=True,
        analysis=analysis,
        **common,
    )
    settings = {key: value for key, value in result.settings.items() if key != "weights"}
    detail = {key: value for key, value in result.detail.items() if key != "cells"}
    n_said_machine = [int(np.nansum(answers[truths == truth])) for truth in (1, 0)]
    n = [int(np.sum(~np.isnan(answers[truths == truth]))) for truth in (1, 0)]
    counts = signal_detection(n_said_machine[0], n[0] - n_said_machine[0], n_said_machine[1], n[1] - n_said_machine[1])
    detail |= {"hits": n_said_machine[0], "n_machine": n[0], "false_alarms": n_said_machine[1], "n_human": n[1]}
    if counts is None:
        status = "no_data" if sum(n) == 0 else "not_identified"
        reason = "needs answers to texts of both kinds"
        return replace(result, status=status, reason=reason, test=None, settings=settings, detail=detail)
    detail |= {"hit_rate": counts.hit_rate, "false_alarm_rate": counts.false_alarm_rate}
    detail["se_independent"] = counts.se_d_prime if probits is SENSITIVITY else counts.se_criterion
    if result.status == "not_identified":
        return replace(result, settings=settings, detail=detail)
    resampled = _resampled_probits(
        probits, says, is_machine, annotators, resamples, rng, analysis=f"{analysis}.bootstrap", **common
    )
    return replace(result, settings={**settings, "resamples": resamples}, detail=detail, sensitivity=(resampled,))


def _resampled_probits(
    probits: _Probits,
    says: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    resamples: int,
    rng: np.random.Generator,
    *,
    level: float,
    **common: Any,
) -> Estimate:
    """Return the same contrast over resampled annotators, from counts of their distinct patterns of answers."""
    n_rows, table = n_rows_and_signal_counts_by_annotator(says, is_machine, annotators)

    def contrast(sums: FloatArray) -> FloatArray:
        hits, n_machine, false, n_human = sums.T
        z_hit, z_false = special.ndtri((hits + 0.5) / (n_machine + 1)), special.ndtri((false + 0.5) / (n_human + 1))
        contrasts = probits.machine * z_hit + probits.human * z_false
        return np.where((n_machine > 0) & (n_human > 0), contrasts, np.nan)

    n = len(table)
    return bootstrap.estimate_with_percentile_interval(
        contrast(bootstrap_column_sums(table, resamples, rng)),
        level=level,
        n=n,
        n_clusters=n,
        n_rows=n_rows,
        estimate=float(contrast(table.sum(axis=0)[None])[0]),
        settings={"level": level, "resamples": resamples},
        unit="annotator",
        **common,
    )
