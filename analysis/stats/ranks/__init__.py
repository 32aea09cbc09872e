"""Confidence sets for the ranks of systems that hold for all systems at once.

The spread of a system's rank over bootstrap samples is not a confidence set: if all systems are equal, it covers
the true ranks in one of ten studies. Here every difference of two systems gets a simultaneous interval from the
largest studentised deviation over pairs. A system ranks below another only if their interval excludes 0.

References: Mogstad, Romano, Shaikh and Wilhelm 2024, Inference for ranks with applications to mobility across
neighbourhoods and academic achievement across countries; Romano and Wolf 2005 for the maximum over pairs.
"""

from analysis.stats.ranks._differences import (
    SimultaneousDifferences,
    SimultaneousScores,
    simultaneous_differences,
    simultaneous_scores,
)
from analysis.stats.ranks._scores import ScoreDraws, bootstrap_system_scores
from analysis.stats.ranks._sets import (
    MAX_UNDEFINED,
    RankSets,
    descending_ranks,
    rank_confidence_sets,
    rank_confidence_sets_from_rows,
    rank_confidence_sets_from_spread,
)
from analysis.stats.ranks._spread import ClusterMoves, ScoreSpread, score_spread

__all__ = [
    "ClusterMoves",
    "MAX_UNDEFINED",
    "RankSets",
    "ScoreDraws",
    "ScoreSpread",
    "SimultaneousDifferences",
    "SimultaneousScores",
    "bootstrap_system_scores",
    "descending_ranks",
    "rank_confidence_sets",
    "rank_confidence_sets_from_rows",
    "rank_confidence_sets_from_spread",
    "score_spread",
    "simultaneous_differences",
    "simultaneous_scores",
]
