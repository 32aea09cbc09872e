"""Priors on accuracy, and the posterior probability that an annotator is noisy."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, validate_level
from analysis.stats.results import Record, json_safe

RATE_THRESHOLD = 0.9
CUTOFF = 0.99
# A posterior that equals the cut-off except for rounding (the uniform prior at 0 of 1) counts as equal.
ROUNDING = 1e-12
CUTOFF_RULES = ("at_least", "more_than")


@dataclass(frozen=True, slots=True)
class BetaMixture(Record):
    """A prior on accuracy: `weights` of components Beta(`alphas`, `betas`), all of one length k."""

    weights: tuple[float, ...]
    alphas: tuple[float, ...]
    betas: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.weights) == len(self.alphas) == len(self.betas) > 0:
            raise ValueError("weights: as many as alphas and betas are needed, at least one")
        if min(self.weights) < 0 or abs(sum(self.weights) - 1) > 1e-6:
            raise ValueError("weights: must be non-negative and add up to 1")
        if not all(0 < value < math.inf for value in (*self.alphas, *self.betas)):
            raise ValueError("alphas: the parameters of a beta distribution are positive numbers")

    @property
    def means(self) -> tuple[float, ...]:
        """Return the expected accuracy within each component."""
        return tuple(alpha / (alpha + beta) for alpha, beta in zip(self.alphas, self.betas, strict=True))

    @property
    def best_component(self) -> int:
        """Return the component of the annotators who are not noisy: the one with the highest mean."""
        return int(np.argmax(self.means))

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"means": json_safe(self.means)}


PRIORS = {
    "fixed1": BetaMixture((1.0,), (4.0,), (1.0,)),
    "fixed2": BetaMixture((0.05, 0.95), (0.5, 9.5), (4.5, 0.5)),
    "jeffreys": BetaMixture((1.0,), (0.5,), (0.5,)),
    "uniform": BetaMixture((1.0,), (1.0,), (1.0,)),
}
# The eight rows of the paper's Table 1: criterion, and the prior (its name, or how many components are learned).
MODELS: dict[str, tuple[str, str | int]] = {
    "class_fixed2": ("class", "fixed2"),
    "class_learned2": ("class", 2),
    "rate_jeffreys": ("rate", "jeffreys"),
    "rate_uniform": ("rate", "uniform"),
    "rate_fixed1": ("rate", "fixed1"),
    "rate_learned1": ("rate", 1),
    "rate_fixed2": ("rate", "fixed2"),
    "rate_learned2": ("rate", 2),
}


def low_accuracy_posterior(
    prior: BetaMixture, successes: npt.ArrayLike, trials: npt.ArrayLike, *, threshold: float = RATE_THRESHOLD
) -> FloatArray:
    """Compute the posterior probability that each annotator's accuracy is below a threshold.

    For s correct of n counted answers of an annotator, it is sum_k q_k I_threshold(alpha_k + s, beta_k + n - s), with
    q_k the posterior of component k.

    >>> low_accuracy_posterior(PRIORS["fixed2"], [0, 9], [3, 10]).round(4).tolist()
    [0.9981, 0.2671]
    """
    validate_level(threshold)
    n_correct, n_counted = checked_successes_and_trials(successes, trials)
    weights = _component_posterior(prior, n_correct, n_counted)
    alphas, betas = np.array(prior.alphas), np.array(prior.betas)
    below = special.betainc(alphas + n_correct[:, None], betas + (n_counted - n_correct)[:, None], threshold)
    return np.asarray(np.sum(weights * below, axis=1), dtype=np.float64)


def not_best_class_posterior(prior: BetaMixture, successes: npt.ArrayLike, trials: npt.ArrayLike) -> FloatArray:
    """Compute the posterior probability that each annotator does not belong to the best component of the prior.

    For s correct of n counted answers of an annotator, the posterior q_k of component k is proportional to theta_k
    B(alpha_k + s, beta_k + n - s) / B(alpha_k, beta_k), with theta_k its weight. A prior with one component is an
    error.

    >>> not_best_class_posterior(PRIORS["fixed2"], [0, 9], [3, 10]).round(4).tolist()
    [0.966, 0.0002]
    """
    if len(prior.weights) < 2:
        raise ValueError("prior: the class criterion needs at least two components")
    weights = _component_posterior(prior, *checked_successes_and_trials(successes, trials))
    others = [k for k in range(len(prior.weights)) if k != prior.best_component]
    # The sum over the others keeps its digits when it is tiny; one minus the best does not.
    return np.asarray(np.sum(weights[:, others], axis=1), dtype=np.float64)


def noisy_annotator_posterior(
    prior: BetaMixture,
    successes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    criterion: str,
    threshold: float = RATE_THRESHOLD,
) -> FloatArray:
    """Posterior probability that each annotator is noisy, by either criterion.

    Parameters
    ----------
    prior : BetaMixture
        Prior on accuracy.
    successes, trials : array_like, shape (n,)
        Correct and counted answers of each annotator.
    criterion : {"rate", "class"}
        `low_accuracy_posterior` or `not_best_class_posterior`.
    threshold : float, default RATE_THRESHOLD
        Accuracy below which an annotator is noisy, for "rate".

    Returns
    -------
    ndarray of float, shape (n,)
        The probabilities.

    Raises
    ------
    ValueError
        If `criterion` is not allowed.

    Examples
    --------
    >>> noisy_annotator_posterior(PRIORS["uniform"], [0], [1], criterion="rate").round(4).tolist()
    [0.99]
    """
    if criterion == "rate":
        return low_accuracy_posterior(prior, successes, trials, threshold=threshold)
    if criterion == "class":
        return not_best_class_posterior(prior, successes, trials)
    raise ValueError(f"criterion: {criterion!r} is neither rate nor class")


def is_noisy(posteriors: npt.ArrayLike, *, cutoff: float = CUTOFF, rule: str = "at_least") -> BoolArray:
    """Return whether each posterior reaches the cut-off.

    Parameters
    ----------
    posteriors : array_like
        Posterior probabilities.
    cutoff : float, default CUTOFF
        The cut-off.
    rule : {"at_least", "more_than"}, default 'at_least'
        Section 5 and appendix B.1 of the paper. They differ if a posterior equals the cut-off: the uniform prior
        gives .99 after one wrong answer.

    Returns
    -------
    ndarray of bool
        One flag for each posterior.

    Raises
    ------
    ValueError
        If `rule` is not allowed.

    Examples
    --------
    >>> at_the_point = low_accuracy_posterior(PRIORS["uniform"], [0], [1])
    >>> is_noisy(at_the_point).tolist(), is_noisy(at_the_point, rule="more_than").tolist()
    ([True], [False])
    """
    validate_level(cutoff)
    if rule not in CUTOFF_RULES:
        raise ValueError(f"rule: {rule!r} is not one of {', '.join(CUTOFF_RULES)}")
    values = np.asarray(posteriors, dtype=np.float64)
    return np.asarray(values >= cutoff - ROUNDING if rule == "at_least" else values > cutoff + ROUNDING)


def checked_successes_and_trials(successes: npt.ArrayLike, trials: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """Return correct and counted answers. Raise ValueError if an annotator has more correct than counted ones."""
    n_correct, n_counted = checked_whole_counts(successes, "successes"), checked_whole_counts(trials, "trials")
    if n_correct.ndim != 1 or n_correct.shape != n_counted.shape:
        raise ValueError(f"trials: shape {n_counted.shape} where successes has {n_correct.shape}")
    wrong = np.flatnonzero(n_correct > n_counted)
    if len(wrong):
        row = int(wrong[0])
        raise ValueError(f"successes: row {row} has {int(n_correct[row])} of {int(n_counted[row])}")
    return n_correct, n_counted


def checked_whole_counts(values: npt.ArrayLike, name: str) -> IntArray:
    """Return `values` as whole numbers. Raise ValueError with the row for anything else."""
    array = np.asarray(values, dtype=np.float64)
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0) & (array == np.round(array))))
    if len(bad):
        raise ValueError(f"{name}: row {int(bad[0][0])} is no count")
    return np.asarray(array, dtype=np.int64)


def _component_posterior(prior: BetaMixture, n_correct: IntArray, n_counted: IntArray) -> FloatArray:
    alphas, betas = np.array(prior.alphas), np.array(prior.betas)
    with np.errstate(divide="ignore"):
        joint = np.log(np.array(prior.weights)) + special.betaln(
            alphas + n_correct[:, None], betas + (n_counted - n_correct)[:, None]
        )
    joint -= special.betaln(alphas, betas)
    return np.asarray(np.exp(joint - special.logsumexp(joint, axis=1, keepdims=True)), dtype=np.float64)
