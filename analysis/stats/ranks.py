"""Confidence sets for the ranks of systems that hold for all systems at once.

The spread of a system's rank over bootstrap samples is not a confidence set: if all systems are equal, it covers
the true ranks in one of ten studies. Here every difference of two systems gets a simultaneous interval. A system ranks
below another only if their interval excludes 0.

Reference: Mogstad, Romano, Shaikh and Wilhelm 2024, Inference for ranks with applications to mobility across
neighbourhoods and academic achievement across countries.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from analysis.stats import cluster_variances
from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    label_codes_where,
    validate_level,
    vector,
)
from analysis.stats.bootstrap import RESAMPLES
from analysis.stats.cluster_variances import (
    PEOPLE,
    PEOPLE_AND_PROMPTS,
    TOO_FEW_ITEMS,
    cluster_warnings,
    two_way_warnings,
)
from analysis.stats.results import Record, ResultWarning

# The joint spread of the scores of many systems over annotators and over items.


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
        """Return weighted sums of the scores, with their joint spread.

        `weights`, shape (q, K), has a row for each of the q sums, which `names` names. All sums have the same total
        weight, otherwise the method raises ValueError; with a total of 0 they are differences. A sum with a weight for
        an undefined system is undefined.
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
        """Return differences of one score from others, with their joint spread.

        The result is as that of `combined`, but needs no product of tables. `place` is the number of the system, and
        `others` are the numbers of those that it is compared with. The differences are named by the other systems.
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
    """Return mean values of systems, with their joint spread over annotators and over items.

    Each row has a value (NaN is left out), labels of its annotator, system and item, and a weight within its system,
    which is 1 by default. A negative or missing weight raises ValueError. Without items, or with fewer than five, the
    spread is over annotators alone. V_a and V_i leave out one annotator or one item from all systems at once (CV3), so
    that systems that share annotators or items are compared as pairs. V_ai is that of independent pairs of annotator
    and item (Cameron, Gelbach and Miller 2011, Robust inference with multiway clustering).

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


# Simultaneous intervals for all differences of scores.


@dataclass(frozen=True, slots=True)
class SimultaneousDifferences(Record):
    """All differences of K scores, row minus column, with simultaneous intervals; arrays have shape (K, K).

    `low` and `high` bound all differences at once with probability `level`. `pvalues` are adjusted for all pairs by the
    same bound. If the standard error is 0 they are NaN and the pair is not `decidable`.
    """

    level: float
    estimates: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    pvalues: FloatArray
    decidable: BoolArray
    critical_value: float


