"""Codes that coders give to comments: one code or a set of labels each, and the agreement of coders.

An empty set of labels is an answer: the coder read the comment and no label applies. None means that the coder
gave no answer. The two are kept apart.
"""

from analysis.stats.coding._agreement import cohen_kappa, kappa_by_label, label_set_alpha
from analysis.stats.coding._labels import MERGE_RULES, masi_distance
from analysis.stats.coding._shares import (
    category_share_differences,
    label_shares_by_category,
    merged_label_counts_of_coded_units,
)

__all__ = [
    "MERGE_RULES",
    "category_share_differences",
    "label_shares_by_category",
    "cohen_kappa",
    "kappa_by_label",
    "merged_label_counts_of_coded_units",
    "label_set_alpha",
    "masi_distance",
]
