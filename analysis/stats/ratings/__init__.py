"""Ratings of single outputs: the standard protocol on a Likert scale, and what may be said of it beyond a mean.

A difference of mean ratings assumes that the points of the scale are equally far apart in every annotator's mind. The
probability of superiority assumes only their order, and is the default; the others stand beside it.

Source: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, sections 3, 4 and 6.
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
