"""Select the ratings of two systems."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, vector
from analysis.stats.results import Estimate


def select_two_systems(
    ratings: npt.ArrayLike, systems: npt.ArrayLike, system: object, reference: object
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the ratings of both systems, 1 for rows of `system` and 0 for `reference`, and a mask of these rows."""
    array, names = vector(ratings, "ratings"), np.asarray(systems)
    if names.shape != array.shape:
        raise ValueError(f"systems: expected {len(array)} labels, got an array of shape {names.shape}")
    is_system = np.asarray(names == system)
    is_used = ~np.isnan(array) & (is_system | np.asarray(names == reference))
    return array[is_used], is_system[is_used].astype(np.float64), is_used


def missing_rating_estimate(is_system: FloatArray, common: dict[str, Any]) -> Estimate | None:
    """Return the estimate without a value if one of the two systems has no rating, else None."""
    if 0 < is_system.sum() < len(is_system):
        return None
    return Estimate(status="no_data", reason="one of the two systems has no rating", **common)
