"""Human or machine: how well annotators tell the two apart, and which answer they lean to.

Accuracy mixes two things that training changes separately: sensitivity, how far machine and human texts lie apart in
an annotator's mind, and the criterion, how readily they say "machine". Signal detection separates them. A machine text
is the signal throughout: calling it one is a hit, calling a human text one a false alarm.

Answers are rows: `ratings` on the scale (1 definitely human .. 4 definitely machine) or `says_machine` (0 or 1),
`is_machine` the truth, `annotators` and `items` (texts) who and what. Annotators and texts are both samples; where
`items` are given the claim is about texts like these, otherwise about these very texts.

Source: Clark et al. 2021, All That's 'Human' Is Not Gold; signal detection after Macmillan and Creelman 2005.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats import basic, bootstrap, clusters, groups, power
from analysis.stats.arrays import DEGENERATE, FloatArray, IntArray, codes, kept_codes, refuse_level, totals, vector
from analysis.stats.results import Estimate, Record

RESAMPLES = bootstrap.RESAMPLES
NODES = 41
# Criteria more spread than this make everybody answer one thing only; less is none.
SPREAD = (1e-3, 6.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionMeasures(Record):
    """Counts with machine as the positive class, and the shares that follow; None where a denominator is 0.

    `share_confident` is that of answers at the ends of the scale, None where only the class is known. Precision and
    accuracy depend on `share_machine`, so the counts are kept beside them.
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

    Rates are log-linearly corrected. `se_d_prime` and `se_criterion` ignore that answers share annotators and texts:
    for an interval use `sensitivity`.
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
    """One entry an annotator, sorted: their share of correct answers, and the group (condition) that they were in."""

    annotators: tuple[Any, ...]
    accuracies: FloatArray
    n_correct: IntArray
    n_items: IntArray
    groups: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionSensitivity(Record):
    """d' and criterion of each condition, and what each other condition adds to the reference's."""

    sensitivity: tuple[Estimate, ...]
    criterion: tuple[Estimate, ...]
    sensitivity_differences: tuple[Estimate, ...]
    criterion_differences: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanLikeness(Record):
    """One cell of a human-likeness study: the paper's row, and what is recommended beside it."""

    measures: DetectionMeasures
    accuracy_paper: Estimate
    accuracy: Estimate
    sensitivity: Estimate
    criterion: Estimate
    auc: Estimate
    share_human: Estimate
    bias: Estimate


@dataclass(frozen=True, slots=True)
class _Probits:
    """What is made of z(H) and z(F): their weights, of machine and of human texts, and what it is called."""

    estimand: str
    machine: float
    human: float


SENSITIVITY = _Probits("marginal d' (pooled over annotators)", 1.0, -1.0)
CRITERION = _Probits("marginal criterion c (above 0: leans to human)", -0.5, -0.5)


def says_machine(ratings: npt.ArrayLike, *, threshold: float = 2.5) -> FloatArray:
    """Ratings binned into 1 (machine) above the threshold and 0 (human) below it, NaN where missing.

    Raises ValueError for a rating that lies on the threshold: a neutral point belongs to neither bin.

    Source: Clark et al. 2021, footnote 6: four points in two bins.

    >>> says_machine([1, 2, 3, 4, None]).tolist()
    [0.0, 0.0, 1.0, 1.0, nan]
    """
    array = vector(ratings, "ratings")
    neutral = np.flatnonzero(array == threshold)
    if len(neutral):
        raise ValueError(f"ratings: row {int(neutral[0])} lies on the threshold {threshold:g}")
    return np.where(np.isnan(array), np.nan, (array > threshold).astype(np.float64))


def is_correct(says: npt.ArrayLike, is_machine: npt.ArrayLike) -> FloatArray:
    """1 where the answer ("machine" 1, "human" 0) is the truth, 0 where not, NaN where missing; shape (n_rows,).

    >>> is_correct([1, 0, 1, None], [1, 1, 0, 0]).tolist()
    [1.0, 0.0, 0.0, nan]
    """
    answers, truths = _classes(says, is_machine)
    return np.where(np.isnan(answers), np.nan, (answers == truths).astype(np.float64))


