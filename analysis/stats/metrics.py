"""How well an automatic metric, or a judge that is a model, agrees with people: on systems, on items, against another.

Human and metric scores are tables of items by systems, higher is better, NaN missing; a cell that lacks either is left
out of both. Intervals resample items and average both sides anew. They treat each human score as given: where few
annotators stand behind them, the agreement is one with these annotators.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import DEGENERATE, BoolArray, FloatArray, IntArray, matrix, refuse_level, vector
from analysis.stats.bootstrap import multinomial_weights, percentile_interval, ratio_draws
from analysis.stats.results import Estimate, HypothesisTest, Warning

# Under this many systems a correlation of systems is a line through two or three points.
MIN_SYSTEMS = 4
STATISTICS = ("pearson", "spearman", "kendall", "pairwise_accuracy")
GROUPINGS = ("item", "none")
MAX_PAIRS = 5_000_000
BLOCK = 128


def system_level(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 999,
    unit: str = "item",
) -> dict[str, Estimate]:
    """Pearson's, Spearman's and Kendall's (tau-b) correlation of the systems' mean scores, by name.

    `human` has shape (n_items, K), `metric` the same or (K,) for a score of the whole output that no item average
    gives, which then stays as it is in each resample. Intervals are percentile intervals over resampled items. Under
    four systems there is a scatter plot to look at and no number: `not_applicable`; constant scores: `not_identified`.
    `n` counts items; detail has both sides' scores of the systems.

    >>> human = [[0.1, 0.4, 0.6, 0.9], [0.2, 0.3, 0.7, 0.8], [0.0, 0.5, 0.4, 1.0]]
    >>> found = system_level(human, [3, 5, 4, 9], rng=np.random.default_rng(0), resamples=99)
    >>> round(found["pearson"].estimate, 3), round(found["kendall"].estimate, 3)
    (0.889, 0.667)
    """
    tables = _Tables.of(human, metric)
    return {
        name: _of_systems(tables, name, minimum=MIN_SYSTEMS, level=level, resamples=resamples, rng=rng, unit=unit)
        for name in ("pearson", "spearman", "kendall")
    }


def pairwise_accuracy(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    human_pvalues: npt.ArrayLike | None = None,
    significance: float = 0.05,
    level: float = 0.95,
    resamples: int = 999,
    unit: str = "item",
) -> Estimate:
    """The share of pairs of systems that the metric orders as people do; a tie agrees with a tie only.

    Shapes as in `system_level`. The sensitivity is restricted to pairs whose human scores differ significantly, by
    `human_pvalues` (K, K), two-sided and from an analysis that knows the annotators, or else by sign flips of the
    items' differences. `n` counts items, detail["n_pairs"] pairs.

    Source: Kocmi et al. 2021, To ship or not to ship.

    >>> human = [[0.1, 0.4, 0.6], [0.2, 0.3, 0.7], [0.0, 0.5, 0.4]]
    >>> found = pairwise_accuracy(human, [3, 5, 4], rng=np.random.default_rng(0), resamples=99)
    >>> round(found.estimate, 3), found.detail["n_pairs"]
    (0.667, 3)
    """
    if not 0 < significance < 1:
        raise ValueError(f"significance: {significance!r} is not strictly between 0 and 1")
    tables = _Tables.of(human, metric)
    k = tables.n_systems
    if human_pvalues is None:
        upper = _one_sided(tables.human, resamples=resamples, rng=rng)
        pvalues = 2 * np.minimum(upper, 1 - upper)
    else:
        pvalues = matrix(human_pvalues, "human_pvalues")
        if pvalues.shape != (k, k):
            raise ValueError(f"human_pvalues: shape {pvalues.shape} for {k} systems")
        pvalues = pvalues[np.triu_indices(k, 1)]
    clear = np.nan_to_num(pvalues, nan=1.0) < significance
    common: dict[str, Any] = {"minimum": 2, "level": level, "resamples": resamples, "rng": rng, "unit": unit}
    restricted = _of_systems(tables, "pairwise_accuracy", chosen=clear, **common)
    return _of_systems(tables, "pairwise_accuracy", sensitivity=(restricted,), **common)


def soft_pairwise_accuracy(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = 999,
    unit: str = "item",
) -> Estimate:
    """How closely the metric is as sure of each pair of systems as people are: 1 - mean |p_human - p_metric|.

    Both tables have shape (n_items, K). p is the one-sided p-value of a paired permutation test on items that the one
    system is better than the other, ties half, so that p(x, y) + p(y, x) = 1; all sign flips are enumerated where they
    are no more than `resamples`, and both sides see the same flips. Not to be confused with the protocol for system
    comparison that shares its published abbreviation.

    Source: Thompson et al. 2024, Improving statistical significance in human evaluation of automatic metrics via soft
    pairwise accuracy.

    >>> human = [[0.1, 0.4, 0.6], [0.2, 0.3, 0.7], [0.0, 0.5, 0.4]]
    >>> soft_pairwise_accuracy(human, human, rng=np.random.default_rng(0)).estimate
    1.0
    """
    tables = _Tables.of(human, metric)
    if tables.fixed is not None:
        raise ValueError("metric: scores of items are needed, not of whole systems")
    k = tables.n_systems
    common: dict[str, Any] = {
        "analysis": "metrics.soft_pairwise_accuracy",
        "estimand": "1 - mean difference of one-sided p-values over pairs of systems",
        "unit": unit,
        "n": tables.n_items,
        "n_rows": tables.n_cells,
        "settings": {"resamples": resamples},
    }
    edge = _too_few(tables, 2, common)
    if edge is not None:
        return edge
    both = np.concatenate([_pair_differences(tables.human), _pair_differences(tables.metric)], axis=1)
    pvalues = _upper_tail(both, resamples=resamples, rng=rng)
    n_pairs = k * (k - 1) // 2
    apart = np.abs(pvalues[:n_pairs] - pvalues[n_pairs:])
    detail = {"n_systems": k, "n_pairs": n_pairs, "human": pvalues[:n_pairs], "metric": pvalues[n_pairs:]}
    return Estimate(estimate=1 - float(apart.mean()), detail=detail, **common)


def segment_tau(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    grouping: str = "item",
    level: float = 0.95,
    resamples: int = 999,
    unit: str = "item",
) -> Estimate:
    """Kendall's tau-b of single outputs: within each item over its systems, then averaged; or over all cells.

    Shapes (n_items, K). An item whose scores are all equal on either side has no tau and is left out
    (detail["n_undefined"]). "none" compares outputs to different items too, so it also rewards knowing which items are
    hard; it has no interval.

    >>> human, metric = [[1, 2, 3], [3, 2, 1], [2, 2, 2]], [[1, 2, 3], [3, 1, 2], [1, 2, 3]]
    >>> found = segment_tau(human, metric, rng=np.random.default_rng(0), resamples=99)
    >>> round(found.estimate, 4), found.n, found.detail["n_undefined"]
    (0.6667, 2, 1)
    """
    refuse_level(level)
    tables = _Tables.of(human, metric)
    pairs = _Pairs.of(tables, grouping)
    common: dict[str, Any] = {
        "analysis": "metrics.segment_tau",
        "estimand": "Kendall's tau-b within items" if grouping == "item" else "Kendall's tau-b over all outputs",
        "unit": unit,
        "n_rows": tables.n_cells,
        "settings": {"grouping": grouping, "level": level, "resamples": resamples},
    }
    if len(pairs.group) == 0:
        return Estimate(status="no_data", reason="no two outputs to compare", n=0, **common)
    each = pairs.taus()
    taus = each[np.isfinite(each)]
    if len(taus) == 0:
        return Estimate(status="not_identified", reason="every item's scores are equal", n=0, **common)
    detail = {"n_undefined": len(each) - len(taus), "n_pairs": len(pairs.group)}
    n = tables.n_items if grouping == "none" else len(taus)
    interval = None
    if grouping == "item" and n > 1:
        draws = ratio_draws(taus[:, None], np.ones((n, 1)), multinomial_weights(n, resamples, rng))
        interval = percentile_interval(draws[:, 0], level)
    return Estimate(estimate=float(taus.mean()), interval=interval, n=n, detail=detail, **common)


def tie_calibrated_accuracy(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    grouping: str = "item",
    threshold: float | None = None,
    level: float = 0.95,
    resamples: int = 999,
    unit: str = "item",
) -> Estimate:
    """The share of pairs of outputs that the metric calls as people do: the same order, or a tie where they tie.

    Shapes (n_items, K). Two metric scores tie if they differ by at most `threshold`; None takes the least threshold
    with the highest accuracy on these data (detail["threshold"], warning `calibrated_on_these_data`: the accuracy
    flatters the metric a little; calibrate on other items and pass the result to avoid that). "item" pairs outputs to
    one item and averages the items' shares, with an interval over items at that threshold; "none" pairs all outputs
    and has no interval. detail counts concordant, discordant, and ties on the human, the metric, or both sides.

    Accuracy = (C + T_hm) / (C + D + T_h + T_m + T_hm).

    Source: Deutsch, Foster and Freitag 2023, Ties matter.

    >>> human, metric = [[1, 1, 2], [0, 3, 3]], [[0.50, 0.52, 0.9], [0.1, 0.7, 0.75]]
    >>> found = tie_calibrated_accuracy(human, metric, rng=np.random.default_rng(0), resamples=99)
    >>> found.estimate, round(found.detail["threshold"], 2)
    (1.0, 0.05)
    """
    refuse_level(level)
    if threshold is not None and not (np.isfinite(threshold) and threshold >= 0):
        raise ValueError(f"threshold: {threshold!r} is not a non-negative number")
    tables = _Tables.of(human, metric)
    pairs = _Pairs.of(tables, grouping)
    common: dict[str, Any] = {
        "analysis": "metrics.tie_calibrated_accuracy",
        "estimand": "share of pairs of outputs called as people call them, ties included",
        "unit": unit,
        "n_rows": tables.n_cells,
        "settings": {"grouping": grouping, "threshold": threshold, "level": level, "resamples": resamples},
    }
    if len(pairs.group) == 0:
        return Estimate(status="no_data", reason="no two outputs to compare", n=0, **common)
    sizes = np.bincount(pairs.group, minlength=pairs.n_groups)
    used = sizes > 0
    human_sign = np.sign(pairs.human)
    apart = np.abs(pairs.metric)
    agrees = (human_sign != 0) & (human_sign == np.sign(pairs.metric))
    warnings: tuple[Warning, ...] = ()
    if threshold is None:
        chosen = _best_threshold(apart, agrees, human_sign == 0, 1 / sizes[pairs.group])
        warnings = (Warning("calibrated_on_these_data", "info", {"threshold": chosen}),)
    else:
        chosen = threshold
    tied = apart <= chosen
    right = np.where(human_sign == 0, tied, agrees & ~tied)
    per_item = np.bincount(pairs.group, right, pairs.n_groups)[used] / sizes[used]
    n = tables.n_items if grouping == "none" else int(used.sum())
    interval = None
    if grouping == "item" and n > 1:
        draws = ratio_draws(per_item[:, None], np.ones((n, 1)), multinomial_weights(n, resamples, rng))
        interval = percentile_interval(draws[:, 0], level)
    detail = {
        "threshold": chosen,
        "concordant": int(np.sum(agrees & ~tied)),
        "discordant": int(np.sum((human_sign != 0) & ~tied & ~agrees)),
        "ties_human": int(np.sum((human_sign == 0) & ~tied)),
        "ties_metric": int(np.sum((human_sign != 0) & tied)),
        "ties_both": int(np.sum((human_sign == 0) & tied)),
        "n_pairs": len(right),
    }
    return Estimate(estimate=float(per_item.mean()), interval=interval, n=n, warnings=warnings, detail=detail, **common)


def compare_metrics(
    human: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    statistic: str = "pearson",
    resamples: int = 999,
    unit: str = "item",
) -> Estimate:
    """Whether the first metric agrees with people better than the second: difference of `statistic`, paired permutation.

    All tables have shape (n_items, K); a cell that lacks any of the three is left out. Both metrics are standardised
    over all cells, so that they may be exchanged; each resample exchanges them on every item with probability 1/2.
    `statistic` is one of "pearson", "spearman", "kendall", "pairwise_accuracy" (of systems' means) or "segment_tau".
    Two-sided p = (1 + number as extreme) / (resamples + 1). Metrics that agree in every resample: `zero_variance`.

    Source: Deutsch, Dror and Roth 2021, A statistical analysis of summarization evaluation metrics using resampling
    methods (the permutation over inputs).

    >>> rng = np.random.default_rng(0)
    >>> human = rng.normal(np.arange(6) / 4, 1, (200, 6))
    >>> good, poor = human + rng.normal(0, 0.5, (200, 6)), rng.normal(0, 1, (200, 6))
    >>> found = compare_metrics(human, good, poor, rng=rng)
    >>> found.estimate > 0, found.pvalue < 0.05
    (True, True)
    """
    if statistic not in (*STATISTICS, "segment_tau"):
        raise ValueError(f"statistic: {statistic!r} is none of {', '.join(STATISTICS)}, segment_tau")
    given, one, other = matrix(human, "human"), matrix(first, "first"), matrix(second, "second")
    for name, table in (("first", one), ("second", other)):
        if table.shape != given.shape:
            raise ValueError(f"{name}: shape {table.shape} where human has {given.shape}")
    missing = np.isnan(given) | np.isnan(one) | np.isnan(other)
    given, one, other = (np.where(missing, np.nan, table) for table in (given, one, other))
    tables = _Tables.of(given, one)
    common: dict[str, Any] = {
        "analysis": "metrics.compare",
        "estimand": f"difference of {statistic} with human scores, first metric - second metric",
        "unit": unit,
        "n": tables.n_items,
        "n_rows": tables.n_cells,
        "settings": {"statistic": statistic, "resamples": resamples},
    }
    minimum = MIN_SYSTEMS if statistic in ("pearson", "spearman", "kendall") else 2
    edge = _too_few(tables, minimum, common)
    if edge is not None:
        return edge
    if np.nanstd(_unit(one)) < DEGENERATE or np.nanstd(_unit(other)) < DEGENERATE:
        return Estimate(status="not_identified", reason="a metric is constant", **common)
    one, other = ((table - np.nanmean(table)) / np.nanstd(table) for table in (one, other))
    observed, draws = (_swapped_taus if statistic == "segment_tau" else _swapped_systems)(
        given, one, other, statistic, resamples, rng
    )
    if observed is None:
        return Estimate(status="not_identified", reason="the scores of the systems are equal", **common)
    defined = draws[np.isfinite(draws)]
    if len(defined) == 0 or float(np.max(np.abs(defined))) < DEGENERATE:
        return Estimate(
            status="zero_variance",
            reason="the two metrics agree equally in every resample",
            estimate=observed,
            **common,
        )
    extreme = int(np.sum(np.abs(draws) >= abs(observed) - 1e-9)) + int(np.sum(~np.isfinite(draws)))
    return Estimate(
        estimate=observed,
        test=HypothesisTest(
            name="paired_permutation", null=0.0, statistic=observed, pvalue=(1 + extreme) / (1 + resamples)
        ),
        detail={"n_systems": tables.n_systems},
        **common,
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    """Both sides with the same cells missing, items without any cell left out; `fixed` (K,) where items have none."""

    human: FloatArray
    metric: FloatArray
    fixed: FloatArray | None

    @property
    def n_items(self) -> int:
        return int(self.human.shape[0])

    @property
    def n_systems(self) -> int:
        return int(self.human.shape[1])

    @property
    def n_cells(self) -> int:
        return int(np.sum(~np.isnan(self.human)))

    @classmethod
    def of(cls, human: npt.ArrayLike, metric: npt.ArrayLike) -> "_Tables":
        given = matrix(human, "human")
        if np.ndim(np.asarray(metric, dtype=np.float64)) == 1:
            fixed = vector(metric, "metric")
            if len(fixed) != given.shape[1]:
                raise ValueError(f"metric: {len(fixed)} scores for {given.shape[1]} systems")
            here = (~np.isnan(given)).any(axis=1)
            return cls(given[here], given[here], fixed)
        other = matrix(metric, "metric")
        if other.shape != given.shape:
            raise ValueError(f"metric: shape {other.shape} where human has {given.shape}")
        missing = np.isnan(given) | np.isnan(other)
        here = ~missing.all(axis=1)
        return cls(np.where(missing, np.nan, given)[here], np.where(missing, np.nan, other)[here], None)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """All pairs of outputs within a group: differences on both sides and the group's number; shapes (n_pairs,)."""

    human: FloatArray
    metric: FloatArray
    group: IntArray
    n_groups: int

    @classmethod
    def of(cls, tables: _Tables, grouping: str) -> "_Pairs":
        if grouping not in GROUPINGS:
            raise ValueError(f"grouping: {grouping!r} is none of {', '.join(GROUPINGS)}")
        if tables.fixed is not None:
            raise ValueError("metric: scores of items are needed, not of whole systems")
        human, metric = tables.human, tables.metric
        if grouping == "none":
            here = ~np.isnan(human)
            human, metric = human[here][None, :], metric[here][None, :]
        n, k = human.shape
        if n * k * (k - 1) // 2 > MAX_PAIRS:
            raise ValueError(f"grouping: {n * k * (k - 1) // 2} pairs are more than {MAX_PAIRS}; group by item")
        left, right = np.triu_indices(k, 1)
        first, second = human[:, left] - human[:, right], metric[:, left] - metric[:, right]
        there = ~np.isnan(first)
        group = np.broadcast_to(np.arange(n)[:, None], first.shape)[there]
        return cls(first[there], second[there], np.asarray(group, dtype=np.int64), n)

    def taus(self) -> FloatArray:
        """Tau-b of each group, NaN where a side has no two different scores."""
        ours, theirs = np.sign(self.human), np.sign(self.metric)
        together, of_human, of_metric = (
            np.bincount(self.group, values, self.n_groups) for values in (ours * theirs, ours**2, theirs**2)
        )
        with np.errstate(invalid="ignore"):
            return np.asarray(together / np.sqrt(of_human * of_metric))


def _of_systems(
    tables: _Tables,
    statistic: str,
    *,
    minimum: int,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    unit: str,
    chosen: BoolArray | None = None,
    sensitivity: tuple[Estimate, ...] = (),
) -> Estimate:
    refuse_level(level)
    k = tables.n_systems
    common: dict[str, Any] = {
        "analysis": f"metrics.{statistic}" + ("" if chosen is None else ".significant"),
        "estimand": _ESTIMANDS[statistic] + ("" if chosen is None else ", of those that people clearly tell apart"),
        "unit": unit,
        "n": tables.n_items,
        "n_rows": tables.n_cells,
        "settings": {"level": level, "resamples": resamples},
        "sensitivity": sensitivity,
    }
    edge = _too_few(tables, minimum, common)
    if edge is not None:
        return edge
    scored, metric_scored = _means(tables.human), _means(tables.metric) if tables.fixed is None else tables.fixed
    detail: dict[str, Any] = {"n_systems": k, "human": scored, "metric": metric_scored}
    if statistic == "pairwise_accuracy":
        detail["n_pairs"] = k * (k - 1) // 2 if chosen is None else int(chosen.sum())
        if chosen is not None and not chosen.any():
            return Estimate(
                status="not_identified",
                reason="people clearly tell no pair of systems apart",
                detail=detail,
                **common,
            )
    # To one scale, on which equal means differ by rounding and by nothing else.
    human, metric = _unit(tables.human), _unit(tables.metric)
    fixed = None if tables.fixed is None else _unit(tables.fixed)
    theirs_now = _means(metric) if fixed is None else fixed
    estimate = _compare(statistic, _means(human)[None, :], theirs_now[None, :], chosen)[0]
    if not np.isfinite(estimate):
        return Estimate(
            status="not_identified", reason="the scores of the systems are equal or missing", detail=detail, **common
        )
    interval = None
    warnings: tuple[Warning, ...] = ()
    if tables.n_items > 1:
        draws = []
        for block in multinomial_weights(tables.n_items, resamples, rng):
            ours = _weighted(human, block)
            theirs = _weighted(metric, block) if fixed is None else np.broadcast_to(fixed, ours.shape)
            draws.append(_compare(statistic, ours, theirs, chosen))
        drawn = np.concatenate(draws)
        defined = drawn[np.isfinite(drawn)]
        if len(defined) < len(drawn):
            warnings = (Warning("undefined_resamples", "warn", {"share": 1 - len(defined) / len(drawn)}),)
        interval = percentile_interval(defined, level) if len(defined) > len(drawn) / 2 else None
    return Estimate(estimate=float(estimate), interval=interval, warnings=warnings, detail=detail, **common)


_ESTIMANDS = {
    "pearson": "Pearson's correlation of systems' mean scores",
    "spearman": "Spearman's rank correlation of systems' mean scores",
    "kendall": "Kendall's tau-b of systems' mean scores",
    "pairwise_accuracy": "share of pairs of systems ordered alike",
}


def _too_few(tables: _Tables, minimum: int, common: dict[str, Any]) -> Estimate | None:
    if tables.n_cells == 0:
        return Estimate(status="no_data", reason="no output was scored by both sides", **common)
    if tables.n_systems < minimum:
        reason = f"{tables.n_systems} systems are too few for a number; look at the scatter plot"
        return Estimate(status="not_applicable", reason=reason, detail={"n_systems": tables.n_systems}, **common)
    return None


def _means(table: FloatArray) -> FloatArray:
    return np.asarray(_weighted(table, np.ones((1, len(table))))[0])


def _weighted(table: FloatArray, weights: FloatArray) -> FloatArray:
    here = ~np.isnan(table)
    return ratio_draws(np.nan_to_num(table), here.astype(np.float64), iter([weights]))


def _compare(statistic: str, ours: FloatArray, theirs: FloatArray, chosen: BoolArray | None = None) -> FloatArray:
    """The statistic of each row of two (B, K) arrays, NaN where it is undefined."""
    results = [
        _BY_NAME[statistic](ours[start : start + BLOCK], theirs[start : start + BLOCK], chosen)
        for start in range(0, len(ours), BLOCK)
    ]
    return np.concatenate(results)


def _pearson(ours: FloatArray, theirs: FloatArray, _: BoolArray | None = None) -> FloatArray:
    centred = [table - table.mean(axis=1, keepdims=True) for table in (ours, theirs)]
    spreads = [np.sqrt(np.sum(table**2, axis=1)) for table in centred]
    varies = (spreads[0] > DEGENERATE * _scale(ours)[:, 0]) & (spreads[1] > DEGENERATE * _scale(theirs)[:, 0])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.sum(centred[0] * centred[1], axis=1) / (spreads[0] * spreads[1])
    return np.where(varies, np.clip(correlation, -1.0, 1.0), np.nan)


def _spearman(ours: FloatArray, theirs: FloatArray, _: BoolArray | None = None) -> FloatArray:
    # The mid-rank of a value is half the sum of the signs of its distances to all others, up to a constant.
    return _pearson(
        *(
            _sign(table[:, :, None] - table[:, None, :], _scale(table)[:, :, None]).sum(axis=2)
            for table in (ours, theirs)
        )
    )


def _kendall(ours: FloatArray, theirs: FloatArray, _: BoolArray | None = None) -> FloatArray:
    a, b = _signs(ours), _signs(theirs)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sum(a * b, axis=1) / np.sqrt(np.sum(a**2, axis=1) * np.sum(b**2, axis=1)))


