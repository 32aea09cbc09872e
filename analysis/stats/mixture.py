"""A mixture-of-betas model of accuracy on test questions, to flag noisy annotators.

Annotator w answers n_w test questions of one type, X_w of them correctly: X_w ~ Binomial(n_w, P_w), with P_w from
a mixture of beta distributions. By the `rate` criterion an annotator is noisy if P_w is below a threshold. By the
`class` criterion, if w belongs to any component except the one with the highest mean. Positive questions (a true
output) and negative ones (an output of something else) have separate fits. Noisy on one type is noisy.

Reference: Genie (Khashabi et al. 2022), section 5 and appendix B.1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, validate_level
from analysis.stats.results import MODES, Record, ResultWarning, json_safe

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


# The likelihood of the counts in a form that is fast to compute.


@dataclass(frozen=True, slots=True)
class TailIndicators:
    """The counts as tail indicators: log B(a + s, b + f) / B(a, b) is a sum of logarithms over j < s, j < f, j < n.

    Distinct rows only. `member` (rows, J) says which of the J terms a row has, `offset` (J,) is j, `kind` (J,) whether
    the term belongs to alpha, beta or their sum, whose terms count negatively (`sign`); (alpha, beta) @ `spread` gives
    each term its parameter.
    """

    counts: FloatArray
    member: FloatArray
    offset: FloatArray
    kind: IntArray
    sign: FloatArray
    spread: FloatArray
    binomial: FloatArray

    @classmethod
    def from_counts(cls, successes: IntArray, trials: IntArray) -> "TailIndicators":
        rows, counts = np.unique(np.column_stack([successes, trials]), axis=0, return_counts=True)
        parts = (rows[:, 0], rows[:, 1] - rows[:, 0], rows[:, 1])
        ranges = [np.arange(part.max(initial=0)) for part in parts]
        kind = np.repeat(np.arange(3), [len(values) for values in ranges])
        return cls(
            counts=counts.astype(np.float64),
            member=np.concatenate(
                [(part[:, None] > values).astype(np.float64) for part, values in zip(parts, ranges, strict=True)],
                axis=1,
            ),
            offset=np.concatenate(ranges).astype(np.float64),
            kind=kind,
            sign=np.where(kind == 2, -1.0, 1.0),
            spread=np.array([kind != 1, kind != 0], dtype=np.float64),
            binomial=np.asarray(
                special.gammaln(parts[2] + 1) - special.gammaln(parts[0] + 1) - special.gammaln(parts[1] + 1)
            ),
        )

    def terms(self, alphas: FloatArray, betas: FloatArray) -> FloatArray:
        """Return alpha + j, beta + j or alpha + beta + j; shape (..., J)."""
        return np.asarray(np.stack([alphas, betas], axis=-1) @ self.spread + self.offset)

    def log_likelihoods(self, alphas: FloatArray, betas: FloatArray) -> FloatArray:
        """Return the log-likelihood of each distinct row under each component; shape (..., rows)."""
        return np.asarray((np.log(self.terms(alphas, betas)) * self.sign) @ self.member.T + self.binomial)


MixtureSolution = tuple[FloatArray, FloatArray, FloatArray, float]


# The published expectation-maximisation algorithm, for all starts at once.


# Number of fixed-point steps between two checks of the likelihood.
EM_BLOCK = 128
# The published tolerance of the fixed point, and what a bound must exceed so that rounding cannot matter.
EM_TOLERANCE = 1e-7
GAIN_MARGIN = 1.001


def fit_mixture_by_em(
    tails: TailIndicators, n_components: int, starts: int, rng: np.random.Generator
) -> MixtureSolution | None:
    """Run all starts at once, each with its own stopping tolerance."""
    # A single component is fitted in the first step, from any start.
    starts = starts if n_components > 1 else 1
    drawn = [(rng.uniform(0.0, 1.0, n_components), rng.standard_gamma(2.0, n_components)) for _ in range(starts)]
    means, concentrations = np.array([pair[0] for pair in drawn]), np.array([pair[1] for pair in drawn])
    alphas, betas = means * concentrations, (1 - means) * concentrations
    weights = np.full((starts, n_components), 1 / n_components)

    def misfit(chosen: IntArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            joint = np.log(weights[chosen])[..., None] + tails.log_likelihoods(alphas[chosen], betas[chosen])
            return np.asarray(-(special.logsumexp(joint, axis=1) @ tails.counts))

    active = np.arange(starts)
    current_misfit = misfit(active)
    for _ in range(1000):
        joint = weights[active][..., None] * np.exp(tails.log_likelihoods(alphas[active], betas[active]))
        with np.errstate(invalid="ignore"):
            shares = joint / joint.sum(axis=1, keepdims=True) * tails.counts
        weights[active] = shares.sum(axis=-1) / tails.counts.sum()
        fitted = _fixed_point(tails, shares.reshape(-1, len(tails.counts)))
        alphas[active], betas[active] = (values.reshape(-1, n_components) for values in fitted)
        before, current_misfit[active] = current_misfit[active], misfit(active)
        with np.errstate(invalid="ignore", divide="ignore"):
            goes_on = (before - current_misfit[active]) / before >= 1e-6
        active = active[goes_on]
        if len(active) == 0:
            break
    finite = (
        np.isfinite(current_misfit)
        & np.isfinite(alphas).all(axis=1)
        & (alphas > 0).all(axis=1)
        & (betas > 0).all(axis=1)
    )
    if not finite.any():
        return None
    best = int(np.argmin(np.where(finite, current_misfit, np.inf)))
    return weights[best], alphas[best], betas[best], -float(current_misfit[best])


def _fixed_point(tails: TailIndicators, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Run Minka's iteration for every row of `shares` (components, distinct rows), each with its own tolerance.

    Steps run in blocks, and the likelihood is checked for the whole block. The iterates are the same as with a check
    after each step, with far fewer calls. Most steps need no check: each maximises a lower bound of the likelihood,
    so it gains at least what the bound gains, S (r log r - r + 1) times the parameter before, with r the ratio of the
    parameters and S the slope of their sum. A step that gains enough by its bound does not stop.
    """
    pulls, constants = shares @ tails.member, shares @ tails.binomial
    sums = np.eye(3)[tails.kind]
    final = np.ones((len(shares), 2))
    pair = np.ones((len(shares), 2))
    rows = np.arange(len(shares))

    def misfit(pairs: FloatArray, of_rows: IntArray) -> FloatArray:
        logs = np.log(tails.terms(pairs[:, 0], pairs[:, 1])) * tails.sign
        return np.asarray(-(np.sum(logs * pulls[of_rows], axis=-1) + constants[of_rows]))

    with np.errstate(invalid="ignore", divide="ignore"):
        last = misfit(pair, rows)
        n_steps = 0
        while len(rows) and n_steps < 10_000:
            n_block = min(EM_BLOCK, 10_000 - n_steps)
            block, slopes = np.empty((n_block + 1, len(rows), 2)), np.empty((n_block, len(rows), 3))
            block[0] = pair
            pulling = pulls[rows]
            terms = np.empty_like(pulling)
            for step in range(n_block):
                np.matmul(pair, tails.spread, out=terms)
                terms += tails.offset
                np.divide(pulling, terms, out=terms)
                slopes[step] = terms @ sums
                pair = pair * slopes[step, :, :2] / slopes[step, :, 2:]
                block[step + 1] = pair
            n_steps += n_block
            ratios = block[1:] / block[:-1]
            gains = (slopes[..., 2:] * block[:-1] * (special.xlogy(ratios, ratios) - ratios + 1)).sum(axis=-1)
            # The misfit only falls, so that of the block's start is its largest.
            is_checked = ~((gains >= GAIN_MARGIN * EM_TOLERANCE * last) & (last > 0))
            is_computed = np.zeros((n_block + 1, len(rows)), dtype=bool)
            is_computed[:-1] |= is_checked
            is_computed[1:] |= is_checked
            is_computed[0], is_computed[-1] = False, True
            seen = np.full((n_block + 1, len(rows)), np.nan)
            seen[is_computed] = misfit(block[is_computed], rows[np.nonzero(is_computed)[1]])
            seen[0] = last
            # A rise of the misfit and an undefined likelihood also stop the iteration.
            stops = is_checked & ~((seen[:-1] - seen[1:]) / seen[:-1] >= EM_TOLERANCE)
            done = stops.any(axis=0)
            where = np.where(done, np.argmax(stops, axis=0), n_block - 1)
            final[rows] = block[where + 1, np.arange(len(rows))]
            rows, pair, last = rows[~done], pair[~done], seen[-1][~done]
    return final[:, 0], final[:, 1]


