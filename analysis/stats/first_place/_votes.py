"""The first place of a board of votes."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes_where,
    validate_within_bounds,
    vector,
)
from analysis.stats.bradley_terry import checked_system_pairs
from analysis.stats.davidson import bradley_terry_strengths
from analysis.stats.first_place._removal import (
    Candidate,
    FirstPlaceSensitivity,
    checked_removal,
    first_of,
    new_first,
    without_change,
)

# Of the challengers, as many as this are checked by refits: those that seem to need the fewest removals.
CHECKED_CHALLENGERS = 3


def first_place_sensitivity_of_votes(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_systems: int,
) -> FirstPlaceSensitivity:
    """Estimate how few votes, and how few people, would have to be left out for another system to be the strongest.

    Systems have the numbers 0..n_systems-1; an outcome is 1 if the first was chosen, 0 if the second was, .5 for a tie
    (half a win for each), and NaN if it is missing. The influence of a vote on the difference of two strengths is c'
    I^-1 s, with its score s and the information I of all votes; that of a person is the sum over votes. The three
    challengers that need the fewest removals by influence are checked by refits. The status is `not_identified` if the
    Bradley-Terry strengths of all votes have no maximum.

    >>> first, people = np.tile([0, 1, 2], 40), np.arange(120) // 6
    >>> outcomes = np.where(first == 2, np.arange(120) % 10 < 4, np.arange(120) % 20 < 11)
    >>> found = first_place_sensitivity_of_votes(first, (first + 1) % 3, outcomes, people, n_systems=3)
    >>> found.first, found.answers.is_confirmed, 0 < found.answers.n <= found.people.n * 6
    (0, True, True)
    """
    votes = vector(np.asarray(outcomes, dtype=np.float64), "outcomes")
    validate_within_bounds(votes, (0.0, 1.0), "outcomes")
    x, y = checked_system_pairs(first, second, len(votes), n_systems)
    is_used = ~np.isnan(votes)
    rows = np.flatnonzero(is_used)
    codes, n_people = label_codes_where(annotators, "annotators", is_used)
    people = np.unique(np.asarray(annotators)[is_used]).tolist()
    x, y, votes = x[is_used], y[is_used], votes[is_used]
    names = list(range(n_systems))

    def strengths(kept: BoolArray) -> FloatArray | None:
        cells, size = x * n_systems + y, n_systems**2
        won = np.bincount(cells[kept], votes[kept], minlength=size).reshape(n_systems, n_systems)
        lost = np.bincount(cells[kept], 1 - votes[kept], minlength=size).reshape(n_systems, n_systems)
        return bradley_terry_strengths(won + lost.T)

    fitted = strengths(np.ones(len(votes), dtype=np.bool_)) if len(votes) and n_systems > 1 else None
    if fitted is None:
        status = "not_applicable" if n_systems < 2 else "not_identified"
        reason = "there is no other system" if n_systems < 2 else "the strengths of all votes have no maximum"
        return without_change(None, len(rows), n_people, status, reason)
    leader = int(np.argmax(fitted))
    chances = special.expit(fitted[x] - fitted[y])
    curvature = np.bincount(x * n_systems + y, chances * (1 - chances), minlength=n_systems**2)
    table = curvature.reshape(n_systems, n_systems)
    table = table + table.T
    inverse = np.linalg.inv(np.diag(table.sum(axis=1)) - table + table.mean())

    def refit(codes_of_rows: IntArray) -> Callable[[IntArray], int | None]:
        def changed(left_out: IntArray) -> int | None:
            again = strengths(~np.isin(codes_of_rows, left_out))
            return None if again is None else new_first(again, leader)

        return changed

    removals = []
    for codes_of_rows, total, labels, name in (
        (np.arange(len(votes)), len(votes), rows.tolist(), "answer"),
        (codes, n_people, people, "annotator"),
    ):
        found: list[Candidate] = []
        for challenger in (one for one in range(n_systems) if one != leader):
            apart = inverse[leader] - inverse[challenger]
            moves = group_sums(codes_of_rows, (apart[x] - apart[y]) * (votes - chances), total)
            number, order = _largest_until(moves, float(fitted[leader] - fitted[challenger]))
            found.append((number, challenger, first_of(order)))
        found.sort(key=lambda one: (one[0] is None, one[0]))
        tried = [
            checked_removal(name, total, one, names, labels, refit(codes_of_rows))
            for one in found[:CHECKED_CHALLENGERS]
        ]
        removals.append(min(tried, key=lambda one: (one.n is None, one.n)))
    return FirstPlaceSensitivity(leader, removals[0], removals[1])


def _largest_until(moves: FloatArray, gap: float) -> tuple[int | None, IntArray]:
    """Return how many of the largest moves exceed the gap together, and at least twice as many, the largest first."""
    size = 256
    while True:
        size = min(size, len(moves))
        largest = np.argpartition(-moves, size - 1)[:size]
        order = largest[np.argsort(-moves[largest], kind="stable")]
        closed = np.cumsum(moves[order]) > gap
        number = int(np.argmax(closed)) + 1 if closed.any() else None
        if size == len(moves) or (number is not None and 2 * number <= size):
            return number, order
        size *= 8
