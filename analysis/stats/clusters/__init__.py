"""Means and regressions with clustered standard errors: the unit is the cluster (annotator or item), not the row.

The default variance is CV3, the jackknife that leaves out one cluster, with G* - 1 degrees of freedom. G* = N^2 /
sum(n_g^2) is the effective number of clusters. CR1 is kept for the paper mode. If a few annotators gave most of
the answers, CR1 intervals can cover as little as 62 % of the time. No interval ignores clusters.
"""

from analysis.stats.clusters._means import clustered_mean, t_estimate, two_way_clustered_mean
from analysis.stats.clusters._regression import Regression, clustered_regression
from analysis.stats.clusters._variances import (
    TwoWayVariance,
    VarianceComponents,
    cr1_variance,
    cv3_variance,
    two_way_variance,
    variance_components,
)
from analysis.stats.clusters._warnings import TOO_FEW_CLUSTERS, cluster_warnings, effective_n_clusters, two_way_warnings

__all__ = [
    "VarianceComponents",
    "Regression",
    "TOO_FEW_CLUSTERS",
    "TwoWayVariance",
    "variance_components",
    "cluster_warnings",
    "clustered_mean",
    "clustered_regression",
    "cr1_variance",
    "cv3_variance",
    "effective_n_clusters",
    "t_estimate",
    "two_way_clustered_mean",
    "two_way_variance",
    "two_way_warnings",
]
