"""The effective number of clusters, and warnings about few or unequal clusters."""

import math

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    IntArray,
    vector,
)
from analysis.stats.results import ResultWarning

# Below FEW_CLUSTERS (effective) clusters an interval is doubtful; below TOO_FEW_CLUSTERS there is no test.
FEW_CLUSTERS = 20
TOO_FEW_CLUSTERS = 6
# With fewer items a t interval over items is not valid.
TOO_FEW_ITEMS = 5
# With more skewed clusters a t interval is not valid; see `abs_skewness_of_clustered_mean`.
MAX_SKEWNESS = 0.35
DOMINANT_SHARE = 0.1


def effective_n_clusters(sizes: npt.ArrayLike) -> float:
    """Effective number of clusters, G* = N^2 / sum(n_g^2).

    Parameters
    ----------
    sizes : array_like, shape (G,)
        Rows in each cluster.

    Returns
    -------
    float
        The number of equally large clusters with the same weight; G if all are equal.

    Examples
    --------
    >>> effective_n_clusters([5, 5, 5, 5]), round(effective_n_clusters([17, 1, 1, 1]), 2)
    (4.0, 1.37)
    """
    array = vector(sizes, "sizes")
    return float(np.sum(array)) ** 2 / float(np.sum(array**2))


def abs_skewness_of_clustered_mean(residuals: FloatArray, codes: IntArray) -> float:
    """Skewness of the clusters' sums of residuals, divided by the square root of their number.

    Parameters
    ----------
    residuals : ndarray of float, shape (n_rows,)
        Weighted values minus their mean.
    codes : ndarray of int, shape (n_rows,)
        Integer codes of the clusters, from 0.

    Returns
    -------
    float
        The absolute value; 0 without spread. The error of a t interval grows with it (Edgeworth's expansion).

    Examples
    --------
    >>> round(abs_skewness_of_clustered_mean(np.array([-1.0, -1.0, -1.0, 3.0]), np.arange(4)), 3)
    0.577
    """
    sums = np.bincount(codes, residuals)
    spread = float(np.sqrt(np.mean(sums**2)))
    if spread < MIN_SPREAD:
        return 0.0
    return abs(float(np.mean(sums**3))) / spread**3 / math.sqrt(len(sums))


def cluster_warnings(
    sizes: npt.ArrayLike, *, name: str = "annotator", fewest: int = TOO_FEW_CLUSTERS
) -> tuple[ResultWarning, ...]:
    """Return the warnings about few or unequal clusters.

    Parameters
    ----------
    sizes : array_like, shape (G,)
        Rows in each cluster.
    name : str, default 'annotator'
        Name of a cluster in the warnings.
    fewest : int, default TOO_FEW_CLUSTERS
        With fewer clusters there is no test.

    Returns
    -------
    tuple[ResultWarning, ...]
        `few_clusters` if G* is below 20 (severity block with fewer than `fewest` clusters); `dominant_annotator` if one cluster gave more than
        a tenth of the answers.

    Examples
    --------
    >>> [warning.code for warning in cluster_warnings([5] * 30)]
    []
    >>> [(warning.code, warning.severity) for warning in cluster_warnings([5] * 4 + [1])]
    [('few_clusters', 'block')]
    """
    array = vector(sizes, "sizes")
    effective = effective_n_clusters(array)
    warnings = []
    if effective < FEW_CLUSTERS:
        severity = "block" if len(array) < fewest else "warn"
        warnings.append(
            ResultWarning("few_clusters", severity, {"cluster": name, "n_clusters": len(array), "effective": effective})
        )
    largest = float(array.max()) / float(array.sum())
    # With ten clusters or fewer an equal share is already a tenth; `few_clusters` covers that case.
    if len(array) > 1 / DOMINANT_SHARE and largest > DOMINANT_SHARE:
        warnings.append(ResultWarning("dominant_annotator", "warn", {"cluster": name, "largest_share": largest}))
    return tuple(warnings)


def two_way_warnings(
    annotator_codes: IntArray, item_codes: IntArray, *, unit: str = "annotator"
) -> tuple[ResultWarning, ...]:
    """Return the warnings of `cluster_warnings` for annotators, and for items if they are few.

    Parameters
    ----------
    annotator_codes, item_codes : ndarray of int, shape (n_rows,)
        Integer codes.
    unit : str, default 'annotator'
        Name of an annotator in the warnings.

    Returns
    -------
    tuple[ResultWarning, ...]
        The warnings.

    Examples
    --------
    >>> [warning.detail["cluster"] for warning in two_way_warnings(np.arange(60) // 2, np.arange(60) % 3)]
    ['item']
    """
    of_items = cluster_warnings(np.bincount(item_codes), name="item", fewest=TOO_FEW_ITEMS)
    few = tuple(warning for warning in of_items if warning.code == "few_clusters")
    return (*cluster_warnings(np.bincount(annotator_codes), name=unit), *few)
