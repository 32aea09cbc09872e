"""Pairwise choice: which of two outputs is better, with how many labels per item, and how far annotators agree.

A label is 1 if A was chosen and 0 if B was chosen. A request is one item shown to as many annotators as the
labelling strategy asks for. A and B are systems, whatever their side of the screen; the side is a separate
argument.

Reference: Thorleiksdottir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, sections 3.1 and
5.
"""

from analysis.stats.choice._effort import (
    Effort,
    effort_from_resampled_labels,
    estimate_mean_labels_to_decision,
    simulate_effort_to_decision,
)
from analysis.stats.choice._preference import (
    annotator_weighted_preference_share,
    choice_agreement,
    preference_share_difference_by_position,
)
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
    "estimate_mean_labels_to_decision",
    "simulate_effort_to_decision",
    "item_decisions",
    "probabilities_from_labels",
    "preference_share_difference_by_position",
    "annotator_weighted_preference_share",
    "effort_from_resampled_labels",
]
