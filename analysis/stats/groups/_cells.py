"""Answers in cells that share annotators and items, and the covariance of contrasts of cell means."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, IntArray, group_sizes, group_sums, label_codes, label_codes_where, vector
from analysis.stats.groups._sample import label_codes_and_names
from analysis.stats.results import ResultWarning


@dataclass(frozen=True, slots=True)
class ContrastCovariance:
    """Covariance of contrasts: one way (`two_way` is None), or over annotators, items and both combined."""

    annotators: FloatArray
    items: FloatArray | None = None
    two_way: FloatArray | None = None

    def candidate_covariances(self) -> list[FloatArray]:
        """Return the covariances; a joint hypothesis is rejected only if it is under each of them."""
        if self.items is None or self.two_way is None:
            return [self.annotators]
        scale = np.trace(self.annotators + self.items)
        is_definite = float(np.linalg.eigvalsh(self.two_way)[0]) > 1e-9 * scale
        return [self.annotators, self.items, self.two_way if is_definite else self.annotators + self.items]


@dataclass(frozen=True, slots=True)
class CellRows:
    """Answers in cells, with the codes of their annotators and items, and the sums of the cells."""

    values: FloatArray
    cells: IntArray
    names: tuple[Any, ...]
    annotators: IntArray
    items: IntArray | None
    n_annotators: int
    n_items: int
    sums: FloatArray
    counts: FloatArray
    n_missing: int

    @classmethod
    def from_arrays(
        cls,
        values: npt.ArrayLike,
        cells: npt.ArrayLike,
        annotators: npt.ArrayLike,
        items: npt.ArrayLike | None,
        *,
        cell_names: Sequence[Any],
    ) -> "CellRows":
        array = vector(values, "values")
        positions, label_names = label_codes_and_names(cells, "cells", len(array))
        item_codes = None if items is None else label_codes(np.asarray(items), "items", len(array))[0]
        column_of = {cell: column for column, cell in enumerate(cell_names)}
        columns = np.array([column_of.get(cell, -1) for cell in label_names], dtype=np.int64)
        column = columns[positions] if len(label_names) else positions
        chosen = column >= 0
        is_used = chosen & ~np.isnan(array)
        observed = array[is_used]
        annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_used)
        n_items = 0
        if item_codes is not None:
            item_codes, n_items = label_codes(item_codes[is_used], "items", len(observed))
        sums, counts = (
            group_sums(column[is_used], observed, len(column_of)),
            group_sizes(column[is_used], len(column_of)),
        )
        missing = int(chosen.sum()) - len(observed)
        return cls(
            observed,
            column[is_used],
            tuple(cell_names),
            annotator_codes,
            item_codes,
            n_annotators,
            n_items,
            sums,
            counts,
            missing,
        )

    @property
    def n_clusters(self) -> int:
        return self.n_annotators if self.items is None else min(self.n_annotators, self.n_items)

    @property
    def df(self) -> float:
        """Return the degrees of freedom of a joint test: G* - 1, with items the smaller one."""
        ways = [self.annotators] if self.items is None else [self.annotators, self.items]
        return max(1.0, min(clusters.effective_n_clusters(np.bincount(codes)) for codes in ways) - 1)

    def spread(self, *, unit: str) -> clusters.ModelSpread:
        """Return the spread of the cells' means over annotators and, if they are five or more, items."""
        cells = np.eye(len(self.counts))
        means = self.sums / self.counts
        scores = cells[self.cells] * (self.values - means[self.cells])[:, None]
        of_cells = cells[:, :, None] * cells[:, None, :]
        rows = clusters.FittedRows(np.diag(self.counts), scores, self.cells, of_cells)
        return clusters.ModelSpread.from_rows(rows, self.annotators, self.items, unit=unit, second="item")

    @property
    def method(self) -> str:
        return "cv3_t" if self.items is None else "two_way_t"

    def warnings(self, unit: str) -> tuple[ResultWarning, ...]:
        if self.items is None:
            return clusters.cluster_warnings(group_sizes(self.annotators, self.n_annotators), name=unit)
        return clusters.two_way_warnings(self.annotators, self.items, unit=unit)

    def covariance(self, gradients: FloatArray, means: FloatArray) -> ContrastCovariance | None:
        """Return the CV3 covariance of contrasts with the `gradients` (n_contrasts, n_cells) by the cell means.

        None if one annotator (or one item) gave all answers of a cell, because the jackknife then has nothing left.
        """
        by_annotator = self._jackknife(gradients, means, self.annotators, self.n_annotators)
        if self.items is None or by_annotator is None:
            return None if by_annotator is None else ContrastCovariance(by_annotator)
        pairs, n_pairs = label_codes(self.annotators * self.n_items + self.items, "pairs", len(self.values))
        by_item = self._jackknife(gradients, means, self.items, self.n_items)
        by_both = self._jackknife(gradients, means, pairs, n_pairs)
        if by_item is None or by_both is None:
            return None
        return ContrastCovariance(by_annotator, by_item, by_annotator + by_item - by_both)

    def _jackknife(
        self, gradients: FloatArray, means: FloatArray, positions: IntArray, n_clusters: int
    ) -> FloatArray | None:
        n_cells = len(self.counts)
        annotator_cells = positions * n_cells + self.cells
        sums = group_sums(annotator_cells, self.values, n_clusters * n_cells).reshape(-1, n_cells)
        counts = group_sizes(annotator_cells, n_clusters * n_cells).reshape(-1, n_cells)
        remaining = self.counts - counts
        if np.any(remaining == 0):
            return None
        shift = ((self.sums - sums) / remaining - means) @ gradients.T
        return np.asarray((n_clusters - 1) / n_clusters * shift.T @ shift, dtype=np.float64)
