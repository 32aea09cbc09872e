"""Simulated preferences: stated probabilities, choices between two outputs, and leaderboard scores."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    validate_finite,
    validate_non_negative,
    validate_share,
    vector,
)
from analysis.stats.choice_simulation import draw_annotators_and_requests
from analysis.stats.generators._people import _assigned, _capped, _propensities, _refuse_counts, _within
from analysis.stats.results import Record


@dataclass(frozen=True, slots=True)
class SpaAnswers(Record):
    """Answers `xy_percent` and `yx_percent` (runs, n_annotators, n_pairs) on 0..100, NaN for excluded annotators."""

    xy_percent: FloatArray
    yx_percent: FloatArray


@dataclass(frozen=True, slots=True)
class ChoiceAnswers(Record):
    """Choices `chose_a` (runs, n_annotators, m), 1 if A was chosen, and the request of each label, `items`.

    `items` has shape (n_annotators, m).
    """

    chose_a: FloatArray
    items: IntArray


@dataclass(frozen=True, slots=True)
class LeaderboardAnswers(Record):
    """Scores `values` (runs, n_systems, n_items) in 0..1, one per item and system, and their `annotators`."""

    values: FloatArray
    annotators: IntArray


def simulate_spa_answers(
    n_annotators: int,
    preferences: float | Sequence[float],
    *,
    annotator_sd: float = 0.2,
    order_sd: float = 0.1,
    acquiescence_share: float = 0.0,
    acquiescent_percent: float = 75.0,
    excluded_share: float = 0.0,
    rounding: int = 5,
    runs: int = 1,
    rng: np.random.Generator,
) -> SpaAnswers:
    """Simulate system-level probabilities in both orders of naming.

    Parameters
    ----------
    n_annotators : int
        Number of annotators.
    preferences : float or sequence[float]
        True P[x > y] of each pair.
    annotator_sd, order_sd : float, optional
        Standard deviations of beliefs, and of answers around them.
    acquiescence_share, acquiescent_percent : float, optional
        Share of annotators who answer about this percentage in both orders.
    excluded_share : float, default 0.0
        Share of annotators who are excluded (all NaN).
    rounding : int, default 5
        Answers are rounded to multiples of this and cut at 0 and 100.
    runs : int, default 1
        Number of runs.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    SpaAnswers
        The answers.

    Notes
    -----
    Annotator i believes p_i = P + N(0, annotator_sd) and states p_i + N(0, order_sd) if x is named first, 1 - p_i +
    N(0, order_sd) if y is. The combined answer has a standard deviation of about sqrt(annotator_sd^2 + order_sd^2 /
    2). The cut moves the mean towards .5 if P is far from it.

    Examples
    --------
    >>> answers = simulate_spa_answers(500, 0.6, runs=20, rng=np.random.default_rng(0))
    >>> answers.xy_percent.shape, bool(abs(answers.xy_percent.mean() - 60) < 1)
    ((20, 500, 1), True)
    >>> sorted({float(answer) % 5 for answer in answers.xy_percent.ravel()})
    [0.0]
    """
    _refuse_counts(n_annotators=n_annotators, runs=runs, rounding=rounding)
    validate_non_negative(annotator_sd=annotator_sd, order_sd=order_sd)
    validate_share(acquiescence_share, "acquiescence_share")
    validate_share(excluded_share, "excluded_share")
    validate_finite(acquiescent_percent=acquiescent_percent)
    probabilities = _within(np.atleast_1d(np.asarray(preferences, dtype=np.float64)), (0.0, 1.0), "preferences")
    shape = (runs, n_annotators, len(probabilities))
    beliefs = 100 * (probabilities + annotator_sd * rng.standard_normal(shape))
    stated = np.stack([beliefs, 100 - beliefs])
    if acquiescence_share:
        acquiesces = rng.random((runs, n_annotators, 1)) < acquiescence_share
        stated = np.where(acquiesces, acquiescent_percent, stated)
    stated += 100 * order_sd * rng.standard_normal(stated.shape)
    stated = np.clip(rounding * np.rint(stated / rounding), 0.0, 100.0)
    if excluded_share:
        stated[:, rng.random((runs, n_annotators)) < excluded_share] = np.nan
    return SpaAnswers(stated[0], stated[1])


def simulate_choice_answers(
    n_annotators: int,
    n_each: int,
    *,
    mean_difficulty: float,
    n_items: int | None = None,
    spread: float = 0.1,
    spread_kind: str = "variance",
    capability: tuple[float, float] = (0.8, 1.0),
    annotator_sd: float = 0.0,
    runs: int = 1,
    rng: np.random.Generator,
) -> ChoiceAnswers:
    """Simulate pairwise choices, with new agents of `choice_simulation.draw_annotators_and_requests` in every run.

    Parameters
    ----------
    n_annotators, n_each : int
        Number of annotators, and of labels per annotator.
    mean_difficulty : float
        Mean difficulty of the requests.
    n_items : int, optional
        Number of requests, shared cyclically; each label has its own request if None.
    spread, spread_kind, capability : optional
        As `spread`, `spread_kind` and `capability` of `choice_simulation.draw_annotators_and_requests`.
    annotator_sd : float, default 0.0
        Standard deviation of each annotator's own preference.
    runs : int, default 1
        Number of runs.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    ChoiceAnswers
        The answers. P(A) = (1 + c d) / 2 plus the annotator's preference N(0, annotator_sd), cut at 0 and 1.

    Examples
    --------
    >>> answers =  simulate_choice_answers(200, 5, mean_difficulty=0.25, runs=20, rng=np.random.default_rng(0))
    >>> answers.chose_a.shape, bool(abs(answers.chose_a.mean() - 0.6125) < 0.01)
    ((20, 200, 5), True)
    """
    _refuse_counts(n_annotators=n_annotators, n_each=n_each, runs=runs)
    validate_non_negative(annotator_sd=annotator_sd)
    items, n_distinct = _assigned(n_annotators, n_each, n_items, "n_items")
    agents = draw_annotators_and_requests(
        mean_difficulty,
        runs * n_distinct,
        spread=spread,
        spread_kind=spread_kind,
        capability=capability,
        n_workers=runs * n_annotators,
        rng=rng,
    )
    difficulties = agents.difficulties.reshape(runs, n_distinct)[:, items]
    chance = (1 + agents.capabilities.reshape(runs, n_annotators, 1) * difficulties) / 2
    if annotator_sd:
        chance = chance + annotator_sd * rng.standard_normal((runs, n_annotators, 1))
    return ChoiceAnswers((rng.random(chance.shape) < chance).astype(np.float64), items)


def simulate_leaderboard_answers(
    n_items: int,
    scores: Sequence[float],
    *,
    n_annotators: int = 50,
    annotator_icc: float = 0.1,
    activity: float = 1.5,
    largest_share: float | None = 0.05,
    n_points: int = 5,
    runs: int = 1,
    rng: np.random.Generator,
) -> LeaderboardAnswers:
    """Simulate one label for each item of each system, by annotators of whom a few do most of the work.

    Parameters
    ----------
    n_items : int
        Number of items.
    scores : sequence[float]
        True mean of each system, in 0..1.
    n_annotators : int, default 50
        Number of annotators.
    annotator_icc : float, default 0.1
        Correlation of two 0/1 labels of one annotator.
    activity : float, default 1.5
        Parameter of the Pareto distribution of the amount of work; a smaller one is more unequal.
    largest_share : float, optional
        Largest expected share of the work of one annotator (None: no cap). A cap below 1 / n_annotators gives equal
        shares.
    n_points : int, default 5
        Number of points of the scale.
    runs : int, default 1
        Number of runs.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    LeaderboardAnswers
        The answers.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    Annotator w has the propensity q_wk ~ Beta with mean `scores`[k] for system k; a severe annotator is severe with
    every system. A label is binomial(n_points - 1, q_wk) / (n_points - 1).

    Examples
    --------
    >>> answers =  simulate_leaderboard_answers(300, [0.8, 0.7], runs=20, rng=np.random.default_rng(0))
    >>> answers.values.shape, bool(np.all(np.abs(answers.values.mean(axis=(0, 2)) - [0.8, 0.7]) < 0.02))
    ((20, 2, 300), True)
    """
    _refuse_counts(n_items=n_items, n_annotators=n_annotators, runs=runs)
    means = _within(vector(scores, "scores"), (0.0, 1.0), "scores")
    if not 0 <= annotator_icc < 1:
        raise ValueError(f"annotator_icc: {annotator_icc!r} is not in 0..1")
    if not activity > 0:
        raise ValueError(f"activity: {activity!r} is not a positive number")
    if largest_share is not None and not 0 < largest_share <= 1:
        raise ValueError(f"largest_share: {largest_share!r} is not in 0..1")
    if n_points < 2:
        raise ValueError(f"n_points: {n_points} is less than 2")
    shape = (runs, len(means), n_items)
    work = _capped(1 + rng.pareto(activity, (runs, n_annotators)), largest_share)
    # One search for all runs: run r's shares end at r + 1.
    ends = np.cumsum(work, axis=1) / work.sum(axis=1, keepdims=True) + np.arange(runs)[:, None]
    places = rng.random((runs, len(means) * n_items)) + np.arange(runs)[:, None]
    positions = np.searchsorted(ends.ravel(), places.ravel(), side="right").reshape(places.shape)
    annotators = np.clip(positions - n_annotators * np.arange(runs)[:, None], 0, n_annotators - 1).reshape(shape)
    chances = _propensities(means, annotator_icc, (runs, n_annotators), rng)
    own = np.take_along_axis(chances, annotators, axis=2)
    return LeaderboardAnswers(rng.binomial(n_points - 1, own) / (n_points - 1), annotators.astype(np.int64))
