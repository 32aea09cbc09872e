"""Two-choice comparison: which of two outputs is better, by how many labels an item, and how far people agree.

A label is 1 where A was chosen and 0 where B was; a request is one item shown to as many annotators as the labelling
strategy asks for. Systems are A and B whatever side of the screen they stood on; the side is an argument of its own.

Source: Thorleiksdottir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, sections 3.1 and 5.
"""

from analysis.stats.choice._effort import Effort, effort_summary, effort_to_decision, resampled_effort
from analysis.stats.choice._preference import choice_agreement, position_effect, preference, repetition_difference
from analysis.stats.choice._strategies import (
    COUNTINGS,
    ItemDecisions,
    RequestProbabilities,
    Strategy,
    item_decisions,
    probabilities_from_labels,
)

__all__ = [
    "COUNTINGS",
    "Effort",
    "ItemDecisions",
    "RequestProbabilities",
    "Strategy",
    "choice_agreement",
    "effort_summary",
    "effort_to_decision",
    "item_decisions",
    "probabilities_from_labels",
    "position_effect",
    "preference",
    "repetition_difference",
    "resampled_effort",
]