def measures_from_counts(
    true_positives: int,
    false_positives: int,
    false_negatives: int,
    true_negatives: int,
    *,
    n_confident: int | None = None,
) -> DetectionMeasures:
    """Detection measures of a confusion table whose positive class is machine.

    precision = TP / (TP + FP), recall = TP / (TP + FN), F1 = 2 TP / (2 TP + FP + FN), specificity = TN / (TN + FP),
    balanced accuracy = (recall + specificity) / 2.

    Source: columns of Tables 1 and 2 of Clark et al. 2021.

    >>> found = measures_from_counts(37, 31, 63, 69)
    >>> found.accuracy, found.recall, round(found.f1, 4), found.share_human
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
    ratings: npt.ArrayLike, is_machine: npt.ArrayLike, *, threshold: float = 2.5, ends: tuple[float, float] = (1, 4)
) -> DetectionMeasures:
    """`measures_from_counts` of ratings, pooled over annotators; `ends` are the confident answers.

    `ratings` and `is_machine` have shape (n_rows,); missing ratings are left out.

    >>> found = detection_measures([4, 3, 1, 2, 1], [1, 0, 1, 0, 0])
    >>> found.true_positives, found.accuracy, found.share_confident
    (1, 0.6, 0.6)
    """
    array = vector(ratings, "ratings")
    answers, truths = _classes(says_machine(array, threshold=threshold), is_machine)
    table = [int(np.sum((answers == said) & (truths == truth))) for said, truth in ((1, 1), (1, 0), (0, 1), (0, 0))]
    return measures_from_counts(*table, n_confident=int(np.isin(array, ends).sum()))


def annotator_scores(
    correct: npt.ArrayLike, annotators: npt.ArrayLike, conditions: npt.ArrayLike | None = None
) -> AnnotatorScores:
    """Each annotator's share of correct answers, the paper's unit of analysis, with the condition they were in.

    `correct`, `annotators` and `conditions` have shape (n_rows,); an annotator without any answer is left out. Raises
    ValueError for an annotator in two conditions, who would belong to neither group of a comparison.

    >>> scores = annotator_scores([1, 0, 1, 1], ["a", "a", "b", "b"], ["none", "none", "examples", "examples"])
    >>> scores.accuracies.tolist(), scores.groups
    ([0.5, 1.0], ('none', 'examples'))
    """
    array = _answers(correct, "correct")
    labels = np.asarray(annotators)
    positions, _ = codes(labels, "annotators", len(array))
    here = ~np.isnan(array)
    kept, who = labels[here], positions[here]
    _, first, inverse = np.unique(who, return_index=True, return_inverse=True)
    n_items = np.bincount(inverse, minlength=len(first))
    n_correct = np.rint(np.bincount(inverse, array[here], minlength=len(first))).astype(np.int64)
    arms = None
    if conditions is not None:
        names = np.asarray(conditions)
        of, n_arms = codes(names, "conditions", len(array))
        pairs = np.unique(inverse * max(1, n_arms) + of[here])
        twice = np.flatnonzero(np.bincount(pairs // max(1, n_arms), minlength=len(first)) > 1)
        if len(twice):
            raise ValueError(f"conditions: annotator {kept[first[twice[0]]]} is in two of them")
        arms = tuple(names[here][first].tolist())
    return AnnotatorScores(
        annotators=tuple(kept[first].tolist()),
        accuracies=n_correct / np.maximum(1, n_items),
        n_correct=n_correct,
        n_items=np.asarray(n_items, dtype=np.int64),
        groups=arms,
    )


def accuracy_paper(
    correct: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    null: float = 0.5,
    level: float = 0.95,
    analysis: str = "humanlike.accuracy",
    unit: str = "annotator",
) -> Estimate:
    """The paper's accuracy: the mean over annotators of their shares correct, and a one-sample t test against chance.

    `correct` and `annotators` have shape (n_rows,). n annotators give n - 1 degrees of freedom: 389 for the 390 of the
    paper, which prints 388. Texts are taken as fixed. Several cells form a Bonferroni family (the paper: 15).

    Source: Clark et al. 2021, section 2.4, Tables 1 and 2.

    >>> result = accuracy_paper([1, 1, 0, 1, 0, 0, 1, 1, 1], [1, 1, 1, 2, 2, 2, 3, 3, 3])
    >>> round(result.estimate, 4), result.test.df, result.mode
    (0.6667, 2, 'paper')
    """
    return basic.one_sample(
        annotator_scores(correct, annotators).accuracies,
        null=null,
        level=level,
        bounds=(0.0, 1.0),
        analysis=analysis,
        estimand="mean accuracy of annotators",
        unit=unit,
        mode="paper",
    )


def accuracy(
    correct: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    null: float = 0.5,
    level: float = 0.95,
    tests: int = 1,
    analysis: str = "humanlike.accuracy",
    unit: str = "annotator",
) -> Estimate:
    """The share of correct answers with annotators and, where given, texts as clusters, tested against chance.

    All arrays have shape (n_rows,). By `clusters.two_way_mean` or, without items, `clusters.clustered_mean`.
    detail["detectable"] is the smallest distance from chance that this standard error would have found in 80 % of
    studies, at the first step of a Holm family of `tests`: what a result that is not significant leaves possible.

    >>> rng = np.random.default_rng(0)
    >>> result = accuracy(rng.random(300) < 0.6, np.repeat(np.arange(60), 5), rng.integers(0, 40, 300))
    >>> round(result.estimate, 3), result.detail["df"], result.detail["detectable"] > 0.05
    (0.547, 39.0, True)
    """
    result = _mean(
        _answers(correct, "correct"),
        annotators,
        items,
        null=null,
        level=level,
        bounds=(0.0, 1.0),
        analysis=analysis,
        estimand="share of correct answers",
        unit=unit,
    )
    if result.status != "ok":
        return result
    n = max(2, int(result.detail["df"]) + 1)
    found = power.detectable_effect(n, sd=result.detail["se"] * math.sqrt(n), significance=1 - level, tests=tests)
    return replace(result, detail={**result.detail, "detectable": found}, settings={**result.settings, "tests": tests})


def signal_detection(hits: int, misses: int, false_alarms: int, correct_rejections: int) -> SignalDetection | None:
    """d' and criterion from the four counts; None where machine or human texts are lacking.

    H = (hits + 1/2) / (N_m + 1) and F = (false alarms + 1/2) / (N_h + 1); d' = z(H) - z(F); c = -(z(H) + z(F)) / 2,
    positive where the lean is to "human". Var d' = H (1 - H) / (N_m phi(zH)^2) + F (1 - F) / (N_h phi(zF)^2), with
    the corrected rates and the raw N; Var c is a quarter of it.

    Source: Hautus 1995 (correction); Gourevitch and Galanter 1967 (variance).

    >>> found = signal_detection(36, 64, 40, 60)
    >>> round(found.d_prime, 4), round(found.criterion, 4), round(found.se_d_prime, 4)
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


