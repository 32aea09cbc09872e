"""All results for one cell of a human-likeness study."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap
from analysis.stats.detection._accuracy import (
    clustered_accuracy,
    human_answer_bias,
    mean_annotator_accuracy,
    share_answered_human,
)
from analysis.stats.detection._answers import ratings_to_machine_answers, score_correct_answers
from analysis.stats.detection._auc import graded_auc
from analysis.stats.detection._measures import DetectionMeasures, detection_measures
from analysis.stats.detection._signal import marginal_criterion, marginal_d_prime
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanLikeness(Record):
    """One cell of a human-likeness study: the results of the paper and the recommended ones."""

    measures: DetectionMeasures
    accuracy_paper: Estimate
    accuracy: Estimate
    sensitivity: Estimate
    criterion: Estimate
    auc: Estimate
    share_human: Estimate
    bias: Estimate


def human_likeness(
    ratings: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    threshold: float = 2.5,
    confident_ratings: tuple[float, float] = (1, 4),
    level: float = 0.95,
    sensitivity_resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
) -> HumanLikeness:
    """Compute all results for one cell (a system in a domain under a condition).

    NaN is a missing rating, and `is_machine` is 1 for a machine text and 0 for a human text. `threshold` is as in
    `ratings_to_machine_answers`, and `confident_ratings` are the points of the scale that count as confident. In the
    result, `measures` and `accuracy_paper` are the paper's, and the rest is recommended; see the functions of the same
    names.

    >>> rng = np.random.default_rng(0)
    >>> annotators, truth = np.repeat(np.arange(50), 4), np.tile([0, 1], 100)
    >>> ratings, texts = rng.integers(1, 5, 200), rng.integers(0, 30, 200)
    >>> cell = human_likeness(ratings, truth, annotators, texts, rng=rng, sensitivity_resamples=99)
    >>> cell.measures.n, cell.accuracy.n, cell.accuracy_paper.test.df
    (200, 50, 49)
    """
    says = ratings_to_machine_answers(ratings, threshold=threshold)
    correct = score_correct_answers(says, is_machine)
    drawn: dict[str, Any] = {"level": level, "sensitivity_resamples": sensitivity_resamples, "rng": rng}
    return HumanLikeness(
        measures=detection_measures(ratings, is_machine, threshold=threshold, confident_ratings=confident_ratings),
        accuracy_paper=mean_annotator_accuracy(correct, annotators, level=level),
        accuracy=clustered_accuracy(correct, annotators, items, level=level),
        sensitivity=marginal_d_prime(says, is_machine, annotators, items, **drawn),
        criterion=marginal_criterion(says, is_machine, annotators, items, **drawn),
        auc=graded_auc(ratings, is_machine, annotators, items, **drawn),
        share_human=share_answered_human(says, annotators, items, level=level),
        bias=human_answer_bias(says, is_machine, annotators, items, level=level),
    )
