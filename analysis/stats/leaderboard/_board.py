"""All systems at once: scores, ranks, and distances from the best system."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap, clusters, ranks
from analysis.stats.arrays import IntArray, label_codes, validate_level, validate_within_bounds, vector
from analysis.stats.leaderboard._rows import SCALE, equal_item_weights
from analysis.stats.leaderboard._scores import system_score_in_points
from analysis.stats.ranks import SimultaneousDifferences
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record


@dataclass(frozen=True, slots=True)
class Leaderboard(Record):
    """Systems from best to worst: scores, rank sets, and distances from the best system.

    `scores` and `from_best` are in the order of `ranks.systems`. The best system's own distance is `not_applicable`.
    `differences` of all pairs are in the same order; None if there are no rank sets.
    """

    scores: tuple[Estimate, ...]
    ranks: ranks.RankSets
    from_best: tuple[Estimate, ...]
    differences: SimultaneousDifferences | None = None


def leaderboard(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    items_sampled: bool = True,
    item_groups: npt.ArrayLike | None = None,
    resamples: int = bootstrap.RESAMPLES,
) -> Leaderboard:
    """Scores, rank sets and distances from the best of all systems.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers in 0..1; NaN is missing.
    systems, items, annotators : array_like, shape (n_rows,)
        Labels of each row's system, item and annotator.
    rng : numpy.random.Generator
        Source of the random draws.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    items_sampled : bool, default True
        Whether the claim goes beyond the items of the study.
    item_groups : array_like, shape (n_rows,), optional
        Labels of what is sampled in place of items, such as the document of each row's item. The items if None.
    resamples : int, default bootstrap.RESAMPLES
        Number of resamples.

    Returns
    -------
    Leaderboard
        The leaderboard. Compute it again after each new submission, because all intervals change.

    Notes
    -----
    Scores, ranks and distances are about the same samples: annotators and, with `items_sampled`, items
    (`ranks.rank_confidence_sets_from_spread`). Systems that share items are compared as pairs. The data choose the best
    system, so the distances have intervals and p-values that hold for all pairs at once (test "max_t").

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, items, systems = np.repeat(np.arange(20), 6), np.tile(np.arange(60), 2), np.repeat(["a", "b"], 60)
    >>> answers = np.clip(0.5 + 0.3 * (systems == "b") + rng.normal(0, 0.2, 120), 0, 1)
    >>> board = leaderboard(answers, systems, items, annotators, rng=rng, resamples=999)
    >>> board.ranks.systems, board.ranks.low, board.ranks.best
    (('b', 'a'), (1, 2), (True, False))
    """
    validate_level(level)
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    labels, item_labels, people = np.asarray(systems), np.asarray(items), np.asarray(annotators)
    label_codes(item_labels, "items", len(array))
    clusters_of_items = item_labels if item_groups is None else np.asarray(item_groups)
    spread = ranks.score_spread(
        SCALE * array,
        people,
        labels,
        clusters_of_items if items_sampled else None,
        weights=equal_item_weights(array, labels, items),
    )
    spread = spread.in_order(np.argsort(-spread.scores, kind="stable"))
    sets, differences = ranks.rank_confidence_sets_from_spread(spread, level=level)
    scores = []
    for own in _rows_of_systems(labels, spread.systems):
        scores.append(
            system_score_in_points(
                array[own],
                item_labels[own],
                people[own],
                rng=rng,
                level=level,
                items_sampled=items_sampled,
                item_groups=clusters_of_items[own],
                resamples=resamples,
            )
        )
    common: dict[str, Any] = {
        "unit": "annotator",
        "n": spread.n_annotators,
        "n_clusters": spread.n_annotators,
        "settings": {"level": level, "population": spread.population},
    }
    return Leaderboard(
        scores=tuple(scores),
        ranks=sets,
        from_best=tuple(_distance(position, spread, differences, sets, common) for position in range(len(scores))),
        differences=differences,
    )


def _rows_of_systems(labels: npt.NDArray[Any], systems: tuple[Any, ...]) -> list[IntArray]:
    """Return the rows of each system."""
    distinct, codes = np.unique(labels, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(codes, minlength=len(distinct)))[:-1]) if len(distinct) else []
    by_name = dict(zip(distinct.tolist(), rows, strict=True))
    return [by_name[name] for name in systems]


def _distance(
    position: int,
    spread: ranks.ScoreSpread,
    differences: ranks.SimultaneousDifferences | None,
    sets: ranks.RankSets,
    common: Mapping[str, Any],
) -> Estimate:
    names, scores = spread.systems, spread.scores
    named: dict[str, Any] = {
        "analysis": "leaderboard.from_best",
        "estimand": f"difference of scores in points, {names[position]} - {names[0]} (the best)",
        "estimate": float(scores[position] - scores[0]),
        **common,
    }
    if position == 0:
        return Estimate(status="not_applicable", reason="this is the best system", **named)
    if differences is None:
        return Estimate(status=sets.status, reason=sets.reason, **named)
    if not spread.is_defined[[0, position]].all():
        reason = "one annotator or one item alone has all answers of a system; collect more answers"
        return Estimate(status="not_identified", reason=reason, **named)
    if not differences.decidable[position, 0]:
        return Estimate(status="zero_variance", reason="the difference does not vary", **named)
    pvalue = float(differences.pvalues[position, 0])
    size = len(names) * (len(names) - 1) // 2
    tested = common["n"] >= clusters.TOO_FEW_CLUSTERS
    return Estimate(
        interval=Interval(
            differences.level, float(differences.low[position, 0]), float(differences.high[position, 0]), "max_t"
        ),
        test=HypothesisTest(
            name="max_t",
            null=0.0,
            statistic=float(scores[position] - scores[0]) / float(differences.standard_errors[position, 0]),
            pvalue=pvalue,
            pvalue_adjusted=pvalue,
            adjust="max_t",
            family="leaderboard.pairs",
            family_size=size,
        )
        if tested
        else None,
        detail={"se": float(differences.standard_errors[position, 0])},
        **named,
    )
