"""Best-worst scaling (MaxDiff): from each set of outputs an annotator chooses the best and the worst.

`maxdiff_scores` gives the score of the papers: times best minus times worst, divided by times shown. It depends
on the other systems in the sets. `best_worst_logit` fits one strength b per system, which does not. In a set S
the best is i with probability exp(b_i) / sum over S of exp(b). Of the rest R, the worst is j with probability
exp(-b_j) / sum over R of exp(-b). Both choices share one scale. If annotators choose the worst less carefully
than the best, the strengths are a compromise.

References: Finn and Louviere 1992, Determining the appropriate response to evidence of public concern; Marley and
Louviere 2005, Some probabilistic models of best, worst, and best-worst choices (the sequential model); Louviere,
Flynn and Marley 2015, Best-Worst Scaling; Kiritchenko and Mohammad 2017, Best-worst scaling more reliable than
rating scales (the counts).
"""

from analysis.stats.best_worst._answers import maxdiff_score_rows
from analysis.stats.best_worst._counts import MaxDiffScores, maxdiff_scores
from analysis.stats.best_worst._logit import BestWorstLogit, best_worst_logit

__all__ = ["BestWorstLogit", "MaxDiffScores", "best_worst_logit", "maxdiff_scores", "maxdiff_score_rows"]
