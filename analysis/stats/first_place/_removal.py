"""What is left out of a board, and the check that it changes the first place."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.stats.arrays import FloatArray, IntArray
from analysis.stats.results import Record

# A lead below this is rounding.
SMALLEST_LEAD = 1e-12


@dataclass(frozen=True, slots=True)
class Removal(Record):
    """The fewest of `total` answers or people (`unit`) found whose removal gives another system the first place.

    `n` is their number and `share` their share, after a refit; `challenger` is then first. `predicted` is the number by
    first-order influence alone. `removed` are the rows, or the labels of the people. Without a change `n` is None, with
    a `status` and a `reason`. The search is greedy, so fewer can be possible.
    """

    unit: str
    total: int
    n: int | None
    share: float | None
    predicted: int | None
    is_confirmed: bool
    challenger: Any
    removed: tuple[Any, ...]
    status: str = "ok"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FirstPlaceSensitivity(Record):
    """The first system of a board, and the fewest answers and the fewest people who decide that it is first."""

    first: Any
    answers: Removal
    people: Removal


# The predicted number, the challenger, and the members to leave out for each number.
Candidate = tuple[int | None, int, Callable[[int], IntArray]]


def first_of(order: IntArray) -> Callable[[int], IntArray]:
    """Return a function of n that returns the first n of an order."""
    return lambda n: order[:n]


def new_first(scores: FloatArray, first: int) -> int | None:
    """Return the system with the highest score if it is clearly another than `first`, otherwise None."""
    best = int(np.argmax(scores))
    return best if best != first and scores[best] > scores[first] + SMALLEST_LEAD else None


def checked_removal(
    unit: str,
    total: int,
    found: Candidate,
    names: list[Any],
    labels: list[Any],
    refit: Callable[[IntArray], int | None],
) -> Removal:
    """Return the removal after refits: fewer than predicted if that is enough, more if it is not."""
    predicted, _, members = found
    if predicted is None:
        reason = "no removal that leaves every system an answer changes the first place"
        return Removal(unit, total, None, None, None, False, None, (), "not_identified", reason)
    n, most = predicted, predicted + max(10, predicted // 2)
    new = refit(members(n))
    while new is None and n < most and len(members(n + 1)) > n:
        n += 1
        new = refit(members(n))
    while new is not None and n > 1 and (fewer := refit(members(n - 1))) is not None:
        n, new = n - 1, fewer
    if new is None:
        reason = "the removal that influence predicts did not change the first place after a refit"
        return Removal(unit, total, None, None, predicted, False, None, (), "not_identified", reason)
    removed = tuple(labels[one] for one in members(n).tolist())
    return Removal(unit, total, n, n / total, predicted, True, names[new], removed)


def without_change(first: Any, n_rows: int, n_people: int, status: str, reason: str) -> FirstPlaceSensitivity:
    """Return the result of a board whose first place nothing can change, or that has none."""
    none = (None, None, None, False, None, (), status, reason)
    return FirstPlaceSensitivity(first, Removal("answer", n_rows, *none), Removal("annotator", n_people, *none))
