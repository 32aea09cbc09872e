"""Variances of means over rows in clusters, and warnings about few or unequal clusters."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
from analysis.stats.betting import final_log_wealth_of_ratio
from analysis.stats.confidence import GRID, STAKE_LEVEL, BettingCurve
from analysis.stats.results import Interval, Record, ResultWarning

# What a result is about: which units represent others like them, and which are exactly those of the study.


# People and prompts like those of the study, or people only, for exactly these prompts.
PEOPLE_AND_PROMPTS, PEOPLE = "people and prompts", "people"
# What a design can declare for a comparison (the values of its column); empty is not declared.
DECLARED_POPULATIONS = ("", "people_and_prompts", "people")


def validate_population(population: str) -> None:
    """Raise ValueError if no design can declare this population.

    >>> validate_population("people")
    """
    if population not in DECLARED_POPULATIONS:
        raise ValueError(f"population: {population!r} is not one of {', '.join(map(repr, DECLARED_POPULATIONS))}")


def too_few_prompts(n: int, unit: str = "prompts") -> str:
    """Return the reason why so few prompts give no interval about prompts like these.

    >>> too_few_prompts(1)
    '1 prompt is too few for an interval about prompts like these, which needs five'
    """
    one = unit.replace("groups", "group") if unit.startswith("groups") else unit[:-1]
    return f"{f'1 {one} is' if n == 1 else f'{n} {unit} are'} too few for an interval about prompts like these, which needs five"


# Variances of a mean over rows in clusters.


@dataclass(frozen=True, slots=True)
class VarianceComponents(Record):
    """One-way variance components: `between` clusters, `within` clusters, their ratio and the design effect.

    `icc` = between / (between + within). `design_effect` is the factor by which clusters of these sizes inflate the
    variance of the mean. A component that cannot be estimated is None.
    """

    n_clusters: int
    n_rows: int
    between: float | None
    within: float | None
    icc: float | None
    design_effect: float | None


@dataclass(frozen=True, slots=True)
class TwoWayVariance(Record):
    """Variance of a mean over rows with crossed clusters: over `annotators`, over `items`, and `combined`.

    `combined` = V_a + V_i - V_ai. By chance it can be smaller than either part, or negative.
    """

    annotators: float
    items: float
    combined: float

    @property
    def variance(self) -> float:
        """Return the largest of the three. It is positive, and its coverage is at its level with five annotators."""
        return max(self.combined, self.annotators, self.items)

    @property
    def is_combined_largest(self) -> bool:
        """Return whether `combined` exceeds the two parts by more than rounding.

        They are equal if each annotator has prompts of their own, for example.
        """
        return self.combined > max(self.annotators, self.items) * (1 + 1e-9)

    def detail(self) -> dict[str, Any]:
        """Return the parts as entries for `Estimate.detail`."""
        return {
            "variance_annotators": self.annotators,
            "variance_items": self.items,
            "variance_two_way": self.combined,
            "is_maximum": not self.is_combined_largest,
        }


def cv3_variance(sums: FloatArray, sizes: FloatArray) -> float:
    """Compute the leave-one-cluster-out (CV3) variance of the ratio sum(sums) / sum(sizes); shapes (G,).

    >>> round(cv3_variance(np.array([1.0, 2.0, 3.0]), np.ones(3)), 4)
    0.3333
    """
    n_clusters = len(sums)
    mean = float(np.sum(sums)) / float(np.sum(sizes))
    without = (np.sum(sums) - sums) / (np.sum(sizes) - sizes)
    return (n_clusters - 1) / n_clusters * float(np.sum((without - mean) ** 2))


def pair_variance(influences: FloatArray, annotator_codes: IntArray, item_codes: IntArray) -> float:
    """Compute the variance of an estimate if pairs of annotator and item were independent.

    `influences` is what each row moves the estimate by: for a weighted mean, weight (value - mean) / sum of weights.
    The codes are integers from 0, and gaps are allowed. V = P / (P - 1) sum_p (sum of influences in pair p)^2, and 0
    for a single pair. Over annotators alone or items alone this formula (CR1) is too small if they have unequal
    weights, so only the term of the pairs, which is subtracted, uses it.

    >>> round(pair_variance(np.array([-1.0, 0.0, 1.0]) / 3, np.array([0, 1, 2]), np.array([0, 0, 0])), 4)
    0.3333
    """
    sums = pair_sums(influences, annotator_codes, item_codes)
    if len(sums) < 2:
        return 0.0
    return len(sums) / (len(sums) - 1) * float(np.sum(sums**2))


def pair_sums(influences: FloatArray, annotator_codes: IntArray, item_codes: IntArray) -> FloatArray:
    """Return the sum of each pair of annotator and item.

    >>> pair_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([3, 3, 3])).tolist()
    [3.0, 4.0]
    """
    # Recode the pairs: codes of all possible pairs would need more memory than there are rows.
    pairs, n_pairs = label_codes(annotator_codes * (int(item_codes.max()) + 1) + item_codes, "pairs", len(influences))
    return group_sums(pairs, influences, n_pairs)


def two_way_jackknife(
    values: FloatArray, weights: FloatArray, annotator_codes: IntArray, item_codes: IntArray
) -> tuple[TwoWayVariance, float]:
    """Compute the jackknife (CV3) variance of a weighted mean over annotators and items, with its degrees of freedom.

    The weights are positive, and the codes are integers from 0 without gaps. The result has the variances over each way
    and combined, and the degrees of freedom of the t distribution of the mean. V_a and V_i leave out one annotator or
    one item at a time, and V_ai is the variance of independent pairs of annotator and item (Cameron, Gelbach and Miller
    2011, Robust inference with multiway clustering). Each way has G* - 1 degrees of freedom, with G* of the weights. If
    V_a + V_i - V_ai is the largest, they are combined by Satterthwaite's rule (1946); otherwise those of the larger
    variance are used. They are at least 1.

    >>> values, people, prompts = np.array([1.0, 0, 1, 1, 0, 0]), np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 0, 1])
    >>> spread, df = two_way_jackknife(values, np.ones(6), people, prompts)
    >>> round(spread.annotators, 4), round(spread.items, 4), df
    (0.0833, 0.0278, 2.0)
    """
    parts, dfs = [], []
    for labels in (annotator_codes, item_codes):
        n_clusters = int(labels.max()) + 1
        sizes = group_sums(labels, weights, n_clusters)
        parts.append(cv3_variance(group_sums(labels, weights * values, n_clusters), sizes))
        dfs.append(max(1.0, float(np.sum(sizes)) ** 2 / float(np.sum(sizes**2)) - 1))
    total = float(np.sum(weights))
    influences = weights * (values - float(np.sum(weights * values)) / total) / total
    by_pair = pair_variance(influences, annotator_codes, item_codes)
    return combine_two_way_variances((parts[0], parts[1]), by_pair, (dfs[0], dfs[1]))


def combine_two_way_variances(
    parts: tuple[float, float], by_pair: float, dfs: tuple[float, float]
) -> tuple[TwoWayVariance, float]:
    """Combine the variances over annotators and over items, and their degrees of freedom.

    `parts` are the variances over annotators and over items, `dfs` their degrees of freedom, and `by_pair` is the
    variance of independent pairs of annotator and item. The result has the variances over each and combined, and the
    degrees of freedom: those of Satterthwaite's rule if V_a + V_i - V_ai is the largest, otherwise those of the larger
    variance; at least 1.

    >>> spread, df = combine_two_way_variances((2.0, 1.0), 0.5, (9.0, 4.0))
    >>> spread.variance, round(df, 2)
    (2.5, 9.0)
    """
    spread = TwoWayVariance(*parts, parts[0] + parts[1] - by_pair)
    if spread.is_combined_largest:
        df = spread.combined**2 / sum(part**2 / own for part, own in zip(parts, dfs, strict=True))
    else:
        df = dfs[0] if spread.annotators >= spread.items else dfs[1]
    return spread, max(1.0, df)


def variance_components(values: npt.ArrayLike, clusters: npt.ArrayLike) -> VarianceComponents:
    """One-way variance components by the method of moments.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values; NaN is missing.
    clusters : array_like, shape (n_rows,)
        Label of each row's cluster.

    Returns
    -------
    VarianceComponents
        The components. A negative component is reported as 0.

    Notes
    -----
    With the mean squares MSB and MSW and n0 = (N - sum(n_g^2) / N) / (G - 1): within = MSW, between = max(0, (MSB -
    MSW) / n0). The design effect of the mean is 1 + (sum(n_g^2) / N - 1) icc.

    Examples
    --------
    >>> components = variance_components([1, 1, 3, 3, 5, 5], ["a", "a", "b", "b", "c", "c"])
    >>> components.between, components.within, components.icc
    (4.0, 0.0, 1.0)
    """
    observed, positions, n_clusters, _ = observed_rows(values, clusters, "clusters")
    n_rows = len(observed)
    if n_clusters < 2 or n_rows <= n_clusters:
        return VarianceComponents(n_clusters, n_rows, None, None, None, None)
    sizes = group_sizes(positions, n_clusters)
    means = group_sums(positions, observed, n_clusters) / sizes
    between_squares = float(np.sum(sizes * (means - np.mean(observed)) ** 2)) / (n_clusters - 1)
    within = float(np.sum((observed - means[positions]) ** 2)) / (n_rows - n_clusters)
    squared = float(np.sum(sizes**2)) / n_rows
    between = max(0.0, (between_squares - within) / ((n_rows - squared) / (n_clusters - 1)))
    total = between + within
    icc = None if total < MIN_SPREAD**2 else between / total
    return VarianceComponents(
        n_clusters, n_rows, between, within, icc, None if icc is None else 1 + (squared - 1) * icc
    )


def observed_rows(values: npt.ArrayLike, clusters: npt.ArrayLike, name: str) -> tuple[FloatArray, IntArray, int, int]:
    """Return the values that are not missing, their clusters as 0..G-1, G, and the number of missing values."""
    array = vector(values, "values")
    is_observed = ~np.isnan(array)
    kept_positions, n_clusters = label_codes_where(clusters, name, is_observed)
    return array[is_observed], kept_positions, n_clusters, int((~is_observed).sum())


def sums_by_cluster(rows: FloatArray, positions: IntArray, n_clusters: int) -> FloatArray:
    """Return the sum of the rows of each cluster, for rows of any shape."""
    flat = rows.reshape(len(rows), -1)
    summed = np.stack([group_sums(positions, column, n_clusters) for column in flat.T], axis=1)
    return summed.reshape((n_clusters, *rows.shape[1:]))


# What unequal and skewed clusters do to the interval of a mean.


# A number of one study, or of each of many.
Moment = float | FloatArray


def degrees_of_freedom(sums: FloatArray, sizes: FloatArray) -> FloatArray:
    """Compute the degrees of freedom of a variance over clusters: how many clusters it depends on, minus 1.

    `sums` (..., G) are those of each cluster's residuals, `sizes` (G,) those of the clusters, and the result has the
    shape (...). The degrees of freedom are the smaller of two effective numbers of clusters, minus 1, and at least 1.
    The first, G*, is that of the sizes. The second is 3 (sum s^2)^2 / sum s^4: about G for normal sums s, and about 3
    if one cluster has nearly all the variance. By Satterthwaite, 2 / df is the squared coefficient of variation of the
    variance, which grows with the kurtosis of the sums.

    >>> float(degrees_of_freedom(np.array([-1.0, 1.0, -1.0, 1.0]), np.ones(4)))
    3.0
    >>> float(degrees_of_freedom(np.array([-9.0] + 9 * [1.0]), np.ones(10))) < 3
    True
    """
    by_size = effective_n_clusters(sizes)
    squares = np.sum(sums**2, axis=-1)
    fourths = np.sum(sums**4, axis=-1)
    has_spread = fourths > 0
    by_sum = np.where(has_spread, 3 * squares**2 / np.where(has_spread, fourths, 1.0), by_size)
    return np.asarray(np.maximum(1.0, np.minimum(by_size, by_sum) - 1))


def combined_skewness(
    annotators: tuple[Moment, Moment], items: tuple[Moment, Moment], pairs: tuple[Moment, Moment]
) -> FloatArray:
    """Compute the skewness of a mean over annotators and items, from sums of residuals over each and over their pairs.

    Each argument has the sum of the squares and the sum of the cubes of the clusters' sums of residuals, floats or
    arrays. The skewness is the third cumulant divided by the variance to the power 1.5, and 0 without spread. The third
    cumulant has the terms of the variance: those of both ways minus that of the pairs, or those of the way with the
    larger variance.

    >>> one, none = (12.0, 24.0), (0.0, 0.0)
    >>> round(float(combined_skewness(one, none, none)), 3)
    0.577
    """
    largest = np.maximum(annotators[0], items[0])
    combined = annotators[0] + items[0] - pairs[0]
    is_combined = combined > largest * (1 + 1e-9)
    thirds = np.where(annotators[0] >= items[0], annotators[1], items[1])
    squares = np.where(is_combined, combined, largest)
    thirds = np.where(is_combined, annotators[1] + items[1] - pairs[1], thirds)
    has_spread = squares > 0
    return np.asarray(np.where(has_spread, thirds / np.where(has_spread, squares, 1.0) ** 1.5, 0.0))


def unexplained_skewness(
    skewness: Moment, se: Moment, estimate: Moment, bounds: tuple[float, float] | None
) -> FloatArray:
    """Compute the absolute skewness of a mean that the ends of the scale do not explain.

    `se` is the standard error of the mean, and `estimate` the mean. The ends of the scale, `bounds`, explain the
    skewness of a mean with the same standard error whose variance is in proportion to (m - low) (high - m); it is
    subtracted, because `confidence.ScoreCurve` allows for it. If `bounds` is None, they explain nothing. Where a
    variance V depends on the mean m, the third cumulant is V dV/dm: it is a natural exponential family's (Morris 1982).

    >>> of_ninety_of_a_hundred = -0.8 / (100 * 0.09) ** 0.5
    >>> round(float(unexplained_skewness(of_ninety_of_a_hundred, 0.03, 0.9, (0, 1))), 9)
    0.0
    """
    if bounds is None:
        return np.asarray(np.abs(skewness))
    room = np.asarray((estimate - bounds[0]) * (bounds[1] - estimate))
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = np.where(room > 0, se * (bounds[0] + bounds[1] - 2 * estimate) / room, 0.0)
    return np.asarray(np.abs(skewness - explained))


# The effective number of clusters, and warnings about few or unequal clusters.


# Below FEW_CLUSTERS (effective) clusters an interval is doubtful; below TOO_FEW_CLUSTERS there is no test.
FEW_CLUSTERS = 20
TOO_FEW_CLUSTERS = 6
# With fewer items a t interval over items is not valid.
TOO_FEW_ITEMS = 5
# With more skewed clusters a t interval is not valid; see `abs_skewness_of_clustered_mean`.
MAX_SKEWNESS = 0.35
DOMINANT_SHARE = 0.1


def effective_n_clusters(sizes: npt.ArrayLike) -> float:
    """Effective number of clusters, G* = N^2 / sum(n_g^2).

    Parameters
    ----------
    sizes : array_like, shape (G,)
        Rows in each cluster.

    Returns
    -------
    float
        The number of equally large clusters with the same weight; G if all are equal.

    Examples
    --------
    >>> effective_n_clusters([5, 5, 5, 5]), round(effective_n_clusters([17, 1, 1, 1]), 2)
    (4.0, 1.37)
    """
    array = vector(sizes, "sizes")
    return float(np.sum(array)) ** 2 / float(np.sum(array**2))


def abs_skewness_of_clustered_mean(residuals: FloatArray, codes: IntArray) -> float:
    """Compute the absolute skewness of the clusters' sums of residuals, divided by the square root of their number.

    `residuals` are the weighted values minus their mean, and `codes` are those of the clusters, from 0. The result is 0
    without spread. The error of a t interval grows with it (Edgeworth's expansion).

    >>> round(abs_skewness_of_clustered_mean(np.array([-1.0, -1.0, -1.0, 3.0]), np.arange(4)), 3)
    0.577
    """
    sums = np.bincount(codes, residuals)
    spread = float(np.sqrt(np.mean(sums**2)))
    if spread < MIN_SPREAD:
        return 0.0
    return abs(float(np.mean(sums**3))) / spread**3 / math.sqrt(len(sums))


def cluster_warnings(
    sizes: npt.ArrayLike, *, name: str = "annotator", fewest: int = TOO_FEW_CLUSTERS
) -> tuple[ResultWarning, ...]:
    """Return the warnings about few or unequal clusters.

    `sizes` (G,) are the rows in each cluster, and `name` is the name of a cluster in the warnings. The warning is
    `few_clusters` if G* is below 20; its severity is block with fewer than `fewest` clusters, which allow no test. It
    is `dominant_annotator` if one of more than ten clusters gave more than a tenth of the answers.

    >>> [warning.code for warning in cluster_warnings([5] * 30)]
    []
    >>> [(warning.code, warning.severity) for warning in cluster_warnings([5] * 4 + [1])]
    [('few_clusters', 'block')]
    """
    array = vector(sizes, "sizes")
    effective = effective_n_clusters(array)
    warnings = []
    if effective < FEW_CLUSTERS:
        severity = "block" if len(array) < fewest else "warn"
        warnings.append(
            ResultWarning("few_clusters", severity, {"cluster": name, "n_clusters": len(array), "effective": effective})
        )
    largest = float(array.max()) / float(array.sum())
    # With ten clusters or fewer an equal share is already a tenth; `few_clusters` covers that case.
    if len(array) > 1 / DOMINANT_SHARE and largest > DOMINANT_SHARE:
        warnings.append(ResultWarning("dominant_annotator", "warn", {"cluster": name, "largest_share": largest}))
    return tuple(warnings)


def two_way_warnings(
    annotator_codes: IntArray, item_codes: IntArray, *, unit: str = "annotator"
) -> tuple[ResultWarning, ...]:
    """Return the warnings of `cluster_warnings` for annotators, and for items if they are few.

    The codes are integers from 0, one per row, and `unit` is the name of an annotator in the warnings.

    >>> [warning.detail["cluster"] for warning in two_way_warnings(np.arange(60) // 2, np.arange(60) % 3)]
    ['item']
    """
    of_items = cluster_warnings(np.bincount(item_codes), name="item", fewest=TOO_FEW_ITEMS)
    few = tuple(warning for warning in of_items if warning.code == "few_clusters")
    return (*cluster_warnings(np.bincount(annotator_codes), name=unit), *few)


# What would narrow an interval by bets.


# How many times as many clusters are tried, and the ratio of widths that counts as narrower.
TIMES = (2, 4)
NARROWER = 0.8


def betting_warning(
    why: str,
    skewness: float,
    interval: Interval,
    bounds: tuple[float, float],
    ways: Sequence[tuple[str, FloatArray, FloatArray]],
) -> ResultWarning:
    """Build the warning that bets replace the t test, with the number of clusters that would narrow their interval.

    `why` is "no spread", "skewed" or "few clusters", the reason why no t interval is valid. `skewness` is that which
    the ends of the scale, `bounds`, do not explain, and `interval` is that by bets. `ways` has the name of a cluster of
    each kind, and the sums of values and the sizes of the clusters. The warning is `betting_instead_of_t`. Its detail
    has `width`, the part of the scale that the interval covers; `needed`, the number of clusters of each kind of which
    more would be needed; and `width_with_needed`, the part that the interval would then cover. `is_narrower` is False
    if it would hardly be narrower with four times as many. Bets count units that share no cluster, so there are as many
    as the rarer kind has clusters. Bets on these clusters, each of them two or four times, say by how much more of them
    narrow the interval. More of the other kind alone add no unit.

    >>> always = Interval(0.95, 0.7, 1.0, "betting")
    >>> ways = [("annotator", np.full(30, 5.0), np.full(30, 5.0)), ("item", np.full(12, 12.5), np.full(12, 12.5))]
    >>> found = betting_warning("no spread", 0.0, always, (0.0, 1.0), ways)
    >>> found.detail["needed"], found.detail["width_with_needed"] < found.detail["width"]
    ({'item': 24}, True)
    """
    low, high = bounds
    _, sums, sizes = min(ways, key=lambda way: len(way[1]))
    means = np.sort(np.clip((sums / sizes - low) / (high - low), 0.0, 1.0))
    shares = (sizes / sizes.max())[np.argsort(sums / sizes, kind="stable")]
    width = (interval.high - interval.low) / (high - low)
    now = _width(means, shares, interval.level)
    detail: dict[str, Any] = {"why": why, "skewness": skewness, "width": width, "is_narrower": False}
    for times in TIMES:
        ratio = _width(np.tile(means, times), np.tile(shares, times), interval.level) / now
        goal = times * len(means)
        detail["needed"] = {name: goal for name, of_kind, _ in ways if len(of_kind) < goal}
        detail["width_with_needed"] = min(1.0, ratio) * width
        if ratio <= NARROWER:
            detail["is_narrower"] = True
            break
    return ResultWarning("betting_instead_of_t", "warn", detail)


def _width(means: FloatArray, shares: FloatArray, level: float) -> float:
    order = np.random.default_rng(0).permutation(len(means))
    wealth = final_log_wealth_of_ratio(means[order], shares[order], np.linspace(0.0, 1.0, GRID), STAKE_LEVEL)
    estimate = float(np.average(means, weights=shares))
    found = BettingCurve(estimate, tuple(wealth.tolist()), (0.0, 1.0)).interval(level)
    return found.high - found.low
