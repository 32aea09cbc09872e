"""The joint spread of the scores of many systems over annotators and over items."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    label_codes_where,
    vector,
)
from analysis.stats.clusters import PEOPLE, PEOPLE_AND_PROMPTS, TOO_FEW_ITEMS, cluster_warnings, two_way_warnings
from analysis.stats.results import ResultWarning

# A cluster with this share of a system's weight leaves nothing of the system if it is left out.
WHOLE = 1 - 1e-12
# A variance below this share of those it was computed from is what rounding left.
ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class ClusterMoves:
    """What scores become without each cluster of one kind: annotators or items.

    `moves` (G, K) have the covariance of the scores as their products, moves' moves. `shares` (G, K) are the clusters'
    shares of the weight of each score. Both are arrays, sparse or not.
    """

    moves: Any
    shares: Any

    @property
    def covariance(self) -> FloatArray:
        """Return the covariance of the scores; shape (K, K)."""
        return _products(self.moves)

    @property
    def overlap(self) -> FloatArray:
        """Return the sums over clusters of the products of their shares in two scores; shape (K, K)."""
        return _products(self.shares)

    def combined(self, weights: FloatArray) -> "ClusterMoves":
        """Return the moves of weighted sums of the scores; `weights` (q, K)."""
        sizes = np.abs(weights) / np.maximum(np.abs(weights).sum(axis=1, keepdims=True), MIN_SPREAD)
        return ClusterMoves(_dense(self.moves @ weights.T), _dense(self.shares @ sizes.T))

    def minus_each(self, place: int, others: IntArray) -> "ClusterMoves":
        """Return the moves of the score at `place` minus each of the others."""
        moves, shares = _dense(self.moves), _dense(self.shares)
        return ClusterMoves(
            moves[:, [place]] - moves[:, others],
            (shares[:, [place]] + shares[:, others]) / 2,
        )

    def in_order(self, order: IntArray) -> "ClusterMoves":
        """Return the moves of some of the scores, in another order."""
        return ClusterMoves(self.moves[:, order], self.shares[:, order])


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """Scores (K,) of `systems` and their joint spread over annotators, over items, and over pairs of the two.

    `items` and `pair_covariance` (K, K) are None if the claim is about exactly these items. `is_defined` (K,) is False for a system that
    one annotator (or one item) alone gave answers for. `is_contrast` says that the scores are differences themselves.
    """

    systems: tuple[Any, ...]
    scores: FloatArray
    annotators: ClusterMoves
    items: ClusterMoves | None
    pair_covariance: FloatArray | None
    is_defined: BoolArray
    n_annotators: int
    n_items: int
    n_rows: int
    warnings: tuple[ResultWarning, ...]
    is_contrast: bool = False

    @property
    def population(self) -> str:
        """Return what the scores are about: people and prompts like these, or people for exactly these prompts."""
        return PEOPLE if self.items is None else PEOPLE_AND_PROMPTS

    def in_order(self, order: IntArray) -> "ScoreSpread":
        """Return the spread of some of the systems, in another order."""
        return replace(
            self,
            systems=tuple(self.systems[i] for i in order),
            scores=self.scores[order],
            annotators=self.annotators.in_order(order),
            items=None if self.items is None else self.items.in_order(order),
            pair_covariance=None if self.pair_covariance is None else self.pair_covariance[np.ix_(order, order)],
            is_defined=self.is_defined[order],
        )

    def combined(self, weights: npt.ArrayLike, names: Sequence[Any]) -> "ScoreSpread":
        """Weighted sums of the scores, with their joint spread.

        Parameters
        ----------
        weights : array_like, shape (q, K)
            Weights of the scores in each sum. All sums have the same total weight; with 0 they are differences.
        names : sequence, length q
            Names of the sums.

        Returns
        -------
        ScoreSpread
            The sums. A sum with a weight for an undefined system is undefined.

        Raises
        ------
        ValueError
            If the total weights differ.
        """
        table = np.asarray(weights, dtype=np.float64).reshape(len(names), len(self.scores))
        totals = table.sum(axis=1)
        if len(totals) and float(np.ptp(totals)) > 1e-6:
            raise ValueError("weights: the total weights of the sums differ")
        return replace(
            self,
            systems=tuple(names),
            scores=table @ self.scores,
            annotators=self.annotators.combined(table),
            items=None if self.items is None else self.items.combined(table),
            pair_covariance=None if self.pair_covariance is None else _sums_covariance(self.pair_covariance, table),
            is_defined=~np.any((np.abs(table) > 0) & ~self.is_defined, axis=1),
            is_contrast=self.is_contrast or bool(np.all(np.abs(totals) < 1e-6)),
        )

    def minus_each(self, place: int, others: Sequence[int]) -> "ScoreSpread":
        """Differences of one score from others, with their joint spread: as `combined`, without a product of tables.

        Parameters
        ----------
        place : int
            Number of the system.
        others : sequence of int, length q
            Numbers of the systems that it is compared with.

        Returns
        -------
        ScoreSpread
            The differences, named by the other systems.
        """
        order = np.asarray(others, dtype=np.int64)
        by_pair = None
        if self.pair_covariance is not None:
            contrasts = np.zeros((len(order), 1 + len(order)))
            contrasts[:, 0], contrasts[:, 1:] = 1.0, -np.eye(len(order))
            used = np.concatenate([[place], order])
            by_pair = _sums_covariance(self.pair_covariance[np.ix_(used, used)], contrasts)
        return replace(
            self,
            systems=tuple(self.systems[i] for i in order),
            scores=self.scores[place] - self.scores[order],
            annotators=self.annotators.minus_each(place, order),
            items=None if self.items is None else self.items.minus_each(place, order),
            pair_covariance=by_pair,
            is_defined=self.is_defined[order] & self.is_defined[place],
            is_contrast=True,
        )

    def draws(self, resamples: int, rng: np.random.Generator) -> FloatArray:
        """Return normal scores (resamples, K) with the mean `scores` and the covariance V_a, or V_a + V_i - V_ai.

        Negative roots of the covariance count as 0.
        """
        covariance = self.annotators.covariance
        if self.items is not None and self.pair_covariance is not None:
            covariance = covariance + self.items.covariance - self.pair_covariance
        roots, directions = np.linalg.eigh(covariance)
        deviations = rng.standard_normal((resamples, len(self.scores))) * np.sqrt(np.maximum(roots, 0.0))
        return np.asarray(self.scores + deviations @ directions.T)

    def of_scores(self) -> tuple[FloatArray, FloatArray]:
        """Standard errors and degrees of freedom of the scores; both (K,), NaN and 1 if undefined.

        V = V_a + V_i - V_ai, at least V_i, and at least V_a unless the scores are differences: a difference cancels what
        items have in common, and V_a does not.
        """

        def squares(table: Any) -> FloatArray:
            return np.asarray((table * table).sum(axis=0)).reshape(-1)

        def diagonal(way: ClusterMoves) -> tuple[FloatArray, FloatArray]:
            return squares(way.moves), _freedom(1.0, squares(way.shares))

        of_items = None
        if self.items is not None and self.pair_covariance is not None:
            of_items = (*diagonal(self.items), np.diag(self.pair_covariance))
        is_difference = np.full(len(self.scores), self.is_contrast)
        variance, df = _combined(diagonal(self.annotators), of_items, is_difference)
        return np.where(self.is_defined, np.sqrt(variance), np.nan), df

    def skewness(self) -> FloatArray:
        """Return the larger `clusters.abs_skewness_of_clustered_mean` of annotators and items, by score; shape (K,)."""
        found = np.zeros(len(self.scores))
        for way in (self.annotators, self.items):
            if way is not None and len(found):
                moves = _dense(way.moves)
                second, third = np.mean(moves**2, axis=0), np.abs(np.mean(moves**3, axis=0))
                with np.errstate(divide="ignore", invalid="ignore"):
                    found = np.maximum(found, np.nan_to_num(third / second**1.5) / math.sqrt(len(moves)))
        return found

    def of_pairs(self) -> tuple[FloatArray, FloatArray]:
        """Return the standard errors and the degrees of freedom of all differences; both (K, K), NaN if undefined."""

        def apart(way: ClusterMoves) -> tuple[FloatArray, FloatArray]:
            return _of_differences(way.covariance), _freedom(4.0, _of_sums(way.overlap))

        of_items = None
        if self.items is not None and self.pair_covariance is not None:
            of_items = (*apart(self.items), _of_differences(self.pair_covariance))
        k = len(self.scores)
        variance, df = _combined(apart(self.annotators), of_items, np.ones((k, k), dtype=np.bool_))
        se = np.sqrt(variance)
        se[~self.is_defined, :] = se[:, ~self.is_defined] = np.nan
        return se, df


def score_spread(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    weights: npt.ArrayLike | None = None,
) -> ScoreSpread:
    """Mean values of systems, with their joint spread over annotators and over items.

    Parameters
    ----------
    values, annotators, systems : array_like, shape (n_rows,)
        Values (a row without a value is left out), and labels of each row's annotator and system.
    items : array_like, shape (n_rows,), optional
        Labels of each row's item. Without items, or with fewer than five, the spread is over annotators alone.
    weights : array_like, shape (n_rows,), optional
        Weights of the rows within a system; 1 if None.

    Returns
    -------
    ScoreSpread
        The means and their covariances.

    Raises
    ------
    ValueError
        For a negative or missing weight.

    Notes
    -----
    V_a and V_i leave out one annotator or one item from all systems at once (CV3), so that systems that share
    annotators or items are compared as pairs. V_ai is that of independent pairs of annotator and item.

    References
    ----------
    Cameron, Gelbach and Miller 2011, Robust inference with multiway clustering.

    Examples
    --------
    >>> values, people, systems = [1, 0, 1, 1, 0, 1], ["a", "a", "b", "b", "c", "c"], ["x", "y"] * 3
    >>> spread = score_spread(values, people, systems)
    >>> spread.scores.round(3).tolist(), spread.of_pairs()[0].round(4).tolist()
    ([0.667, 0.667], [[0.0, 0.5774], [0.5774, 0.0]])
    """
    array = vector(values, "values")
    weight = np.ones(len(array)) if weights is None else vector(weights, "weights")
    if weight.shape != array.shape or np.isnan(weight).any() or np.any(weight < 0):
        raise ValueError("weights: one non-negative number a row is needed")
    labels = np.asarray(systems)
    label_codes(labels, "systems", len(array))
    is_used = ~np.isnan(array) & (weight > 0)
    observed, weight = array[is_used], weight[is_used]
    people, n_annotators = label_codes_where(annotators, "annotators", is_used)
    columns, k = label_codes(labels[is_used], "systems", len(observed))
    things, n_items = (None, 0) if items is None else label_codes_where(items, "items", is_used)
    if things is None or n_items < TOO_FEW_ITEMS:
        warnings = cluster_warnings(np.bincount(people)) if len(observed) else ()
        things = None
    else:
        warnings = two_way_warnings(people, things)
    weight = weight / group_sums(columns, weight, k)[columns]
    scores = group_sums(columns, weight * observed, k)
    by_annotator, is_defined = _left_out(people, columns, weight, observed, scores, n_annotators)
    by_item = by_pair = None
    if things is not None:
        by_item, has_items = _left_out(things, columns, weight, observed, scores, n_items)
        is_defined = is_defined & has_items
        pairs, n_pairs = label_codes(people * n_items + things, "pairs", len(observed))
        moves = _table(pairs, columns, weight * (observed - scores[columns]), n_pairs, k)
        # The variance of pairs needs no degrees of freedom, so the many pairs themselves are not kept.
        by_pair = n_pairs / max(1, n_pairs - 1) * _products(moves)
    return ScoreSpread(
        systems=tuple(np.unique(labels[is_used]).tolist()),
        scores=scores,
        annotators=by_annotator,
        items=by_item,
        pair_covariance=by_pair,
        is_defined=is_defined,
        n_annotators=n_annotators,
        n_items=n_items,
        n_rows=len(observed),
        warnings=warnings,
    )


def _left_out(
    codes: IntArray, columns: IntArray, weights: FloatArray, values: FloatArray, scores: FloatArray, n_clusters: int
) -> tuple[ClusterMoves, BoolArray]:
    """Return what scores become without clusters, and which scores no single cluster makes up."""
    k = len(scores)
    shares = _table(codes, columns, weights, n_clusters, k)
    moves = _table(codes, columns, weights * (scores[columns] - values), n_clusters, k)
    is_defined = np.ones(k, dtype=np.bool_)
    is_defined[shares.indices[shares.data >= WHOLE]] = False
    # Where a cluster is all there is, the system has no spread; do not divide by 0.
    moves.data = moves.data / np.where(shares.data < WHOLE, 1 - shares.data, np.inf)
    moves.data *= math.sqrt(max(0, n_clusters - 1) / max(1, n_clusters))
    return ClusterMoves(moves, shares), is_defined


def _table(codes: IntArray, columns: IntArray, values: FloatArray, n: int, k: int) -> Any:
    """Return the sums of values by cluster and system as a sparse table; the cells are in the same order every time."""
    cells, inverse = np.unique(codes * k + columns, return_inverse=True)
    sums = np.bincount(inverse, values, minlength=len(cells))
    return sparse.csr_array((sums, (cells // max(1, k), cells % max(1, k))), shape=(n, k))


def _dense(table: Any) -> FloatArray:
    return np.asarray(table.toarray() if sparse.issparse(table) else table, dtype=np.float64)


def _products(table: Any) -> FloatArray:
    return _dense(table.T @ table)


def _sums_covariance(covariance: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the covariance of weighted sums. A variance that is only what rounding left is 0; `weights` (q, K)."""
    found = weights @ covariance @ weights.T
    size = np.abs(weights) @ np.sqrt(np.maximum(np.diag(covariance), 0.0))
    place = np.arange(len(found))
    own = found[place, place]
    found[place, place] = np.where(own > ROUNDING * size**2, own, 0.0)
    return np.asarray(found)


