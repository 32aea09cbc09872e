"""Means and regressions whose rows share annotators (and items): the unit is the cluster, never the row.

The default interval is CV3, the jackknife that leaves one annotator out, on G* - 1 degrees of freedom, where
G* = N^2 / sum(n_g^2) is the number of equally large annotators that would weigh the same. CR1 is kept for the papers'
own mode; with a few annotators who gave most of the answers it covers as little as 62 % of the time. An interval that
ignores clusters is not offered.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, betting
from analysis.stats.arrays import (
    DEGENERATE,
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
from analysis.stats.results import Estimate, Record, Warning

# Under this many (effective) clusters an interval is doubtful; under the other, only the points are honest.
FEW_CLUSTERS = 20
TOO_FEW_CLUSTERS = 6
DOMINANT_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Components(Record):
    """The one-way components of variance: `between` clusters, `within` them, their ratio and the design effect.

    `icc` = between / (between + within); `design_effect` = the factor by which clusters of the observed sizes inflate
    the variance of the mean. None where a component cannot be estimated.
    """

    n_clusters: int
    n_rows: int
    between: float | None
    within: float | None
    icc: float | None
    design_effect: float | None


@dataclass(frozen=True, slots=True)
class TwoWay(Record):
    """The variance of a mean over rows that share annotators and items: over `annotators`, `items`, and both `combined`.

    `combined` = V_a + V_i - V_ai, which chance can make smaller than either part, or negative.
    """

    annotators: float
    items: float
    combined: float

    @property
    def variance(self) -> float:
        """The largest of the three: positive, and at its level with five annotators."""
        return max(self.combined, self.annotators, self.items)

    def detail(self) -> dict[str, Any]:
        """The parts under the names that an estimate's detail gives them."""
        return {
            "variance_annotators": self.annotators,
            "variance_items": self.items,
            "variance_two_way": self.combined,
            "is_maximum": self.combined <= max(self.annotators, self.items),
        }


@dataclass(frozen=True, slots=True)
class Regression(Record):
    """Least squares with a clustered covariance: `coefficients` (k,), `covariance` (k, k), `df` of the t reference."""

    coefficients: FloatArray
    covariance: FloatArray
    df: float
    n_rows: int
    n_clusters: int


def effective_clusters(sizes: npt.ArrayLike) -> float:
    """G* = N^2 / sum(n_g^2): how many equally large clusters weigh as much as these; G where all are equal.

    >>> effective_clusters([5, 5, 5, 5]), round(effective_clusters([17, 1, 1, 1]), 2)
    (4.0, 1.37)
    """
    array = vector(sizes, "sizes")
    return float(np.sum(array)) ** 2 / float(np.sum(array**2))


def t_estimate(
    estimate: float,
    se: float,
    df: float,
    *,
    fewest: int | None,
    level: float,
    method: str,
    null: float | None = None,
    test: str = "clustered_t",
    bounds: tuple[float, float] | None = None,
    reason: str = "the standard error is 0",
    **common: Any,
) -> Estimate:
    """An estimate with a clustered standard error, by the law: its t interval, and from six clusters on the test of `null`.

    `fewest` clusters are behind it (of annotators or of items, whichever are fewer); None says that its units are
    independent, and tested however few. A standard error of 0 is `zero_variance`, for that `reason`: no interval and no
    test rest on it. `common` holds the other fields of the Estimate, to whose detail `se` and `df` are added; without a
    `null` nothing is tested.

    >>> found = t_estimate(0.6, 0.05, 9, fewest=10, level=0.95, method="cv3_t", null=0.5, analysis="a",
    ...                    estimand="mean", unit="annotator", n=10)
    >>> round(found.interval.low, 4), round(found.pvalue, 4), found.detail["df"]
    (0.4869, 0.0766, 9)
    """
    common["detail"] = {**common.get("detail", {}), "se": se, "df": df}
    if se < DEGENERATE:
        return Estimate(status="zero_variance", reason=reason, estimate=estimate, **common)
    tested = null is not None and (fewest is None or fewest >= TOO_FEW_CLUSTERS)
    return Estimate(
        estimate=estimate,
        interval=basic.t_interval(estimate, se, df, level=level, bounds=bounds, method=method),
        test=basic.t_test(test, estimate, null, se, df) if null is not None and tested else None,
        **common,
    )


