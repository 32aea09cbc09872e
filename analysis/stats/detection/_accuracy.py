"""Accuracy, the share of "human" answers, and their change with confidence and time."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, clusters, groups, power
from analysis.stats.arrays import MIN_SPREAD, binary_vector, group_sums, label_codes_where, validate_level, vector
from analysis.stats.detection._answers import checked_answers_and_truths, one_or_two_way_clustered_mean
from analysis.stats.detection._measures import accuracy_by_annotator
from analysis.stats.results import Estimate


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
    detectable = power.t_test_detectable_difference(n, sd=result.detail["se"] * math.sqrt(n), significance=1 - level)
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
    return groups.cell_contrast(
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
    se = math.sqrt(clusters.cv3_variance(sums, squares))
    df = max(1.0, clusters.effective_n_clusters(squares) - 1)
    result = clusters.t_estimate(estimate, se, df, fewest_clusters=n, level=level, method="cv3_t", null=0.0, **common)
    return replace(result, warnings=clusters.cluster_warnings(sizes[moving], name="annotator"))
