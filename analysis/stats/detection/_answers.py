"""Answers as arrays of 0 and 1, and what each annotator's come to."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap, clusters
from analysis.stats.arrays import FloatArray, binary, group_sums, masked_codes, vector
from analysis.stats.results import Estimate


def says_machine(ratings: npt.ArrayLike, *, threshold: float = 2.5) -> FloatArray:
    """Ratings binned into 1 (machine) above the threshold and 0 (human) below it, NaN where missing.

    Raises ValueError for a rating that lies on the threshold: a neutral point belongs to neither bin.

    Source: Clark et al. 2021, footnote 6: four points in two bins.

    >>> says_machine([1, 2, 3, 4, None]).tolist()
    [0.0, 0.0, 1.0, 1.0, nan]
    """
    array = vector(ratings, "ratings")
    neutral = np.flatnonzero(array == threshold)
    if len(neutral):
        raise ValueError(f"ratings: row {int(neutral[0])} lies on the threshold {threshold:g}")
    return np.where(np.isnan(array), np.nan, (array > threshold).astype(np.float64))


def is_correct(says: npt.ArrayLike, is_machine: npt.ArrayLike) -> FloatArray:
    """1 where the answer ("machine" 1, "human" 0) is the truth, 0 where not, NaN where missing; shape (n_rows,).

    >>> is_correct([1, 0, 1, None], [1, 1, 0, 0]).tolist()
    [1.0, 0.0, 0.0, nan]
    """
    answers, truths = answers_and_truths(says, is_machine)
    return np.where(np.isnan(answers), np.nan, (answers == truths).astype(np.float64))


def truths_of(is_machine: npt.ArrayLike, length: int) -> FloatArray:
    """What each text is, 1 a machine's, 0 a person's; raises ValueError, naming the row, where that is missing."""
    truths = binary(is_machine, "is_machine")
    if len(truths) != length:
        raise ValueError(f"is_machine: {len(truths)} values where there are {length} answers")
    if np.isnan(truths).any():
        raise ValueError(f"is_machine: row {int(np.flatnonzero(np.isnan(truths))[0])} is missing")
    return truths


def answers_and_truths(says: npt.ArrayLike, is_machine: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The answers, NaN where missing, and the truths beside them."""
    answers = binary(says, "says")
    return answers, truths_of(is_machine, len(answers))


def clustered_share(
    values: FloatArray, annotators: npt.ArrayLike, items: npt.ArrayLike | None, **more: Any
) -> Estimate:
    """The mean with annotators as clusters and, where given, texts too."""
    if items is None:
        return clusters.clustered_mean(values, annotators, **more)
    return clusters.two_way_mean(values, annotators, items, **more)


def annotator_counts(
    says: npt.ArrayLike, is_machine: npt.ArrayLike, annotators: npt.ArrayLike
) -> tuple[int, FloatArray]:
    """The rows used, and hits, machine texts, false alarms, human texts of each annotator, (n_annotators, 4)."""
    answers, truths = answers_and_truths(says, is_machine)
    here = ~np.isnan(answers)
    who, n = masked_codes(annotators, "annotators", here)
    said, truth = answers[here], truths[here]
    columns = (said * truth, truth, said * (1 - truth), 1 - truth)
    return int(here.sum()), np.stack([group_sums(who, column, n) for column in columns], axis=1)


def resampled_sums(table: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """The columns' sums over resampled rows (annotators), drawn as counts of the distinct rows, in blocks."""
    patterns, counts = np.unique(table, axis=0, return_counts=True)
    n = len(table)
    sizes = [min(bootstrap.BLOCK, resamples - start) for start in range(0, resamples, bootstrap.BLOCK)]
    blocks = [rng.multinomial(n, counts / n, size=size).astype(np.float64) @ patterns for size in sizes]
    return np.concatenate(blocks) if blocks else np.empty((0, table.shape[1]))