def cluster_warnings(sizes: npt.ArrayLike, *, name: str = "annotator") -> tuple[Warning, ...]:
    """What a reader must know of the clusters: `few_clusters` (G* under 20; under 6 severity block),
    `dominant_annotator` (one gave more than a tenth of the answers).

    `sizes` has shape (G,), the rows in each cluster.

    >>> [warning.code for warning in cluster_warnings([5] * 30)]
    []
    >>> [(warning.code, warning.severity) for warning in cluster_warnings([5] * 4 + [1])]
    [('few_clusters', 'block')]
    """
    array = vector(sizes, "sizes")
    effective = effective_clusters(array)
    found = []
    if effective < FEW_CLUSTERS:
        severity = "block" if len(array) < TOO_FEW_CLUSTERS else "warn"
        found.append(
            Warning("few_clusters", severity, {"cluster": name, "n_clusters": len(array), "effective": effective})
        )
    largest = float(array.max()) / float(array.sum())
    # With ten clusters or fewer an equal share is already a tenth; there `few_clusters` says what matters.
    if len(array) > 1 / DOMINANT_SHARE and largest > DOMINANT_SHARE:
        found.append(Warning("dominant_annotator", "warn", {"cluster": name, "largest_share": largest}))
    return tuple(found)


def clustered_mean(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    null: float | None = None,
    method: str = "cv3",
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    analysis: str = "clustered_mean",
    estimand: str = "label-weighted mean",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """The mean over rows with a standard error over clusters, and the t test that it equals `null`.

    `values` has shape (n_rows,), NaN missing; `clusters` the label (annotator) of each row. `n` counts clusters.
    "cv3": V = (G - 1) / G sum_g (mean without g - mean)^2, df = max(1, G* - 1).
    "cr1": V = G / (G - 1) sum_g (sum of residuals in g)^2 / N^2, df = G - 1.
    Under six clusters there is no test, and detail["cluster_means"] holds the points. The sensitivity is the mean of
    the clusters' means, a different estimand where the number of answers tells something about them.

    Source: MacKinnon, Nielsen and Webb 2023, Cluster-robust inference; G* after Kish.

    >>> result = clustered_mean([1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3],
    ...                         method="cr1")
    >>> round(result.estimate, 4), round(result.detail["se"], 6), result.n
    (0.5833, 0.049431, 4)
    """
    refuse_level(level)
    if method not in ("cv3", "cr1"):
        raise ValueError(f"method: {method!r} is neither cv3 nor cr1")
    kept, positions, n_clusters, n_missing = _rows(values, clusters, "clusters")
    if bounds is not None:
        refuse_outside(kept, bounds, "values")
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": n_clusters,
        "n_clusters": n_clusters,
        "n_rows": len(kept),
        "settings": {"null": null, "method": method, "level": level, "bounds": bounds},
    }
    if len(kept) == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    mean = float(np.mean(kept))
    if n_clusters == 1:
        return Estimate(status="n_lt_2", reason="one cluster has no spread", estimate=mean, **common)
    sums = totals(positions, kept, n_clusters)
    sizes = sizes_of(positions, n_clusters)
    effective = effective_clusters(sizes)
    if method == "cv3":
        df = max(1.0, effective - 1)
        variance = cv3_variance(sums, sizes)
    else:
        df = float(n_clusters - 1)
        variance = cr1_variance(kept - mean, positions)
    se = math.sqrt(variance)
    cluster_means = sums / sizes
    detail: dict[str, Any] = {"effective_clusters": effective, "n_missing": n_missing}
    if n_clusters < TOO_FEW_CLUSTERS:
        detail["cluster_means"] = cluster_means
    by_cluster = basic.one_sample(
        cluster_means,
        null=mean if null is None else null,
        level=level,
        bounds=bounds,
        analysis=f"{analysis}.cluster_means",
        estimand=f"mean of {unit} means",
        unit=unit,
        mode="paper" if mode == "paper" else "recommended",
    )
    if null is None or n_clusters < TOO_FEW_CLUSTERS:
        by_cluster = replace(by_cluster, test=None, effect=None)
    result = t_estimate(
        mean,
        se,
        df,
        fewest=n_clusters,
        level=level,
        method=f"{method}_t",
        null=null,
        bounds=bounds,
        reason="the clusters' means coincide, so the standard error is 0",
        sensitivity=(by_cluster,),
        warnings=cluster_warnings(sizes, name=unit),
        detail=detail,
        **common,
    )
    if result.status == "ok" or bounds is None:
        return result
    return replace(result, interval=betting.betting_interval(cluster_means, level=level, bounds=bounds))


