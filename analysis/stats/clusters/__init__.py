"""Means and regressions with clustered standard errors: the unit is the cluster (annotator or item), not the row.

The variance is CV3, the jackknife that leaves out one cluster, with at most G* - 1 degrees of freedom. G* = N^2 / sum(n_g^2)
is the effective number of clusters. No interval ignores clusters. The usual sandwich (CR1) is not offered: if a few
annotators gave most of the answers, its intervals can cover as little as 62 % of the time.
"""

from analysis.stats.clusters._claims import (
    annotator_prompt_clustered_mean,
    mean_of_population,
    without_interval_if_too_few,
)
from analysis.stats.clusters._means import clustered_mean, confidence_curve_test, t_estimate, weights_of_rows
from analysis.stats.clusters._models import FittedRows, ModelJackknife, ModelSpread
from analysis.stats.clusters._neighbours import NeighbourDependence, neighbour_dependence
from analysis.stats.clusters._populations import (
    DECLARED_POPULATIONS,
    PEOPLE,
    PEOPLE_AND_PROMPTS,
    too_few_prompts,
    validate_population,
)
from analysis.stats.clusters._regression import Regression, clustered_regression
from analysis.stats.clusters._skewness import combined_skewness, degrees_of_freedom, unexplained_skewness
from analysis.stats.clusters._two_way import two_way_clustered_mean
from analysis.stats.clusters._variances import (
    TwoWayVariance,
    VarianceComponents,
    combine_two_way_variances,
    cv3_variance,
    pair_variance,
    two_way_jackknife,
    variance_components,
)
from analysis.stats.clusters._warnings import (
    FEW_CLUSTERS,
    MAX_SKEWNESS,
    TOO_FEW_CLUSTERS,
    TOO_FEW_ITEMS,
    abs_skewness_of_clustered_mean,
    cluster_warnings,
    effective_n_clusters,
    two_way_warnings,
)

__all__ = [
    "DECLARED_POPULATIONS",
    "PEOPLE",
    "PEOPLE_AND_PROMPTS",
    "NeighbourDependence",
    "annotator_prompt_clustered_mean",
    "neighbour_dependence",
    "VarianceComponents",
    "FittedRows",
    "ModelJackknife",
    "ModelSpread",
    "Regression",
    "MAX_SKEWNESS",
    "FEW_CLUSTERS",
    "TOO_FEW_CLUSTERS",
    "TOO_FEW_ITEMS",
    "TwoWayVariance",
    "variance_components",
    "combine_two_way_variances",
    "combined_skewness",
    "degrees_of_freedom",
    "unexplained_skewness",
    "abs_skewness_of_clustered_mean",
    "cluster_warnings",
    "clustered_mean",
    "clustered_regression",
    "confidence_curve_test",
    "cv3_variance",
    "effective_n_clusters",
    "mean_of_population",
    "pair_variance",
    "t_estimate",
    "too_few_prompts",
    "two_way_clustered_mean",
    "two_way_jackknife",
    "two_way_warnings",
    "validate_population",
    "weights_of_rows",
    "without_interval_if_too_few",
]
