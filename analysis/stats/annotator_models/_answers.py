"""Answers as codes, the records of both models, and the EM loop that they share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray
from analysis.stats.results import Record

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
