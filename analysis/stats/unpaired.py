"""Ratings of two systems that nobody judged side by side.

If annotators rate both systems for the same prompt, use `ratings`, which compares within annotators. Here the
ratings of x and y are compared as two samples. Annotators and prompts both are samples: annotators may have judged
one system only, and the prompts of x and y may be the same or not. An annotator or prompt with ratings of both
systems is one cluster, so an equal effect on both cancels from the standard error.

References: Brunner and Munzel 2000, The nonparametric Behrens-Fisher problem; Cameron, Gelbach and Miller 2011,
Robust inference with multiway clustering; Bell and McCaffrey 2002, Bias reduction in standard errors for linear
regression with multi-stage samples.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, cluster_models, cluster_variances, clusters
from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    label_codes_where,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.results import AnswersBehind, Estimate, Interval, ResultWarning

# The ratings of two systems with their shared annotators and prompts, and the variance of their difference.


BOUNDS = (0.0, 1.0)
Refit = Callable[..., Estimate]


@dataclass(frozen=True, slots=True)
class _TwoSamples:
    """The ratings of x, then those of y, with the codes of their annotators and prompts; all arrays (n_rows,).

    `is_x` is 1 for a rating of x and 0 for one of y.
    """

    values: FloatArray
    is_x: FloatArray
    annotators: IntArray
    prompts: IntArray
    is_observed: BoolArray
    n_missing: int

    @classmethod
    def from_arrays(
        cls,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        x_annotators: npt.ArrayLike,
        y_annotators: npt.ArrayLike,
        x_prompts: npt.ArrayLike,
        y_prompts: npt.ArrayLike,
    ) -> "_TwoSamples":
        """Build from arrays. NaN ratings are left out and counted. Raise ValueError for a wrong number of labels."""
        first, second = vector(x, "x"), vector(y, "y")
        values = np.concatenate([first, second])
        is_observed = ~np.isnan(values)
        labels: list[IntArray] = []
        for name, of_x, of_y in (("annotators", x_annotators, y_annotators), ("prompts", x_prompts, y_prompts)):
            pair = (np.asarray(of_x), np.asarray(of_y))
            for system, labels_given, ratings in zip("xy", pair, (first, second), strict=True):
                label_codes(labels_given, f"{system}_{name}", len(ratings))
            labels.append(label_codes_where(np.concatenate(pair), name, is_observed)[0])
        is_x = np.repeat([1.0, 0.0], [len(first), len(second)])
        annotator_codes, prompts = labels
        n_missing = int((~is_observed).sum())
        return cls(values[is_observed], is_x[is_observed], annotator_codes, prompts, is_observed, n_missing)

    def behind(self, values: FloatArray, people: tuple[npt.ArrayLike, npt.ArrayLike], again: Refit) -> AnswersBehind:
        """Return the ratings behind mean(values of x) - mean(values of y), up to a constant. `people` are the annotators of all ratings."""
        is_x = self.is_x == 1
        means, sizes = [float(np.mean(values[side])) for side in (is_x, ~is_x)], self.sizes
        shares = np.where(is_x, (values - means[0]) / sizes[0], (means[1] - values) / sizes[1])

        def refit(is_kept: BoolArray) -> Estimate:
            x, y = is_kept & is_x, is_kept & ~is_x
            labels = {"annotators": self.annotators, "prompts": self.prompts}
            own = {f"{side}_{name}": one[rows] for name, one in labels.items() for side, rows in (("x", x), ("y", y))}
            return again(self.values[x], self.values[y], **own)

        return AnswersBehind(np.concatenate(people)[self.is_observed], self.prompts, lambda: (shares, shares), refit)

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the numbers of ratings of x and of y."""
        n_x = int(self.is_x.sum())
        return n_x, len(self.is_x) - n_x

    def counts(self, labels: IntArray) -> FloatArray:
        """Return the numbers of ratings of x and of y in each cluster; shape (G, 2)."""
        n = int(labels.max(initial=-1)) + 1
        return np.stack([group_sums(labels, self.is_x, n), group_sums(labels, 1 - self.is_x, n)], axis=1)

    def described(self) -> dict[str, Any]:
        """Return the numbers of annotators and prompts of each system and of both.

        `n_annotators_side_by_side` counts the annotators who rated both systems for the same prompt.
        """
        n_x, n_y = self.sizes
        counts: dict[str, Any] = {"n_x": n_x, "n_y": n_y, "n_missing": self.n_missing}
        for name, labels in (("annotators", self.annotators), ("prompts", self.prompts)):
            has = self.counts(labels) > 0
            counts |= {
                f"n_{name}": len(has),
                f"n_{name}_x": int(has[:, 0].sum()),
                f"n_{name}_y": int(has[:, 1].sum()),
                f"n_{name}_both": int(has.all(axis=1).sum()),
            }
        of_x, of_y = (
            set(zip(*(labels[self.is_x == side].tolist() for labels in (self.annotators, self.prompts)), strict=True))
            for side in (1, 0)
        )
        return counts | {"n_annotators_side_by_side": len({annotator for annotator, _ in of_x & of_y})}

    def too_few(self, systems: tuple[str, str]) -> tuple[str, str] | None:
        """Return status and reason if there are too few clusters for a standard error, else None."""
        described = self.described()
        for whose, name in (("by one annotator", "annotators"), ("of one prompt", "prompts")):
            for role, system in zip("xy", systems, strict=True):
                if described[f"n_{name}_{role}"] == 1:
                    return "n_lt_2", f"all ratings of {system} are {whose}, so their spread is unknown"
        return None

    def warnings(self) -> tuple[ResultWarning, ...]:
        """Return the cluster warnings for annotators and prompts, the more severe ones of the two systems."""
        gravest: dict[tuple[str, str], ResultWarning] = {}
        for name, labels in (("annotator", self.annotators), ("prompt", self.prompts)):
            for column in self.counts(labels).T:
                for warning in cluster_variances.cluster_warnings(column[column > 0], name=name):
                    key = (warning.code, name)
                    if name == "annotator" or warning.code == "few_clusters":
                        worse = warning.severity == "block" or key not in gravest
                        gravest[key] = warning if worse else gravest[key]
        return tuple(gravest.values())


