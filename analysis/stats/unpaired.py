"""Ratings of two systems by different annotators, and systems in clusters as shared tasks print them.

Where annotators rate both systems, use `ratings.superiority`: it compares within annotators. Here nobody rated both, so
the probability of superiority compares any rating of x with any of y, and one annotator's severity is noise. The
clusters are those of the translation shared tasks: a line between systems that all those above beat all those below.

Sources: Brunner and Munzel 2000, The nonparametric Behrens-Fisher problem; Bojar et al. 2016, Findings of the 2016
Conference on Machine Translation, section 3, for the clusters.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, bootstrap, clusters
from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    codes,
    refuse_level,
    sizes_of,
    totals,
    vector,
)
from analysis.stats.multiplicity import Family, adjusted
from analysis.stats.results import MODES, Estimate, HypothesisTest, Interval, Record, Warning, plain

BOUNDS = (0.0, 1.0)
# Up to so many distinct ratings a bootstrap resamples their counts instead of rows.
FEW_POINTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemClusters(Record):
    """Systems from best to worst by their mean, and the clusters that significance draws among them.

    `clusters` counts from 1; a new one begins where every system so far beats every later one. `rank_low` and
    `rank_high` are 1 + the number of systems that beat this one and K - the number that it beats. `pairs` maps
    (better, worse) to the estimate of one being above the other.
    """

    systems: tuple[Any, ...]
    means: tuple[float, ...]
    n_segments: tuple[int, ...]
    clusters: tuple[int, ...]
    rank_low: tuple[int, ...]
    rank_high: tuple[int, ...]
    pairs: dict[tuple[Any, Any], Estimate]
    warnings: tuple[Warning, ...]
    mode: str
    significance: float

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-safe dict; the pairs as a list, better system first."""
        pairs = [
            {"better": plain(better), "worse": plain(worse), **estimate.as_dict()}
            for (better, worse), estimate in self.pairs.items()
        ]
        return Record.as_dict(replace(self, pairs={})) | {"pairs": pairs, "unit": "segment"}


