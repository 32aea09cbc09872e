"""Rejection regions of exact tests of shares: binomial, Fisher and sign test."""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray

# Outcomes further than this many standard deviations from the mean do not change a power in double precision.
REACH = 9.0
# Two tables are equally likely if their probabilities differ by no more than rounding; scipy uses the same.
TIE = 1e-7


def binomial_outcomes_within_reach(n: int, p: float) -> IntArray:
    """Return the outcomes of a binomial that are within reach of its mean; see REACH."""
    half = REACH * math.sqrt(n * p * (1 - p)) + REACH**2
    return np.arange(max(0, math.floor(n * p - half)), min(n, math.ceil(n * p + half)) + 1, dtype=np.int64)


def binomial_pmf(k: IntArray, n: int, p: float) -> FloatArray:
    """Return the binomial probabilities of the outcomes `k`; shape of `k`."""
    log_ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(log_ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)))


def _rejected(likelihood: FloatArray, significance: float) -> npt.NDArray[np.bool_]:
    """Return which outcomes of each row are its least likely ones, with total probability at most `significance`.

    Outcomes with equal probability are rejected together or not at all.
    """
    order = np.argsort(likelihood, axis=-1)
    ascending = np.take_along_axis(likelihood, order, axis=-1)
    total = np.cumsum(ascending, axis=-1)
    ends = np.ones(likelihood.shape, dtype=np.bool_)
    ends[..., :-1] = ascending[..., 1:] > ascending[..., :-1] * (1 + TIE)
    allowed = ends & (total <= significance)
    # The largest likelihood at which a complete group of ties still fits; -1 rejects nothing.
    threshold = np.max(np.where(allowed, ascending, -1.0), axis=-1, keepdims=True)
    return np.asarray(likelihood <= threshold * (1 + TIE))


def binomial_rejection_region(n: int, null: float, significance: float) -> tuple[int, int]:
    """Return the ends of the rejection region: at most `low` (-1: none) and at least `high` (n + 1: none) successes."""
    k = binomial_outcomes_within_reach(n, null)
    is_rejected = _rejected(binomial_pmf(k, n, null), significance)
    accepted = k[~is_rejected]
    low, high = int(accepted[0]) - 1, int(accepted[-1]) + 1
    return low, high


def fisher_rejection_region(
    n_x: int, n_y: int, first_total: int, last_total: int, significance: float
) -> tuple[IntArray, IntArray]:
    """Return, for each total of successes first..last, at most and at least how many in x Fisher's test rejects."""
    n = n_x + n_y
    total = np.arange(first_total, last_total + 1)[:, None]
    centre = np.floor(total * (n_x / n)).astype(np.int64)
    half = math.ceil(REACH * math.sqrt(n_x * n_y / (4 * max(1, n - 1))) + REACH**2)
    k = centre + np.arange(-half, half + 1)[None, :]
    is_there = (k >= np.maximum(0, total - n_y)) & (k <= np.minimum(n_x, total))
    inside = np.where(is_there, k, np.maximum(0, total - n_y))
    log_pmf = _log_choose(n_x, inside) + _log_choose(n_y, total - inside) - _log_choose(n, total)
    pmf = np.where(is_there, np.exp(log_pmf), 0.0)
    accepted = is_there & ~_rejected(pmf, significance)
    # The distribution has one peak, so the accepted outcomes are a run around it.
    low = np.take_along_axis(k, np.argmax(accepted, axis=1)[:, None], axis=1)[:, 0] - 1
    backwards = np.argmax(accepted[:, ::-1], axis=1)
    high = np.take_along_axis(k, (k.shape[1] - 1 - backwards)[:, None], axis=1)[:, 0] + 1
    return low, high


def _log_choose(n: int, k: IntArray) -> FloatArray:
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def sign_test_critical_counts(n: IntArray, significance: float) -> IntArray:
    """Return the least c with P(S >= c) <= significance / 2 for S binomial(n, 1/2); n + 1 if no c does."""
    low, high = n // 2, n + 1
    while np.any(high - low > 1):
        middle = (low + high) // 2
        tail = special.bdtrc(middle - 1, n, 0.5)
        is_enough = (tail <= significance / 2) & (middle > 0)
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    return np.asarray(high, dtype=np.int64)