@dataclass(frozen=True, slots=True)
class _Spread:
    """The two-way clustered variance of a difference of two means, and the degrees of freedom of its t distribution."""

    two_way: cluster_variances.TwoWayVariance
    df: float

    @classmethod
    def from_rows(cls, rows: _TwoSamples, values: FloatArray) -> "_Spread":
        """Compute it for mean(values of x) - mean(values of y); each system needs two annotators and two prompts.

        Each term is the jackknife that leaves one cluster out (CV3): V = V_a + V_p - V_ap, at least V_a and V_p. Each
        way has the degrees of freedom of Bell and McCaffrey: G - 1 if all clusters have both systems alike, G - 2 if
        each has one, and closer to those of the smaller sample if one has few clusters. They are combined by
        Satterthwaite's rule.
        """
        design = np.column_stack([np.ones(len(values)), rows.is_x])
        pairs, _ = label_codes(rows.annotators * (int(rows.prompts.max()) + 1) + rows.prompts, "pairs", len(values))
        parts = [
            float(cluster_models.clustered_regression(design, values, labels).covariance[1, 1])
            for labels in (rows.annotators, rows.prompts, pairs)
        ]
        two_way = cluster_variances.TwoWayVariance(parts[0], parts[1], parts[0] + parts[1] - parts[2])
        dfs = [_bell_mccaffrey(rows.counts(labels)) for labels in (rows.annotators, rows.prompts)]
        if two_way.is_combined_largest:
            noise = sum(part**2 / df for part, df in zip(parts[:2], dfs, strict=True))
            df = two_way.combined**2 / noise
        else:
            df = dfs[0] if two_way.annotators >= two_way.items else dfs[1]
        return cls(two_way, max(1.0, df))

    def detail(self) -> dict[str, Any]:
        return self.two_way.detail()


