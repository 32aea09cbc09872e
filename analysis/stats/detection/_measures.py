"""The confusion table, d' and criterion from counts, and histograms of the answers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray, binary_vector, label_codes, vector
from analysis.stats.detection._answers import checked_answers_and_truths, ratings_to_machine_answers
from analysis.stats.results import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionMeasures(Record):
    """Counts with machine as the positive class, and shares from them; None if a denominator is 0.

    `share_confident` counts answers at the ends of the scale; None if only the class is known. Precision and accuracy
    depend on `share_machine`, so the counts are stored too.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int
    n: int
    accuracy: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    specificity: float | None
    balanced_accuracy: float | None
    share_human: float | None
    share_machine: float | None
    share_confident: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalDetection(Record):
    """Sensitivity and criterion from four counts, with standard errors for independent answers.

    Rates have the log-linear correction. `se_d_prime` and `se_criterion` ignore that answers share annotators and
    texts: for an interval use `sensitivity`.
    """

    hit_rate: float
    false_alarm_rate: float
    d_prime: float
    criterion: float
    se_d_prime: float
    se_criterion: float
    n_machine: int
    n_human: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorScores(Record):
    """The share of correct answers of each annotator, sorted by annotator."""

    annotators: tuple[Any, ...]
    accuracies: FloatArray
    n_correct: IntArray
    n_items: IntArray


def measures_from_counts(
    true_positives: int,
    false_positives: int,
    false_negatives: int,
    true_negatives: int,
    *,
    n_confident: int | None = None,
) -> DetectionMeasures:
    """Compute the detection measures of a confusion table with machine as the positive class.

    The measures are columns of Tables 1 and 2 of Clark et al. 2021: precision = TP / (TP + FP), recall = TP / (TP +
    FN), F1 = 2 TP / (2 TP + FP + FN), specificity = TN / (TN + FP), balanced accuracy = (recall + specificity) / 2. A
    measure is None if its denominator is 0. `n_confident` counts the confident answers, so it is at most the number of
    answers.

    >>> result = measures_from_counts(37, 31, 63, 69)
    >>> result.accuracy, result.recall, round(result.f1, 4), result.share_human
    (0.53, 0.37, 0.4405, 0.66)
    """
    counts = {
        "true_positives": true_positives,
        "false_positives": false_positives,
        "false_negatives": false_negatives,
        "true_negatives": true_negatives,
    }
    n = sum(counts.values())
    for name, count in (*counts.items(), ("n_confident", n_confident or 0)):
        if not 0 <= count <= n:
            raise ValueError(f"{name}: {count} is not a count of at most {n} answers")
    recall = _share(true_positives, true_positives + false_negatives)
    specificity = _share(true_negatives, true_negatives + false_positives)
    return DetectionMeasures(
        **counts,
        n=n,
        accuracy=_share(true_positives + true_negatives, n),
        precision=_share(true_positives, true_positives + false_positives),
        recall=recall,
        f1=_share(2 * true_positives, 2 * true_positives + false_positives + false_negatives),
        specificity=specificity,
        balanced_accuracy=None if recall is None or specificity is None else (recall + specificity) / 2,
        share_human=_share(true_negatives + false_negatives, n),
        share_machine=_share(true_positives + false_negatives, n),
        share_confident=None if n_confident is None else _share(n_confident, n),
    )


def detection_measures(
    ratings: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    *,
    threshold: float = 2.5,
    confident_ratings: tuple[float, float] = (1, 4),
) -> DetectionMeasures:
    """Detection measures of ratings, pooled over annotators; see `measures_from_counts`.

    Parameters
    ----------
    ratings : array_like, shape (n_rows,)
        Ratings; missing ones are left out.
    is_machine : array_like, shape (n_rows,)
        1 for a machine text, 0 for a human text.
    threshold : float, default 2.5
        As in `ratings_to_machine_answers`.
    confident_ratings : tuple[float, float], default (1, 4)
        Points of the scale that count as confident.

    Returns
    -------
    DetectionMeasures
        The measures.

    Examples
    --------
    >>> result = detection_measures([4, 3, 1, 2, 1], [1, 0, 1, 0, 0])
    >>> result.true_positives, result.accuracy, result.share_confident
    (1, 0.6, 0.6)
    """
    array = vector(ratings, "ratings")
    answers, truths = checked_answers_and_truths(ratings_to_machine_answers(array, threshold=threshold), is_machine)
    table = [int(np.sum((answers == answer) & (truths == truth))) for answer, truth in ((1, 1), (1, 0), (0, 1), (0, 0))]
    return measures_from_counts(*table, n_confident=int(np.isin(array, confident_ratings).sum()))


