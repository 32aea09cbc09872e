"""Human or machine: how well annotators distinguish the two, and which answer they prefer.

Accuracy mixes two things. Sensitivity is how far machine and human texts are apart for an annotator; the
criterion is how readily the annotator says "machine". Signal detection separates them. A machine text is the
signal: "machine" for a machine text is a hit, for a human text a false alarm.

Answers are rows: `ratings` on the scale (1 definitely human .. 4 definitely machine) or `says` (1 "machine", 0
"human"), `is_machine` the truth, `annotators` and `items` (texts) the labels. With `items` the claim is about
texts like these, without `items` about these texts only.

Reference: Clark et al. 2021, All That's 'Human' Is Not Gold; signal detection after Macmillan and Creelman 2005.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic, bootstrap, cell_contrasts, cluster_variances, clusters, power_of_means
from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    binary_vector,
    group_sums,
    label_codes,
    label_codes_where,
    validate_level,
    vector,
)
from analysis.stats.results import Estimate, Record
from analysis.stats.signal_detection import (
    DetectionMeasures,
    accuracy_by_annotator,
    bootstrap_column_sums,
    checked_answers_and_truths,
    detection_measures,
    graded_auc,
    mantel_haenszel_log_odds_ratio,
    n_rows_and_signal_counts_by_annotator,
    one_or_two_way_clustered_mean,
    random_criterion_d_prime,
    ratings_to_machine_answers,
    score_correct_answers,
    signal_detection,
)

# Accuracy, the share of "human" answers, and their change with confidence and time.


def mean_annotator_accuracy(
    correct: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """The paper's accuracy: the mean over annotators of their share correct, and the t test against chance.

    Parameters
    ----------
    correct : array_like, shape (n_rows,)
        1 if the answer was correct, else 0; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The mean, in mode "paper".

    Notes
    -----
    Texts are taken as fixed. n annotators give n - 1 degrees of freedom: 389 for the 390 of the paper, which prints
    388. Several cells form a Bonferroni family (15 in the paper).

    References
    ----------
    Clark et al. 2021, section 2.4, Tables 1 and 2.

    Examples
    --------
    >>> result = mean_annotator_accuracy([1, 1, 0, 1, 0, 0, 1, 1, 1], [1, 1, 1, 2, 2, 2, 3, 3, 3])
    >>> round(result.estimate, 4), result.test.df, result.mode
    (0.6667, 2, 'paper')
    """
    accuracies = accuracy_by_annotator(correct, annotators).accuracies
    result = basic.one_sample_t_test(accuracies, null=0.5, level=level, bounds=(0.0, 1.0), mode="paper")
    return result.labelled(analysis="humanlike.accuracy", estimand="mean accuracy of annotators")


def clustered_accuracy(
    correct: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> Estimate:
    """Share of correct answers, clustered by annotator and, if given, by text, and the t test against chance.

    Parameters
    ----------
    correct : array_like, shape (n_rows,)
        1 if the answer was correct, else 0; NaN is missing.
    annotators, items : array_like, shape (n_rows,)
        Labels of each row's annotator and text.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The share. `detail["detectable"]` is the smallest distance from chance that this standard error finds with
        power .8, with the degrees of freedom rounded down. Absent without spread.

    Notes
    -----
    `clusters.two_way_clustered_mean`, or `clusters.clustered_mean` without items.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> result = clustered_accuracy(rng.random(300) < 0.6, np.repeat(np.arange(60), 5), rng.integers(0, 40, 300))
    >>> round(result.estimate, 3), result.detail["df"], result.detail["detectable"] > 0.05
    (0.547, 59.0, True)
    """
    result = one_or_two_way_clustered_mean(
        binary_vector(correct, "correct"),
        annotators,
        items,
        null=0.5,
        level=level,
        bounds=(0.0, 1.0),
        analysis="humanlike.accuracy",
        estimand="share of correct answers",
    )
    if result.status != "ok" or result.detail["se"] < MIN_SPREAD:
        return result
    n = max(2, int(result.detail["df"]) + 1)
    detectable = power_of_means.t_test_detectable_difference(
        n, sd=result.detail["se"] * math.sqrt(n), significance=1 - level
    )
    detail, settings = {**result.detail, "detectable": detectable}, {**result.settings, "tests": 1}
    return replace(result, detail=detail, settings=settings)


def share_answered_human(
    answered_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the share of answers "human", clustered by annotator and, if given, by text.

    `answered_machine` is 1 for "machine" and 0 for "human", with NaN for missing. There is no test. The share is the
    column "% human" of Tables 1 and 2 in Clark et al. 2021.

    >>> share_answered_human([0, 0, 1, 0, 1, 0, 0, 0], [1, 1, 2, 2, 3, 3, 4, 4]).estimate
    0.75
    """
    return one_or_two_way_clustered_mean(
        1 - binary_vector(answered_machine, "says"),
        annotators,
        items,
        level=level,
        bounds=(0.0, 1.0),
        analysis="humanlike.share_human",
        estimand="share of answers human",
    )