def sensitivity(
    says: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "humanlike.sensitivity",
    unit: str = "annotator",
) -> Estimate:
    """Marginal d' with annotators (and texts) as clusters, and the test that it is 0: no difference was perceived.

    `says` (1 "machine", 0 "human"), `is_machine`, `annotators` and `items` have shape (n_rows,). Pooled over
    annotators it is the *marginal* d': annotators who all have d' = 1 with criteria spread by .8 pool to .78, and a
    training that only makes criteria alike raises it. So its sensitivities are `random_criterion` (d' within
    annotators) and `stratified_sensitivity`, beside the bootstrap over annotators. Interval and test are those of the
    probit contrast of the two cells (`groups.cell_contrast`), log-linearly corrected. Never d' of one annotator:
    from five texts the correction decides it.

    >>> rng = np.random.default_rng(0)
    >>> truth, who = rng.random(400) < 0.5, np.repeat(np.arange(80), 5)
    >>> result = sensitivity(rng.random(400) < np.where(truth, 0.7, 0.3), truth, who, rng=rng, resamples=199)
    >>> result.estimand, round(result.estimate, 1), [other.analysis.split(".")[-1] for other in result.sensitivity]
    ("marginal d' (pooled over annotators)", 1.0, ['bootstrap', 'random_criterion', 'stratified'])
    """
    more: dict[str, Any] = {"level": level, "unit": unit}
    result = _marginal(SENSITIVITY, says, is_machine, annotators, items, resamples, rng, analysis=analysis, **more)
    if not result.sensitivity:
        return result
    others = (
        random_criterion(says, is_machine, annotators, analysis=f"{analysis}.random_criterion", **more),
        stratified_sensitivity(says, is_machine, annotators, analysis=f"{analysis}.stratified", **more),
    )
    return replace(result, sensitivity=(*result.sensitivity, *others))


def criterion(
    says: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "humanlike.criterion",
    unit: str = "annotator",
) -> Estimate:
    """The criterion c = -(z(H) + z(F)) / 2, above 0 where annotators lean to "human", and the test that it is 0.

    As `sensitivity`, also marginal, with the bootstrap over annotators as its sensitivity.

    >>> rng = np.random.default_rng(1)
    >>> truth, who = rng.random(400) < 0.5, np.repeat(np.arange(80), 5)
    >>> criterion(rng.random(400) < 0.3, truth, who, rng=rng, resamples=199).interval.low > 0
    True
    """
    return _marginal(
        CRITERION, says, is_machine, annotators, items, resamples, rng, analysis=analysis, level=level, unit=unit
    )


def stratified_sensitivity(
    says: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
    analysis: str = "humanlike.stratified",
    unit: str = "annotator",
) -> Estimate:
    """The log odds ratio of saying "machine" to a machine text, each annotator a stratum.

    Mantel and Haenszel's log(sum h (N_h - f) / N / sum (N_m - h) f / N), over annotators with h hits on N_m machine
    and f false alarms on N_h human texts: whatever each one's criterion, it cancels. Nothing of how criteria are
    spread is assumed, and it stays consistent for many annotators with five texts each. Interval by leaving one
    annotator out. `n` counts annotators who saw both kinds and gave both answers; the others say nothing here.

    Source: Mantel and Haenszel 1959; Breslow 1981 for many small strata.

    >>> says, truth = [1, 0, 1, 0, 0, 0, 1, 1, 1, 0], [1, 0, 0, 1, 1, 0, 1, 0, 1, 0]
    >>> round(stratified_sensitivity(says, truth, np.repeat([1, 2], 5)).estimate, 4)
    0.9163
    """
    refuse_level(level)
    table = _annotator_counts(says, is_machine, annotators)[1]
    hits, n_machine, false, n_human = table.T
    size = np.maximum(1.0, n_machine + n_human)
    agreeing, crossing = hits * (n_human - false) / size, (n_machine - hits) * false / size
    informative = (n_machine > 0) & (n_human > 0) & (hits + false > 0) & (hits + false < n_machine + n_human)
    agreeing, crossing = agreeing[informative], crossing[informative]
    n = int(informative.sum())
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "log odds ratio of saying machine, within annotators",
        "unit": unit,
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
    left = for_it - agreeing, against - crossing
    if n < 2 or min(left[0].min(), left[1].min()) <= DEGENERATE:
        reason = "one annotator alone decides the odds"
        return Estimate(status="n_lt_2", reason=reason, estimate=estimate, **common)
    without = np.log(left[0] / left[1])
    se = math.sqrt((n - 1) / n * float(np.sum((without - estimate) ** 2)))
    return clusters.t_estimate(estimate, se, n - 1, fewest=n, level=level, method="cv3_t", null=0.0, **common)


