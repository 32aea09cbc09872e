"""The joint spread of the scores of many systems over annotators and over items."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, label_codes, label_codes_where, vector
from analysis.stats.clusters import PEOPLE, PEOPLE_AND_PROMPTS, TOO_FEW_ITEMS, cluster_warnings, two_way_warnings
from analysis.stats.results import Record, ResultWarning

# A cluster with this share of a system's weight leaves nothing of the system if it is left out.
WHOLE = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class ScoreSpread(Record):
    """Scores (K,) of `systems` and their covariances (K, K) over annotators, over items, and over pairs of the two.

    `by_item` and `by_pair` are None if the claim is about exactly these items. `annotator_overlap` (K, K) has the sums
    over annotators of the products of their shares in two systems, `item_overlap` those over items. `is_defined` (K,)
    is False for a system that one annotator (or one item) alone gave answers for.
    """

    systems: tuple[Any, ...]
    scores: FloatArray
    by_annotator: FloatArray
    by_item: FloatArray | None
    by_pair: FloatArray | None
    annotator_overlap: FloatArray
    item_overlap: FloatArray | None
    is_defined: BoolArray
    n_annotators: int
    n_items: int
    n_rows: int
    warnings: tuple[ResultWarning, ...]

    @property
    def population(self) -> str:
        """Return what the scores are about: people and prompts like these, or people for exactly these prompts."""
        return PEOPLE if self.by_item is None else PEOPLE_AND_PROMPTS

    def in_order(self, order: IntArray) -> "ScoreSpread":
        """Return the same spread with the systems in another order."""

        def table(values: FloatArray | None) -> FloatArray | None:
            return None if values is None else np.asarray(values[np.ix_(order, order)])

        return replace(
            self,
            systems=tuple(self.systems[i] for i in order),
            scores=self.scores[order],
            by_annotator=self.by_annotator[np.ix_(order, order)],
            by_item=table(self.by_item),
            by_pair=table(self.by_pair),
            annotator_overlap=self.annotator_overlap[np.ix_(order, order)],
            item_overlap=table(self.item_overlap),
            is_defined=self.is_defined[order],
        )

    @property
    def covariance(self) -> FloatArray:
        """Return V_a, or with items the nearest covariance to V_a + V_i - V_ai that has no negative root; (K, K)."""
        if self.by_item is None or self.by_pair is None:
            return self.by_annotator
        roots, directions = np.linalg.eigh(self.by_annotator + self.by_item - self.by_pair)
        return np.asarray((directions * np.maximum(roots, 0.0)) @ directions.T)

    def draws(self, resamples: int, rng: np.random.Generator) -> FloatArray:
        """Return normal scores (resamples, K) with the mean `scores` and the covariance `covariance`."""
        roots, directions = np.linalg.eigh(self.covariance)
        deviations = rng.standard_normal((resamples, len(self.scores))) * np.sqrt(np.maximum(roots, 0.0))
        return np.asarray(self.scores + deviations @ directions.T)

    def contrasts(self, weights: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Standard errors and degrees of freedom of weighted sums of the scores.

        Parameters
        ----------
        weights : array_like, shape (q, K)
            Weights of the scores in each sum.

        Returns
        -------
        tuple[ndarray of float, ndarray of float]
            Both of shape (q,). NaN if a system without a defined spread has a weight.

        Notes
        -----
        V = V_a + V_i - V_ai, at least V_i, and at least V_a unless the weights sum to 0: a difference cancels what items
        have in common, and V_a does not.
        """
        table = np.atleast_2d(np.asarray(weights, dtype=np.float64))
        size, sizes = np.abs(table).sum(axis=1) ** 2, np.abs(table)

        def quadratic(matrix: FloatArray, rows: FloatArray = table) -> FloatArray:
            return np.asarray(np.einsum("qi,ij,qj->q", rows, matrix, rows, optimize=True))

        of_annotators = quadratic(self.by_annotator), _freedom(size, quadratic(self.annotator_overlap, sizes))
        of_items = None
        if self.by_item is not None and self.by_pair is not None and self.item_overlap is not None:
            freedom = _freedom(size, quadratic(self.item_overlap, sizes))
            of_items = quadratic(self.by_item), freedom, quadratic(self.by_pair)
        is_difference = np.abs(table.sum(axis=1)) < 1e-9
        variance, df = _combined(of_annotators, of_items, is_difference)
        unknown = np.any((table != 0) & ~self.is_defined, axis=1)
        return np.where(unknown, np.nan, np.sqrt(variance)), df

    def pairs(self) -> tuple[FloatArray, FloatArray]:
        """Return the standard errors and the degrees of freedom of all differences; both (K, K), NaN if undefined."""
        of_annotators = _of_differences(self.by_annotator), _freedom(4.0, _of_sums(self.annotator_overlap))
        of_items = None
        if self.by_item is not None and self.by_pair is not None and self.item_overlap is not None:
            freedom = _freedom(4.0, _of_sums(self.item_overlap))
            of_items = _of_differences(self.by_item), freedom, _of_differences(self.by_pair)
        variance, df = _combined(of_annotators, of_items, np.ones_like(self.by_annotator, dtype=np.bool_))
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
    unit: str = "annotator",
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
    unit : str, default 'annotator'
        Name of the unit in warnings.

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
    >>> spread.scores.round(3).tolist(), spread.pairs()[0].round(4).tolist()
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
        warnings = cluster_warnings(np.bincount(people), name=unit) if len(observed) else ()
        things = None
    else:
        warnings = two_way_warnings(people, things, unit=unit)
    weight = weight / np.bincount(columns, weight, minlength=k)[columns] if len(observed) else weight
    scores = np.bincount(columns, weight * observed, minlength=k)
    by_annotator, overlap, is_defined = _left_out(people, columns, weight, observed, scores, n_annotators)
    by_item = by_pair = item_overlap = None
    if things is not None:
        by_item, item_overlap, has_items = _left_out(things, columns, weight, observed, scores, n_items)
        is_defined = is_defined & has_items
        pairs, n_pairs = label_codes(people * n_items + things, "pairs", len(observed))
        moves = _table(pairs, columns, weight * (observed - scores[columns]), n_pairs, k)
        by_pair = n_pairs / max(1, n_pairs - 1) * np.asarray((moves.T @ moves).toarray())
    return ScoreSpread(
        systems=tuple(np.unique(labels[is_used]).tolist()),
        scores=np.asarray(scores, dtype=np.float64),
        by_annotator=by_annotator,
        by_item=by_item,
        by_pair=by_pair,
        annotator_overlap=overlap,
        item_overlap=item_overlap,
        is_defined=is_defined,
        n_annotators=n_annotators,
        n_items=n_items,
        n_rows=len(observed),
        warnings=warnings,
    )


