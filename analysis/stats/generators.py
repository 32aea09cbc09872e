"""Answers that a study might get, made up from known truths: what planning and the tests of tests are fed with.

One function a protocol; each makes many runs of one study at once, as arrays whose first axis is the run. What is true
(preference, sensitivity, difference) goes in by name, what the answers look like comes out in the form that the
analyses take. Nothing here is an estimate of real annotators: the spreads are assumptions, and the planner's result is
as good as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    is_whole,
    refuse_infinite,
    refuse_negative,
    refuse_share,
    vector,
)
from analysis.stats.choice_simulation import draw_agents
from analysis.stats.results import Record

# Cut points of a five-point scale in units of the latent noise: 7, 24, 38, 24 and 7 % at a latent mean of 0.
FIVE_POINTS = (-1.5, -0.5, 0.5, 1.5)


@dataclass(frozen=True, slots=True)
class SpaAnswers(Record):
    """`xy_percent` and `yx_percent` of shape (runs, n_annotators, n_pairs), on 0..100, NaN for whoever was excluded."""

    xy_percent: FloatArray
    yx_percent: FloatArray


@dataclass(frozen=True, slots=True)
class LikertRatings(Record):
    """`ratings` (runs, n_annotators, m, n_systems), points 1..k; `prompts` (n_annotators, m), which prompt each saw."""

    ratings: FloatArray
    prompts: IntArray


@dataclass(frozen=True, slots=True)
class ContinuousRatings(Record):
    """`ratings` (runs, n_annotators, m, n_systems) on 0..100, and each annotator's rating of the planted references.

    `reference_minimum` and `reference_maximum` have shape (runs, n_annotators).
    """

    ratings: FloatArray
    reference_minimum: FloatArray
    reference_maximum: FloatArray


@dataclass(frozen=True, slots=True)
class HumanLikeRatings(Record):
    """`ratings` (runs, n_annotators, m), 1 definitely human .. 4 definitely machine; `texts` (n_annotators, m) and, for
    each text, `is_machine` (n_texts,)."""

    ratings: FloatArray
    texts: IntArray
    is_machine: BoolArray


@dataclass(frozen=True, slots=True)
class ChoiceAnswers(Record):
    """`chose_a` (runs, n_annotators, m), 1 where A was chosen; `items` (n_annotators, m), which request each label is of."""

    chose_a: FloatArray
    items: IntArray


@dataclass(frozen=True, slots=True)
class LeaderboardAnswers(Record):
    """`values` (runs, n_systems, n_items) in 0..1, one label an item and system; `annotators` of the same shape."""

    values: FloatArray
    annotators: IntArray


def spa_answers(
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
    """System-level probabilities in both orders: P[x > y] of each pair in `preferences`, as stated.

    Annotator i believes p_i = P + N(0, annotator_sd) and states p_i + N(0, order_sd) when x is named first,
    1 - p_i + N(0, order_sd) when y is. A share of annotators acquiesces: whatever is asked, in either order, about
    `acquiescent_percent`. Another share is excluded: all NaN. Answers are rounded to multiples of `rounding` and cut at
    0 and 100, so that the mean of what is stated lies nearer .5 than P where P is far from it.

    The combined answer of a pair has a standard deviation of about sqrt(annotator_sd^2 + order_sd^2 / 2).

    >>> answers = spa_answers(500, 0.6, runs=20, rng=np.random.default_rng(0))
    >>> answers.xy_percent.shape, bool(abs(answers.xy_percent.mean() - 60) < 1)
    ((20, 500, 1), True)
    >>> sorted({float(answer) % 5 for answer in answers.xy_percent.ravel()})
    [0.0]
    """
    _refuse_counts(n_annotators=n_annotators, runs=runs, rounding=rounding)
    refuse_negative(annotator_sd=annotator_sd, order_sd=order_sd)
    refuse_share(acquiescence_share, "acquiescence_share")
    refuse_share(excluded_share, "excluded_share")
    refuse_infinite(acquiescent_percent=acquiescent_percent)
    wanted = _within(np.atleast_1d(np.asarray(preferences, dtype=np.float64)), (0.0, 1.0), "preferences")
    shape = (runs, n_annotators, len(wanted))
    beliefs = 100 * (wanted + annotator_sd * rng.standard_normal(shape))
    stated = np.stack([beliefs, 100 - beliefs])
    if acquiescence_share:
        acquiesces = rng.random((runs, n_annotators, 1)) < acquiescence_share
        stated = np.where(acquiesces, acquiescent_percent, stated)
    stated += 100 * order_sd * rng.standard_normal(stated.shape)
    stated = np.clip(rounding * np.rint(stated / rounding), 0.0, 100.0)
    if excluded_share:
        stated[:, rng.random((runs, n_annotators)) < excluded_share] = np.nan
    return SpaAnswers(stated[0], stated[1])


def likert_ratings(
    n_annotators: int,
    n_each: int,
    effects: Sequence[float],
    *,
    n_prompts: int | None = None,
    thresholds: Sequence[float] = FIVE_POINTS,
    annotator_sd: float = 0.5,
    prompt_sd: float = 0.5,
    annotator_taste_sd: float = 0.0,
    prompt_taste_sd: float = 0.0,
    runs: int = 1,
    rng: np.random.Generator,
) -> LikertRatings:
    """Ratings of every system by every annotator for `n_each` of `n_prompts` prompts (each their own if None).

    A latent normal cut at `thresholds` (k - 1 of them, ascending): the system's effect + the annotator's severity
    (annotator_sd) + the prompt's ease (prompt_sd) + his taste for this system (annotator_taste_sd) + its knack for this
    prompt (prompt_taste_sd) + N(0, 1). Severity and ease cancel in a comparison within annotator and prompt; the two
    tastes are what makes its rows dependent.

    >>> ratings = likert_ratings(40, 3, [0.5, 0.0], n_prompts=12, runs=10, rng=np.random.default_rng(0))
    >>> ratings.ratings.shape, ratings.prompts.shape, bool((np.diff(ratings.ratings.mean(axis=(0, 1, 2))) < 0).all())
    ((10, 40, 3, 2), (40, 3), True)
    """
    _refuse_counts(n_annotators=n_annotators, n_each=n_each, runs=runs)
    refuse_negative(
        annotator_sd=annotator_sd,
        prompt_sd=prompt_sd,
        annotator_taste_sd=annotator_taste_sd,
        prompt_taste_sd=prompt_taste_sd,
    )
    means, cuts = vector(effects, "effects"), vector(thresholds, "thresholds")
    if len(means) == 0 or np.isnan(means).any():
        raise ValueError("effects: a mean for each of at least one system")
    if len(cuts) == 0 or np.isnan(cuts).any() or np.any(np.diff(cuts) <= 0):
        raise ValueError(f"thresholds: {cuts.tolist()} do not ascend")
    prompts, n_distinct = _assigned(n_annotators, n_each, n_prompts, "n_prompts")
    k = len(means)
    latent = means + rng.standard_normal((runs, n_annotators, n_each, k))
    latent += annotator_sd * rng.standard_normal((runs, n_annotators, 1, 1))
    latent += prompt_sd * rng.standard_normal((runs, n_distinct))[:, prompts, None]
    if annotator_taste_sd:
        latent += annotator_taste_sd * rng.standard_normal((runs, n_annotators, 1, k))
    if prompt_taste_sd:
        latent += prompt_taste_sd * rng.standard_normal((runs, n_distinct, k))[:, prompts]
    return LikertRatings(np.searchsorted(cuts, latent).astype(np.float64) + 1, prompts)


def continuous_ratings(
    n_annotators: int,
    n_each: int,
    utilities: Sequence[float],
    *,
    low_percent: float = 15.0,
    high_percent: float = 85.0,
    ends_sd: float = 10.0,
    taste_sd: float = 0.1,
    output_sd: float = 0.2,
    reference_sd: float = 3.0,
    violating_share: float = 0.0,
    runs: int = 1,
    rng: np.random.Generator,
) -> ContinuousRatings:
    """Ratings on 0..100 with the planted references of the improved protocol.

    Annotator i uses the scale from low_i to high_i, normal around `low_percent` and `high_percent` with `ends_sd`, and
    rates the references there, give or take `reference_sd` points. An output has utility in 0..1, the system's mean +
    his taste for it (`taste_sd`) + its own luck (`output_sd`), and is rated low_i + utility (high_i - low_i). A share of
    annotators violates extremum equivalence: their two references are exchanged.

    Source: the SPA paper, section 4.

    >>> rated = continuous_ratings(30, 4, [0.7, 0.5], runs=5, rng=np.random.default_rng(0))
    >>> rated.ratings.shape, rated.reference_maximum.shape
    ((5, 30, 4, 2), (5, 30))
    """
    _refuse_counts(n_annotators=n_annotators, n_each=n_each, runs=runs)
    refuse_negative(ends_sd=ends_sd, taste_sd=taste_sd, output_sd=output_sd, reference_sd=reference_sd)
    refuse_share(violating_share, "violating_share")
    means = _within(vector(utilities, "utilities"), (0.0, 1.0), "utilities")
    refuse_infinite(low_percent=low_percent, high_percent=high_percent)
    if low_percent >= high_percent:
        raise ValueError(f"low_percent: {low_percent:g} is not below high_percent")
    low = low_percent + ends_sd * rng.standard_normal((runs, n_annotators))
    high = high_percent + ends_sd * rng.standard_normal((runs, n_annotators))
    high = np.maximum(high, low)
    utility = means + taste_sd * rng.standard_normal((runs, n_annotators, 1, len(means)))
    utility = utility + output_sd * rng.standard_normal((runs, n_annotators, n_each, len(means)))
    span = (high - low)[:, :, None, None]
    ratings = np.clip(np.rint(low[:, :, None, None] + span * np.clip(utility, 0.0, 1.0)), 0.0, 100.0)
    ends = np.stack([low, high]) + reference_sd * rng.standard_normal((2, runs, n_annotators))
    ends = np.clip(np.rint(ends), 0.0, 100.0)
    if violating_share:
        violates = rng.random((runs, n_annotators)) < violating_share
        ends = np.where(violates, ends[::-1], ends)
    return ContinuousRatings(ratings, ends[0], ends[1])


def human_like_ratings(
    n_annotators: int,
    n_each: int,
    *,
    d_prime: float,
    criterion: float = 0.0,
    n_texts: int | None = None,
    machine_share: float = 0.5,
    annotator_sd: float = 0.3,
    annotator_d_prime_sd: float = 0.0,
    text_sd: float = 0.3,
    confident_at: float = 1.0,
    runs: int = 1,
    rng: np.random.Generator,
) -> HumanLikeRatings:
    """Four-point answers to "human or machine?" from a sensitivity and a criterion.

    The evidence of a text is normal with variance 1 around + d' / 2 (machine) or - d' / 2 (human), plus the text's own
    look (text_sd), which all its readers share. Annotator i, with sensitivity d' + N(0, annotator_d_prime_sd), says
    machine above c + N(0, annotator_sd), and is confident `confident_at` beyond it on either side. With both spreads 0
    the hit rate is Phi(d' / 2 - c) and the rate of false alarms Phi(-d' / 2 - c); with a text_sd of s the pooled d' is
    d' / sqrt(1 + s^2), and likewise for the criteria's spread.

    Source: signal detection as in `detection`; the design of Clark et al. 2021 is 130 annotators with 5 texts of 100.

    >>> made = human_like_ratings(400, 5, d_prime=1.0, annotator_sd=0, text_sd=0, runs=5, rng=np.random.default_rng(0))
    >>> hits = made.ratings[:, made.is_machine[made.texts]] > 2
    >>> bool(abs(hits.mean() - 0.6915) < 0.01)
    True
    """
    _refuse_counts(n_annotators=n_annotators, n_each=n_each, runs=runs)
    refuse_negative(
        annotator_sd=annotator_sd,
        annotator_d_prime_sd=annotator_d_prime_sd,
        text_sd=text_sd,
        confident_at=confident_at,
    )
    refuse_share(machine_share, "machine_share")
    refuse_infinite(d_prime=d_prime, criterion=criterion)
    texts, n_distinct = _assigned(n_annotators, n_each, n_texts, "n_texts")
    # Spread evenly over the texts, so that everybody's handful has machine and human ones in it.
    numbers = np.arange(n_distinct)
    is_machine = np.floor((numbers + 1) * machine_share + 1e-9) > np.floor(numbers * machine_share + 1e-9)
    sides = np.where(is_machine[texts], 0.5, -0.5)
    own = d_prime + annotator_d_prime_sd * rng.standard_normal((runs, n_annotators, 1))
    evidence = sides * own + rng.standard_normal((runs, n_annotators, n_each))
    evidence += text_sd * rng.standard_normal((runs, n_distinct))[:, texts]
    evidence -= criterion + annotator_sd * rng.standard_normal((runs, n_annotators, 1))
    ratings = 1.0 + (evidence > -confident_at) + (evidence > 0) + (evidence > confident_at)
    return HumanLikeRatings(np.asarray(ratings, dtype=np.float64), texts, is_machine)


def choice_answers(
    n_annotators: int,
    n_each: int,
    *,
    mean_difficulty: float,
    n_items: int | None = None,
    spread: float = 0.1,
    spread_is: str = "variance",
    capability: tuple[float, float] = (0.8, 1.0),
    annotator_sd: float = 0.0,
    runs: int = 1,
    rng: np.random.Generator,
) -> ChoiceAnswers:
    """Two-choice labels, `n_each` an annotator, by the agents of `choice_simulation.draw_agents`, new ones every run.

    An annotator of capability c prefers A on a request of difficulty d with probability (1 + c d) / 2, plus his own lean
    N(0, annotator_sd), cut at 0 and 1. Requests are shared cyclically if `n_items` says how many there are, else each
    label is of its own. (The effort of labelling strategies is `choice_simulation.planned_effort`.)

    >>> made = choice_answers(200, 5, mean_difficulty=0.25, runs=20, rng=np.random.default_rng(0))
    >>> made.chose_a.shape, bool(abs(made.chose_a.mean() - 0.6125) < 0.01)
    ((20, 200, 5), True)
    """
    _refuse_counts(n_annotators=n_annotators, n_each=n_each, runs=runs)
    refuse_negative(annotator_sd=annotator_sd)
    items, n_distinct = _assigned(n_annotators, n_each, n_items, "n_items")
    agents = draw_agents(
        mean_difficulty,
        runs * n_distinct,
        spread=spread,
        spread_is=spread_is,
        capability=capability,
        n_workers=runs * n_annotators,
        rng=rng,
    )
    difficulties = agents.difficulties.reshape(runs, n_distinct)[:, items]
    chance = (1 + agents.capabilities.reshape(runs, n_annotators, 1) * difficulties) / 2
    if annotator_sd:
        chance = chance + annotator_sd * rng.standard_normal((runs, n_annotators, 1))
    return ChoiceAnswers((rng.random(chance.shape) < chance).astype(np.float64), items)


def leaderboard_answers(
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
    """One label for each item of each system, by a workforce of which a few do most of the work.

    Worker w would rate system k at q_wk ~ Beta with mean `scores`[k] (in 0..1) and spread such that two 0/1 labels of
    one worker correlate by `annotator_icc`; the severe are severe with every system. A label is binomial(n_points - 1,
    q_wk) / (n_points - 1). How much each works is Pareto(`activity`), the less the more unequal, and nobody does more
    than `largest_share` of it on average (None: no cap; a cap below 1 / n_annotators becomes equal shares).

    >>> made = leaderboard_answers(300, [0.8, 0.7], runs=20, rng=np.random.default_rng(0))
    >>> made.values.shape, bool(np.all(np.abs(made.values.mean(axis=(0, 2)) - [0.8, 0.7]) < 0.02))
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
    found = np.searchsorted(ends.ravel(), places.ravel(), side="right").reshape(places.shape)
    annotators = np.clip(found - n_annotators * np.arange(runs)[:, None], 0, n_annotators - 1).reshape(shape)
    chances = _propensities(means, annotator_icc, (runs, n_annotators), rng)
    own = np.take_along_axis(chances, annotators, axis=2)
    return LeaderboardAnswers(rng.binomial(n_points - 1, own) / (n_points - 1), annotators.astype(np.int64))