def human_answer_bias(
    answered_machine: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the share of answers "human" minus the share of human texts, and test whether it is 0.

    `answered_machine` is 1 for "machine" and 0 for "human", with NaN for missing; `is_machine` is 1 for a machine text
    and 0 for a human text. Unlike the criterion, the difference needs no model. It is also valid for unequal numbers of
    human and machine texts.

    >>> human_answer_bias([0, 0, 1, 0], [1, 0, 1, 0], [1, 1, 2, 2]).estimate
    0.25
    """
    answers, truths = checked_answers_and_truths(answered_machine, is_machine)
    return one_or_two_way_clustered_mean(
        truths - answers,
        annotators,
        items,
        null=0.0,
        level=level,
        bounds=(-1.0, 1.0),
        analysis="humanlike.bias",
        estimand="share answered human - share of human texts",
    )


def confident_accuracy_gain(
    correct: npt.ArrayLike,
    ratings: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    confident_ratings: tuple[float, float] = (1, 4),
    level: float = 0.95,
) -> Estimate:
    """Estimate the accuracy of confident answers minus the accuracy of the other answers.

    `correct` is 1 if the answer was correct, else 0, with NaN for missing, and `confident_ratings` are the points of
    the scale that count as confident. If the difference is above 0, confident answers are more often correct. `detail`
    has both accuracies.

    >>> annotators = np.repeat(np.arange(8), 2)
    >>> confident_accuracy_gain([1, 0] * 7 + [0, 1], [4, 2] * 8, annotators).estimate
    0.75
    """
    marks = vector(ratings, "ratings")
    array = np.where(np.isnan(marks), np.nan, binary_vector(correct, "correct"))
    cells = np.where(np.isin(marks, confident_ratings), "confident", "unsure")
    return cell_contrasts.cell_contrast(
        array,
        cells,
        {"confident": 1.0, "unsure": -1.0},
        annotators,
        items,
        level=level,
        analysis="humanlike.confidence",
        estimand="accuracy of confident answers - of the others",
    )


def change_per_session_position(
    values: npt.ArrayLike,
    positions: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the change of accuracy per text within a session, and test whether it is 0.

    `positions` are the places in the session as numbers, and NaN is missing. The estimate is the slope within
    annotators, sum (x - mean x) y / sum (x - mean x)^2 around each annotator's mean place, so differences between
    annotators do not look like a trend. Its variance is CV3 over annotators, weighted by their spread of places. Texts
    must be in random order. `detail` has the mean and the number of answers at each place.

    >>> values, places = np.tile([0, 0, 1, 1], 10) - np.tile([0, 1], 20) * 0.1, np.tile([1, 2, 3, 4], 10)
    >>> round(change_per_session_position(values, places, np.repeat(np.arange(10), 4)).estimate, 3)
    0.38
    """
    validate_level(level)
    array, places = vector(values, "values"), vector(positions, "positions")
    if places.shape != array.shape:
        raise ValueError(f"positions: {len(places)} values where values has {len(array)}")
    is_observed = ~np.isnan(array) & ~np.isnan(places)
    observed, places, n_rows = array[is_observed], places[is_observed], int(is_observed.sum())
    annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
    sizes = np.bincount(annotator_codes, minlength=n_annotators)
    centred = places - (group_sums(annotator_codes, places, n_annotators) / np.maximum(1, sizes))[annotator_codes]
    sums, squares = (
        group_sums(annotator_codes, centred * observed, n_annotators),
        group_sums(annotator_codes, centred**2, n_annotators),
    )
    moving = squares > MIN_SPREAD
    sums, squares = sums[moving], squares[moving]
    n = int(moving.sum())
    distinct, inverse = np.unique(places, return_inverse=True)
    at = np.bincount(inverse, minlength=len(distinct))
    means = np.bincount(inverse, observed, minlength=len(distinct)) / np.maximum(1, at)
    common: dict[str, Any] = {
        "analysis": "humanlike.drift",
        "estimand": "change of accuracy per place in the session",
        "unit": "annotator",
        "n": n,
        "n_clusters": n,
        "n_rows": n_rows,
        "settings": {"null": 0.0, "level": level},
        "detail": {"positions": distinct, "means": means, "n_at": at, "n_missing": int((~is_observed).sum())},
    }
    if n_rows == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    if n == 0:
        return Estimate(status="not_identified", reason="nobody answered at two places", **common)
    estimate = float(sums.sum() / squares.sum())
    if n == 1:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=estimate, **common)
    se = math.sqrt(cluster_variances.cv3_variance(sums, squares))
    df = max(1.0, cluster_variances.effective_n_clusters(squares) - 1)
    result = clusters.t_estimate(estimate, se, df, fewest_clusters=n, level=level, method="cv3_t", null=0.0, **common)
    return replace(result, warnings=cluster_variances.cluster_warnings(sizes[moving], name="annotator"))


