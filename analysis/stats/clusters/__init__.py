"""Means and regressions whose rows share annotators (and items): the unit is the cluster, never the row.

The default interval is CV3, the jackknife that leaves one annotator out, on G* - 1 degrees of freedom, where
G* = N^2 / sum(n_g^2) is the number of equally large annotators that would weigh the same. CR1 is kept for the papers'
own mode; with a few annotators who gave most of the answers it covers as little as 62 % of the time. An interval that
ignores clusters is not offered.
"""

from analysis.stats.clusters._means import clustered_mean, t_estimate, two_way_mean
from analysis.stats.clusters._regression import Regression, clustered_regression
from analysis.stats.clusters._variances import (
    TwoWayVariance,
    VarianceComponents,
    between_variance,
    cr1_variance,
    cv3_variance,
    two_way_variance,
)
from analysis.stats.clusters._warnings import TOO_FEW_CLUSTERS, cluster_warnings, effective_clusters, two_way_warnings

__all__ = [
    "VarianceComponents",
    "Regression",
    "TOO_FEW_CLUSTERS",
    "TwoWayVariance",
    "between_variance",
    "cluster_warnings",
    "clustered_mean",
    "clustered_regression",
    "cr1_variance",
    "cv3_variance",
    "effective_clusters",
    "t_estimate",
    "two_way_mean",
    "two_way_variance",
    "two_way_warnings",
]
