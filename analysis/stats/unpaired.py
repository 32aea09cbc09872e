"""Ratings of two systems that nobody judged side by side, and systems in clusters as shared tasks print them.

Where annotators rate both systems for the same prompt, use `ratings`: it compares within annotators. Here nobody did, so
the ratings of x are compared with those of y as two samples. Annotators and prompts are both samples of more: people may
have judged one system alone, or each system on other prompts, and the prompts of x and y may be the same or not. An
annotator or a prompt that has ratings of both systems is one cluster, so whatever it adds to both cancels from the
standard error. The clusters of systems are those of the translation shared tasks: a line between systems that all those
above beat all those below.

Sources: Brunner and Munzel 2000, The nonparametric Behrens-Fisher problem; Cameron, Gelbach and Miller 2011, Robust
inference with multiway clustering; Bell and McCaffrey 2002, Bias reduction in standard errors for linear regression with
multi-stage samples; Bojar et al. 2016, Findings of the 2016 Conference on Machine Translation, section 3, for the clusters.
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
    kept_codes,
    refuse_level,
    refuse_outside,
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


@dataclass(frozen=True, slots=True)
class _TwoSamples:
    """The ratings of two systems, x before y, with the codes of their annotators and prompts; all arrays (n_rows,).

    `is_x` is 1 beside a rating of x and 0 beside one of y.
    """

    values: FloatArray
    is_x: FloatArray
    annotators: IntArray
    prompts: IntArray
    n_missing: int

    @classmethod
    def of(
        cls,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        x_annotators: npt.ArrayLike,
        y_annotators: npt.ArrayLike,
        x_prompts: npt.ArrayLike,
        y_prompts: npt.ArrayLike,
    ) -> "_TwoSamples":
        """Raises ValueError where an array of labels is not as long as its ratings. NaN ratings are left out and counted."""
        first, second = vector(x, "x"), vector(y, "y")
        values = np.concatenate([first, second])
        here = ~np.isnan(values)
        labels: list[IntArray] = []
        for name, of_x, of_y in (("annotators", x_annotators, y_annotators), ("prompts", x_prompts, y_prompts)):
            pair = (np.asarray(of_x), np.asarray(of_y))
            for system, given, ratings in zip("xy", pair, (first, second), strict=True):
                codes(given, f"{system}_{name}", len(ratings))
            labels.append(kept_codes(np.concatenate(pair), name, here)[0])
        is_x = np.repeat([1.0, 0.0], [len(first), len(second)])
        who, prompts = labels
        return cls(values[here], is_x[here], who, prompts, int((~here).sum()))

    @property
    def sizes(self) -> tuple[int, int]:
        """How many ratings x and y have."""
        n_x = int(self.is_x.sum())
        return n_x, len(self.is_x) - n_x

    def counts(self, labels: IntArray) -> FloatArray:
        """How many ratings of x and of y each cluster holds; shape (G, 2)."""
        n = int(labels.max(initial=-1)) + 1
        return np.stack([totals(labels, self.is_x, n), totals(labels, 1 - self.is_x, n)], axis=1)

    def described(self) -> dict[str, Any]:
        """How many annotators and prompts each system has, how many have ratings of both, and how many annotators rated both for
        the same prompt."""
        n_x, n_y = self.sizes
        found: dict[str, Any] = {"n_x": n_x, "n_y": n_y, "n_missing": self.n_missing}
        for name, labels in (("annotators", self.annotators), ("prompts", self.prompts)):
            has = self.counts(labels) > 0
            found |= {
                f"n_{name}": len(has),
                f"n_{name}_x": int(has[:, 0].sum()),
                f"n_{name}_y": int(has[:, 1].sum()),
                f"n_{name}_both": int(has.all(axis=1).sum()),
            }
        of_x, of_y = (
            set(zip(*(labels[self.is_x == one].tolist() for labels in (self.annotators, self.prompts)), strict=True))
            for one in (1, 0)
        )
        return found | {"n_annotators_side_by_side": len({annotator for annotator, _ in of_x & of_y})}

    def too_few(self, systems: tuple[str, str] = ("x", "y")) -> tuple[str, str] | None:
        """Status and reason where there is an estimate and no spread; None where there is one."""
        described = self.described()
        for whose, name in (("by one annotator", "annotators"), ("of one prompt", "prompts")):
            for role, system in zip("xy", systems, strict=True):
                if described[f"n_{name}_{role}"] == 1:
                    return "n_lt_2", f"all ratings of {system} are {whose}, so their spread is unknown"
        return None

    def warnings(self, unit: str) -> tuple[Warning, ...]:
        """`clusters.cluster_warnings` of the annotators and the prompts of each system, the graver system's alone."""
        found: dict[tuple[str, str], Warning] = {}
        for name, labels in ((unit, self.annotators), ("prompt", self.prompts)):
            for column in self.counts(labels).T:
                for warning in clusters.cluster_warnings(column[column > 0], name=name):
                    key = (warning.code, name)
                    if name == unit or warning.code == "few_clusters":
                        worse = warning.severity == "block" or key not in found
                        found[key] = warning if worse else found[key]
        return tuple(found.values())


