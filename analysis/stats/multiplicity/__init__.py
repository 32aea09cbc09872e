"""Adjustment of p-values in declared families of tests.

A family is the list of comparisons that a study planned. A comparison that could not be tested (no annotators
left, no variance) still counts, with p = 1. Otherwise excluding annotators would make the other tests more
significant.
"""

from analysis.stats.multiplicity._families import (
    STAR_SCHEMES,
    Family,
    Gate,
    adjust_detectable_difference,
    adjust_pvalues_and_intervals_of_family,
    pvalue_stars,
)
from analysis.stats.multiplicity._pvalues import (
    METHODS,
    adjust_among,
    behind_gate,
    benjamini_hochberg,
    bonferroni,
    holm,
    hommel,
)

__all__ = [
    "METHODS",
    "STAR_SCHEMES",
    "Family",
    "Gate",
    "adjust_among",
    "adjust_detectable_difference",
    "adjust_pvalues_and_intervals_of_family",
    "behind_gate",
    "benjamini_hochberg",
    "bonferroni",
    "holm",
    "hommel",
    "pvalue_stars",
]
