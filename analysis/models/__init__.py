"""Models of analyses, screenings, metrics, judges and API tokens. Those of codings are in ``analysis.coding.models``."""

from analysis.coding.models import Coding, CodingItem, CodingSample, CodingSeat

from .judge_checks import JudgeCheck, JudgeCheckOutput, JudgeCheckResult
from .metrics import LARGEST_SCORE, CalibratedResult, Metric, MetricsComparison, MetricScore, PairScore
from .runs import AnalysisRun, AnnotatorScreening, Figure
from .tokens import ApiToken

__all__ = [
    "LARGEST_SCORE",
    "AnalysisRun",
    "AnnotatorScreening",
    "ApiToken",
    "CalibratedResult",
    "Coding",
    "CodingItem",
    "CodingSample",
    "CodingSeat",
    "Figure",
    "JudgeCheck",
    "JudgeCheckOutput",
    "JudgeCheckResult",
    "Metric",
    "MetricScore",
    "MetricsComparison",
    "PairScore",
]