@dataclass(frozen=True, slots=True)
class _Spread:
    """The two-way clustered variance of a difference of two means, and the degrees of freedom of its t reference."""

    two_way: clusters.TwoWay
    df: float

    @classmethod
    def of(cls, rows: _TwoSamples, values: FloatArray) -> "_Spread":
        """Of mean(values of x) - mean(values of y), every system with at least two annotators and two prompts.

        Each term is the jackknife that leaves one cluster out (CV3): V = V_a + V_p - V_ap, never less than V_a or V_p.
        Each way has the degrees of freedom of Bell and McCaffrey: G - 1 where all clusters hold both systems alike,
        G - 2 where each holds one, nearer to those of the smaller sample where one has few clusters. They are combined
        as Satterthwaite does.
        """
        design = np.column_stack([np.ones(len(values)), rows.is_x])
        pairs, _ = codes(rows.annotators * (int(rows.prompts.max()) + 1) + rows.prompts, "pairs", len(values))
        parts = [
            float(clusters.clustered_regression(design, values, labels).covariance[1, 1])
            for labels in (rows.annotators, rows.prompts, pairs)
        ]
        two_way = clusters.TwoWay(parts[0], parts[1], parts[0] + parts[1] - parts[2])
        dfs = [_bell_mccaffrey(rows.counts(labels)) for labels in (rows.annotators, rows.prompts)]
        if two_way.variance == two_way.combined:
            noise = sum(part**2 / df for part, df in zip(parts[:2], dfs, strict=True))
            df = two_way.variance**2 / noise if noise > 0 else min(dfs)
        else:
            df = dfs[0] if two_way.annotators >= two_way.items else dfs[1]
        return cls(two_way, max(1.0, df))

    def detail(self) -> dict[str, Any]:
        return self.two_way.detail()


def _bell_mccaffrey(counts: FloatArray) -> float:
    """Degrees of freedom of the clustered variance of a difference of two means; `counts` (G, 2) ratings of x and y.

    tr(M)^2 / tr(M^2), M the covariance of the clusters' sums of weighted residuals where all ratings are independent.

    >>> round(_bell_mccaffrey(np.array([[3.0, 3.0]] * 10)), 6), round(_bell_mccaffrey(np.repeat(np.eye(2), 5, axis=0)), 6)
    (9.0, 8.0)
    """
    sizes = counts.sum(axis=0)
    shares = counts / sizes
    diagonal = (shares / sizes).sum(axis=1)
    squared = (shares**2).sum(axis=0)
    trace = float(diagonal.sum() - (squared / sizes).sum())
    crossed = float(shares[:, 0] @ shares[:, 1])
    of_square = float(
        (diagonal**2).sum()
        - 2 * (diagonal[:, None] * shares**2 / sizes).sum()
        + (squared**2 / sizes**2).sum()
        + 2 * crossed**2 / sizes.prod()
    )
    return max(1.0, trace**2 / of_square) if of_square > 0 else 1.0


