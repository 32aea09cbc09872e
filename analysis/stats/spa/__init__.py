"""System-level probabilistic assessment (SPA): P[x > y] as stated by annotators, in one or both orders of naming.

For a pair (x, y), each annotator answers "what is the % chance that x is better than y?" (`xy_percent`), the same
question with y named first (`yx_percent`), or both. Answers stay on 0..100 until the last step, so that sums are
compared exactly. A row is an annotator, a column a pair. NaN is a question that was not asked or not answered.

Reference: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, sections 5 and 6, appendix B.
"""

from analysis.stats.spa._answers import BOUNDS, combine_orders
from analysis.stats.spa._exclusions import exclusion_effects, relative_exclusion_effect
from analysis.stats.spa._pairs import pair_paper, pair_recommended, pairs_recommended
from analysis.stats.spa._symmetry import order_symmetry
from analysis.stats.spa._tau import TAU, TauFlags, tau_asymmetry, tau_flags

__all__ = [
    "BOUNDS",
    "TAU",
    "TauFlags",
    "exclusion_effects",
    "relative_exclusion_effect",
    "combine_orders",
    "order_symmetry",
    "pair_paper",
    "pair_recommended",
    "pairs_recommended",
    "tau_asymmetry",
    "tau_flags",
]
