"""Best-worst counts: how often each system was chosen as best and as worst."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import IntArray
from analysis.stats.best_worst._answers import (
    BestWorstAnswers,
    maxdiff_score_rows_of_checked_answers,
    person_and_prompt_cluster_codes,
)
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True)
class MaxDiffScores(Record):
    """Counts of K systems, shape (K,), and one Estimate per system of its score, (best - worst) / shown.

    The `detail` of each score has `n_shown`, `n_best` and `n_worst`. `n_rows` counts answers, `n_clusters` people.
    """

    status: str
    reason: str
    scores: tuple[Estimate, ...]
    n_shown: IntArray
    n_best: IntArray
    n_worst: IntArray
    n_clusters: int
    n_rows: int


def maxdiff_scores(
    sets: npt.ArrayLike,
    best: npt.ArrayLike,
    worst: npt.ArrayLike,
    people: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    n_systems: int,
    level: float = 0.95,
) -> MaxDiffScores:
    """Estimate the best-worst score of each system: (times best - times worst) / times shown, from -1 to 1.

    Each row is one answer, coded as in `maxdiff_score_rows`. A score is the mean of 1, -1 and 0 over the sets with the
    system (Finn and Louviere 1992; Kiritchenko and Mohammad 2017 for the score as a number from -1 to 1), with the
    standard error of `clusters.clustered_mean` (CV3) over annotators. If prompts were judged more than once, the last
    sensitivity is `clusters.two_way_clustered_mean`. There is no test, because the scores depend on each other and on
    which systems shared a set. The status of a score is `no_data` if the system was never shown, `n_lt_2` without an
    interval if one annotator saw it, and `zero_variance` with a betting interval if it was always the best; `n` counts
    the annotators who saw the system.

    >>> counts = maxdiff_scores([[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]], [0, 0, 0, 1], [2, 2, 1, 2],
    ...                         ["a", "a", "b", "b"], n_systems=3)
    >>> counts.n_best.tolist(), counts.n_worst.tolist(), [score.estimate for score in counts.scores]
    ([3, 1, 0], [0, 1, 3], [0.75, 0.0, -0.75])
    """
    checked_answers = BestWorstAnswers.from_arrays(sets, best, worst, n_systems)
    people_codes, n_people, prompt_codes = person_and_prompt_cluster_codes(people, prompts, len(checked_answers.best))
    answers, systems, values = maxdiff_score_rows_of_checked_answers(checked_answers)
    n_shown = checked_answers.shown_counts()
    first, last = (np.bincount(chosen, minlength=n_systems) for chosen in (checked_answers.best, checked_answers.worst))
    scores = []
    for system in range(n_systems):
        is_own = systems == system
        rows, own = answers[is_own], values[is_own]
        common: dict[str, Any] = {
            "level": level,
            "bounds": (-1.0, 1.0),
            "estimand": f"times best less times worst of system {system}, per time shown",
            "mode": "paper",
        }
        score = clusters.clustered_mean(own, people_codes[rows], analysis="best_worst.counts", **common)
        others = list(score.sensitivity)
        if prompt_codes is not None and len(rows) and 1 < len(np.unique(prompt_codes[rows])) < len(rows):
            others.append(
                clusters.two_way_clustered_mean(
                    own, people_codes[rows], prompt_codes[rows], analysis="best_worst.counts.two_way", **common
                )
            )
        counted = {"n_shown": int(n_shown[system]), "n_best": int(first[system]), "n_worst": int(last[system])}
        reason = score.reason if len(rows) else f"system {system} was never shown"
        scores.append(
            replace(
                score, reason=reason, sensitivity=tuple(others), detail={**score.detail, **counted, "system": system}
            )
        )
    is_there = len(checked_answers.best) > 0
    return MaxDiffScores(
        status="ok" if is_there else "no_data",
        reason="" if is_there else "no answer to analyse",
        scores=tuple(scores),
        n_shown=n_shown,
        n_best=first,
        n_worst=last,
        n_clusters=n_people,
        n_rows=len(checked_answers.best),
    )