def superiority(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    x_annotators: npt.ArrayLike | None = None,
    y_annotators: npt.ArrayLike | None = None,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "rating.superiority_unpaired",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """P(x > y) + P(x = y) / 2 for ratings of two systems by different annotators, and the test that it is one half.

    `x` (n_x,) and `y` (n_y,) are ratings, NaN missing; only their order counts. With the placements F_y(x_i), the share
    of y below x_i with ties half, the estimate is their mean; V = V_x + V_y, each the CV3 variance of a mean of
    placements over annotators (`x_annotators`, `y_annotators`; each rating its own if None), which with one rating an
    annotator is Brunner and Munzel's s^2 / n; t on Satterthwaite's degrees of freedom. The interval is cut at 0 and 1.
    detail has Cliff's delta. Sensitivities: the percentile bootstrap over annotators, which stays within 0..1 by
    itself, and the Mann-Whitney test, of equal distributions and not of one half.

    All of x above all of y, or below: `separation`, without a test; V is 0 there and a bootstrap too. The interval is
    then Clopper and Pearson's for min(G_x, G_y) pairs of annotators that have nobody in common, of which all went one
    way. All ratings equal: `zero_variance`. Under six annotators in a group there is no test where ratings share
    annotators. Raises ValueError, naming him, for an annotator who rated both systems.

    >>> result = superiority([4, 5, 3, 4, 5, 2], [3, 3, 2, 4, 1, 3], rng=np.random.default_rng(0), resamples=999)
    >>> round(result.estimate, 4), round(result.pvalue, 4), round(result.detail["cliff_delta"], 4)
    (0.7778, 0.0857, 0.5556)
    >>> apart = superiority([4, 5, 5], [1, 2, 2], rng=np.random.default_rng(0))
    >>> apart.status, apart.estimate, round(apart.interval.low, 3)
    ('separation', 1.0, 0.292)
    """
    refuse_level(level)
    first, who_x = _ratings(x, x_annotators, "x")
    second, who_y = _ratings(y, y_annotators, "y")
    if x_annotators is not None and y_annotators is not None:
        in_both = sorted(set(who_x.tolist()) & set(who_y.tolist()), key=str)
        if in_both:
            raise ValueError(f"y_annotators: {in_both[0]!r} rated both systems; use ratings.superiority")
    of_x, groups_x = codes(who_x, "x_annotators", len(first))
    of_y, groups_y = codes(who_y, "y_annotators", len(second))
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "probability that a rating of x is above one of y, ties half (different annotators)",
        "unit": unit,
        "mode": mode,
        "n": groups_x + groups_y,
        "n_clusters": groups_x + groups_y,
        "n_rows": len(first) + len(second),
        "settings": {"null": 0.5, "level": level, "resamples": resamples},
    }
    n_missing = np.size(x) + np.size(y) - len(first) - len(second)
    detail: dict[str, Any] = {"n_x": len(first), "n_y": len(second), "n_missing": n_missing}
    if min(len(first), len(second)) == 0:
        return Estimate(status="no_data", reason="a system has no rating", detail=detail, **common)
    place_x, place_y = _placements(first, second), _placements(second, first)
    estimate = float(np.mean(place_x))
    detail["cliff_delta"] = 2 * estimate - 1
    common |= {"estimate": estimate, "detail": detail}
    if np.ptp(np.concatenate([first, second])) == 0:
        return Estimate(status="zero_variance", reason="all ratings are equal", **common)
    if estimate in BOUNDS:
        return Estimate(
            status="separation",
            reason="all ratings of one system lie above all of the other",
            interval=_separated(estimate, min(groups_x, groups_y), level),
            **common,
        )
    if min(groups_x, groups_y) == 1:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", **common)
    size_x, size_y = sizes_of(of_x, groups_x), sizes_of(of_y, groups_y)
    part_x = clusters.cv3_variance(totals(of_x, place_x, groups_x), size_x)
    part_y = clusters.cv3_variance(totals(of_y, place_y, groups_y), size_y)
    se = math.sqrt(part_x + part_y)
    sensitivity = (
        _resampled(first, second, of_x, of_y, estimate, level=level, resamples=resamples, rng=rng, common=common),
        _mann_whitney(first, second, analysis=f"{analysis}.mann_whitney", unit="rating", mode=mode),
    )
    df_x, df_y = (max(1.0, clusters.effective_clusters(sizes) - 1) for sizes in (size_x, size_y))
    parts = part_x**2 / df_x + part_y**2 / df_y
    df = (part_x + part_y) ** 2 / parts if parts > 0 else min(df_x, df_y)
    is_one_each = groups_x == len(first) and groups_y == len(second)
    warnings: tuple[Warning, ...] = ()
    if not is_one_each:
        found = [*clusters.cluster_warnings(size_x, name=unit), *clusters.cluster_warnings(size_y, name=unit)]
        warnings = tuple({warning.code: warning for warning in found}.values())
    name = "brunner_munzel" if is_one_each else "clustered_brunner_munzel"
    return clusters.t_estimate(
        se=se,
        df=df,
        level=level,
        method=f"{name}_t",
        null=0.5,
        test=name,
        bounds=BOUNDS,
        sensitivity=sensitivity,
        warnings=warnings,
        fewest=None if is_one_each else min(groups_x, groups_y),
        **common,
    )


