"""Agreement of an automatic metric (or a model as judge) with people: on systems, on items, and between metrics.

Human and metric scores are tables of items by systems, higher is better, NaN is missing. A cell without one of
them is left out of both. Intervals resample items and average both sides again. Human scores are taken as given:
with few annotators, the agreement is with these annotators.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    matrix,
    validate_level,
    validate_non_negative,
    vector,
)
from analysis.stats.bootstrap import multinomial_weights, percentile_interval, ratio_draws
from analysis.stats.cluster_variances import TOO_FEW_ITEMS
from analysis.stats.results import Estimate, Interval, ResultWarning

# Permutations of items' signs.


def system_pair_differences_or_zero(table: FloatArray) -> FloatArray:
    """Return the difference of every two systems on each item (n_items, n_pairs); 0 if one is missing."""
    left, right = np.triu_indices(table.shape[1], 1)
    return np.nan_to_num(table[:, left] - table[:, right])


def mask_of_scored_pairs_by_item(table: FloatArray) -> BoolArray:
    """Return whether every two systems both have a score on each item, shape (n_items, n_pairs)."""
    left, right = np.triu_indices(table.shape[1], 1)
    return np.asarray(~np.isnan(table[:, left] + table[:, right]))


def sign_flip_upper_tail_pvalues(differences: FloatArray, *, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return P(sum of sign-flipped differences > the observed sum) of each column; ties count half."""
    n = len(differences)
    observed = differences.sum(axis=0)
    slack = 1e-9 * np.maximum(MIN_SPREAD, np.abs(differences).sum(axis=0))
    is_exact = n < 60 and 2**n <= resamples
    above = np.zeros(differences.shape[1])
    for signs in sign_flip_blocks(n, resamples, is_exact, rng):
        flipped = signs @ differences
        above += np.sum(flipped > observed + slack, axis=0) + np.sum(np.abs(flipped - observed) <= slack, axis=0) / 2
    if is_exact:
        return np.asarray(above / 2**n)
    # The observed assignment counts as one of the draws, as a tie with itself.
    return np.asarray((0.5 + above) / (1 + resamples))


