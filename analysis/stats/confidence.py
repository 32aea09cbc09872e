"""Confidence curves: the p-value, the interval and the equivalence test of one estimate, all from one method.

A report must not print the p-value of one method beside the interval of another, because the two can contradict
each other. A curve gives all of them. The p-value of a null value is below `1 - level` if and only if the interval of
that level excludes the null value.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray, distinct_integers, group_sums, validate_level
from analysis.stats.betting import final_log_wealth_of_ratio
from analysis.stats.results import Interval
from analysis.stats.scalar_forms import HALVINGS, few_clusters_factor, score_limits

# Number of means that a betting curve tests, and number of random partitions or orders over which it averages.
GRID = 1001
PARTITIONS = 32
# The stakes are tuned for this level. They must not depend on the level of an interval, or p-values would disagree.
STAKE_LEVEL = 0.95


class ConfidenceCurve(Protocol):
    """What an estimate needs for its test, its interval and its equivalence test."""

    @property
    def test_name(self) -> str:
        """Name of the test that is stored."""
        ...

    @property
    def df(self) -> float | None:
        """Degrees of freedom of the test, or None if it has none."""
        ...

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Ends of the scale, or None if it has none."""
        ...

    def interval(self, level: float) -> Interval:
        """Return the two-sided interval of this level."""
        ...

    def statistic(self, null: float) -> float:
        """Return the test statistic against `null`."""
        ...

    def pvalue(self, null: float) -> float:
        """Return the two-sided p-value against `null`."""
        ...

    def one_sided_pvalues(self, low: float, high: float) -> tuple[float, float]:
        """Return the p-values against "at most `low`" and against "at least `high`"."""
        ...

    def equivalence_level(self, significance: float) -> float:
        """Return the level of the interval that decides equivalence at this significance."""
        ...


@dataclass(frozen=True, slots=True)
class TCurve:
    """The confidence curve of a t distribution.

    Attributes
    ----------
    estimate, se, df : float
        The estimate, its standard error (greater than 0), and the degrees of freedom.
    bounds : tuple[float, float] or None
        Ends of the scale; intervals are clipped to them.
    test_name, method : str
        Names of the test and of the interval.

    Examples
    --------
    >>> curve = TCurve(0.6, 0.05, 9.0)
    >>> round(curve.pvalue(0.5), 4), round(curve.interval(0.95).low, 4)
    (0.0766, 0.4869)
    >>> low, high = curve.one_sided_pvalues(0.5, 0.7)
    >>> round(low, 4) == round(high, 4)
    True
    """

    estimate: float
    se: float
    df: float
    bounds: tuple[float, float] | None = None
    test_name: str = "clustered_t"
    method: str = "t"

    def interval(self, level: float) -> Interval:
        """Return estimate -/+ t(df) se, clipped to the bounds."""
        validate_level(level)
        half = float(special.stdtrit(self.df, (1 + level) / 2)) * self.se
        low, high = self.estimate - half, self.estimate + half
        if self.bounds is None:
            return Interval(level, low, high, self.method)
        clipped = low < self.bounds[0] or high > self.bounds[1]
        return Interval(level, max(float(self.bounds[0]), low), min(float(self.bounds[1]), high), self.method, clipped)

    def se_at(self, null: float) -> float:
        """Return the standard error that tests `null`."""
        return self.se

    def statistic(self, null: float) -> float:
        """Return (estimate - null) / its standard error."""
        return (self.estimate - null) / self.se_at(null)

    def pvalue(self, null: float) -> float:
        """Return the two-sided p-value of the t test."""
        return min(1.0, 2 * float(special.stdtr(self.df, -abs(self.statistic(null)))))

    def one_sided_pvalues(self, low: float, high: float) -> tuple[float, float]:
        """Return the p-values of the two one-sided t tests; 0 for an end beyond the scale."""
        return _zero_beyond_scale(
            self.bounds,
            (low, float(special.stdtr(self.df, -self.statistic(low)))),
            (high, float(special.stdtr(self.df, self.statistic(high)))),
        )

    def equivalence_level(self, significance: float) -> float:
        """Return 1 - 2 `significance`: two one-sided tests agree with this two-sided interval."""
        return 1 - 2 * significance


