"""How far a sample is from the assumptions of a t test."""

import numpy as np

from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
)

# If this share of the answers is equal and n is below CEILING_N, neither t nor a bootstrap covers the mean.
CEILING_SHARE = 0.9
CEILING_N = 100
# With this skewness the t test rejects too often in small samples; its error falls with skewness^2 / n.
# The two meet at n = 30; at n = 90 a skewness of 2.6 still gives .08 where .05 is promised.
SKEW = 1.5
SKEW_PER_N = SKEW**2 / 30


def skew(values: FloatArray) -> float:
    """Compute the moment coefficient of skewness, m3 / m2^(3/2), of values without missing ones.

    The skewness is 0 if the values do not vary.

    >>> round(skew(np.array([0.0, 0.0, 0.0, 1.0])), 4)
    1.1547
    """
    centred = values - np.mean(values)
    second = float(np.mean(centred**2))
    return 0.0 if second < MIN_SPREAD**2 else float(np.mean(centred**3)) / second**1.5


def most_frequent_value_share(values: FloatArray) -> float:
    """Share of the most frequent value.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Values, without missing ones.

    Returns
    -------
    float
        The share.

    Examples
    --------
    >>> most_frequent_value_share(np.array([1.0, 0.5, 1.0, 1.0]))
    0.75
    """
    _, counts = np.unique(values, return_counts=True)
    return float(counts.max()) / len(values)