# Estimation of a prior from the answers of all annotators.


# The paper's stabiliser: 36 workers with 19 of 20, four with 1, 1, 5 and 10 of 20.
PSEUDO_SUCCESSES = (19,) * 36 + (1, 1, 5, 10)
PSEUDO_TRIALS = (20,) * 40
MIN_CONCENTRATION = 0.1
MAX_CONCENTRATION = 1000.0
MAX_LOGIT = 7.0
# Total variation below which two components count as the same.
SAME_DISTANCE = 0.01


@dataclass(frozen=True, slots=True)
class MixtureFit(Record):
    """An estimated prior. `mixture` has its components by ascending mean; None unless status is "ok".

    `n_annotators` gave `n_answers`; `n_pseudo` pseudo-annotators stabilise the fit. `at_cap` and `at_minimum` list
    components with their concentration at its largest or smallest bound, which the data do not identify. `coinciding`
    lists components that give nearly the same numbers of correct answers as another one: the data support fewer.
    """

    status: str
    reason: str
    mixture: BetaMixture | None
    log_likelihood: float | None
    n_annotators: int
    n_answers: int
    n_pseudo: int
    at_cap: tuple[int, ...]
    at_minimum: tuple[int, ...]
    coinciding: tuple[int, ...]
    settings: dict[str, Any] = field(default_factory=dict)


