"""Convert rows of ratings and labels to tables of counts (units by values)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, label_codes, vector


def value_counts_by_unit(units: npt.ArrayLike, values: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Count how often each value was given to each unit.

    Parameters
    ----------
    units : array_like, shape (n_rows,)
        Label of each row's unit.
    values : array_like, shape (n_rows,)
        Ratings; a missing value is left out.

    Returns
    -------
    tuple[ndarray of float, ndarray of float]
        The table (n_units, n_values), and the sorted values of its columns.

    Examples
    --------
    >>> counts, values = value_counts_by_unit(["a", "a", "b"], [1, 3, 3])
    >>> counts.tolist(), values.tolist()
    ([[1.0, 1.0], [0.0, 1.0]], [1.0, 3.0])
    """
    array = vector(values, "values")
    positions, n_units = label_codes(np.asarray(units), "units", len(array))
    here = ~np.isnan(array)
    kept = array if here.all() else array[here]
    positions = positions if here.all() else positions[here]
    found, columns = _scale(kept)
    table = np.bincount(positions * len(found) + columns, minlength=n_units * len(found))
    return table.reshape(n_units, len(found)).astype(np.float64), found


def as_label_list(labels: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
    """Convert labels of any kind to a list of Python objects.

    Parameters
    ----------
    labels : sequence[Any] or ndarray
        Text, numbers or sets; None is missing.

    Returns
    -------
    list[Any]
        The labels.

    Examples
    --------
    >>> as_label_list(np.array([1, 2])), as_label_list([np.int64(3), None])
    ([1, 2], [3, None])
    """
    if isinstance(labels, np.ndarray):
        return list(labels.tolist())
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def category_codes(
    labels: Sequence[Any] | npt.NDArray[Any], *, categories: Sequence[Any] | None = None, name: str = "labels"
) -> tuple[IntArray, tuple[Any, ...]]:
    """Code each label by its place among the categories.

    Parameters
    ----------
    labels : sequence[Any] or ndarray
        Labels; None or NaN is missing.
    categories : sequence[Any], optional
        The categories in their order. If None, the sorted labels, which must be text or numbers.
    name : str, default 'labels'
        Name of the argument in error messages.

    Returns
    -------
    tuple[ndarray of int, tuple[Any, ...]]
        The codes, -1 for missing, and the categories.

    Raises
    ------
    ValueError
        If a label is not one of the categories, a category is repeated, or `categories` are needed to order the
        labels.

    Examples
    --------
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
        raise ValueError("categories: a category is repeated")
    unknown = found - set(place)
    if unknown:
        row = next(row for row, label in enumerate(given) if label in unknown)
        raise ValueError(f"{name}: row {row} is {given[row]!r}, none of the categories")
    return np.array([place.get(label, -1) for label in given], dtype=np.int64), tuple(categories)


def category_counts_by_unit(
    units: npt.ArrayLike, labels: Sequence[Any] | npt.NDArray[Any], *, categories: Sequence[Any] | None = None
) -> tuple[FloatArray, tuple[Any, ...]]:
    """Count how often each category was given to each unit.

    Parameters
    ----------
    units : array_like, shape (n_rows,)
        Label of each row's unit. A unit stays in the table if its labels are missing.
    labels : sequence[Any] or ndarray, shape (n_rows,)
        Labels; None or NaN is left out.
    categories : sequence[Any], optional
        The answers that were offered, in their order. `gwet_ac1` depends on their number, also on those never chosen.

    Returns
    -------
    tuple[ndarray of float, tuple[Any, ...]]
        The table (n_units, n_categories), and the category of each column.

    Examples
    --------
    >>> table, categories = category_counts_by_unit(["i", "i", "j"], ["A", "B", "A"])
    >>> table.tolist(), categories
    ([[1.0, 1.0], [1.0, 0.0]], ('A', 'B'))
    """
    columns, offered = category_codes(labels, categories=categories)
    positions, n_units = label_codes(np.asarray(units), "units", len(columns))
    here = columns >= 0
    table = np.bincount(positions[here] * len(offered) + columns[here], minlength=n_units * len(offered))
    return table.reshape(n_units, len(offered)).astype(np.float64), offered


def _scale(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct values, ascending, and the place of each rating among them."""
    whole = values.astype(np.int64)
    if len(values) and np.array_equal(whole, values):
        places, n_values = label_codes(whole, "values", len(values))
        found = np.empty(n_values)
        found[places] = values
        return found, places
    found, places = np.unique(values, return_inverse=True)
    return found, np.asarray(places, dtype=np.int64)
