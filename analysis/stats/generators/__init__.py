"""Simulated answers with known truths, for planning and for tests of the statistics.

There is one function per protocol. Each simulates many runs of one study, as arrays whose first axis is the run.
The truths (preference, sensitivity, difference) are arguments; the answers have the form of the analyses. The
spreads are assumptions, not estimates of real annotators, and a plan is only as good as they are.
"""

from analysis.stats.generators._preferences import (
    ChoiceAnswers,
    LeaderboardAnswers,
    SpaAnswers,
    choice_answers,
    leaderboard_answers,
    spa_answers,
)
from analysis.stats.generators._ratings import (
    FIVE_POINTS,
    ContinuousRatings,
    HumanLikeRatings,
    LikertRatings,
    continuous_ratings,
    human_like_ratings,
    likert_ratings,
)

__all__ = [
    "ChoiceAnswers",
    "ContinuousRatings",
    "FIVE_POINTS",
    "HumanLikeRatings",
    "LeaderboardAnswers",
    "LikertRatings",
    "SpaAnswers",
    "choice_answers",
    "continuous_ratings",
    "human_like_ratings",
    "leaderboard_answers",
    "likert_ratings",
    "spa_answers",
]
