"""Scores of systems (0 to 100) on one fixed draw of items, and their differences.

The paper resamples annotations as if each came from a different person. If a few annotators give most of the
labels, its 95 % interval covers less than half of the time. Here the unit is the annotator, all items have the
same weight, and systems are compared on the items they share.

Reference: Genie (Khashabi et al. 2022), sections 4 and 6, appendix C.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import bootstrap, cluster_variances, ranks
from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    IntArray,
    label_codes,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.board_rounds import linked_rounds, spread_of_equated_scores
from analysis.stats.board_scores import SCALE, equal_item_weights, system_score_in_points
from analysis.stats.ranks import SimultaneousDifferences
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, ResultWarning

# All systems at once: scores, ranks, and distances from the best system.


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
    tested = common["n"] >= cluster_variances.TOO_FEW_CLUSTERS
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


# Whether a new system is better than the best before, asked again at every submission.


def alphas_of_submissions(was_better: Sequence[bool], *, alpha: float = 0.05) -> FloatArray:
    """Compute the significance levels of a board's submissions, so that at most `alpha` of boards ever make a false claim.

    `was_better` says whether each of n submissions so far was declared better than the best before, in their order; the
    n + 1 levels are those of these submissions and of the next one. alpha_k = alpha 6 / (pi^2 k^2), which sums to alpha
    however many follow, plus alpha_(k-1) if submission k - 1 was declared better: a rejected hypothesis passes its
    level on (online fallback; Tian and Ramdas 2021, Online control of the familywise error rate). The error over the
    family is controlled whatever the dependence between submissions, which share earlier systems, annotators and items.

    >>> alphas_of_submissions([False, True]).round(4).tolist()
    [0.0304, 0.0076, 0.011]
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha: {alpha!r} is not strictly between 0 and 1")
    levels: list[float] = []
    for position in range(len(was_better) + 1):
        passed_on = levels[-1] if position and was_better[position - 1] else 0.0
        levels.append(alpha * 6 / (math.pi * (position + 1)) ** 2 + passed_on)
    return np.array(levels)


def compare_each_with_best_before(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    new: Sequence[Any],
    earlier: Sequence[Any],
    was_better: Sequence[bool] = (),
    alpha: float = 0.05,
    rounds: npt.ArrayLike | None = None,
    items_sampled: bool = True,
    item_groups: npt.ArrayLike | None = None,
) -> tuple[Estimate, ...]:
    """Estimate the difference of each of several new systems from the best of all systems before it, in their order.

    Rows are answers in 0..1, NaN if missing. `new` is in the order of submission, and each new system is also compared
    with those before it; `earlier` are all systems submitted before them, and `was_better` are the verdicts on all
    previous submissions that were compared in this way, which decide the levels (`alphas_of_submissions`). The null
    hypothesis is that some earlier system is at least as good: a union. It is rejected if each one-sided t test of new
    against an earlier system rejects at alpha, so p is the largest of their p-values (intersection-union test; Berger
    1982, Multiparameter hypothesis testing and acceptance sampling). To be better than the truly best is to be better
    than all, so the choice of the best from the data costs nothing; a simultaneous interval over the earlier systems is
    valid, too, but has less power, because it also protects the claims that nobody makes, about single earlier systems.
    The interval has the level 1 - 2 alpha: the lower end is the smallest of the one-sided lower limits, and the upper
    end is the smallest upper limit at alpha / (number of earlier systems). Standard errors are those of
    `ranks.score_spread`: paired by item, over annotators and items, or over `item_groups`, such as documents, in place
    of items; `items_sampled` says whether the claim goes beyond the items of the study. With `rounds`, scores are
    equated first (`equated_scores`) and the standard errors include the error of the link; without it, all rows count
    as one round. `settings["alpha"]` is the level of a comparison, `detail["is_better"]` the verdict p <= alpha, which
    is the same as an interval above 0, `detail["best"]` the earlier system with the highest score, and
    `detail["closest"]` the one that decides the p-value; there is no test with fewer than six annotators.

    >>> rng = np.random.default_rng(0)
    >>> systems, items, people = np.repeat(["a", "b", "c"], 60), np.tile(np.arange(60), 3), np.tile(np.arange(20), 9)
    >>> values = np.clip(np.repeat([0.4, 0.7, 0.6], 60) + rng.normal(0, 0.1, 180), 0, 1)
    >>> found = compare_each_with_best_before(values, systems, items, people, new=["b", "c"], earlier=["a"])
    >>> [estimate.detail["is_better"] for estimate in found]
    [True, False]
    """
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    linked = _linked_rows(
        array,
        np.asarray(systems),
        items,
        items if item_groups is None else item_groups,
        annotators,
        rounds,
        [*new, *earlier],
        items_sampled,
    )
    verdicts = list(was_better)
    found = []
    for place, name in enumerate(new):
        level = float(alphas_of_submissions(verdicts, alpha=alpha)[-1])
        estimate = _compare(linked, name, [*earlier, *new[:place]], alpha=level)
        verdicts.append(bool(estimate.detail.get("is_better", False)))
        found.append(estimate)
    return tuple(found)


