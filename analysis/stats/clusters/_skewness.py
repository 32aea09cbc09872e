"""What unequal and skewed clusters do to the interval of a mean."""

import numpy as np

from analysis.stats.arrays import FloatArray
from analysis.stats.clusters._warnings import effective_n_clusters

# A number of one study, or of each of many.
Moment = float | FloatArray


def degrees_of_freedom(sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """Degrees of freedom of a variance over clusters: how many clusters it depends on, minus 1, and at least 1.

    Parameters
    ----------
    sums : ndarray of float, shape (..., G)
        Sum of each cluster's residuals.
    sizes : ndarray of float, shape (G,)
        Size of each cluster.

    Returns
    -------
    ndarray of float, shape (...)
        The degrees of freedom.

    Notes
    -----
    The smaller of two effective numbers of clusters, minus 1. The first, G*, is that of the sizes. The second is 3
    (sum s^2)^2 / sum s^4: about G for normal sums s, and about 3 if one cluster has nearly all the variance. By Satterthwaite, 2 /
    df is the squared coefficient of variation of the variance, which grows with the kurtosis of the sums.

    Examples
    --------
    >>> float(degrees_of_freedom(np.array([-1.0, 1.0, -1.0, 1.0]), np.ones(4)))
    3.0
    >>> float(degrees_of_freedom(np.array([-9.0] + 9 * [1.0]), np.ones(10))) < 3
    True
    """
    by_size = effective_n_clusters(sizes)
    squares = np.sum(sums**2, axis=-1)
    fourths = np.sum(sums**4, axis=-1)
    has_spread = fourths > 0
    by_sum = np.where(has_spread, 3 * squares**2 / np.where(has_spread, fourths, 1.0), by_size)
    return np.asarray(np.maximum(1.0, np.minimum(by_size, by_sum) - 1))


def combined_skewness(
    annotators: tuple[Moment, Moment], items: tuple[Moment, Moment], pairs: tuple[Moment, Moment]
) -> FloatArray:
    """Skewness of a mean over annotators and items, from sums of residuals over each and over their pairs.

    Parameters
    ----------
    annotators, items, pairs : tuple of float or ndarray
        Sum of the squares and sum of the cubes of the clusters' sums of residuals.

    Returns
    -------
    ndarray of float
        The third cumulant divided by the variance to the power 1.5; 0 without spread. The third cumulant has the terms of the variance:
        those of both ways minus that of the pairs, or those of the way with the larger variance.

    Examples
    --------
    >>> one, none = (12.0, 24.0), (0.0, 0.0)
    >>> round(float(combined_skewness(one, none, none)), 3)
    0.577
    """
    largest = np.maximum(annotators[0], items[0])
    combined = annotators[0] + items[0] - pairs[0]
    is_combined = combined > largest * (1 + 1e-9)
    thirds = np.where(annotators[0] >= items[0], annotators[1], items[1])
    squares = np.where(is_combined, combined, largest)
    thirds = np.where(is_combined, annotators[1] + items[1] - pairs[1], thirds)
    has_spread = squares > 0
    return np.asarray(np.where(has_spread, thirds / np.where(has_spread, squares, 1.0) ** 1.5, 0.0))


def unexplained_skewness(
    skewness: Moment, se: Moment, estimate: Moment, bounds: tuple[float, float] | None
) -> FloatArray:
    """Absolute skewness of a mean that the ends of the scale do not explain.

    Parameters
    ----------
    skewness, se, estimate : float or ndarray
        Skewness of the mean, its standard error and the mean.
    bounds : tuple[float, float] or None
        Ends of the scale; without them they explain nothing.

    Returns
    -------
    ndarray of float
        The skewness minus that of a mean with the same standard error whose variance is in proportion to (m - low) (high - m). `score_curve.ScoreCurve`
        allows for that one.

    Notes
    -----
    Where a variance V depends on the mean m, the third cumulant is V dV/dm: it is a natural exponential family's (Morris 1982).

    Examples
    --------
    >>> of_ninety_of_a_hundred = -0.8 / (100 * 0.09) ** 0.5
    >>> round(float(unexplained_skewness(of_ninety_of_a_hundred, 0.03, 0.9, (0, 1))), 9)
    0.0
    """
    if bounds is None:
        return np.asarray(np.abs(skewness))
    room = np.asarray((estimate - bounds[0]) * (bounds[1] - estimate))
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = np.where(room > 0, se * (bounds[0] + bounds[1] - 2 * estimate) / room, 0.0)
    return np.asarray(np.abs(skewness - explained))
