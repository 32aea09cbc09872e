"""Ratings of two systems that nobody judged side by side.

If annotators rate both systems for the same prompt, use `ratings`, which compares within annotators. Here the
ratings of x and y are compared as two samples. Annotators and prompts both are samples: annotators may have judged
one system only, and the prompts of x and y may be the same or not. An annotator or prompt with ratings of both
systems is one cluster, so an equal effect on both cancels from the standard error.

References: Brunner and Munzel 2000, The nonparametric Behrens-Fisher problem; Cameron, Gelbach and Miller 2011,
Robust inference with multiway clustering; Bell and McCaffrey 2002, Bias reduction in standard errors for linear
regression with multi-stage samples.
"""

from analysis.stats.unpaired._difference import mean_difference
from analysis.stats.unpaired._superiority import probability_of_superiority

__all__ = ["mean_difference", "probability_of_superiority"]
