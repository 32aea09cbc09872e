"""Coherence of stated preferences over several systems: triples, cycles, and sums of log-odds around cycles.

A column is a pair (x, y) of system numbers, a row an annotator, a value P[x > y] in 0..1 as from
`spa.combine_orders`.
"""

from analysis.stats.coherence._cycles import cycle_probability_of_means, fundamental_cycle_log_odds_sums
from analysis.stats.coherence._graph import is_cyclic, shortest_cycles
from analysis.stats.coherence._triples import (
    TRANSITIVITIES,
    Coherence,
    bootstrap_pair_means,
    coherence,
    transitivity_violation_shares,
)

__all__ = [
    "Coherence",
    "TRANSITIVITIES",
    "cycle_probability_of_means",
    "coherence",
    "is_cyclic",
    "shortest_cycles",
    "fundamental_cycle_log_odds_sums",
    "bootstrap_pair_means",
    "transitivity_violation_shares",
]