def _of_differences(covariance: FloatArray) -> FloatArray:
    own = np.diag(covariance)
    return np.maximum(own[:, None] + own[None, :] - 2 * covariance, 0.0)


def _of_sums(overlap: FloatArray) -> FloatArray:
    own = np.diag(overlap)
    return np.asarray(own[:, None] + own[None, :] + 2 * overlap)


def _freedom(size: float | FloatArray, concentration: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.maximum(1.0, size / concentration - 1)


def _combined(
    of_annotators: tuple[FloatArray, FloatArray],
    of_items: tuple[FloatArray, FloatArray, FloatArray] | None,
    is_difference: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the variances and degrees of freedom; Satterthwaite's where the sum of the two ways is the largest."""
    by_annotator, df_annotators = of_annotators
    if of_items is None:
        return by_annotator, df_annotators
    by_item, df_items, by_pair = of_items
    combined = by_annotator + by_item - by_pair
    floor = np.where(is_difference, by_item, np.maximum(by_annotator, by_item))
    df_floor = np.where(is_difference | (by_item > by_annotator), df_items, df_annotators)
    with np.errstate(divide="ignore", invalid="ignore"):
        satterthwaite = combined**2 / (by_annotator**2 / df_annotators + by_item**2 / df_items)
    is_larger = combined > floor * (1 + 1e-9)
    df = np.where(is_larger, satterthwaite, df_floor)
    return np.where(is_larger, combined, floor), np.maximum(1.0, np.nan_to_num(df, nan=1.0))