@dataclass(frozen=True, slots=True)
class BettingCurve:
    """The confidence curve of bets on independent units, for bounded values of any distribution.

    Attributes
    ----------
    estimate : float
        The estimate, within the bounds.
    log_evidence : tuple[float, ...]
        Logarithm of the e-value against each of equally spaced means from the lower to the upper bound.
    bounds : tuple[float, float]
        Ends of the scale.

    Notes
    -----
    p(null) = 1 / E(null). To make the set of means that are not refuted an interval, the evidence is made
    monotone outwards from the estimate: a mean counts as refuted if it and all means beyond it are, and the tested mean
    nearest to the estimate never does. Between two tested means the smaller evidence of the two holds. All this makes
    p-values larger, so they stay valid.

    Examples
    --------
    >>> curve = betting_curve(np.ones(20), np.ones(20), np.arange(20), bounds=(0.0, 1.0))
    >>> curve.pvalue(0.5) < 0.001, curve.pvalue(1.0)
    (True, 1.0)
    >>> interval = curve.interval(0.95)
    >>> round(interval.low, 2), interval.high
    (0.82, 1.0)
    """

    estimate: float
    log_evidence: tuple[float, ...]
    bounds: tuple[float, float]
    test_name: str = "independent_units_betting"
    method: str = "betting"

    @property
    def df(self) -> None:
        """A bet has no degrees of freedom."""
        return None

    def _outward(self) -> tuple[FloatArray, FloatArray, int]:
        """Return the tested means, their monotone evidence, and the position of the mean nearest to the estimate."""
        means = np.linspace(*self.bounds, len(self.log_evidence))
        evidence = np.maximum(np.array(self.log_evidence), 0.0)
        middle = int(np.argmin(np.abs(means - self.estimate)))
        evidence[middle] = 0.0
        evidence[:middle] = np.minimum.accumulate(evidence[:middle])
        evidence[middle:] = np.minimum.accumulate(evidence[middle:][::-1])[::-1]
        return means, evidence, middle

    def _evidence(self, null: float) -> float:
        """Return the evidence against the tested mean that speaks for `null`: the next one towards the estimate."""
        means, evidence, middle = self._outward()
        if null < means[middle]:
            position = int(np.searchsorted(means, null, side="right"))
        elif null > means[middle]:
            position = int(np.searchsorted(means, null, side="left")) - 1
        else:
            position = middle
        return float(evidence[position])

    def interval(self, level: float) -> Interval:
        """Return the means that the evidence does not refute at this level."""
        validate_level(level)
        means, evidence, _ = self._outward()
        kept = np.flatnonzero(np.exp(-evidence) >= 1 - level)
        first, last = max(int(kept[0]) - 1, 0), min(int(kept[-1]) + 1, len(means) - 1)
        return Interval(
            level,
            float(means[first]),
            float(means[last]),
            self.method,
            clipped=first == 0 or last == len(means) - 1,
        )

    def statistic(self, null: float) -> float:
        """Return the e-value against `null`."""
        return math.exp(min(700.0, self._evidence(null)))

    def pvalue(self, null: float) -> float:
        """Return 1 / the e-value, at most 1."""
        return float(np.exp(-self._evidence(null)))

    def one_sided_pvalues(self, low: float, high: float) -> tuple[float, float]:
        """Return the two-sided p-values, 1 on a side that the estimate has left, and 0 for an end beyond the scale."""
        return _zero_beyond_scale(
            self.bounds,
            (low, self.pvalue(low) if self.estimate > low else 1.0),
            (high, self.pvalue(high) if self.estimate < high else 1.0),
        )

    def equivalence_level(self, significance: float) -> float:
        """Return 1 - `significance`: the bets are two-sided."""
        return 1 - significance


