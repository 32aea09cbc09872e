"""Comparison of metrics: which agrees better with people, with noise removed, and the table of systems."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import clusters
from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    matrix,
    validate_level,
)
from analysis.stats.metrics import (
    ITEMS,
    MIN_SYSTEMS,
    STATISTICS,
    OutputPairs,
    ScoreTables,
    agreement_statistic_by_row,
    divide_by_max_abs,
    pairwise_accuracy,
    sign_flip_blocks,
    system_level_correlations,
    too_few_systems_estimate,
)
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record

# Comparison of two metrics.


def compare_metrics(
    human: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    statistic: str = "pearson",
    resamples: int = 999,
    item_groups: npt.ArrayLike | None = None,
) -> Estimate:
    """Estimate the difference of two metrics' agreement with people, first - second, and test by permutation that it is 0.

    The tables, of shape (n_items, K), are scores of people and of both metrics; a cell without one of them is left out.
    `statistic` is "pearson", "spearman", "kendall", "pairwise_accuracy" or "segment_tau". Both metrics are standardised
    over all cells, and each resample exchanges them on every item, or on every one of `item_groups` such as documents,
    with probability 1/2; two-sided p = (1 + number as extreme) / (resamples + 1). This is the permutation over inputs
    of Deutsch, Dror and Roth 2021, A statistical analysis of summarization evaluation metrics using resampling methods.
    The status is `zero_variance` if the metrics agree equally in every resample.

    >>> rng = np.random.default_rng(0)
    >>> human = rng.normal(np.arange(6) / 4, 1, (200, 6))
    >>> good, poor = human + rng.normal(0, 0.5, (200, 6)), rng.normal(0, 1, (200, 6))
    >>> result = compare_metrics(human, good, poor, rng=rng)
    >>> result.estimate > 0, result.pvalue < 0.05
    (True, True)
    """
    if statistic not in (*STATISTICS, "segment_tau"):
        raise ValueError(f"statistic: {statistic!r} is not one of {', '.join(STATISTICS)}, segment_tau")
    human_scores, first_scores, second_scores = matrix(human, "human"), matrix(first, "first"), matrix(second, "second")
    for name, table in (("first", first_scores), ("second", second_scores)):
        if table.shape != human_scores.shape:
            raise ValueError(f"{name}: shape {table.shape} where human has {human_scores.shape}")
    missing = np.isnan(human_scores) | np.isnan(first_scores) | np.isnan(second_scores)
    human_scores, first_scores, second_scores = (
        np.where(missing, np.nan, table) for table in (human_scores, first_scores, second_scores)
    )
    tables = ScoreTables.from_arrays(human_scores, first_scores, item_groups)
    common: dict[str, Any] = {
        "analysis": "metrics.compare",
        "estimand": f"difference of {statistic} with human scores, first metric - second metric",
        "unit": "prompt",
        "n": tables.n_items,
        "n_rows": tables.n_cells,
        "settings": {"population": ITEMS, "statistic": statistic, "resamples": resamples},
    }
    minimum = MIN_SYSTEMS if statistic in ("pearson", "spearman", "kendall") else 2
    edge = too_few_systems_estimate(tables, minimum, common)
    if edge is not None:
        return edge
    if (
        np.nanstd(divide_by_max_abs(first_scores)) < MIN_SPREAD
        or np.nanstd(divide_by_max_abs(second_scores)) < MIN_SPREAD
    ):
        return Estimate(status="not_identified", reason="a metric is constant", **common)
    first_scores, second_scores = (
        (table - np.nanmean(table)) / np.nanstd(table) for table in (first_scores, second_scores)
    )
    observed, draws = (_swapped_taus if statistic == "segment_tau" else _swapped_systems)(
        human_scores, first_scores, second_scores, item_groups, statistic, resamples, rng
    )
    if observed is None:
        return Estimate(status="not_identified", reason="the scores of the systems are equal", **common)
    defined = draws[np.isfinite(draws)]
    if len(defined) == 0 or float(np.max(np.abs(defined))) < MIN_SPREAD:
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


def _swapped_systems(
    human: FloatArray,
    first_scores: FloatArray,
    second_scores: FloatArray,
    item_groups: npt.ArrayLike | None,
    statistic: str,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float | None, FloatArray]:
    counts = np.sum(~np.isnan(human), axis=0)
    groups, n_groups = _codes(item_groups, np.ones(len(human), dtype=np.bool_))
    with np.errstate(invalid="ignore", divide="ignore"):
        target = np.nansum(divide_by_max_abs(human), axis=0) / counts
        first, second = np.nansum(first_scores, axis=0), np.nansum(second_scores, axis=0)
        change = np.nan_to_num(second_scores - first_scores)
        observed = [
            agreement_statistic_by_row(statistic, target[None], (total / counts)[None])[0] for total in (first, second)
        ]
        if not np.isfinite(observed).all():
            return None, np.empty(0)
        draws = []
        for signs in sign_flip_blocks(n_groups, resamples, False, rng):
            moved = ((signs[:, groups] + 1) / 2) @ change
            wide = np.broadcast_to(target, moved.shape)
            draws.append(
                agreement_statistic_by_row(statistic, wide, (first + moved) / counts)
                - agreement_statistic_by_row(statistic, wide, (second - moved) / counts)
            )
    return float(observed[0] - observed[1]), np.concatenate(draws)


def _swapped_taus(
    human: FloatArray,
    first_scores: FloatArray,
    second_scores: FloatArray,
    item_groups: npt.ArrayLike | None,
    statistic: str,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float | None, FloatArray]:
    taus = [
        OutputPairs.from_tables(ScoreTables.from_arrays(human, table), "item").taus_by_group()
        for table in (first_scores, second_scores)
    ]
    apart = taus[0] - taus[1]
    # The taus are those of the items that people and a metric scored.
    is_scored = (~np.isnan(human)).any(axis=1)
    is_used = np.isfinite(apart)
    groups, n_groups = _codes(None if item_groups is None else np.asarray(item_groups)[is_scored], is_used)
    apart = apart[is_used]
    if len(apart) == 0:
        return None, np.empty(0)
    blocks = sign_flip_blocks(n_groups, resamples, False, rng)
    draws = [signs[:, groups] @ apart / len(apart) for signs in blocks]
    return float(apart.mean()), np.concatenate(draws)


def _codes(item_groups: npt.ArrayLike | None, is_used: BoolArray) -> tuple[IntArray, int]:
    """Return the codes of what is exchanged together: the used items, or groups of them."""
    n = int(is_used.sum())
    return (np.arange(n), n) if item_groups is None else label_codes(np.asarray(item_groups)[is_used], "item_groups", n)


# Correlation of the systems' true mean scores, without the noise of few items.


# With fewer items the variance of a correlation is not estimated.
MIN_ITEMS = 10


def noise_corrected_correlation(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    level: float = 0.95,
    item_groups: npt.ArrayLike | None = None,
) -> Estimate:
    """Estimate Pearson's correlation that the systems' mean scores would have over all items like these, with an interval.

    Scores have the shape (n_items, K), NaN if missing, and an item without a score of each system is left out; a metric
    of shape (K,) is one of the whole output, which has no noise. With scores centred on each item's mean over systems,
    A_xy is the mean over pairs of different items i, j of sum_k x_ik y_jk; pairs are of different `item_groups` if
    items have common noise, such as those of one document. A_xy estimates the sum of products of true means without
    bias, because noise of different items is independent; the noise of one item may be correlated between both sides.
    The correlation is A_xy / s with s = sqrt(A_xx A_yy), corrected by the jackknife (Spearman 1904, The proof and
    measurement of association between two things). Fieller's interval (1954, Some problems in interval estimation) has
    all rho with (A_xy - rho s)^2 <= t^2 var(A_xy - rho s), with the jackknife variance over items and t on n - 1; items
    are the only sample, and the people are taken as given. The estimate is cut at -1 and 1, but `detail["uncut"]` can
    be beyond; `n` counts the items used, `detail["n_incomplete"]` the others, and `detail["human_reliability"]` and
    `detail["metric_reliability"]` are the shares of the variance of observed means that are no noise. The status is
    `not_identified` if the systems cannot be distinguished from noise, because no correlation is excluded, and
    `not_applicable` with fewer than four systems or ten items. In simulations of 400 studies in each cell of 5 and 11
    systems, 30, 100 and 400 items, true correlations 0, .6 and 1, and noise that both sides share or not, .92 to 1 of
    the intervals of level .95 hold the truth with 100 and 400 items; with 30 items that are mostly noise, .04 to .14 of
    the studies have an interval, and .81 to 1 of these hold it. In 300 studies of 6 systems and 30 groups of six items
    with common noise, .95 of the intervals over groups hold the truth, and .73 of those over items.

    >>> rng = np.random.default_rng(0)
    >>> truth = np.linspace(0, 1, 8)
    >>> human, metric = truth + rng.normal(0, 1.5, (300, 8)), truth + rng.normal(0, 1.5, (300, 8))
    >>> found = noise_corrected_correlation(human, metric)
    >>> found.interval.low < 1.0 <= found.interval.high, found.detail["observed"] < found.estimate
    (True, True)
    """
    validate_level(level)
    tables = ScoreTables.from_arrays(human, metric, item_groups)
    is_complete = ~np.isnan(tables.human).any(axis=1)
    x = divide_by_max_abs(tables.human[is_complete])
    scores = tables.metric if tables.fixed is None else np.broadcast_to(tables.fixed, tables.human.shape)
    y = divide_by_max_abs(scores[is_complete])
    n = len(x)
    common: dict[str, Any] = {
        "analysis": "metric_comparison.noise_corrected_correlation",
        "estimand": "Pearson's correlation of systems' mean scores over all items like these",
        "unit": "prompt",
        "n": n,
        "n_rows": int(x.size),
        "settings": {"level": level, "population": ITEMS},
    }
    edge = too_few_systems_estimate(tables, MIN_SYSTEMS, common)
    if edge is not None:
        return edge
    detail: dict[str, Any] = {"n_systems": tables.n_systems, "n_incomplete": int(np.sum(~is_complete))}
    groups, n_groups = label_codes(tables.groups[is_complete], "item_groups", n)
    if n_groups < n:
        detail["n_groups"] = n_groups
        if n_groups < MIN_ITEMS:
            reason = f"the items with scores of all systems are of {n_groups} groups; at least {MIN_ITEMS} are needed"
            return Estimate(status="not_applicable", reason=reason, detail=detail, **common)
    if n < MIN_ITEMS:
        reason = f"{n} items have scores of all systems; at least {MIN_ITEMS} are needed"
        return Estimate(status="not_applicable", reason=reason, detail=detail, **common)
    x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    (xx, xx_without), (yy, yy_without), (xy, xy_without) = (
        _products(*sides, groups, n_groups) for sides in ((x, x), (y, y), (x, y))
    )
    observed = [float(np.sum(side.mean(axis=0) ** 2)) for side in (x, y)]
    if min(observed) < MIN_SPREAD**2:
        return Estimate(status="not_identified", reason="the scores of the systems are equal", detail=detail, **common)
    for name, value, total in (("human", xx, observed[0]), ("metric", yy, observed[1])):
        detail[f"{name}_reliability"] = max(0.0, value / total)
    detail["observed"] = float(np.sum(x.mean(axis=0) * y.mean(axis=0)) / math.sqrt(observed[0] * observed[1]))
    reason = "the systems cannot be distinguished from noise; no correlation is excluded"
    if min(xx, yy) <= 0 or min(float(xx_without.min()), float(yy_without.min())) <= 0:
        return Estimate(status="not_identified", reason=reason, detail=detail, **common)
    scale_without = np.sqrt(xx_without * yy_without)
    scale = n_groups * math.sqrt(xx * yy) - (n_groups - 1) * float(scale_without.mean())
    ends = None if scale <= 0 else _fieller(xy, xy_without, scale, scale_without, level)
    if ends is None:
        return Estimate(status="not_identified", reason=reason, detail=detail, **common)
    low, high = (min(1.0, max(-1.0, end)) for end in ends)
    detail["uncut"] = xy / scale
    interval = Interval(level, low, high, "jackknife_fieller", clipped=(low, high) != ends)
    return Estimate(estimate=min(1.0, max(-1.0, xy / scale)), interval=interval, detail=detail, **common)


def _products(first: FloatArray, second: FloatArray, groups: IntArray, n_groups: int) -> tuple[float, FloatArray]:
    """Return the mean over pairs of items of different groups of the products of scores, and that without each group."""
    n, sizes = len(first), np.bincount(groups, minlength=n_groups)
    first, second = (np.stack([group_sums(groups, k, n_groups) for k in side.T], axis=1) for side in (first, second))
    n_same = int(np.sum(sizes**2))
    own = np.sum(first * second, axis=1)
    of_first, of_second = first.sum(axis=0), second.sum(axis=0)
    value = float(of_first @ of_second - own.sum()) / (n**2 - n_same)
    without = np.sum((of_first - first) * (of_second - second), axis=1) - (own.sum() - own)
    return value, np.asarray(without / ((n - sizes) ** 2 - (n_same - sizes**2)))


def _fieller(
    top: float, top_without: FloatArray, bottom: float, bottom_without: FloatArray, level: float
) -> tuple[float, float] | None:
    """Return Fieller's interval of top / bottom, or None if it is unbounded."""
    n = len(top_without)
    t = float(special.stdtrit(n - 1, (1 + level) / 2))
    moves = np.stack([top_without - top_without.mean(), bottom_without - bottom_without.mean()])
    spread = t**2 * (n - 1) / n * (moves @ moves.T)
    a = bottom**2 - float(spread[1, 1])
    if a <= 0:
        return None
    b, c = top * bottom - float(spread[0, 1]), top**2 - float(spread[0, 0])
    half = math.sqrt(max(0.0, b**2 - a * c))
    return (b - half) / a, (b + half) / a