def mean_difference(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    x_annotators: npt.ArrayLike,
    y_annotators: npt.ArrayLike,
    x_prompts: npt.ArrayLike,
    y_prompts: npt.ArrayLike,
    systems: tuple[str, str] = ("x", "y"),
    scale: tuple[float, float] | None = None,
    level: float = 0.95,
    analysis: str = "rating.mean_difference_unpaired",
    estimand: str = "mean of ratings of x minus mean of ratings of y (not side by side)",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """The mean of all ratings of x less that of y, where nobody judged both for the same prompt, and the test that it is 0.

    `x` (n_x,) and `y` (n_y,) are ratings, NaN missing, each with the labels of its annotators and prompts. Annotators and
    prompts are clusters: the variance is V_a + V_p - V_ap, each term a jackknife that leaves one cluster out, and never less
    than V_a or V_p. One t with the degrees of freedom of Bell and McCaffrey gives p-value, interval and equivalence.
    `scale` gives the scale's ends, for the share of its length in detail and the edges of the interval; `systems` gives the
    names of x and y for reasons. `n` counts annotators; detail counts annotators and prompts of x, of y and of both. Under
    six annotators or prompts of either system there is no test.

    >>> x, y = [4, 5, 3, 4, 5, 4], [3, 3, 2, 4, 1, 3]
    >>> found = mean_difference(x, y, x_annotators=list("aabbcc"), y_annotators=list("ddeeff"),
    ...                         x_prompts=[1, 2, 3, 1, 2, 3], y_prompts=[1, 2, 3, 1, 2, 3], scale=(1, 5))
    >>> round(found.estimate, 4), found.n, found.detail["n_prompts_both"], found.detail["n_annotators_both"]
    (1.5, 6, 3, 0)
    """
    refuse_level(level)
    rows = _TwoSamples.of(x, y, x_annotators, y_annotators, x_prompts, y_prompts)
    if scale is not None:
        refuse_outside(rows.values, scale, "x and y")
    reach = None if scale is None else scale[1] - scale[0]
    common = _common(rows, analysis, estimand, unit, mode, {"null": 0.0, "level": level, "scale": scale})
    warnings = (Warning("not_side_by_side", "info"), *((Warning("interval_scale_assumed", "info"),) if scale else ()))
    if min(rows.sizes) == 0:
        return Estimate(status="no_data", reason=_nothing_of(rows, systems), warnings=warnings, **common)
    mean_x, mean_y = (float(np.mean(rows.values[rows.is_x == one])) for one in (1, 0))
    estimate = mean_x - mean_y
    common["detail"] |= {"mean_x": mean_x, "mean_y": mean_y}
    if reach is not None:
        common["detail"]["share_of_range"] = estimate / reach
    if (edge := rows.too_few(systems)) is not None:
        return Estimate(status=edge[0], reason=edge[1], estimate=estimate, warnings=warnings, **common)
    spread = _Spread.of(rows, rows.values)
    common["detail"] |= spread.detail()
    return clusters.t_estimate(
        estimate,
        math.sqrt(spread.two_way.variance),
        spread.df,
        fewest=_fewest(common["detail"]),
        level=level,
        method="two_way_cv3_t",
        null=0.0,
        test="two_way_t",
        bounds=None if reach is None else (-reach, reach),
        warnings=(*rows.warnings(unit), *warnings),
        **common,
    )


def _common(
    rows: _TwoSamples, analysis: str, estimand: str, unit: str, mode: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """What every estimate of two samples that were not judged side by side says of itself."""
    described = rows.described()
    return {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": described["n_annotators"],
        "n_clusters": min(described["n_annotators"], described["n_prompts"]),
        "n_rows": len(rows.values),
        "settings": {**settings, "method": "two_way_cv3", "comparison": "not side by side"},
        "detail": described,
    }


def _nothing_of(rows: _TwoSamples, systems: tuple[str, str]) -> str:
    lacking = [system for system, n in zip(systems, rows.sizes, strict=True) if n == 0]
    return f"neither {lacking[0]} nor {lacking[1]} has a rating" if len(lacking) == 2 else f"{lacking[0]} has no rating"


def _fewest(described: dict[str, Any]) -> int:
    """The fewest clusters of either system in either way."""
    return min(int(described[f"n_{name}_{system}"]) for name in ("annotators", "prompts") for system in "xy")


def superiority(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    x_annotators: npt.ArrayLike | None = None,
    y_annotators: npt.ArrayLike | None = None,
    x_prompts: npt.ArrayLike | None = None,
    y_prompts: npt.ArrayLike | None = None,
    systems: tuple[str, str] = ("x", "y"),
    rng: np.random.Generator | None = None,
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

    With `x_prompts` and `y_prompts` annotators and prompts are both clusters, as in `mean_difference`, and an annotator
    may have rated both systems: the variance and the degrees of freedom are those of the difference of mean placements,
    and there are no sensitivities, which know annotators alone. `systems`: how a reason then calls x and y.

    >>> result = superiority([4, 5, 3, 4, 5, 2], [3, 3, 2, 4, 1, 3], rng=np.random.default_rng(0), resamples=999)
    >>> round(result.estimate, 4), round(result.pvalue, 4), round(result.detail["cliff_delta"], 4)
    (0.7778, 0.0857, 0.5556)
    >>> apart = superiority([4, 5, 5], [1, 2, 2], rng=np.random.default_rng(0))
    >>> apart.status, apart.estimate, round(apart.interval.low, 3)
    ('separation', 1.0, 0.292)
    """
    refuse_level(level)
    if x_prompts is not None and y_prompts is not None:
        if x_annotators is None or y_annotators is None:
            raise ValueError("x_annotators: prompts are given, so annotators must be given too")
        rows = _TwoSamples.of(x, y, x_annotators, y_annotators, x_prompts, y_prompts)
        return _two_way_superiority(rows, systems, level=level, analysis=analysis, unit=unit, mode=mode)
    if rng is None:
        raise ValueError("rng: the bootstrap over annotators needs a generator")
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


def _two_way_superiority(
    rows: _TwoSamples, systems: tuple[str, str], *, level: float, analysis: str, unit: str, mode: str
) -> Estimate:
    """`superiority` with annotators and prompts as clusters."""
    estimand = "probability that a rating of x is above one of y, ties half (not side by side)"
    common = _common(rows, analysis, estimand, unit, mode, {"null": 0.5, "level": level})
    warnings = (Warning("not_side_by_side", "info"),)
    if min(rows.sizes) == 0:
        return Estimate(status="no_data", reason=_nothing_of(rows, systems), warnings=warnings, **common)
    first, second = rows.values[rows.is_x == 1], rows.values[rows.is_x == 0]
    # `_TwoSamples` keeps the ratings of x before those of y.
    placements = np.concatenate([_placements(first, second), _placements(second, first)])
    estimate = float(np.mean(placements[: len(first)]))
    common |= {"estimate": estimate, "warnings": warnings}
    common["detail"]["cliff_delta"] = 2 * estimate - 1
    if np.ptp(rows.values) == 0:
        return Estimate(status="zero_variance", reason="all ratings are equal", **common)
    if estimate in BOUNDS:
        return Estimate(
            status="separation",
            reason="all ratings of one system lie above all of the other",
            interval=_separated(estimate, _fewest(common["detail"]), level),
            **common,
        )
    if (edge := rows.too_few(systems)) is not None:
        return Estimate(status=edge[0], reason=edge[1], **common)
    spread = _Spread.of(rows, placements)
    common["detail"] |= spread.detail()
    common["warnings"] = (*rows.warnings(unit), *warnings)
    return clusters.t_estimate(
        se=math.sqrt(spread.two_way.variance),
        df=spread.df,
        fewest=_fewest(common["detail"]),
        level=level,
        method="two_way_cv3_t",
        null=0.5,
        test="two_way_t",
        bounds=BOUNDS,
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
