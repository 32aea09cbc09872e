"""System-level probabilistic assessment (SPA): P[x > y] as stated by annotators, in one or both orders of naming.

For a pair (x, y), each annotator answers "what is the % chance that x is better than y?" (`xy_percent`), the same
question with y named first (`yx_percent`), or both. Answers stay on 0..100 until the last step, so that sums are
compared exactly. A row is an annotator, a column a pair. NaN is a question that was not asked or not answered.

Reference: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, sections 5 and 6, appendix B.
"""

from analysis.stats.spa._answers import BOUNDS, combine_orders
from analysis.stats.spa._exclusions import exclusion_effects_by_rule
from analysis.stats.spa._pairs import pair_preference_paper, pair_preferences_recommended
from analysis.stats.spa._symmetry import naming_order_effect
from analysis.stats.spa._tau import TAU, TauFlags, gap_preference_correlation, tau_incoherence_flags

__all__ = [
    "BOUNDS",
    "TAU",
    "TauFlags",
    "exclusion_effects_by_rule",
    "combine_orders",
    "naming_order_effect",
    "pair_preference_paper",
    "pair_preferences_recommended",
    "gap_preference_correlation",
    "tau_incoherence_flags",
]