def _propensities(means: FloatArray, icc: float, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """q of each worker for each system, shape (runs, K, W): the same quantile of every system's distribution."""
    runs, n_annotators = shape
    chances = np.broadcast_to(means[None, :, None], (runs, len(means), n_annotators))
    if icc == 0:
        return np.asarray(chances)
    concentration = 1 / icc - 1
    quantiles = rng.random((runs, 1, n_annotators))
    is_inside = (means > 0) & (means < 1)
    inner = means[is_inside][:, None]
    drawn = np.array(chances)
    drawn[:, is_inside] = special.betaincinv(inner * concentration, (1 - inner) * concentration, quantiles)
    return drawn


def _capped(work: FloatArray, largest: float | None) -> FloatArray:
    """Shares of the work, none above `largest`; what is cut off goes to the others in proportion."""
    shares = work / work.sum(axis=1, keepdims=True)
    n = shares.shape[1]
    if largest is None or largest >= 1:
        return np.asarray(shares)
    cap = max(largest, 1 / n)
    for _ in range(n):
        over = shares > cap + 1e-12
        if not over.any():
            break
        fixed = shares >= cap - 1e-12
        room = 1 - cap * fixed.sum(axis=1, keepdims=True)
        rest = np.where(fixed, 0.0, shares)
        total = rest.sum(axis=1, keepdims=True)
        shares = np.where(fixed, cap, rest * np.divide(room, total, out=np.zeros_like(total), where=total > 0))
    return np.asarray(shares)


def _assigned(n_annotators: int, n_each: int, n_distinct: int | None, name: str) -> tuple[IntArray, int]:
    """Which of the stimuli each annotator sees, evenly and in turn; shape (n_annotators, n_each)."""
    total = n_annotators * n_each if n_distinct is None else n_distinct
    if total < n_each:
        raise ValueError(f"{name}: {total} are fewer than the {n_each} that each annotator sees")
    return np.arange(n_annotators * n_each).reshape(n_annotators, n_each) % total, total


def _within(values: FloatArray, bounds: tuple[float, float], name: str) -> FloatArray:
    if values.ndim != 1 or len(values) == 0 or not np.all((values >= bounds[0]) & (values <= bounds[1])):
        raise ValueError(f"{name}: {values.tolist()} is not a list of numbers in {bounds[0]:g}..{bounds[1]:g}")
    return values


def _refuse_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1 or not is_whole(count):
            raise ValueError(f"{name}: {count!r} is not a whole number of at least 1")