def two_way_mean(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike,
    *,
    null: float | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    analysis: str = "two_way_mean",
    estimand: str = "label-weighted mean",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """The mean over rows with annotators and items both as clusters, for claims beyond these very items.

    `values`, `annotators` and `items` have shape (n_rows,). V = V_a + V_i - V_ai, each term with its own
    G / (G - 1), and never less than the larger of V_a and V_i; df = min(G_a, G_i) - 1. `n` counts annotators.

    Source: Cameron, Gelbach and Miller 2011, Robust inference with multiway clustering; the maximum rule keeps the
    variance positive and the coverage at its level with five annotators.

    >>> result = two_way_mean([1, 0, 1, 1, 0, 1], [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1])
    >>> result.detail["df"], result.detail["is_maximum"]
    (1.0, True)
    """
    refuse_level(level)
    array = vector(values, "values")
    here = ~np.isnan(array)
    kept = array[here]
    if bounds is not None:
        refuse_outside(kept, bounds, "values")
    annotator_codes, n_annotators = kept_codes(annotators, "annotators", here)
    item_codes, n_items = kept_codes(items, "items", here)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": n_annotators,
        "n_clusters": min(n_annotators, n_items) if len(kept) else 0,
        "n_rows": len(kept),
        "settings": {"null": null, "method": "two_way_cr1", "level": level, "bounds": bounds},
    }
    if len(kept) == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    mean = float(np.mean(kept))
    if min(n_annotators, n_items) == 1:
        return Estimate(status="n_lt_2", reason="one cluster has no spread", estimate=mean, **common)
    spread = two_way_variance(kept - mean, annotator_codes, item_codes)
    counts = {"n_annotators": n_annotators, "n_items": n_items, "n_missing": int((~here).sum())}
    return t_estimate(
        mean,
        math.sqrt(spread.variance),
        float(min(n_annotators, n_items) - 1),
        fewest=min(n_annotators, n_items),
        level=level,
        method="two_way_t",
        null=null,
        test="two_way_t",
        bounds=bounds,
        warnings=two_way_warnings(annotator_codes, item_codes, unit=unit),
        detail={**spread.detail(), **counts},
        **common,
    )


def cv3_variance(sums: FloatArray, sizes: FloatArray) -> float:
    """The leave-one-cluster-out variance of sum(sums) / sum(sizes); shapes (G,).

    >>> round(cv3_variance(np.array([1.0, 2.0, 3.0]), np.ones(3)), 4)
    0.3333
    """
    n_clusters = len(sums)
    mean = float(np.sum(sums)) / float(np.sum(sizes))
    without = (np.sum(sums) - sums) / (np.sum(sizes) - sizes)
    return (n_clusters - 1) / n_clusters * float(np.sum((without - mean) ** 2))


def cr1_variance(residuals: FloatArray, positions: IntArray) -> float:
    """G / (G - 1) sum_g (sum of residuals in g)^2 / N^2; `positions` are integer cluster codes, gaps allowed.

    >>> round(cr1_variance(np.array([-1.0, 0.0, 1.0]), np.array([0, 1, 2])), 4)
    0.3333
    """
    sums = np.bincount(positions, residuals)
    n_clusters = int(np.count_nonzero(np.bincount(positions)))
    if n_clusters < 2:
        return 0.0
    return n_clusters / (n_clusters - 1) * float(np.sum(sums**2)) / len(residuals) ** 2


def two_way_variance(residuals: FloatArray, annotators: IntArray, items: IntArray) -> TwoWay:
    """CR1 of a mean over annotators, over items and over both; codes from 0, all arrays of shape (n_rows,).

    >>> spread = two_way_variance(np.array([0.5, -0.5, 0.5, -0.5]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    >>> spread.annotators, spread.items, round(spread.combined, 4), spread.variance
    (0.0, 0.25, 0.1667, 0.25)
    """
    # Coded anew: the numbers of all possible pairs would need more room than there are rows.
    pairs, _ = codes(annotators * (int(items.max()) + 1) + items, "pairs", len(residuals))
    by_annotator, by_item, by_pair = (cr1_variance(residuals, labels) for labels in (annotators, items, pairs))
    return TwoWay(by_annotator, by_item, by_annotator + by_item - by_pair)


def two_way_warnings(annotators: IntArray, items: IntArray, *, unit: str = "annotator") -> tuple[Warning, ...]:
    """`cluster_warnings` of the annotators, and of the items where they are few; codes of shape (n_rows,).

    >>> [warning.detail["cluster"] for warning in two_way_warnings(np.arange(60) // 2, np.arange(60) % 3)]
    ['item']
    """
    of_items = cluster_warnings(np.bincount(items), name="item")
    few = tuple(warning for warning in of_items if warning.code == "few_clusters")
    return (*cluster_warnings(np.bincount(annotators), name=unit), *few)


