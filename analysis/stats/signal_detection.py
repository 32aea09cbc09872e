"""Signal detection: the confusion table, d' and criterion of one annotator or within annotators, and the ROC curve."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats import basic, bootstrap, cluster_variances, clusters
from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    IntArray,
    binary_vector,
    group_sums,
    label_codes,
    label_codes_where,
    validate_level,
    vector,
)
from analysis.stats.results import Estimate, Record

# Answers as arrays of 0 and 1, and their sums for each annotator.


def ratings_to_machine_answers(ratings: npt.ArrayLike, *, threshold: float = 2.5) -> FloatArray:
    """Convert ratings to 1 (machine) above the threshold and 0 (human) below it.

    NaN is missing and stays NaN. A rating on the threshold raises ValueError, because a neutral point belongs to
    neither answer. Clark et al. 2021, footnote 6, put four points in two bins.

    >>> ratings_to_machine_answers([1, 2, 3, 4, None]).tolist()
    [0.0, 0.0, 1.0, 1.0, nan]
    """
    array = vector(ratings, "ratings")
    neutral = np.flatnonzero(array == threshold)
    if len(neutral):
        raise ValueError(f"ratings: row {int(neutral[0])} lies on the threshold {threshold:g}")
    return np.where(np.isnan(array), np.nan, (array > threshold).astype(np.float64))


def score_correct_answers(answered_machine: npt.ArrayLike, is_machine: npt.ArrayLike) -> FloatArray:
    """Return 1 for each correct answer and 0 for each wrong one, compared with the truth.

    An answer is 1 for "machine", 0 for "human", and NaN if it is missing, where the result is NaN, too. The truth is 1
    for a machine text and 0 for a human text.

    >>> score_correct_answers([1, 0, 1, None], [1, 1, 0, 0]).tolist()
    [1.0, 0.0, 0.0, nan]
    """
    answers, truths = checked_answers_and_truths(answered_machine, is_machine)
    return np.where(np.isnan(answers), np.nan, (answers == truths).astype(np.float64))


def checked_truths(is_machine: npt.ArrayLike, length: int) -> FloatArray:
    """Return 1 for machine texts and 0 for human texts. Raise ValueError with the row for a missing one."""
    truths = binary_vector(is_machine, "is_machine")
    if len(truths) != length:
        raise ValueError(f"is_machine: {len(truths)} values where there are {length} answers")
    if np.isnan(truths).any():
        raise ValueError(f"is_machine: row {int(np.flatnonzero(np.isnan(truths))[0])} is missing")
    return truths


def checked_answers_and_truths(
    answered_machine: npt.ArrayLike, is_machine: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the answers (NaN is missing) and the truths."""
    answers = binary_vector(answered_machine, "says")
    return answers, checked_truths(is_machine, len(answers))


def one_or_two_way_clustered_mean(
    values: FloatArray, annotators: npt.ArrayLike, items: npt.ArrayLike | None, **options: Any
) -> Estimate:
    """Return the mean clustered by annotator and, if given, by text."""
    if items is None:
        return clusters.clustered_mean(values, annotators, **options)
    mean = clusters.two_way_clustered_mean(values, annotators, items, **options)
    settings = {**mean.settings, "population": cluster_variances.PEOPLE_AND_PROMPTS}
    return replace(mean, settings=settings, _answers=clusters.answers_of_mean(values, annotators, items, **options))


def n_rows_and_signal_counts_by_annotator(
    answered_machine: npt.ArrayLike, is_machine: npt.ArrayLike, annotators: npt.ArrayLike
) -> tuple[int, FloatArray]:
    """Return the number of rows and the counts of each annotator, (n_annotators, 4).

    The columns are hits, machine texts, false alarms and human texts.
    """
    answers, truths = checked_answers_and_truths(answered_machine, is_machine)
    is_observed = ~np.isnan(answers)
    annotator_codes, n = label_codes_where(annotators, "annotators", is_observed)
    observed, truth = answers[is_observed], truths[is_observed]
    columns = (observed * truth, truth, observed * (1 - truth), 1 - truth)
    return int(is_observed.sum()), np.stack([group_sums(annotator_codes, column, n) for column in columns], axis=1)