def _compare(linked: "_LinkedScores", new: object, earlier: Sequence[Any], *, alpha: float) -> Estimate:
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha: {alpha!r} is not strictly between 0 and .5")
    if new in list(earlier):
        raise ValueError(f"earlier: {new!r} is the new system")
    spread = linked.spread
    common: dict[str, Any] = {
        "analysis": "leaderboard.better_than_best_before",
        "estimand": f"score of {new} minus the highest score of {len(earlier)} earlier systems, in points",
        "unit": "annotator",
    }
    common |= {"n": spread.n_annotators, "n_clusters": spread.n_annotators, "n_rows": spread.n_rows}
    common["warnings"] = spread.warnings
    common["settings"] = {"alpha": alpha, "population": spread.population, "items_sampled": spread.items is not None}
    if len(earlier) == 0:
        return Estimate(status="not_applicable", reason="no system was submitted before", **common)
    places = {name: place for place, name in enumerate(spread.systems)}
    unanswered = [name for name in (new, *earlier) if name not in places]
    if unanswered:
        reason = f"there is no answer about {unanswered[0]}"
        return Estimate(status="no_data", reason=reason, **common)
    if unlinked := [name for name in earlier if linked.group.get(name) != linked.group.get(new)]:
        reason = f"no anchor links the rounds of {new} and {unlinked[0]}"
        return Estimate(status="not_identified", reason=reason, **common)
    apart = spread.minus_each(places[new], [places[name] for name in earlier])
    se, df = apart.of_scores()
    best = int(np.argmin(apart.scores))
    named: dict[str, Any] = {**common, "estimate": float(apart.scores[best])}
    detail: dict[str, Any] = {"best": earlier[best], "n_earlier": len(earlier), "is_better": False}
    if not apart.is_defined.all():
        name = earlier[int(np.argmin(apart.is_defined))]
        reason = f"one annotator or one item alone has all answers about {new} or {name}; collect more answers"
        return Estimate(status="not_identified", reason=reason, detail=detail, **named)
    if se.min() < MIN_SPREAD * SCALE:
        return Estimate(status="zero_variance", reason="a difference does not vary", detail=detail, **named)
    pvalues = special.stdtr(df, -apart.scores / se)
    closest = int(np.argmax(pvalues))
    pvalue = float(pvalues[closest])
    low = float(np.min(apart.scores - special.stdtrit(df, 1 - alpha) * se))
    high = float(np.min(apart.scores + special.stdtrit(df, 1 - alpha / len(earlier)) * se))
    has_enough = spread.n_annotators >= cluster_variances.TOO_FEW_CLUSTERS
    detail |= {
        "closest": earlier[closest],
        "se": float(se[closest]),
        "df": float(df[closest]),
        "is_better": bool(has_enough and low > 0),
    }
    skewness = float(np.max(apart.skewness()))
    if skewness > cluster_variances.MAX_SKEWNESS:
        named["warnings"] = (*spread.warnings, ResultWarning("small_n_skew", "warn", {"skewness": skewness}))
    test = HypothesisTest(
        name="intersection_union_t",
        null=0.0,
        statistic=float(apart.scores[closest] / se[closest]),
        df=float(df[closest]),
        pvalue=pvalue,
        alternative="greater",
    )
    return Estimate(
        interval=Interval(1 - 2 * alpha, low, high, "intersection_union_t"),
        test=test if has_enough else None,
        detail=detail,
        **named,
    )


@dataclass(frozen=True, slots=True)
class _LinkedScores:
    """Scores with their joint spread. `group` names the rounds that each system's score is linked with."""

    spread: ranks.ScoreSpread
    group: dict[Any, tuple[int, ...]]


def _linked_rows(
    values: FloatArray,
    systems: npt.NDArray[Any],
    items: npt.ArrayLike,
    item_groups: npt.ArrayLike,
    annotators: npt.ArrayLike,
    rounds: npt.ArrayLike | None,
    used: Sequence[Any],
    items_sampled: bool,
) -> _LinkedScores:
    if rounds is None:
        is_used = np.isin(systems, list(used))
        weights = equal_item_weights(values, systems, items)
        spread = ranks.score_spread(
            SCALE * values[is_used],
            np.asarray(annotators)[is_used],
            systems[is_used],
            np.asarray(item_groups)[is_used] if items_sampled else None,
            weights=weights[is_used],
        )
        return _LinkedScores(spread, {})
    linked = linked_rounds(
        values, systems, items, annotators, rounds, items_sampled=items_sampled, item_groups=item_groups
    )
    spread, own_rounds = spread_of_equated_scores(linked)
    groups = {name: linked.group_of(number) for name, number in zip(linked.systems, own_rounds, strict=True)}
    return _LinkedScores(spread, groups)
