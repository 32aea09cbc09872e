"""Ratings and labels in rows as tables of counts: units by values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, codes, vector


def count_table(units: npt.ArrayLike, values: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Ratings in rows as a table of shape (n_units, n_values): how often each value was given to each unit.

    `units` and `values` have shape (n_rows,); a missing value is left out. Returns the table and the sorted values of
    its columns.

    >>> counts, values = count_table(["a", "a", "b"], [1, 3, 3])
    >>> counts.tolist(), values.tolist()
    ([[1.0, 1.0], [0.0, 1.0]], [1.0, 3.0])
    """
    array = vector(values, "values")
    positions, n_units = codes(np.asarray(units), "units", len(array))
    here = ~np.isnan(array)
    kept = array if here.all() else array[here]
    positions = positions if here.all() else positions[here]
    found, columns = _scale(kept)
    table = np.bincount(positions * len(found) + columns, minlength=n_units * len(found))
    return table.reshape(n_units, len(found)).astype(np.float64), found


def as_label_list(labels: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
    """Labels of any kind as a list of Python's own: text, numbers, sets, None where one is missing.

    >>> as_label_list(np.array([1, 2])), as_label_list([np.int64(3), None])
    ([1, 2], [3, None])
    """
    if isinstance(labels, np.ndarray):
        return list(labels.tolist())
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def category_codes(
    labels: Sequence[Any] | npt.NDArray[Any], *, categories: Sequence[Any] | None = None, name: str = "labels"
) -> tuple[IntArray, tuple[Any, ...]]:
    """The place of each label among `categories`, -1 where it is missing (None or NaN), and the categories.

    Without `categories` they are the labels found, sorted, which must then be text or numbers. Raises ValueError,
    naming the row, for a label that is none of the categories.

    >>> category_codes(["yes", None, "no"], categories=["no", "yes", "maybe"])[0].tolist()
    [1, -1, 0]
    """
    given = as_label_list(labels)
    found = {label for label in given if label is not None and label == label}
    if categories is None:
        unordered = [label for label in found if not isinstance(label, (str, int, float))]
        if unordered:
            raise ValueError(f"categories: needed to order labels such as {unordered[0]!r}")
        categories = sorted(found, key=lambda label: (isinstance(label, str), label))
    place = {category: column for column, category in enumerate(categories)}
    if len(place) < len(categories):
        raise ValueError("categories: one of them stands twice")
    unknown = found - set(place)
    if unknown:
        row = next(row for row, label in enumerate(given) if label in unknown)
        raise ValueError(f"{name}: row {row} is {given[row]!r}, none of the categories")
    return np.array([place.get(label, -1) for label in given], dtype=np.int64), tuple(categories)


def category_table(
    units: npt.ArrayLike, labels: Sequence[Any] | npt.NDArray[Any], *, categories: Sequence[Any] | None = None
) -> tuple[FloatArray, tuple[Any, ...]]:
    """Labels of any kind in rows as a table of shape (n_units, n_categories), and the category of each column.

    `units` and `labels` have shape (n_rows,); a missing label (None or NaN) is left out, its unit stays. `categories`
    are the answers that were offered, in their order: the chance agreement of `gwet_ac1` depends on how many there
    were, also on those that nobody chose; see `category_codes`.

    >>> table, categories = category_table(["i", "i", "j"], ["A", "B", "A"])
    >>> table.tolist(), categories
    ([[1.0, 1.0], [1.0, 0.0]], ('A', 'B'))
    """
    columns, offered = category_codes(labels, categories=categories)
    positions, n_units = codes(np.asarray(units), "units", len(columns))
    here = columns >= 0
    table = np.bincount(positions[here] * len(offered) + columns[here], minlength=n_units * len(offered))
    return table.reshape(n_units, len(offered)).astype(np.float64), offered


def _scale(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct values, ascending, and the place of each rating among them."""
    whole = values.astype(np.int64)
    if len(values) and np.array_equal(whole, values):
        places, n_values = codes(whole, "values", len(values))
        found = np.empty(n_values)
        found[places] = values
        return found, places
    found, places = np.unique(values, return_inverse=True)
    return found, np.asarray(places, dtype=np.int64)
