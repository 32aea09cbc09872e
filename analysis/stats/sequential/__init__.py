"""Rules that can stop a pairwise choice study while it runs, and the verdicts that they allow.

A unit's value is 1 if A was chosen, 0 if B was chosen, or a share in between. The published rule (Hoeffding's
bound for a fixed n, applied after every answer) is kept in both readings. It declares a winner between equal
systems much more often than its stated error. The other rules are e-processes. With them a study may check after
every unit and stop for any reason. The probability of an error is at most 1 - level over all checks.

E-processes need that, given all earlier units, each unit has the mean in question. So units are annotators, not
labels, with one value each, in the order in which they claimed their work (see `annotator_means_in_claim_order`).

References: Thorleiksdottir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, section 3.2
(paper mode); Robbins 1970 (the mixture), Waudby-Smith and Ramdas 2024 (betting), Howard et al. 2021 (confidence
sequences).
"""

from analysis.stats.sequential._boundaries import (
    READINGS,
    Boundaries,
    Crossings,
    beta_binomial_boundaries,
    find_boundary_crossings,
    hoeffding_boundaries,
    hoeffding_radius,
)
from analysis.stats.sequential._paper import hoeffding_decision
from analysis.stats.sequential._processes import (
    PROCESSES,
    anytime_pvalues,
    beta_binomial_anytime_interval,
    beta_binomial_log_e_values,
    confidence_sequence,
)
from analysis.stats.sequential._remaining import RemainingUnits, predict_remaining_units
from analysis.stats.sequential._units import AnnotatorUnits, annotator_means_in_claim_order
from analysis.stats.sequential._verdicts import SequentialResult, sequential_test

__all__ = [
    "Boundaries",
    "Crossings",
    "PROCESSES",
    "READINGS",
    "RemainingUnits",
    "SequentialResult",
    "AnnotatorUnits",
    "annotator_means_in_claim_order",
    "anytime_pvalues",
    "beta_binomial_boundaries",
    "beta_binomial_anytime_interval",
    "confidence_sequence",
    "find_boundary_crossings",
    "predict_remaining_units",
    "hoeffding_boundaries",
    "hoeffding_decision",
    "hoeffding_radius",
    "beta_binomial_log_e_values",
    "sequential_test",
]