def _bell_mccaffrey(counts: FloatArray) -> float:
    """Return the degrees of freedom of the clustered variance of a difference of means; `counts` (G, 2) of x and y.

    They are tr(M)^2 / tr(M^2). M is the covariance of the clusters' sums of weighted residuals for independent ratings.

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


def _common(rows: _TwoSamples, analysis: str, estimand: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of all estimates of two samples that were not judged side by side."""
    described = rows.described()
    return {
        "analysis": analysis,
        "estimand": estimand,
        "unit": "annotator",
        "n": described["n_annotators"],
        "n_clusters": min(described["n_annotators"], described["n_prompts"]),
        "n_rows": len(rows.values),
        "settings": {
            **settings,
            "method": "two_way_cv3",
            "comparison": "not side by side",
            "population": cluster_variances.PEOPLE_AND_PROMPTS,
        },
        "detail": described,
    }


def _nothing_of(rows: _TwoSamples, systems: tuple[str, str]) -> str:
    lacking = [system for system, n in zip(systems, rows.sizes, strict=True) if n == 0]
    return f"neither {lacking[0]} nor {lacking[1]} has a rating" if len(lacking) == 2 else f"{lacking[0]} has no rating"


def _fewest(described: dict[str, Any]) -> int:
    """Return the smallest number of clusters, over both systems and both ways."""
    return min(int(described[f"n_{name}_{system}"]) for name in ("annotators", "prompts") for system in "xy")


# Difference of the means of two systems.


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
) -> Estimate:
    """Mean of all ratings of x minus that of y, for systems that were not judged side by side, and the t test of 0.

    Parameters
    ----------
    x, y : array_like, shapes (n_x,) and (n_y,)
        Ratings; NaN is missing.
    x_annotators, y_annotators, x_prompts, y_prompts : array_like
        Labels of each rating's annotator and prompt.
    systems : tuple[str, str], default ('x', 'y')
        Names of x and y for reasons.
    scale : tuple[float, float], optional
        Ends of the scale. The interval is clipped to the possible range.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The difference. `n` counts annotators; `detail` counts annotators and prompts of x, of y and of both. No test
        with fewer than six annotators or prompts of either system.

    Notes
    -----
    V = V_a + V_p - V_ap, at least V_a and V_p; each term is a jackknife that leaves out one cluster. One t
    distribution with the degrees of freedom of Bell and McCaffrey gives p-value, interval and equivalence.

    Examples
    --------
    >>> x, y = [4, 5, 3, 4, 5, 4], [3, 3, 2, 4, 1, 3]
    >>> result = mean_difference(x, y, x_annotators=list("aabbcc"), y_annotators=list("ddeeff"),
    ...                         x_prompts=[1, 2, 3, 1, 2, 3], y_prompts=[1, 2, 3, 1, 2, 3], scale=(1, 5))
    >>> round(result.estimate, 4), result.n, result.detail["n_prompts_both"], result.detail["n_annotators_both"]
    (1.5, 6, 3, 0)
    """
    validate_level(level)
    rows = _TwoSamples.from_arrays(x, y, x_annotators, y_annotators, x_prompts, y_prompts)
    if scale is not None:
        validate_within_bounds(rows.values, scale, "x and y")
    reach = None if scale is None else scale[1] - scale[0]
    estimand = "mean of ratings of x minus mean of ratings of y (not side by side)"
    settings = {"null": 0.0, "level": level, "scale": scale}
    common = _common(rows, "rating.mean_difference_unpaired", estimand, settings)
    warnings = (
        ResultWarning("not_side_by_side", "info"),
        *((ResultWarning("interval_scale_assumed", "info"),) if scale else ()),
    )
    if min(rows.sizes) == 0:
        return Estimate(status="no_data", reason=_nothing_of(rows, systems), warnings=warnings, **common)
    mean_x, mean_y = (float(np.mean(rows.values[rows.is_x == side])) for side in (1, 0))
    estimate = mean_x - mean_y
    common["detail"] |= {"mean_x": mean_x, "mean_y": mean_y}
    if reach is not None:
        common["detail"]["share_of_range"] = estimate / reach
    if (edge := rows.too_few(systems)) is not None:
        return Estimate(status=edge[0], reason=edge[1], estimate=estimate, warnings=warnings, **common)
    spread = _Spread.from_rows(rows, rows.values)
    common["detail"] |= spread.detail()
    again = partial(mean_difference, systems=systems, scale=scale, level=level)
    return clusters.t_estimate(
        estimate,
        math.sqrt(spread.two_way.variance),
        spread.df,
        fewest_clusters=_fewest(common["detail"]),
        level=level,
        method="two_way_cv3_t",
        null=0.0,
        test_name="two_way_t",
        bounds=None if reach is None else (-reach, reach),
        warnings=(*rows.warnings(), *warnings),
        _answers=rows.behind(rows.values, (x_annotators, y_annotators), again),
        **common,
    )


