"""The ratings of two systems out of all."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, vector
from analysis.stats.results import Estimate


def select_two_systems(
    ratings: npt.ArrayLike, systems: npt.ArrayLike, system: object, reference: object
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """The ratings given to either, 1 beside those of `system` and 0 beside the others, and which rows they are."""
    array, names = vector(ratings, "ratings"), np.asarray(systems)
    if names.shape != array.shape:
        raise ValueError(f"systems: expected {len(array)} labels, got an array of shape {names.shape}")
    is_system = np.asarray(names == system)
    here = ~np.isnan(array) & (is_system | np.asarray(names == reference))
    return array[here], is_system[here].astype(np.float64), here


def missing_rating_estimate(treated: FloatArray, common: dict[str, Any]) -> Estimate | None:
    """What is said where one of the two has no rating; None where both have."""
    if 0 < treated.sum() < len(treated):
        return None
    return Estimate(status="no_data", reason="one of the two systems has no rating", **common)
