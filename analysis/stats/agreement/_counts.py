"""Tables of counts: validation, reduction to distinct rows, and resampling of units."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, label_codes, matrix
from analysis.stats.bootstrap import estimate_with_percentile_interval, multinomial_weights
from analysis.stats.results import Estimate


@dataclass(frozen=True, slots=True)
class PairableUnits:
    """The distinct rows (P, k) of a table with two or more ratings, and the number of units (P,) with each.

    `n_unpairable` units have fewer ratings. `has_ratings` says whether there was any rating.
    """

    patterns: FloatArray
    weights: IntArray
    n_unpairable: int
    has_ratings: bool

    @classmethod
    def from_counts(cls, counts: npt.ArrayLike) -> "PairableUnits":
        """Build from counts (n_units, k). Raise ValueError for invalid counts."""
        patterns, weights = distinct_rows_and_counts(checked_counts(counts))
        ratings = patterns.sum(axis=1)
        is_pairable = ratings > 1
        return cls(patterns[is_pairable], weights[is_pairable], int(weights[~is_pairable].sum()), bool(ratings.any()))

    @property
    def n_units(self) -> int:
        return int(self.weights.sum())

    @property
    def marginals(self) -> FloatArray:
        """Return how often each value was given; shape (k,)."""
        return np.asarray(self.weights @ self.patterns, dtype=np.float64)

    def undefined_estimate(self, detail: dict[str, Any], common: dict[str, Any]) -> Estimate:
        """Return the estimate without a value if no unit has two ratings."""
        status = "not_identified" if self.has_ratings else "no_data"
        return Estimate(status=status, reason="no unit has two ratings", detail=detail, **common)


def distinct_rows_and_counts(count_table: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct rows and the number of units with each."""
    base = int(count_table.max(initial=0)) + 1
    if base ** count_table.shape[1] >= 2**62:
        rows, counts = np.unique(count_table, axis=0, return_counts=True)
        return rows, np.asarray(counts, dtype=np.int64)
    places = base ** np.arange(count_table.shape[1], dtype=np.int64)
    keys = count_table.astype(np.int64) @ places
    if base ** count_table.shape[1] < 4 * len(count_table) + 1024:
        # There are few possible patterns, so they can be counted without sorting the units.
        times = np.bincount(keys)
        occurring = np.flatnonzero(times)
        counts = times[occurring]
    else:
        occurring, counts = np.unique(keys, return_counts=True)
    return (occurring[:, None] // places % base).astype(np.float64), np.asarray(counts, dtype=np.int64)


def checked_counts(counts: npt.ArrayLike) -> FloatArray:
    """Return `counts` as a table of floats. Raise ValueError unless all are whole, non-negative numbers."""
    table = matrix(counts, "counts")
    # NaN also fails this comparison.
    if np.any(table != np.floor(table)) or table.min(initial=0) < 0:
        raise ValueError("counts: only whole, non-negative numbers count ratings")
    return table


def count_pairable_patterns_by_cluster(
    counts: npt.ArrayLike, clusters: npt.ArrayLike, patterns: FloatArray
) -> FloatArray:
    """Return how many units of each cluster have each of the `patterns` (P, k); shape (n_clusters, P).

    `clusters` (n_units,) has the cluster of each row of `counts`. Clusters without a pairable unit are left out.
    """
    table = checked_counts(counts)
    is_pairable = table.sum(axis=1) > 1
    labels, _ = label_codes(np.asarray(clusters), "clusters", len(table))
    inside, n_clusters = label_codes(labels[is_pairable], "clusters", int(is_pairable.sum()))
    pattern_number = {tuple(row): number for number, row in enumerate(patterns.tolist())}
    pattern_codes = np.array([pattern_number[tuple(row)] for row in table[is_pairable].tolist()], dtype=np.int64)
    counts_flat = np.bincount(inside * len(patterns) + pattern_codes, minlength=n_clusters * len(patterns))
    return counts_flat.reshape(n_clusters, len(patterns)).astype(np.float64)


def estimate_with_unit_bootstrap(
    estimate: float,
    pattern_counts: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    rng: np.random.Generator,
    pattern_counts_by_cluster: FloatArray | None = None,
    **common: Any,
) -> Estimate:
    """Return the estimate with the percentile interval over resampled units.

    `pattern_counts` counts the units of each pattern. With `pattern_counts_by_cluster` (see
    `count_pairable_patterns_by_cluster`) whole clusters of units are resampled.
    """
    n_units, level, resamples = int(pattern_counts.sum()), common["settings"]["level"], common["settings"]["resamples"]
    n_clusters = n_units if pattern_counts_by_cluster is None else len(pattern_counts_by_cluster)
    common |= {"estimate": estimate, "n_clusters": n_clusters}
    if n_clusters < 2:
        resampled_unit = common["settings"].get("resampled") or "unit"
        return Estimate(status="n_lt_2", reason=f"one {resampled_unit} has no spread", **common)
    if pattern_counts_by_cluster is None:
        drawn = rng.multinomial(n_units, pattern_counts / n_units, size=resamples).astype(np.float64)
    else:
        blocks = multinomial_weights(n_clusters, resamples, rng)
        drawn = np.concatenate([block @ pattern_counts_by_cluster for block in blocks])
    return estimate_with_percentile_interval(statistic(drawn), level=level, **common)


def pairwise_agreement_and_prevalence(patterns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean agreement of pairs of raters (n_resamples,) and the categories' shares (n_resamples, k)."""
    per_unit = patterns.sum(axis=1)
    agreeing = (np.sum(patterns**2, axis=1) - per_unit) / (per_unit * (per_unit - 1))
    n_units = weights.sum(axis=1)
    return weights @ agreeing / n_units, weights @ (patterns / per_unit[:, None]) / n_units[:, None]
