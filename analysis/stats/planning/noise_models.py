"""How well the models of test questions find careless annotators, in simulated rounds.

Reference: Genie (Khashabi et al. 2022), section 5, Table 1 and appendix B.2.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.stats import mixture
from analysis.stats.arrays import BoolArray, FloatArray, IntArray
from analysis.stats.results import MODES, Record

# The paper's numbers of test questions, and everybody.
BUCKETS = ("1-4", "5-14", "15+", "all")
_BUCKET_STARTS = (5, 15)
# The concentrations of the accuracies of people of one kind, from the paper.
CARELESS_CONCENTRATION, CAREFUL_CONCENTRATION = (5.0, 50.0), (100.0, 1000.0)
# Lognormal numbers have no largest value, and memory has.
MOST_QUESTIONS = 2000


@dataclass(frozen=True, slots=True)
class SimulatedCrowd(Record):
    """The annotators of simulated rounds. The first values are the paper's, as far as it gives them.

    `questions` is the median number of test questions of an annotator, and `activity` the standard deviation of its
    logarithm. The others are ranges, from which each round draws: the share of `careless` annotators, and the mean
    accuracy on test questions of these and of the others.
    """

    annotators: int = 88
    questions: float = 12.0
    activity: float = 1.0
    careless: tuple[float, float] = (0.01, 0.10)
    careless_right: tuple[float, float] = (0.0, 0.5)
    careful_right: tuple[float, float] = (0.95, 1.0)


@dataclass(frozen=True, slots=True)
class FlagRates(Record):
    """What a model finds among annotators with so many test questions, in all rounds together.

    `precision` is the share of the flagged who are careless, None if nobody is flagged; `recall` the share of the
    careless who are flagged, None if nobody is careless. Their errors are standard errors over rounds, None if all
    rounds agree.
    """

    model: str
    questions: str
    annotators: int
    careless: int
    flagged: int
    rightly_flagged: int
    precision: float | None
    precision_error: float | None
    recall: float | None
    recall_error: float | None


def draw_round(crowd: SimulatedCrowd, rng: np.random.Generator) -> tuple[IntArray, IntArray, BoolArray]:
    """Draw the right answers and the test questions of each annotator of a round, and who is careless."""
    n = crowd.annotators
    drawn = np.round(np.exp(rng.normal(math.log(crowd.questions), crowd.activity, n)))
    asked = np.clip(drawn, 1, MOST_QUESTIONS).astype(np.int64)
    is_careless = rng.random(n) < rng.uniform(*crowd.careless)
    # A beta distribution has no mean of exactly 0 or 1.
    bad, good = (np.clip(rng.uniform(*means), 1e-9, 1 - 1e-9) for means in (crowd.careless_right, crowd.careful_right))
    bad_size, good_size = rng.uniform(*CARELESS_CONCENTRATION), rng.uniform(*CAREFUL_CONCENTRATION)
    accuracy = np.where(
        is_careless,
        rng.beta(bad * bad_size, (1 - bad) * bad_size, n),
        rng.beta(good * good_size, (1 - good) * good_size, n),
    )
    return rng.binomial(asked, accuracy), asked, is_careless


def compute_posteriors(
    right: IntArray, asked: IntArray, *, rng: np.random.Generator, **fit: Any
) -> dict[str, FloatArray]:
    """Compute by each model the probability that each annotator is noisy. NaN where a prior cannot be learned.

    `fit` are the settings of `mixture.fit_beta_mixture`; each prior is learned once.
    """
    learned = {
        k: mixture.fit_beta_mixture(right, asked, n_components=k, rng=rng, **fit).mixture
        for k in sorted({prior for _, prior in mixture.MODELS.values() if isinstance(prior, int)})
    }
    found = {}
    for model, (criterion, name) in mixture.MODELS.items():
        prior = mixture.PRIORS[name] if isinstance(name, str) else learned[name]
        found[model] = (
            np.full(len(asked), np.nan)
            if prior is None
            else mixture.noisy_annotator_posterior(prior, right, asked, criterion=criterion)
        )
    return found


def count_by_bucket(asked: IntArray, *chosen: BoolArray) -> FloatArray:
    """Count the chosen annotators by their number of test questions; shape (choices, 3)."""
    bucket = np.digitize(asked, _BUCKET_STARTS)
    return np.array([np.bincount(bucket, one, len(_BUCKET_STARTS) + 1) for one in chosen])


def simulate_flag_rates(
    crowd: SimulatedCrowd,
    *,
    rounds: int,
    rng: np.random.Generator,
    mode: str = "recommended",
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> tuple[FlagRates, ...]:
    """Simulate rounds of annotation, and compute what each model finds, by the number of test questions.

    `mode` is as in `mixture.screen_annotators_by_question_type`: "paper" has the published algorithm and flags above
    the cut-off; "recommended" flags as reports do, at the cut-off too and nobody without a mistake.

    >>> rows = simulate_flag_rates(SimulatedCrowd(), rounds=2, rng=np.random.default_rng(0))
    >>> [(row.careless, row.rightly_flagged) for row in rows if row.model == "rate_fixed2"]
    [(2, 0), (3, 1), (9, 9), (14, 10)]
    """
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is not one of {', '.join(MODES)}")
    is_paper = mode == "paper"
    counts: Mapping[str, list[FloatArray]] = {model: [] for model in mixture.MODELS}
    for number in range(rounds):
        progress(number, rounds)
        right, asked, is_careless = draw_round(crowd, rng)
        found = compute_posteriors(right, asked, rng=rng, method="em" if is_paper else "likelihood")
        for model, posteriors in found.items():
            flagged = mixture.is_noisy(posteriors, rule="more_than" if is_paper else "at_least")
            if not is_paper:
                flagged &= right < asked
            everybody = np.ones(len(asked), dtype=bool)
            parts = count_by_bucket(asked, everybody, is_careless, flagged, flagged & is_careless)
            counts[model].append(np.column_stack([parts, parts.sum(axis=1)]))
    return tuple(
        _rates(model, bucket, np.array(of_model)[:, :, place])
        for model, of_model in counts.items()
        for place, bucket in enumerate(BUCKETS)
    )


def _rates(model: str, bucket: str, of_rounds: FloatArray) -> FlagRates:
    annotators, careless, flagged, rightly = of_rounds.T
    precision, precision_error = _ratio(rightly, flagged)
    recall, recall_error = _ratio(rightly, careless)
    return FlagRates(
        model=model,
        questions=bucket,
        annotators=int(annotators.sum()),
        careless=int(careless.sum()),
        flagged=int(flagged.sum()),
        rightly_flagged=int(rightly.sum()),
        precision=precision,
        precision_error=precision_error,
        recall=recall,
        recall_error=recall_error,
    )


def _ratio(parts: FloatArray, wholes: FloatArray) -> tuple[float | None, float | None]:
    """Return a ratio of sums over rounds, and its standard error from the rounds."""
    total, n = float(wholes.sum()), len(wholes)
    if not total:
        return None, None
    ratio = float(parts.sum()) / total
    squares = float(np.sum((parts - ratio * wholes) ** 2))
    return ratio, math.sqrt(n / (n - 1) * squares) / total if n > 1 and squares > 1e-18 else None
