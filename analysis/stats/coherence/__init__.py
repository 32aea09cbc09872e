"""Coherence of stated preferences over several systems: triples, cycles, and sums of log-odds around cycles.

A column is a pair (x, y) of system numbers, a row an annotator, a value P[x > y] in 0..1 as from
`spa.combine_orders`.
"""

from analysis.stats.coherence._cycles import aggregate_cycles, cycle_sums
from analysis.stats.coherence._triples import TRANSITIVITIES, Coherence, coherence, mean_draws, transitivity

__all__ = ["Coherence", "TRANSITIVITIES", "aggregate_cycles", "coherence", "cycle_sums", "mean_draws", "transitivity"]
