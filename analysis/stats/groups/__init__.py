"""Comparisons of groups: study arms, domains, training conditions.

There are three kinds of data. One value per annotator (for example an accuracy): analysis of variance and
pairwise comparisons, as in papers. One row per answer: contrasts of cell means whose rows share annotators and
items, for claims beyond these people and texts. Counts of people: who was lost, and from which arm.
And the order of arrival: whether arms were filled at the same time.
"""

from analysis.stats.groups._anova import one_way_anova, welch_anova
from analysis.stats.groups._arrivals import Arrivals, arrival_order
from analysis.stats.groups._contrasts import ConditionModel, cell_contrast, condition_by_domain_model
from analysis.stats.groups._pairwise import pairwise_comparisons, studentized_range_sf
from analysis.stats.groups._shares import Attrition, differential_attrition, independence_test, share_difference

__all__ = [
    "Arrivals",
    "Attrition",
    "ConditionModel",
    "arrival_order",
    "cell_contrast",
    "condition_by_domain_model",
    "differential_attrition",
    "independence_test",
    "one_way_anova",
    "pairwise_comparisons",
    "share_difference",
    "studentized_range_sf",
    "welch_anova",
]
