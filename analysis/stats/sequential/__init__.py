"""Rules that may stop a two-choice comparison while it runs, and what they may conclude.

A unit's value is 1 where A was chosen, 0 where B was, or a share in between. The published rule (Hoeffding's bound for a
fixed n, applied after every answer) is kept as it is, in both readings; it decides between two equal systems far more
often than it says. The others are e-processes: wealth that a fair game cannot be expected to grow, so that one may look
after every unit, stop for any reason, and still be wrong with probability at most 1 - level, once for all looks.

What they need is that, given all earlier units, each unit's mean is the one asked about. So units are annotators, not
labels, one value each, in the order in which they claimed their work (see `annotator_units`).

Sources: Thorleiksdottir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, section 3.2 (paper mode);
Robbins 1970 (the mixture), Waudby-Smith and Ramdas 2024 (betting), Howard et al. 2021 (confidence sequences).
"""

from analysis.stats.sequential._boundaries import (
    READINGS,
    Boundaries,
    Crossings,
    beta_binomial_boundaries,
    crossings,
    hoeffding_boundaries,
    hoeffding_radius,
    stitched_boundaries,
    stitched_radius,
)
from analysis.stats.sequential._paper import hoeffding_decision
from analysis.stats.sequential._processes import (
    PROCESSES,
    anytime_pvalues,
    beta_binomial_interval,
    confidence_sequence,
    log_e_beta_binomial,
)
from analysis.stats.sequential._remaining import RemainingUnits, expected_remaining
from analysis.stats.sequential._units import AnnotatorUnits, annotator_units
from analysis.stats.sequential._verdicts import SequentialResult, sequential_test

__all__ = [
    "Boundaries",
    "Crossings",
    "PROCESSES",
    "READINGS",
    "RemainingUnits",
    "SequentialResult",
    "AnnotatorUnits",
    "annotator_units",
    "anytime_pvalues",
    "beta_binomial_boundaries",
    "beta_binomial_interval",
    "confidence_sequence",
    "crossings",
    "expected_remaining",
    "hoeffding_boundaries",
    "hoeffding_decision",
    "hoeffding_radius",
    "log_e_beta_binomial",
    "sequential_test",
    "stitched_boundaries",
    "stitched_radius",
]
