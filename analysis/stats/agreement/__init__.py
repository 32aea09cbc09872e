"""Agreement of annotators, and the reliability of their mean scores.

Agreement describes the people and the question as well as quality: low agreement on a question of taste means
that tastes differ. The numbers get no adjectives. A coefficient corrected for chance also depends on how often
each answer is given, so the report shows the share of agreement and the prevalence next to each coefficient.
"""

from analysis.stats.agreement._alpha import LEVELS, Distance, krippendorff_alpha
from analysis.stats.agreement._concordance import kendall_w
from analysis.stats.agreement._kappa import fleiss_kappa, gwet_ac1
from analysis.stats.agreement._places import PositionSystemAgreement, agreement_by_position_and_by_system
from analysis.stats.agreement._split_half import split_half_reliability
from analysis.stats.agreement._tables import (
    as_label_list,
    category_codes,
    category_counts_by_unit,
    value_counts_by_unit,
)

__all__ = [
    "Distance",
    "LEVELS",
    "PositionSystemAgreement",
    "category_codes",
    "category_counts_by_unit",
    "kendall_w",
    "value_counts_by_unit",
    "fleiss_kappa",
    "gwet_ac1",
    "krippendorff_alpha",
    "as_label_list",
    "agreement_by_position_and_by_system",
    "split_half_reliability",
]
