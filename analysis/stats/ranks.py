"""Confidence sets for the ranks of systems that hold for all systems at once.

The spread of a system's rank over bootstrap samples is not a confidence set: if all systems are equal, it covers
the true ranks in one of ten studies. Here every difference of two systems gets a simultaneous interval from the
largest studentised deviation over pairs. A system ranks below another only if their interval excludes 0.

References: Mogstad, Romano, Shaikh and Wilhelm 2024, Inference for ranks with applications to mobility across
neighbourhoods and academic achievement across countries; Romano and Wolf 2005 for the maximum over pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    label_codes,
    matrix,
    validate_level,
    vector,
)
from analysis.stats.bootstrap import RESAMPLES, multinomial_weights, ratio_draws
from analysis.stats.clusters import cluster_warnings
from analysis.stats.results import Record, ResultWarning

# If more than this share of the resamples leave a score undefined, the rest is not a bootstrap distribution.
MAX_UNDEFINED = 0.5


@dataclass(frozen=True, slots=True)
class SimultaneousDifferences(Record):
    """All differences of K scores, row minus column, with simultaneous intervals; arrays have shape (K, K).

    `low` and `high` bound all differences at once with probability `level`. `pvalues` are adjusted for all pairs by
    the same maximum. If the standard error is 0 they are NaN and the pair is not `decidable`. `largest` (n_draws,)
    are the maxima over pairs.
    """

    level: float
    estimates: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    pvalues: FloatArray
    decidable: BoolArray
    critical_value: float
    largest: FloatArray


@dataclass(frozen=True, slots=True)
class RankSets(Record):
    """Ranks of K systems (1 is the best) in the given order: `scores`, `ranks` and the sets `low`..`high`.

    `ranks` are 1 + the number of systems with a higher score. All K sets together hold the true ranks with
    probability `level`; without sets `low` and `high` are None (see `status`). `best` marks every system that may be
    first. `clusters` are groups of systems such that each member of a group beats each member of the next.
    `undecidable` lists pairs whose difference did not vary. `n` counts `unit`s.
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
        """Whether each system may be first; False for all if there are no sets."""
        return tuple(rank == 1 for rank in self.low) if self.low is not None else (False,) * len(self.systems)

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"best": list(self.best)}


def descending_ranks(scores: npt.ArrayLike) -> IntArray:
    """Ranks of scores (K,): 1 + the number of higher scores; equal scores share the better rank.

    Examples
    --------
    >>> descending_ranks([0.7, 0.9, 0.7, 0.1]).tolist()
    [2, 1, 2, 4]
    """
    array = vector(scores, "scores")
    return np.asarray(1 + np.sum(array[None, :] > array[:, None], axis=1), dtype=np.int64)


