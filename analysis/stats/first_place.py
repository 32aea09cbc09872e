"""How few answers, or how few people, decide who is first.

A first place with a small p-value can still rest on a handful of answers. The answers (or people) are ordered by what
leaving each of them out does to the lead, to first order. The smallest set whose sum exceeds the lead is found, and the
board is computed again without it.

Reference: Broderick, Giordano and Meager 2020, An automatic finite-sample robustness metric: when can dropping a
little data make a big difference?
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
from analysis.stats.davidson import bradley_terry_strengths
from analysis.stats.removals import Members, Removal, checked_removal, first_of
from analysis.stats.results import Record
from analysis.stats.votes import checked_system_pairs

# A lead below this is rounding.
SMALLEST_LEAD = 1e-12
NOTHING_CHANGES = "no removal that leaves every system an answer changes the first place"
NOT_CONFIRMED = "the removal that influence predicts did not change the first place after a refit"


@dataclass(frozen=True, slots=True)
class FirstPlaceSensitivity(Record):
    """The first system of a board, and the fewest answers and the fewest people who decide that it is first."""

    first: Any
    answers: Removal
    people: Removal


# The predicted number, the challenger, and the members to leave out for each number.
Candidate = tuple[int | None, int, Members]


def new_first(scores: FloatArray, first: int) -> int | None:
    """Return the system with the highest score if it is clearly another than `first`, otherwise None."""
    best = int(np.argmax(scores))
    return best if best != first and scores[best] > scores[first] + SMALLEST_LEAD else None


def board_removal(
    unit: str,
    total: int,
    found: Candidate,
    names: list[Any],
    labels: list[Any],
    refit: Callable[[IntArray], int | None],
) -> Removal:
    """Return the removal after refits, at most half more than predicted."""
    predicted, _, members = found
    if predicted is None:
        return Removal(unit, total, None, None, None, False, None, (), "not_identified", NOTHING_CHANGES)
    most = predicted + max(10, predicted // 2)

    def challenger(left_out: IntArray) -> Any:
        new = refit(left_out)
        return None if new is None else names[new]

    return checked_removal(
        unit, total, predicted, members, labels, challenger, most=len(members(most)), reason=NOT_CONFIRMED
    )


def without_change(first: Any, n_rows: int, n_people: int, status: str, reason: str) -> FirstPlaceSensitivity:
    """Return the result of a board whose first place nothing can change, or that has none."""
    none = (None, None, None, False, None, (), status, reason)
    return FirstPlaceSensitivity(first, Removal("answer", n_rows, *none), Removal("annotator", n_people, *none))


# The first place of a board of scores.


def first_place_sensitivity(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
) -> FirstPlaceSensitivity:
    """Find how few answers, and how few people, would have to be left out for another system to have the highest score.

    `values` are answers in 0..1, with NaN for missing. A score is the mean over items of each item's mean. An answer of
    the first system has the influence w (v - score), one of a challenger -w (v - score), with its weight w. For each
    challenger the largest influences of both are left out, in the split between the two systems that closes the gap
    most. People are left out one at a time, each time the one without whom the gap is smallest. A refit gives items
    their equal weights again. With fewer than two systems the two removals are `not_applicable`.

    >>> values, systems = [1, 1, 1, 0, 0.5, 0.5, 0.5, 0.5], ["x"] * 4 + ["y"] * 4
    >>> found = first_place_sensitivity(values, systems, [1, 2, 3, 4] * 2, [1, 1, 2, 2, 1, 1, 2, 2])
    >>> found.first, found.answers.n, found.answers.share, found.people.n, found.people.challenger
    ('x', 3, 0.375, None, None)
    """
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    is_used = ~np.isnan(array)
    rows = np.flatnonzero(is_used)
    system_codes, k = label_codes_where(systems, "systems", is_used)
    item_codes, _ = label_codes_where(items, "items", is_used)
    people_codes, n_people = label_codes_where(annotators, "annotators", is_used)
    names = np.unique(np.asarray(systems)[is_used]).tolist()
    people = np.unique(np.asarray(annotators)[is_used]).tolist()
    board = _ScoreBoard(array[is_used], system_codes, item_codes, people_codes, k, n_people)
    if k < 2:
        first_name = names[0] if names else None
        reason = "there is no other system"
        return without_change(first_name, len(rows), n_people, "not_applicable", reason)
    scores = board.scores(np.ones(len(rows), dtype=np.bool_))
    first = int(np.argmax(scores))
    challengers = [int(one) for one in np.argsort(-scores, kind="stable") if one != first]
    by_answer = min(
        (board.fewest_answers(first, one) for one in challengers), key=lambda found: (found[0] is None, found[0])
    )
    by_person = board.fewest_people(first, challengers)
    return FirstPlaceSensitivity(
        names[first],
        board_removal("answer", len(rows), by_answer, names, rows.tolist(), board.is_still_first(first)),
        board_removal("annotator", n_people, by_person, names, people, board.is_still_first_without_people(first)),
    )


@dataclass(frozen=True, slots=True)
class _ScoreBoard:
    values: FloatArray
    systems: IntArray
    items: IntArray
    people: IntArray
    k: int
    n_people: int

    def weights(self, kept: BoolArray) -> FloatArray:
        """Return the weights of the kept rows, with the sum 1 for each system; 0 for the others."""
        cells = self.systems * (int(self.items.max()) + 1) + self.items
        per_cell = np.bincount(cells[kept], minlength=int(cells.max()) + 1)[cells]
        weights = np.where(kept, 1 / np.maximum(1, per_cell), 0.0)
        totals = group_sums(self.systems, weights, self.k)
        return np.asarray(weights / np.maximum(totals, SMALLEST_LEAD)[self.systems])

    def scores(self, kept: BoolArray) -> FloatArray:
        """Return the scores of the kept rows; minus infinity for a system without any."""
        found = group_sums(self.systems, self.weights(kept) * self.values, self.k)
        return np.where(np.bincount(self.systems[kept], minlength=self.k) > 0, found, -np.inf)

    def is_still_first(self, first: int) -> Callable[[IntArray], int | None]:
        """Return a function of rows to leave out that returns the new first system, or None."""

        def refit(left_out: IntArray) -> int | None:
            kept = np.ones(len(self.values), dtype=np.bool_)
            kept[left_out] = False
            return new_first(self.scores(kept), first)

        return refit

    def is_still_first_without_people(self, first: int) -> Callable[[IntArray], int | None]:
        """Return the same function of people to leave out."""

        def refit(left_out: IntArray) -> int | None:
            return new_first(self.scores(~np.isin(self.people, left_out)), first)

        return refit

    def fewest_answers(self, first: int, challenger: int) -> Candidate:
        weights = self.weights(np.ones(len(self.values), dtype=np.bool_))
        orders, means = [], []
        for system, sign in ((first, -1.0), (challenger, 1.0)):
            own = np.flatnonzero(self.systems == system)
            mean = float(weights[own] @ self.values[own])
            order = own[np.argsort(sign * weights[own] * (self.values[own] - mean), kind="stable")]
            # The means without the first 0, 1, 2, ... of the order; one answer has to stay.
            taken = np.append(0.0, np.cumsum(weights[order])[:-1])
            gone = np.append(0.0, np.cumsum(weights[order] * self.values[order])[:-1])
            orders.append(order)
            means.append((mean - gone) / (1 - taken))
        most = len(orders[0]) + len(orders[1]) - 2

        def split(n: int) -> tuple[int, float]:
            of_first = np.arange(max(0, n - len(orders[1]) + 1), min(n, len(orders[0]) - 1) + 1)
            gaps = means[0][of_first] - means[1][n - of_first]
            best = int(np.argmin(gaps))
            return int(of_first[best]), float(gaps[best])

        def members(n: int) -> IntArray:
            n = min(n, most)
            of_first, _ = split(n)
            return np.concatenate([orders[0][:of_first], orders[1][: n - of_first]])

        return _first_number(lambda n: split(n)[1], most), challenger, members

    def fewest_people(self, first: int, challengers: list[int]) -> Candidate:
        weights = self.weights(np.ones(len(self.values), dtype=np.bool_))
        cells = self.people * self.k + self.systems
        size = self.n_people * self.k
        shares = group_sums(cells, weights, size).reshape(self.n_people, self.k)
        sums = group_sums(cells, weights * self.values, size).reshape(self.n_people, self.k)
        best: Candidate = (None, challengers[0], first_of(np.arange(0)))
        fewest = self.n_people
        for challenger in challengers:
            order = _greedy_people(shares[:, [first, challenger]], sums[:, [first, challenger]], fewest)
            if order is not None and len(order) < fewest:
                fewest = len(order)
                best = (fewest, challenger, first_of(order))
        return best


def _first_number(gap: Callable[[int], float], most: int) -> int | None:
    """Return the smallest number from 1 to `most` whose gap is below 0; gaps fall with the number."""
    if most < 1 or gap(most) >= -SMALLEST_LEAD:
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if gap(middle) < -SMALLEST_LEAD:
            high = middle
        else:
            low = middle
    return high


def _greedy_people(shares: FloatArray, sums: FloatArray, fewest: int) -> IntArray | None:
    """Return people in the order of leaving them out until the gap is below 0; None if that takes `fewest` or more."""
    share, total = shares.sum(axis=0), sums.sum(axis=0)
    is_left = np.ones(len(shares), dtype=np.bool_)
    order: list[int] = []
    while len(order) < min(fewest, len(shares) - 1):
        remaining = share - shares
        with np.errstate(divide="ignore", invalid="ignore"):
            means = (total - sums) / remaining
        gaps = np.where(is_left & (remaining > SMALLEST_LEAD).all(axis=1), means[:, 0] - means[:, 1], np.inf)
        one = int(np.argmin(gaps))
        if not np.isfinite(gaps[one]):
            return None
        order.append(one)
        is_left[one] = False
        share, total = share - shares[one], total - sums[one]
        if gaps[one] < -SMALLEST_LEAD:
            return np.array(order)
    return None


# The first place of a board of votes.


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
            board_removal(name, total, one, names, labels, refit(codes_of_rows)) for one in found[:CHECKED_CHALLENGERS]
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
