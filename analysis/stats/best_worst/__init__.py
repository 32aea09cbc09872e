"""Best-worst scaling (MaxDiff): of each set of outputs a person chooses the best one and the worst one.

`maxdiff_counts` gives the figure of the papers: how often a system was chosen as best, less how often as worst, divided
by how often it was shown. It depends on which other systems were in the sets. `best_worst_logit` fits one strength b a
system, which does not: in a set S the best is i with probability exp(b_i) / sum over S of exp(b), and then, of the rest
R = S without i, the worst is j with probability exp(-b_j) / sum over R of exp(-b). Both choices have one scale; if people
choose the worst one with less care than the best one, the strengths are a compromise between the two.

Sources: Finn and Louviere 1992, Determining the appropriate response to evidence of public concern; Marley and Louviere
2005, Some probabilistic models of best, worst, and best-worst choices (the sequential model); Louviere, Flynn and Marley
2015, Best-Worst Scaling; Kiritchenko and Mohammad 2017, Best-worst scaling more reliable than rating scales (the counts).
"""

from analysis.stats.best_worst._answers import maxdiff_rows
from analysis.stats.best_worst._counts import MaxDiffCounts, maxdiff_counts
from analysis.stats.best_worst._logit import BestWorstLogit, best_worst_logit

__all__ = ["BestWorstLogit", "MaxDiffCounts", "best_worst_logit", "maxdiff_counts", "maxdiff_rows"]
