"""Answers as arrays of 0 and 1, and their sums for each annotator."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap, clusters
from analysis.stats.arrays import FloatArray, binary_vector, group_sums, label_codes_where, vector
from analysis.stats.results import Estimate


def ratings_to_machine_answers(ratings: npt.ArrayLike, *, threshold: float = 2.5) -> FloatArray:
    """Convert ratings to 1 (machine) above the threshold and 0 (human) below it.

    Parameters
    ----------
    ratings : array_like, shape (n_rows,)
        Ratings; NaN is missing.
    threshold : float, default 2.5
        Threshold between both answers.

    Returns
    -------
    ndarray of float, shape (n_rows,)
        The answers; NaN is missing.

    Raises
    ------
    ValueError
        If a rating is on the threshold: a neutral point belongs to neither answer.

    References
    ----------
    Clark et al. 2021, footnote 6: four points in two bins.

    Examples
    --------
    >>> ratings_to_machine_answers([1, 2, 3, 4, None]).tolist()
    [0.0, 0.0, 1.0, 1.0, nan]
    """
    array = vector(ratings, "ratings")
    neutral = np.flatnonzero(array == threshold)
    if len(neutral):
        raise ValueError(f"ratings: row {int(neutral[0])} lies on the threshold {threshold:g}")
    return np.where(np.isnan(array), np.nan, (array > threshold).astype(np.float64))


def score_correct_answers(answered_machine: npt.ArrayLike, is_machine: npt.ArrayLike) -> FloatArray:
    """Return 1 for each correct answer and 0 for each wrong one, compared with the truth.

    An answer is 1 for "machine", 0 for "human", and NaN if it is missing, where the result is NaN, too. The truth is 1
    for a machine text and 0 for a human text.

    >>> score_correct_answers([1, 0, 1, None], [1, 1, 0, 0]).tolist()
    [1.0, 0.0, 0.0, nan]
    """
    answers, truths = checked_answers_and_truths(answered_machine, is_machine)
    return np.where(np.isnan(answers), np.nan, (answers == truths).astype(np.float64))


def checked_truths(is_machine: npt.ArrayLike, length: int) -> FloatArray:
    """Return 1 for machine texts and 0 for human texts. Raise ValueError with the row for a missing one."""
    truths = binary_vector(is_machine, "is_machine")
    if len(truths) != length:
        raise ValueError(f"is_machine: {len(truths)} values where there are {length} answers")
    if np.isnan(truths).any():
        raise ValueError(f"is_machine: row {int(np.flatnonzero(np.isnan(truths))[0])} is missing")
    return truths


def checked_answers_and_truths(
    answered_machine: npt.ArrayLike, is_machine: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the answers (NaN is missing) and the truths."""
    answers = binary_vector(answered_machine, "says")
    return answers, checked_truths(is_machine, len(answers))


def one_or_two_way_clustered_mean(
    values: FloatArray, annotators: npt.ArrayLike, items: npt.ArrayLike | None, **options: Any
) -> Estimate:
    """Return the mean clustered by annotator and, if given, by text."""
    if items is None:
        return clusters.clustered_mean(values, annotators, **options)
    mean = clusters.two_way_clustered_mean(values, annotators, items, **options)
    return replace(mean, settings={**mean.settings, "population": clusters.PEOPLE_AND_PROMPTS})


def n_rows_and_signal_counts_by_annotator(
    answered_machine: npt.ArrayLike, is_machine: npt.ArrayLike, annotators: npt.ArrayLike
) -> tuple[int, FloatArray]:
    """Return the number of rows and the counts of each annotator, (n_annotators, 4).

    The columns are hits, machine texts, false alarms and human texts.
    """
    answers, truths = checked_answers_and_truths(answered_machine, is_machine)
    is_observed = ~np.isnan(answers)
    annotator_codes, n = label_codes_where(annotators, "annotators", is_observed)
    observed, truth = answers[is_observed], truths[is_observed]
    columns = (observed * truth, truth, observed * (1 - truth), 1 - truth)
    return int(is_observed.sum()), np.stack([group_sums(annotator_codes, column, n) for column in columns], axis=1)


def bootstrap_column_sums(table: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return the column sums over resampled rows (annotators), drawn in blocks as counts of the distinct rows."""
    patterns, counts = np.unique(table, axis=0, return_counts=True)
    n = len(table)
    sizes = [min(bootstrap.BLOCK, resamples - start) for start in range(0, resamples, bootstrap.BLOCK)]
    blocks = [rng.multinomial(n, counts / n, size=size).astype(np.float64) @ patterns for size in sizes]
    return np.concatenate(blocks) if blocks else np.empty((0, table.shape[1]))
