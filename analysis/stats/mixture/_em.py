"""The published expectation-maximisation algorithm, for all starts at once."""

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray
from analysis.stats.mixture._tails import MixtureSolution, TailIndicators

# Number of fixed-point steps between two checks of the likelihood.
EM_BLOCK = 128


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
    after each step, with far fewer calls.
    """
    pulls, constants = shares @ tails.member, shares @ tails.binomial
    sums = np.eye(3)[tails.kind]
    final = np.ones((len(shares), 2))
    pair = np.ones((len(shares), 2))
    rows = np.arange(len(shares))

    def misfit(pairs: FloatArray) -> FloatArray:
        logs = np.log(tails.terms(pairs[..., 0], pairs[..., 1])) * tails.sign
        return np.asarray(-(np.sum(logs * pulls[rows], axis=-1) + constants[rows]))

    with np.errstate(invalid="ignore", divide="ignore"):
        last = misfit(pair)
        n_steps = 0
        while len(rows) and n_steps < 10_000:
            block = np.empty((min(EM_BLOCK, 10_000 - n_steps), len(rows), 2))
            pulling = pulls[rows]
            terms = np.empty_like(pulling)
            for step in range(len(block)):
                np.matmul(pair, tails.spread, out=terms)
                terms += tails.offset
                np.divide(pulling, terms, out=terms)
                slopes = terms @ sums
                pair = pair * slopes[:, :2] / slopes[:, 2:]
                block[step] = pair
            n_steps += len(block)
            seen = np.concatenate([last[None], misfit(block)])
            # A rise of the misfit and an undefined likelihood also stop the iteration.
            stops = ~((seen[:-1] - seen[1:]) / seen[:-1] >= 1e-7)
            done = stops.any(axis=0)
            where = np.where(done, np.argmax(stops, axis=0), len(block) - 1)
            final[rows] = block[where, np.arange(len(rows))]
            rows, pair, last = rows[~done], pair[~done], seen[-1][~done]
    return final[:, 0], final[:, 1]
