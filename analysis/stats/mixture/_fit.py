"""Estimation of a prior from the answers of all annotators."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from analysis.stats.arrays import BoolArray, FloatArray
from analysis.stats.mixture._em import fit_mixture_by_em
from analysis.stats.mixture._priors import BetaMixture, checked_successes_and_trials
from analysis.stats.mixture._tails import MixtureSolution, TailIndicators
from analysis.stats.results import Record

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
