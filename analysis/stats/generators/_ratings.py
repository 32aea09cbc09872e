"""Simulated ratings: Likert scales, continuous scales, and judgements of human-likeness."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    validate_finite,
    validate_non_negative,
    validate_share,
    vector,
)
from analysis.stats.generators._people import _assigned, _refuse_counts, _within
from analysis.stats.results import Record

# Cut points of a five-point scale in units of the latent noise: 7, 24, 38, 24 and 7 % at a latent mean of 0.
FIVE_POINTS = (-1.5, -0.5, 0.5, 1.5)


@dataclass(frozen=True, slots=True)
class LikertRatings(Record):
    """Ratings `ratings` (runs, n_annotators, m, n_systems), points 1..k, of the `prompts` (n_annotators, m)."""

    ratings: FloatArray
    prompts: IntArray


@dataclass(frozen=True, slots=True)
class ContinuousRatings(Record):
    """Ratings `ratings` (runs, n_annotators, m, n_systems) on 0..100, and the ratings of the planted references.

    `reference_minimum` and `reference_maximum` have shape (runs, n_annotators).
    """

    ratings: FloatArray
    reference_minimum: FloatArray
    reference_maximum: FloatArray


@dataclass(frozen=True, slots=True)
class HumanLikeRatings(Record):
    """Ratings `ratings` (runs, n_annotators, m) from 1, definitely human, to 4, definitely machine.

    `texts` (n_annotators, m) has the rated texts, `is_machine` (n_texts,) their truth.
    """

    ratings: FloatArray
    texts: IntArray
    is_machine: BoolArray


def simulate_likert_ratings(
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
    """Simulate ratings of every system by every annotator, for `n_each` prompts each.

    Parameters
    ----------
    n_annotators, n_each : int
        Number of annotators, and of prompts per annotator.
    effects : sequence[float]
        Latent mean of each system.
    n_prompts : int, optional
        Number of prompts, shared in turn; every annotator has other prompts if None.
    thresholds : sequence[float], default FIVE_POINTS
        Ascending cut points of the latent scale; one fewer than the points of the scale.
    annotator_sd, prompt_sd : float, optional
        Standard deviations of the annotators' severity and of the prompts' difficulty.
    annotator_taste_sd, prompt_taste_sd : float, optional
        Standard deviations of an annotator's, and of a prompt's, own preference for each system.
    runs : int, default 1
        Number of runs.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    LikertRatings
        The ratings.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    The latent rating is the system's effect plus the four deviations and N(0, 1). Severity and difficulty cancel in a
    comparison within annotator and prompt. The own preferences make the rows of a comparison dependent.

    Examples
    --------
    >>> ratings = simulate_likert_ratings(40, 3, [0.5, 0.0], n_prompts=12, runs=10, rng=np.random.default_rng(0))
    >>> ratings.ratings.shape, ratings.prompts.shape, bool((np.diff(ratings.ratings.mean(axis=(0, 1, 2))) < 0).all())
    ((10, 40, 3, 2), (40, 3), True)
    """
    _refuse_counts(n_annotators=n_annotators, n_each=n_each, runs=runs)
    validate_non_negative(
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


def simulate_continuous_ratings(
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
    """Simulate ratings on 0..100 with the planted references of the improved protocol.

    Parameters
    ----------
    n_annotators, n_each : int
        Number of annotators, and of outputs per annotator and system.
    utilities : sequence[float]
        Mean utility of each system, in 0..1.
    low_percent, high_percent, ends_sd : float, optional
        Means of the ends of the annotators' own scales, and their standard deviation.
    taste_sd, output_sd : float, optional
        Standard deviations of an annotator's own preference for a system, and of single outputs.
    reference_sd : float, default 3.0
        Standard deviation of the ratings of the references around the ends, in points.
    violating_share : float, default 0.0
        Share of annotators who violate extremum equivalence: their two references are exchanged.
    runs : int, default 1
        Number of runs.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    ContinuousRatings
        The ratings. Annotator i rates an output low_i + utility (high_i - low_i), and the references at both ends.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    References
    ----------
    Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, section 4.

    Examples
    --------
    >>> rated = simulate_continuous_ratings(30, 4, [0.7, 0.5], runs=5, rng=np.random.default_rng(0))
    >>> rated.ratings.shape, rated.reference_maximum.shape
    ((5, 30, 4, 2), (5, 30))
    """
    _refuse_counts(n_annotators=n_annotators, n_each=n_each, runs=runs)
    validate_non_negative(ends_sd=ends_sd, taste_sd=taste_sd, output_sd=output_sd, reference_sd=reference_sd)
    validate_share(violating_share, "violating_share")
    means = _within(vector(utilities, "utilities"), (0.0, 1.0), "utilities")
    validate_finite(low_percent=low_percent, high_percent=high_percent)
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


def simulate_human_likeness_ratings(
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
    """Simulate four-point answers to "human or machine?" from a sensitivity and a criterion.

    Parameters
    ----------
    n_annotators, n_each : int
        Number of annotators, and of texts per annotator.
    d_prime, criterion : float
        Mean sensitivity and criterion.
    n_texts : int, optional
        Number of texts, shared in turn; every annotator has other texts if None.
    machine_share : float, default 0.5
        Share of machine texts.
    annotator_sd, annotator_d_prime_sd : float, optional
        Standard deviations of the annotators' criteria and sensitivities.
    text_sd : float, default 0.3
        Standard deviation of a text's own evidence, which all its readers share.
    confident_at : float, default 1.0
        Distance of the evidence from the criterion beyond which an answer is confident.
    runs : int, default 1
        Number of runs.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    HumanLikeRatings
        The ratings.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    The evidence of a text is normal with variance 1 around + d' / 2 (machine) or - d' / 2 (human). With both spreads 0
    the hit rate is Phi(d' / 2 - c) and the false alarm rate is Phi(-d' / 2 - c). With a text_sd of s the pooled d' is
    d' / sqrt(1 + s^2); the spread of the criteria has the same effect.

    References
    ----------
    Signal detection as in `detection`; Clark et al. 2021 have 130 annotators with 5 texts of 100.

    Examples
    --------
    >>> answers =  simulate_human_likeness_ratings(400, 5, d_prime=1.0, annotator_sd=0, text_sd=0, runs=5, rng=np.random.default_rng(0))
    >>> hits = answers.ratings[:, answers.is_machine[answers.texts]] > 2
    >>> bool(abs(hits.mean() - 0.6915) < 0.01)
    True
    """
    _refuse_counts(n_annotators=n_annotators, n_each=n_each, runs=runs)
    validate_non_negative(
        annotator_sd=annotator_sd,
        annotator_d_prime_sd=annotator_d_prime_sd,
        text_sd=text_sd,
        confident_at=confident_at,
    )
    validate_share(machine_share, "machine_share")
    validate_finite(d_prime=d_prime, criterion=criterion)
    texts, n_distinct = _assigned(n_annotators, n_each, n_texts, "n_texts")
    # Spread the machine texts evenly, so that every annotator sees both kinds.
    numbers = np.arange(n_distinct)
    is_machine = np.floor((numbers + 1) * machine_share + 1e-9) > np.floor(numbers * machine_share + 1e-9)
    sides = np.where(is_machine[texts], 0.5, -0.5)
    own = d_prime + annotator_d_prime_sd * rng.standard_normal((runs, n_annotators, 1))
    evidence = sides * own + rng.standard_normal((runs, n_annotators, n_each))
    evidence += text_sd * rng.standard_normal((runs, n_distinct))[:, texts]
    evidence -= criterion + annotator_sd * rng.standard_normal((runs, n_annotators, 1))
    ratings = 1.0 + (evidence > -confident_at) + (evidence > 0) + (evidence > confident_at)
    return HumanLikeRatings(np.asarray(ratings, dtype=np.float64), texts, is_machine)
