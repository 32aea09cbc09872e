"""Made-up ratings: points, positions on a line, and judgements of human-likeness."""

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
    """Ratings of every system by every annotator for `n_each` of `n_prompts` prompts (each their own if None).

    A latent normal cut at `thresholds` (k - 1 of them, ascending): the system's effect + the annotator's severity
    (annotator_sd) + the prompt's ease (prompt_sd) + his taste for this system (annotator_taste_sd) + its knack for this
    prompt (prompt_taste_sd) + N(0, 1). Severity and ease cancel in a comparison within annotator and prompt; the two
    tastes are what makes its rows dependent.

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
    """Ratings on 0..100 with the planted references of the improved protocol.

    Annotator i uses the scale from low_i to high_i, normal around `low_percent` and `high_percent` with `ends_sd`, and
    rates the references there, give or take `reference_sd` points. An output has utility in 0..1, the system's mean +
    his taste for it (`taste_sd`) + its own luck (`output_sd`), and is rated low_i + utility (high_i - low_i). A share of
    annotators violates extremum equivalence: their two references are exchanged.

    Source: the SPA paper, section 4.

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


def simulate_human_like_ratings(
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

    >>> made = simulate_human_like_ratings(400, 5, d_prime=1.0, annotator_sd=0, text_sd=0, runs=5, rng=np.random.default_rng(0))
    >>> hits = made.ratings[:, made.is_machine[made.texts]] > 2
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
