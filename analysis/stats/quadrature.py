"""Nodes and weights for numerical integration, computed once for each number of nodes."""

from functools import cache

import numpy as np

from analysis.stats.arrays import FloatArray


@cache
def gauss_legendre(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes in -1..1 and the weights of the Gauss-Legendre rule; both of shape (n_nodes,) and read-only.

    >>> nodes, weights = gauss_legendre(3)
    >>> round(float(weights @ nodes**4), 12)
    0.4
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