def significance_clusters(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    segments: npt.ArrayLike,
    *,
    mode: str = "recommended",
    significance: float = 0.05,
    alternative: str | None = None,
    planned: Sequence[Any] | None = None,
    annotators: npt.ArrayLike | None = None,
    analysis: str = "rating.significance_clusters",
) -> SystemClusters:
    """Systems ordered by their mean, with a line wherever all above are significantly better than all below.

    `values`, `systems` and `segments` have shape (n_rows,), NaN left out; usually `values` are z-scores within
    annotators (`ratings.z_scores`). Ratings are first averaged within system and segment, the segment is the unit, and
    a system's mean is over its segments. Each pair of systems: Mann-Whitney on the segment means. "recommended":
    two-sided, Holm over all pairs of the `planned` systems (those in the data where None), and a system beats another
    only where it also stands above it more often than not. "paper": as the shared tasks
    do, unadjusted, and one-sided for the better of the two (`alternative` overrides either); the more systems, the more
    false lines.

    The test takes segment means as independent although annotators (if given, warning `annotators_ignored`) and,
    usually, segments (warning `segments_shared`: a paired test would find more) are shared. A sensitivity beside an
    estimate with annotators as clusters, never the only result.

    >>> rng = np.random.default_rng(0)
    >>> values = np.concatenate([rng.normal(mean, 1, 80) for mean in (1.0, 0.9, 0.0)])
    >>> found = significance_clusters(values, np.repeat(["a", "b", "c"], 80), np.tile(np.arange(80), 3))
    >>> found.systems, found.clusters, found.rank_high
    (('a', 'b', 'c'), (1, 1, 2), (2, 2, 3))
    """
    refuse_level(1 - significance)
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is none of {', '.join(MODES)}")
    array = vector(values, "values")
    labels = np.asarray(systems)
    of_system, n_systems = codes(labels, "systems", len(array))
    of_segment, n_segments = codes(np.asarray(segments), "segments", len(array))
    here = ~np.isnan(array)
    cells = of_system * n_segments + of_segment
    counts = sizes_of(cells[here], n_systems * n_segments).reshape(n_systems, n_segments)
    sums = totals(cells[here], array[here], n_systems * n_segments).reshape(n_systems, n_segments)
    names = [labels[of_system == number][0].item() for number in range(n_systems)]
    if planned is not None and (unplanned := [name for name in names if name not in list(planned)]):
        raise ValueError(f"systems: {unplanned[0]!r} is not among the planned systems")
    scores = {}
    for number, name in enumerate(names):
        has = counts[number] > 0
        if has.any():
            scores[name] = sums[number, has] / counts[number, has]
    order = sorted(scores, key=lambda name: (-float(np.mean(scores[name])), str(name)))
    n_planned = len(names if planned is None else planned)
    side = alternative or ("greater" if mode == "paper" else "two-sided")
    pairs = _pairs(scores, order, n_planned, mode, analysis, {"significance": significance, "alternative": side})
    warnings = []
    if annotators is not None:
        who, n_annotators = codes(np.asarray(annotators), "annotators", len(array))
        if n_annotators < len(array):
            warnings.append(Warning("annotators_ignored", "warn", {"n_annotators": n_annotators}))
    if np.any((counts > 0).sum(axis=0) > 1):
        warnings.append(Warning("segments_shared", "info", {"n_segments": n_segments}))
    beats = np.zeros((len(order), len(order)), dtype=np.bool_)
    for (better, worse), estimate in pairs.items():
        pvalue = None if estimate.test is None else estimate.test.pvalue_adjusted
        # The order is that of the means, the test that of ranks: a few extreme ratings can set the two against each other.
        is_above = estimate.estimate is not None and estimate.estimate > 0.5
        beats[order.index(better), order.index(worse)] = is_above and pvalue is not None and pvalue < significance
    number, found = 1, []
    for place in range(len(order)):
        if place and beats[:place, place:].all():
            number += 1
        found.append(number)
    return SystemClusters(
        systems=tuple(order),
        means=tuple(float(np.mean(scores[name])) for name in order),
        n_segments=tuple(len(scores[name]) for name in order),
        clusters=tuple(found),
        rank_low=tuple(int(1 + beats[:, place].sum()) for place in range(len(order))),
        rank_high=tuple(int(len(order) - beats[place].sum()) for place in range(len(order))),
        pairs=pairs,
        warnings=tuple(warnings),
        mode=mode,
        significance=significance,
    )


def _pairs(
    scores: dict[Any, FloatArray], order: list[Any], n_planned: int, mode: str, analysis: str, settings: dict[str, Any]
) -> dict[tuple[Any, Any], Estimate]:
    found = {}
    for place, better in enumerate(order):
        for worse in order[place + 1 :]:
            estimate = _mann_whitney(
                scores[better],
                scores[worse],
                analysis=analysis,
                unit="segment",
                mode=mode,
                alternative=settings["alternative"],
            )
            estimand = f"probability that a segment mean of {better} is above one of {worse}, ties half"
            found[better, worse] = replace(estimate, estimand=estimand, settings=settings)
    if mode == "paper":
        return {pair: replace(estimate, test=_unadjusted(estimate.test)) for pair, estimate in found.items()}
    keys = {pair: f"pair {number}" for number, pair in enumerate(found)}
    # A planned pair without data still counts, whatever it is called.
    absent = n_planned * (n_planned - 1) // 2 - len(keys)
    family = Family(f"{analysis}.pairs", (*keys.values(), *(f"absent {number}" for number in range(absent))))
    after = adjusted({keys[pair]: estimate for pair, estimate in found.items()}, family, star_scheme=None)
    return {pair: after[key] for pair, key in keys.items()}


def _unadjusted(test: HypothesisTest | None) -> HypothesisTest | None:
    return None if test is None else replace(test, pvalue_adjusted=test.pvalue, adjust="none", family_size=1)


