"""What annotators' answers to the same questions say about each of them, without a known answer.

`dawid_skene` gives each annotator a matrix of errors, `competence_model` one number: how often they answer and do not
guess. Both take the true answer of an item as unknown and estimate it from all annotators. `severity` compares an
annotator's ratings with those of others about the same items.

All three measure how an annotator differs from the others. A careful annotator with another opinion differs, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import MIN_SPREAD, FloatArray, IntArray, validate_level, validate_non_negative, vector
from analysis.stats.results import Interval, Record

# Answers as codes, the records of both models, and the EM loop that they share.


MAX_STEPS = 2000
TOLERANCE = 1e-10
# With two answers to an item, the errors of one annotator cannot be separated from those of the other.
MIN_ANSWERS_OF_AN_ITEM = 3


@dataclass(frozen=True, slots=True)
class AnnotatorEvidence(Record):
    """What a model says about one annotator. `n` counts the answers to items that others answered, too.

    `error_rate` is the expected share of these answers that differ from the estimated true answer. `competence` is the
    probability that an answer is not a guess. `confusion[j][a]` is the probability of answer a if j is true; a row is
    None if no answer of the annotator is about items of j. Numbers that a model does not have are None.
    """

    annotator: str
    n: int
    error_rate: float | None = None
    competence: float | None = None
    confusion: tuple[tuple[float, ...] | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class AnnotatorModel(Record):
    """A fitted model. `shares` are those of the true answers, in the order of `answers`.

    `n_items` and `n_answers` count items that at least two annotators answered, and their answers. Without a result,
    `status` and `reason` say why, and `annotators` is empty.
    """

    status: str
    reason: str
    n_items: int
    n_answers: int
    answers: tuple[str, ...] = ()
    shares: tuple[float, ...] = ()
    annotators: tuple[AnnotatorEvidence, ...] = ()
    log_likelihood: float | None = None
    n_steps: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class CodedAnswers:
    """Answers to items with answers of at least two annotators, as codes from 0 on."""

    items: IntArray
    annotators: IntArray
    answers: IntArray
    annotator_names: tuple[str, ...]
    answer_names: tuple[str, ...]
    n_items: int

    @property
    def n_answers(self) -> int:
        return len(self.items)

    def first_guess(self) -> FloatArray:
        """Return each item's shares of answers, where EM begins; shape (n_items, number of different answers)."""
        counts: FloatArray = np.zeros((self.n_items, len(self.answer_names)))
        np.add.at(counts, (self.items, self.answers), 1.0)
        counts /= counts.sum(axis=1, keepdims=True)
        return counts

    def no_result(self) -> AnnotatorModel | None:
        """Return the model without a result if the answers cannot identify it."""
        sizes = np.bincount(self.items, minlength=1)
        if not self.n_answers:
            status, reason = "no_data", "no item has answers of two annotators"
        elif len(self.answer_names) < 2:
            status, reason = "not_applicable", "all answers are equal"
        elif sizes.max() < MIN_ANSWERS_OF_AN_ITEM:
            status, reason = "not_identified", "no item has answers of three annotators"
        else:
            return None
        return AnnotatorModel(status, reason, self.n_items, self.n_answers)


def code_answers(
    items: Sequence[object] | npt.NDArray[np.object_],
    annotators: Sequence[object] | npt.NDArray[np.object_],
    answers: Sequence[object] | npt.NDArray[np.object_],
) -> CodedAnswers:
    """Code the answers, and leave out items that fewer than two annotators answered.

    Raises
    ------
    ValueError
        If the three have different lengths.
    """
    if not len(items) == len(annotators) == len(answers):
        raise ValueError(f"items, annotators, answers: lengths {len(items)}, {len(annotators)}, {len(answers)} differ")
    names = [np.array([str(one) for one in values], dtype=object) for values in (items, annotators, answers)]
    pairs = set(zip(names[0], names[1], strict=True))
    n_annotators: dict[str, int] = {}
    for item, _ in pairs:
        n_annotators[item] = n_annotators.get(item, 0) + 1
    shared = np.array([n_annotators[item] > 1 for item in names[0]], dtype=bool)
    coded = [np.unique(values[shared].astype(str), return_inverse=True) for values in names]
    return CodedAnswers(
        items=coded[0][1].astype(np.int64),
        annotators=coded[1][1].astype(np.int64),
        answers=coded[2][1].astype(np.int64),
        annotator_names=tuple(str(name) for name in coded[1][0]),
        answer_names=tuple(str(name) for name in coded[2][0]),
        n_items=len(coded[0][0]),
    )


