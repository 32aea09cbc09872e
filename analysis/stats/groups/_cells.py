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

    def variance(self) -> FloatArray:
        """Return the variance of each contrast; with two ways at least that of either."""
        if self.items is None or self.two_way is None:
            return np.asarray(np.diag(self.annotators), dtype=np.float64)
        parts = [np.diag(part) for part in (self.two_way, self.annotators, self.items)]
        return np.asarray(np.max(parts, axis=0), dtype=np.float64)

    def detail(self) -> dict[str, Any]:
        if self.items is None or self.two_way is None:
            return {}
        return clusters.TwoWayVariance(
            *(float(part[0, 0]) for part in (self.annotators, self.items, self.two_way))
        ).detail()

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
        if self.items is None:
            return max(1.0, clusters.effective_n_clusters(group_sizes(self.annotators, self.n_annotators)) - 1)
        return float(self.n_clusters - 1)

    @property
    def method(self) -> str:
        return "cv3_t" if self.items is None else "two_way_t"

    def warnings(self, unit: str) -> tuple[ResultWarning, ...]:
        if self.items is None:
            return clusters.cluster_warnings(group_sizes(self.annotators, self.n_annotators), name=unit)
        return clusters.two_way_warnings(self.annotators, self.items, unit=unit)

    def covariance(
        self, gradients: FloatArray, means: FloatArray, *, is_jackknife: bool = False
    ) -> ContrastCovariance | None:
        """Return the covariance of contrasts with the `gradients` (n_contrasts, n_cells) by the cell means.

        With items it is CR1, or CV3 in each way with `is_jackknife`; without items CV3. None if one annotator (or one
        item) gave all answers of a cell, because the jackknife then has nothing left.
        """
        if self.items is None:
            one_way = self._jackknife(gradients, means, self.annotators, self.n_annotators)
            return None if one_way is None else ContrastCovariance(one_way)
        pairs, n_pairs = label_codes(self.annotators * self.n_items + self.items, "pairs", len(self.values))
        ways = ((self.annotators, self.n_annotators), (self.items, self.n_items), (pairs, n_pairs))
        if is_jackknife:
            covariances = [self._jackknife(gradients, means, positions, n) for positions, n in ways]
        else:
            # One column per contrast: the effect of each row on it.
            moves = (gradients / self.counts)[:, self.cells].T * (self.values - means[self.cells])[:, None]
            covariances = [_clustered(moves, positions, n) for positions, n in ways]
        by_annotator, by_item, by_both = covariances
        if by_annotator is None or by_item is None or by_both is None:
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


def _clustered(moves: FloatArray, positions: IntArray, n_groups: int) -> FloatArray:
    sums = np.stack([group_sums(positions, column, n_groups) for column in moves.T], axis=1)
    factor = n_groups / (n_groups - 1) if n_groups > 1 else 0.0
    return np.asarray(factor * sums.T @ sums, dtype=np.float64)
