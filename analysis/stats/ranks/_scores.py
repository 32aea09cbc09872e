"""Mean values of systems and their resamples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    FloatArray,
    label_codes,
    vector,
)
from analysis.stats.bootstrap import RESAMPLES, multinomial_weights, ratio_draws
from analysis.stats.clusters import cluster_warnings
from analysis.stats.results import Record, ResultWarning


@dataclass(frozen=True, slots=True)
class ScoreDraws(Record):
    """Scores (K,) of `systems`, their resamples (B, K), and `df` (K, K) for each pair of systems."""

    systems: tuple[Any, ...]
    scores: FloatArray
    draws: FloatArray
    df: FloatArray
    n_annotators: int
    n_rows: int
    warnings: tuple[ResultWarning, ...]


def bootstrap_system_scores(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    systems: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    unit: str = "annotator",
) -> ScoreDraws:
    """Mean values of systems, and the same in resamples of the annotators with all their rows.

    Parameters
    ----------
    values, annotators, systems : array_like, shape (n_rows,)
        Values (a row without a value is left out), and labels of each row's annotator and system.
    weights : array_like, shape (n_rows,), optional
        Weights of the rows within a system; 1 if None.
    resamples : int, default RESAMPLES
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.
    unit : str, default 'annotator'
        Name of the unit in warnings.

    Returns
    -------
    ScoreDraws
        The means and their resamples. df_ij = G*_ij - 1, with G*_ij the effective number of annotators of systems i
        and j.

    Raises
    ------
    ValueError
        For a negative or missing weight, or fewer than two resamples.

    Examples
    --------
    >>> result = bootstrap_system_scores([1, 0, 1, 1], ["a", "a", "b", "b"], ["x", "y", "x", "y"], resamples=99,
    ...                     rng=np.random.default_rng(0))
    >>> result.systems, result.scores.tolist(), result.draws.shape
    (('x', 'y'), [1.0, 0.5], (99, 2))
    """
    array = vector(values, "values")
    weight = np.ones(len(array)) if weights is None else vector(weights, "weights")
    if weight.shape != array.shape or np.isnan(weight).any() or np.any(weight < 0):
        raise ValueError("weights: one non-negative number a row is needed")
    if resamples < 2:
        raise ValueError(f"resamples: {resamples} is less than 2")
    labels = np.asarray(systems)
    label_codes(labels, "systems", len(array))
    label_codes(np.asarray(annotators), "annotators", len(array))
    is_used = ~np.isnan(array) & (weight > 0)
    observed, weight = array[is_used], weight[is_used]
    columns, k = label_codes(labels[is_used], "systems", len(observed))
    positions, n_annotators = label_codes(np.asarray(annotators)[is_used], "annotators", len(observed))
    cells = positions * k + columns
    size = n_annotators * k
    counts = np.bincount(cells, weight, minlength=size).reshape(n_annotators, k)
    sums = np.bincount(cells, weight * observed, minlength=size).reshape(n_annotators, k)
    if len(observed) == 0:
        return ScoreDraws((), np.empty(0), np.empty((resamples, 0)), np.empty((0, 0)), 0, 0, ())
    shares = counts / counts.sum(axis=0)
    overlap = shares.T @ shares
    concentration = np.diag(overlap)[:, None] + np.diag(overlap)[None, :] + 2 * overlap
    return ScoreDraws(
        systems=tuple(np.unique(labels[is_used]).tolist()),
        scores=np.asarray(sums.sum(axis=0) / counts.sum(axis=0)),
        draws=ratio_draws(sums, counts, multinomial_weights(n_annotators, resamples, rng)),
        df=np.maximum(1.0, 4 / concentration - 1),
        n_annotators=n_annotators,
        n_rows=len(observed),
        warnings=cluster_warnings(np.bincount(positions), name=unit),
    )