def random_criterion(
    says: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
    analysis: str = "humanlike.random_criterion",
    unit: str = "annotator",
) -> Estimate:
    """d' within annotators whose criteria are normally spread: a probit with a random intercept for each annotator.

    P(annotator says machine) = Phi(d' / 2 - c) for a machine and Phi(-d' / 2 - c) for a human text, c normal with
    mean and standard deviation to be found, integrated by Gauss and Hermite over the distinct patterns of answers;
    d' is one for all. detail has the criterion's mean and sd and the marginal d' that they imply, d' / sqrt(1 + sd^2).
    Interval from the observed information; texts are taken as fixed. A class that is all one answer: `separation`.

    Source: DeCarlo 1998, Signal detection theory and generalized linear models.

    >>> rng = np.random.default_rng(0)
    >>> who, truth = np.repeat(np.arange(300), 10), np.tile([0, 1], 1500)
    >>> noise = rng.normal(0, 1, 3000) - np.repeat(rng.normal(0, 0.8, 300), 10)
    >>> result = random_criterion(noise + truth > 0.5, truth, who)
    >>> abs(result.estimate - 1) < 0.15, result.detail["marginal_d_prime"] < result.estimate
    (True, True)
    """
    refuse_level(level)
    n_rows, table = _annotator_counts(says, is_machine, annotators)
    hits, n_machine, false, n_human = table.sum(axis=0) if len(table) else np.zeros(4)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "d' within annotators (random criterion)",
        "unit": unit,
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
    found = _fit_criteria(patterns, weights.astype(np.float64), start)
    if isinstance(found, str):
        return Estimate(status="failed", reason=found, **common)
    (d_prime, centre, spread), se = found
    detail = {"criterion": centre, "criterion_sd": spread, "marginal_d_prime": d_prime / math.sqrt(1 + spread**2)}
    null = 0.0 if len(table) >= clusters.TOO_FEW_CLUSTERS else None
    return basic.wald(d_prime, se, null=null, level=level, detail=detail, **common)


def sensitivity_by_condition(
    says: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    conditions: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    reference: Any,
    level: float = 0.95,
    analysis: str = "humanlike.condition",
    unit: str = "annotator",
) -> ConditionSensitivity:
    """Marginal d' and criterion of each condition and their differences from the reference, clustered.

    All arrays have shape (n_rows,). The probit model with condition, truth and their interaction, d'_k = b1 + b1k and
    c_k = -[(b0 + b0k) + (b1 + b1k) / 2], as contrasts of its cells. What a training changed, sensitivity or the lean
    to one answer, is in the two differences; accuracy cannot tell them apart.

    >>> rng = np.random.default_rng(0)
    >>> who, truth = np.repeat(np.arange(100), 6), np.tile([0, 1], 300)
    >>> arms = np.where(who % 2 == 1, "examples", "none")
    >>> found = sensitivity_by_condition(rng.random(600) < 0.3 + 0.4 * truth * (arms == "examples"), truth, who, arms,
    ...                                  reference="none")
    >>> found.sensitivity_differences[0].settings["condition"], found.sensitivity_differences[0].interval.low > 0
    ('examples', True)
    """
    answers, truths = _classes(says, is_machine)
    arms, n_arms = codes(np.asarray(conditions), "conditions", len(answers))
    first = np.array([int(np.flatnonzero(arms == arm)[0]) for arm in range(n_arms)], dtype=np.int64)
    names = np.asarray(conditions)[first].tolist()
    if reference not in names:
        raise ValueError(f"reference: {reference!r} is none of the conditions")
    base = names.index(reference)
    cells = 2 * arms + truths.astype(np.int64)
    who, _ = codes(np.asarray(annotators), "annotators", len(answers))
    what = None if items is None else codes(np.asarray(items), "items", len(answers))[0]
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
                    who,
                    what,
                    link="probit",
                    corrected=True,
                    level=level,
                    analysis=f"{analysis}.{kind}",
                    estimand=estimand,
                    unit=unit,
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


