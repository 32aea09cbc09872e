"""The number of correct answers at which an annotator is flagged, and the probability of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.stats.mixture._priors import (
    CUTOFF,
    RATE_THRESHOLD,
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
    """Compute the table "flag if at most b of n are correct" for each number of questions of one type.

    `criterion` ("rate" or "class") is as in `noisy_annotator_posterior`, `threshold` is the accuracy below which an
    annotator is noisy by the rate criterion, and `cutoff` and `rule` are as in `is_noisy`.

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