def fit_beta_mixture(
    successes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    n_components: int,
    rng: np.random.Generator,
    method: str = "likelihood",
    pseudo_data: bool = True,
    starts: int = 10,
    max_concentration: float = MAX_CONCENTRATION,
) -> MixtureFit:
    """Fit the mixture of betas to the annotators' counts by maximum likelihood.

    `successes` and `trials` are the correct and the counted answers of each annotator, and `pseudo_data` adds the 40
    pseudo-annotators of Genie, appendix B.1. The method "likelihood" is direct maximisation (L-BFGS-B). It searches the
    logits of the weights, the logits of the means within -7..7 and the logarithms of the concentrations alpha + beta
    from .1 to `max_concentration`. The bound is needed: the pseudo-data vary less than binomially, so the likelihood
    grows with the concentration without end. The method "em" is the published algorithm step by step: it takes seconds
    and stops at its tolerance (1e-6 and 1e-7), with Minka's fixed point (2000, Estimating a Dirichlet distribution)
    restarted at alpha = beta = 1 in each M-step. Without pseudo-data, no answers give the status `no_data`, and fewer
    than 2 k annotators with two answers or more, for k components, give `not_identified`.

    >>> result = fit_beta_mixture([], [], n_components=2, rng=np.random.default_rng(0))
    >>> [round(mean, 2) for mean in result.mixture.means], round(result.log_likelihood, 2), result.at_cap
    ([0.21, 0.95], -58.45, (1,))
    """
    if n_components < 1:
        raise ValueError(f"n_components: {n_components} is less than 1")
    if method not in ("likelihood", "em"):
        raise ValueError(f"method: {method!r} is neither likelihood nor em")
    if starts < 1:
        raise ValueError(f"starts: {starts} is less than 1")
    if not MIN_CONCENTRATION < max_concentration < math.inf:
        raise ValueError(f"max_concentration: {max_concentration!r} is not above {MIN_CONCENTRATION}")
    n_correct, n_counted = checked_successes_and_trials(successes, trials)
    n_annotators, n_answers = int(np.sum(n_counted > 0)), int(n_counted.sum())
    common: dict[str, Any] = {
        "n_annotators": n_annotators,
        "n_answers": n_answers,
        "n_pseudo": len(PSEUDO_TRIALS) if pseudo_data else 0,
        "settings": {
            "n_components": n_components,
            "method": method,
            "pseudo_data": pseudo_data,
            "starts": starts,
            "max_concentration": max_concentration if method == "likelihood" else None,
        },
    }
    empty: dict[str, Any] = {"mixture": None, "log_likelihood": None, "at_cap": (), "at_minimum": (), "coinciding": ()}
    if pseudo_data:
        n_correct = np.concatenate([n_correct, np.array(PSEUDO_SUCCESSES)])
        n_counted = np.concatenate([n_counted, np.array(PSEUDO_TRIALS)])
    elif n_answers == 0:
        return MixtureFit("no_data", "no test question was answered", **empty, **common)
    elif int(np.sum(n_counted > 1)) < 2 * n_components:
        reason = f"fewer than {2 * n_components} annotators answered two questions or more"
        return MixtureFit("not_identified", reason, **empty, **common)
    tails = TailIndicators.from_counts(n_correct, n_counted)
    if method == "em":
        fit = fit_mixture_by_em(tails, n_components, starts, rng)
    else:
        fit = _climb(tails, n_components, starts, max_concentration, rng)
    if fit is None:
        return MixtureFit("failed", "no start led to a finite likelihood", **empty, **common)
    weights, alphas, betas, log_likelihood = fit
    order = np.argsort(alphas / (alphas + betas))
    mixture = BetaMixture(tuple(weights[order].tolist()), tuple(alphas[order].tolist()), tuple(betas[order].tolist()))
    concentrations = (alphas + betas)[order]
    is_bounded = method == "likelihood"
    is_at_cap = is_bounded & (concentrations > max_concentration * (1 - 1e-6))
    is_at_minimum = is_bounded & (concentrations < MIN_CONCENTRATION * (1 + 1e-6))
    is_same = _are_components_alike(mixture, int(n_counted.max()))
    return MixtureFit(
        status="ok",
        reason="",
        mixture=mixture,
        log_likelihood=log_likelihood,
        at_cap=tuple(int(k) for k in np.flatnonzero(is_at_cap)),
        at_minimum=tuple(int(k) for k in np.flatnonzero(is_at_minimum)),
        coinciding=tuple(int(k) for k in np.flatnonzero(is_same.sum(axis=1) > 1)),
        **common,
    )


