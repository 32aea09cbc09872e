"""The first place of a board of scores."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes_where,
    validate_within_bounds,
    vector,
)
from analysis.stats.first_place._removal import (
    SMALLEST_LEAD,
    Candidate,
    FirstPlaceSensitivity,
    checked_removal,
    first_of,
    new_first,
    without_change,
)


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
        checked_removal("answer", len(rows), by_answer, names, rows.tolist(), board.is_still_first(first)),
        checked_removal("annotator", n_people, by_person, names, people, board.is_still_first_without_people(first)),
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
