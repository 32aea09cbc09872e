"""Best-worst answers in rows, checked: the sets that were shown, and what was chosen in each."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, codes

# What stands in the place of a system where a set is smaller than the largest one.
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
    def of(cls, sets: npt.ArrayLike, best: npt.ArrayLike, worst: npt.ArrayLike, n_systems: int) -> "BestWorstAnswers":
        """Raises ValueError, naming the argument and the row, for what is no answer about a set of systems."""
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
        both = np.flatnonzero(chosen[0] == chosen[1])
        if len(both):
            raise ValueError(f"worst: row {both[0]} has system {chosen[1][both[0]]} as the worst and as the best")
        return cls(systems, is_shown, chosen[0], chosen[1], n_systems)

    def shown(self) -> IntArray:
        """How often each system was shown; shape (n_systems,)."""
        return np.bincount(self.systems[self.is_shown], minlength=self.n_systems)

    def renumber(self, present: IntArray) -> "BestWorstAnswers":
        """The same with the systems `present`, all that were shown, as numbers from 0."""
        numbers = np.full(self.n_systems, PADDING, dtype=np.int64)
        numbers[present] = np.arange(len(present))
        systems = np.where(self.is_shown, numbers[self.systems], PADDING)
        return BestWorstAnswers(systems, self.is_shown, numbers[self.best], numbers[self.worst], len(present))

    def win_matrix(self) -> BoolArray:
        """Whether the row was chosen over the column at least once: as the best of a set, or where the column was its worst."""
        rows, columns = np.nonzero(self.is_shown)
        found = np.zeros((self.n_systems, self.n_systems), dtype=np.bool_)
        found[self.best[rows], self.systems[rows, columns]] = True
        found[self.systems[rows, columns], self.worst[rows]] = True
        np.fill_diagonal(found, False)
        return found


def maxdiff_rows(
    sets: npt.ArrayLike, best: npt.ArrayLike, worst: npt.ArrayLike, *, n_systems: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """One row for each system of each set: the answer's row, the system, and 1 (best), -1 (worst) or 0.

    `sets` has shape (n, k) with system numbers 0..n_systems-1, -1 where a set is smaller than k; `best` and `worst` (n,)
    are the systems that were chosen. The means of the values are the scores of `maxdiff_counts`; with the people of the
    answers' rows they are what `ranks.rank_sets_of_rows` needs. Raises ValueError, naming the argument and the row, for
    a system that is not one of n_systems, a set of fewer than two, a system twice in a set, a choice that the set does
    not show, and one system as best and as worst.

    >>> answers, systems, values = maxdiff_rows([[0, 1, 2], [2, 1, -1]], [0, 1], [2, 2], n_systems=3)
    >>> answers.tolist(), systems.tolist(), values.tolist()
    ([0, 0, 0, 1, 1], [0, 1, 2, 2, 1], [1.0, 0.0, -1.0, -1.0, 1.0])
    """
    return answer_rows(BestWorstAnswers.of(sets, best, worst, n_systems))


def answer_rows(checked_answers: BestWorstAnswers) -> tuple[IntArray, IntArray, FloatArray]:
    """`maxdiff_rows` of what has been checked."""
    answers, columns = np.nonzero(checked_answers.is_shown)
    systems = checked_answers.systems[answers, columns]
    values = (systems == checked_answers.best[answers]).astype(np.float64) - (systems == checked_answers.worst[answers])
    return answers.astype(np.int64), systems, np.asarray(values)


def cluster_codes(
    people: npt.ArrayLike, prompts: npt.ArrayLike | None, n_rows: int
) -> tuple[IntArray, int, IntArray | None]:
    """The people and the prompts of the answers as integers from 0, and how many people there are.

    Prompts are None too where they cannot be clusters: where there is one, or where none was judged twice.
    """
    who, n_people = codes(np.asarray(people), "people", n_rows)
    if prompts is None:
        return who, n_people, None
    what, n_prompts = codes(np.asarray(prompts), "prompts", n_rows)
    return who, n_people, what if 1 < n_prompts < n_rows else None


def _chosen(values: npt.ArrayLike, name: str, systems: IntArray) -> IntArray:
    array = np.asarray(values)
    if array.shape != (len(systems),):
        raise ValueError(f"{name}: expected {len(systems)} systems, got an array of shape {array.shape}")
    if len(array) and array.dtype.kind not in "iu":
        raise ValueError(f"{name}: systems are numbered with integers")
    found = array.astype(np.int64)
    is_there = (systems == found[:, None]).any(axis=1) & (found != PADDING)
    absent = np.flatnonzero(~is_there)
    if len(absent):
        raise ValueError(f"{name}: row {absent[0]} is {found[absent[0]]}, which its set does not show")
    return found