def accuracy_by_annotator(correct: npt.ArrayLike, annotators: npt.ArrayLike) -> AnnotatorScores:
    """Share of correct answers of each annotator, the paper's unit of analysis.

    Parameters
    ----------
    correct : array_like, shape (n_rows,)
        1 if the answer was correct, else 0; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.

    Returns
    -------
    AnnotatorScores
        The scores. An annotator without an answer is left out.

    Examples
    --------
    >>> accuracy_by_annotator([1, 0, 1, 1], ["a", "a", "b", "b"]).accuracies.tolist()
    [0.5, 1.0]
    """
    array = binary_vector(correct, "correct")
    labels = np.asarray(annotators)
    positions, _ = label_codes(labels, "annotators", len(array))
    is_observed = ~np.isnan(array)
    observed, annotator_codes = labels[is_observed], positions[is_observed]
    _, first, inverse = np.unique(annotator_codes, return_index=True, return_inverse=True)
    n_items = np.bincount(inverse, minlength=len(first))
    n_correct = np.rint(np.bincount(inverse, array[is_observed], minlength=len(first))).astype(np.int64)
    return AnnotatorScores(
        annotators=tuple(observed[first].tolist()),
        accuracies=n_correct / np.maximum(1, n_items),
        n_correct=n_correct,
        n_items=np.asarray(n_items, dtype=np.int64),
    )


def signal_detection(hits: int, misses: int, false_alarms: int, correct_rejections: int) -> SignalDetection | None:
    """Sensitivity d' and criterion c from four counts.

    Parameters
    ----------
    hits, misses : int
        Answers "machine" and "human" to machine texts.
    false_alarms, correct_rejections : int
        Answers "machine" and "human" to human texts.

    Returns
    -------
    SignalDetection or None
        d' and c, or None without machine texts or without human texts.

    Raises
    ------
    ValueError
        If a count is negative.

    Notes
    -----
    H = (hits + 1/2) / (N_m + 1) and F = (false alarms + 1/2) / (N_h + 1); d' = z(H) - z(F); c = -(z(H) + z(F)) / 2,
    positive if "human" is preferred. Var d' = H (1 - H) / (N_m phi(zH)^2) + F (1 - F) / (N_h phi(zF)^2), with the
    corrected rates and the raw N; Var c is a quarter of it.

    References
    ----------
    Hautus 1995 (correction); Gourevitch and Galanter 1967 (variance).

    Examples
    --------
    >>> result = signal_detection(36, 64, 40, 60)
    >>> round(result.d_prime, 4), round(result.criterion, 4), round(result.se_d_prime, 4)
    (-0.104, 0.3028, 0.1803)
    """
    for name, count in (
        ("hits", hits),
        ("misses", misses),
        ("false_alarms", false_alarms),
        ("correct_rejections", correct_rejections),
    ):
        if count < 0:
            raise ValueError(f"{name}: {count} is negative")
    n_machine, n_human = hits + misses, false_alarms + correct_rejections
    if min(n_machine, n_human) == 0:
        return None
    rates = (hits + 0.5) / (n_machine + 1), (false_alarms + 0.5) / (n_human + 1)
    z_hit, z_false = (float(special.ndtri(rate)) for rate in rates)
    variance = sum(
        rate * (1 - rate) / (n * (math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)) ** 2)
        for rate, n, z in ((rates[0], n_machine, z_hit), (rates[1], n_human, z_false))
    )
    return SignalDetection(
        hit_rate=rates[0],
        false_alarm_rate=rates[1],
        d_prime=z_hit - z_false,
        criterion=-(z_hit + z_false) / 2,
        se_d_prime=math.sqrt(variance),
        se_criterion=math.sqrt(variance) / 2,
        n_machine=n_machine,
        n_human=n_human,
    )


def correct_count_histograms_by_n_items(correct: npt.ArrayLike, annotators: npt.ArrayLike) -> list[dict[str, Any]]:
    """Count the annotators with 0, 1, .. all texts correct, and compute the numbers expected by guessing.

    A row is 1 if the answer was correct, else 0, and NaN if it is missing. There is one dict for each number of texts:
    "n_items", "n_annotators", "counts" (by number correct) and "expected_by_chance", as in Figures 3 and 4 of Clark et
    al. 2021.

    >>> correct_count_histograms_by_n_items([1, 1, 0, 1, 0, 0], [1, 1, 2, 2, 3, 3])
    [{'n_items': 2, 'n_annotators': 3, 'counts': [1, 1, 1], 'expected_by_chance': [0.75, 1.5, 0.75]}]
    """
    scores = accuracy_by_annotator(correct, annotators)
    results = []
    for n_items in sorted(set(scores.n_items.tolist())):
        own_counts = scores.n_correct[scores.n_items == n_items]
        chance = [float(special.binom(n_items, right)) / 2.0**n_items * len(own_counts) for right in range(n_items + 1)]
        results.append(
            {
                "n_items": n_items,
                "n_annotators": len(own_counts),
                "counts": np.bincount(own_counts, minlength=n_items + 1).tolist(),
                "expected_by_chance": chance,
            }
        )
    return results


def _share(count: int, total: int) -> float | None:
    return None if total == 0 else count / total
