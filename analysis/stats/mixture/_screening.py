"""Screening: from answers to test questions to flagged annotators."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, IntArray
from analysis.stats.mixture._fit import MixtureFit, fit_beta_mixture
from analysis.stats.mixture._priors import (
    CUTOFF,
    MODELS,
    PRIORS,
    RATE_THRESHOLD,
    BetaMixture,
    checked_whole_counts,
    is_noisy,
    noisy_annotator_posterior,
)
from analysis.stats.results import MODES, Record, ResultWarning

LEARNED_MIN_ANNOTATORS = 30
LEARNED_MIN_QUESTIONS = 5


@dataclass(frozen=True, slots=True)
class Screening(Record):
    """The annotators that a model flags, in the given order.

    `posteriors` (n, 2) for positive and negative questions, `flagged` (n,) on either. `combined` (n,) is the
    probability 1 - (1 - q1)(1 - q2) of being noisy on at least one. `spared` are positions that the model flagged
    although every answer was correct. `beside` is the result of `rate_fixed2`, which needs no other annotators.
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
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "annotator"}


def default_screening_model(trials: npt.ArrayLike) -> str:
    """Return the name of the default model: `class_learned2`, or `rate_fixed2` with too few data.

    `trials` (n, 2) has the counted answers of each annotator by type of question. Learning needs, for each type, 30
    annotators with at least five answers.

    >>> default_screening_model([[5, 5]] * 29), default_screening_model([[5, 5]] * 30)
    ('rate_fixed2', 'class_learned2')
    """
    enough = np.sum(_typed(trials, "trials") >= LEARNED_MIN_QUESTIONS, axis=0)
    return "class_learned2" if bool(np.all(enough >= LEARNED_MIN_ANNOTATORS)) else "rate_fixed2"


def screen_annotators_by_question_type(
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
) -> Screening:
    """Flag annotators who are noisy on positive or on negative test questions.

    Parameters
    ----------
    successes, trials : array_like, shape (n, 2)
        Correct and counted answers by type of question.
    rng : numpy.random.Generator
        Source of the random draws.
    model : str, optional
        One of `MODELS`. None uses `class_learned2` in paper mode, `default_screening_model` otherwise.
    mode : {"recommended", "paper"}, default 'recommended'
        "paper": the published EM algorithm, flags above the cut-off. "recommended": direct likelihood with a bounded
        concentration, flags at the cut-off too.
    threshold : float, default RATE_THRESHOLD
        Accuracy below which an annotator is noisy by the rate criterion.
    cutoff, rule : float, optional
        As in `is_noisy`.
    starts : int, optional
        As in `fit_beta_mixture`.

    Returns
    -------
    Screening
        The flags. If a learned fit fails, no annotator is flagged, and the result has the fit's status.

    Raises
    ------
    ValueError
        If an option is not allowed or the shapes differ.

    Notes
    -----
    Recommended mode also shows `rate_fixed2`, because the class criterion misses annotators who click at random. It
    never flags a type of question answered without a mistake (warning `perfect_spared`). The uninformative priors
    flag careful annotators after one or two mistakes (warning `uninformative_prior`).

    Examples
    --------
    >>> result = screen_annotators_by_question_type([[0, 5], [10, 10]], [[5, 5], [10, 10]], rng=np.random.default_rng(0))
    >>> result.model, result.flagged.tolist()
    ('rate_fixed2', [True, False])
    """
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is not one of {', '.join(MODES)}")
    n_correct, n_counted = _typed(successes, "successes"), _typed(trials, "trials")
    if n_correct.shape != n_counted.shape:
        raise ValueError(f"trials: shape {n_counted.shape} where successes has {n_correct.shape}")
    chosen = (
        model if model is not None else ("class_learned2" if mode == "paper" else default_screening_model(n_counted))
    )
    if chosen not in MODELS:
        raise ValueError(f"model: {chosen!r} is not one of {', '.join(MODELS)}")
    criterion, prior = MODELS[chosen]
    used_rule = rule if rule is not None else ("more_than" if mode == "paper" else "at_least")
    method = "em" if mode == "paper" else "likelihood"
    fits: list[MixtureFit] = []
    priors: list[BetaMixture] = []
    for column in range(2):
        if isinstance(prior, str):
            priors.append(PRIORS[prior])
            continue
        fit = fit_beta_mixture(
            n_correct[:, column],
            n_counted[:, column],
            n_components=prior,
            rng=rng,
            method=method,
            starts=starts,
        )
        fits.append(fit)
        if fit.mixture is not None:
            priors.append(fit.mixture)
    broken = next((fit for fit in fits if fit.status != "ok"), None)
    n = len(n_correct)
    posteriors = np.full((n, 2), np.nan)
    flagged = np.zeros((n, 2), dtype=bool)
    if broken is None:
        for column in range(2):
            posteriors[:, column] = noisy_annotator_posterior(
                priors[column], n_correct[:, column], n_counted[:, column], criterion=criterion, threshold=threshold
            )
        flagged = is_noisy(posteriors, cutoff=cutoff, rule=used_rule)
    warnings: list[ResultWarning] = []
    spared: tuple[int, ...] = ()
    if mode == "recommended":
        # A component with a higher mean but less spread can take all annotators who make some mistakes. Those who
        # make none are then left to the "noisy" component.
        perfect = flagged & (n_correct == n_counted)
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
        beside = screen_annotators_by_question_type(
            n_correct, n_counted, rng=rng, model="rate_fixed2", threshold=threshold, cutoff=cutoff, rule=used_rule
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
    array = checked_whole_counts(values, name)
    if array.size == 0:
        return array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name}: expected shape (n, 2), got {array.shape}")
    return array
