"""Ratings of single outputs: Likert scales and continuous scales.

A difference of mean ratings assumes that the points of the scale are equally far apart for every annotator. The
probability of superiority assumes only their order; it is the default.

Reference: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, sections 3, 4 and 6.
"""

from analysis.stats.ratings._differences import (
    ReversalGuard,
    mean_difference,
    paired_delta_paper,
    rank_tests,
    reversal_guard,
    superiority,
)
from analysis.stats.ratings._mixed import crossed_mixed_model
from analysis.stats.ratings._ordinal import cumulative_logit
from analysis.stats.ratings._position import position_effect
from analysis.stats.ratings._scales import (
    RescaledRatings,
    ZScores,
    expected_utility,
    rescale_to_references,
    scale_usage,
    z_scores,
)

__all__ = [
    "RescaledRatings",
    "ReversalGuard",
    "ZScores",
    "rescale_to_references",
    "crossed_mixed_model",
    "cumulative_logit",
    "expected_utility",
    "mean_difference",
    "paired_delta_paper",
    "position_effect",
    "rank_tests",
    "reversal_guard",
    "superiority",
    "scale_usage",
    "z_scores",
]
