"""Ratings of two systems that nobody judged side by side, and clusters of systems as in shared tasks.

If annotators rate both systems for the same prompt, use `ratings`, which compares within annotators. Here the
ratings of x and y are compared as two samples. Annotators and prompts both are samples: annotators may have judged
one system only, and the prompts of x and y may be the same or not. An annotator or prompt with ratings of both
systems is one cluster, so an equal effect on both cancels from the standard error. The clusters of systems are
those of the translation shared tasks: all systems above a line beat all systems below it.

References: Brunner and Munzel 2000, The nonparametric Behrens-Fisher problem; Cameron, Gelbach and Miller 2011,
Robust inference with multiway clustering; Bell and McCaffrey 2002, Bias reduction in standard errors for linear
regression with multi-stage samples; Bojar et al. 2016, Findings of the 2016 Conference on Machine Translation,
section 3, for the clusters.
"""

from analysis.stats.unpaired._difference import mean_difference
from analysis.stats.unpaired._superiority import probability_of_superiority
from analysis.stats.unpaired._systems import SystemClusters, significance_clusters

__all__ = ["SystemClusters", "mean_difference", "significance_clusters", "probability_of_superiority"]
