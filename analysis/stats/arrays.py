"""Validation and conversion of arguments."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Below this spread (of values, or of a standard error) a t statistic only measures rounding.
MIN_SPREAD = 1e-12
# Integers are counted in a table as long as their range if that is below so many times their number, and sorted otherwise.
SPARSEST = 16


def vector(values: npt.ArrayLike, name: str) -> FloatArray:
    """Convert `values` to a one-dimensional array of floats.

    None and NaN are missing, and NaN in the result. Another number of dimensions or an infinite value raises ValueError
    with `name`, the name of the argument (and the row).

    >>> vector([1, None, 3], "ratings").tolist()
    [1.0, nan, 3.0]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name}: expected one dimension, got {array.ndim}")
    _refuse_infinite(array, name)
    return array


def matrix(values: npt.ArrayLike, name: str) -> FloatArray:
    """Convert `values` to a two-dimensional array of floats.

    None and NaN are missing, and NaN in the result. Another number of dimensions or an infinite value raises ValueError
    with `name`, the name of the argument (and the row).

    >>> matrix([[1, 2], [None, 4]], "xy_percent").shape
    (2, 2)
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name}: expected two dimensions, got {array.ndim}")
    _refuse_infinite(array, name)
    return array


def binary_vector(values: npt.ArrayLike, name: str) -> FloatArray:
    """Convert `values` to a one-dimensional array of 0 and 1.

    None and NaN are missing, and NaN in the result. Any other value raises ValueError with `name`, the name of the
    argument, and the row.

    >>> binary_vector([1, 0, 0.5], "says")
    Traceback (most recent call last):
        ...
    ValueError: says: row 2 is 0.5, neither 0 nor 1
    """
    array = vector(values, name)
    strange = np.flatnonzero(~np.isnan(array) & (array != 0) & (array != 1))
    if len(strange):
        raise ValueError(f"{name}: row {int(strange[0])} is {array[strange[0]]:g}, neither 0 nor 1")
    return array


def drop_and_count_missing(values: npt.ArrayLike, name: str) -> tuple[FloatArray, int]:
    """Return the values that are not missing, and the number of missing ones.

    None and NaN are missing. The values stay in the same order. `name` is the name of the argument in error messages.

    >>> kept, n_missing = drop_and_count_missing([0.2, None, 0.4], "scores")
    >>> kept.tolist(), n_missing
    ([0.2, 0.4], 1)
    """
    array = vector(values, name)
    observed = array[~np.isnan(array)]
    return observed, len(array) - len(observed)


def label_codes(labels: npt.ArrayLike | Sequence[object], name: str, length: int) -> tuple[IntArray, int]:
    """Convert labels to integers 0..G-1.

    The labels may be of any kind that can be sorted. The result is the codes, of shape (length,), in the order of the
    sorted labels, and their number G. Another number of labels than `length`, or a missing label, raises ValueError
    with `name`, the name of the argument.

    >>> positions, n_groups = label_codes(["b", "a", "b"], "annotators", 3)
    >>> positions.tolist(), n_groups
    ([1, 0, 1], 2)
    """
    array = np.asarray(labels)
    if array.shape != (length,):
        raise ValueError(f"{name}: expected {length} labels, got an array of shape {array.shape}")
    if array.dtype == object:
        # Hashing is much faster than sorting a million texts.
        found = array.tolist()
        if None in (known := set(found)):
            raise ValueError(f"{name}: row {found.index(None)} has no label")
        number = {label: n for n, label in enumerate(sorted(known))}
        return np.fromiter(map(number.__getitem__, found), np.int64, length), len(number)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"{name}: row {int(np.flatnonzero(np.isnan(array))[0])} has no label")
    if array.dtype.kind in "iu" and length:
        low, span = int(array.min()), int(array.max()) - int(array.min()) + 1
        if span < SPARSEST * length + 1024:
            # Small integers as labels need no sorting, which saves time with a million rows.
            shifted = array.astype(np.int64) - low
            is_used = np.zeros(span, dtype=np.bool_)
            is_used[shifted] = True
            return (np.cumsum(is_used) - 1)[shifted], int(is_used.sum())
    distinct, inverse = np.unique(array, return_inverse=True)
    return np.asarray(inverse, dtype=np.int64), len(distinct)


def distinct_integers(values: IntArray, limit: int) -> IntArray:
    """Return the distinct values, sorted; they are from 0 to below `limit`.

    >>> distinct_integers(np.array([4, 1, 4]), 5).tolist()
    [1, 4]
    """
    # NumPy's ``unique`` needs ten times as long for hundreds of thousands of distinct integers.
    if limit < SPARSEST * len(values):
        is_used = np.zeros(limit, dtype=np.bool_)
        is_used[values] = True
        return np.flatnonzero(is_used)
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=-1) > 0]


def label_codes_where(labels: npt.ArrayLike | Sequence[object], name: str, mask: BoolArray) -> tuple[IntArray, int]:
    """Return `label_codes` of the rows in a mask. Every row must have a label, also outside the mask.

    `labels` and `mask` have the shape (n,). The result is the codes of the rows in the mask, and the number of
    different labels there. `name` is the name of the argument in error messages.

    >>> positions, n_groups = label_codes_where(["b", "a", "b"], "annotators", np.array([True, False, True]))
    >>> positions.tolist(), n_groups
    ([0, 0], 1)
    """
    positions, _ = label_codes(labels, name, len(mask))
    return label_codes(positions[mask], name, int(mask.sum()))


def group_sums(group_codes: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    """Return the sum of the values in each group.

    `group_codes` (0..n_groups-1) and `values` have the shape (n,). The sums have the shape (n_groups,), with 0 for an
    empty group.

    >>> group_sums(np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), 2).tolist()
    [4.0, 2.0]
    """
    return np.asarray(np.bincount(group_codes, weights=values, minlength=n_groups), dtype=np.float64)


def group_sizes(group_codes: IntArray, n_groups: int) -> FloatArray:
    """Return the number of members of each group, as floats of shape (n_groups,); the codes are 0..n_groups-1.

    >>> group_sizes(np.array([0, 1, 0]), 2).tolist()
    [2.0, 1.0]
    """
    return np.asarray(np.bincount(group_codes, minlength=n_groups), dtype=np.float64)


def mid_ranks(values: FloatArray) -> FloatArray:
    """Return the rank of each value, 1 for the smallest; equal values share the mean of their ranks.

    >>> mid_ranks(np.array([0.5, 0.1, 0.5])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[codes], dtype=np.float64)


