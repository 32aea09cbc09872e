"""Models of boards. A board's design and its studies belong to the apps below."""

from .board import Board, BoardMember, Team
from .metric_tables import BoardMetricTable
from .rounds import BoardRound, RoundEntry
from .samples import BoardSample
from .snapshots import BoardSnapshot
from .submissions import Submission, SubmittedOutput

__all__ = [
    "Board",
    "BoardMember",
    "BoardMetricTable",
    "BoardRound",
    "BoardSample",
    "BoardSnapshot",
    "RoundEntry",
    "Submission",
    "SubmittedOutput",
    "Team",
]
