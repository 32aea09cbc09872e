"""Simulated answers with known true values, for planning and for tests of the statistics.

There is one function per protocol. Each simulates many runs of one study, as arrays whose first axis is the run.
The true values (preference, sensitivity, difference) are arguments; the answers have the form of the analyses. The
spreads are assumptions, not estimates of real annotators, and a plan is only as good as they are.
"""

from analysis.stats.generators._preferences import (
    ChoiceAnswers,
    LeaderboardAnswers,
    SpaAnswers,
    simulate_choice_answers,
    simulate_leaderboard_answers,
    simulate_spa_answers,
)
from analysis.stats.generators._ratings import (
    FIVE_POINTS,
    ContinuousRatings,
    HumanLikeRatings,
    LikertRatings,
    simulate_continuous_ratings,
    simulate_human_likeness_ratings,
    simulate_likert_ratings,
)

__all__ = [
    "ChoiceAnswers",
    "ContinuousRatings",
    "FIVE_POINTS",
    "HumanLikeRatings",
    "LeaderboardAnswers",
    "LikertRatings",
    "SpaAnswers",
    "simulate_choice_answers",
    "simulate_continuous_ratings",
    "simulate_human_likeness_ratings",
    "simulate_leaderboard_answers",
    "simulate_likert_ratings",
    "simulate_spa_answers",
]
