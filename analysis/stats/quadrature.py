"""Nodes and weights of numerical integration, computed once for each number of nodes."""

from functools import cache

import numpy as np

from analysis.stats.arrays import FloatArray


@cache
def gauss_legendre(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """The nodes in -1..1 and the weights of the Gauss-Legendre rule; both of shape (count,), and not to be written to.

    >>> nodes, weights = gauss_legendre(3)
    >>> round(float(weights @ nodes**4), 12)
    0.4
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