def graded_auc(
    ratings: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "humanlike.auc",
    unit: str = "annotator",
) -> Estimate:
    """P(a machine text is rated more machine-like than a human one) + half the ties, using every point of the scale.

    `ratings`, `is_machine`, `annotators` and `items` have shape (n_rows,); a higher rating means machine. It needs no
    threshold, so no criterion moves it. Each answer moves it by its placement among the answers to the other kind
    (DeLong's components), summed over annotators and texts; without items the jackknife over annotators. Tested
    against .5. Sensitivities: the bootstrap over annotators, and the same probability within annotators, which
    compares no one's rating with another's.

    Source: Obuchowski 1997, Nonparametric analysis of clustered ROC curve data; DeLong et al. 1988.

    >>> ratings, truth = [3, 4, 2, 4, 1, 1, 2, 2, 3, 1], [1] * 5 + [0] * 5
    >>> round(graded_auc(ratings, truth, [*range(5)] * 2, rng=np.random.default_rng(0), resamples=99).estimate, 9)
    0.74
    """
    refuse_level(level)
    array, truths = vector(ratings, "ratings"), _truths(is_machine, len(np.asarray(ratings)))
    what = None if items is None else codes(np.asarray(items), "items", len(array))[0]
    here = ~np.isnan(array)
    kept, truths, n_rows = array[here], truths[here], int(here.sum())
    who, n_annotators = kept_codes(annotators, "annotators", here)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "P(machine rated above human) + half the ties",
        "unit": unit,
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": n_rows,
        "settings": {"null": 0.5, "level": level, "resamples": resamples},
    }
    n_machine, n_human = int(truths.sum()), int(n_rows - truths.sum())
    if min(n_machine, n_human) == 0:
        status = "no_data" if n_rows == 0 else "not_identified"
        return Estimate(status=status, reason="needs ratings of texts of both kinds", **common)
    points, place = np.unique(kept, return_inverse=True)
    k = len(points)
    keys = who * k + place
    machine = totals(keys, truths, n_annotators * k).reshape(-1, k)
    human = totals(keys, 1 - truths, n_annotators * k).reshape(-1, k)
    estimate = float(_aucs(machine.sum(axis=0)[None], human.sum(axis=0)[None])[0])
    detail: dict[str, Any] = {"n_machine": n_machine, "n_human": n_human}
    common["detail"] = detail
    if n_annotators < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=estimate, **common)
    if k == 1:
        return Estimate(status="zero_variance", reason="all ratings are equal", estimate=0.5, **common)
    if what is None:
        left = machine.sum(axis=0) - machine, human.sum(axis=0) - human
        if min(left[0].sum(axis=1).min(), left[1].sum(axis=1).min()) == 0:
            reason = "one annotator alone rated a kind of text"
            return Estimate(status="not_identified", reason=reason, estimate=estimate, **common)
        variance = (n_annotators - 1) / n_annotators * float(np.sum((_aucs(*left) - estimate) ** 2))
        df, method = max(1.0, clusters.effective_clusters(np.bincount(who)) - 1), "cv3_t"
    else:
        what, n_items = codes(what[here], "items", n_rows)
        placements = _placements(machine.sum(axis=0), human.sum(axis=0))
        moves = np.where(truths > 0, (placements[0][place] - estimate) / n_machine, 0.0)
        moves += np.where(truths > 0, 0.0, (placements[1][place] - estimate) / n_human)
        moves *= n_rows
        spread = clusters.two_way_variance(moves, who, what)
        variance = spread.variance
        df, method = float(min(n_annotators, n_items) - 1), "two_way_t"
        detail |= {**spread.detail(), "n_items": n_items}
        if n_items < 2:
            return Estimate(status="n_lt_2", reason="one text has no spread", estimate=estimate, **common)
    drawn = _resampled_sums(np.hstack([machine, human]), resamples, rng)
    draws = _aucs(drawn[:, :k], drawn[:, k:])
    named = {**common, "analysis": f"{analysis}.bootstrap"}
    resampled = bootstrap.percentile_estimate(draws, level=level, estimate=estimate, **named)
    result = clusters.t_estimate(
        estimate,
        math.sqrt(variance),
        df,
        fewest=n_annotators if what is None else int(df) + 1,
        level=level,
        method=method,
        null=0.5,
        bounds=(0.0, 1.0),
        **common,
    )
    warned = clusters.cluster_warnings(np.bincount(who), name=unit)
    within = _within_auc(machine, human, level, {**common, "analysis": f"{analysis}.within", "detail": {}})
    return replace(result, sensitivity=(resampled, within), warnings=warned)


def share_human(
    says: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    null: float | None = None,
    level: float = 0.95,
    analysis: str = "humanlike.share_human",
    unit: str = "annotator",
) -> Estimate:
    """The share of answers that are "human", annotators (and texts) as clusters; a test only where `null` is given.

    Source: column "% human" of Tables 1 and 2 in Clark et al. 2021.

    >>> share_human([0, 0, 1, 0, 1, 0, 0, 0], [1, 1, 2, 2, 3, 3, 4, 4]).estimate
    0.75
    """
    return _mean(
        1 - _answers(says, "says"),
        annotators,
        items,
        null=null,
        level=level,
        bounds=(0.0, 1.0),
        analysis=analysis,
        estimand="share of answers human",
        unit=unit,
    )


def detection_bias(
    says: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    analysis: str = "humanlike.bias",
    unit: str = "annotator",
) -> Estimate:
    """How much oftener "human" is answered than texts are human (share answered - share true), and the test of 0.

    All arrays have shape (n_rows,). Unlike the criterion it needs no model, and it holds for unequal shares of human
    and machine texts, where "human" in half of the answers would itself be a bias.

    >>> detection_bias([0, 0, 1, 0], [1, 0, 1, 0], [1, 1, 2, 2]).estimate
    0.25
    """
    answers, truths = _classes(says, is_machine)
    return _mean(
        truths - answers,
        annotators,
        items,
        null=0.0,
        level=level,
        bounds=(-1.0, 1.0),
        analysis=analysis,
        estimand="share answered human - share of human texts",
        unit=unit,
    )


