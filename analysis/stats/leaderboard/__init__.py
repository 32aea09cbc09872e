"""Scores of systems (0 to 100) on one fixed draw of items, and their differences.

The paper resamples annotations as if each came from a different person. If a few annotators give most of the
labels, its 95 % interval covers less than half of the time. Here the unit is the annotator, all items have the
same weight, and systems are compared on the items they share.

Reference: Genie (Khashabi et al. 2022), sections 4 and 6, appendix C.
"""

from analysis.stats.leaderboard._best_before import (
    alphas_of_submissions,
    compare_each_with_best_before,
)
from analysis.stats.leaderboard._board import Leaderboard, leaderboard
from analysis.stats.leaderboard._days import day_effects
from analysis.stats.leaderboard._equating import AnchorCell, EquatedScores, equated_scores
from analysis.stats.leaderboard._pilot import (
    DoubleLabels,
    PrecisionForCost,
    double_label_share,
    pilot_label_table,
    precision_for_cost,
)
from analysis.stats.leaderboard._precision import (
    LabellingSpread,
    design_effect,
    unilabel_and_multilabel_spread_in_points,
    worst_case_se_in_points,
)
from analysis.stats.leaderboard._renewal import rows_of_samples
from analysis.stats.leaderboard._rows import equal_item_weights
from analysis.stats.leaderboard._scores import system_score_in_points
from analysis.stats.leaderboard._stability import largest_difference

__all__ = [
    "AnchorCell",
    "DoubleLabels",
    "EquatedScores",
    "PrecisionForCost",
    "LabellingSpread",
    "Leaderboard",
    "alphas_of_submissions",
    "compare_each_with_best_before",
    "day_effects",
    "design_effect",
    "double_label_share",
    "pilot_label_table",
    "precision_for_cost",
    "equated_scores",
    "equal_item_weights",
    "unilabel_and_multilabel_spread_in_points",
    "largest_difference",
    "leaderboard",
    "system_score_in_points",
    "rows_of_samples",
    "worst_case_se_in_points",
]
