"""Ratings of many systems from millions of votes, by Davidson's model."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters, ranks
from analysis.stats.arrays import BoolArray, FloatArray, IntArray, label_codes, validate_level
from analysis.stats.cluster_models import MIN_PART
from analysis.stats.cluster_variances import cluster_warnings
from analysis.stats.davidson import fit_votes
from analysis.stats.ranks import SimultaneousDifferences
from analysis.stats.results import Estimate, Interval, Record
from analysis.stats.votes import checked_votes, connected_components, reachability, win_and_tie_tables

# Ratings and rank sets where some systems have no rating: they always won or lost against the others, or one person alone
# compared them with the others.


ALWAYS_WON = "it won every comparison, so its distance from the others is unbounded"
ALWAYS_LOST = "it lost every comparison, so its distance from the others is unbounded"
ONE_WAY = "its comparisons with the rated systems went one way only, so its distance is unbounded"
ALONE = "one annotator alone gave the answers that connect some systems with the others; collect more answers"
ALONE_WITH_COVARIATE = "one annotator alone gave the answers that inform it; collect more answers"


def largest_comparable_group(wins_and_ties: FloatArray) -> IntArray:
    """Return the largest group of systems each of which won, through others or directly, against each other one.

    Ratings of such a group exist (Ford 1957).

    >>> largest_comparable_group(np.array([[0, 3, 3], [0, 0, 1], [0, 2, 0]])).tolist()
    [1, 2]
    """
    won = reachability(wins_and_ties > 0)
    return _largest_group(won & won.T, wins_and_ties)


def largest_group_without_each_person(lost: FloatArray, wins_and_ties: FloatArray) -> IntArray:
    """Return the largest group of systems whose differences are identified without any one person.

    `lost` (L, K) are the directions of the ratings that are not identified without some person.

    >>> largest_group_without_each_person(np.array([[-0.4, -0.4, 0.8]]), np.ones((3, 3))).tolist()
    [0, 1]
    """
    together = np.ones_like(wins_and_ties, dtype=np.bool_)
    for direction in lost:
        together &= np.abs(np.subtract.outer(direction, direction)) <= MIN_PART
    return _largest_group(together, wins_and_ties)


def _largest_group(together: BoolArray, wins_and_ties: FloatArray) -> IntArray:
    """Return the largest group, of one size the one with the most votes; empty if no group has two systems."""
    sizes = together.sum(axis=1)
    votes = np.where(together, wins_and_ties, 0).sum(axis=1) @ together
    best = max(range(len(sizes)), key=lambda system: (sizes[system], votes[system]))
    return np.flatnonzero(together[best]) if sizes[best] > 1 else np.empty(0, dtype=np.int64)


def rate_group(
    rows: dict[str, npt.NDArray[Any]],
    group: IntArray,
    undefined: "PairedRatings",
    rate: Callable[..., "PairedRatings"],
    level: float,
) -> "PairedRatings":
    """Return ratings of a group of systems and rank sets of all. Systems outside the group stay `undefined`.

    Half of the error that `level` allows is spent on the group, by the largest deviation as if there were no other
    systems. The other half is spent on the pairs outside it: a sign test over people of each pair with votes, corrected
    for all pairs and both directions (`certain_wins`). Who beats a system also beats those that it beats. A system of the
    group can have no rating within it for another reason; its pairs then count as outside.
    """
    found, n_systems = undefined, len(undefined.ratings)
    in_group = np.isin(np.arange(n_systems), group)
    beats = certain_wins(
        rows["first"], rows["second"], rows["outcomes"], rows["annotators"], n_systems, (1 - level) / 2
    )
    if len(group):
        own = in_group[rows["first"]] & in_group[rows["second"]]
        place = np.cumsum(in_group) - 1
        of_group = {name: values[own] for name, values in rows.items()}
        of_group |= {name: place[of_group[name]] for name in ("first", "second")}
        rated = rate(**of_group, n_systems=len(group), level=level)
        stricter = rate(**of_group, n_systems=len(group), level=(1 + level) / 2)
        found = _embedded(undefined, rated, group)
        if stricter.differences is not None:
            beats[np.ix_(found.rated, found.rated)] = np.nan_to_num(stricter.differences.low, nan=-1.0) > 0
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
    """Return the record of all systems with the ratings of a group, whose mean is 0, and its reasons."""
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
        rated=tuple(group[list(rated.rated)].tolist()),
    )


def _rank_sets(undefined: ranks.RankSets, beats: BoolArray) -> ranks.RankSets:
    n_systems = len(beats)
    return replace(
        undefined,
        low=tuple((1 + beats.sum(axis=0)).tolist()),
        high=tuple((n_systems - beats.sum(axis=1)).tolist()),
        clusters=(undefined.systems,),
    )


# Ratings of many systems from millions of votes: simultaneous intervals, rank sets, ties, style, and exposure.


RESAMPLES = 1999


@dataclass(frozen=True, slots=True)
class PairedRatings(Record):
    """Ratings of K systems from votes, in log-odds with the sum 0.

    `ratings` have intervals that hold for all systems at once. `covariates` has one Estimate per covariate: its effect on
    the log-odds of the first. `tie` is that of Davidson's nu, None if ties are half wins. `covariance` (K, K) is over
    people. `components` are the groups of systems connected by votes. `rated` are the systems with a rating, and
    `differences` are those of their pairs, in this order; None if there are no ratings.
    """

    status: str
    reason: str
    ratings: tuple[Estimate, ...]
    ranks: ranks.RankSets
    covariates: tuple[Estimate, ...]
    tie: Estimate | None
    covariance: FloatArray
    components: tuple[tuple[int, ...], ...]
    n_rows: int
    n_clusters: int
    unit: str
    differences: SimultaneousDifferences | None = None
    rated: tuple[int, ...] = ()


def paired_ratings(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_systems: int,
    rng: np.random.Generator,
    ties: str = "davidson",
    covariates: npt.ArrayLike | None = None,
    covariate_names: Sequence[str] = (),
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> PairedRatings:
    """Ratings of systems from votes, clustered by person; made for millions of votes and hundreds of systems.

    Parameters
    ----------
    first, second : array_like, shape (n_rows,)
        System numbers 0..n_systems-1.
    outcomes : array_like, shape (n_rows,)
        1 if the first was chosen, 0 the second, .5 a tie; NaN is missing. With ties="half" also any chance between, as a
        person states it.
    annotators : array_like, shape (n_rows,)
        Label of each row's person.
    n_systems : int
        Number of systems.
    rng : numpy.random.Generator
        Source of the random draws.
    ties : {"davidson", "half"}, default 'davidson'
        Davidson's model, or half a win for each (Bradley-Terry). Stated chances need "half": their means are modelled
        (Papke and Wooldridge's fractional logit), and the covariance over people needs no other assumption.
    covariates : array_like, shape (n_rows, p), optional
        Differences first - second to control for, such as of length or format. Ratings are then those of outputs that do
        not differ in them.
    covariate_names : sequence of str, optional
        Their names.
    weights : array_like, shape (n_rows,), optional
        Positive weights, for example 1 / the probability that the pair was shown, if exposure was unequal.
    level : float, default 0.95
        Confidence level of the intervals, between 0 and 1.
    resamples : int, default 1999
        Number of normal draws for the quantile of the largest deviation.

    Returns
    -------
    PairedRatings
        The ratings. No rank sets with one person. `not_identified`: votes do not connect all systems, or a covariate
        says the same as the systems. `separation`: some system always won or lost. Then the largest group of systems
        that won and lost against one another has ratings, whose sum is 0, and all systems have rank sets. So it is, with
        `not_identified`, if one person alone connects some systems with the others: the largest group that is connected
        without any one person has ratings.

    Raises
    ------
    ValueError
        With the argument and the row, for an invalid one.

    Notes
    -----
    The maximum of the (weighted) likelihood from the table of pairs, or by Newton steps over the votes with covariates.
    The covariance is the jackknife over people (CV3) with one-step moves, as in `fit_davidson`, without a K x K matrix
    for each person. Degrees of freedom are 1 / sum of squared shares of people in the information about a pair, minus 1.
    Intervals and rank sets take the quantile of the largest deviation ("max_t"). If some systems have no rating, half of
    the error of the rank sets goes to sign tests over people of the pairs with such a system.

    References
    ----------
    Davidson 1970; Chiang et al. 2024, Chatbot Arena (the sandwich and the rank sets); MacKinnon, Nielsen and Webb 2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, people = np.tile([0, 1, 2], 200), np.arange(600) // 10
    >>> outcomes = rng.random(600) < np.array([0.7, 0.7, 0.2])[first]
    >>> found = paired_ratings(first, (first + 1) % 3, outcomes, people, n_systems=3, rng=rng)
    >>> [round(one.estimate, 1) for one in found.ratings], found.ranks.low
    ([0.6, 0.0, -0.6], (1, 2, 3))
    """
    validate_level(level)
    votes = checked_votes(
        first, second, outcomes, annotators, n_systems=n_systems, ties=ties, covariates=covariates, weights=weights
    )
    n_people = len(votes.starts) - 1
    names = tuple(covariate_names) or tuple(f"covariate {place + 1}" for place in range(votes.covariates.shape[1]))
    if len(names) != votes.covariates.shape[1]:
        raise ValueError(f"covariate_names: {len(names)} names for {votes.covariates.shape[1]} covariates")
    wins, tied = win_and_tie_tables(votes)
    components = connected_components(wins + wins.T + tied > 0)
    common: dict[str, Any] = {
        "unit": "annotator",
        "n": n_people,
        "n_clusters": n_people,
        "n_rows": len(votes.outcomes),
        "settings": {"level": level, "ties": ties, "covariates": names, "is_weighted": weights is not None},
    }
    status, reason, fit = fit_votes(votes, wins, tied, components)
    group = largest_comparable_group(wins + tied) if status == "separation" else np.arange(n_systems)
    if fit is not None:
        covariance, overlap, shares, lost = fit.person_covariance()
        # Without an only person all is lost: then there are estimates without intervals.
        lost = lost if n_people > 1 else lost[:0]
        group = largest_group_without_each_person(lost[:, :n_systems], wins + tied)
        if len(group) < n_systems:
            status, reason, fit = "not_identified", ALONE, None
    if fit is None:
        undefined = _undefined(status, reason, n_systems, names, components, votes.with_nu, common)
        # Where all systems won and lost, the covariates or the ties have no maximum.
        if len(group) == n_systems:
            return undefined
        if status == "separation":
            undefined = replace(undefined, ratings=_with_reasons(undefined.ratings, wins + tied))
        given: dict[str, npt.ArrayLike | None] = {"first": first, "second": second, "outcomes": outcomes}
        given |= {"annotators": annotators, "covariates": covariates, "weights": weights}
        rows = {name: np.asarray(values) for name, values in given.items() if values is not None}
        is_counted = ~np.isnan(rows["outcomes"].astype(np.float64))
        rate = partial(paired_ratings, rng=rng, ties=ties, covariate_names=names, resamples=resamples)
        counted = {name: values[is_counted] for name, values in rows.items()}
        return rate_group(counted, group, undefined, rate, level)
    parameters = fit.parameters
    common["warnings"] = cluster_warnings(np.diff(votes.starts))
    strengths = parameters[:n_systems] - parameters[:n_systems].mean()
    spread = ranks.ScoreSpread(
        systems=tuple(range(n_systems)),
        scores=strengths,
        annotators=ranks.ClusterMoves(_root(covariance[:n_systems, :n_systems]), _root(overlap)),
        items=None,
        pair_covariance=None,
        is_defined=np.ones(n_systems, dtype=np.bool_),
        n_annotators=n_people,
        n_items=0,
        n_rows=len(votes.outcomes),
        warnings=common["warnings"],
    )
    df = max(1.0, 1 / float(np.sum(shares**2)) - 1)
    place = n_systems + votes.with_nu
    is_lost = np.abs(lost).max(axis=0, initial=0.0) > MIN_PART
    undefined = _undefined("not_identified", ALONE_WITH_COVARIATE, n_systems, names, components, votes.with_nu, common)
    ratings = _ratings(spread, level, resamples, rng, common)
    sets, differences = ranks.rank_confidence_sets_from_spread(spread, level=level)
    return PairedRatings(
        status="ok",
        reason="",
        ratings=ratings,
        ranks=sets,
        covariates=tuple(
            undefined.covariates[number]
            if is_lost[place + number]
            else clusters.t_estimate(
                float(parameters[place + number]),
                math.sqrt(float(covariance[place + number, place + number])),
                df,
                fewest_clusters=n_people,
                level=level,
                method="cv3_t",
                null=0.0,
                analysis="choice.ratings.covariate",
                estimand=f"log-odds per unit of {name}",
                **common,
            )
            for number, name in enumerate(names)
        ),
        tie=_tie(parameters, covariance, df, n_systems, level, common) if votes.with_nu else None,
        covariance=np.asarray(covariance[:n_systems, :n_systems]),
        components=components,
        n_rows=len(votes.outcomes),
        n_clusters=n_people,
        unit="annotator",
        differences=differences,
        rated=tuple(range(n_systems)),
    )


def paired_ratings_by_category(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    categories: npt.ArrayLike,
    **options: Any,
) -> dict[Any, PairedRatings]:
    """Estimate the `paired_ratings` of the votes of each category, such as languages or tasks of the prompts.

    Rows and options are as in `paired_ratings`; `covariates` and `weights` are those of all rows. The ratings of each
    category hold at their level by themselves.

    >>> rng = np.random.default_rng(0)
    >>> first, kinds = np.tile([0, 1], 200), np.repeat(["code", "text"], 200)
    >>> wins = rng.random(400) < np.where((first == 0) == (kinds == "code"), 0.8, 0.2)
    >>> found = paired_ratings_by_category(first, 1 - first, wins, np.arange(400) // 5, kinds, n_systems=2, rng=rng)
    >>> {name: one.ranks.low for name, one in found.items()}
    {'code': (1, 2), 'text': (2, 1)}
    """
    x, y, votes, people = (np.asarray(rows) for rows in (first, second, outcomes, annotators))
    codes, _ = label_codes(categories, "categories", len(votes))
    by_row = {
        name: np.asarray(options.pop(name)) for name in ("covariates", "weights") if options.get(name) is not None
    }
    found = {}
    for number, name in enumerate(np.unique(np.asarray(categories)).tolist()):
        own = codes == number
        rows = {label: values[own] for label, values in by_row.items()}
        found[name] = paired_ratings(x[own], y[own], votes[own], people[own], **rows, **options)
    return found


def _root(table: FloatArray) -> FloatArray:
    """Return rows whose products are the table; shape (K, K)."""
    roots, directions = np.linalg.eigh(table)
    return np.asarray((directions * np.sqrt(np.maximum(roots, 0.0))).T)


def _ratings(
    spread: ranks.ScoreSpread,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    common: dict[str, Any],
) -> tuple[Estimate, ...]:
    together = ranks.simultaneous_scores(spread, level=level, resamples=resamples, rng=rng)
    _, df = spread.of_scores()
    estimates = []
    for system in range(len(spread.scores)):
        estimand = f"rating of system {system} (log-odds, sum zero)"
        named = {**common, "analysis": "choice.ratings.rating", "estimand": estimand}
        value, se = float(spread.scores[system]), float(together.standard_errors[system])
        if spread.n_annotators < 2:
            reason = "one annotator has no spread"
            estimates.append(Estimate(status="n_lt_2", reason=reason, estimate=value, **named))
            continue
        if not together.decidable[system]:
            reason = "all people gave the same answers"
            estimates.append(Estimate(status="zero_variance", reason=reason, estimate=value, **named))
            continue
        low, high = float(together.low[system]), float(together.high[system])
        detail = {"se": se, "df": float(df[system])}
        estimates.append(Estimate(estimate=value, interval=Interval(level, low, high, "max_t"), detail=detail, **named))
    return tuple(estimates)


def _tie(
    parameters: FloatArray,
    covariance: FloatArray,
    df: float,
    place: int,
    level: float,
    common: dict[str, Any],
) -> Estimate:
    se = math.sqrt(float(covariance[place, place]))
    named = {**common, "analysis": "choice.ratings.tie", "estimand": "tie parameter nu"}
    value = math.exp(float(parameters[place]))
    on_log = clusters.t_estimate(
        float(parameters[place]), se, df, fewest_clusters=common["n"], level=level, method="cv3_t", **named
    )
    if on_log.interval is None:
        return Estimate(status=on_log.status, reason=on_log.reason, estimate=value, **named)
    interval = Interval(level, math.exp(on_log.interval.low), math.exp(on_log.interval.high), "cv3_t")
    return Estimate(estimate=value, interval=interval, detail={"se_log_nu": se, "df": df}, **named)


def _undefined(
    status: str,
    reason: str,
    n_systems: int,
    names: tuple[str, ...],
    components: tuple[tuple[int, ...], ...],
    with_nu: bool,
    common: dict[str, Any],
) -> PairedRatings:
    def named(part: str, estimand: str) -> Estimate:
        return Estimate(analysis=f"choice.ratings.{part}", estimand=estimand, status=status, reason=reason, **common)

    ratings = tuple(named("rating", f"rating of system {one} (log-odds, sum zero)") for one in range(n_systems))
    sets = ranks.RankSets(
        systems=tuple(range(n_systems)),
        scores=(),
        ranks=(),
        low=None,
        high=None,
        clusters=(),
        level=common["settings"]["level"],
        status=status,
        reason=reason,
        unit=common["unit"],
        n=common["n"],
        n_rows=common["n_rows"],
    )
    return PairedRatings(
        status=status,
        reason=reason,
        ratings=ratings,
        ranks=sets,
        covariates=tuple(named("covariate", f"log-odds per unit of {name}") for name in names),
        tie=named("tie", "tie parameter nu") if with_nu else None,
        covariance=np.full((n_systems, n_systems), np.nan),
        components=components,
        n_rows=common["n_rows"],
        n_clusters=common["n_clusters"],
        unit=common["unit"],
    )
