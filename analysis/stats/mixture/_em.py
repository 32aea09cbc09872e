"""The published expectation-maximisation algorithm, for all starts at once."""

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray
from analysis.stats.mixture._tails import MixtureSolution, TailIndicators

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