def sign_flip_blocks(n: int, resamples: int, is_exact: bool, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield signs of the items in blocks of shape (up to 1,024, n): all 2^n of them, or random ones."""
    total = 2**n if is_exact else resamples
    for start in range(0, total, 1024):
        size = min(1024, total - start)
        if is_exact:
            bits = (np.arange(start, start + size)[:, None] >> np.arange(n)) & 1
        else:
            bits = rng.integers(0, 2, (size, n), dtype=np.int8)
        yield np.asarray(2 * bits.astype(np.float64) - 1)


# Scores of people and of a metric by systems and by pairs of outputs.


GROUPINGS = ("item", "none")
MAX_PAIRS = 5_000_000
# What all these numbers are about: the people behind the human scores are no sample, whether they are known or not.
ITEMS = "items, for exactly these people"


@dataclass(frozen=True, slots=True)
class ScoreTables:
    """Scores of both sides with the same cells missing, without items of which all cells are left out.

    `fixed` (K,) has the scores of a metric without items. `groups` (n_items,) are the codes of what is drawn again: the items, or
    groups of items.
    """

    human: FloatArray
    metric: FloatArray
    fixed: FloatArray | None
    groups: IntArray

    @property
    def n_items(self) -> int:
        return int(self.human.shape[0])

    @property
    def n_groups(self) -> int:
        return int(self.groups.max(initial=-1)) + 1

    @property
    def has_enough_groups(self) -> bool:
        """Return whether drawing again shows a spread: two items, or five groups of items."""
        return self.n_groups > 1 and (self.n_groups == self.n_items or self.n_groups >= TOO_FEW_ITEMS)

    def sums_by_group(self, rows: FloatArray) -> FloatArray:
        """Return the sums over the items of each group of a table, shape (n_groups, q)."""
        sums = [group_sums(self.groups, column, self.n_groups) for column in rows.T]
        return np.stack(sums, axis=1) if sums else rows[: self.n_groups]

    @property
    def n_systems(self) -> int:
        return int(self.human.shape[1])

    @property
    def n_cells(self) -> int:
        return int(np.sum(~np.isnan(self.human)))

    @classmethod
    def from_arrays(
        cls, human: npt.ArrayLike, metric: npt.ArrayLike, item_groups: npt.ArrayLike | None = None
    ) -> "ScoreTables":
        human_scores = matrix(human, "human")
        if np.ndim(np.asarray(metric, dtype=np.float64)) == 1:
            fixed = vector(metric, "metric")
            if len(fixed) != human_scores.shape[1]:
                raise ValueError(f"metric: {len(fixed)} scores for {human_scores.shape[1]} systems")
            is_used = (~np.isnan(human_scores)).any(axis=1)
            groups = _group_codes(item_groups, is_used)
            return cls(human_scores[is_used], human_scores[is_used], fixed, groups)
        other = matrix(metric, "metric")
        if other.shape != human_scores.shape:
            raise ValueError(f"metric: shape {other.shape} where human has {human_scores.shape}")
        missing = np.isnan(human_scores) | np.isnan(other)
        is_used = ~missing.all(axis=1)
        return cls(
            np.where(missing, np.nan, human_scores)[is_used],
            np.where(missing, np.nan, other)[is_used],
            None,
            _group_codes(item_groups, is_used),
        )


def _group_codes(item_groups: npt.ArrayLike | None, is_used: npt.ArrayLike) -> IntArray:
    """Return the codes of the used items, or of their groups."""
    used = np.flatnonzero(is_used)
    if item_groups is None:
        return np.arange(len(used))
    return label_codes(np.asarray(item_groups)[used], "item_groups", len(used))[0]


@dataclass(frozen=True, slots=True)
class OutputPairs:
    """All pairs of outputs within a group: differences on both sides and the number of the group; shapes (n_pairs,)."""

    human: FloatArray
    metric: FloatArray
    group: IntArray
    n_groups: int

    @classmethod
    def from_tables(cls, tables: ScoreTables, grouping: str) -> "OutputPairs":
        if grouping not in GROUPINGS:
            raise ValueError(f"grouping: {grouping!r} is not one of {', '.join(GROUPINGS)}")
        if tables.fixed is not None:
            raise ValueError("metric: scores of items are needed, not of whole systems")
        human, metric = tables.human, tables.metric
        if grouping == "none":
            is_observed = ~np.isnan(human)
            human, metric = human[is_observed][None, :], metric[is_observed][None, :]
        n, k = human.shape
        if n * k * (k - 1) // 2 > MAX_PAIRS:
            raise ValueError(f"grouping: {n * k * (k - 1) // 2} pairs are more than {MAX_PAIRS}; group by item")
        left, right = np.triu_indices(k, 1)
        first, second = human[:, left] - human[:, right], metric[:, left] - metric[:, right]
        is_pair = ~np.isnan(first)
        group = np.broadcast_to(np.arange(n)[:, None], first.shape)[is_pair]
        return cls(first[is_pair], second[is_pair], np.asarray(group, dtype=np.int64), n)

    def taus_by_group(self) -> FloatArray:
        """Return tau-b of each group; NaN if a side has no two different scores."""
        human_signs, metric_signs = np.sign(self.human), np.sign(self.metric)
        together, of_human, of_metric = (
            np.bincount(self.group, values, self.n_groups)
            for values in (human_signs * metric_signs, human_signs**2, metric_signs**2)
        )
        with np.errstate(invalid="ignore"):
            return np.asarray(together / np.sqrt(of_human * of_metric))


def too_few_systems_estimate(tables: ScoreTables, minimum: int, common: dict[str, Any]) -> Estimate | None:
    """Return the estimate without a value if there are no scores or fewer than `minimum` systems, else None."""
    if tables.n_cells == 0:
        return Estimate(status="no_data", reason="no output was scored by both sides", **common)
    if tables.n_systems < minimum:
        reason = f"{tables.n_systems} systems are too few for a number; look at the scatter plot"
        return Estimate(status="not_applicable", reason=reason, detail={"n_systems": tables.n_systems}, **common)
    return None


# Agreement statistics of systems' scores, for many resamples at once.


BLOCK = 128


def system_means(table: FloatArray) -> FloatArray:
    """Return the mean of each system's scores; missing ones are left out."""
    return np.asarray(weighted_system_means(table, np.ones((1, len(table))))[0])


def weighted_system_means(table: FloatArray, weights: FloatArray) -> FloatArray:
    """Return `system_means` of resampled items; `weights` (resamples, n_items) count the draws of each."""
    is_observed = ~np.isnan(table)
    return ratio_draws(np.nan_to_num(table), is_observed.astype(np.float64), iter([weights]))


def agreement_statistic_by_row(
    statistic: str, first: FloatArray, second: FloatArray, pair_mask: BoolArray | None = None
) -> FloatArray:
    """Return the statistic of each row of two (B, K) arrays; NaN if it is undefined."""
    results = [
        _BY_NAME[statistic](first[start : start + BLOCK], second[start : start + BLOCK], pair_mask)
        for start in range(0, len(first), BLOCK)
    ]
    return np.concatenate(results)


def _pearson(first: FloatArray, second: FloatArray, _: BoolArray | None = None) -> FloatArray:
    centred = [table - table.mean(axis=1, keepdims=True) for table in (first, second)]
    spreads = [np.sqrt(np.sum(table**2, axis=1)) for table in centred]
    varies = (spreads[0] > MIN_SPREAD * _scale(first)[:, 0]) & (spreads[1] > MIN_SPREAD * _scale(second)[:, 0])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.sum(centred[0] * centred[1], axis=1) / (spreads[0] * spreads[1])
    return np.where(varies, np.clip(correlation, -1.0, 1.0), np.nan)


def _spearman(first: FloatArray, second: FloatArray, _: BoolArray | None = None) -> FloatArray:
    # The mid-rank of a value is half the sum of the signs of its distances to all others, up to a constant.
    return _pearson(
        *(
            _sign(table[:, :, None] - table[:, None, :], _scale(table)[:, :, None]).sum(axis=2)
            for table in (first, second)
        )
    )


def _kendall(first: FloatArray, second: FloatArray, _: BoolArray | None = None) -> FloatArray:
    a, b = _signs(first), _signs(second)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sum(a * b, axis=1) / np.sqrt(np.sum(a**2, axis=1) * np.sum(b**2, axis=1)))


