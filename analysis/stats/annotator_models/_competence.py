"""A model with one number for each annotator: how often they do not guess."""

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