def validate_within_bounds(values: FloatArray, bounds: tuple[float, float], name: str) -> None:
    """Raise ValueError with the argument and the row for a value outside the closed bounds.

    >>> validate_within_bounds(np.array([0.2, 1.2]), (0, 1), "scores")
    Traceback (most recent call last):
        ...
    ValueError: scores: row 1 is 1.2, outside 0..1
    """
    outside = np.flatnonzero((values < bounds[0]) | (values > bounds[1]))
    if len(outside):
        row = int(outside[0])
        raise ValueError(f"{name}: row {row} is {values.flat[row]:g}, outside {bounds[0]:g}..{bounds[1]:g}")


def validate_level(level: float) -> None:
    """Raise ValueError unless `level` is a confidence level, strictly between 0 and 1.

    >>> validate_level(95)
    Traceback (most recent call last):
        ...
    ValueError: level: 95 is not strictly between 0 and 1
    """
    if not 0 < level < 1:
        raise ValueError(f"level: {level!r} is not strictly between 0 and 1")


def validate_share(share: float, name: str) -> None:
    """Raise ValueError with the argument for a share outside 0..1 or missing.

    >>> validate_share(1.2, "machine_share")
    Traceback (most recent call last):
        ...
    ValueError: machine_share: 1.2 is not in 0..1
    """
    if not 0 <= share <= 1:
        raise ValueError(f"{name}: {share!r} is not in 0..1")


def validate_non_negative(**amounts: float) -> None:
    """Raise ValueError with the argument for a number below 0, infinite or missing.

    >>> validate_non_negative(pay=12.5, fee_rate=-0.1)
    Traceback (most recent call last):
        ...
    ValueError: fee_rate: -0.1 is not a non-negative number
    """
    for name, amount in amounts.items():
        if not (math.isfinite(amount) and amount >= 0):
            raise ValueError(f"{name}: {amount!r} is not a non-negative number")


def validate_finite(**numbers: float) -> None:
    """Raise ValueError with the argument for an infinite or missing number.

    >>> validate_finite(d_prime=math.nan)
    Traceback (most recent call last):
        ...
    ValueError: d_prime: nan is not a finite number
    """
    for name, number in numbers.items():
        if not math.isfinite(number):
            raise ValueError(f"{name}: {number!r} is not a finite number")


def is_whole(number: float) -> bool:
    """Return whether a number is whole; False for infinite or missing.

    >>> is_whole(3.0), is_whole(2.5), is_whole(math.inf)
    (True, False, False)
    """
    return math.isfinite(number) and number == int(number)


def _refuse_infinite(array: FloatArray, name: str) -> None:
    if np.isinf(array).any():
        raise ValueError(f"{name}: row {int(np.argwhere(np.isinf(array))[0][0])} is infinite")


# How far a sample is from the assumptions of a t test.


# If this share of the answers is equal and n is below CEILING_N, neither t nor a bootstrap covers the mean.
CEILING_SHARE = 0.9
CEILING_N = 100
# With this skewness the t test rejects too often in small samples; its error falls with skewness^2 / n.
# The two meet at n = 30; at n = 90 a skewness of 2.6 still gives .08 where .05 is promised.
SKEW = 1.5
SKEW_PER_N = SKEW**2 / 30


def skew(values: FloatArray) -> float:
    """Compute the moment coefficient of skewness, m3 / m2^(3/2), of values without missing ones.

    The skewness is 0 if the values do not vary.

    >>> round(skew(np.array([0.0, 0.0, 0.0, 1.0])), 4)
    1.1547
    """
    centred = values - np.mean(values)
    second = float(np.mean(centred**2))
    return 0.0 if second < MIN_SPREAD**2 else float(np.mean(centred**3)) / second**1.5


def most_frequent_value_share(values: FloatArray) -> float:
    """Return the share of the most frequent value; `values` has none missing.

    >>> most_frequent_value_share(np.array([1.0, 0.5, 1.0, 1.0]))
    0.75
    """
    _, counts = np.unique(values, return_counts=True)
    return float(counts.max()) / len(values)
