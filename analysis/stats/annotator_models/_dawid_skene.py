"""The model of Dawid and Skene: each annotator has a matrix of errors."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analysis.stats.annotator_models._answers import (
    AnnotatorEvidence,
    AnnotatorModel,
    code_answers,
    expected_error_rates,
    iterate,
    normalise_logs,
    safe_log,
)
from analysis.stats.arrays import FloatArray, validate_non_negative


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