def _left_out(
    codes: IntArray, columns: IntArray, weights: FloatArray, values: FloatArray, scores: FloatArray, n_clusters: int
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the covariance (K, K) of leaving out clusters, the overlaps of their shares, and what keeps a score."""
    k = len(scores)
    shares = _table(codes, columns, weights, n_clusters, k)
    moves = _table(codes, columns, weights * (scores[columns] - values), n_clusters, k)
    is_defined = np.asarray(shares.max(axis=0).toarray()).reshape(-1) < WHOLE if n_clusters else np.zeros(k, np.bool_)
    # Where a cluster is all there is, the system has no spread; do not divide by 0.
    moves.data = moves.data / np.where(shares.data < WHOLE, 1 - shares.data, np.inf)
    covariance = max(0, n_clusters - 1) / max(1, n_clusters) * np.asarray((moves.T @ moves).toarray())
    return covariance, np.asarray((shares.T @ shares).toarray()), np.asarray(is_defined, dtype=np.bool_)


def _table(codes: IntArray, columns: IntArray, values: FloatArray, n: int, k: int) -> Any:
    """Return the sums of values by cluster and system as a sparse table; the cells are in the same order every time."""
    cells, inverse = np.unique(codes * k + columns, return_inverse=True)
    sums = np.bincount(inverse, values, minlength=len(cells))
    return sparse.csr_array((sums, (cells // max(1, k), cells % max(1, k))), shape=(n, k))


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