def _accuracy(ours: FloatArray, theirs: FloatArray, chosen: BoolArray | None = None) -> FloatArray:
    a, b = _signs(ours), _signs(theirs)
    if chosen is not None:
        a, b = a[:, chosen], b[:, chosen]
    undefined = np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1)
    return np.where(undefined, np.nan, np.mean(a == b, axis=1))


def _signs(scores: FloatArray) -> FloatArray:
    left, right = np.triu_indices(scores.shape[1], 1)
    return _sign(scores[:, left] - scores[:, right], _scale(scores))


def _sign(apart: FloatArray, scale: FloatArray) -> FloatArray:
    """The sign of differences of means; those of equal scores may differ in the last digit, which is a tie."""
    return np.asarray(np.sign(np.where(np.abs(apart) < DEGENERATE * scale, 0.0, apart)))


def _scale(scores: FloatArray) -> FloatArray:
    largest: FloatArray = np.max(np.abs(np.nan_to_num(scores)), axis=1, keepdims=True, initial=0.0)
    return np.maximum(1.0, largest)


def _unit(table: FloatArray) -> FloatArray:
    largest = float(np.max(np.abs(np.nan_to_num(table)), initial=0.0))
    return table / largest if largest > 0 else table


_BY_NAME: dict[str, Callable[[FloatArray, FloatArray, BoolArray | None], FloatArray]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
    "pairwise_accuracy": _accuracy,
}