def _accuracy(first: FloatArray, second: FloatArray, chosen: BoolArray | None = None) -> FloatArray:
    a, b = _signs(first), _signs(second)
    if chosen is not None:
        a, b = a[:, chosen], b[:, chosen]
    undefined = np.isnan(a).any(axis=1) | np.isnan(b).any(axis=1)
    return np.where(undefined, np.nan, np.mean(a == b, axis=1))


def _signs(scores: FloatArray) -> FloatArray:
    left, right = np.triu_indices(scores.shape[1], 1)
    return _sign(scores[:, left] - scores[:, right], _scale(scores))


def _sign(apart: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the sign of differences of means. Equal scores can differ in the last digit, which counts as a tie."""
    return np.asarray(np.sign(np.where(np.abs(apart) < MIN_SPREAD * scale, 0.0, apart)))


def _scale(scores: FloatArray) -> FloatArray:
    largest: FloatArray = np.max(np.abs(np.nan_to_num(scores)), axis=1, keepdims=True, initial=0.0)
    return np.maximum(1.0, largest)


def divide_by_max_abs(table: FloatArray) -> FloatArray:
    """Return the scores divided by the largest absolute value."""
    largest = float(np.max(np.abs(np.nan_to_num(table)), initial=0.0))
    return table / largest if largest > 0 else table


_BY_NAME: dict[str, Callable[[FloatArray, FloatArray, BoolArray | None], FloatArray]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
    "pairwise_accuracy": _accuracy,
}


# Agreement on systems.


# With fewer systems a correlation is not estimated: it would be a line through two or three points.
MIN_SYSTEMS = 4
STATISTICS = ("pearson", "spearman", "kendall", "pairwise_accuracy")
SENSITIVITY_SIGNIFICANCE = 0.05


def system_level_correlations(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 999,
    item_groups: npt.ArrayLike | None = None,
) -> dict[str, Estimate]:
    """Pearson's, Spearman's and Kendall's (tau-b) correlation of the systems' mean scores.

    Parameters
    ----------
    human : array_like, shape (n_items, K)
        Human scores; NaN is missing.
    metric : array_like, shape (n_items, K) or (K,)
        Metric scores. (K,) is for a metric of the whole output; it is the same in each resample.
    rng : numpy.random.Generator
        Source of the random draws.
    level : float, default 0.95
        Share of the resamples within `detail["item_range"]`, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    item_groups : array_like, shape (n_items,), optional
        Labels of what is drawn again in place of items, such as the document of each. The items if None.

    Returns
    -------
    dict[str, Estimate]
        The correlations of the observed means, by name; `n` counts items. There is no interval (see the notes);
        `detail["item_range"]` has the range of the middle `level` of resamples of the items. With fewer than four
        systems: `not_applicable` (use a scatter plot). Constant scores: `not_identified`.

    Notes
    -----
    The noise of means over few items pulls a correlation towards 0, and a resample of the items adds the same noise again.
    So a percentile interval lies too low for the correlation of the systems' true means: with 30 items it holds in .14
    of studies (Pearson), with 200 in .68, at a level of .95. The warning `attenuated_by_item_noise` says so. More items
    help; correlations of studies with different numbers of items cannot be compared. `noise_corrected_correlation`
    estimates the correlation of the true means, with an interval that covers it.

    Examples
    --------
    >>> human = [[0.1, 0.4, 0.6, 0.9], [0.2, 0.3, 0.7, 0.8], [0.0, 0.5, 0.4, 1.0]]
    >>> result = system_level_correlations(human, [3, 5, 4, 9], rng=np.random.default_rng(0), resamples=99)
    >>> round(result["pearson"].estimate, 3), round(result["kendall"].estimate, 3)
    (0.889, 0.667)
    """
    tables = ScoreTables.from_arrays(human, metric, item_groups)
    return {
        name: _of_systems(tables, name, minimum=MIN_SYSTEMS, level=level, resamples=resamples, rng=rng)
        for name in ("pearson", "spearman", "kendall")
    }


def pairwise_accuracy(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = 999,
    item_groups: npt.ArrayLike | None = None,
) -> Estimate:
    """Share of pairs of systems that the metric orders as people do; a tie agrees only with a tie.

    Parameters
    ----------
    human, metric : array_like
        As in `system_level_correlations`.
    rng : numpy.random.Generator
        Source of the random draws.
    level : float, default 0.95
        Share of the resamples within `detail["item_range"]`, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    item_groups : array_like, shape (n_items,), optional
        Labels of what is drawn again in place of items, such as the document of each. The items if None.

    Returns
    -------
    Estimate
        The accuracy of the observed means, without an interval, as in `system_level_correlations`; `n` counts items,
        `detail["n_pairs"]` pairs. The sensitivity uses only pairs whose human differences are significant at .05 by
        sign flips of the items' differences.

    Raises
    ------
    ValueError
        If the shapes differ.

    References
    ----------
    Kocmi et al. 2021, To ship or not to ship.

    Examples
    --------
    >>> human = [[0.1, 0.4, 0.6], [0.2, 0.3, 0.7], [0.0, 0.5, 0.4]]
    >>> result = pairwise_accuracy(human, [3, 5, 4], rng=np.random.default_rng(0), resamples=99)
    >>> round(result.estimate, 3), result.detail["n_pairs"]
    (0.667, 3)
    """
    tables = ScoreTables.from_arrays(human, metric, item_groups)
    differences = tables.sums_by_group(system_pair_differences_or_zero(tables.human))
    upper = sign_flip_upper_tail_pvalues(differences, resamples=resamples, rng=rng)
    clear = 2 * np.minimum(upper, 1 - upper) < SENSITIVITY_SIGNIFICANCE
    common: dict[str, Any] = {"minimum": 2, "level": level, "resamples": resamples, "rng": rng}
    restricted = _of_systems(tables, "pairwise_accuracy", chosen=clear, **common)
    return _of_systems(tables, "pairwise_accuracy", sensitivity=(restricted,), **common)


def soft_pairwise_accuracy(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = 999,
    item_groups: npt.ArrayLike | None = None,
) -> Estimate:
    """Soft pairwise accuracy: 1 - mean |p_human - p_metric| over pairs of systems.

    Parameters
    ----------
    human, metric : array_like, shape (n_items, K)
        Scores; NaN is missing.
    rng : numpy.random.Generator
        Source of the random draws.
    resamples : int, default 999
        Number of resamples.
    item_groups : array_like, shape (n_items,), optional
        Labels of what is drawn again in place of items, such as the document of each. The items if None.

    Returns
    -------
    Estimate
        The accuracy, over the pairs that both sides scored on the same items. `detail["n_pairs"]` counts them,
        `detail["n_unscored_pairs"]` the others. Without such a pair the status is `no_data`.

    Raises
    ------
    ValueError
        If `metric` has no scores of items.

    Notes
    -----
    p is the one-sided p-value of a paired permutation test on items, ties count half, so p(x, y) + p(y, x) = 1. If
    all sign flips are no more than `resamples`, they are enumerated. Both sides see the same flips. Its published
    abbreviation is also that of the SPA protocol; they are not related.

    References
    ----------
    Thompson et al. 2024, Improving statistical significance in human evaluation of automatic metrics via soft
    pairwise accuracy.

    Examples
    --------
    >>> human = [[0.1, 0.4, 0.6], [0.2, 0.3, 0.7], [0.0, 0.5, 0.4]]
    >>> soft_pairwise_accuracy(human, human, rng=np.random.default_rng(0)).estimate
    1.0
    """
    tables = ScoreTables.from_arrays(human, metric, item_groups)
    if tables.fixed is not None:
        raise ValueError("metric: scores of items are needed, not of whole systems")
    k = tables.n_systems
    common: dict[str, Any] = {
        "analysis": "metrics.soft_pairwise_accuracy",
        "estimand": "1 - mean difference of one-sided p-values over pairs of systems",
        "unit": "prompt",
        "n": tables.n_items,
        "n_rows": tables.n_cells,
        "settings": {"population": ITEMS, "resamples": resamples},
    }
    edge = too_few_systems_estimate(tables, 2, common)
    if edge is not None:
        return edge
    is_scored = mask_of_scored_pairs_by_item(tables.human) & mask_of_scored_pairs_by_item(tables.metric)
    is_used = is_scored.any(axis=0)
    n_pairs, n_all = int(is_used.sum()), k * (k - 1) // 2
    if n_pairs == 0:
        reason = "no two systems have scores of both sides on the same item"
        return Estimate(status="no_data", reason=reason, **common)
    # A difference of 0 has no weight in a sum of sign-flipped differences.
    differences = np.concatenate(
        [
            np.where(is_scored, system_pair_differences_or_zero(side), 0.0)[:, is_used]
            for side in (tables.human, tables.metric)
        ],
        axis=1,
    )
    pvalues = sign_flip_upper_tail_pvalues(tables.sums_by_group(differences), resamples=resamples, rng=rng)
    apart = np.abs(pvalues[:n_pairs] - pvalues[n_pairs:])
    detail = {
        "n_systems": k,
        "n_pairs": n_pairs,
        "n_unscored_pairs": n_all - n_pairs,
        "human": pvalues[:n_pairs],
        "metric": pvalues[n_pairs:],
    }
    return Estimate(estimate=1 - float(apart.mean()), detail=detail, **common)


def _of_systems(
    tables: ScoreTables,
    statistic: str,
    *,
    minimum: int,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    chosen: BoolArray | None = None,
    sensitivity: tuple[Estimate, ...] = (),
) -> Estimate:
    validate_level(level)
    k = tables.n_systems
    common: dict[str, Any] = {
        "analysis": f"metrics.{statistic}" + ("" if chosen is None else ".significant"),
        "estimand": _ESTIMANDS[statistic] + ("" if chosen is None else ", of those that people clearly tell apart"),
        "unit": "prompt",
        "n": tables.n_items,
        "n_rows": tables.n_cells,
        "settings": {"population": ITEMS, "level": level, "resamples": resamples},
        "sensitivity": sensitivity,
    }
    edge = too_few_systems_estimate(tables, minimum, common)
    if edge is not None:
        return edge
    scored, metric_scored = (
        system_means(tables.human),
        system_means(tables.metric) if tables.fixed is None else tables.fixed,
    )
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
    # Use one scale, on which equal means differ only by rounding.
    human, metric = divide_by_max_abs(tables.human), divide_by_max_abs(tables.metric)
    fixed = None if tables.fixed is None else divide_by_max_abs(tables.fixed)
    theirs_now = system_means(metric) if fixed is None else fixed
    estimate = agreement_statistic_by_row(statistic, system_means(human)[None, :], theirs_now[None, :], chosen)[0]
    if not np.isfinite(estimate):
        return Estimate(
            status="not_identified", reason="the scores of the systems are equal or missing", detail=detail, **common
        )
    warnings: tuple[ResultWarning, ...] = (
        ResultWarning("attenuated_by_item_noise", "warn", {"n_items": tables.n_items}),
    )
    if tables.has_enough_groups:
        draws = []
        for drawn_groups in multinomial_weights(tables.n_groups, resamples, rng):
            block = drawn_groups[:, tables.groups]
            human_means = weighted_system_means(human, block)
            metric_means = (
                weighted_system_means(metric, block) if fixed is None else np.broadcast_to(fixed, human_means.shape)
            )
            draws.append(agreement_statistic_by_row(statistic, human_means, metric_means, chosen))
        drawn = np.concatenate(draws)
        defined = drawn[np.isfinite(drawn)]
        if len(defined) < len(drawn):
            share = 1 - len(defined) / len(drawn)
            warnings = (*warnings, ResultWarning("undefined_resamples", "warn", {"share": share}))
        if len(defined) > len(drawn) / 2:
            middle = percentile_interval(defined, level)
            detail["item_range"] = None if middle is None else (middle.low, middle.high)
    return Estimate(estimate=float(estimate), warnings=warnings, detail=detail, **common)


_ESTIMANDS = {
    "pearson": "Pearson's correlation of systems' observed mean scores",
    "spearman": "Spearman's rank correlation of systems' observed mean scores",
    "kendall": "Kendall's tau-b of systems' observed mean scores",
    "pairwise_accuracy": "share of pairs of systems whose observed mean scores are ordered alike",
}


# Agreement on single outputs.


def segment_level_kendall_tau(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    grouping: str = "item",
    level: float = 0.95,
    resamples: int = 999,
    item_groups: npt.ArrayLike | None = None,
) -> Estimate:
    """Kendall's tau-b of single outputs, within items or over all cells.

    Parameters
    ----------
    human, metric : array_like, shape (n_items, K)
        Scores; NaN is missing.
    rng : numpy.random.Generator
        Source of the random draws.
    grouping : {"item", "none"}, default 'item'
        "item": tau within each item over its systems, then averaged. "none": over all cells, which also rewards
        knowing the difficult items; it has no interval.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    item_groups : array_like, shape (n_items,), optional
        Labels of what is drawn again in place of items, such as the document of each. The items if None.

    Returns
    -------
    Estimate
        Tau. Items with equal scores on one side are left out (`detail["n_undefined"]`).

    Examples
    --------
    >>> human, metric = [[1, 2, 3], [3, 2, 1], [2, 2, 2]], [[1, 2, 3], [3, 1, 2], [1, 2, 3]]
    >>> result = segment_level_kendall_tau(human, metric, rng=np.random.default_rng(0), resamples=99)
    >>> round(result.estimate, 4), result.n, result.detail["n_undefined"]
    (0.6667, 2, 1)
    """
    validate_level(level)
    tables = ScoreTables.from_arrays(human, metric, item_groups)
    pairs = OutputPairs.from_tables(tables, grouping)
    common: dict[str, Any] = {
        "analysis": "metrics.segment_tau",
        "estimand": "Kendall's tau-b within items" if grouping == "item" else "Kendall's tau-b over all outputs",
        "unit": "prompt",
        "n_rows": tables.n_cells,
        "settings": {"population": ITEMS, "grouping": grouping, "level": level, "resamples": resamples},
    }
    if len(pairs.group) == 0:
        return Estimate(status="no_data", reason="no two outputs to compare", n=0, **common)
    group_taus = pairs.taus_by_group()
    taus = group_taus[np.isfinite(group_taus)]
    if len(taus) == 0:
        return Estimate(status="not_identified", reason="every item's scores are equal", n=0, **common)
    detail = {"n_undefined": len(group_taus) - len(taus), "n_pairs": len(pairs.group)}
    n = tables.n_items if grouping == "none" else len(taus)
    interval = None
    if grouping == "item":
        interval = _interval(taus, tables.groups[np.isfinite(group_taus)], level, resamples, rng)
    return Estimate(estimate=float(taus.mean()), interval=interval, n=n, detail=detail, **common)


def tie_calibrated_accuracy(
    human: npt.ArrayLike,
    metric: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    threshold: float | None = None,
    level: float = 0.95,
    resamples: int = 999,
    item_groups: npt.ArrayLike | None = None,
) -> Estimate:
    """Share of pairs of outputs of an item on which metric and people agree: the same order, or a tie in both.

    Parameters
    ----------
    human, metric : array_like, shape (n_items, K)
        Scores; NaN is missing.
    rng : numpy.random.Generator
        Source of the random draws.
    threshold : float, optional
        Largest difference of metric scores that is a tie. None calibrates it on these data (warning
        `calibrated_on_these_data`): the accuracy is then slightly too high.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    item_groups : array_like, shape (n_items,), optional
        Labels of what is drawn again in place of items, such as the document of each. The items if None.

    Returns
    -------
    Estimate
        The accuracy. `detail` counts concordant and discordant pairs, and ties on the human side, the metric side and
        both.

    Notes
    -----
    Accuracy = (C + T_hm) / (C + D + T_h + T_m + T_hm). To avoid the bias, calibrate on other items and pass
    `threshold`.

    References
    ----------
    Deutsch, Foster and Freitag 2023, Ties matter.

    Examples
    --------
    >>> human, metric = [[1, 1, 2], [0, 3, 3]], [[0.50, 0.52, 0.9], [0.1, 0.7, 0.75]]
    >>> result = tie_calibrated_accuracy(human, metric, rng=np.random.default_rng(0), resamples=99)
    >>> result.estimate, round(result.detail["threshold"], 2)
    (1.0, 0.05)
    """
    validate_level(level)
    if threshold is not None:
        validate_non_negative(threshold=threshold)
    tables = ScoreTables.from_arrays(human, metric, item_groups)
    pairs = OutputPairs.from_tables(tables, "item")
    common: dict[str, Any] = {
        "analysis": "metrics.tie_calibrated_accuracy",
        "estimand": "share of pairs of outputs called as people call them, ties included",
        "unit": "prompt",
        "n_rows": tables.n_cells,
        "settings": {
            "population": ITEMS,
            "grouping": "item",
            "threshold": threshold,
            "level": level,
            "resamples": resamples,
        },
    }
    if len(pairs.group) == 0:
        return Estimate(status="no_data", reason="no two outputs to compare", n=0, **common)
    sizes = np.bincount(pairs.group, minlength=pairs.n_groups)
    used = sizes > 0
    human_sign = np.sign(pairs.human)
    apart = np.abs(pairs.metric)
    agrees = (human_sign != 0) & (human_sign == np.sign(pairs.metric))
    warnings: tuple[ResultWarning, ...] = ()
    if threshold is None:
        chosen = _best_threshold(apart, agrees, human_sign == 0, 1 / sizes[pairs.group])
        warnings = (ResultWarning("calibrated_on_these_data", "info", {"threshold": chosen}),)
    else:
        chosen = threshold
    tied = apart <= chosen
    right = np.where(human_sign == 0, tied, agrees & ~tied)
    per_item = np.bincount(pairs.group, right, pairs.n_groups)[used] / sizes[used]
    detail = {
        "threshold": chosen,
        "concordant": int(np.sum(agrees & ~tied)),
        "discordant": int(np.sum((human_sign != 0) & ~tied & ~agrees)),
        "ties_human": int(np.sum((human_sign == 0) & ~tied)),
        "ties_metric": int(np.sum((human_sign != 0) & tied)),
        "ties_both": int(np.sum((human_sign == 0) & tied)),
        "n_pairs": len(right),
    }
    return Estimate(
        estimate=float(per_item.mean()),
        interval=_interval(per_item, tables.groups[used], level, resamples, rng),
        n=int(used.sum()),
        warnings=warnings,
        detail=detail,
        **common,
    )


def _interval(
    per_item: FloatArray, item_groups: IntArray, level: float, resamples: int, rng: np.random.Generator
) -> Interval | None:
    """Return the interval of a mean over items, with their groups drawn again."""
    groups, n_groups = label_codes(item_groups, "item_groups", len(per_item))
    if n_groups < 2 or (n_groups < len(per_item) and n_groups < TOO_FEW_ITEMS):
        return None
    sums, sizes = group_sums(groups, per_item, n_groups), group_sums(groups, np.ones(len(per_item)), n_groups)
    draws = ratio_draws(sums[:, None], sizes[:, None], multinomial_weights(n_groups, resamples, rng))
    return percentile_interval(draws[:, 0], level)


def _best_threshold(apart: FloatArray, agrees: BoolArray, tied: BoolArray, weights: FloatArray) -> float:
    """Return the least threshold with the highest weighted number of agreements: 0, or one of the distances."""
    order = np.argsort(apart, kind="stable")
    # If the threshold reaches a pair's distance, a human tie becomes correct and a concordant pair wrong.
    gain = np.cumsum((weights * (tied.astype(np.float64) - agrees))[order])
    distances = apart[order]
    last = np.append(distances[1:] > distances[:-1], True)
    at, reached = distances[last], gain[last]
    if at[0] > 0:
        at, reached = np.append(0.0, at), np.append(0.0, reached)
    return float(at[np.argmax(reached > reached.max() - 1e-12)])
