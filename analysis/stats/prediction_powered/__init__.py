"""Human scores of a random part of the outputs, combined with judges' scores of all of them.

A judge is a metric or a language model. The combined estimate is the human one, corrected by how far the judges' scores of the
labelled outputs differ from those of all outputs. It is unbiased for any judge, because people, not judges, set its level;
a good judge makes it more precise. The labelled outputs must be a random sample of all, with equal probabilities. Each
record gives the human-only estimate first.

References: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Prediction-powered inference; Angelopoulos, Duchi and
Zrnic 2023, PPI++ (the weight); Zrnic and Candès 2024, Cross-prediction-powered inference (weights from other outputs).
"""

from analysis.stats.prediction_powered._bias import GroupBias, judge_bias_by_group
from analysis.stats.prediction_powered._differences import (
    PairOfSystems,
    prediction_powered_differences,
    prediction_powered_preferences,
)
from analysis.stats.prediction_powered._mean import prediction_powered_mean
from analysis.stats.prediction_powered._planner import JudgePlan, LabelNeed, plan_labels_with_judge
from analysis.stats.prediction_powered._records import CombinedEstimate, JudgeUse, LabelsSaved

__all__ = [
    "CombinedEstimate",
    "GroupBias",
    "JudgePlan",
    "JudgeUse",
    "LabelNeed",
    "LabelsSaved",
    "PairOfSystems",
    "judge_bias_by_group",
    "plan_labels_with_judge",
    "prediction_powered_differences",
    "prediction_powered_mean",
    "prediction_powered_preferences",
]
