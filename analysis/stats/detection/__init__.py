"""Human or machine: how well annotators distinguish the two, and which answer they prefer.

Accuracy mixes two things. Sensitivity is how far machine and human texts are apart for an annotator; the
criterion is how readily the annotator says "machine". Signal detection separates them. A machine text is the
signal: "machine" for a machine text is a hit, for a human text a false alarm.

Answers are rows: `ratings` on the scale (1 definitely human .. 4 definitely machine) or `says` (1 "machine", 0
"human"), `is_machine` the truth, `annotators` and `items` (texts) the labels. With `items` the claim is about
texts like these, without `items` about these texts only.

Reference: Clark et al. 2021, All That's 'Human' Is Not Gold; signal detection after Macmillan and Creelman 2005.
"""

from analysis.stats.detection._accuracy import (
    change_per_session_position,
    clustered_accuracy,
    confident_accuracy_gain,
    human_answer_bias,
    mean_annotator_accuracy,
    share_answered_human,
)
from analysis.stats.detection._answers import ratings_to_machine_answers, score_correct_answers
from analysis.stats.detection._auc import graded_auc
from analysis.stats.detection._cell import HumanLikeness, human_likeness
from analysis.stats.detection._measures import (
    AnnotatorScores,
    DetectionMeasures,
    SignalDetection,
    accuracy_by_annotator,
    correct_count_histograms_by_n_items,
    detection_measures,
    measures_from_counts,
    signal_detection,
)
from analysis.stats.detection._signal import (
    ConditionSensitivity,
    d_prime_and_criterion_by_condition,
    marginal_criterion,
    marginal_d_prime,
)
from analysis.stats.detection._within import mantel_haenszel_log_odds_ratio, random_criterion_d_prime

__all__ = [
    "AnnotatorScores",
    "ConditionSensitivity",
    "DetectionMeasures",
    "HumanLikeness",
    "SignalDetection",
    "clustered_accuracy",
    "mean_annotator_accuracy",
    "accuracy_by_annotator",
    "confident_accuracy_gain",
    "marginal_criterion",
    "human_answer_bias",
    "detection_measures",
    "graded_auc",
    "human_likeness",
    "score_correct_answers",
    "measures_from_counts",
    "random_criterion_d_prime",
    "ratings_to_machine_answers",
    "correct_count_histograms_by_n_items",
    "marginal_d_prime",
    "d_prime_and_criterion_by_condition",
    "change_per_session_position",
    "share_answered_human",
    "signal_detection",
    "mantel_haenszel_log_odds_ratio",
]
