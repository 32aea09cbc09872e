"""Ratings of single outputs: Likert scales and continuous scales.

A difference of mean ratings assumes that the points of the scale are equally far apart for every annotator. The
probability of superiority assumes only their order; it is the default.

Reference: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, sections 3, 4 and 6.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic, cluster_models, clusters
from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    group_sizes,
    group_sums,
    label_codes,
    label_codes_where,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.results import Estimate, Record, ResultWarning

# Select the ratings of two systems.


def select_two_systems(
    ratings: npt.ArrayLike, systems: npt.ArrayLike, system: object, reference: object
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the ratings of both systems, 1 for rows of `system` and 0 for `reference`, and a mask of these rows."""
    array, names = vector(ratings, "ratings"), np.asarray(systems)
    if names.shape != array.shape:
        raise ValueError(f"systems: expected {len(array)} labels, got an array of shape {names.shape}")
    is_system = np.asarray(names == system)
    is_used = ~np.isnan(array) & (is_system | np.asarray(names == reference))
    return array[is_used], is_system[is_used].astype(np.float64), is_used


def missing_rating_estimate(is_system: FloatArray, common: dict[str, Any]) -> Estimate | None:
    """Return the estimate without a value if one of the two systems has no rating, else None."""
    if 0 < is_system.sum() < len(is_system):
        return None
    return Estimate(status="no_data", reason="one of the two systems has no rating", **common)


# Each annotator's use of the scale: standardisation, rescaling to references, and description.


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
    _, first = np.unique(positions, return_index=True)
    return tuple(labels[first[codes]].tolist())


# Two systems rated by the same annotators: mean differences, reversals of the preference, and rank tests.