# Probability that a rating of x is above a rating of y.


def probability_of_superiority(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    x_annotators: npt.ArrayLike,
    y_annotators: npt.ArrayLike,
    x_prompts: npt.ArrayLike,
    y_prompts: npt.ArrayLike,
    systems: tuple[str, str] = ("x", "y"),
    level: float = 0.95,
) -> Estimate:
    """P(x > y) + P(x = y) / 2 for ratings of two systems that were not judged side by side, and the test of one half.

    Parameters
    ----------
    x, y : array_like, shapes (n_x,) and (n_y,)
        Ratings; NaN is missing. Only their order counts.
    x_annotators, y_annotators, x_prompts, y_prompts : array_like
        Labels of each rating's annotator and prompt. An annotator may rate both systems.
    systems : tuple[str, str], default ('x', 'y')
        Names of x and y for reasons.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The probability; `detail` has Cliff's delta. All of x above or below all of y: `separation`, no test. All
        ratings equal: `zero_variance`.

    Notes
    -----
    The estimate is the mean of the placements F_y(x_i), the share of y below x_i, ties count half (Brunner and Munzel
    2000). Annotators and prompts are clusters, as in `mean_difference`. With `separation` the interval is Clopper and
    Pearson's for as many independent pairs that all went one way as the fewest clusters of a system.

    Examples
    --------
    >>> x, y = [4, 5, 3, 4, 5, 4], [3, 3, 2, 4, 1, 3]
    >>> result = probability_of_superiority(x, y, x_annotators=list("aabbcc"), y_annotators=list("ddeeff"),
    ...                                    x_prompts=[1, 2, 3, 1, 2, 3], y_prompts=[1, 2, 3, 1, 2, 3])
    >>> round(result.estimate, 4), round(result.detail["cliff_delta"], 4)
    (0.8889, 0.7778)
    """
    validate_level(level)
    rows = _TwoSamples.from_arrays(x, y, x_annotators, y_annotators, x_prompts, y_prompts)
    estimand = "probability that a rating of x is above one of y, ties half (not side by side)"
    common = _common(rows, "rating.superiority_unpaired", estimand, {"null": 0.5, "level": level})
    warnings = (ResultWarning("not_side_by_side", "info"),)
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
    spread = _Spread.from_rows(rows, placements)
    common["detail"] |= spread.detail()
    common["warnings"] = (*rows.warnings(), *warnings)
    again = partial(probability_of_superiority, systems=systems, level=level)
    return clusters.t_estimate(
        se=math.sqrt(spread.two_way.variance),
        df=spread.df,
        fewest_clusters=_fewest(common["detail"]),
        level=level,
        method="two_way_cv3_t",
        null=0.5,
        test_name="two_way_t",
        bounds=BOUNDS,
        _answers=rows.behind(placements, (x_annotators, y_annotators), again),
        **common,
    )


def _placements(values: FloatArray, others: FloatArray) -> FloatArray:
    """Return the share of the others below each value; ties count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return np.asarray(below / (2 * len(others)))


def _separated(estimate: float, n_pairs: int, level: float) -> Interval:
    low, high = basic.clopper_pearson_interval(n_pairs if estimate == 1 else 0, n_pairs, level)
    return Interval(level, low, high, "clopper_pearson_pairs")
