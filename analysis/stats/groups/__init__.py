"""Comparing groups: arms of a study, domains, conditions of training.

Two kinds of data come here. One value an annotator (an accuracy, say): analysis of variance and its pairwise
comparisons, as papers do. One row an answer: contrasts of the means of cells whose rows share annotators and items, so
that a claim reaches beyond these people and these texts. And counts of people: who was lost, and from which arm.
"""

from analysis.stats.groups._anova import one_way_anova, welch_anova
from analysis.stats.groups._contrasts import ConditionModel, cell_contrast, condition_model
from analysis.stats.groups._pairwise import pairwise_comparisons, studentized_range_sf
from analysis.stats.groups._shares import Attrition, differential_attrition, independence_test, share_difference

__all__ = [
    "Attrition",
    "ConditionModel",
    "cell_contrast",
    "condition_model",
    "differential_attrition",
    "independence_test",
    "one_way_anova",
    "pairwise_comparisons",
    "share_difference",
    "studentized_range_sf",
    "welch_anova",
]