def _pair_differences(table: FloatArray) -> FloatArray:
    left, right = np.triu_indices(table.shape[1], 1)
    return np.nan_to_num(table[:, left] - table[:, right])


def _one_sided(table: FloatArray, *, resamples: int, rng: np.random.Generator) -> FloatArray:
    return _upper_tail(_pair_differences(table), resamples=resamples, rng=rng)


def _upper_tail(differences: FloatArray, *, resamples: int, rng: np.random.Generator) -> FloatArray:
    """P(sum of sign-flipped differences > the observed sum), ties half, of each column of (n_items, n_columns)."""
    n = len(differences)
    observed = differences.sum(axis=0)
    slack = 1e-9 * np.maximum(DEGENERATE, np.abs(differences).sum(axis=0))
    is_exact = n < 60 and 2**n <= resamples
    above = np.zeros(differences.shape[1])
    for signs in _flips(n, resamples, is_exact, rng):
        flipped = signs @ differences
        above += np.sum(flipped > observed + slack, axis=0) + np.sum(np.abs(flipped - observed) <= slack, axis=0) / 2
    if is_exact:
        return np.asarray(above / 2**n)
    # The observed assignment is one of those that might have been drawn, and ties with itself.
    return np.asarray((0.5 + above) / (1 + resamples))