def simultaneous_differences(
    scores: npt.ArrayLike, draws: npt.ArrayLike, *, level: float = 0.95, df: npt.ArrayLike | None = None
) -> SimultaneousDifferences:
    """Simultaneous intervals for all differences of K scores, from resampled scores.

    D_ij is the difference, D*_ij its draws, se_ij their standard deviation. q is the `level` quantile of max_ij
    |D*_ij - D_ij| / se_ij. The interval is D_ij -/+ q se_ij, and p_ij = (1 + number of maxima >= |D_ij| / se_ij) / (B
    + 1). The bootstrap is too narrow with few clusters. With `df`, the t quantile with the same tail replaces q.

    Parameters
    ----------
    scores, draws : array_like, shapes (K,) and (B, K)
        Scores, and scores estimated again in each resample; finite.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    df : array_like, optional
        Degrees of freedom, a number or (K, K) by pair.

    Returns
    -------
    SimultaneousDifferences
        Differences, intervals and adjusted p-values.

    Examples
    --------
    >>> draws = np.array([[0.0, 1.0], [0.2, 0.9], [0.1, 1.2], [0.1, 0.9]])
    >>> found = simultaneous_differences([0.1, 1.0], draws)
    >>> found.estimates[1, 0].round(3).item(), found.standard_errors[1, 0].round(4).item()
    (0.9, 0.1826)
    """
    validate_level(level)
    estimates, resampled = vector(scores, "scores"), matrix(draws, "draws")
    k = len(estimates)
    if resampled.shape[1] != k:
        raise ValueError(f"draws: {resampled.shape[1]} columns for {k} scores")
    if len(resampled) < 2:
        raise ValueError("draws: at least two resamples are needed")
    if np.isnan(estimates).any() or np.isnan(resampled).any():
        raise ValueError("draws: a score that is not defined cannot be compared; leave it out first")
    freedom = np.full((k, k), np.inf) if df is None else np.broadcast_to(np.asarray(df, dtype=np.float64), (k, k))
    if np.isnan(freedom).any() or np.any(freedom <= 0):
        raise ValueError("df: degrees of freedom are positive")
    estimate = estimates[:, None] - estimates[None, :]
    se = np.zeros((k, k))
    # One system at a time: all pairs of a hundred systems over all resamples would need a gigabyte.
    for i in range(k - 1):
        se[i, i + 1 :] = np.std(resampled[:, i, None] - resampled[:, i + 1 :], axis=0, ddof=1)
    se = se + se.T
    # Rounding errors of a score are not variation.
    decidable = se > MIN_SPREAD * max(1.0, float(np.max(np.abs(estimates), initial=0.0)))
    largest = np.zeros(len(resampled))
    for i in range(k - 1):
        here = np.flatnonzero(decidable[i, i + 1 :]) + i + 1
        if len(here):
            deviations = np.abs(resampled[:, i, None] - resampled[:, here] - estimate[i, here]) / se[i, here]
            largest = np.maximum(largest, deviations.max(axis=1))
    critical = float(np.quantile(largest, level))
    half = _as_t(critical, freedom) * se
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = _as_normal(np.abs(estimate) / se, freedom)
    exceeding = len(largest) - np.searchsorted(np.sort(largest), np.nan_to_num(statistic), side="left")
    undefined = ~decidable
    return SimultaneousDifferences(
        level=level,
        estimates=estimate,
        standard_errors=se,
        low=np.where(undefined, np.nan, estimate - half),
        high=np.where(undefined, np.nan, estimate + half),
        pvalues=np.where(undefined, np.nan, (1 + exceeding) / (1 + len(largest))),
        decidable=decidable,
        critical_value=critical,
        largest=largest,
    )


