"""Each annotator's use of the scale: standardisation, rescaling to references, and description."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    IntArray,
    group_sizes,
    group_sums,
    label_codes,
    label_codes_where,
    vector,
)
from analysis.stats.results import Estimate, Record, ResultWarning

MIN_Z_RATINGS = 10
MIN_REFERENCE_SPREAD = 10.0


@dataclass(frozen=True, slots=True)
class ZScores(Record):
    """Standardised ratings: `scores` (n_rows,), NaN for the annotators (codes) in `dropped`.

    Dropped annotators gave too few ratings or equal ratings.
    """

    scores: FloatArray
    dropped: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RescaledRatings(Record):
    """`values` (n_rows,) between each annotator's own references (0 the minimal, 1 the maximal), NaN if left out.

    `extremum_violation` and `narrow_references` list the annotators left out. `no_references` lists those who rated
    no reference.
    """

    values: FloatArray
    extremum_violation: tuple[Any, ...]
    narrow_references: tuple[Any, ...]
    no_references: tuple[Any, ...]


def z_scores_by_annotator(values: npt.ArrayLike, annotators: npt.ArrayLike) -> ZScores:
    """Standardise each rating by the mean and the standard deviation of its annotator.

    NaN is missing, and annotators with fewer than ten ratings, or with equal ratings, are dropped. This removes
    location and spread only, not unequal distances between points (Ethayarajh and Jurafsky 2022, section 3, Remark 1).
    It needs systems assigned to annotators at random and in balance. Use it as a sensitivity analysis, not as the only
    result.

    >>> z_scores_by_annotator([1, 3] * 5 + [2, 5], ["a"] * 10 + ["b"] * 2).scores.round(2).tolist()[-4:]
    [-0.95, 0.95, nan, nan]
    """
    array = vector(values, "values")
    labels = np.asarray(annotators)
    positions, n_annotators = label_codes(labels, "annotators", len(array))
    is_observed = ~np.isnan(array)
    size = group_sizes(positions[is_observed], n_annotators)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = group_sums(positions[is_observed], array[is_observed], n_annotators) / size
        centred = array - mean[positions]
        sd = np.sqrt(group_sums(positions[is_observed], centred[is_observed] ** 2, n_annotators) / (size - 1))
    usable = (size >= MIN_Z_RATINGS) & (sd > MIN_SPREAD)
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.where(usable[positions], centred / sd[positions], np.nan)
    return ZScores(scores, _labels(labels, positions, np.flatnonzero(~usable)))


def rescale_to_references(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    is_minimum: npt.ArrayLike,
    is_maximum: npt.ArrayLike,
    minimum_spread: float = MIN_REFERENCE_SPREAD,
) -> RescaledRatings:
    """Rescale continuous ratings to each annotator's own scale between the planted references.

    `is_minimum` and `is_maximum` mark the ratings of the minimal and maximal reference; NaN is a missing rating. The
    rescaled rating is u = (x - min) / (max - min), with the annotator's mean ratings of the two references (Ethayarajh
    and Jurafsky 2022, section 4, point 2). An annotator who does not rate the maximal reference above the minimal
    violates extremum equivalence (Boutilier 2003) and is left out, and so is one whose two references are less than
    `minimum_spread` apart.

    >>> rescaled = rescale_to_references([10, 90, 50], ["a"] * 3, is_minimum=[True, False, False],
    ...                               is_maximum=[False, True, False])
    >>> rescaled.values.tolist()
    [0.0, 1.0, 0.5]
    """
    array = vector(values, "values")
    labels = np.asarray(annotators)
    positions, n_annotators = label_codes(labels, "annotators", len(array))
    ends = []
    for name, mark in (("is_minimum", is_minimum), ("is_maximum", is_maximum)):
        mask = np.asarray(mark, dtype=np.bool_)
        if mask.shape != array.shape:
            raise ValueError(f"{name}: expected {len(array)} booleans, got an array of shape {mask.shape}")
        mask = mask & ~np.isnan(array)
        with np.errstate(invalid="ignore", divide="ignore"):
            ends.append(
                group_sums(positions[mask], array[mask], n_annotators) / group_sizes(positions[mask], n_annotators)
            )
    low, high = ends
    absent = np.isnan(low) | np.isnan(high)
    with np.errstate(invalid="ignore"):
        violated = ~absent & (high <= low)
        narrow = ~absent & ~violated & (high - low < minimum_spread)
    left_out = absent | violated | narrow
    with np.errstate(invalid="ignore", divide="ignore"):
        rescaled = (array - low[positions]) / (high - low)[positions]
    return RescaledRatings(
        np.where(left_out[positions], np.nan, rescaled),
        _labels(labels, positions, np.flatnonzero(violated)),
        _labels(labels, positions, np.flatnonzero(narrow)),
        _labels(labels, positions, np.flatnonzero(absent)),
    )


def expected_utility(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike,
    *,
    is_rescaled: bool,
    population: str = "",
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Expected utility (EEU): the mean over annotators of their mean ratings of one system.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Ratings of one system's outputs, rescaled by `rescale_to_references` if `is_rescaled`.
    annotators, prompts : array_like, shape (n_rows,)
        Labels of each row's annotator and prompt.
    is_rescaled : bool
        Whether the ratings were rescaled. Without references the annotators' scales are not comparable: the estimate
        is then called a mean rating, with the warning `no_references`.
    population, bounds : optional
        What the mean is about, and the ends of the scale, as in `clusters.mean_of_population`.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The mean; every annotator has the same weight.

    References
    ----------
    Equation (1); section 4.

    Examples
    --------
    >>> round(expected_utility([0.5, 0.7, 0.1], ["a", "a", "b"], [1, 2, 1], is_rescaled=True).estimate, 9)
    0.35
    """
    array = vector(values, "values")
    is_observed = ~np.isnan(array)
    positions, n_annotators = label_codes_where(annotators, "annotators", is_observed)
    weights = np.ones(len(array))
    weights[is_observed] = 1 / group_sizes(positions, n_annotators)[positions]
    result = clusters.mean_of_population(
        array,
        annotators,
        prompts,
        weights=weights,
        population=population,
        bounds=bounds,
        level=level,
        analysis="rating.expected_utility",
        estimand="expected expected utility (EEU)" if is_rescaled else "mean rating (not EEU)",
        unit="annotator",
    )
    missing = () if is_rescaled else (ResultWarning("no_references", "warn"),)
    return replace(
        result,
        sensitivity=(),
        warnings=(*result.warnings, *missing),
        settings={**result.settings, "has_references": is_rescaled},
    )


def _labels(labels: npt.NDArray[Any], positions: IntArray, codes: npt.NDArray[np.intp]) -> tuple[Any, ...]:
    first = {int(position): row for row, position in reversed(list(enumerate(positions.tolist())))}
    return tuple(labels[[first[int(number)] for number in codes]].tolist())
