"""Severity: how much lower or higher an annotator rates than others rate the same items."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import MIN_SPREAD, validate_level, vector
from analysis.stats.results import Interval, Record


@dataclass(frozen=True, slots=True)
class Severity(Record):
    """An annotator's mean difference from others. `n` counts items that others rated, too.

    `estimate` is in the units of the ratings: below 0 the annotator is severe, above 0 lenient. `standard_error` and
    `interval` are None with fewer than two items or without spread, and `reason` says so.
    """

    annotator: str
    n: int
    estimate: float | None
    standard_error: float | None
    interval: Interval | None
    reason: str = ""


def severity(
    items: Sequence[object] | npt.NDArray[np.object_],
    annotators: Sequence[object] | npt.NDArray[np.object_],
    ratings: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> tuple[Severity, ...]:
    """Return for each annotator the mean of "own rating minus the mean of others" over the items that others rated.

    The standard error is that of a mean of independent differences, with Student's t for the interval. It describes this
    annotator against these others; the differences of two annotators of the same item are not independent.

    Parameters
    ----------
    items, annotators : sequence, shape (n,)
        The item and the annotator of each rating. Several ratings of an item by one annotator count with their mean.
    ratings : array_like, shape (n,)
        Ratings on one scale; missing ones are left out.
    level : float
        Confidence level, between 0 and 1.

    Returns
    -------
    tuple of Severity
        Sorted by the annotator's name. Annotators without an item that others rated are missing.

    Raises
    ------
    ValueError
        For different lengths or a level outside 0..1.

    Examples
    --------
    >>> found = severity([1, 1, 2, 2, 3, 3], ["a", "b"] * 3, [0.2, 0.4, 0.5, 0.8, 0.1, 0.2])
    >>> [(one.annotator, round(one.estimate, 2), one.n) for one in found]
    [('a', -0.2, 3), ('b', 0.2, 3)]
    """
    validate_level(level)
    values = vector(ratings, "ratings")
    if not len(items) == len(annotators) == len(values):
        raise ValueError(f"items, annotators, ratings: lengths {len(items)}, {len(annotators)}, {len(values)} differ")
    known = ~np.isnan(values)
    item_names = np.array([str(one) for one in items], dtype=str)[known]
    people_names = np.array([str(one) for one in annotators], dtype=str)[known]
    if not len(item_names):
        return ()
    _, item = np.unique(item_names, return_inverse=True)
    names, person = np.unique(people_names, return_inverse=True)
    # One value for each annotator and item.
    cells, cell = np.unique(item * len(names) + person, return_inverse=True)
    own = np.bincount(cell, values[known]) / np.bincount(cell)
    item, person = cells // len(names), cells % len(names)
    n_of_item, sum_of_item = np.bincount(item), np.bincount(item, own)
    others = n_of_item[item] - 1
    shared = others > 0
    difference = own[shared] - (sum_of_item[item[shared]] - own[shared]) / others[shared]
    person = person[shared]
    found = []
    for k, name in enumerate(names):
        mine = difference[person == k]
        if len(mine):
            found.append(_severity_of(str(name), mine, level))
    return tuple(found)


def _severity_of(name: str, differences: npt.NDArray[np.float64], level: float) -> Severity:
    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return Severity(name, n, mean, None, None, "one item has no standard error")
    spread = float(differences.std(ddof=1))
    if spread < MIN_SPREAD:
        return Severity(name, n, mean, None, None, "all differences are equal")
    error = spread / n**0.5
    half = float(special.stdtrit(n - 1, (1 + level) / 2)) * error
    return Severity(name, n, mean, error, Interval(level, mean - half, mean + half, "t"))
