"""Agreement of an automatic metric (or a model as judge) with people: on systems, on items, and between metrics.

Human and metric scores are tables of items by systems, higher is better, NaN is missing. A cell without one of
them is left out of both. Intervals resample items and average both sides again. Human scores are taken as given:
with few annotators, the agreement is with these annotators.
"""

from analysis.stats.metrics._comparison import compare_metrics
from analysis.stats.metrics._noise import noise_corrected_correlation
from analysis.stats.metrics._overview import MetricAgreement, MetricTable, SystemScores, metric_table
from analysis.stats.metrics._segments import segment_level_kendall_tau, tie_calibrated_accuracy
from analysis.stats.metrics._systems import (
    STATISTICS,
    pairwise_accuracy,
    soft_pairwise_accuracy,
    system_level_correlations,
)
from analysis.stats.metrics._tables import MAX_PAIRS

__all__ = [
    "MAX_PAIRS",
    "STATISTICS",
    "MetricAgreement",
    "MetricTable",
    "SystemScores",
    "compare_metrics",
    "metric_table",
    "noise_corrected_correlation",
    "pairwise_accuracy",
    "segment_level_kendall_tau",
    "soft_pairwise_accuracy",
    "system_level_correlations",
    "tie_calibrated_accuracy",
]
