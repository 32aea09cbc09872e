"""From answers to test questions to annotators whose answers may not count."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, codes, refuse_outside, vector
from analysis.stats.mixture._fit import MAX_CONCENTRATION, MixtureFit, fit_beta_mixture
from analysis.stats.mixture._priors import (
    CUTOFF,
    MODELS,
    PRIORS,
    RATE_THRESHOLD,
    BetaMixture,
    is_noisy,
    noise_posterior,
    whole_counts,
)
from analysis.stats.results import MODES, Record, ResultWarning

LEARNED_MIN_ANNOTATORS = 30
LEARNED_MIN_QUESTIONS = 5
QUESTION_TYPES = ("positive", "negative")


@dataclass(frozen=True, slots=True)
class TestAnswerCounts(Record):
    """Test questions answered: `annotators` (labels, sorted), `successes` and `trials` (n, 2), `skipped` (n, 2).

    The columns are positive and negative questions; a skipped answer is a neutral one that was not counted.
    """

    annotators: tuple[Any, ...]
    successes: IntArray
    trials: IntArray
    skipped: IntArray


@dataclass(frozen=True, slots=True)
class Screening(Record):
    """Which annotators a model flags, in the order given.

    `posteriors` (n, 2) for positive and negative questions, `flagged` (n,) on either, `combined` (n,) the probability
    1 - (1 - q1)(1 - q2) of being noisy on one or the other. `spared` are positions that the model flagged although
    every answer was right. `beside` is the same under `rate_fixed2`, which needs no other annotators.
    """

    model: str
    mode: str
    status: str
    reason: str
    n: int
    posteriors: FloatArray
    flagged: BoolArray
    combined: FloatArray
    spared: tuple[int, ...]
    priors: tuple[BetaMixture, ...]
    fits: tuple[MixtureFit, ...]
    warnings: tuple[ResultWarning, ...]
    settings: dict[str, Any]
    beside: "Screening | None" = None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "annotator"}


def score_answers(
    values: npt.ArrayLike, is_positive: npt.ArrayLike, *, midpoint: float = 0.5, neutral: str = "skip"
) -> FloatArray:
    """Which answers to test questions are right: 1, 0, or NaN where nothing is counted. Shapes (n,).

    `values` lie in 0..1 (Likert points mapped), NaN missing. A positive question is right above `midpoint`, a negative
    one below it. The paper binarises "at 0.5" and says nothing of an answer of exactly .5: here it counts as `neutral`
    says, "wrong" or "skip" (left out, the default).

    >>> score_answers([0.75, 0.5, 0.25], [True, True, False]).tolist()
    [1.0, nan, 1.0]
    """
    if neutral not in ("skip", "wrong"):
        raise ValueError(f"neutral: {neutral!r} is neither skip nor wrong")
    answers = vector(values, "values")
    refuse_outside(answers, (0.0, 1.0), "values")
    positive = np.asarray(is_positive)
    if positive.shape != answers.shape or positive.dtype != bool:
        raise ValueError(f"is_positive: {len(answers)} truth values are needed")
    right = np.where(positive, answers > midpoint, answers < midpoint).astype(np.float64)
    right[np.isnan(answers)] = np.nan
    if neutral == "skip":
        right[answers == midpoint] = np.nan
    return right


def count_test_answers(
    values: npt.ArrayLike,
    is_positive: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    midpoint: float = 0.5,
    neutral: str = "skip",
) -> TestAnswerCounts:
    """Right answers and answers counted of each annotator, by type of question; see `score_answers`.

    >>> counted = count_test_answers([1, 0.5, 0.25, 0], [True, True, False, True], ["a", "a", "a", "b"])
    >>> counted.successes.tolist(), counted.trials.tolist(), counted.skipped.tolist()
    ([[1, 1], [0, 0]], [[1, 1], [1, 0]], [[1, 0], [0, 0]])
    """
    right = score_answers(values, is_positive, midpoint=midpoint, neutral=neutral)
    positions, n = codes(np.asarray(annotators), "annotators", len(right))
    cell = 2 * positions + np.where(np.asarray(is_positive, dtype=bool), 0, 1)
    counted, given = ~np.isnan(right), ~np.isnan(vector(values, "values"))

    def table(chosen: BoolArray) -> IntArray:
        return np.asarray(np.bincount(cell[chosen], minlength=2 * n).reshape(n, 2), dtype=np.int64)

    return TestAnswerCounts(
        annotators=tuple(np.unique(np.asarray(annotators)).tolist()),
        successes=table(right == 1),
        trials=table(counted),
        skipped=table(given & ~counted),
    )


def default_model(trials: npt.ArrayLike) -> str:
    """The model to screen with: `class_learned2`, or `rate_fixed2` while there is too little to learn from.

    `trials` has shape (n, 2). Learning needs 30 annotators with at least five answers to each type of question.

    >>> default_model([[5, 5]] * 29), default_model([[5, 5]] * 30)
    ('rate_fixed2', 'class_learned2')
    """
    enough = np.sum(_typed(trials, "trials") >= LEARNED_MIN_QUESTIONS, axis=0)
    return "class_learned2" if bool(np.all(enough >= LEARNED_MIN_ANNOTATORS)) else "rate_fixed2"


def screen_annotators(
    successes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    model: str | None = None,
    mode: str = "recommended",
    threshold: float = RATE_THRESHOLD,
    cutoff: float = CUTOFF,
    rule: str | None = None,
    starts: int = 10,
    max_concentration: float = MAX_CONCENTRATION,
) -> Screening:
    """Flags annotators who are noisy on positive or on negative test questions; counts have shape (n, 2), see `tally`.

    `model` is one of `MODELS`; None takes the paper's `class_learned2` in paper mode and `default_model` otherwise.
    Paper mode learns by the published EM algorithm and flags above the cut-off; recommended mode learns by direct
    likelihood with a capped concentration, flags at the cut-off too, shows `rate_fixed2` beside (the class criterion
    misses people who click at random), and never flags somebody for a type of question answered without a mistake
    (warning `perfect_spared`). The uninformative priors flag careful people after one or two mistakes (warning
    `uninformative_prior`). A learned fit that fails makes everybody unflagged, with the fit's status.

    >>> found = screen_annotators([[0, 5], [10, 10]], [[5, 5], [10, 10]], rng=np.random.default_rng(0))
    >>> found.model, found.flagged.tolist()
    ('rate_fixed2', [True, False])
    """
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is none of {', '.join(MODES)}")
    right, asked = _typed(successes, "successes"), _typed(trials, "trials")
    if right.shape != asked.shape:
        raise ValueError(f"trials: shape {asked.shape} where successes has {right.shape}")
    chosen = model if model is not None else ("class_learned2" if mode == "paper" else default_model(asked))
    if chosen not in MODELS:
        raise ValueError(f"model: {chosen!r} is none of {', '.join(MODELS)}")
    criterion, prior = MODELS[chosen]
    used_rule = rule if rule is not None else ("more_than" if mode == "paper" else "at_least")
    method = "em" if mode == "paper" else "likelihood"
    fits: list[MixtureFit] = []
    priors: list[BetaMixture] = []
    for column in range(2):
        if isinstance(prior, str):
            priors.append(PRIORS[prior])
            continue
        found = fit_beta_mixture(
            right[:, column],
            asked[:, column],
            n_components=prior,
            rng=rng,
            method=method,
            starts=starts,
            max_concentration=max_concentration,
        )
        fits.append(found)
        if found.mixture is not None:
            priors.append(found.mixture)
    broken = next((found for found in fits if found.status != "ok"), None)
    n = len(right)
    posteriors = np.full((n, 2), np.nan)
    flagged = np.zeros((n, 2), dtype=bool)
    if broken is None:
        for column in range(2):
            posteriors[:, column] = noise_posterior(
                priors[column], right[:, column], asked[:, column], criterion=criterion, threshold=threshold
            )
        flagged = is_noisy(posteriors, cutoff=cutoff, rule=used_rule)
    warnings: list[ResultWarning] = []
    spared: tuple[int, ...] = ()
    if mode == "recommended":
        # A component with a higher mean but less spread can claim everybody who makes some mistakes, and leave those
        # who make none to the "noisy" one.
        perfect = flagged & (right == asked)
        spared = tuple(int(row) for row in np.flatnonzero(perfect.any(axis=1)))
        flagged = flagged & ~perfect
        if spared:
            warnings.append(ResultWarning("perfect_spared", "warn", {"n": len(spared)}))
        if prior in ("jeffreys", "uniform"):
            warnings.append(ResultWarning("uninformative_prior", "warn", {"model": chosen}))
    status, reason = ("ok", "") if broken is None else (broken.status, broken.reason)
    if n == 0:
        status, reason = "no_data", "no annotator answered a test question"
    beside = None
    if mode == "recommended" and chosen != "rate_fixed2":
        beside = screen_annotators(
            right, asked, rng=rng, model="rate_fixed2", threshold=threshold, cutoff=cutoff, rule=used_rule
        )
    return Screening(
        model=chosen,
        mode=mode,
        status=status,
        reason=reason,
        n=n,
        posteriors=posteriors,
        flagged=np.asarray(flagged.any(axis=1)),
        combined=np.asarray(1 - np.prod(1 - posteriors, axis=1)),
        spared=spared,
        priors=tuple(priors),
        fits=tuple(fits),
        warnings=tuple(warnings),
        settings={"threshold": threshold, "cutoff": cutoff, "rule": used_rule, "criterion": criterion},
        beside=beside,
    )


def _typed(values: npt.ArrayLike, name: str) -> IntArray:
    array = whole_counts(values, name)
    if array.size == 0:
        return array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name}: expected shape (n, 2), got {array.shape}")
    return array