def between_variance(values: npt.ArrayLike, clusters: npt.ArrayLike) -> Components:
    """One-way components of variance by the method of moments, a negative one reported as 0.

    `values` has shape (n_rows,), NaN missing. With mean squares MSB and MSW and n0 = (N - sum(n_g^2) / N) / (G - 1):
    within = MSW, between = max(0, (MSB - MSW) / n0). The design effect of the mean is
    1 + (sum(n_g^2) / N - 1) icc.

    >>> components = between_variance([1, 1, 3, 3, 5, 5], ["a", "a", "b", "b", "c", "c"])
    >>> components.between, components.within, components.icc
    (4.0, 0.0, 1.0)
    """
    kept, positions, n_clusters, _ = _rows(values, clusters, "clusters")
    n_rows = len(kept)
    if n_clusters < 2 or n_rows <= n_clusters:
        return Components(n_clusters, n_rows, None, None, None, None)
    sizes = sizes_of(positions, n_clusters)
    means = totals(positions, kept, n_clusters) / sizes
    between_squares = float(np.sum(sizes * (means - np.mean(kept)) ** 2)) / (n_clusters - 1)
    within = float(np.sum((kept - means[positions]) ** 2)) / (n_rows - n_clusters)
    squared = float(np.sum(sizes**2)) / n_rows
    between = max(0.0, (between_squares - within) / ((n_rows - squared) / (n_clusters - 1)))
    total = between + within
    icc = None if total < DEGENERATE**2 else between / total
    return Components(n_clusters, n_rows, between, within, icc, None if icc is None else 1 + (squared - 1) * icc)


def clustered_regression(
    design: npt.ArrayLike, response: npt.ArrayLike, clusters: npt.ArrayLike, *, method: str = "cv3"
) -> Regression:
    """Ordinary least squares with a covariance over clusters.

    `design` has shape (n_rows, k), its constant included; `response` and `clusters` shape (n_rows,), nothing missing.
    "cv3": (G - 1) / G sum_g (b without g - b)(...)' on G* - 1 degrees of freedom; "cr1": the sandwich with
    G / (G - 1) (N - 1) / (N - k) on G - 1. Raises ValueError where the columns are linearly dependent, also without
    some one cluster, which then alone identifies a coefficient.

    >>> design = [[1, 0], [1, 1], [1, 0], [1, 1], [1, 0], [1, 1]]
    >>> fit = clustered_regression(design, [1, 2, 2, 3, 1, 4], [0, 0, 1, 1, 2, 2])
    >>> np.round(fit.coefficients, 4).tolist()
    [1.3333, 1.6667]
    """
    if method not in ("cv3", "cr1"):
        raise ValueError(f"method: {method!r} is neither cv3 nor cr1")
    columns = np.asarray(design, dtype=np.float64)
    observed = vector(response, "response")
    if columns.ndim != 2 or columns.shape[0] != len(observed):
        raise ValueError(f"design: shape {columns.shape} where response has {len(observed)} rows")
    if np.isnan(columns).any() or np.isnan(observed).any():
        raise ValueError("design: a row with a missing value; leave it out first")
    positions, n_clusters = codes(np.asarray(clusters), "clusters", len(observed))
    n_rows, k = columns.shape
    if n_clusters < 2:
        raise ValueError("clusters: at least two are needed")
    if np.linalg.matrix_rank(columns) < k:
        raise ValueError("design: the columns are linearly dependent")
    sizes = sizes_of(positions, n_clusters)
    squares = _summed(columns[:, :, None] * columns[:, None, :], positions, n_clusters)
    products = _summed(columns * observed[:, None], positions, n_clusters)
    coefficients = np.linalg.solve(squares.sum(axis=0), products.sum(axis=0))
    if method == "cr1":
        scores = _summed(columns * (observed - columns @ coefficients)[:, None], positions, n_clusters)
        bread = np.linalg.inv(squares.sum(axis=0))
        factor = n_clusters / (n_clusters - 1) * (n_rows - 1) / (n_rows - k)
        return Regression(
            coefficients, factor * bread @ (scores.T @ scores) @ bread, float(n_clusters - 1), n_rows, n_clusters
        )
    rest = squares.sum(axis=0)[None] - squares
    if np.any(np.linalg.matrix_rank(rest) < k):
        raise ValueError("clusters: without one of them the columns are linearly dependent")
    without = np.linalg.solve(rest, (products.sum(axis=0)[None] - products)[:, :, None])[:, :, 0]
    shift = without - coefficients
    return Regression(
        coefficients,
        (n_clusters - 1) / n_clusters * (shift.T @ shift),
        max(1.0, effective_clusters(sizes) - 1),
        n_rows,
        n_clusters,
    )


def _rows(values: npt.ArrayLike, clusters: npt.ArrayLike, name: str) -> tuple[FloatArray, IntArray, int, int]:
    array = vector(values, "values")
    here = ~np.isnan(array)
    kept_positions, n_clusters = kept_codes(clusters, name, here)
    return array[here], kept_positions, n_clusters, int((~here).sum())


def _summed(rows: FloatArray, positions: IntArray, n_clusters: int) -> FloatArray:
    flat = rows.reshape(len(rows), -1)
    summed = np.stack([totals(positions, column, n_clusters) for column in flat.T], axis=1)
    return summed.reshape((n_clusters, *rows.shape[1:]))
