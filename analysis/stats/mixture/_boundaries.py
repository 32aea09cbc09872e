"""The number of correct answers at which an annotator is flagged, and the probability of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.stats.arrays import FloatArray
from analysis.stats.mixture._priors import (
    CUTOFF,
    RATE_THRESHOLD,
    ROUNDING,
    BetaMixture,
    is_noisy,
    noisy_annotator_posterior,
)
from analysis.stats.results import Record


@dataclass(frozen=True, slots=True)
class FlagBoundaries(Record):
    """When an annotator is flagged: of `questions[i]` answers of one type, at most `at_most[i]` are correct.

    None: even all wrong is not enough yet. `irregular` lists (correct, asked) that a model flags although it does not
    flag fewer correct answers; a badly fitted model can do this.
    """

    questions: tuple[int, ...]
    at_most: tuple[int | None, ...]
    irregular: tuple[tuple[int, int], ...]


def flag_boundaries(
    prior: BetaMixture,
    questions: Sequence[int],
    *,
    criterion: str,
    threshold: float = RATE_THRESHOLD,
    cutoff: float = CUTOFF,
    rule: str = "at_least",
) -> FlagBoundaries:
    """Table "flag if at most b of n are correct" for each number of questions of one type.

    Parameters
    ----------
    prior : BetaMixture
        Prior on accuracy.
    questions : sequence[int]
        Numbers of questions.
    criterion : {"rate", "class"}
        As in `noisy_annotator_posterior`.
    threshold : float, default RATE_THRESHOLD
        Accuracy below which an annotator is noisy by the rate criterion.
    cutoff, rule : float, optional
        As in `is_noisy`.

    Returns
    -------
    FlagBoundaries
        The table.

    Raises
    ------
    ValueError
        If a number of questions is negative.

    Examples
    --------
    >>> flag_boundaries(PRIORS["fixed2"], [1, 3, 10, 20], criterion="rate").at_most
    (None, 0, 4, 12)
    """
    at_most: list[int | None] = []
    irregular: list[tuple[int, int]] = []
    for n_questions in questions:
        if n_questions < 0:
            raise ValueError(f"questions: {n_questions} is negative")
        right = np.arange(n_questions + 1)
        posteriors = noisy_annotator_posterior(
            prior, right, np.full(n_questions + 1, n_questions), criterion=criterion, threshold=threshold
        )
        flagged = is_noisy(posteriors, cutoff=cutoff, rule=rule)
        first_free = int(np.argmin(flagged)) if not flagged.all() else n_questions + 1
        at_most.append(first_free - 1 if first_free else None)
        irregular += [(int(count), n_questions) for count in right[first_free:][flagged[first_free:]]]
    return FlagBoundaries(tuple(int(n_questions) for n_questions in questions), tuple(at_most), tuple(irregular))


def cumulative_flag_probability(
    at_most: Sequence[int | None], accuracy: float, *, skip_rate: float = 0.0
) -> FloatArray:
    """Exact probability that an annotator has been flagged after each question.

    Parameters
    ----------
    at_most : sequence[int or None]
        Boundary after each number of counted answers (`flag_boundaries` over 1..N).
    accuracy : float
        Probability of a correct answer.
    skip_rate : float, default 0.0
        Probability of a neutral answer, which is not counted.

    Returns
    -------
    ndarray of float, shape (N,)
        Probability of being flagged by the time of each question.

    Raises
    ------
    ValueError
        If the probabilities are not valid.

    Notes
    -----
    A forward recursion over (counted, correct), without simulation error. Flagged on positive or negative questions:
    1 - (1 - a)(1 - b).

    Examples
    --------
    >>> table = flag_boundaries(PRIORS["fixed2"], range(1, 11), criterion="rate")
    >>> cumulative_flag_probability(table.at_most, 0.4)[[4, 9]].round(3).tolist()
    [0.372, 0.746]
    """
    if not (0 <= accuracy <= 1 and 0 <= skip_rate <= 1 and accuracy + skip_rate <= 1 + ROUNDING):
        raise ValueError("accuracy: with skip_rate it must be a probability")
    wrong = max(0.0, 1 - accuracy - skip_rate)
    n = len(at_most)
    alive = np.zeros((n + 1, n + 1))
    alive[0, 0] = 1.0
    stops = np.zeros((n + 1, n + 1), dtype=bool)
    for n_questions, boundary in enumerate(at_most, start=1):
        if boundary is not None:
            stops[n_questions, : boundary + 1] = True
    flagged = np.zeros(n)
    total = 0.0
    for n_questions in range(n):
        step = skip_rate * alive
        step[1:, :] += wrong * alive[:-1, :]
        step[1:, 1:] += accuracy * alive[:-1, :-1]
        total += float(step[stops].sum())
        step[stops] = 0.0
        alive = step
        flagged[n_questions] = total
    return flagged
