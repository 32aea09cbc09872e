"""Confidence sets for ranks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    matrix,
    validate_level,
    vector,
)
from analysis.stats.bootstrap import RESAMPLES
from analysis.stats.ranks._differences import SimultaneousDifferences, simultaneous_differences
from analysis.stats.ranks._scores import bootstrap_system_scores
from analysis.stats.ranks._spread import ScoreSpread
from analysis.stats.results import Record, ResultWarning

# If more than this share of the resamples leave a score undefined, the rest is not a bootstrap distribution.
MAX_UNDEFINED = 0.5


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
    """Ranks of scores: 1 + the number of higher scores; equal scores share the better rank.

    Parameters
    ----------
    scores : array_like, shape (K,)
        Scores; higher is better.

    Returns
    -------
    ndarray of int, shape (K,)
        The ranks; 1 is the best.

    Examples
    --------
    >>> descending_ranks([0.7, 0.9, 0.7, 0.1]).tolist()
    [2, 1, 2, 4]
    """
    array = vector(scores, "scores")
    return np.asarray(1 + np.sum(array[None, :] > array[:, None], axis=1), dtype=np.int64)


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

    Parameters
    ----------
    scores, draws : array_like, shapes (K,) and (B, K)
        Scores (higher is better), and scores estimated again in each resample. Draws with an undefined score are left
        out (warning `undefined_resamples`).
    systems : sequence[Any], optional
        Names of the systems; their numbers if None.
    level : float, default 0.95
        Probability that all sets together contain the true ranks.
    df : array_like, optional
        Degrees of freedom, as in `simultaneous_differences`.
    unit, n, n_rows, warnings, settings : optional
        Fields that are copied to the record.

    Returns
    -------
    RankSets
        The ranks and their sets. System i ranks at best 1 + #{j: D_ji > 0 shown} and at worst K - #{j: D_ij > 0 shown}.
        One system: `not_applicable`. Differences that do not vary: `zero_variance`.

    Raises
    ------
    ValueError
        If a score is missing, or the shapes do not agree.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal([0.8, 0.5, 0.49], 0.02, (999, 3))
    >>> result = rank_confidence_sets([0.8, 0.5, 0.49], draws, systems=["a", "b", "c"])
    >>> result.low, result.high, result.clusters
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
    differences = simultaneous_differences(estimates, resampled[defined], level=level, df=df)
    return _sets_of_differences(differences, estimates, warnings, common)


def rank_confidence_sets_from_spread(
    spread: ScoreSpread,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    unit: str = "annotator",
) -> tuple[RankSets, SimultaneousDifferences | None]:
    """Return the rank sets of scores with a joint spread, and the simultaneous differences that they come from.

    Parameters
    ----------
    spread : ScoreSpread
        Scores and their joint spread over annotators and items. A system without a defined spread is compared with none.
    level : float, default 0.95
        Probability that all sets together contain the true ranks.
    resamples : int, default RESAMPLES
        Number of normal draws for the quantile of the largest deviation.
    rng : numpy.random.Generator
        Source of the random draws.
    unit : str, default 'annotator'
        Name of the unit.

    Returns
    -------
    tuple[RankSets, SimultaneousDifferences or None]
        The sets and the differences, in the order of `spread.systems`. No differences if the sets have a status.

    Notes
    -----
    Standard errors and degrees of freedom of each pair are those of `ScoreSpread.of_pairs`. Normal draws with the
    covariance of the scores give the quantile of the largest deviation, in terms of t for each pair.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, systems, items = np.repeat(np.arange(30), 4), np.tile(["x", "y"], 60), np.repeat(np.arange(60), 2)
    >>> values = rng.normal(0, 1, 120) + 2 * (systems == "x")
    >>> from analysis.stats.ranks import score_spread
    >>> sets, differences = rank_confidence_sets_from_spread(score_spread(values, annotators, systems, items), rng=rng)
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
        "unit": unit,
        "n": spread.n_annotators,
        "n_rows": spread.n_rows,
        "settings": {"level": level, "resamples": resamples, "population": spread.population},
    }
    names = (spread.systems,) if k else ()
    none: dict[str, Any] = {"low": None, "high": None, "clusters": names, "warnings": spread.warnings}
    if k == 0:
        return RankSets(status="no_data", reason="no system has a score", **none, **common), None
    if k == 1:
        return RankSets(status="not_applicable", reason="a single system has rank 1", **none, **common), None
    if spread.n_annotators < 2:
        return RankSets(status="n_lt_2", reason=f"one {unit} has no spread", **none, **common), None
    if spread.is_defined.sum() < 2:
        reason = f"one {unit} alone gave all answers of the systems; collect more answers"
        return RankSets(status="not_identified", reason=reason, **none, **common), None
    se, df = spread.of_pairs()
    differences = simultaneous_differences(
        spread.scores, spread.draws(resamples, rng), level=level, df=df, standard_errors=se
    )
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
    *,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    critical: str = "t",
    rng: np.random.Generator,
    unit: str = "annotator",
) -> RankSets:
    """Return `rank_confidence_sets` of the systems' mean values over rows, with resampled annotators.

    Parameters
    ----------
    values, annotators, systems : array_like, shape (n_rows,)
        Values (NaN is missing), and labels of each row's annotator and system. For z-scores pass
        `ratings.z_scores_by_annotator`.
    weights : array_like, shape (n_rows,), optional
        Weights of the rows within a system; 1 if None.
    level : float, default 0.95
        Probability that all sets together contain the true ranks.
    resamples : int, default RESAMPLES
        Number of resamples.
    critical : {"t", "bootstrap"}, default 't'
        "t" uses the effective number of annotators of each pair, "bootstrap" the plain quantile.
    rng : numpy.random.Generator
        Source of the random draws.
    unit : str, default 'annotator'
        Name of the unit.

    Returns
    -------
    RankSets
        The ranks and their sets. If annotators share items, the claim is about these items.

    Raises
    ------
    ValueError
        If an argument is not allowed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, systems = np.repeat(np.arange(30), 4), np.tile(["x", "y"], 60)
    >>> values = rng.normal(0, 1, 120) + 2 * (systems == "x")
    >>> result = rank_confidence_sets_from_rows(values, annotators, systems, rng=rng, resamples=999)
    >>> result.systems, result.low, result.high, result.n
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


def _separated(names: tuple[Any, ...], scores: FloatArray, beats: BoolArray) -> tuple[tuple[Any, ...], ...]:
    order = np.argsort(-scores, kind="stable")
    groups: list[tuple[Any, ...]] = []
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or beats[np.ix_(order[:end], order[end:])].all():
            groups.append(tuple(names[i] for i in order[start:end]))
            start = end
    return tuple(groups)
