"""Bets on a known number of units of any size, against "the ratio of sums is m".

`betting` is for values of equal weight that come one after the other. Where all units are known, stakes can be larger.
"""

import math

import numpy as np

from analysis.stats.arrays import FloatArray
from analysis.stats.betting import CELLS

# The largest share of what the largest unit could lose that is staked. Only that unit can lose so much.
FULL_STAKE = 0.95
SMALLEST_VARIANCE = 1e-9


def final_log_wealth_of_ratio(means: FloatArray, shares: FloatArray, nulls: FloatArray, level: float) -> FloatArray:
    """Logarithm of the wealth after all of n units against "the ratio of sums is m", for units of any size.

    Parameters
    ----------
    means, shares : ndarray of float, shape (n,)
        Mean of each unit's answers in 0..1, in the order in which units enter, and its size divided by the largest.
    nulls : ndarray of float, shape (k,)
        Ratios under the null hypothesis, in 0..1.
    level : float
        Level for which the stakes are tuned, between 0 and 1.

    Returns
    -------
    ndarray of float, shape (k,)
        The logarithm.

    Notes
    -----
    Unit i moves the bet by z[i] = share[i] (mean[i] - m), at least -m and at most 1 - m. The stake of unit t is
    sqrt(2 log(2 / (1 - level)) / (n v[t])) with v[t] = (m (1 - m) + z[1]^2 + ... + z[t-1]^2) / t, cut at FULL_STAKE / m
    upwards and FULL_STAKE / (1 - m) downwards. The wealth is the mean of two products, of 1 + stake z and of 1 - stake z.

    The wealth is an e-value. No factor is negative. Units are independent draws of a size and a mean with
    E[size (mean - m)] = 0, so m is the ratio. A stake depends only on earlier units, so each factor has the expectation 1
    given these, and so has the product. This takes the largest size as known: no unit could be larger than the
    largest of the sample, or sizes say nothing about answers, and then the proof holds given all sizes. The stake must not
    depend on the size of its own unit: E[stake(size) size (mean - m)] = 0 needs equal means of large and small units.

    Examples
    --------
    >>> wealth = final_log_wealth_of_ratio(np.ones(4), np.array([1.0, 0.5, 0.5, 1.0]), np.array([0.5, 1.0]), 0.95)
    >>> np.round(wealth, 3).tolist()
    [1.42, 0.0]
    """
    n, block = len(means), max(1, CELLS // max(1, len(means)))
    wealth = []
    for some in np.split(nulls, range(block, len(nulls), block)):
        m = some[:, None]
        moves = shares * (means - m)
        # A mean of 0 or 1 allows no variance, but a stake needs some.
        squares = np.maximum(m * (1 - m), SMALLEST_VARIANCE) + np.cumsum(moves**2, axis=1) - moves**2
        stakes = np.sqrt(2 * math.log(2 / (1 - level)) * np.arange(1, n + 1) / (n * squares))
        with np.errstate(divide="ignore"):
            up = np.log1p(np.minimum(stakes, FULL_STAKE / m) * moves).sum(axis=1)
            down = np.log1p(-np.minimum(stakes, FULL_STAKE / (1 - m)) * moves).sum(axis=1)
        wealth.append(np.logaddexp(up, down) - math.log(2))
    return np.concatenate(wealth)
