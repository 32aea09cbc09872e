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
    accuracy,
    accuracy_paper,
    confidence_gain,
    detection_bias,
    session_drift,
    share_human,
)
from analysis.stats.detection._answers import is_correct, says_machine
from analysis.stats.detection._auc import graded_auc
from analysis.stats.detection._cell import HumanLikeness, human_likeness
from analysis.stats.detection._measures import (
    AnnotatorScores,
    DetectionMeasures,
    SignalDetection,
    annotator_scores,
    detection_measures,
    measures_from_counts,
    rating_histogram,
    score_histogram,
    signal_detection,
)
from analysis.stats.detection._signal import ConditionSensitivity, criterion, sensitivity, sensitivity_by_condition
from analysis.stats.detection._within import random_criterion_sensitivity, stratified_sensitivity

__all__ = [
    "AnnotatorScores",
    "ConditionSensitivity",
    "DetectionMeasures",
    "HumanLikeness",
    "SignalDetection",
    "accuracy",
    "accuracy_paper",
    "annotator_scores",
    "confidence_gain",
    "criterion",
    "detection_bias",
    "detection_measures",
    "graded_auc",
    "human_likeness",
    "is_correct",
    "measures_from_counts",
    "random_criterion_sensitivity",
    "rating_histogram",
    "says_machine",
    "score_histogram",
    "sensitivity",
    "sensitivity_by_condition",
    "session_drift",
    "share_human",
    "signal_detection",
    "stratified_sensitivity",
]