def rank_confidence_sets(
    scores: npt.ArrayLike,
    draws: npt.ArrayLike,
    *,
    systems: Sequence[Any] | None = None,
    level: float = 0.95,
    df: npt.ArrayLike | None = None,
    unit: str = "annotator",
    n: int | None = None,
    n_rows: int | None = None,
    warnings: tuple[ResultWarning, ...] = (),
    settings: dict[str, Any] | None = None,
) -> RankSets:
    """Simultaneous confidence sets for the ranks of K systems, from their scores and resampled scores.

    `scores` (K,), `draws` (B, K) and `df` are as in `simultaneous_differences`; higher is better. Draws with an
    undefined score are left out (warning `undefined_resamples`). `unit`, `n`, `n_rows`, `warnings` and `settings` are
    stored in the record. System i ranks at best 1 + #{j: D_ji > 0 shown} and at worst K - #{j: D_ij > 0 shown}. One
    system: `not_applicable`. Differences that do not vary: `zero_variance`.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal([0.8, 0.5, 0.49], 0.02, (999, 3))
    >>> found = rank_confidence_sets([0.8, 0.5, 0.49], draws, systems=["a", "b", "c"])
    >>> found.low, found.high, found.clusters
    ((1, 2, 2), (1, 3, 3), (('a',), ('b', 'c')))
    """
    validate_level(level)
    estimates, resampled = vector(scores, "scores"), matrix(draws, "draws")
    k = len(estimates)
    if resampled.shape[1] != k:
        raise ValueError(f"draws: {resampled.shape[1]} columns for {k} scores")
    if np.isnan(estimates).any():
        raise ValueError(f"scores: row {int(np.flatnonzero(np.isnan(estimates))[0])} is missing")
    names = tuple(range(k)) if systems is None else tuple(systems)
    if len(names) != k:
        raise ValueError(f"systems: {len(names)} names for {k} scores")
    common: dict[str, Any] = {
        "systems": names,
        "scores": tuple(estimates.tolist()),
        "ranks": tuple(descending_ranks(estimates).tolist()),
        "level": level,
        "unit": unit,
        "n": n,
        "n_rows": n_rows,
        "settings": {"level": level, "resamples": len(resampled), **(settings or {})},
    }
    none: dict[str, Any] = {"low": None, "high": None, "clusters": (names,) if k else (), "warnings": warnings}
    if k == 0:
        return RankSets(status="no_data", reason="no system has a score", **none, **common)
    if k == 1:
        return RankSets(status="not_applicable", reason="a single system has rank 1", **none, **common)
    if n is not None and n < 2:
        return RankSets(status="n_lt_2", reason=f"one {unit} has no spread", **none, **common)
    defined = np.isfinite(resampled).all(axis=1)
    if not defined.all():
        share = 1 - float(defined.mean())
        none["warnings"] = warnings = (*warnings, ResultWarning("undefined_resamples", "warn", {"share": share}))
        if share > MAX_UNDEFINED or int(defined.sum()) < 2:
            reason = "some systems were rated by too few to be resampled"
            return RankSets(status="not_identified", reason=reason, **none, **common)
    found = simultaneous_differences(estimates, resampled[defined], level=level, df=df)
    off_diagonal = ~np.eye(k, dtype=bool)
    if not found.decidable[off_diagonal].any():
        return RankSets(
            status="zero_variance", reason="the differences between the systems do not vary", **none, **common
        )
    beats = np.nan_to_num(found.low, nan=-1.0) > 0
    undecidable = tuple((names[i], names[j]) for i in range(k) for j in range(i + 1, k) if not found.decidable[i, j])
    if undecidable:
        warnings = (*warnings, ResultWarning("undecidable_pairs", "warn", {"n": len(undecidable)}))
    return RankSets(
        low=tuple((1 + beats.sum(axis=0)).tolist()),
        high=tuple((k - beats.sum(axis=1)).tolist()),
        clusters=_separated(names, estimates, beats),
        critical_value=found.critical_value,
        undecidable=undecidable,
        warnings=warnings,
        **common,
    )


@dataclass(frozen=True, slots=True)
class ScoreDraws(Record):
    """Scores (K,) of `systems`, their resamples (B, K), and `df` (K, K) for each pair of systems."""

    systems: tuple[Any, ...]
    scores: FloatArray
    draws: FloatArray
    df: FloatArray
    n_annotators: int
    n_rows: int
    warnings: tuple[ResultWarning, ...]