def _zero_beyond_scale(
    bounds: tuple[float, float] | None, of_low: tuple[float, float], of_high: tuple[float, float]
) -> tuple[float, float]:
    """Return the one-sided p-values of (end, p-value), 0 for an end beyond the scale.

    No mean is beyond the scale, so that side needs no evidence. The interval, which is clipped to the scale, says the same.
    """
    (low, pvalue_low), (high, pvalue_high) = of_low, of_high
    if bounds is None:
        return pvalue_low, pvalue_high
    return 0.0 if low < bounds[0] else pvalue_low, 0.0 if high > bounds[1] else pvalue_high


def betting_curve(
    values: FloatArray,
    weights: FloatArray,
    annotators: IntArray,
    items: IntArray | None = None,
    *,
    bounds: tuple[float, float],
) -> BettingCurve:
    """Return the confidence curve of a weighted mean of bounded values, by bets on units sharing no annotator or item.

    The curve needs no variance, no symmetry and no large n, so it is valid at ceilings and for skewed answers of few
    people. `values` are within `bounds`, the ends of the scale, `weights` are positive, and the codes are from 0, each
    with one entry per row. Without items the units are the annotators. With items, each of the rarer kind (an item, if
    items are fewer) begins a unit. Each of the other kind (an annotator) joins one unit: a random one of those that it
    has answers in. A unit has the answers of its annotators to its items, so units are independent over people and over
    items. An answer counts as often as its annotator had units to join, so that all answers count equally on average,
    however the answers are distributed. The bets (Waudby-Smith and Ramdas 2024), and what they assume about units of
    unequal size, are those of `betting.final_log_wealth_of_ratio`. The evidence is the mean of the e-values of up to
    `PARTITIONS` random partitions, with a fixed seed. A mean of e-values is an e-value, however much they depend on
    each other (Vovk and Wang 2021, E-values: calibration, combination and applications).

    >>> people, prompts = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
    >>> always = betting_curve(np.ones(200), np.ones(200), people, prompts, bounds=(0.0, 1.0))
    >>> round(always.pvalue(0.5), 4)
    0.0041
    """
    rng = np.random.default_rng(0)
    low, high = bounds
    scaled = np.clip((values - low) / (high - low), 0.0, 1.0)
    nulls = np.linspace(0.0, 1.0, GRID)
    n_annotators = int(annotators.max()) + 1
    n_items = n_annotators if items is None else int(items.max()) + 1
    n_units = min(n_annotators, n_items)
    # A large study varies little from one partition to another.
    n_partitions = max(4, min(PARTITIONS, 4000 // n_units) // 2 * 2)
    total = np.full(GRID, -math.inf)
    if items is None:
        annotators = _ranks_of_means(weights * scaled, weights, annotators, n_annotators)
    else:
        annotators, items = _ranks_of_both(weights * scaled, weights, annotators, items)
    order = np.arange(n_annotators)
    for turn in range(n_partitions):
        if items is None:
            # Every other order is the one before from the other end: then 1 - values give the mirrored curve.
            order = order[::-1] if turn % 2 else rng.permutation(n_annotators)
            units, used_weights = order[annotators], weights
        else:
            of_annotators = rng.permutation(np.arange(n_annotators) % n_units)
            of_items = rng.permutation(np.arange(n_items) % n_units)
            kinds = (annotators, of_annotators), (items, of_items)
            (rarer, own_units), (other, dealt) = kinds if n_annotators <= n_items else kinds[::-1]
            units = own_units[rarer]
            joined, n_choices = _join_units(other, units, dealt, rng)
            used_weights = np.where(joined[other] == units, weights * n_choices[other], 0.0)
        sums = group_sums(units, used_weights * scaled, n_units)
        counts = group_sums(units, used_weights, n_units)
        total = np.logaddexp(total, _final_wealth(sums[counts > 0], counts[counts > 0], nulls))
    estimate = low + (high - low) * float(np.sum(weights * scaled) / np.sum(weights))
    return BettingCurve(estimate, tuple((total - math.log(n_partitions)).tolist()), bounds)


def _ranks_of_means(sums: FloatArray, weights: FloatArray, annotators: IntArray, n_annotators: int) -> IntArray:
    """Return other codes of the annotators, which depend on what they answered and not on their names."""
    sizes = group_sums(annotators, weights, n_annotators)
    means = group_sums(annotators, sums, n_annotators) / sizes
    ranks = np.empty(n_annotators, dtype=np.int64)
    # Rounded, because the order of the rows changes the last digit of a sum.
    rounded = np.round(means - 0.5, 9)
    ranks[np.lexsort((np.sign(rounded) * np.round(sizes, 9), rounded))] = np.arange(n_annotators)
    return ranks[annotators]


def _ranks_of_both(
    sums: FloatArray, weights: FloatArray, annotators: IntArray, items: IntArray
) -> tuple[IntArray, IntArray]:
    """Return other codes of the annotators and items, which depend on the answers and not on names or the order of rows."""
    codes = [np.zeros(len(sums), dtype=np.int64), np.zeros(len(sums), dtype=np.int64)]
    # Tell clusters apart by their answers, then by which clusters of the other kind gave them. In the last two turns,
    # those that are still equal are interchangeable; order the annotators, and the items after them.
    for turn in range(6):
        for kind, labels in enumerate((annotators, items)):
            others = np.sqrt(codes[1 - kind] + 2.0)
            n_clusters = int(labels.max()) + 1
            keys = [
                np.round(group_sums(labels, part, n_clusters), 7)
                for part in (sums, weights, sums * others, weights * others)
            ]
            if turn < 4:
                ranks = np.unique(np.column_stack(keys), axis=0, return_inverse=True)[1].reshape(-1)
            else:
                ranks = np.empty(n_clusters, dtype=np.int64)
                ranks[np.lexsort(keys[::-1])] = np.arange(n_clusters)
            codes[kind] = ranks[labels]
    return codes[0], codes[1]


def _join_units(
    clusters: IntArray, units: IntArray, dealt: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return the unit that each cluster joins, and the number of units that it could have joined.

    `units` is the unit of each row. A cluster joins the unit that it was dealt if it has rows there, else a random one.
    """
    n_units = int(units.max()) + 1
    pairs = distinct_integers(clusters * n_units + units, (int(clusters.max()) + 1) * n_units)
    owners, choices = pairs // n_units, pairs % n_units
    n_choices = np.bincount(owners)
    first = np.cumsum(n_choices) - n_choices
    at_random = choices[first + rng.integers(0, n_choices)]
    has_dealt = np.bincount(owners, choices == dealt[owners]) > 0
    return np.where(has_dealt, dealt, at_random), n_choices


def _final_wealth(sums: FloatArray, counts: FloatArray, nulls: FloatArray) -> FloatArray:
    """Return the logarithm of the wealth after all units, against each null."""
    if len(sums) == 0:
        return np.zeros(len(nulls))
    means, shares = np.clip(sums / counts, 0.0, 1.0), counts / counts.max()
    return final_log_wealth_of_ratio(means, shares, nulls, STAKE_LEVEL)


# The confidence curve of a mean of bounded values whose variance depends on the mean.


@dataclass(frozen=True, slots=True)
class ScoreCurve(TCurve):
    """The confidence curve of a t distribution whose standard error belongs to the tested mean, for bounded values.

    Near an end of the scale the standard error depends on the mean: 97 % of few answers vary less than 85 % of them. A mean
    m is tested with the larger of `se` and of the standard error that the values would have if their mean were m.

    Attributes
    ----------
    least_se : float
        Standard error of the mean if all values were independent. Under a tested mean it is not smaller in proportion.

    Notes
    -----
    A variance under the mean m is in proportion to (m - low) (high - m), as that of independent shares and that of
    answers with a constant design effect are. With se, 0/1 answers and many clusters this is Wilson's score interval of the
    effective number of answers, with t for the normal quantile, joined with the t interval. With few clusters, it is wider
    near the ends of the scale, by `scalar_forms.few_clusters_factor`.

    References
    ----------
    Wilson 1927, Probable inference, the law of succession, and statistical inference; Kott and Carr 1997, Developing an
    estimation strategy for a pesticide data program (effective numbers in Wilson's interval).

    Examples
    --------
    >>> near_the_end, plain = ScoreCurve(0.96, 0.02, 19.0, (0.0, 1.0)), TCurve(0.96, 0.02, 19.0, (0.0, 1.0))
    >>> round(near_the_end.interval(0.95).low, 3), round(plain.interval(0.95).low, 3)
    (0.883, 0.918)
    >>> near_the_end.se_at(0.5) > near_the_end.se_at(0.9) > plain.se_at(0.9)
    True
    """

    least_se: float = 0.0

    def se_at(self, null: float) -> float:
        """Return the standard error that tests `null`."""
        return float(score_se(null, self.estimate, self.se, max(self.se, self.least_se), self.df, self.bounds))

    def interval(self, level: float) -> Interval:
        """Return the means that the test does not refute."""
        plain = TCurve.interval(self, level)
        if self.bounds is None:
            return plain
        quantile = float(special.stdtrit(self.df, (1 + level) / 2))
        low, high = score_limits(self.estimate, quantile * max(self.se, self.least_se), self.df, self.bounds)
        return replace(plain, low=min(plain.low, low), high=max(plain.high, high))


def score_se(
    null: float,
    estimate: float | FloatArray,
    se: float | FloatArray,
    scaled_se: float | FloatArray,
    df: float | FloatArray,
    bounds: tuple[float, float] | None,
) -> float | FloatArray:
    """Return the standard error that tests the mean `null`: `se`, or `scaled_se` brought to that mean if larger.

    `scaled_se` is the standard error that changes with the mean, and `estimate` is within `bounds`, the ends of the
    scale. Without bounds the result is `se`.

    >>> round(float(score_se(0.5, 0.9, 0.03, 0.03, 9, (0.0, 1.0))), 3), score_se(0.5, 0.9, 0.03, 0.03, 9, None)
    (0.05, 0.03)
    """
    if bounds is None or not bounds[0] < null < bounds[1]:
        return se
    room = (null - bounds[0]) * (bounds[1] - null)
    own = (estimate - bounds[0]) * (bounds[1] - estimate)
    at_null = scaled_se * np.sqrt(room / own) * few_clusters_factor(null, np.maximum(2.0, df), bounds)
    return np.asarray(np.maximum(se, at_null))


def score_limits_of_runs(
    estimate: FloatArray, reach: FloatArray, df: FloatArray, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper ends of `scalar_forms.score_limits` for each of many studies.

    `estimate`, `reach` and `df` are as there, one for each study.

    >>> low, high = score_limits_of_runs(np.array([0.9]), np.array([1.96 * 0.03]), np.array([99.0]), (0.0, 1.0))
    >>> low.round(3), high.round(3)
    (array([0.824]), array([0.946]))
    """
    k = reach**2 / ((estimate - bounds[0]) * (bounds[1] - estimate))
    df = np.maximum(2.0, df)
    ends = []
    for end in bounds:
        refuted, kept = np.full(len(estimate), float(end)), estimate
        for _ in range(HALVINGS):
            middle = (refuted + kept) / 2
            factor = few_clusters_factor(middle, df, bounds)
            is_kept = (estimate - middle) ** 2 <= k * (middle - bounds[0]) * (bounds[1] - middle) * factor**2
            refuted, kept = np.where(is_kept, refuted, middle), np.where(is_kept, middle, kept)
        ends.append(kept)
    return ends[0], ends[1]
