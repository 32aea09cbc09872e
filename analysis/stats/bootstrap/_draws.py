"""Draws of bootstrap weights, and ratios over them."""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    FloatArray,
    matrix,
)

RESAMPLES = 9999
BLOCK = 512


def multinomial_weights(n_units: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield how often each unit is drawn in each bootstrap sample.

    Parameters
    ----------
    n_units, resamples : int
        Number of units, and of samples.
    rng : numpy.random.Generator
        Source of the random draws.

    Yields
    ------
    ndarray of float, shape (up to 512, n_units)
        A block of samples.

    Examples
    --------
    >>> sum(block.shape[0] for block in multinomial_weights(5, 1000, np.random.default_rng(0)))
    1000
    """
    for start in range(0, resamples, BLOCK):
        size = min(BLOCK, resamples - start)
        drawn = rng.integers(0, n_units, size=(size, n_units))
        drawn += np.arange(size)[:, None] * n_units
        yield np.bincount(drawn.ravel(), minlength=size * n_units).reshape(size, n_units).astype(np.float64)


def unnormalised_dirichlet_weights(n_units: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield weights of the Bayesian bootstrap: standard exponentials that are not divided by their sum.

    Each yield is a block of draws with the shape (up to 512, n_units), and all blocks together have `resamples` draws.
    The method is that of Rubin 1981, The Bayesian bootstrap.

    >>> next(unnormalised_dirichlet_weights(3, 2, np.random.default_rng(0))).shape
    (2, 3)
    """
    for start in range(0, resamples, BLOCK):
        yield rng.standard_exponential(size=(min(BLOCK, resamples - start), n_units))


def ratio_draws(sums: npt.ArrayLike, counts: npt.ArrayLike, weights: Iterator[FloatArray]) -> FloatArray:
    """Resampled ratios of several columns: (weights @ sums) / (weights @ counts).

    Parameters
    ----------
    sums, counts : array_like, shape (n_units, n_columns)
        Each unit's part of the numerator and the denominator; 0 and 0 if it has none.
    weights : iterator of ndarray, shape (block, n_units)
        Weights, for example from `multinomial_weights`.

    Returns
    -------
    ndarray of float, shape (resamples, n_columns)
        The ratios; NaN if nothing was drawn.

    Raises
    ------
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> weights = iter([np.array([[2.0, 0.0], [1.0, 1.0]])])
    >>> ratio_draws([[1.0], [3.0]], [[1.0], [2.0]], weights).ravel().round(4).tolist()
    [1.0, 1.3333]
    """
    numerators, denominators = matrix(sums, "sums"), matrix(counts, "counts")
    if numerators.shape != denominators.shape:
        raise ValueError(f"counts: shape {denominators.shape} where sums has {numerators.shape}")
    # Without missing answers all columns share one denominator; computing it once halves the work.
    kinds: dict[bytes, int] = {}
    kind = [kinds.setdefault(column.tobytes(), len(kinds)) for column in np.ascontiguousarray(denominators.T)]
    distinct = denominators[:, [kind.index(number) for number in range(len(kinds))]]
    draws = []
    for block in weights:
        with np.errstate(invalid="ignore", divide="ignore"):
            draws.append((block @ numerators) / (block @ distinct)[:, kind])
    return np.concatenate(draws)


def monte_carlo_error(share: float, resamples: int) -> float:
    """Standard error of a share of resamples, sqrt(p (1 - p) / B).

    Parameters
    ----------
    share : float
        The share p.
    resamples : int
        Number of resamples B.

    Returns
    -------
    float
        The standard error.

    Examples
    --------
    >>> round(monte_carlo_error(0.05, 9999), 5)
    0.00218
    """
    return math.sqrt(share * (1 - share) / resamples)