def iterate(
    truth: FloatArray, step: Callable[[FloatArray], tuple[FloatArray, float]]
) -> tuple[FloatArray, float, int, bool]:
    """Repeat `step`, which returns new probabilities of the true answers and the log-likelihood, until they are stable."""
    for n in range(1, MAX_STEPS + 1):
        new, log_likelihood = step(truth)
        change = float(np.abs(new - truth).max())
        truth = new
        if change < TOLERANCE:
            return truth, log_likelihood, n, True
    return truth, log_likelihood, MAX_STEPS, False


def normalise_logs(logs: FloatArray) -> tuple[FloatArray, float]:
    """Return the probabilities of each row and the sum of the logarithms of the rows' totals."""
    top = logs.max(axis=1, keepdims=True)
    weights = np.exp(logs - top)
    totals = weights.sum(axis=1, keepdims=True)
    return weights / totals, float((np.log(totals) + top).sum())


def safe_log(values: FloatArray) -> FloatArray:
    """Return logarithms, with a number far below every other one for 0, so that 0 times it is 0."""
    return np.log(np.maximum(values, 1e-300))


def expected_error_rates(coded: CodedAnswers, truth: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return each annotator's expected share of answers that are not the true one, and the number of answers."""
    wrong = 1 - truth[coded.items, coded.answers]
    n = np.bincount(coded.annotators, minlength=len(coded.annotator_names))
    return np.bincount(coded.annotators, wrong, minlength=len(n)) / n, n.astype(np.int64)


# A model with one number for each annotator: how often they do not guess.


def competence_model(
    items: Sequence[object] | npt.NDArray[np.object_],
    annotators: Sequence[object] | npt.NDArray[np.object_],
    answers: Sequence[object] | npt.NDArray[np.object_],
    *,
    pseudo_count: float = 0.1,
) -> AnnotatorModel:
    """Estimate by EM how often each annotator gives the true answer on purpose, and not as a guess.

    Each row is one answer; items of one annotator alone are left out. With probability θ_k, the competence, annotator k
    gives the true answer of the item. Otherwise they guess: they give answer a with probability ξ_ka, whatever the
    item. Each true answer is equally probable beforehand, and `pseudo_count` is added to the counts of intended
    answers, of guesses, and of each guessed answer. The model is MACE (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013,
    NAACL), but with EM from one start, each item's shares of answers and θ = ½, instead of variational inference from
    many. The `competence` and `error_rate` of each annotator are in 0..1, and the status is `not_identified` without an
    item that has three answers.

    >>> items = [i for i in range(8) for _ in "abc"]
    >>> who = ["a", "b", "c"] * 8
    >>> said = [x for i in range(8) for x in (i % 2, i % 2, 1)]
    >>> [round(one.competence, 1) for one in competence_model(items, who, said).annotators]
    [1.0, 1.0, 0.0]
    """
    validate_non_negative(pseudo_count=pseudo_count)
    coded = code_answers(items, annotators, answers)
    if (without := coded.no_result()) is not None:
        return without
    n_people, n_answers = len(coded.annotator_names), len(coded.answer_names)
    competence = np.full(n_people, 0.5)
    guesses = np.full((n_people, n_answers), 1 / n_answers)

    def step(truth: FloatArray) -> tuple[FloatArray, float]:
        nonlocal competence, guesses
        # The probability that each answer was intended, and not a guess that is right by chance.
        hit = competence[coded.annotators]
        chance = (1 - hit) * guesses[coded.annotators, coded.answers]
        intended = truth[coded.items, coded.answers] * np.divide(
            hit, hit + chance, out=np.zeros_like(hit), where=hit + chance > 0
        )
        n_intended = np.bincount(coded.annotators, intended, minlength=n_people) + pseudo_count
        guessed = np.full((n_people, n_answers), pseudo_count)
        np.add.at(guessed, (coded.annotators, coded.answers), 1 - intended)
        n_guessed = np.bincount(coded.annotators, 1 - intended, minlength=n_people) + pseudo_count
        competence = n_intended / (n_intended + n_guessed)
        totals = guessed.sum(axis=1, keepdims=True)
        guesses = np.divide(guessed, totals, out=np.full_like(guessed, 1 / n_answers), where=totals > 0)
        # The probability of the answer for each possible true answer.
        given = ((1 - competence[:, None]) * guesses)[coded.annotators, coded.answers]
        likelihood = np.repeat(given[:, None], n_answers, axis=1)
        likelihood[np.arange(coded.n_answers), coded.answers] += competence[coded.annotators]
        logs = np.full((coded.n_items, n_answers), -np.log(n_answers))
        np.add.at(logs, coded.items, safe_log(likelihood))
        return normalise_logs(logs)

    truth, log_likelihood, n_steps, is_stable = iterate(coded.first_guess(), step)
    if not is_stable:
        return AnnotatorModel("failed", "the model did not converge", coded.n_items, coded.n_answers)
    rates, n = expected_error_rates(coded, truth)
    return AnnotatorModel(
        status="ok",
        reason="",
        n_items=coded.n_items,
        n_answers=coded.n_answers,
        answers=coded.answer_names,
        shares=tuple(float(share) for share in truth.mean(axis=0)),
        annotators=tuple(
            AnnotatorEvidence(name, int(n[k]), error_rate=float(rates[k]), competence=float(competence[k]))
            for k, name in enumerate(coded.annotator_names)
        ),
        log_likelihood=log_likelihood,
        n_steps=n_steps,
    )


# The model of Dawid and Skene: each annotator has a matrix of errors.


def dawid_skene(
    items: Sequence[object] | npt.NDArray[np.object_],
    annotators: Sequence[object] | npt.NDArray[np.object_],
    answers: Sequence[object] | npt.NDArray[np.object_],
    *,
    pseudo_count: float = 0.0,
) -> AnnotatorModel:
    """Estimate each annotator's errors and the true answers of all items by EM.

    Each row is one answer; an annotator may answer an item several times, and items of one annotator alone are left
    out. The true answer of item i is j with probability p_j, and annotator k then answers a with probability π_kja,
    independently of all other answers. EM alternates between the probabilities of the true answers and the maximum
    likelihood of p and π (Dawid and Skene 1979, Applied Statistics 28(1), equations 2.3 to 2.5), and begins with each
    item's shares of answers, so the most frequent answers name the classes. `pseudo_count` is added to every count of
    an annotator's answers: 0 is maximum likelihood, and a positive number keeps annotators with few answers from errors
    of exactly 0 or 1. Each annotator has an `error_rate` (0..1) and a `confusion`, and the status is `not_identified`
    without an item that has three answers, because the errors of two annotators cannot be separated.

    >>> items = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    >>> who = ["a", "b", "c"] * 4
    >>> said = ["yes", "yes", "no", "no", "no", "yes", "yes", "yes", "yes", "no", "no", "no"]
    >>> model = dawid_skene(items, who, said)
    >>> [round(one.error_rate, 2) for one in model.annotators]
    [0.0, 0.0, 0.5]
    """
    validate_non_negative(pseudo_count=pseudo_count)
    coded = code_answers(items, annotators, answers)
    if (without := coded.no_result()) is not None:
        return without
    n_people, n_answers = len(coded.annotator_names), len(coded.answer_names)
    confusion = np.zeros((n_people, n_answers, n_answers))
    shares = np.zeros(n_answers)
    expected = np.zeros_like(confusion)

    def step(truth: FloatArray) -> tuple[FloatArray, float]:
        nonlocal confusion, shares, expected
        shares = truth.mean(axis=0)
        by_answer = np.zeros((n_people, n_answers, n_answers))  # person, answer, true answer
        np.add.at(by_answer, (coded.annotators, coded.answers), truth[coded.items])
        expected = by_answer.transpose(0, 2, 1)
        counts = expected + pseudo_count
        totals = counts.sum(axis=2, keepdims=True)
        confusion = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
        logs = np.tile(safe_log(shares), (coded.n_items, 1))
        np.add.at(logs, coded.items, safe_log(confusion)[coded.annotators, :, coded.answers])
        return normalise_logs(logs)

    truth, log_likelihood, n_steps, is_stable = iterate(coded.first_guess(), step)
    if not is_stable:
        return AnnotatorModel("failed", "the model did not converge", coded.n_items, coded.n_answers)
    rates, n = expected_error_rates(coded, truth)
    return AnnotatorModel(
        status="ok",
        reason="",
        n_items=coded.n_items,
        n_answers=coded.n_answers,
        answers=coded.answer_names,
        shares=tuple(float(share) for share in shares),
        annotators=tuple(
            AnnotatorEvidence(
                name,
                int(n[k]),
                error_rate=float(rates[k]),
                confusion=tuple(
                    tuple(float(p) for p in row) if expected[k, j].sum() > 1e-9 else None
                    for j, row in enumerate(confusion[k])
                ),
            )
            for k, name in enumerate(coded.annotator_names)
        ),
        log_likelihood=log_likelihood,
        n_steps=n_steps,
    )


# Severity: how much lower or higher an annotator rates than others rate the same items.


@dataclass(frozen=True, slots=True)
class Severity(Record):
    """An annotator's mean difference from others. `n` counts items that others rated, too.

    `estimate` is in the units of the ratings: below 0 the annotator is severe, above 0 lenient. `standard_error` and
    `interval` are None with fewer than two items or without spread, and `reason` says so.
    """

    annotator: str
    n: int
    estimate: float | None
    standard_error: float | None
    interval: Interval | None
    reason: str = ""


def severity(
    items: Sequence[object] | npt.NDArray[np.object_],
    annotators: Sequence[object] | npt.NDArray[np.object_],
    ratings: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> tuple[Severity, ...]:
    """Return for each annotator the mean of "own rating minus the mean of others" over the items that others rated.

    The standard error is that of a mean of independent differences, with Student's t for the interval. It describes this
    annotator against these others; the differences of two annotators of the same item are not independent.

    Parameters
    ----------
    items, annotators : sequence, shape (n,)
        The item and the annotator of each rating. Several ratings of an item by one annotator count with their mean.
    ratings : array_like, shape (n,)
        Ratings on one scale; missing ones are left out.
    level : float
        Confidence level, between 0 and 1.

    Returns
    -------
    tuple of Severity
        Sorted by the annotator's name. Annotators without an item that others rated are missing.

    Raises
    ------
    ValueError
        For different lengths or a level outside 0..1.

    Examples
    --------
    >>> found = severity([1, 1, 2, 2, 3, 3], ["a", "b"] * 3, [0.2, 0.4, 0.5, 0.8, 0.1, 0.2])
    >>> [(one.annotator, round(one.estimate, 2), one.n) for one in found]
    [('a', -0.2, 3), ('b', 0.2, 3)]
    """
    validate_level(level)
    values = vector(ratings, "ratings")
    if not len(items) == len(annotators) == len(values):
        raise ValueError(f"items, annotators, ratings: lengths {len(items)}, {len(annotators)}, {len(values)} differ")
    known = ~np.isnan(values)
    item_names = np.array([str(one) for one in items], dtype=str)[known]
    people_names = np.array([str(one) for one in annotators], dtype=str)[known]
    if not len(item_names):
        return ()
    _, item = np.unique(item_names, return_inverse=True)
    names, person = np.unique(people_names, return_inverse=True)
    # One value for each annotator and item.
    cells, cell = np.unique(item * len(names) + person, return_inverse=True)
    own = np.bincount(cell, values[known]) / np.bincount(cell)
    item, person = cells // len(names), cells % len(names)
    n_of_item, sum_of_item = np.bincount(item), np.bincount(item, own)
    others = n_of_item[item] - 1
    shared = others > 0
    difference = own[shared] - (sum_of_item[item[shared]] - own[shared]) / others[shared]
    person = person[shared]
    found = []
    for k, name in enumerate(names):
        mine = difference[person == k]
        if len(mine):
            found.append(_severity_of(str(name), mine, level))
    return tuple(found)


def _severity_of(name: str, differences: npt.NDArray[np.float64], level: float) -> Severity:
    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return Severity(name, n, mean, None, None, "one item has no standard error")
    spread = float(differences.std(ddof=1))
    if spread < MIN_SPREAD:
        return Severity(name, n, mean, None, None, "all differences are equal")
    error = spread / n**0.5
    half = float(special.stdtrit(n - 1, (1 + level) / 2)) * error
    return Severity(name, n, mean, error, Interval(level, mean - half, mean + half, "t"))