def confidence_gain(
    correct: npt.ArrayLike,
    ratings: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    ends: tuple[float, float] = (1, 4),
    level: float = 0.95,
    analysis: str = "humanlike.confidence",
    unit: str = "annotator",
) -> Estimate:
    """Accuracy of confident answers (at the `ends` of the scale) less that of the others; detail has both.

    All arrays have shape (n_rows,). Above 0: annotators know when they know.

    >>> who = np.repeat(np.arange(8), 2)
    >>> confidence_gain([1, 0] * 7 + [0, 1], [4, 2] * 8, who).estimate
    0.75
    """
    marks = vector(ratings, "ratings")
    array = np.where(np.isnan(marks), np.nan, _answers(correct, "correct"))
    cells = np.where(np.isin(marks, ends), "confident", "unsure")
    return groups.cell_contrast(
        array,
        cells,
        {"confident": 1.0, "unsure": -1.0},
        annotators,
        items,
        level=level,
        analysis=analysis,
        estimand="accuracy of confident answers - of the others",
        unit=unit,
    )


def session_drift(
    values: npt.ArrayLike,
    positions: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
    analysis: str = "humanlike.drift",
    estimand: str = "change of accuracy per place in the session",
    unit: str = "annotator",
) -> Estimate:
    """How accuracy (or any answer) changes from one text to the next within a session, and the test that it does not.

    `values`, `positions` and `annotators` have shape (n_rows,), positions numbers. The slope within annotators, sum
    (x - mean x) y / sum (x - mean x)^2 about each one's own mean place, so annotators who answered more texts, or
    better ones, do not feign a trend; CV3 over annotators, weighted by their spread of places. detail has the mean and
    the number of answers at each place. Texts must come in random order.

    >>> values, places = np.tile([0, 0, 1, 1], 10) - np.tile([0, 1], 20) * 0.1, np.tile([1, 2, 3, 4], 10)
    >>> round(session_drift(values, places, np.repeat(np.arange(10), 4)).estimate, 3)
    0.38
    """
    refuse_level(level)
    array, places = vector(values, "values"), vector(positions, "positions")
    if places.shape != array.shape:
        raise ValueError(f"positions: {len(places)} values where values has {len(array)}")
    here = ~np.isnan(array) & ~np.isnan(places)
    kept, places, n_rows = array[here], places[here], int(here.sum())
    who, n_annotators = kept_codes(annotators, "annotators", here)
    sizes = np.bincount(who, minlength=n_annotators)
    centred = places - (totals(who, places, n_annotators) / np.maximum(1, sizes))[who]
    sums, squares = totals(who, centred * kept, n_annotators), totals(who, centred**2, n_annotators)
    moving = squares > DEGENERATE
    sums, squares = sums[moving], squares[moving]
    n = int(moving.sum())
    found, inverse = np.unique(places, return_inverse=True)
    at = np.bincount(inverse, minlength=len(found))
    means = np.bincount(inverse, kept, minlength=len(found)) / np.maximum(1, at)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "n": n,
        "n_clusters": n,
        "n_rows": n_rows,
        "settings": {"null": 0.0, "level": level},
        "detail": {"positions": found, "means": means, "n_at": at, "n_missing": int((~here).sum())},
    }
    if n_rows == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    if n == 0:
        return Estimate(status="not_identified", reason="nobody answered at two places", **common)
    estimate = float(sums.sum() / squares.sum())
    if n == 1:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=estimate, **common)
    se = math.sqrt(clusters.cv3_variance(sums, squares))
    df = max(1.0, clusters.effective_clusters(squares) - 1)
    result = clusters.t_estimate(estimate, se, df, fewest=n, level=level, method="cv3_t", null=0.0, **common)
    return replace(result, warnings=clusters.cluster_warnings(sizes[moving], name=unit))


def score_histogram(correct: npt.ArrayLike, annotators: npt.ArrayLike) -> list[dict[str, Any]]:
    """How many annotators had 0, 1, .. all of their texts right, and how many would by guessing.

    `correct` and `annotators` have shape (n_rows,). One entry for each number of texts (annotators with different
    numbers are not mixed): {"n_items", "n_annotators", "counts", "expected_by_chance"}, counts by number correct.

    Source: Figures 3 and 4 of Clark et al. 2021.

    >>> score_histogram([1, 1, 0, 1, 0, 0], [1, 1, 2, 2, 3, 3])
    [{'n_items': 2, 'n_annotators': 3, 'counts': [1, 1, 1], 'expected_by_chance': [0.75, 1.5, 0.75]}]
    """
    scores = annotator_scores(correct, annotators)
    results = []
    for n_items in sorted(set(scores.n_items.tolist())):
        mine = scores.n_correct[scores.n_items == n_items]
        chance = [float(special.binom(n_items, right)) / 2.0**n_items * len(mine) for right in range(n_items + 1)]
        results.append(
            {
                "n_items": n_items,
                "n_annotators": len(mine),
                "counts": np.bincount(mine, minlength=n_items + 1).tolist(),
                "expected_by_chance": chance,
            }
        )
    return results