@dataclass(frozen=True, slots=True)
class ReversalGuard(Record):
    """How far rounding to the steps of the scale can have changed a difference of means.

    The true difference is in the open interval (low, high). If that contains 0, a reversal of the preference cannot
    be excluded; this does not mean that it occurred.
    """

    observed: float
    step: float
    low: float
    high: float
    is_reversal_possible: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the data of the sentence in the report."""
        sentence = "reversal_cannot_be_excluded" if self.is_reversal_possible else "reversal_excluded"
        return Record.as_dict(self) | {"sentence": sentence}


def paired_difference_paper(x: npt.ArrayLike, y: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """The paper's comparison: the mean difference of each annotator's ratings of two systems, with a paired t test.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        One rating per annotator; row i of both is the same annotator. NaN leaves the annotator out.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The mean difference, in mode "paper".

    References
    ----------
    Section 6.1, the last column of Table 1 (with Holm over the pairs).

    Examples
    --------
    >>> paired_difference_paper([3, 2, 4, 5], [3, 1, 4, 5]).estimate
    0.25
    """
    return basic.paired_t_test(x, y, level=level, mode="paper").labelled(
        analysis="rating.pair", estimand="mean difference of ratings x - y", unit="annotator"
    )


def rounding_reversal_guard(observed: float, *, step: float = 1.0) -> ReversalGuard:
    """Check whether rounding to the scale can have reversed a preference (propositions 1 and 2 of the paper).

    `observed` is a difference of means, and `step` the distance between two points of the scale, which is small for a
    continuous scale. An annotator who rounds a utility up to the next point adds a residual in [0, step). The true
    difference of means is therefore in (observed - step, observed + step), and its sign is certain only if |observed|
    >= step (section 3, remark 2 and propositions 1 and 2).

    >>> rounding_reversal_guard(0.644).is_reversal_possible, rounding_reversal_guard(-1.2).is_reversal_possible
    (True, False)
    """
    if not (math.isfinite(step) and step > 0):
        raise ValueError(f"step: {step!r} is not a positive number")
    if not math.isfinite(observed):
        raise ValueError("observed: not a finite number")
    return ReversalGuard(observed, step, observed - step, observed + step, abs(observed) < step)


def paired_mean_difference(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike | None = None,
    population: str = "",
    scale: tuple[float, float],
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    analysis: str = "rating.mean_difference",
) -> Estimate:
    """Mean of x - y over annotator-prompt pairs, clustered by annotator and, if given, by prompt.

    Parameters
    ----------
    x, y : array_like, shape (n_rows,)
        One annotator's ratings of both systems for one prompt; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.
    prompts : array_like, shape (n_rows,), optional
        Label of each row's prompt. With five prompts or more the claim is about prompts like these, too.
    population : {"", "people_and_prompts", "people"}, default ""
        What the claim is about, see `clusters.annotator_prompt_clustered_mean`. Without prompts it has no effect.
    scale : tuple[float, float]
        Ends of the scale.
    bounds : tuple[float, float], optional
        Least and greatest possible difference. By default -/+ the length of the scale.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis : str, optional
        Name that is copied to the record.

    Returns
    -------
    Estimate
        The mean difference. `detail["share_of_range"]` is the difference divided by the length of the scale.

    Notes
    -----
    It assumes an interval scale (warning `interval_scale_assumed`). See `clusters.annotator_prompt_clustered_mean`. With one row per
    annotator and no prompts this is the paired t test, unless the differences are very skewed.

    Examples
    --------
    >>> result = paired_mean_difference([4, 5, 3, 4], [3, 3, 3, 3], [1, 2, 3, 4], scale=(1, 5))
    >>> result.estimate, result.detail["share_of_range"]
    (1.0, 0.25)
    """
    first, second = _rated(x, y, scale)
    span = float(scale[1] - scale[0])
    common: dict[str, Any] = {
        "null": 0.0,
        "level": level,
        "bounds": (-span, span) if bounds is None else bounds,
        "analysis": analysis,
        "estimand": "mean difference of ratings x - y",
        "unit": "annotator",
    }
    if prompts is None:
        result = clusters.clustered_mean(first - second, annotators, **common)
    else:
        result = clusters.annotator_prompt_clustered_mean(
            first - second, annotators, prompts, population=population, **common
        )
    share = None if result.estimate is None else result.estimate / (scale[1] - scale[0])
    assumed = ResultWarning("interval_scale_assumed", "info")
    return replace(
        result,
        warnings=(*result.warnings, assumed),
        detail={**result.detail, "share_of_range": share},
        settings={**result.settings, "scale": scale},
    )


def probability_of_superiority(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike | None = None,
    population: str = "",
    level: float = 0.95,
    analysis: str = "rating.superiority",
) -> Estimate:
    """Probability that an annotator rates x above y for the same prompt; ties count half.

    Parameters
    ----------
    x, y : array_like, shape (n_rows,)
        One annotator's ratings of both systems for one prompt; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.
    prompts : array_like, shape (n_rows,), optional
        Label of each row's prompt. With five prompts or more the claim is about prompts like these, too.
    population : {"", "people_and_prompts", "people"}, default ""
        What the claim is about, see `clusters.annotator_prompt_clustered_mean`. Without prompts it has no effect.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis : str, optional
        Name that is copied to the record.

    Returns
    -------
    Estimate
        PS, the mean of {1, .5, 0} over rows. `detail` has Cliff's delta = 2 PS - 1. There is no test with fewer than six
        annotators.

    Notes
    -----
    Only the order of the ratings matters. The test is against .5; see `clusters.annotator_prompt_clustered_mean`, or
    `clusters.clustered_mean` without prompts.

    References
    ----------
    Recommended instead of mean Likert differences, which need equal intervals by section 3, Remark 1.

    Examples
    --------
    >>> result = probability_of_superiority([4, 5, 3, 4], [3, 3, 3, 5], [1, 2, 3, 4])
    >>> result.estimate, result.detail["cliff_delta"], result.detail["n_ties"]
    (0.625, 0.25, 1)
    """
    first, second = _rated(x, y, None)
    difference = first - second
    scores = np.where(np.isnan(difference), np.nan, (np.sign(difference) + 1) / 2)
    common: dict[str, Any] = {
        "null": 0.5,
        "level": level,
        "bounds": (0.0, 1.0),
        "analysis": analysis,
        "estimand": "probability that x is rated above y, ties half",
        "unit": "annotator",
    }
    if prompts is None:
        result = clusters.clustered_mean(scores, annotators, **common)
    else:
        result = clusters.annotator_prompt_clustered_mean(scores, annotators, prompts, population=population, **common)
    observed = scores[~np.isnan(scores)]
    detail = {
        **result.detail,
        "cliff_delta": None if result.estimate is None else 2 * result.estimate - 1,
        "n_above": int(np.sum(observed == 1)),
        "n_ties": int(np.sum(observed == 0.5)),
        "n_below": int(np.sum(observed == 0)),
    }
    return replace(result, detail=detail)


def sign_and_wilcoxon_tests(x: npt.ArrayLike, y: npt.ArrayLike, annotators: npt.ArrayLike) -> tuple[Estimate, Estimate]:
    """Sign test and Wilcoxon's test of symmetry of x - y, one difference per annotator.

    Parameters
    ----------
    x, y : array_like, shape (n_rows,)
        One annotator's ratings of both systems for one prompt; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.

    Returns
    -------
    tuple[Estimate, Estimate]
        The sign test and Wilcoxon's test.

    Notes
    -----
    An annotator with several rows counts with the mean difference, because these rows are not independent.

    Examples
    --------
    >>> sign, symmetry = sign_and_wilcoxon_tests([4, 5, 3, 4], [3, 3, 3, 5], [1, 2, 3, 4])
    >>> sign.detail["n_ties"], sign.estimate
    (1, 0.6666666666666666)
    """
    first, second = _rated(x, y, None)
    difference = first - second
    is_complete = ~np.isnan(difference)
    positions, n_annotators = label_codes(np.asarray(annotators)[is_complete], "annotators", int(is_complete.sum()))
    means = group_sums(positions, difference[is_complete], n_annotators) / group_sizes(positions, n_annotators)
    return (
        basic.sign_test(means).labelled(analysis="rating.sign_test", unit="annotator"),
        basic.wilcoxon(means).labelled(analysis="rating.wilcoxon", unit="annotator"),
    )


def _rated(x: npt.ArrayLike, y: npt.ArrayLike, scale: tuple[float, float] | None) -> tuple[FloatArray, FloatArray]:
    first, second = vector(x, "x"), vector(y, "y")
    if first.shape != second.shape:
        raise ValueError(f"y: {len(second)} ratings where x has {len(first)}")
    if scale is not None:
        validate_within_bounds(first, scale, "x")
        validate_within_bounds(second, scale, "y")
    return first, second


# A proportional-odds model of ordered ratings.


MAX_STEPS = 100
HALVINGS = 40
TOLERANCE = 1e-10


def cumulative_logit(
    ratings: npt.ArrayLike,
    systems: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    system: object,
    reference: object,
    level: float = 0.95,
) -> Estimate:
    """Estimate the log odds ratio of a higher rating, `system` against `reference`, in a proportional-odds model.

    NaN is a missing rating, and rows of other systems are left out. The model is logit P(rating > k) = b [row is of
    system] - c_k for every threshold k (McCullagh 1980, Regression models for ordinal data). The interval and the test
    are those of `cluster_models.ModelSpread`: the jackknife over annotators, and with prompts over both. Without prompts, or
    with fewer than five, the estimate is for exactly these prompts. `detail["by_threshold"]` has the log odds ratio at
    each threshold (None if a cell is empty). If these differ much, the proportional-odds assumption fails: do not
    report the single number. The status is `separation` if all ratings of one system are at or above the other's,
    `not_identified` if no two ratings are equal or one annotator (or prompt) alone connects the systems, and `failed`
    if the fit does not converge.

    >>> rng = np.random.default_rng(0)
    >>> ratings = np.r_[rng.integers(2, 6, 40), rng.integers(1, 5, 40)]
    >>> result = cumulative_logit(ratings, ["x"] * 40 + ["y"] * 40, [*range(40)] * 2, system="x", reference="y")
    >>> result.status, result.estimate > 0
    ('ok', True)
    """
    validate_level(level)
    observed, treated, is_used = select_two_systems(ratings, systems, system, reference)
    positions, n_annotators = label_codes_where(annotators, "annotators", is_used)
    prompt_codes = None if prompts is None else label_codes_where(prompts, "prompts", is_used)[0]
    common: dict[str, Any] = {
        "analysis": "rating.cumulative_logit",
        "estimand": "log odds ratio of a higher rating, system against reference",
        "unit": "annotator",
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": len(observed),
        "settings": {"system": str(system), "reference": str(reference), "level": level},
    }
    edge = missing_rating_estimate(treated, common)
    if edge is not None:
        return edge
    points = np.unique(observed)
    if len(points) == 1:
        return Estimate(status="zero_variance", reason="all ratings are equal", **common)
    if n_annotators < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", **common)
    system_ratings, reference_ratings = observed[treated == 1], observed[treated == 0]
    if system_ratings.min() >= reference_ratings.max() or reference_ratings.min() >= system_ratings.max():
        return Estimate(status="separation", reason="one system's ratings all lie above the other's", **common)
    detail = {
        "by_threshold": [_threshold(system_ratings, reference_ratings, point) for point in points[:-1]],
        "points": points,
    }
    if len(points) == len(observed):
        reason = "no two ratings are equal, so every one has a parameter of its own"
        return Estimate(status="not_identified", reason=reason, detail=detail, **common)
    fitted = _fit_ordered(observed, treated)
    if isinstance(fitted, str):
        return Estimate(status="failed", reason=fitted, detail=detail, **common)
    value, rows = fitted
    spread = cluster_models.ModelSpread.from_rows(rows, positions, prompt_codes, unit="annotator")
    contrast = np.zeros(len(rows.information))
    contrast[-1] = 1.0
    detail["odds_ratio"] = math.exp(min(700.0, value))
    return spread.estimate(value, contrast, level=level, null=0.0, detail=detail, **common)


def _threshold(system_ratings: FloatArray, reference_ratings: FloatArray, point: float) -> float | None:
    """Return the log odds ratio of a rating above `point`."""
    above, below = float(np.sum(system_ratings > point)), float(np.sum(system_ratings <= point))
    other_above, other_below = float(np.sum(reference_ratings > point)), float(np.sum(reference_ratings <= point))
    if min(above, below, other_above, other_below) == 0:
        return None
    return math.log(above / below) - math.log(other_above / other_below)


def _fit_ordered(ratings: FloatArray, treated: FloatArray) -> tuple[float, cluster_models.FittedRows] | str:
    """Return the coefficient and the derivatives of the rows, or the reason why they are undefined.

    Newton's method on the counts of ratings by system. The log-likelihood is concave, so there is one maximum.
    """
    _, level = np.unique(ratings, return_inverse=True)
    n_cuts = int(level.max())
    row = treated.astype(np.int64)
    counts = group_sizes(row * (n_cuts + 1) + level, 2 * (n_cuts + 1)).reshape(2, n_cuts + 1)
    above = np.cumsum(counts.sum(axis=0)) / counts.sum()
    point = np.append(special.logit(above[:-1]), 0.0)
    current = _Cumulative.at(point, counts)
    for _ in range(MAX_STEPS):
        step = np.linalg.solve(current.information, current.slope)
        following = _Cumulative.at(point + step, counts)
        # A step that is too long can reverse thresholds, so that the likelihood is undefined or lower.
        for _ in range(HALVINGS):
            if following.log_likelihood >= current.log_likelihood - 1e-9 * (1 + abs(current.log_likelihood)):
                break
            step = step / 2
            following = _Cumulative.at(point + step, counts)
        point, current = point + step, following
        if float(np.max(np.abs(step))) < TOLERANCE:
            break
    else:
        return "the fit did not converge"
    cells, k = row * (n_cuts + 1) + level, n_cuts + 1
    scores = current.scores.reshape(-1, k)[cells]
    return float(point[-1]), cluster_models.FittedRows(
        current.information, scores, cells, -current.curvature.reshape(-1, k, k)
    )


@dataclass(frozen=True, slots=True)
class _Cumulative:
    """The proportional-odds likelihood at thresholds c and coefficient b, from counts (2, K): reference, system.

    P(rating <= k) = expit(c_k - b [system]). `scores` (2, K, K) are the derivatives of each cell's log-probability by
    (c_1 .. c_K-1, b), `curvature` (2, K, K, K) the second ones. `slope` is the sum of the former over all rows,
    `information` minus that of the latter.
    """

    log_likelihood: float
    scores: FloatArray
    curvature: FloatArray
    slope: FloatArray
    information: FloatArray

    @classmethod
    def at(cls, point: FloatArray, counts: FloatArray) -> "_Cumulative":
        n_cuts = len(point) - 1
        ends = point[:-1] - np.array([[0.0], [point[-1]]])
        below = np.column_stack([np.zeros(2), special.expit(ends), np.ones(2)])
        chances = np.diff(below, axis=1)
        nothing = np.zeros((2, n_cuts + 1, n_cuts + 1))
        if np.any(np.diff(point[:-1]) <= 0) or np.any(chances <= 0):
            return cls(-math.inf, nothing, nothing, nothing[0, 0], nothing[0])
        density = below * (1 - below)
        bend = density * (1 - 2 * below)
        # Derivatives of the two ends of each cell by the parameters; the first and last end are constant.
        moves = np.zeros((2, n_cuts + 2, n_cuts + 1))
        moves[:, np.arange(1, n_cuts + 1), np.arange(n_cuts)] = 1.0
        moves[1, 1:-1, -1] = -1.0
        edge = density[..., None] * moves
        scores = np.diff(edge, axis=1) / chances[..., None]
        second = bend[..., None, None] * moves[..., :, None] * moves[..., None, :]
        curvature = np.diff(second, axis=1) / chances[..., None, None] - scores[..., :, None] * scores[..., None, :]
        return cls(
            float(np.sum(counts * np.log(chances))),
            scores,
            curvature,
            np.einsum("ik,ikp->p", counts, scores),
            -np.einsum("ik,ikpq->pq", counts, curvature),
        )


# The effect of the place on the page on a rating.


def rating_change_per_position(
    ratings: npt.ArrayLike,
    positions: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    systems: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Change of a rating per place on the page or in the sequence, clustered by annotator and, if given, by prompt (CV3).

    Parameters
    ----------
    ratings : array_like, shape (n_rows,)
        Ratings; NaN is missing.
    positions : array_like, shape (n_rows,)
        Place of each output, a number.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.
    prompts : array_like, shape (n_rows,), optional
        Label of each row's prompt. Without prompts, or with fewer than five, the effect is about exactly these prompts.
    systems : array_like, shape (n_rows,), optional
        Label of each row's system. Each system gets its own constant, so a system that was often shown first does not
        bias the effect.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The slope of the least-squares regression of rating on place, with the interval and the test of
        `cluster_models.ModelSpread`.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> annotators = np.repeat(np.arange(10), 3)
    >>> noise = np.tile([0.1, -0.1, 0.0, 0.2, -0.2], 6)
    >>> round(rating_change_per_position(3 - np.tile([0, 1, 2], 10) + noise, np.tile([0, 1, 2], 10), annotators).estimate, 1)
    -1.0
    """
    validate_level(level)
    array, places = vector(ratings, "ratings"), vector(positions, "positions")
    if places.shape != array.shape:
        raise ValueError(f"positions: {len(places)} values where ratings has {len(array)}")
    is_complete = ~np.isnan(array) & ~np.isnan(places)
    labels, n_annotators = label_codes_where(annotators, "annotators", is_complete)
    groups, n_groups = label_codes_where(np.zeros(len(array)) if systems is None else systems, "systems", is_complete)
    common: dict[str, Any] = {
        "analysis": "rating.position_effect",
        "estimand": "change of the rating per place",
        "unit": "annotator",
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": int(is_complete.sum()),
        "settings": {"level": level, "within_systems": systems is not None},
    }
    if not is_complete.any():
        return Estimate(status="no_data", reason="no rating to analyse", **common)
    if n_annotators < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", **common)
    design = np.column_stack([np.eye(n_groups)[groups], places[is_complete]])
    if np.linalg.matrix_rank(design) < n_groups + 1:
        reason = "each system was always at the same place, so that the effect of the place is not known"
        return Estimate(status="not_identified", reason=reason, **common)
    information = design.T @ design
    coefficients = np.linalg.solve(information, design.T @ array[is_complete])
    residuals = array[is_complete] - design @ coefficients
    distinct, cells = np.unique(design, axis=0, return_inverse=True)
    rows = cluster_models.FittedRows(
        information, design * residuals[:, None], cells.reshape(-1), distinct[:, :, None] * distinct[:, None, :]
    )
    second = None if prompts is None else label_codes_where(prompts, "prompts", is_complete)[0]
    spread = cluster_models.ModelSpread.from_rows(rows, labels, second, unit="annotator")
    slope = np.zeros(n_groups + 1)
    slope[-1] = 1.0
    return spread.estimate(float(coefficients[-1]), slope, level=level, null=0.0, **common)
