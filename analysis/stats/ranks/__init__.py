"""Confidence sets for the ranks of systems that hold for all systems at once.

The spread of a system's rank over bootstrap samples is not a confidence set: if all systems are equal, it covers
the true ranks in one of ten studies. Here every difference of two systems gets a simultaneous interval. A system ranks
below another only if their interval excludes 0.

Reference: Mogstad, Romano, Shaikh and Wilhelm 2024, Inference for ranks with applications to mobility across
neighbourhoods and academic achievement across countries.
"""

from analysis.stats.ranks._differences import (
    SimultaneousDifferences,
    SimultaneousScores,
    simultaneous_differences,
    simultaneous_scores,
)
from analysis.stats.ranks._sets import (
    RankSets,
    descending_ranks,
    rank_confidence_sets_from_rows,
    rank_confidence_sets_from_spread,
)
from analysis.stats.ranks._spread import ClusterMoves, ScoreSpread, score_spread

__all__ = [
    "ClusterMoves",
    "RankSets",
    "ScoreSpread",
    "SimultaneousDifferences",
    "SimultaneousScores",
    "descending_ranks",
    "rank_confidence_sets_from_rows",
    "rank_confidence_sets_from_spread",
    "score_spread",
    "simultaneous_differences",
    "simultaneous_scores",
]
