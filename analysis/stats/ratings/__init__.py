"""Ratings of single outputs: Likert scales and continuous scales.

A difference of mean ratings assumes that the points of the scale are equally far apart for every annotator. The
probability of superiority assumes only their order; it is the default.

Reference: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, sections 3, 4 and 6.
"""

from analysis.stats.ratings._differences import (
    ReversalGuard,
    paired_difference_paper,
    paired_mean_difference,
    probability_of_superiority,
    rounding_reversal_guard,
    sign_and_wilcoxon_tests,
)
from analysis.stats.ratings._ordinal import cumulative_logit
from analysis.stats.ratings._position import rating_change_per_position
from analysis.stats.ratings._scales import (
    RescaledRatings,
    ZScores,
    expected_utility,
    rescale_to_references,
    z_scores_by_annotator,
)

__all__ = [
    "RescaledRatings",
    "ReversalGuard",
    "ZScores",
    "rescale_to_references",
    "cumulative_logit",
    "expected_utility",
    "paired_mean_difference",
    "paired_difference_paper",
    "rating_change_per_position",
    "sign_and_wilcoxon_tests",
    "rounding_reversal_guard",
    "probability_of_superiority",
    "z_scores_by_annotator",
]
