"""Rankings of systems from pairwise choices: Davidson's model with ties, Bradley and Terry's without.

P(i beats j) = e^{b_i} / D, P(tie) = nu e^{(b_i + b_j) / 2} / D, D = e^{b_i} + e^{b_j} + nu e^{(b_i + b_j) / 2}.
The model is log-linear, so its likelihood has one maximum, found from the K x K tables of wins and ties. nu = 0
is Bradley and Terry's model. To drop or split ties, give `fractional_bradley_terry` NaN or .5; it can also model
the place shown first.

Strengths sum to zero; only differences are tested. If earlier answers chose the next pair, the estimates are
valid and the intervals are not.

References: Davidson 1970, On extending the Bradley-Terry model to accommodate ties; Bradley and Terry 1952; Ford
1957 for when the maximum exists; Bach 2010, Self-concordant analysis for logistic regression, for the steps that
need no check.
"""

from analysis.stats.davidson._comparison import (
    PairedComparison,
    bradley_terry_strengths,
    fit_davidson,
)
from analysis.stats.davidson._ratings import PairedRatings, paired_ratings, paired_ratings_by_category

__all__ = [
    "PairedComparison",
    "PairedRatings",
    "bradley_terry_strengths",
    "fit_davidson",
    "paired_ratings",
    "paired_ratings_by_category",
]
