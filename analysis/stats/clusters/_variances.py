"""Variances of a mean over rows in clusters."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    IntArray,
    group_sizes,
    group_sums,
    label_codes,
    label_codes_where,
    vector,
)
from analysis.stats.results import Record


@dataclass(frozen=True, slots=True)
class VarianceComponents(Record):
    """One-way variance components: `between` clusters, `within` clusters, their ratio and the design effect.

    `icc` = between / (between + within). `design_effect` is the factor by which clusters of these sizes inflate the
    variance of the mean. A component that cannot be estimated is None.
    """

    n_clusters: int
    n_rows: int
    between: float | None
    within: float | None
    icc: float | None
    design_effect: float | None


@dataclass(frozen=True, slots=True)
class TwoWayVariance(Record):
    """Variance of a mean over rows with crossed clusters: over `annotators`, over `items`, and `combined`.

    `combined` = V_a + V_i - V_ai. By chance it can be smaller than either part, or negative.
    """

    annotators: float
    items: float
    combined: float

    @property
    def variance(self) -> float:
        """Return the largest of the three. It is positive, and its coverage is at its level with five annotators."""
        return max(self.combined, self.annotators, self.items)

    @property
    def is_combined_largest(self) -> bool:
        """Return whether `combined` exceeds the two parts by more than rounding.

        They are equal if each annotator has prompts of their own, for example.
        """
        return self.combined > max(self.annotators, self.items) * (1 + 1e-9)

    def detail(self) -> dict[str, Any]:
        """Return the parts as entries for `Estimate.detail`."""
        return {
            "variance_annotators": self.annotators,
            "variance_items": self.items,
            "variance_two_way": self.combined,
            "is_maximum": not self.is_combined_largest,
        }


def cv3_variance(sums: FloatArray, sizes: FloatArray) -> float:
    """Leave-one-cluster-out (CV3) variance of the ratio sum(sums) / sum(sizes).

    Parameters
    ----------
    sums, sizes : ndarray of float, shape (G,)
        Sum and size of each cluster.

    Returns
    -------
    float
        The variance.

    Examples
    --------
    >>> round(cv3_variance(np.array([1.0, 2.0, 3.0]), np.ones(3)), 4)
    0.3333
    """
    n_clusters = len(sums)
    mean = float(np.sum(sums)) / float(np.sum(sizes))
    without = (np.sum(sums) - sums) / (np.sum(sizes) - sizes)
    return (n_clusters - 1) / n_clusters * float(np.sum((without - mean) ** 2))


def pair_variance(influences: FloatArray, annotator_codes: IntArray, item_codes: IntArray) -> float:
    """Variance of an estimate if pairs of annotator and item were independent.

    Parameters
    ----------
    influences : ndarray of float, shape (n_rows,)
        What each row moves the estimate by: for a weighted mean, weight (value - mean) / sum of weights.
    annotator_codes, item_codes : ndarray of int, shape (n_rows,)
        Integer codes from 0; gaps are allowed.

    Returns
    -------
    float
        The variance; 0 for a single pair.

    Notes
    -----
    V = P / (P - 1) sum_p (sum of influences in pair p)^2. Over annotators alone or items alone this formula (CR1) is too
    small if they have unequal weights, so only the term of the pairs, which is subtracted, uses it.

    Examples
    --------
    >>> round(pair_variance(np.array([-1.0, 0.0, 1.0]) / 3, np.array([0, 1, 2]), np.array([0, 0, 0])), 4)
    0.3333
    """
    sums = pair_sums(influences, annotator_codes, item_codes)
    if len(sums) < 2:
        return 0.0
    return len(sums) / (len(sums) - 1) * float(np.sum(sums**2))


def pair_sums(influences: FloatArray, annotator_codes: IntArray, item_codes: IntArray) -> FloatArray:
    """Return the sum of each pair of annotator and item.

    >>> pair_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([3, 3, 3])).tolist()
    [3.0, 4.0]
    """
    # Recode the pairs: codes of all possible pairs would need more memory than there are rows.
    pairs, n_pairs = label_codes(annotator_codes * (int(item_codes.max()) + 1) + item_codes, "pairs", len(influences))
    return group_sums(pairs, influences, n_pairs)


def two_way_jackknife(
    values: FloatArray, weights: FloatArray, annotator_codes: IntArray, item_codes: IntArray
) -> tuple[TwoWayVariance, float]:
    """Compute the jackknife (CV3) variance of a weighted mean over annotators and items, with its degrees of freedom.

    The weights are positive, and the codes are integers from 0 without gaps. The result has the variances over each way
    and combined, and the degrees of freedom of the t distribution of the mean. V_a and V_i leave out one annotator or
    one item at a time, and V_ai is the variance of independent pairs of annotator and item (Cameron, Gelbach and Miller
    2011, Robust inference with multiway clustering). Each way has G* - 1 degrees of freedom, with G* of the weights. If
    V_a + V_i - V_ai is the largest, they are combined by Satterthwaite's rule (1946); otherwise those of the larger
    variance are used. They are at least 1.

    >>> values, people, prompts = np.array([1.0, 0, 1, 1, 0, 0]), np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 0, 1])
    >>> spread, df = two_way_jackknife(values, np.ones(6), people, prompts)
    >>> round(spread.annotators, 4), round(spread.items, 4), df
    (0.0833, 0.0278, 2.0)
    """
    parts, dfs = [], []
    for labels in (annotator_codes, item_codes):
        n_clusters = int(labels.max()) + 1
        sizes = group_sums(labels, weights, n_clusters)
        parts.append(cv3_variance(group_sums(labels, weights * values, n_clusters), sizes))
        dfs.append(max(1.0, float(np.sum(sizes)) ** 2 / float(np.sum(sizes**2)) - 1))
    total = float(np.sum(weights))
    influences = weights * (values - float(np.sum(weights * values)) / total) / total
    by_pair = pair_variance(influences, annotator_codes, item_codes)
    return combine_two_way_variances((parts[0], parts[1]), by_pair, (dfs[0], dfs[1]))


def combine_two_way_variances(
    parts: tuple[float, float], by_pair: float, dfs: tuple[float, float]
) -> tuple[TwoWayVariance, float]:
    """Combine the variances over annotators and over items, and their degrees of freedom.

    Parameters
    ----------
    parts : tuple[float, float]
        The variances over annotators and over items.
    by_pair : float
        The variance of independent pairs of annotator and item.
    dfs : tuple[float, float]
        The degrees of freedom of the two ways.

    Returns
    -------
    tuple[TwoWayVariance, float]
        The variances over each and combined, and the degrees of freedom: those of Satterthwaite's rule if V_a + V_i -
        V_ai is the largest, otherwise those of the larger variance; at least 1.

    Examples
    --------
    >>> spread, df = combine_two_way_variances((2.0, 1.0), 0.5, (9.0, 4.0))
    >>> spread.variance, round(df, 2)
    (2.5, 9.0)
    """
    spread = TwoWayVariance(*parts, parts[0] + parts[1] - by_pair)
    if spread.is_combined_largest:
        df = spread.combined**2 / sum(part**2 / own for part, own in zip(parts, dfs, strict=True))
    else:
        df = dfs[0] if spread.annotators >= spread.items else dfs[1]
    return spread, max(1.0, df)


def variance_components(values: npt.ArrayLike, clusters: npt.ArrayLike) -> VarianceComponents:
    """One-way variance components by the method of moments.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values; NaN is missing.
    clusters : array_like, shape (n_rows,)
        Label of each row's cluster.

    Returns
    -------
    VarianceComponents
        The components. A negative component is reported as 0.

    Notes
    -----
    With the mean squares MSB and MSW and n0 = (N - sum(n_g^2) / N) / (G - 1): within = MSW, between = max(0, (MSB -
    MSW) / n0). The design effect of the mean is 1 + (sum(n_g^2) / N - 1) icc.

    Examples
    --------
    >>> components = variance_components([1, 1, 3, 3, 5, 5], ["a", "a", "b", "b", "c", "c"])
    >>> components.between, components.within, components.icc
    (4.0, 0.0, 1.0)
    """
    observed, positions, n_clusters, _ = _rows(values, clusters, "clusters")
    n_rows = len(observed)
    if n_clusters < 2 or n_rows <= n_clusters:
        return VarianceComponents(n_clusters, n_rows, None, None, None, None)
    sizes = group_sizes(positions, n_clusters)
    means = group_sums(positions, observed, n_clusters) / sizes
    between_squares = float(np.sum(sizes * (means - np.mean(observed)) ** 2)) / (n_clusters - 1)
    within = float(np.sum((observed - means[positions]) ** 2)) / (n_rows - n_clusters)
    squared = float(np.sum(sizes**2)) / n_rows
    between = max(0.0, (between_squares - within) / ((n_rows - squared) / (n_clusters - 1)))
    total = between + within
    icc = None if total < MIN_SPREAD**2 else between / total
    return VarianceComponents(
        n_clusters, n_rows, between, within, icc, None if icc is None else 1 + (squared - 1) * icc
    )


def _rows(values: npt.ArrayLike, clusters: npt.ArrayLike, name: str) -> tuple[FloatArray, IntArray, int, int]:
    array = vector(values, "values")
    is_observed = ~np.isnan(array)
    kept_positions, n_clusters = label_codes_where(clusters, name, is_observed)
    return array[is_observed], kept_positions, n_clusters, int((~is_observed).sum())


def _summed(rows: FloatArray, positions: IntArray, n_clusters: int) -> FloatArray:
    flat = rows.reshape(len(rows), -1)
    summed = np.stack([group_sums(positions, column, n_clusters) for column in flat.T], axis=1)
    return summed.reshape((n_clusters, *rows.shape[1:]))