# Marginal d' and criterion, pooled over annotators, and their change by condition.


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
    both cells (`cell_contrasts.cell_contrast`), with the log-linear correction. Do not compute d' for single annotators: with
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
                result = cell_contrasts.cell_contrast(
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
    result = cell_contrasts.cell_contrast(
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


# All results for one cell of a human-likeness study.


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanLikeness(Record):
    """One cell of a human-likeness study: the results of the paper and the recommended ones."""

    measures: DetectionMeasures
    accuracy_paper: Estimate
    accuracy: Estimate
    sensitivity: Estimate
    criterion: Estimate
    auc: Estimate
    share_human: Estimate
    bias: Estimate


def human_likeness(
    ratings: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    threshold: float = 2.5,
    confident_ratings: tuple[float, float] = (1, 4),
    level: float = 0.95,
    sensitivity_resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
) -> HumanLikeness:
    """Compute all results for one cell (a system in a domain under a condition).

    NaN is a missing rating, and `is_machine` is 1 for a machine text and 0 for a human text. `threshold` is as in
    `ratings_to_machine_answers`, and `confident_ratings` are the points of the scale that count as confident. In the
    result, `measures` and `accuracy_paper` are the paper's, and the rest is recommended; see the functions of the same
    names.

    >>> rng = np.random.default_rng(0)
    >>> annotators, truth = np.repeat(np.arange(50), 4), np.tile([0, 1], 100)
    >>> ratings, texts = rng.integers(1, 5, 200), rng.integers(0, 30, 200)
    >>> cell = human_likeness(ratings, truth, annotators, texts, rng=rng, sensitivity_resamples=99)
    >>> cell.measures.n, cell.accuracy.n, cell.accuracy_paper.test.df
    (200, 50, 49)
    """
    says = ratings_to_machine_answers(ratings, threshold=threshold)
    correct = score_correct_answers(says, is_machine)
    drawn: dict[str, Any] = {"level": level, "sensitivity_resamples": sensitivity_resamples, "rng": rng}
    return HumanLikeness(
        measures=detection_measures(ratings, is_machine, threshold=threshold, confident_ratings=confident_ratings),
        accuracy_paper=mean_annotator_accuracy(correct, annotators, level=level),
        accuracy=clustered_accuracy(correct, annotators, items, level=level),
        sensitivity=marginal_d_prime(says, is_machine, annotators, items, **drawn),
        criterion=marginal_criterion(says, is_machine, annotators, items, **drawn),
        auc=graded_auc(ratings, is_machine, annotators, items, **drawn),
        share_human=share_answered_human(says, annotators, items, level=level),
        bias=human_answer_bias(says, is_machine, annotators, items, level=level),
    )
