"""What coders write beside a comment: one code or a set of labels each, and how far two coders mean the same.

A set of labels may be empty: the coder looked and no label applies, which is an answer. A coder who did not look gave
none, which is None. The two are never mixed.
"""

from analysis.stats.coding._agreement import cohen_kappa, label_agreement, label_set_alpha
from analysis.stats.coding._labels import DISTANCES, MERGE_RULES, jaccard_distance, masi_distance
from analysis.stats.coding._shares import category_share_differences, category_shares, label_counts

__all__ = [
    "DISTANCES",
    "MERGE_RULES",
    "category_share_differences",
    "category_shares",
    "cohen_kappa",
    "jaccard_distance",
    "label_agreement",
    "label_counts",
    "label_set_alpha",
    "masi_distance",
]