def _are_components_alike(mixture: BetaMixture, n_answers: int) -> BoolArray:
    """Return whether two components give nearly the same distribution of correct answers, shape (k, k)."""
    from scipy import stats  # slow to import, and reports import this module

    n_correct = np.arange(n_answers + 1)
    chances = np.array(
        [stats.betabinom.pmf(n_correct, n_answers, a, b) for a, b in zip(mixture.alphas, mixture.betas, strict=True)]
    )
    apart = np.abs(chances[:, None] - chances).sum(axis=2) / 2
    return np.asarray(apart < SAME_DISTANCE)


def _climb(tails: TailIndicators, k: int, starts: int, cap: float, rng: np.random.Generator) -> MixtureSolution | None:
    total = float(tails.counts.sum())
    bounds = [(-12.0, 12.0)] * (k - 1) + [(-MAX_LOGIT, MAX_LOGIT)] * k
    bounds += [(math.log(MIN_CONCENTRATION), math.log(cap))] * k

    def unpacked(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        logits = np.concatenate([[0.0], x[: k - 1]])
        return (
            np.exp(logits - special.logsumexp(logits)),
            np.asarray(special.expit(x[k - 1 : 2 * k - 1])),
            np.exp(x[2 * k - 1 :]),
        )

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        weights, means, concentrations = unpacked(x)
        terms = tails.terms(means * concentrations, (1 - means) * concentrations)
        joint = np.log(weights)[:, None] + (np.log(terms) * tails.sign) @ tails.member.T + tails.binomial
        log_likelihoods = special.logsumexp(joint, axis=0)
        shares = np.exp(joint - log_likelihoods) * tails.counts
        slopes = (shares @ tails.member) * tails.sign / terms
        by_alpha, by_beta, by_sum = (slopes[:, tails.kind == part].sum(axis=1) for part in range(3))
        by_mean = (by_alpha - by_beta) * concentrations * means * (1 - means)
        by_concentration = (by_alpha * means + by_beta * (1 - means) + by_sum) * concentrations
        by_weight = shares.sum(axis=1) - total * weights
        gradient = np.concatenate([by_weight[1:], by_mean, by_concentration])
        return -float(tails.counts @ log_likelihoods), -gradient

    best: tuple[float, FloatArray] | None = None
    for start in range(starts):
        if start == 0:
            means, concentrations = np.linspace(0.3, 0.95, k) if k > 1 else np.array([0.8]), np.full(k, 5.0)
        else:
            means, concentrations = rng.uniform(0.02, 0.98, k), 5 * rng.standard_gamma(2, k)
        first = np.concatenate(
            [np.zeros(k - 1), special.logit(means), np.log(np.clip(concentrations, MIN_CONCENTRATION, cap))]
        )
        optimum = optimize.minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds)
        if math.isfinite(optimum.fun) and (best is None or optimum.fun < best[0]):
            best = (float(optimum.fun), np.asarray(optimum.x, dtype=np.float64))
    if best is None:
        return None
    weights, means, concentrations = unpacked(best[1])
    return weights, means * concentrations, (1 - means) * concentrations, -best[0]


