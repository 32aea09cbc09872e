"""Best-worst answers in rows: the sets that were shown and the choices, with validation."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, label_codes

# Placeholder for a system in sets that are smaller than the largest one.
PADDING = -1


@dataclass(frozen=True, slots=True)
class BestWorstAnswers:
    """Checked sets and choices: `systems` (n, k) with `is_shown` (n, k) False for padding, `best` and `worst` (n,)."""

    systems: IntArray
    is_shown: BoolArray
    best: IntArray
    worst: IntArray
    n_systems: int

    @classmethod
    def from_arrays(
        cls, sets: npt.ArrayLike, best: npt.ArrayLike, worst: npt.ArrayLike, n_systems: int
    ) -> "BestWorstAnswers":
        """Build from arrays. Raise ValueError with the argument and the row for an invalid answer."""
        if n_systems < 1:
            raise ValueError(f"n_systems: {n_systems} is not a positive number of systems")
        array = np.asarray(sets)
        if array.size == 0:
            array = np.zeros((len(array), 0), dtype=np.int64)
        if array.ndim != 2:
            raise ValueError(f"sets: expected two dimensions, got {array.ndim}")
        if array.dtype.kind not in "iu":
            raise ValueError("sets: systems are numbered with integers")
        systems = array.astype(np.int64)
        wrong = np.argwhere((systems < PADDING) | (systems >= n_systems))
        if len(wrong):
            row, column = wrong[0]
            raise ValueError(f"sets: row {row} shows {systems[row, column]}, which is not one of {n_systems} systems")
        is_shown = systems != PADDING
        small = np.flatnonzero(is_shown.sum(axis=1) < 2)
        if len(small):
            raise ValueError(f"sets: row {small[0]} shows fewer than two systems")
        ordered = np.sort(systems, axis=1)
        twice = np.argwhere((np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] != PADDING))
        if len(twice):
            row, column = twice[0]
            raise ValueError(f"sets: row {row} shows system {ordered[row, column]} twice")
        chosen = [_chosen(values, name, systems) for values, name in ((best, "best"), (worst, "worst"))]
        same_rows = np.flatnonzero(chosen[0] == chosen[1])
        if len(same_rows):
            raise ValueError(
                f"worst: row {same_rows[0]} has system {chosen[1][same_rows[0]]} as the worst and as the best"
            )
        return cls(systems, is_shown, chosen[0], chosen[1], n_systems)

    def shown_counts(self) -> IntArray:
        """Return how often each system was shown; shape (n_systems,)."""
        return np.bincount(self.systems[self.is_shown], minlength=self.n_systems)

    def renumber_systems(self, shown_systems: IntArray) -> "BestWorstAnswers":
        """Return the answers with the systems `shown_systems` (all that were shown) numbered from 0."""
        numbers = np.full(self.n_systems, PADDING, dtype=np.int64)
        numbers[shown_systems] = np.arange(len(shown_systems))
        systems = np.where(self.is_shown, numbers[self.systems], PADDING)
        return BestWorstAnswers(systems, self.is_shown, numbers[self.best], numbers[self.worst], len(shown_systems))

    def has_beaten_matrix(self) -> BoolArray:
        """Return whether the row system was chosen over the column system at least once."""
        rows, columns = np.nonzero(self.is_shown)
        has_won = np.zeros((self.n_systems, self.n_systems), dtype=np.bool_)
        has_won[self.best[rows], self.systems[rows, columns]] = True
        has_won[self.systems[rows, columns], self.worst[rows]] = True
        np.fill_diagonal(has_won, False)
        return has_won


def maxdiff_score_rows(
    sets: npt.ArrayLike, best: npt.ArrayLike, worst: npt.ArrayLike, *, n_systems: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Convert best-worst answers to one row for each system of each set.

    `sets` (n, k) has system numbers 0..n_systems-1, and -1 fills sets smaller than k; `best` and `worst` are the chosen
    systems. The result has, for each row, the row of the answer, the system, and 1 (best), -1 (worst) or 0. The means
    of these values are the scores of `maxdiff_scores`, and `ranks.rank_confidence_sets_from_rows` takes them with the
    annotators of the answers' rows. A ValueError with the argument and the row reports an invalid system number, a set
    with fewer than two systems or one twice, a choice that is not in its set, and a system that is both best and worst.

    >>> answers, systems, values = maxdiff_score_rows([[0, 1, 2], [2, 1, -1]], [0, 1], [2, 2], n_systems=3)
    >>> answers.tolist(), systems.tolist(), values.tolist()
    ([0, 0, 0, 1, 1], [0, 1, 2, 2, 1], [1.0, 0.0, -1.0, -1.0, 1.0])
    """
    return maxdiff_score_rows_of_checked_answers(BestWorstAnswers.from_arrays(sets, best, worst, n_systems))


def maxdiff_score_rows_of_checked_answers(checked_answers: BestWorstAnswers) -> tuple[IntArray, IntArray, FloatArray]:
    """Return `maxdiff_score_rows` of answers that were checked."""
    answers, columns = np.nonzero(checked_answers.is_shown)
    systems = checked_answers.systems[answers, columns]
    values = (systems == checked_answers.best[answers]).astype(np.float64) - (systems == checked_answers.worst[answers])
    return answers.astype(np.int64), systems, np.asarray(values)


def person_and_prompt_cluster_codes(
    people: npt.ArrayLike, prompts: npt.ArrayLike | None, n_rows: int
) -> tuple[IntArray, int, IntArray | None]:
    """Return integer codes of people and prompts, and the number of people.

    Prompts are None if there is only one.
    """
    people_codes, n_people = label_codes(np.asarray(people), "people", n_rows)
    if prompts is None:
        return people_codes, n_people, None
    prompt_codes, n_prompts = label_codes(np.asarray(prompts), "prompts", n_rows)
    return people_codes, n_people, prompt_codes if n_prompts > 1 else None


def _chosen(values: npt.ArrayLike, name: str, systems: IntArray) -> IntArray:
    array = np.asarray(values)
    if array.shape != (len(systems),):
        raise ValueError(f"{name}: expected {len(systems)} systems, got an array of shape {array.shape}")
    if len(array) and array.dtype.kind not in "iu":
        raise ValueError(f"{name}: systems are numbered with integers")
    codes = array.astype(np.int64)
    is_there = (systems == codes[:, None]).any(axis=1) & (codes != PADDING)
    absent = np.flatnonzero(~is_there)
    if len(absent):
        raise ValueError(f"{name}: row {absent[0]} is {codes[absent[0]]}, which its set does not show")
    return codes