# The table of systems with their human score and their metrics.


@dataclass(frozen=True, slots=True)
class SystemScores(Record):
    """A row: the system's column, its human score, its metrics by name, and which of these no other system exceeds."""

    system: int
    human: Estimate
    metrics: Mapping[str, Estimate]
    best: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetricAgreement(Record):
    """A metric's agreement with people over the systems of the table; `corrected` is without the noise of few items."""

    metric: str
    pearson: Estimate
    spearman: Estimate
    kendall: Estimate
    corrected: Estimate
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class MetricTable(Record):
    """Systems from the best to the worst human score (those without one last), and each metric's agreement with people."""

    rows: tuple[SystemScores, ...]
    agreements: tuple[MetricAgreement, ...]


def metric_table(
    human: npt.ArrayLike,
    metrics: Mapping[str, npt.ArrayLike],
    *,
    rng: np.random.Generator,
    human_scores: Sequence[Estimate] | None = None,
    level: float = 0.95,
    resamples: int = 999,
    item_groups: npt.ArrayLike | None = None,
) -> MetricTable:
    """Return each system's mean human score beside its metrics, and the metrics' agreement with people over systems.

    `human` (n_items, K) has NaN for missing. A metric is (n_items, K), or (K,) for one of all outputs together, whose
    scores have no interval; higher is better, and a metric called "human" raises ValueError. `human_scores` are the
    systems' human scores from an analysis with people as a sample. By default they are means over items, whose
    intervals are over items only. A system's mean is over its own scores, and its interval is that of
    `clusters.clustered_mean` over items. `item_groups` labels what is drawn again in place of items, such as the
    document of each. The agreement of a metric is over the systems that it scored: a reference that the metric compares
    with has no score of its own. With fewer than four systems the correlations are `not_applicable`. The source is
    Khashabi et al. 2022, Genie, Table 3 (scores of systems by people and by metrics, the best of each column marked);
    the paper leaves correlations to future work, because it has too few systems.

    >>> human = [[0.1, 0.4, 0.6, 0.9], [0.2, 0.3, 0.7, 0.8], [0.0, 0.5, 0.4, 1.0]]
    >>> table = metric_table(human, {"BLEU": [3, 5, 4, 9]}, rng=np.random.default_rng(0), resamples=99)
    >>> [(row.system, round(row.human.estimate, 2), row.metrics["BLEU"].estimate, row.best) for row in table.rows][:2]
    [(3, 0.9, 9.0, ('human', 'BLEU')), (2, 0.57, 4.0, ())]
    >>> round(table.agreements[0].pearson.estimate, 3)
    0.889
    """
    validate_level(level)
    scores = matrix(human, "human")
    k = scores.shape[1]
    if "human" in metrics:
        raise ValueError("metrics: 'human' is the name of the people's column")
    if human_scores is not None and len(human_scores) != k:
        raise ValueError(f"human_scores: {len(human_scores)} estimates for {k} systems")
    options: dict[str, Any] = {"level": level, "item_groups": item_groups}
    columns: dict[str, Sequence[Estimate]] = {
        "human": _means(scores, "human", **options) if human_scores is None else human_scores
    }
    agreements = []
    for name, values in metrics.items():
        # Refuse other shapes before any number is computed.
        tables = ScoreTables.from_arrays(scores, values)
        metric = np.asarray(values, dtype=np.float64)
        is_scored = ~np.isnan(np.atleast_2d(metric)).all(axis=0)
        both = scores[:, is_scored], metric[..., is_scored]
        if tables.fixed is None:
            columns[name] = _means(matrix(values, name), name, **options)
        else:
            columns[name] = [_of_all_outputs(float(value), name) for value in tables.fixed]
        common: dict[str, Any] = {"rng": rng, "resamples": resamples, **options}
        agreements.append(
            MetricAgreement(
                name,
                **system_level_correlations(*both, **common),
                corrected=noise_corrected_correlation(*both, **options),
                accuracy=pairwise_accuracy(*both, **common),
            )
        )
    best = {
        name: max((one.estimate for one in column if one.estimate is not None), default=None)
        for name, column in columns.items()
    }
    rows = [
        SystemScores(
            system,
            columns["human"][system],
            {name: columns[name][system] for name in metrics},
            tuple(
                name
                for name, column in columns.items()
                if column[system].estimate is not None and column[system].estimate == best[name]
            ),
        )
        for system in range(k)
    ]
    rows.sort(key=lambda row: -np.inf if row.human.estimate is None else row.human.estimate, reverse=True)
    return MetricTable(tuple(rows), tuple(agreements))


def _means(table: FloatArray, name: str, *, level: float, item_groups: npt.ArrayLike | None) -> list[Estimate]:
    found = []
    for column in table.T:
        mean = clusters.clustered_mean(
            column,
            np.arange(len(column)) if item_groups is None else item_groups,
            level=level,
            analysis="metrics.table",
            estimand=f"mean score of the system, {name}",
            unit="prompt",
        )
        found.append(replace(mean, settings={**mean.settings, "population": ITEMS}))
    return found


def _of_all_outputs(value: float, name: str) -> Estimate:
    common: dict[str, Any] = {
        "analysis": "metrics.table",
        "estimand": f"score of all outputs of the system together, {name}",
        "unit": "score of all outputs",
    }
    if np.isnan(value):
        return Estimate(status="no_data", reason="the metric has no score of this system", n=0, **common)
    return Estimate(estimate=value, n=1, **common)
