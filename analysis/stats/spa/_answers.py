"""Answers in both orders of naming, checked and combined."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic
from analysis.stats.arrays import FloatArray, matrix

BOUNDS = (0.0, 1.0)


def combine_orders(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike) -> FloatArray:
    """Each annotator's P[x > y] in 0..1: (p_xy + 1 - p_yx) / 2 from both orders, else the one that was answered.

    Both arguments have one shape, (n,) or (n, P). An annotator's liking for whoever is named first cancels out.
    Raises ValueError for answers outside 0..100 or shapes that differ.

    >>> combine_orders([70, 60, None], [30, None, None]).tolist()
    [0.7, 0.6, nan]
    """
    xy, yx = checked_orders(xy_percent, yx_percent)
    both = xy + 100 - yx
    halves = np.where(np.isnan(both), np.where(np.isnan(xy), 2 * (100 - yx), 2 * xy), both)
    return np.asarray(halves / 200, dtype=np.float64)


def share_with_interval(count: int, n: int, level: float = 0.95) -> dict[str, Any]:
    """A share of annotators with Wilson's interval, as a report prints it."""
    if n == 0:
        return {"count": 0, "n": 0, "share": None, "low": None, "high": None}
    low, high = basic.wilson(count, n, level)
    return {"count": count, "n": n, "share": count / n, "low": low, "high": high}


def checked_orders(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both orders as arrays of one shape; raises ValueError, naming the row, for an answer outside 0..100."""
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
    """Both orders as tables, annotators by pairs, one name for each pair."""
    xy, yx = checked_orders(matrix(xy_percent, "xy_percent"), matrix(yx_percent, "yx_percent"))
    if len(names) != xy.shape[1]:
        raise ValueError(f"names: {len(names)} names where xy_percent has {xy.shape[1]} pairs")
    if len(set(names)) != len(names):
        raise ValueError("names: a pair stands twice")
    return xy, yx