def bootstrap_system_scores(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    systems: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    unit: str = "annotator",
) -> ScoreDraws:
    """Mean values of systems, and the same in resamples of the annotators with all their rows.

    All arrays have shape (n_rows,); a missing value leaves out its row. `weights` (default 1) weigh rows within a
    system. df_ij = G*_ij - 1, with G*_ij the effective number of annotators of systems i and j.

    Examples
    --------
    >>> found = bootstrap_system_scores([1, 0, 1, 1], ["a", "a", "b", "b"], ["x", "y", "x", "y"], resamples=99,
    ...                     rng=np.random.default_rng(0))
    >>> found.systems, found.scores.tolist(), found.draws.shape
    (('x', 'y'), [1.0, 0.5], (99, 2))
    """
    array = vector(values, "values")
    weight = np.ones(len(array)) if weights is None else vector(weights, "weights")
    if weight.shape != array.shape or np.isnan(weight).any() or np.any(weight < 0):
        raise ValueError("weights: one non-negative number a row is needed")
    if resamples < 2:
        raise ValueError(f"resamples: {resamples} is less than 2")
    labels = np.asarray(systems)
    label_codes(labels, "systems", len(array))
    label_codes(np.asarray(annotators), "annotators", len(array))
    here = ~np.isnan(array) & (weight > 0)
    kept, weight = array[here], weight[here]
    columns, k = label_codes(labels[here], "systems", len(kept))
    positions, n_annotators = label_codes(np.asarray(annotators)[here], "annotators", len(kept))
    cells = positions * k + columns
    size = n_annotators * k
    counts = np.bincount(cells, weight, minlength=size).reshape(n_annotators, k)
    sums = np.bincount(cells, weight * kept, minlength=size).reshape(n_annotators, k)
    if len(kept) == 0:
        return ScoreDraws((), np.empty(0), np.empty((resamples, 0)), np.empty((0, 0)), 0, 0, ())
    shares = counts / counts.sum(axis=0)
    overlap = shares.T @ shares
    concentration = np.diag(overlap)[:, None] + np.diag(overlap)[None, :] + 2 * overlap
    return ScoreDraws(
        systems=tuple(np.unique(labels[here]).tolist()),
        scores=np.asarray(sums.sum(axis=0) / counts.sum(axis=0)),
        draws=ratio_draws(sums, counts, multinomial_weights(n_annotators, resamples, rng)),
        df=np.maximum(1.0, 4 / concentration - 1),
        n_annotators=n_annotators,
        n_rows=len(kept),
        warnings=cluster_warnings(np.bincount(positions), name=unit),
    )


def rank_confidence_sets_from_rows(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    systems: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    critical: str = "t",
    rng: np.random.Generator,
    unit: str = "annotator",
) -> RankSets:
    """`rank_sets` of the systems' mean values over rows (shape (n_rows,)), with resampled annotators.

    `critical` "t" uses the effective number of annotators of each pair, "bootstrap" the plain quantile. For z-scores
    pass `ratings.z_scores`. If annotators share items, the claim is about these items.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, systems = np.repeat(np.arange(30), 4), np.tile(["x", "y"], 60)
    >>> values = rng.normal(0, 1, 120) + 2 * (systems == "x")
    >>> found = rank_confidence_sets_from_rows(values, annotators, systems, rng=rng, resamples=999)
    >>> found.systems, found.low, found.high, found.n
    (('x', 'y'), (1, 2), (1, 2), 30)
    """
    if critical not in ("t", "bootstrap"):
        raise ValueError(f"critical: {critical!r} is neither t nor bootstrap")
    drawn = bootstrap_system_scores(
        values, annotators, systems, weights=weights, resamples=resamples, rng=rng, unit=unit
    )
    return rank_confidence_sets(
        drawn.scores,
        drawn.draws,
        systems=drawn.systems,
        level=level,
        df=drawn.df if critical == "t" else None,
        unit=unit,
        n=drawn.n_annotators,
        n_rows=drawn.n_rows,
        warnings=drawn.warnings,
        settings={"critical": critical},
    )


def _as_t(normal: float, df: FloatArray) -> FloatArray:
    """Return the t quantiles with the same tail as a normal quantile."""
    tail = float(special.ndtr(-normal))
    return np.where(np.isinf(df), normal, -special.stdtrit(np.where(np.isinf(df), 1.0, df), tail))


def _as_normal(statistic: FloatArray, df: FloatArray) -> FloatArray:
    finite = np.where(np.isinf(df), 1.0, df)
    return np.where(np.isinf(df), statistic, -special.ndtri(special.stdtr(finite, -statistic)))


def _separated(names: tuple[Any, ...], scores: FloatArray, beats: BoolArray) -> tuple[tuple[Any, ...], ...]:
    order = np.argsort(-scores, kind="stable")
    groups: list[tuple[Any, ...]] = []
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or beats[np.ix_(order[:end], order[end:])].all():
            groups.append(tuple(names[i] for i in order[start:end]))
            start = end
    return tuple(groups)