def _mann_whitney(
    x: FloatArray, y: FloatArray, *, analysis: str, unit: str, mode: str, alternative: str = "two-sided"
) -> Estimate:
    """U / (n_x n_y), and the test that both groups have one distribution."""
    from scipy import stats

    n_x, n_y = len(x), len(y)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "probability that x is above y, ties half: test of equal distributions",
        "unit": unit,
        "mode": mode,
        "n": n_x + n_y,
        "n_rows": n_x + n_y,
        "detail": {"n_x": n_x, "n_y": n_y},
        "settings": {"alternative": alternative},
    }
    estimate = float(np.mean(_placements(x, y)))
    if min(n_x, n_y) == 1:
        return Estimate(status="n_lt_2", reason="one value has no spread", estimate=estimate, **common)
    if np.ptp(np.concatenate([x, y])) == 0:
        return Estimate(status="zero_variance", reason="all values are equal", estimate=estimate, **common)
    found = stats.mannwhitneyu(x, y, alternative=alternative)
    test = HypothesisTest(
        name="mann_whitney",
        null=0.5,
        statistic=float(found.statistic),
        pvalue=min(1.0, float(found.pvalue)),
        alternative=alternative,
    )
    return Estimate(estimate=estimate, test=test, **common)


def _ratings(values: npt.ArrayLike, annotators: npt.ArrayLike | None, name: str) -> tuple[FloatArray, npt.NDArray[Any]]:
    array = vector(values, name)
    labels = np.arange(len(array)) if annotators is None else np.asarray(annotators)
    codes(labels, f"{name}_annotators", len(array))
    here = ~np.isnan(array)
    return array[here], labels[here]


def _placements(values: FloatArray, others: FloatArray) -> FloatArray:
    """For each value the share of the others below it, ties half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return np.asarray(below / (2 * len(others)))


def _separated(estimate: float, n_pairs: int, level: float) -> Interval:
    low, high = basic.clopper_pearson(n_pairs if estimate == 1 else 0, n_pairs, level)
    return Interval(level, low, high, "clopper_pearson_pairs")


def _resampled(
    x: FloatArray,
    y: FloatArray,
    of_x: IntArray,
    of_y: IntArray,
    estimate: float,
    *,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    common: dict[str, Any],
) -> Estimate:
    """The percentile bootstrap over annotators."""
    n_x, n_y = int(of_x.max()) + 1, int(of_y.max()) + 1
    size_x, size_y = sizes_of(of_x, n_x), sizes_of(of_y, n_y)
    above = _wins(x, y, of_x, of_y, n_x, n_y)
    draws = []
    weights_x = bootstrap.multinomial_weights(n_x, resamples, rng)
    weights_y = bootstrap.multinomial_weights(n_y, resamples, rng)
    for block_x, block_y in zip(weights_x, weights_y, strict=True):
        draws.append(above(block_x, block_y) / ((block_x @ size_x) * (block_y @ size_y)))
    interval = bootstrap.percentile_interval(np.concatenate(draws), level)
    named = {key: common[key] for key in ("estimand", "unit", "mode", "n", "n_clusters", "n_rows", "settings")}
    return Estimate(analysis=f"{common['analysis']}.bootstrap", estimate=estimate, interval=interval, **named)


def _wins(
    x: FloatArray, y: FloatArray, of_x: IntArray, of_y: IntArray, n_x: int, n_y: int
) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """How often a resampled x is above a resampled y, from the weights (resamples, G) of the annotators."""
    distinct, place = np.unique(np.concatenate([x, y]), return_inverse=True)
    if len(distinct) <= FEW_POINTS:
        # On a scale with few points it only matters how often each annotator used each point.
        by_x = _histogram(place[: len(x)], of_x, n_x, len(distinct))
        by_y = _histogram(place[len(x) :], of_y, n_y, len(distinct))

        def by_point(block_x: FloatArray, block_y: FloatArray) -> FloatArray:
            counts_y = block_y @ by_y
            return np.asarray(((block_x @ by_x) * (np.cumsum(counts_y, axis=1) - counts_y / 2)).sum(axis=1))

        return by_point
    order = np.argsort(y, kind="stable")
    left, right = (np.searchsorted(y[order], x, side=side) for side in ("left", "right"))

    def by_row(block_x: FloatArray, block_y: FloatArray) -> FloatArray:
        reached = np.zeros((len(block_y), len(y) + 1))
        np.cumsum(block_y[:, of_y[order]], axis=1, out=reached[:, 1:])
        return np.asarray((block_x[:, of_x] * (reached[:, left] + reached[:, right])).sum(axis=1) / 2)

    return by_row


def _histogram(place: IntArray, labels: IntArray, n_groups: int, n_distinct: int) -> FloatArray:
    """How often each annotator gave each distinct rating; shape (n_groups, n_distinct)."""
    counts = np.bincount(labels * n_distinct + place, minlength=n_groups * n_distinct)
    return counts.reshape(n_groups, n_distinct).astype(np.float64)
