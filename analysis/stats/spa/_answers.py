"""Check and combine answers in both orders of naming."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic
from analysis.stats.arrays import FloatArray, matrix

BOUNDS = (0.0, 1.0)


def combine_orders(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike) -> FloatArray:
    """Combine the answers of each annotator in both orders to one P[x > y] in 0..1.

    Parameters
    ----------
    xy_percent, yx_percent : array_like, shape (n,) or (n, P)
        Answers on 0..100 with x (or y) named first; NaN is missing.

    Returns
    -------
    ndarray of float
        (p_xy + 1 - p_yx) / 2 if both orders were answered, else the value from the one that was.

    Raises
    ------
    ValueError
        If an answer is outside 0..100 or the shapes differ.

    Notes
    -----
    A preference for the system that is named first cancels out.

    Examples
    --------
    >>> combine_orders([70, 60, None], [30, None, None]).tolist()
    [0.7, 0.6, nan]
    """
    xy, yx = checked_orders(xy_percent, yx_percent)
    total = xy + 100 - yx
    halves = np.where(np.isnan(total), np.where(np.isnan(xy), 2 * (100 - yx), 2 * xy), total)
    return np.asarray(halves / 200, dtype=np.float64)


def share_with_wilson_interval(count: int, n: int, level: float = 0.95) -> dict[str, Any]:
    """Return a share of annotators with Wilson's interval, as a dict for the report."""
    if n == 0:
        return {"count": 0, "n": 0, "share": None, "low": None, "high": None}
    low, high = basic.wilson_interval(count, n, level)
    return {"count": count, "n": n, "share": count / n, "low": low, "high": high}


def checked_orders(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both orders as arrays of one shape. Raise ValueError with the row for an answer outside 0..100."""
    xy, yx = np.asarray(xy_percent, dtype=np.float64), np.asarray(yx_percent, dtype=np.float64)
    if xy.shape != yx.shape:
        raise ValueError(f"yx_percent: shape {yx.shape} where xy_percent has {xy.shape}")
    for name, array in (("xy_percent", xy), ("yx_percent", yx)):
        outside = np.argwhere((array < 0) | (array > 100))
        if len(outside):
            where = tuple(outside[0].tolist())
            raise ValueError(f"{name}: row {where[0]} is {array[where]:g}, outside 0..100")
    return xy, yx


def checked_order_tables(
    xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike, names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """Return both orders as tables (annotators by pairs). Raise ValueError unless there is one name for each pair."""
    xy, yx = checked_orders(matrix(xy_percent, "xy_percent"), matrix(yx_percent, "yx_percent"))
    if len(names) != xy.shape[1]:
        raise ValueError(f"names: {len(names)} names where xy_percent has {xy.shape[1]} pairs")
    if len(set(names)) != len(names):
        raise ValueError("names: a pair occurs twice")
    return xy, yx
