"""Differences between simulated annotators, and the assignment of stimuli to them."""

import numpy as np
from scipy import special

from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    is_whole,
)


def _propensities(means: FloatArray, icc: float, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Return the propensity of each annotator for each system, at the same quantile of every system's distribution.

    The shape is (runs, K, n_annotators).
    """
    runs, n_annotators = shape
    chances = np.broadcast_to(means[None, :, None], (runs, len(means), n_annotators))
    if icc == 0:
        return np.asarray(chances)
    concentration = 1 / icc - 1
    quantiles = rng.random((runs, 1, n_annotators))
    is_inside = (means > 0) & (means < 1)
    inner = means[is_inside][:, None]
    drawn = np.array(chances)
    drawn[:, is_inside] = special.betaincinv(inner * concentration, (1 - inner) * concentration, quantiles)
    return drawn


def _capped(work: FloatArray, largest: float | None) -> FloatArray:
    """Return shares of the work, none above `largest`; the excess goes to the others in proportion."""
    shares = work / work.sum(axis=1, keepdims=True)
    n = shares.shape[1]
    if largest is None or largest >= 1:
        return np.asarray(shares)
    cap = max(largest, 1 / n)
    for _ in range(n):
        over = shares > cap + 1e-12
        if not over.any():
            break
        fixed = shares >= cap - 1e-12
        room = 1 - cap * fixed.sum(axis=1, keepdims=True)
        rest = np.where(fixed, 0.0, shares)
        total = rest.sum(axis=1, keepdims=True)
        shares = np.where(fixed, cap, rest * np.divide(room, total, out=np.zeros_like(total), where=total > 0))
    return np.asarray(shares)


def _assigned(n_annotators: int, n_each: int, n_distinct: int | None, name: str) -> tuple[IntArray, int]:
    """Return the stimuli that each annotator sees (n_annotators, n_each), assigned evenly in turn, and their number."""
    total = n_annotators * n_each if n_distinct is None else n_distinct
    if total < n_each:
        raise ValueError(f"{name}: {total} are fewer than the {n_each} that each annotator sees")
    return np.arange(n_annotators * n_each).reshape(n_annotators, n_each) % total, total


def _within(values: FloatArray, bounds: tuple[float, float], name: str) -> FloatArray:
    if values.ndim != 1 or len(values) == 0 or not np.all((values >= bounds[0]) & (values <= bounds[1])):
        raise ValueError(f"{name}: {values.tolist()} is not a list of numbers in {bounds[0]:g}..{bounds[1]:g}")
    return values


def _refuse_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1 or not is_whole(count):
            raise ValueError(f"{name}: {count!r} is not a whole number of at least 1")
