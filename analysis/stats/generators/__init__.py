"""Answers that a study might get, made up from known truths: what planning and the tests of tests are fed with.

One function a protocol; each makes many runs of one study at once, as arrays whose first axis is the run. What is true
(preference, sensitivity, difference) goes in by name, what the answers look like comes out in the form that the
analyses take. Nothing here is an estimate of real annotators: the spreads are assumptions, and the planner's result is
as good as they are.
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
