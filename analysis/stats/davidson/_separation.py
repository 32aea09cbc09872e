"""Ratings and rank sets where some systems always won or lost against the others, so that no rating fits all votes."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from analysis.stats import ranks
from analysis.stats.arrays import BoolArray, FloatArray, IntArray
from analysis.stats.bradley_terry import reachability
from analysis.stats.results import Estimate

if TYPE_CHECKING:
    from analysis.stats.davidson._ratings import PairedRatings

ALWAYS_WON = "it won every comparison, so its distance from the others is unbounded"
ALWAYS_LOST = "it lost every comparison, so its distance from the others is unbounded"
ONE_WAY = "its comparisons with the rated systems went one way only, so its distance is unbounded"


def largest_comparable_group(wins_and_ties: FloatArray) -> IntArray:
    """Return the largest group of systems each of which won, through others or directly, against each other one.

    Ratings of such a group exist (Ford 1957). Of groups of one size, the one with the most votes counts. Empty if no
    group has two systems.

    >>> largest_comparable_group(np.array([[0, 3, 3], [0, 0, 1], [0, 2, 0]])).tolist()
    [1, 2]
    """
    won = reachability(wins_and_ties > 0)
    together = won & won.T
    sizes = together.sum(axis=1)
    votes = np.where(together, wins_and_ties, 0).sum(axis=1) @ together
    best = max(range(len(sizes)), key=lambda system: (sizes[system], votes[system]))
    return np.flatnonzero(together[best]) if sizes[best] > 1 else np.empty(0, dtype=np.int64)


def rate_comparable_systems(
    rows: dict[str, npt.NDArray[Any]],
    wins_and_ties: FloatArray,
    undefined: "PairedRatings",
    rate: Callable[..., "PairedRatings"],
    level: float,
) -> "PairedRatings":
    """Return ratings of the largest comparable group, rank sets of all systems, and the reason for each system without a rating.

    Half of the error that `level` allows is spent on the group, by the largest deviation as if there were no other
    systems. The other half is spent on the pairs outside it: a sign test over people of each pair with votes, corrected
    for all pairs and both directions (`certain_wins`). Who beats a system also beats those that it beats.
    """
    n_systems = len(wins_and_ties)
    group = largest_comparable_group(wins_and_ties)
    in_group = np.isin(np.arange(n_systems), group)
    beats = certain_wins(
        rows["first"], rows["second"], rows["outcomes"], rows["annotators"], n_systems, (1 - level) / 2
    )
    beats &= ~(in_group[:, None] & in_group[None, :])
    found = replace(undefined, ratings=_with_reasons(undefined.ratings, wins_and_ties), rated=())
    if len(group):
        own = in_group[rows["first"]] & in_group[rows["second"]]
        place = np.cumsum(in_group) - 1
        of_group = {name: values[own] for name, values in rows.items()}
        of_group |= {name: place[of_group[name]] for name in ("first", "second")}
        rated = rate(**of_group, n_systems=len(group), level=level)
        stricter = rate(**of_group, n_systems=len(group), level=(1 + level) / 2)
        if rated.status == "ok":
            found = _embedded(found, rated, group)
        if stricter.differences is not None:
            beats[np.ix_(group, group)] = np.nan_to_num(stricter.differences.low, nan=-1.0) > 0
    beats = reachability(beats) & ~np.eye(n_systems, dtype=np.bool_)
    return replace(found, ranks=_rank_sets(undefined.ranks, beats))


def certain_wins(
    first: IntArray,
    second: IntArray,
    outcomes: FloatArray,
    annotators: npt.NDArray[Any],
    n_systems: int,
    alpha: float,
) -> BoolArray:
    """Return which system more people prefer to which other one, by sign tests that hold together; shape (K, K).

    Each person who compared a pair counts once, with the system that they chose more often. Half of the persons would
    choose either system if the two were equally good.

    >>> five = np.zeros(30, dtype=int)
    >>> certain_wins(five, five + 1, np.ones(30), np.arange(30), 2, 0.025).tolist()
    [[False, True], [False, False]]
    """
    from scipy import stats

    is_turned = first > second
    pair = np.where(is_turned, second * n_systems + first, first * n_systems + second)
    leaning = np.where(is_turned, 0.5 - outcomes, outcomes - 0.5)
    _, person = np.unique(annotators, return_inverse=True)
    cells, place = np.unique(person.astype(np.int64) * n_systems**2 + pair, return_inverse=True)
    choice = np.sign(np.round(np.bincount(place, leaning, len(cells)), 9))
    of_pair = cells % n_systems**2
    lower = np.bincount(of_pair[choice > 0], minlength=n_systems**2).reshape(n_systems, n_systems)
    upper = np.bincount(of_pair[choice < 0], minlength=n_systems**2).reshape(n_systems, n_systems)
    chosen = lower + upper.T
    n_pairs = len(np.unique(pair))
    pvalues = stats.binom.sf(chosen - 1, chosen + chosen.T, 0.5)
    return np.asarray(pvalues <= alpha / (2 * max(1, n_pairs)), dtype=np.bool_)


def _with_reasons(ratings: tuple[Estimate, ...], wins_and_ties: FloatArray) -> tuple[Estimate, ...]:
    won, lost = wins_and_ties.sum(axis=1) > 0, wins_and_ties.sum(axis=0) > 0
    return tuple(
        replace(one, reason=ALWAYS_WON if not lost[system] else ALWAYS_LOST if not won[system] else ONE_WAY)
        for system, one in enumerate(ratings)
    )


def _embedded(found: "PairedRatings", rated: "PairedRatings", group: IntArray) -> "PairedRatings":
    """Return the record of all systems with the ratings of a group, whose mean is 0."""
    ratings, covariance = list(found.ratings), found.covariance.copy()
    for system, one in zip(group.tolist(), rated.ratings, strict=True):
        named = f"rating of system {system} (log-odds, sum zero over the rated systems)"
        ratings[system] = replace(one, estimand=named)
    covariance[np.ix_(group, group)] = rated.covariance
    return replace(
        found,
        ratings=tuple(ratings),
        covariates=rated.covariates,
        tie=rated.tie,
        covariance=covariance,
        differences=rated.differences,
        rated=tuple(group.tolist()),
    )


def _rank_sets(undefined: ranks.RankSets, beats: BoolArray) -> ranks.RankSets:
    n_systems = len(beats)
    return replace(
        undefined,
        low=tuple((1 + beats.sum(axis=0)).tolist()),
        high=tuple((n_systems - beats.sum(axis=1)).tolist()),
        clusters=(undefined.systems,),
    )
