"""Ratings of two systems that nobody judged side by side, and systems in clusters as shared tasks print them.

Where annotators rate both systems for the same prompt, use `ratings`: it compares within annotators. Here nobody did, so
the ratings of x are compared with those of y as two samples. Annotators and prompts are both samples of more: people may
have judged one system alone, or each system on other prompts, and the prompts of x and y may be the same or not. An
annotator or a prompt that has ratings of both systems is one cluster, so whatever it adds to both cancels from the
standard error. The clusters of systems are those of the translation shared tasks: a line between systems that all those
above beat all those below.

Sources: Brunner and Munzel 2000, The nonparametric Behrens-Fisher problem; Cameron, Gelbach and Miller 2011, Robust
inference with multiway clustering; Bell and McCaffrey 2002, Bias reduction in standard errors for linear regression with
multi-stage samples; Bojar et al. 2016, Findings of the 2016 Conference on Machine Translation, section 3, for the clusters.
"""

from analysis.stats.unpaired._difference import mean_difference
from analysis.stats.unpaired._superiority import probability_of_superiority
from analysis.stats.unpaired._systems import SystemClusters, significance_clusters

__all__ = ["SystemClusters", "mean_difference", "significance_clusters", "probability_of_superiority"]