# The number of correct answers at which an annotator is flagged, and the probability of it.


@dataclass(frozen=True, slots=True)
class FlagBoundaries(Record):
    """When an annotator is flagged: of `questions[i]` answers of one type, at most `at_most[i]` are correct.

    None: even all wrong is not enough yet. `irregular` lists (correct, asked) that a model flags although it does not
    flag fewer correct answers; a badly fitted model can do this.
    """

    questions: tuple[int, ...]
    at_most: tuple[int | None, ...]
    irregular: tuple[tuple[int, int], ...]


def flag_boundaries(
    prior: BetaMixture,
    questions: Sequence[int],
    *,
    criterion: str,
    threshold: float = RATE_THRESHOLD,
    cutoff: float = CUTOFF,
    rule: str = "at_least",
) -> FlagBoundaries:
    """Compute the table "flag if at most b of n are correct" for each number of questions of one type.

    `criterion` ("rate" or "class") is as in `noisy_annotator_posterior`, `threshold` is the accuracy below which an
    annotator is noisy by the rate criterion, and `cutoff` and `rule` are as in `is_noisy`.

    >>> flag_boundaries(PRIORS["fixed2"], [1, 3, 10, 20], criterion="rate").at_most
    (None, 0, 4, 12)
    """
    at_most: list[int | None] = []
    irregular: list[tuple[int, int]] = []
    for n_questions in questions:
        if n_questions < 0:
            raise ValueError(f"questions: {n_questions} is negative")
        right = np.arange(n_questions + 1)
        posteriors = noisy_annotator_posterior(
            prior, right, np.full(n_questions + 1, n_questions), criterion=criterion, threshold=threshold
        )
        flagged = is_noisy(posteriors, cutoff=cutoff, rule=rule)
        first_free = int(np.argmin(flagged)) if not flagged.all() else n_questions + 1
        at_most.append(first_free - 1 if first_free else None)
        irregular += [(int(count), n_questions) for count in right[first_free:][flagged[first_free:]]]
    return FlagBoundaries(tuple(int(n_questions) for n_questions in questions), tuple(at_most), tuple(irregular))


# Screening: from answers to test questions to flagged annotators.


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
