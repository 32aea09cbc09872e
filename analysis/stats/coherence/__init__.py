"""Whether the stated preferences of several systems fit together: triples, cycles, and sums around cycles.

A column is a pair (x, y) of system numbers, a row an annotator, a value P[x > y] in 0..1 as `spa.combined` gives it.
"""

from analysis.stats.coherence._cycles import aggregate_cycles, cycle_sums
from analysis.stats.coherence._triples import TRANSITIVITIES, Coherence, coherence, mean_draws, transitivity

__all__ = ["Coherence", "TRANSITIVITIES", "aggregate_cycles", "coherence", "cycle_sums", "mean_draws", "transitivity"]
