"""Variances of a mean whose rows share clusters."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    IntArray,
    codes,
    group_sums,
    masked_codes,
    sizes_of,
    vector,
)
from analysis.stats.results import Record


@dataclass(frozen=True, slots=True)
class VarianceComponents(Record):
    """The one-way components of variance: `between` clusters, `within` them, their ratio and the design effect.

    `icc` = between / (between + within); `design_effect` = the factor by which clusters of the observed sizes inflate
    the variance of the mean. None where a component cannot be estimated.
    """

    n_clusters: int
    n_rows: int
    between: float | None
    within: float | None
    icc: float | None
    design_effect: float | None


@dataclass(frozen=True, slots=True)
class TwoWayVariance(Record):
    """The variance of a mean over rows that share annotators and items: over `annotators`, `items`, and both `combined`.

    `combined` = V_a + V_i - V_ai, which chance can make smaller than either part, or negative.
    """

    annotators: float
    items: float
    combined: float

    @property
    def variance(self) -> float:
        """The largest of the three: positive, and at its level with five annotators."""
        return max(self.combined, self.annotators, self.items)

    def detail(self) -> dict[str, Any]:
        """The parts under the names that an estimate's detail gives them."""
        return {
            "variance_annotators": self.annotators,
            "variance_items": self.items,
            "variance_two_way": self.combined,
            "is_maximum": self.combined <= max(self.annotators, self.items),
        }


def cv3_variance(sums: FloatArray, sizes: FloatArray) -> float:
    """The leave-one-cluster-out variance of sum(sums) / sum(sizes); shapes (G,).

    >>> round(cv3_variance(np.array([1.0, 2.0, 3.0]), np.ones(3)), 4)
    0.3333
    """
    n_clusters = len(sums)
    mean = float(np.sum(sums)) / float(np.sum(sizes))
    without = (np.sum(sums) - sums) / (np.sum(sizes) - sizes)
    return (n_clusters - 1) / n_clusters * float(np.sum((without - mean) ** 2))


def cr1_variance(residuals: FloatArray, positions: IntArray) -> float:
    """G / (G - 1) sum_g (sum of residuals in g)^2 / N^2; `positions` are integer cluster codes, gaps allowed.

    >>> round(cr1_variance(np.array([-1.0, 0.0, 1.0]), np.array([0, 1, 2])), 4)
    0.3333
    """
    sums = np.bincount(positions, residuals)
    n_clusters = int(np.count_nonzero(np.bincount(positions)))
    if n_clusters < 2:
        return 0.0
    return n_clusters / (n_clusters - 1) * float(np.sum(sums**2)) / len(residuals) ** 2


def two_way_variance(residuals: FloatArray, annotators: IntArray, items: IntArray) -> TwoWayVariance:
    """CR1 of a mean over annotators, over items and over both; codes from 0, all arrays of shape (n_rows,).

    >>> spread = two_way_variance(np.array([0.5, -0.5, 0.5, -0.5]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    >>> spread.annotators, spread.items, round(spread.combined, 4), spread.variance
    (0.0, 0.25, 0.1667, 0.25)
    """
    # Coded anew: the numbers of all possible pairs would need more room than there are rows.
    pairs, _ = codes(annotators * (int(items.max()) + 1) + items, "pairs", len(residuals))
    by_annotator, by_item, by_pair = (cr1_variance(residuals, labels) for labels in (annotators, items, pairs))
    return TwoWayVariance(by_annotator, by_item, by_annotator + by_item - by_pair)


def between_variance(values: npt.ArrayLike, clusters: npt.ArrayLike) -> VarianceComponents:
    """One-way components of variance by the method of moments, a negative one reported as 0.

    `values` has shape (n_rows,), NaN missing. With mean squares MSB and MSW and n0 = (N - sum(n_g^2) / N) / (G - 1):
    within = MSW, between = max(0, (MSB - MSW) / n0). The design effect of the mean is
    1 + (sum(n_g^2) / N - 1) icc.

    >>> components = between_variance([1, 1, 3, 3, 5, 5], ["a", "a", "b", "b", "c", "c"])
    >>> components.between, components.within, components.icc
    (4.0, 0.0, 1.0)
    """
    kept, positions, n_clusters, _ = _rows(values, clusters, "clusters")
    n_rows = len(kept)
    if n_clusters < 2 or n_rows <= n_clusters:
        return VarianceComponents(n_clusters, n_rows, None, None, None, None)
    sizes = sizes_of(positions, n_clusters)
    means = group_sums(positions, kept, n_clusters) / sizes
    between_squares = float(np.sum(sizes * (means - np.mean(kept)) ** 2)) / (n_clusters - 1)
    within = float(np.sum((kept - means[positions]) ** 2)) / (n_rows - n_clusters)
    squared = float(np.sum(sizes**2)) / n_rows
    between = max(0.0, (between_squares - within) / ((n_rows - squared) / (n_clusters - 1)))
    total = between + within
    icc = None if total < MIN_SPREAD**2 else between / total
    return VarianceComponents(
        n_clusters, n_rows, between, within, icc, None if icc is None else 1 + (squared - 1) * icc
    )


def _rows(values: npt.ArrayLike, clusters: npt.ArrayLike, name: str) -> tuple[FloatArray, IntArray, int, int]:
    array = vector(values, "values")
    here = ~np.isnan(array)
    kept_positions, n_clusters = masked_codes(clusters, name, here)
    return array[here], kept_positions, n_clusters, int((~here).sum())


def _summed(rows: FloatArray, positions: IntArray, n_clusters: int) -> FloatArray:
    flat = rows.reshape(len(rows), -1)
    summed = np.stack([group_sums(positions, column, n_clusters) for column in flat.T], axis=1)
    return summed.reshape((n_clusters, *rows.shape[1:]))
