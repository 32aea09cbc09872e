"""Answers of one or two systems with equal item weights, and the variance of their contrasts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    label_codes_where,
    validate_within_bounds,
    vector,
)

SCALE = 100.0
BOUNDS = (0.0, SCALE)


def points_to_unit_scores(points: npt.ArrayLike, *, n_points: int = 5) -> FloatArray:
    """Convert points 1..n of a Likert scale to equally spaced scores 0..1.

    Parameters
    ----------
    points : array_like, shape (n,)
        Points; NaN is missing.
    n_points : int, default 5
        Number of points; 2 is no and yes.

    Returns
    -------
    ndarray of float
        The scores.

    Raises
    ------
    ValueError
        If a value is not a point of the scale; the message has the row.

    References
    ----------
    The paper's footnote 6.

    Examples
    --------
    >>> points_to_unit_scores([1, 2, 3, 4, 5]).tolist(), points_to_unit_scores([1, 2], n_points=2).tolist()
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 1.0])
    """
    if n_points < 2:
        raise ValueError(f"n_points: {n_points} is less than 2")
    array = vector(points, "points")
    validate_within_bounds(array, (1, n_points), "points")
    between = np.flatnonzero(~np.isnan(array) & (array != np.round(array)))
    if len(between):
        raise ValueError(f"points: row {int(between[0])} is {array[between[0]]:g}, no point of the scale")
    return (array - 1) / (n_points - 1)


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Answers without the missing ones, items and annotators as codes; `weights` give every item the same total."""

    values: FloatArray
    items: IntArray
    annotators: IntArray
    n_items: int
    n_annotators: int
    n_missing: int

    @classmethod
    def from_arrays(cls, values: npt.ArrayLike, items: npt.ArrayLike, annotators: npt.ArrayLike) -> "ScoreRows":
        array = vector(values, "values")
        validate_within_bounds(array, (0.0, 1.0), "values")
        is_observed = ~np.isnan(array)
        n = int(is_observed.sum())
        item_codes, n_items = label_codes_where(items, "items", is_observed)
        annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
        return cls(array[is_observed], item_codes, annotator_codes, n_items, n_annotators, len(array) - n)

    @property
    def weights(self) -> FloatArray:
        return np.asarray(1 / (self.n_items * np.bincount(self.items)[self.items]), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ContrastTerm:
    """One system's part of a contrast: weights over all rows with sum 1, and its sign."""

    rows: ScoreRows
    weights: FloatArray
    sign: float

    @classmethod
    def from_rows(cls, rows: ScoreRows, own: npt.NDArray[np.bool_], sign: float) -> "ContrastTerm":
        per_item = np.bincount(rows.items[own], minlength=rows.n_items)
        return cls(rows, np.where(own, 1 / (rows.n_items * per_item[rows.items]), 0.0), sign)

    @property
    def mean(self) -> float:
        return float(self.weights @ self.rows.values)


@dataclass(frozen=True, slots=True)
class _Variance:
    variance: float
    df: float
    by_annotator: float
    by_item: float | None
    by_cell: float | None
    effective: float

    @property
    def population(self) -> str:
        return clusters.PEOPLE if self.by_item is None else clusters.PEOPLE_AND_PROMPTS

    def as_dict(self) -> dict[str, Any]:
        return {
            "variance_annotators": SCALE**2 * self.by_annotator,
            "variance_items": None if self.by_item is None else SCALE**2 * self.by_item,
            "variance_cells": None if self.by_cell is None else SCALE**2 * self.by_cell,
            "effective_clusters": self.effective,
        }


def difference_variance(terms: Sequence[ContrastTerm], *, items_sampled: bool) -> _Variance | None:
    """Return the variance of sum(sign * mean) over the arms; None if one annotator gave all answers of an arm."""
    rows = terms[0].rows
    by_annotator = _jackknife_variance(terms, rows.annotators, rows.n_annotators)
    if by_annotator is None:
        return None
    effective = _effective(terms, rows.annotators, rows.n_annotators)
    df = max(1.0, effective - 1)
    if not items_sampled or rows.n_items < clusters.TOO_FEW_ITEMS:
        return _Variance(by_annotator, df, by_annotator, None, None, effective)
    by_item = _jackknife_variance(terms, rows.items, rows.n_items) or 0.0
    influences = np.sum([arm.sign * arm.weights * (rows.values - arm.mean) for arm in terms], axis=0)
    by_cell = clusters.pair_variance(influences, rows.annotators, rows.items)
    combined = by_annotator + by_item - by_cell
    df_items = _effective(terms, rows.items, rows.n_items) - 1
    # Pairing by item removes variance that V_a still contains, so V_a is no lower bound for a difference.
    if combined <= by_item * (1 + 1e-9):
        return _Variance(by_item, max(1.0, df_items), by_annotator, by_item, by_cell, effective)
    satterthwaite = combined**2 / (by_annotator**2 / df + by_item**2 / df_items)
    return _Variance(combined, max(1.0, satterthwaite), by_annotator, by_item, by_cell, effective)


def _effective(terms: Sequence[ContrastTerm], codes: IntArray, n_clusters: int) -> float:
    return clusters.effective_n_clusters(sum(group_sums(codes, arm.weights, n_clusters) for arm in terms))


def _jackknife_variance(terms: Sequence[ContrastTerm], codes: IntArray, n_clusters: int) -> float | None:
    """Return the variance that leaves out one cluster at a time (CV3); None if one gave all answers of an arm."""
    without = np.zeros(n_clusters)
    for arm in terms:
        weight = group_sums(codes, arm.weights, n_clusters)
        if float(weight.max()) > 1 - 1e-12:
            return None
        remaining = arm.mean - group_sums(codes, arm.weights * arm.rows.values, n_clusters)
        without += arm.sign * remaining / (1 - weight)
    contrast = sum(arm.sign * arm.mean for arm in terms)
    return (n_clusters - 1) / n_clusters * float(np.sum((without - contrast) ** 2))


def equal_item_weights(values: FloatArray, systems: npt.ArrayLike, items: npt.ArrayLike) -> FloatArray:
    """Return 1 / (answers of the row's item for the row's system), so that items have equal weights; 0 if missing.

    >>> equal_item_weights(np.array([1.0, 0.5, 0.0]), ["x", "x", "x"], [1, 1, 2]).tolist()
    [0.5, 0.5, 1.0]
    """
    system_codes, _ = label_codes(np.asarray(systems), "systems", len(values))
    item_codes, n_items = label_codes(np.asarray(items), "items", len(values))
    cells = system_codes * n_items + item_codes
    is_observed = ~np.isnan(values)
    counts = np.bincount(cells[is_observed], minlength=int(cells.max(initial=0)) + 1)[cells]
    return np.where(is_observed, 1 / np.maximum(counts, 1), 0.0)