def rating_histogram(
    ratings: npt.ArrayLike, is_machine: npt.ArrayLike, points: tuple[float, ...] = (1, 2, 3, 4)
) -> dict[str, list[int]]:
    """How often each point of the scale was given to machine and to human texts, and how many ratings are missing.

    >>> rating_histogram([1, 2, 4, 4, None], [0, 0, 1, 1, 1])
    {'machine': [0, 0, 0, 2], 'human': [1, 1, 0, 0], 'missing': [1]}
    """
    array = vector(ratings, "ratings")
    truths = _truths(is_machine, len(array))
    strange = np.flatnonzero(~np.isnan(array) & ~np.isin(array, points))
    if len(strange):
        raise ValueError(f"ratings: row {int(strange[0])} is {array[strange[0]]:g}, no point of the scale")
    return {
        "machine": [int(np.sum((array == point) & (truths == 1))) for point in points],
        "human": [int(np.sum((array == point) & (truths == 0))) for point in points],
        "missing": [int(np.isnan(array).sum())],
    }


def human_likeness(
    ratings: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    threshold: float = 2.5,
    ends: tuple[float, float] = (1, 4),
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    unit: str = "annotator",
) -> HumanLikeness:
    """Everything about one cell (a system in a domain under a condition): the paper's block and the recommended one.

    All arrays have shape (n_rows,). See the functions of the same names; `measures` and `accuracy_paper` are the
    paper's, the rest is recommended.

    >>> rng = np.random.default_rng(0)
    >>> who, truth = np.repeat(np.arange(50), 4), np.tile([0, 1], 100)
    >>> cell = human_likeness(rng.integers(1, 5, 200), truth, who, rng.integers(0, 30, 200), rng=rng, resamples=99)
    >>> cell.measures.n, cell.accuracy.n, cell.accuracy_paper.test.df
    (200, 50, 49)
    """
    says = says_machine(ratings, threshold=threshold)
    correct = is_correct(says, is_machine)
    plain: dict[str, Any] = {"level": level, "unit": unit}
    drawn: dict[str, Any] = {**plain, "resamples": resamples, "rng": rng}
    return HumanLikeness(
        measures=detection_measures(ratings, is_machine, threshold=threshold, ends=ends),
        accuracy_paper=accuracy_paper(correct, annotators, **plain),
        accuracy=accuracy(correct, annotators, items, **plain),
        sensitivity=sensitivity(says, is_machine, annotators, items, **drawn),
        criterion=criterion(says, is_machine, annotators, items, **drawn),
        auc=graded_auc(ratings, is_machine, annotators, items, **drawn),
        share_human=share_human(says, annotators, items, **plain),
        bias=detection_bias(says, is_machine, annotators, items, **plain),
    )


def _share(count: int, of: int) -> float | None:
    return None if of == 0 else count / of


def _answers(values: npt.ArrayLike, name: str) -> FloatArray:
    """0/1 answers, NaN where missing."""
    array = vector(values, name)
    strange = np.flatnonzero(~np.isnan(array) & (array != 0) & (array != 1))
    if len(strange):
        raise ValueError(f"{name}: row {int(strange[0])} is {array[strange[0]]:g}, neither 0 nor 1")
    return array


def _truths(is_machine: npt.ArrayLike, length: int) -> FloatArray:
    truths = _answers(is_machine, "is_machine")
    if len(truths) != length:
        raise ValueError(f"is_machine: {len(truths)} values where there are {length} answers")
    if np.isnan(truths).any():
        raise ValueError(f"is_machine: row {int(np.flatnonzero(np.isnan(truths))[0])} is missing")
    return truths


def _classes(says: npt.ArrayLike, is_machine: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    answers = _answers(says, "says")
    return answers, _truths(is_machine, len(answers))


def _mean(values: FloatArray, annotators: npt.ArrayLike, items: npt.ArrayLike | None, **more: Any) -> Estimate:
    if items is None:
        return clusters.clustered_mean(values, annotators, **more)
    return clusters.two_way_mean(values, annotators, items, **more)


def _annotator_counts(
    says: npt.ArrayLike, is_machine: npt.ArrayLike, annotators: npt.ArrayLike
) -> tuple[int, FloatArray]:
    """The rows used, and hits, machine texts, false alarms, human texts of each annotator, (n_annotators, 4)."""
    answers, truths = _classes(says, is_machine)
    here = ~np.isnan(answers)
    who, n = kept_codes(annotators, "annotators", here)
    said, truth = answers[here], truths[here]
    columns = (said * truth, truth, said * (1 - truth), 1 - truth)
    return int(here.sum()), np.stack([totals(who, column, n) for column in columns], axis=1)


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
    unit: str,
) -> Estimate:
    """A contrast of the two probits: clustered, beside it over resampled annotators; the four counts in detail."""
    answers, truths = _classes(says, is_machine)
    weights = {1.0: probits.machine, 0.0: probits.human}
    common: dict[str, Any] = {"estimand": probits.estimand, "level": level, "unit": unit}
    result = groups.cell_contrast(
        answers, truths, weights, annotators, items, link="probit", corrected=True, analysis=analysis, **common
    )
    settings = {key: value for key, value in result.settings.items() if key != "weights"}
    detail = {key: value for key, value in result.detail.items() if key != "cells"}
    said = [int(np.nansum(answers[truths == truth])) for truth in (1, 0)]
    n = [int(np.sum(~np.isnan(answers[truths == truth]))) for truth in (1, 0)]
    counts = signal_detection(said[0], n[0] - said[0], said[1], n[1] - said[1])
    detail |= {"hits": said[0], "n_machine": n[0], "false_alarms": said[1], "n_human": n[1]}
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
    """The same contrast over resampled annotators, from the counts of their distinct patterns of answers."""
    n_rows, table = _annotator_counts(says, is_machine, annotators)

    def contrast(sums: FloatArray) -> FloatArray:
        hits, n_machine, false, n_human = sums.T
        z_hit, z_false = special.ndtri((hits + 0.5) / (n_machine + 1)), special.ndtri((false + 0.5) / (n_human + 1))
        found = probits.machine * z_hit + probits.human * z_false
        return np.where((n_machine > 0) & (n_human > 0), found, np.nan)

    n = len(table)
    return bootstrap.percentile_estimate(
        contrast(_resampled_sums(table, resamples, rng)),
        level=level,
        n=n,
        n_clusters=n,
        n_rows=n_rows,
        estimate=float(contrast(table.sum(axis=0)[None])[0]),
        settings={"level": level, "resamples": resamples},
        **common,
    )


