"""From answers to scores: one module for each protocol whose answers are scores or preferences."""

from .base import Scorer
from .humanlike import HumanLikeScorer
from .marks import MarksScorer
from .rating import RatingScorer
from .relative import RelativeScorer
from .spa import SPAScorer
from .two_choice import TwoChoiceScorer

SCORERS: dict[str, Scorer] = {
    scorer.slug: scorer
    for scorer in (
        RatingScorer(),
        RelativeScorer(),
        TwoChoiceScorer(),
        HumanLikeScorer(),
        MarksScorer(),
        SPAScorer(),
    )
}

__all__ = ["SCORERS", "Scorer"]