def bootstrap_column_sums(table: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return the column sums over resampled rows (annotators), drawn in blocks as counts of the distinct rows."""
    patterns, counts = np.unique(table, axis=0, return_counts=True)
    n = len(table)
    sizes = [min(bootstrap.BLOCK, resamples - start) for start in range(0, resamples, bootstrap.BLOCK)]
    blocks = [rng.multinomial(n, counts / n, size=size).astype(np.float64) @ patterns for size in sizes]
    return np.concatenate(blocks) if blocks else np.empty((0, table.shape[1]))


# The confusion table, d' and criterion from counts, and histograms of the answers.


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


# d' within annotators: with a random criterion, or with each annotator as a stratum.


NODES = 41
# Bounds of the spread of criteria: above the upper one all answers are equal, below the lower one it counts as 0.
SPREAD = (1e-3, 6.0)


def mantel_haenszel_log_odds_ratio(
    answered_machine: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the Mantel-Haenszel log odds ratio of saying "machine" to a machine text, with each annotator as a stratum.

    An answer is 1 for "machine", 0 for "human", and NaN if it is missing. The estimate is log(sum h (N_h - f) / N / sum
    (N_m - h) f / N), over annotators with h hits on N_m machine texts and f false alarms on N_h human texts, N = N_m +
    N_h (Mantel and Haenszel 1959). Each annotator's criterion cancels, without an assumption about its distribution,
    and the estimate is consistent for many annotators with five texts each (Breslow 1981 for many small strata). The
    interval leaves out one annotator at a time. `n` counts annotators who saw both kinds and gave both answers.

    >>> says, truth = [1, 0, 1, 0, 0, 0, 1, 1, 1, 0], [1, 0, 0, 1, 1, 0, 1, 0, 1, 0]
    >>> round(mantel_haenszel_log_odds_ratio(says, truth, np.repeat([1, 2], 5)).estimate, 4)
    0.9163
    """
    validate_level(level)
    table = n_rows_and_signal_counts_by_annotator(answered_machine, is_machine, annotators)[1]
    hits, n_machine, false, n_human = table.T
    size = np.maximum(1.0, n_machine + n_human)
    agreeing, crossing = hits * (n_human - false) / size, (n_machine - hits) * false / size
    informative = (n_machine > 0) & (n_human > 0) & (hits + false > 0) & (hits + false < n_machine + n_human)
    agreeing, crossing = agreeing[informative], crossing[informative]
    n = int(informative.sum())
    common: dict[str, Any] = {
        "analysis": "humanlike.stratified",
        "estimand": "log odds ratio of saying machine, within annotators",
        "unit": "annotator",
        "n": n,
        "n_clusters": n,
        "n_rows": int(size[informative].sum()),
        "settings": {"level": level, "null": 0.0},
        "detail": {"n_uninformative": len(table) - n},
    }
    if n == 0:
        reason = "no annotator saw both kinds and gave both answers"
        return Estimate(status="no_data" if len(table) == 0 else "not_identified", reason=reason, **common)
    for_it, against = float(agreeing.sum()), float(crossing.sum())
    if min(for_it, against) <= 0:
        return Estimate(status="separation", reason="no annotator erred, or none was right", **common)
    estimate = math.log(for_it / against)
    remaining = for_it - agreeing, against - crossing
    if n < 2 or min(remaining[0].min(), remaining[1].min()) <= MIN_SPREAD:
        reason = "one annotator alone decides the odds"
        return Estimate(status="n_lt_2", reason=reason, estimate=estimate, **common)
    without = np.log(remaining[0] / remaining[1])
    se = math.sqrt((n - 1) / n * float(np.sum((without - estimate) ** 2)))
    return clusters.t_estimate(estimate, se, n - 1, fewest_clusters=n, level=level, method="cv3_t", null=0.0, **common)


def random_criterion_d_prime(
    answered_machine: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate d' within annotators with normally distributed criteria, by a probit model with a random intercept.

    An answer is 1 for "machine", 0 for "human", and NaN if it is missing. P("machine") = Phi(d' / 2 - c) for a machine
    text and Phi(-d' / 2 - c) for a human text, with normal c and the same d' for all (DeCarlo 1998, Signal detection
    theory and generalized linear models). The likelihood is integrated by Gauss-Hermite quadrature, the interval uses
    the observed information, and texts are taken as fixed. `detail` has the mean and sd of the criterion and the
    marginal d' = d' / sqrt(1 + sd^2). The status is `separation` if one kind of text got one answer only.

    >>> rng = np.random.default_rng(0)
    >>> annotators, truth = np.repeat(np.arange(300), 10), np.tile([0, 1], 1500)
    >>> noise = rng.normal(0, 1, 3000) - np.repeat(rng.normal(0, 0.8, 300), 10)
    >>> result = random_criterion_d_prime(noise + truth > 0.5, truth, annotators)
    >>> abs(result.estimate - 1) < 0.15, result.detail["marginal_d_prime"] < result.estimate
    (True, True)
    """
    validate_level(level)
    n_rows, table = n_rows_and_signal_counts_by_annotator(answered_machine, is_machine, annotators)
    hits, n_machine, false, n_human = table.sum(axis=0) if len(table) else np.zeros(4)
    common: dict[str, Any] = {
        "analysis": "humanlike.random_criterion",
        "estimand": "d' within annotators (random criterion)",
        "unit": "annotator",
        "n": len(table),
        "n_clusters": len(table),
        "n_rows": n_rows,
        "settings": {"level": level, "null": 0.0, "nodes": NODES},
    }
    if min(n_machine, n_human) == 0:
        status = "no_data" if n_rows == 0 else "not_identified"
        return Estimate(status=status, reason="d' needs texts of both kinds", **common)
    if min(hits, n_machine - hits, false, n_human - false) == 0:
        return Estimate(status="separation", reason="one kind of text got one answer only", **common)
    if len(table) < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread of criteria", **common)
    patterns, weights = np.unique(table, axis=0, return_counts=True)
    start = signal_detection(int(hits), int(n_machine - hits), int(false), int(n_human - false))
    fit = _fit_criteria(patterns, weights.astype(np.float64), start)
    if isinstance(fit, str):
        return Estimate(status="failed", reason=fit, **common)
    (d_prime, centre, spread), se = fit
    detail = {"criterion": centre, "criterion_sd": spread, "marginal_d_prime": d_prime / math.sqrt(1 + spread**2)}
    null = 0.0 if len(table) >= cluster_variances.TOO_FEW_CLUSTERS else None
    return basic.wald_estimate(d_prime, se, null=null, level=level, detail=detail, **common)


def _fit_criteria(
    patterns: FloatArray, weights: FloatArray, start: SignalDetection | None
) -> tuple[tuple[float, float, float], float] | str:
    """Return the maximum-likelihood (d', mean criterion, its sd) and the standard error of d', or a reason."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(NODES)
    log_masses = np.log(masses / masses.sum())
    hits, n_machine, false, n_human = patterns.T[:, :, None]

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log-likelihood and its gradient."""
        d_prime, centre, log_spread = parameters
        spread = math.exp(log_spread)
        criteria = (centre + spread * nodes)[None, :]
        logs, slopes = log_masses, []
        for shift, n_said_machine, n_texts in ((d_prime / 2, hits, n_machine), (-d_prime / 2, false, n_human)):
            z = shift - criteria
            yes, no = special.log_ndtr(z), special.log_ndtr(-z)
            logs = logs + n_said_machine * yes + (n_texts - n_said_machine) * no
            density = -(z**2) / 2 - math.log(2 * math.pi) / 2
            slopes.append(n_said_machine * np.exp(density - yes) - (n_texts - n_said_machine) * np.exp(density - no))
        # Subtracting the largest keeps the likelihood of a long pattern from vanishing.
        largest = logs.max(axis=1, keepdims=True)
        parts = np.exp(logs - largest)
        sums = parts.sum(axis=1, keepdims=True)
        parts = weights[:, None] * parts / sums
        by_d, by_criterion = (slopes[0] - slopes[1]) / 2, -(slopes[0] + slopes[1])
        gradient = [np.sum(parts * move) for move in (by_d, by_criterion, by_criterion * spread * nodes)]
        return -float(weights @ (np.log(sums) + largest)[:, 0]), -np.array(gradient)

    low, high = (math.log(end) for end in SPREAD)
    first = (0.0, 0.0) if start is None else (start.d_prime, start.criterion)
    best = min(
        (
            optimize.minimize(
                loss, (*first, guess), jac=True, method="L-BFGS-B", bounds=[(-12, 12), (-12, 12), (low, high)]
            )
            for guess in (math.log(0.3), math.log(1.0))
        ),
        key=lambda fitted: float(fitted.fun),
    )
    estimates = np.asarray(best.x, dtype=np.float64)
    if estimates[2] > high - 1e-6:
        return "criteria are too widely spread to tell d' from them"
    # Without spread its information is 0, and d' is that of the pooled model.
    free = 2 if estimates[2] < math.log(0.02) else 3
    information = _hessian(loss, estimates, free)
    if not np.isfinite(information).all() or float(np.linalg.eigvalsh(information)[0]) <= 0:
        return "the fit has no finite standard error"
    se = math.sqrt(float(np.linalg.inv(information)[0, 0]))
    spread = 0.0 if free == 2 else math.exp(float(estimates[2]))
    return (float(estimates[0]), float(estimates[1]), spread), se


def _hessian(loss: Callable[[FloatArray], tuple[float, FloatArray]], at: FloatArray, free: int) -> FloatArray:
    """Return the second derivatives by the first `free` parameters, by central differences of the gradient."""
    step = 1e-5
    rows = [
        (loss(at + step * unit)[1] - loss(at - step * unit)[1])[:free] / (2 * step) for unit in np.eye(len(at))[:free]
    ]
    return np.asarray((np.array(rows) + np.array(rows).T) / 2, dtype=np.float64)


# The clustered area under the ROC curve of ratings.


def graded_auc(
    ratings: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    sensitivity_resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate the area under the ROC curve: P(a machine text is rated more machine-like than a human text).

    Ties count half, a higher rating means machine, and a missing rating is NaN. The area needs no threshold, so it does
    not depend on the criterion; it is tested against .5. The standard error is the jackknife over annotators (CV3);
    with five texts or more in `items` it is two-way: the jackknife variances over annotators and over texts are added,
    less the sum over pairs of annotator and text of DeLong's components (Obuchowski 1997, Nonparametric analysis of
    clustered ROC curve data; DeLong et al. 1988). The sensitivities are the bootstrap over annotators, and the same
    probability within annotators.

    >>> ratings, truth = [3, 4, 2, 4, 1, 1, 2, 2, 3, 1], [1] * 5 + [0] * 5
    >>> round(graded_auc(ratings, truth, [*range(5)] * 2, rng=np.random.default_rng(0), sensitivity_resamples=99).estimate, 9)
    0.74
    """
    validate_level(level)
    array, truths = vector(ratings, "ratings"), checked_truths(is_machine, len(np.asarray(ratings)))
    item_codes = None if items is None else label_codes(np.asarray(items), "items", len(array))[0]
    is_observed = ~np.isnan(array)
    observed, truths, n_rows = array[is_observed], truths[is_observed], int(is_observed.sum())
    annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
    common: dict[str, Any] = {
        "analysis": "humanlike.auc",
        "estimand": "P(machine rated above human) + half the ties",
        "unit": "annotator",
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": n_rows,
        "settings": {"null": 0.5, "level": level, "resamples": sensitivity_resamples},
    }
    n_machine, n_human = int(truths.sum()), int(n_rows - truths.sum())
    if min(n_machine, n_human) == 0:
        status = "no_data" if n_rows == 0 else "not_identified"
        return Estimate(status=status, reason="needs ratings of texts of both kinds", **common)
    points, point_codes = np.unique(observed, return_inverse=True)
    k = len(points)
    keys = annotator_codes * k + point_codes
    machine = group_sums(keys, truths, n_annotators * k).reshape(-1, k)
    human = group_sums(keys, 1 - truths, n_annotators * k).reshape(-1, k)
    estimate = float(_aucs(machine.sum(axis=0)[None], human.sum(axis=0)[None])[0])
    detail: dict[str, Any] = {"n_machine": n_machine, "n_human": n_human}
    common["detail"] = detail
    if n_annotators < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=estimate, **common)
    if k == 1:
        return Estimate(status="zero_variance", reason="all ratings are equal", estimate=0.5, **common)
    by_annotator = _jackknife(machine, human, estimate)
    if by_annotator is None:
        reason = "one annotator alone rated a kind of text"
        return Estimate(status="not_identified", reason=reason, estimate=estimate, **common)
    (variance, df), method, has_enough = by_annotator, "cv3_t", n_annotators >= cluster_variances.TOO_FEW_CLUSTERS
    item_codes, n_items = (None, 0) if item_codes is None else label_codes(item_codes[is_observed], "items", n_rows)
    is_two_way = item_codes is not None and n_items >= cluster_variances.TOO_FEW_ITEMS
    if item_codes is not None and is_two_way:
        keys = item_codes * k + point_codes
        of_machine = group_sums(keys, truths, n_items * k).reshape(-1, k)
        by_item = _jackknife(of_machine, group_sums(keys, 1 - truths, n_items * k).reshape(-1, k), estimate)
        if by_item is None:
            reason = "a kind has only one text; add texts"
            return Estimate(status="not_identified", reason=reason, estimate=estimate, **common)
        # What each pair of annotator and text moves the area by.
        placements = _placements(machine.sum(axis=0), human.sum(axis=0))
        moves = np.where(truths > 0, (placements[0][point_codes] - estimate) / n_machine, 0.0)
        moves += np.where(truths > 0, 0.0, (placements[1][point_codes] - estimate) / n_human)
        pairs, _ = label_codes(annotator_codes * n_items + item_codes, "pairs", n_rows)
        by_pair = float(np.sum(np.bincount(pairs, moves) ** 2))
        spread, df = cluster_variances.combine_two_way_variances((variance, by_item[0]), by_pair, (df, by_item[1]))
        variance, method = spread.variance, "two_way_cv3_t"
        detail |= {**spread.detail(), "n_items": n_items}
    common["settings"] = {
        **common["settings"],
        "population": cluster_variances.PEOPLE_AND_PROMPTS if is_two_way else cluster_variances.PEOPLE,
    }
    drawn = bootstrap_column_sums(np.hstack([machine, human]), sensitivity_resamples, rng)
    draws = _aucs(drawn[:, :k], drawn[:, k:])
    named = {**common, "analysis": "humanlike.auc.bootstrap"}
    resampled = bootstrap.estimate_with_percentile_interval(draws, level=level, estimate=estimate, **named)
    result = clusters.t_estimate(
        estimate,
        math.sqrt(variance),
        df,
        fewest_clusters=None,
        level=level,
        method=method,
        null=0.5 if has_enough else None,
        bounds=(0.0, 1.0),
        **common,
    )
    warned = cluster_variances.cluster_warnings(np.bincount(annotator_codes), name="annotator")
    within = _within_auc(machine, human, level, {**common, "analysis": "humanlike.auc.within", "detail": {}})
    return replace(result, sensitivity=(resampled, within), warnings=warned)


def _jackknife(machine: FloatArray, human: FloatArray, estimate: float) -> tuple[float, float] | None:
    """Return the CV3 variance of the AUC and its degrees of freedom, from the counts (G, n_points) of each cluster.

    None if one cluster alone has all texts of a kind.
    """
    sizes = machine.sum(axis=1), human.sum(axis=1)
    if any(float(size.max()) == float(size.sum()) for size in sizes):
        return None
    without = _aucs(machine.sum(axis=0) - machine, human.sum(axis=0) - human)
    variance = (len(without) - 1) / len(without) * float(np.sum((without - estimate) ** 2))
    # Each answer about a kind has the weight 1 / (number of answers about the kind), so its variance is that squared.
    shares = sizes[0] / float(sizes[0].sum()) ** 2 + sizes[1] / float(sizes[1].sum()) ** 2
    return variance, max(1.0, cluster_variances.effective_n_clusters(shares) - 1)


def _placements(machine: FloatArray, human: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return, at each point, the share of human answers below it and of machine answers above it; ties count half."""
    below = (np.cumsum(human) - human / 2) / human.sum()
    above = 1 - (np.cumsum(machine) - machine / 2) / machine.sum()
    return below, above


def _aucs(machine: FloatArray, human: FloatArray) -> FloatArray:
    """Return the AUC of each row of counts (n, n_points); NaN if a kind of text is missing."""
    below = np.cumsum(human, axis=1) - human / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        areas = np.sum(machine * below, axis=1) / (machine.sum(axis=1) * human.sum(axis=1))
    return np.asarray(areas, dtype=np.float64)


def _within_auc(machine: FloatArray, human: FloatArray, level: float, common: dict[str, Any]) -> Estimate:
    pairs = machine.sum(axis=1) * human.sum(axis=1)
    wins = np.sum(machine * (np.cumsum(human, axis=1) - human / 2), axis=1)
    wins, pairs = wins[pairs > 0], pairs[pairs > 0]
    n = len(pairs)
    name = "P(machine rated above human by the same annotator) + half the ties"
    common = {**common, "estimand": name, "n": n, "n_clusters": n, "settings": {"null": 0.5, "level": level}}
    if n == 0:
        return Estimate(status="not_identified", reason="no annotator rated both kinds of text", **common)
    estimate = float(wins.sum() / pairs.sum())
    if n == 1:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=estimate, **common)
    se, df = (
        math.sqrt(cluster_variances.cv3_variance(wins, pairs)),
        max(1.0, cluster_variances.effective_n_clusters(pairs) - 1),
    )
    return clusters.t_estimate(
        estimate, se, df, fewest_clusters=n, level=level, method="cv3_t", null=0.5, bounds=(0.0, 1.0), **common
    )
