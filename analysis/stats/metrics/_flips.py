"""Permutations of items' signs."""

from collections.abc import Iterator

import numpy as np

from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray


def system_pair_differences_or_zero(table: FloatArray) -> FloatArray:
    """Return the difference of every two systems on each item (n_items, n_pairs); 0 if one is missing."""
    left, right = np.triu_indices(table.shape[1], 1)
    return np.nan_to_num(table[:, left] - table[:, right])


def mask_of_scored_pairs_by_item(table: FloatArray) -> BoolArray:
    """Return whether every two systems both have a score on each item, shape (n_items, n_pairs)."""
    left, right = np.triu_indices(table.shape[1], 1)
    return np.asarray(~np.isnan(table[:, left] + table[:, right]))


def sign_flip_upper_tail_pvalues(differences: FloatArray, *, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return P(sum of sign-flipped differences > the observed sum) of each column; ties count half."""
    n = len(differences)
    observed = differences.sum(axis=0)
    slack = 1e-9 * np.maximum(MIN_SPREAD, np.abs(differences).sum(axis=0))
    is_exact = n < 60 and 2**n <= resamples
    above = np.zeros(differences.shape[1])
    for signs in sign_flip_blocks(n, resamples, is_exact, rng):
        flipped = signs @ differences
        above += np.sum(flipped > observed + slack, axis=0) + np.sum(np.abs(flipped - observed) <= slack, axis=0) / 2
    if is_exact:
        return np.asarray(above / 2**n)
    # The observed assignment counts as one of the draws, as a tie with itself.
    return np.asarray((0.5 + above) / (1 + resamples))


def sign_flip_blocks(n: int, resamples: int, is_exact: bool, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield signs of the items in blocks of shape (up to 1,024, n): all 2^n of them, or random ones."""
    total = 2**n if is_exact else resamples
    for start in range(0, total, 1024):
        size = min(1024, total - start)
        if is_exact:
            bits = (np.arange(start, start + size)[:, None] >> np.arange(n)) & 1
        else:
            bits = rng.integers(0, 2, (size, n), dtype=np.int8)
        yield np.asarray(2 * bits.astype(np.float64) - 1)