def _flips(n: int, resamples: int, is_exact: bool, rng: np.random.Generator) -> Iterator[FloatArray]:
    total = 2**n if is_exact else resamples
    for start in range(0, total, 1024):
        size = min(1024, total - start)
        if is_exact:
            bits = (np.arange(start, start + size)[:, None] >> np.arange(n)) & 1
        else:
            bits = rng.integers(0, 2, (size, n), dtype=np.int8)
        yield np.asarray(2 * bits.astype(np.float64) - 1)


def _best_threshold(apart: FloatArray, agrees: BoolArray, tied: BoolArray, weights: FloatArray) -> float:
    """The least threshold with the highest weighted number of right calls: 0, or one of the distances."""
    order = np.argsort(apart, kind="stable")
    # Once the threshold reaches a pair's distance, a human tie becomes right and a concordant pair wrong.
    gain = np.cumsum((weights * (tied.astype(np.float64) - agrees))[order])
    distances = apart[order]
    last = np.append(distances[1:] > distances[:-1], True)
    at, reached = distances[last], gain[last]
    if at[0] > 0:
        at, reached = np.append(0.0, at), np.append(0.0, reached)
    return float(at[np.argmax(reached > reached.max() - 1e-12)])


def _swapped_systems(
    human: FloatArray,
    one: FloatArray,
    other: FloatArray,
    statistic: str,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float | None, FloatArray]:
    counts = np.sum(~np.isnan(human), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        target = np.nansum(_unit(human), axis=0) / counts
        first, second = np.nansum(one, axis=0), np.nansum(other, axis=0)
        change = np.nan_to_num(other - one)
        observed = [_compare(statistic, target[None], (total / counts)[None])[0] for total in (first, second)]
        if not np.isfinite(observed).all():
            return None, np.empty(0)
        draws = []
        for signs in _flips(len(human), resamples, False, rng):
            moved = ((signs + 1) / 2) @ change
            wide = np.broadcast_to(target, moved.shape)
            draws.append(
                _compare(statistic, wide, (first + moved) / counts)
                - _compare(statistic, wide, (second - moved) / counts)
            )
    return float(observed[0] - observed[1]), np.concatenate(draws)


def _swapped_taus(
    human: FloatArray,
    one: FloatArray,
    other: FloatArray,
    statistic: str,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float | None, FloatArray]:
    taus = [_Pairs.of(_Tables.of(human, table), "item").taus() for table in (one, other)]
    apart = taus[0] - taus[1]
    apart = apart[np.isfinite(apart)]
    if len(apart) == 0:
        return None, np.empty(0)
    draws = [signs @ apart / len(apart) for signs in _flips(len(apart), resamples, False, rng)]
    return float(apart.mean()), np.concatenate(draws)
