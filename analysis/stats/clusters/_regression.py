"""Least-squares regressions with clustered standard errors."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    FloatArray,
    group_sizes,
    label_codes,
    vector,
)
from analysis.stats.clusters._variances import _summed
from analysis.stats.clusters._warnings import effective_n_clusters
from analysis.stats.results import Record


@dataclass(frozen=True, slots=True)
class Regression(Record):
    """Least squares with a clustered covariance.

    `coefficients` (k,), `covariance` (k, k), `df` of the t distribution.
    """

    coefficients: FloatArray
    covariance: FloatArray
    df: float
    n_rows: int
    n_clusters: int


def clustered_regression(design: npt.ArrayLike, response: npt.ArrayLike, clusters: npt.ArrayLike) -> Regression:
    """Ordinary least squares with a clustered covariance.

    Parameters
    ----------
    design : array_like, shape (n_rows, k)
        Columns of the model, including the constant. No missing values.
    response : array_like, shape (n_rows,)
        Response. No missing values.
    clusters : array_like, shape (n_rows,)
        Label of each row's cluster.

    Returns
    -------
    Regression
        Coefficients, covariance and degrees of freedom.

    Raises
    ------
    ValueError
        If a row has a missing value, there are fewer than two clusters, or the columns are linearly dependent. Also
        if they are dependent without one of the clusters: that cluster alone then identifies a coefficient.

    Notes
    -----
    CV3: (G - 1) / G sum_g (b without g - b)(b without g - b)' with G* - 1 degrees of freedom.

    Examples
    --------
    >>> design = [[1, 0], [1, 1], [1, 0], [1, 1], [1, 0], [1, 1]]
    >>> fit = clustered_regression(design, [1, 2, 2, 3, 1, 4], [0, 0, 1, 1, 2, 2])
    >>> np.round(fit.coefficients, 4).tolist()
    [1.3333, 1.6667]
    """
    columns = np.asarray(design, dtype=np.float64)
    observed = vector(response, "response")
    if columns.ndim != 2 or columns.shape[0] != len(observed):
        raise ValueError(f"design: shape {columns.shape} where response has {len(observed)} rows")
    if np.isnan(columns).any() or np.isnan(observed).any():
        raise ValueError("design: a row with a missing value; leave it out first")
    positions, n_clusters = label_codes(np.asarray(clusters), "clusters", len(observed))
    n_rows, k = columns.shape
    if n_clusters < 2:
        raise ValueError("clusters: at least two are needed")
    if np.linalg.matrix_rank(columns) < k:
        raise ValueError("design: the columns are linearly dependent")
    sizes = group_sizes(positions, n_clusters)
    squares = _summed(columns[:, :, None] * columns[:, None, :], positions, n_clusters)
    products = _summed(columns * observed[:, None], positions, n_clusters)
    coefficients = np.linalg.solve(squares.sum(axis=0), products.sum(axis=0))
    rest = squares.sum(axis=0)[None] - squares
    if np.any(np.linalg.matrix_rank(rest) < k):
        raise ValueError("clusters: without one of them the columns are linearly dependent")
    without = np.linalg.solve(rest, (products.sum(axis=0)[None] - products)[:, :, None])[:, :, 0]
    shift = without - coefficients
    return Regression(
        coefficients,
        (n_clusters - 1) / n_clusters * (shift.T @ shift),
        max(1.0, effective_n_clusters(sizes) - 1),
        n_rows,
        n_clusters,
    )
