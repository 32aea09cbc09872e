"""How well an automatic metric, or a judge that is a model, agrees with people: on systems, on items, against another.

Human and metric scores are tables of items by systems, higher is better, NaN missing; a cell that lacks either is left
out of both. Intervals resample items and average both sides anew. They treat each human score as given: where few
annotators stand behind them, the agreement is one with these annotators.
"""

from analysis.stats.metrics._comparison import compare_metrics
from analysis.stats.metrics._segments import segment_tau, tie_calibrated_accuracy
from analysis.stats.metrics._systems import STATISTICS, pairwise_accuracy, soft_pairwise_accuracy, system_correlations

__all__ = [
    "STATISTICS",
    "compare_metrics",
    "pairwise_accuracy",
    "segment_tau",
    "soft_pairwise_accuracy",
    "system_correlations",
    "tie_calibrated_accuracy",
]