def _resampled_sums(table: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """The columns' sums over resampled rows (annotators), drawn as counts of the distinct rows, in blocks."""
    patterns, counts = np.unique(table, axis=0, return_counts=True)
    n = len(table)
    sizes = [min(bootstrap.BLOCK, resamples - start) for start in range(0, resamples, bootstrap.BLOCK)]
    blocks = [rng.multinomial(n, counts / n, size=size).astype(np.float64) @ patterns for size in sizes]
    return np.concatenate(blocks) if blocks else np.empty((0, table.shape[1]))


def _placements(machine: FloatArray, human: FloatArray) -> tuple[FloatArray, FloatArray]:
    """At each point: the share of human answers below it, and that of machine answers above it, ties half."""
    below = (np.cumsum(human) - human / 2) / human.sum()
    above = 1 - (np.cumsum(machine) - machine / 2) / machine.sum()
    return below, above


def _aucs(machine: FloatArray, human: FloatArray) -> FloatArray:
    """AUC of each row of counts (n, n_points); NaN where a kind of text is lacking."""
    below = np.cumsum(human, axis=1) - human / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.sum(machine * below, axis=1) / (machine.sum(axis=1) * human.sum(axis=1))
    return np.asarray(found, dtype=np.float64)


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
    se, df = math.sqrt(clusters.cv3_variance(wins, pairs)), max(1.0, clusters.effective_clusters(pairs) - 1)
    return clusters.t_estimate(
        estimate, se, df, fewest=n, level=level, method="cv3_t", null=0.5, bounds=(0.0, 1.0), **common
    )


def _fit_criteria(
    patterns: FloatArray, weights: FloatArray, start: SignalDetection | None
) -> tuple[tuple[float, float, float], float] | str:
    """Maximum likelihood of (d', mean criterion, its sd), and the standard error of d'; or why there is none."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(NODES)
    log_masses = np.log(masses / masses.sum())
    hits, n_machine, false, n_human = patterns.T[:, :, None]

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood and its gradient."""
        d_prime, centre, log_spread = parameters
        spread = math.exp(log_spread)
        criteria = (centre + spread * nodes)[None, :]
        logs, slopes = log_masses, []
        for shift, said, of in ((d_prime / 2, hits, n_machine), (-d_prime / 2, false, n_human)):
            z = shift - criteria
            yes, no = special.log_ndtr(z), special.log_ndtr(-z)
            logs = logs + said * yes + (of - said) * no
            density = -(z**2) / 2 - math.log(2 * math.pi) / 2
            slopes.append(said * np.exp(density - yes) - (of - said) * np.exp(density - no))
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
    found = np.asarray(best.x, dtype=np.float64)
    if found[2] > high - 1e-6:
        return "criteria are too widely spread to tell d' from them"
    # Where no spread was found its information is nothing, and d' is that of the pooled model.
    free = 2 if found[2] < math.log(0.02) else 3
    information = _hessian(loss, found, free)
    if not np.isfinite(information).all() or float(np.linalg.eigvalsh(information)[0]) <= 0:
        return "the fit has no finite standard error"
    se = math.sqrt(float(np.linalg.inv(information)[0, 0]))
    spread = 0.0 if free == 2 else math.exp(float(found[2]))
    return (float(found[0]), float(found[1]), spread), se


def _hessian(loss: Callable[[FloatArray], tuple[float, FloatArray]], at: FloatArray, free: int) -> FloatArray:
    """Second derivatives by the first `free` parameters, by central differences of the gradient."""
    step = 1e-5
    rows = [
        (loss(at + step * unit)[1] - loss(at - step * unit)[1])[:free] / (2 * step) for unit in np.eye(len(at))[:free]
    ]
    return np.asarray((np.array(rows) + np.array(rows).T) / 2, dtype=np.float64)
