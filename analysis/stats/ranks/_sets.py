"""Confidence sets for ranks."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import BoolArray, FloatArray, IntArray, validate_level, vector
from analysis.stats.ranks._differences import SimultaneousDifferences, simultaneous_differences
from analysis.stats.ranks._spread import ScoreSpread, score_spread
from analysis.stats.results import Record, ResultWarning


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
    clusters.validate_population(population)
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
            reason=clusters.too_few_prompts(spread.n_items),
            critical_value=None,
            settings={**sets.settings, "population": clusters.PEOPLE_AND_PROMPTS},
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