def simultaneous_differences(
    scores: npt.ArrayLike,
    standard_errors: npt.ArrayLike,
    *,
    df: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> SimultaneousDifferences:
    """Compute simultaneous intervals for all differences of K scores, by Šidák's bound.

    The scores are finite. D_ij is the difference with the standard error se_ij (NaN if undefined) and df_ij degrees of
    freedom (`df` is a number or (K, K) by pair, and infinite if None). For m pairs, q is the normal quantile with the
    two-sided tail 1 - level^(1/m), and q_ij the t quantile with the same tail. The interval is D_ij -/+ q_ij se_ij, and
    the adjusted p-value is 1 - (1 - p_ij)^m (Šidák 1967, Rectangular confidence regions for the means of multivariate
    normal distributions). `level` is the probability that all intervals contain the true differences. The quantile of
    the largest of normal draws with the estimated covariance is too small: over few clusters this covariance has too
    few dimensions, and the maximum over pairs finds the smallest standard error. Rank sets of six equal systems over
    seven prompts then held in .915 instead of .95 of studies (`tools/proofs/calibration/rank_sets.py`).

    >>> result = simultaneous_differences([0.1, 1.0], [[0, 0.3], [0.3, 0]], df=12)
    >>> result.estimates[1, 0].round(3).item(), result.low[1, 0].round(3).item(), result.pvalues[1, 0].round(4).item()
    (0.9, 0.246, 0.0111)
    """
    validate_level(level)
    estimates = vector(scores, "scores")
    k = len(estimates)
    if np.isnan(estimates).any():
        raise ValueError("scores: a score that is not defined cannot be compared; leave it out first")
    se = np.asarray(standard_errors, dtype=np.float64)
    if se.shape != (k, k):
        raise ValueError(f"standard_errors: shape {se.shape} for {k} scores")
    if np.any(se < 0):
        raise ValueError("standard_errors: a standard error is not negative")
    freedom = np.full((k, k), np.inf) if df is None else np.broadcast_to(np.asarray(df, dtype=np.float64), (k, k))
    if np.isnan(freedom).any() or np.any(freedom <= 0):
        raise ValueError("df: degrees of freedom are positive")
    estimate = estimates[:, None] - estimates[None, :]
    # Rounding errors of a score do not count as variation.
    decidable = se > MIN_SPREAD * max(1.0, float(np.max(np.abs(estimates), initial=0.0)))
    n_pairs = max(1, int(np.triu(decidable, 1).sum()))
    critical = -float(special.ndtri(-np.expm1(np.log(level) / n_pairs) / 2))
    half = _as_t(critical, freedom) * se
    with np.errstate(invalid="ignore", divide="ignore"):
        pvalues = 2 * special.ndtr(-_as_normal(np.abs(estimate) / se, freedom))
        adjusted = -np.expm1(n_pairs * np.log1p(-pvalues))
    return SimultaneousDifferences(
        level=level,
        estimates=estimate,
        standard_errors=se,
        low=np.where(decidable, estimate - half, np.nan),
        high=np.where(decidable, estimate + half, np.nan),
        pvalues=np.where(decidable, np.clip(adjusted, 0.0, 1.0), np.nan),
        decidable=decidable,
        critical_value=critical,
    )


@dataclass(frozen=True, slots=True)
class SimultaneousScores(Record):
    """K scores with intervals that hold for all at once with probability `level`; arrays have shape (K,).

    `pvalues` that a score is 0 are adjusted for all scores by the same maximum; NaN where the score is not `decidable`.
    """

    level: float
    estimates: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    pvalues: FloatArray
    decidable: BoolArray
    critical_value: float


def simultaneous_scores(
    spread: ScoreSpread, *, level: float = 0.95, resamples: int = RESAMPLES, rng: np.random.Generator
) -> SimultaneousScores:
    """Simultaneous intervals for scores with a joint spread, by the largest deviation over scores.

    Parameters
    ----------
    spread : ScoreSpread
        The scores.
    level : float, default 0.95
        Probability that all intervals contain the true scores.
    resamples : int, default RESAMPLES
        Number of normal draws for the quantile of the largest deviation.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    SimultaneousScores
        Intervals and adjusted p-values.

    Examples
    --------
    >>> from analysis.stats.ranks import score_spread
    >>> values, people, systems = [1, 0.2, 0.5, 0.1, 0.8, 0], ["a", "a", "b", "b", "c", "c"], ["x", "y"] * 3
    >>> found = simultaneous_scores(score_spread(values, people, systems), rng=np.random.default_rng(0))
    >>> found.estimates.round(3).tolist(), bool(found.pvalues[0] < found.pvalues[1])
    ([0.767, 0.1], True)
    """
    validate_level(level)
    se, df = spread.of_scores()
    deviations = spread.draws(resamples, rng) - spread.scores
    varies = np.std(deviations, axis=0, ddof=1)
    smallest = MIN_SPREAD * max(1.0, float(np.max(np.abs(spread.scores), initial=0.0)))
    decidable = se > smallest
    used = decidable & (varies > smallest)
    largest = np.abs(deviations[:, used] / varies[used]).max(axis=1, initial=0.0)
    critical = float(np.quantile(largest, level))
    half = _as_t(critical, df) * se
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = _as_normal(np.abs(spread.scores) / se, df)
    exceeding = len(largest) - np.searchsorted(np.sort(largest), np.nan_to_num(statistic), side="left")
    return SimultaneousScores(
        level=level,
        estimates=spread.scores,
        standard_errors=se,
        low=np.where(decidable, spread.scores - half, np.nan),
        high=np.where(decidable, spread.scores + half, np.nan),
        pvalues=np.where(decidable, (1 + exceeding) / (1 + len(largest)), np.nan),
        decidable=decidable,
        critical_value=critical,
    )


def _as_t(normal: float, df: FloatArray) -> FloatArray:
    """Return the t quantiles with the same tail as a normal quantile."""
    tail = float(special.ndtr(-normal))
    return np.where(np.isinf(df), normal, -special.stdtrit(np.where(np.isinf(df), 1.0, df), tail))


def _as_normal(statistic: FloatArray, df: FloatArray) -> FloatArray:
    finite = np.where(np.isinf(df), 1.0, df)
    return np.where(np.isinf(df), statistic, -special.ndtri(special.stdtr(finite, -statistic)))


# Confidence sets for ranks.


@dataclass(frozen=True, slots=True)
class RankSets(Record):
    """Ranks of K systems (1 is the best) in the given order: `scores`, `ranks` and the sets `low`..`high`.

    `ranks` are 1 + the number of systems with a higher score. All K sets together contain the true ranks with
    probability `level`; without sets `low` and `high` are None (see `status`). `best` marks every system that can be
    first. `clusters` are groups of systems such that each member of a group beats each member of the next.
    `undecidable` lists pairs whose difference did not vary. `n` counts units (`unit` names them).
    """

    systems: tuple[Any, ...]
    scores: tuple[float, ...]
    ranks: tuple[int, ...]
    low: tuple[int, ...] | None
    high: tuple[int, ...] | None
    clusters: tuple[tuple[Any, ...], ...]
    level: float
    status: str = "ok"
    reason: str = ""
    unit: str = "annotator"
    n: int | None = None
    n_rows: int | None = None
    critical_value: float | None = None
    undecidable: tuple[tuple[Any, Any], ...] = ()
    warnings: tuple[ResultWarning, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def best(self) -> tuple[bool, ...]:
        """Return whether each system can be first; False for all if there are no sets."""
        return tuple(rank == 1 for rank in self.low) if self.low is not None else (False,) * len(self.systems)

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"best": list(self.best)}


def descending_ranks(scores: npt.ArrayLike) -> IntArray:
    """Return the rank of each score, 1 + the number of higher scores; equal scores share the better rank.

    >>> descending_ranks([0.7, 0.9, 0.7, 0.1]).tolist()
    [2, 1, 2, 4]
    """
    array = vector(scores, "scores")
    return np.asarray(1 + np.sum(array[None, :] > array[:, None], axis=1), dtype=np.int64)


def rank_confidence_sets_from_spread(
    spread: ScoreSpread,
    *,
    level: float = 0.95,
) -> tuple[RankSets, SimultaneousDifferences | None]:
    """Return the rank sets of scores with a joint spread, and the simultaneous differences that they come from.

    Parameters
    ----------
    spread : ScoreSpread
        Scores and their joint spread over annotators and items. A system without a defined spread is compared with none.
    level : float, default 0.95
        Probability that all sets together contain the true ranks.

    Returns
    -------
    tuple[RankSets, SimultaneousDifferences or None]
        The sets and the differences, in the order of `spread.systems`. No differences if the sets have a status.
        System i ranks at best 1 + #{j: D_ji > 0 shown} and at worst K - #{j: D_ij > 0 shown}.

    Notes
    -----
    Standard errors and degrees of freedom of each pair are those of `ScoreSpread.of_pairs`, and intervals those of
    `simultaneous_differences`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, systems, items = np.repeat(np.arange(30), 4), np.tile(["x", "y"], 60), np.repeat(np.arange(60), 2)
    >>> values = rng.normal(0, 1, 120) + 2 * (systems == "x")
    >>> from analysis.stats.ranks import score_spread
    >>> sets, differences = rank_confidence_sets_from_spread(score_spread(values, annotators, systems, items))
    >>> sets.systems, sets.low, sets.settings["population"]
    (('x', 'y'), (1, 2), 'people and prompts')
    """
    validate_level(level)
    k = len(spread.systems)
    common: dict[str, Any] = {
        "systems": spread.systems,
        "scores": tuple(spread.scores.tolist()),
        "ranks": tuple(descending_ranks(spread.scores).tolist()),
        "level": level,
        "unit": "annotator",
        "n": spread.n_annotators,
        "n_rows": spread.n_rows,
        "settings": {"level": level, "population": spread.population},
    }
    names = (spread.systems,) if k else ()
    none: dict[str, Any] = {"low": None, "high": None, "clusters": names, "warnings": spread.warnings}
    if k == 0:
        return RankSets(status="no_data", reason="no system has a score", **none, **common), None
    if k == 1:
        return RankSets(status="not_applicable", reason="a single system has rank 1", **none, **common), None
    if spread.n_annotators < 2:
        return RankSets(status="n_lt_2", reason="one annotator has no spread", **none, **common), None
    if spread.is_defined.sum() < 2:
        reason = "one annotator alone gave all answers of the systems; collect more answers"
        return RankSets(status="not_identified", reason=reason, **none, **common), None
    se, df = spread.of_pairs()
    differences = simultaneous_differences(spread.scores, se, level=level, df=df)
    return _sets_of_differences(differences, spread.scores, spread.warnings, common), differences


def _sets_of_differences(
    differences: SimultaneousDifferences,
    estimates: FloatArray,
    warnings: tuple[ResultWarning, ...],
    common: dict[str, Any],
) -> RankSets:
    names, k = common["systems"], len(estimates)
    off_diagonal = ~np.eye(k, dtype=bool)
    if not differences.decidable[off_diagonal].any():
        return RankSets(
            status="zero_variance",
            reason="the differences between the systems do not vary",
            low=None,
            high=None,
            clusters=(names,),
            warnings=warnings,
            **common,
        )
    beats = np.nan_to_num(differences.low, nan=-1.0) > 0
    undecidable = tuple(
        (names[i], names[j]) for i in range(k) for j in range(i + 1, k) if not differences.decidable[i, j]
    )
    if undecidable:
        warnings = (*warnings, ResultWarning("undecidable_pairs", "warn", {"n": len(undecidable)}))
    return RankSets(
        low=tuple((1 + beats.sum(axis=0)).tolist()),
        high=tuple((k - beats.sum(axis=1)).tolist()),
        clusters=_separated(names, estimates, beats),
        critical_value=differences.critical_value,
        undecidable=undecidable,
        warnings=warnings,
        **common,
    )


def rank_confidence_sets_from_rows(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    systems: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    weights: npt.ArrayLike | None = None,
    population: str = "",
    level: float = 0.95,
) -> RankSets:
    """Return the rank sets of the systems' mean values over rows.

    Parameters
    ----------
    values, annotators, systems : array_like, shape (n_rows,)
        Values (NaN is missing), and labels of each row's annotator and system. For z-scores pass
        `ratings.z_scores_by_annotator`.
    prompts : array_like, shape (n_rows,), optional
        Labels of each row's prompt. Without them the sets are about exactly these prompts.
    weights : array_like, shape (n_rows,), optional
        Weights of the rows within a system; 1 if None.
    population : {"", "people_and_prompts", "people"}, default ""
        What the sets are about, as in `clusters.mean_of_population`.
    level : float, default 0.95
        Probability that all sets together contain the true ranks.

    Returns
    -------
    RankSets
        The ranks and their sets. `not_identified` for "people_and_prompts" with fewer than five prompts.

    Raises
    ------
    ValueError
        If an argument is not allowed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, systems = np.repeat(np.arange(30), 4), np.tile(["x", "y"], 60)
    >>> values = rng.normal(0, 1, 120) + 2 * (systems == "x")
    >>> result = rank_confidence_sets_from_rows(values, annotators, systems, np.repeat(np.arange(60), 2))
    >>> result.systems, result.low, result.high, result.n, result.settings["population"]
    (('x', 'y'), (1, 2), (1, 2), 30, 'people and prompts')
    """
    cluster_variances.validate_population(population)
    items = None if population == "people" else prompts
    spread = score_spread(values, annotators, systems, items, weights=weights)
    sets, _ = rank_confidence_sets_from_spread(spread, level=level)
    if population == "people_and_prompts" and spread.items is None and sets.low is not None:
        return replace(
            sets,
            low=None,
            high=None,
            clusters=(sets.systems,),
            status="not_identified",
            reason=cluster_variances.too_few_prompts(spread.n_items),
            critical_value=None,
            settings={**sets.settings, "population": cluster_variances.PEOPLE_AND_PROMPTS},
        )
    return sets


def _separated(names: tuple[Any, ...], scores: FloatArray, beats: BoolArray) -> tuple[tuple[Any, ...], ...]:
    order = np.argsort(-scores, kind="stable")
    groups: list[tuple[Any, ...]] = []
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or beats[np.ix_(order[:end], order[end:])].all():
            groups.append(tuple(names[i] for i in order[start:end]))
            start = end
    return tuple(groups)
