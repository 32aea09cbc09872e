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
    is_observed = ~np.isnan(array)
    observed = array if is_observed.all() else array[is_observed]
    positions = positions if is_observed.all() else positions[is_observed]
    distinct, columns = _scale(observed)
    table = np.bincount(positions * len(distinct) + columns, minlength=n_units * len(distinct))
    return table.reshape(n_units, len(distinct)).astype(np.float64), distinct


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
    label_list = as_label_list(labels)
    occurring = {label for label in label_list if label is not None and label == label}
    if categories is None:
        unordered = [label for label in occurring if not isinstance(label, (str, int, float))]
        if unordered:
            raise ValueError(f"categories: needed to order labels such as {unordered[0]!r}")
        categories = sorted(occurring, key=lambda label: (isinstance(label, str), label))
    column_of = {category: column for column, category in enumerate(categories)}
    if len(column_of) < len(categories):
        raise ValueError("categories: a category is repeated")
    unknown = occurring - set(column_of)
    if unknown:
        row = next(row for row, label in enumerate(label_list) if label in unknown)
        raise ValueError(f"{name}: row {row} is {label_list[row]!r}, none of the categories")
    return np.array([column_of.get(label, -1) for label in label_list], dtype=np.int64), tuple(categories)


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
    is_known = columns >= 0
    table = np.bincount(positions[is_known] * len(offered) + columns[is_known], minlength=n_units * len(offered))
    return table.reshape(n_units, len(offered)).astype(np.float64), offered


def _scale(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct values, ascending, and the place of each rating among them."""
    integers = values.astype(np.int64)
    if len(values) and np.array_equal(integers, values):
        places, n_values = label_codes(integers, "values", len(values))
        distinct = np.empty(n_values)
        distinct[places] = values
        return distinct, places
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, np.asarray(places, dtype=np.int64)
