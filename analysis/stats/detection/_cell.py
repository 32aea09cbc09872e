"""All that is said of one cell of a study."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap
from analysis.stats.detection._accuracy import accuracy, accuracy_paper, detection_bias, share_human
from analysis.stats.detection._answers import is_correct, says_machine
from analysis.stats.detection._auc import graded_auc
from analysis.stats.detection._measures import DetectionMeasures, detection_measures
from analysis.stats.detection._signal import criterion, sensitivity
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanLikeness(Record):
    """One cell of a human-likeness study: the paper's row, and what is recommended beside it."""

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
    ends: tuple[float, float] = (1, 4),
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
    unit: str = "annotator",
) -> HumanLikeness:
    """Everything about one cell (a system in a domain under a condition): the paper's block and the recommended one.

    All arrays have shape (n_rows,). See the functions of the same names; `measures` and `accuracy_paper` are the
    paper's, the rest is recommended.

    >>> rng = np.random.default_rng(0)
    >>> who, truth = np.repeat(np.arange(50), 4), np.tile([0, 1], 100)
    >>> cell = human_likeness(rng.integers(1, 5, 200), truth, who, rng.integers(0, 30, 200), rng=rng, resamples=99)
    >>> cell.measures.n, cell.accuracy.n, cell.accuracy_paper.test.df
    (200, 50, 49)
    """
    says = says_machine(ratings, threshold=threshold)
    correct = is_correct(says, is_machine)
    plain: dict[str, Any] = {"level": level, "unit": unit}
    drawn: dict[str, Any] = {**plain, "resamples": resamples, "rng": rng}
    return HumanLikeness(
        measures=detection_measures(ratings, is_machine, threshold=threshold, ends=ends),
        accuracy_paper=accuracy_paper(correct, annotators, **plain),
        accuracy=accuracy(correct, annotators, items, **plain),
        sensitivity=sensitivity(says, is_machine, annotators, items, **drawn),
        criterion=criterion(says, is_machine, annotators, items, **drawn),
        auc=graded_auc(ratings, is_machine, annotators, items, **drawn),
        share_human=share_human(says, annotators, items, **plain),
        bias=detection_bias(says, is_machine, annotators, items, **plain),
    )
