"""Answers of one or two systems with equal item weights, and the variance of their contrasts."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    label_codes,
    label_codes_where,
    validate_within_bounds,
    vector,
)

SCALE = 100.0
BOUNDS = (0.0, SCALE)


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Answers without the missing ones, items and annotators as codes; `weights` give every item the same total.

    `item_groups` (n_rows,) are the clusters of items, such as documents; each item by itself if there are none.
    """

    values: FloatArray
    items: IntArray
    annotators: IntArray
    item_groups: IntArray
    n_items: int
    n_annotators: int
    n_missing: int

    @classmethod
    def from_arrays(
        cls,
        values: npt.ArrayLike,
        items: npt.ArrayLike,
        annotators: npt.ArrayLike,
        item_groups: npt.ArrayLike | None = None,
    ) -> "ScoreRows":
        array = vector(values, "values")
        validate_within_bounds(array, (0.0, 1.0), "values")
        is_observed = ~np.isnan(array)
        n = int(is_observed.sum())
        item_codes, n_items = label_codes_where(items, "items", is_observed)
        annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
        group_codes = (
            item_codes if item_groups is None else label_codes_where(item_groups, "item_groups", is_observed)[0]
        )
        return cls(array[is_observed], item_codes, annotator_codes, group_codes, n_items, n_annotators, len(array) - n)

    @property
    def weights(self) -> FloatArray:
        return np.asarray(1 / (self.n_items * np.bincount(self.items)[self.items]), dtype=np.float64)


def equal_item_weights(values: FloatArray, systems: npt.ArrayLike, items: npt.ArrayLike) -> FloatArray:
    """Return 1 / (answers of the row's item for the row's system), so that items have equal weights; 0 if missing.

    >>> equal_item_weights(np.array([1.0, 0.5, 0.0]), ["x", "x", "x"], [1, 1, 2]).tolist()
    [0.5, 0.5, 1.0]
    """
    system_codes, _ = label_codes(np.asarray(systems), "systems", len(values))
    item_codes, n_items = label_codes(np.asarray(items), "items", len(values))
    cells = system_codes * n_items + item_codes
    is_observed = ~np.isnan(values)
    counts = np.bincount(cells[is_observed], minlength=int(cells.max(initial=0)) + 1)[cells]
    return np.where(is_observed, 1 / np.maximum(counts, 1), 0.0)
