"""The score of one system on a board, its precision, and what a pilot says about the size of a board."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap, cluster_variances, clusters
from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    is_whole,
    label_codes,
    label_codes_where,
    validate_level,
    validate_non_negative,
    validate_share,
    validate_within_bounds,
    vector,
)
from analysis.stats.results import MODES, Estimate, Interval, Record, ResultWarning

# Answers of one or two systems with equal item weights, and the variance of their contrasts.


SCALE = 100.0
BOUNDS = (0.0, SCALE)


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """Answers without the missing ones, items and annotators as codes; `weights` give every item the same total.

    `item_groups` (n_rows,) are the clusters of items, such as documents; each item by itself if there are none.
    """

    values: FloatArray
    items: IntArray
    annotators: IntArray
    item_groups: IntArray
    n_items: int
    n_annotators: int
    n_missing: int

    @classmethod
    def from_arrays(
        cls,
        values: npt.ArrayLike,
        items: npt.ArrayLike,
        annotators: npt.ArrayLike,
        item_groups: npt.ArrayLike | None = None,
    ) -> "ScoreRows":
        array = vector(values, "values")
        validate_within_bounds(array, (0.0, 1.0), "values")
        is_observed = ~np.isnan(array)
        n = int(is_observed.sum())
        item_codes, n_items = label_codes_where(items, "items", is_observed)
        annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
        group_codes = (
            item_codes if item_groups is None else label_codes_where(item_groups, "item_groups", is_observed)[0]
        )
        return cls(array[is_observed], item_codes, annotator_codes, group_codes, n_items, n_annotators, len(array) - n)

    @property
    def weights(self) -> FloatArray:
        return np.asarray(1 / (self.n_items * np.bincount(self.items)[self.items]), dtype=np.float64)


def equal_item_weights(values: FloatArray, systems: npt.ArrayLike, items: npt.ArrayLike) -> FloatArray:
    """Return 1 / (answers of the row's item for the row's system), so that items have equal weights; 0 if missing.

    >>> equal_item_weights(np.array([1.0, 0.5, 0.0]), ["x", "x", "x"], [1, 1, 2]).tolist()
    [0.5, 0.5, 1.0]
    """
    system_codes, _ = label_codes(np.asarray(systems), "systems", len(values))
    item_codes, n_items = label_codes(np.asarray(items), "items", len(values))
    cells = system_codes * n_items + item_codes
    is_observed = ~np.isnan(values)
    counts = np.bincount(cells[is_observed], minlength=int(cells.max(initial=0)) + 1)[cells]
    return np.where(is_observed, 1 / np.maximum(counts, 1), 0.0)


# The precision of a score: worst case, design effect, and one or several labels per item.


@dataclass(frozen=True, slots=True)
class LabellingSpread(Record):
    """Spread of a score at one budget: k labels on N / k items (multilabel), or one label on each of N items.

    `sd_unilabel` and `sd_multilabel` are over `rounds` simulated rounds, in points of 100. `exact_unilabel` and
    `exact_multilabel` have no simulation error. `icc` is the share of variance between items, None if it is
    undefined. `design_effect` = 1 + (k - 1) icc.
    """

    sd_unilabel: float
    sd_multilabel: float
    exact_unilabel: float
    exact_multilabel: float
    icc: float | None
    design_effect: float | None
    n_items: int
    labels_per_item: int
    rounds: int
    aggregate: str

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "item", "n": self.n_items}


def worst_case_se_in_points(score: float, n: int, *, design_effect: float = 1.0) -> float:
    """Largest possible standard error of a score of n answers in 0..100, before there are data.

    Parameters
    ----------
    score : float
        Score in points, 0..100.
    n : int
        Number of answers.
    design_effect : float, default 1.0
        Factor for answers of the same annotators; 1 only for one answer per annotator.

    Returns
    -------
    float
        sqrt(mu (100 - mu) / n) sqrt(design_effect), in points.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    References
    ----------
    Appendix C (the inequality of Bhatia and Davis 2000).

    Examples
    --------
    >>> round(worst_case_se_in_points(50, 800), 2), round(worst_case_se_in_points(50, 300), 2)
    (1.77, 2.89)
    """
    if not 0 <= score <= SCALE:
        raise ValueError(f"score: {score!r} is not in 0..100")
    if n < 1:
        raise ValueError(f"n: {n} is less than 1")
    if not design_effect > 0:
        raise ValueError(f"design_effect: {design_effect!r} is not a positive number")
    return math.sqrt(score * (SCALE - score) / n * design_effect)


def design_effect(cluster_size: float, icc: float) -> float:
    """Design effect of clusters: 1 + (m - 1) icc.

    Parameters
    ----------
    cluster_size : float
        Answers per cluster m, at least 1 (labels per annotator, or per item).
    icc : float
        Intraclass correlation.

    Returns
    -------
    float
        The factor on the variance of a mean; at least 1.

    Raises
    ------
    ValueError
        If `cluster_size` is less than 1.

    Notes
    -----
    For items it compares k labels each with one label on k times as many items (section 4, Q3).

    Examples
    --------
    >>> round(math.sqrt(design_effect(20, 0.3)), 1), design_effect(3, 0.4)
    (2.6, 1.8)
    """
    if not cluster_size >= 1:
        raise ValueError(f"cluster_size: {cluster_size!r} is less than 1")
    validate_share(icc, "icc")
    return 1 + (cluster_size - 1) * icc


def unilabel_and_multilabel_spread_in_points(
    labels: npt.ArrayLike, *, rng: np.random.Generator, rounds: int = 500, aggregate: str = "mean"
) -> LabellingSpread:
    """Simulate the spread of the score if one budget buys k labels on few items, or one label on k times as many items.

    `labels` (n_items, k) are in 0..1, with none missing. Each round draws with replacement n_items / k items with all
    their labels, or n_items of all labels; both cost n_items labels. `aggregate` is how the labels of an item are
    combined, and "majority" is the median. The source is Genie (Khashabi et al. 2022), section 4, Q2 and Q3, Figure 3
    (standard deviations over 500 rounds).

    >>> rng = np.random.default_rng(0)
    >>> labels = np.clip(rng.normal(0.7, 0.2, (90, 1)) + rng.normal(0, 0.2, (90, 3)), 0, 1)
    >>> result = unilabel_and_multilabel_spread_in_points(labels, rng=rng)
    >>> result.exact_multilabel > result.exact_unilabel, round(result.design_effect, 1)
    (True, 1.7)
    """
    table = np.asarray(labels, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
        raise ValueError(f"labels: at least two items with two labels each are needed, got shape {table.shape}")
    if np.isnan(table).any():
        raise ValueError(f"labels: row {int(np.argwhere(np.isnan(table))[0][0])} has a missing label")
    validate_within_bounds(table.ravel(), (0.0, 1.0), "labels")
    if aggregate not in ("mean", "majority"):
        raise ValueError(f"aggregate: {aggregate!r} is neither mean nor majority")
    if rounds < 2:
        raise ValueError(f"rounds: {rounds} is less than 2")
    n_items, k = table.shape
    n_few = max(1, round(n_items / k))
    item_scores = table.mean(axis=1) if aggregate == "mean" else np.median(table, axis=1)
    few = item_scores[rng.integers(0, n_items, (rounds, n_few))].mean(axis=1)
    many = table.ravel()[rng.integers(0, n_items * k, (rounds, n_items))].mean(axis=1)
    parts = cluster_variances.variance_components(table.ravel(), np.repeat(np.arange(n_items), k))
    return LabellingSpread(
        sd_unilabel=SCALE * float(np.std(many, ddof=1)),
        sd_multilabel=SCALE * float(np.std(few, ddof=1)),
        exact_unilabel=SCALE * float(np.std(table)) / math.sqrt(n_items),
        exact_multilabel=SCALE * float(np.std(item_scores)) / math.sqrt(n_few),
        icc=parts.icc,
        design_effect=None if parts.icc is None else design_effect(k, parts.icc),
        n_items=n_items,
        labels_per_item=k,
        rounds=rounds,
        aggregate=aggregate,
    )


# The score of one system.


def system_score_in_points(
    values: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    mode: str = "recommended",
    level: float = 0.95,
    items_sampled: bool = True,
    item_groups: npt.ArrayLike | None = None,
    resamples: int = bootstrap.RESAMPLES,
) -> Estimate:
    """Score of one system: 100 times a mean of answers in 0..1.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers in 0..1; NaN is missing.
    items, annotators : array_like, shape (n_rows,)
        Labels of each row's item and annotator.
    rng : numpy.random.Generator
        Source of the random draws of the paper's mode.
    mode : {"recommended", "paper"}, default 'recommended'
        "paper": the mean of the answers and the percentile bootstrap over them (warning `annotators_ignored`).
        "recommended": the mean over items of each item's mean, clustered.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    items_sampled : bool, default True
        Whether the claim goes beyond the items of the study.
    item_groups : array_like, shape (n_rows,), optional
        Labels of what is sampled in place of items, such as the document of each row's item. The items if None.
    resamples : int, default bootstrap.RESAMPLES
        Number of resamples of the paper's mode.

    Returns
    -------
    Estimate
        The score in points. `n` counts annotators in recommended mode, answers in paper mode. `detail` has `plus` and
        `minus`, the arms of the interval, and the worst-case standard error.

    Raises
    ------
    ValueError
        If `mode` is not allowed.

    Notes
    -----
    With `items_sampled` and five items or more, `clusters.two_way_clustered_mean` over annotators and items, otherwise
    `clusters.clustered_mean` over annotators; `settings["population"]` says which. Both bet if answers hardly vary or
    are skewed (warning `betting_instead_of_t`). Sensitivities: the mean of the annotators' means and, beside the two-way
    one, the interval over annotators alone.

    References
    ----------
    Section 6, Uncertainty Quantification.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, items = np.repeat(np.arange(20), 5), np.arange(100)
    >>> result = system_score_in_points(rng.choice([0.5, 0.75, 1], 100), items, annotators, rng=rng)
    >>> round(result.estimate, 1), result.interval.method, result.n
    (76.5, 'two_way_cv3_score', 20)
    """
    validate_level(level)
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is not one of {', '.join(MODES)}")
    rows = ScoreRows.from_arrays(values, items, annotators, item_groups)
    common: dict[str, Any] = {
        "analysis": "leaderboard.score",
        "estimand": "score, 0 to 100: mean of answers" if mode == "paper" else "score, 0 to 100: mean over items",
        "mode": mode,
        "n_rows": len(rows.values),
        "settings": {"level": level, "items_sampled": items_sampled, "resamples": resamples},
    }
    if mode == "paper":
        return _paper_score(rows, level=level, resamples=resamples, rng=rng, common=common)
    found = clusters.annotator_prompt_clustered_mean(
        SCALE * rows.values,
        rows.annotators,
        rows.item_groups,
        weights=rows.weights,
        null=None,
        level=level,
        bounds=BOUNDS,
        analysis="leaderboard.score",
        population="people_and_prompts" if items_sampled else "people",
        estimand=common["estimand"],
        unit="annotator",
    )
    detail: dict[str, Any] = {**found.detail, "n_items": rows.n_items, "n_missing": rows.n_missing}
    if found.estimate is not None:
        detail |= _worst_case(rows, found.estimate)
        detail |= {} if found.interval is None else _arms(found.estimate, found.interval)
    settings = {**found.settings, "items_sampled": items_sampled}
    return replace(found, n_clusters=found.n, detail=detail, settings=settings)


def _arms(estimate: float, interval: Interval) -> dict[str, float]:
    return {"plus": interval.high - estimate, "minus": estimate - interval.low}


def _worst_case(rows: ScoreRows, estimate: float) -> dict[str, Any]:
    """Return the bound for independent answers, and the same times the root of the observed design effect."""
    parts = cluster_variances.variance_components(rows.values, rows.annotators)
    n, score = len(rows.values), min(SCALE, max(0.0, estimate))
    dependent = (
        None if parts.design_effect is None else worst_case_se_in_points(score, n, design_effect=parts.design_effect)
    )
    return {
        "worst_case_se": worst_case_se_in_points(score, n),
        "worst_case_se_clustered": dependent,
        "annotator_icc": parts.icc,
        "design_effect": parts.design_effect,
    }


def _paper_score(
    rows: ScoreRows, *, level: float, resamples: int, rng: np.random.Generator, common: Mapping[str, Any]
) -> Estimate:
    n = len(rows.values)
    named = {**common, "unit": "answer", "n": n}
    if n == 0:
        return Estimate(status="no_data", reason="no answer to analyse", **named)
    estimate = SCALE * float(np.mean(rows.values))
    detail: dict[str, Any] = {"n_annotators": rows.n_annotators, "n_items": rows.n_items, "n_missing": rows.n_missing}
    detail |= {"worst_case_se": worst_case_se_in_points(min(SCALE, estimate), n)}
    if n == 1:
        return Estimate(status="n_lt_2", reason="one answer has no spread", estimate=estimate, detail=detail, **named)
    scores, counts = np.unique(rows.values, return_counts=True)
    if len(scores) == 1:
        return Estimate(
            status="zero_variance", reason="all answers are equal", estimate=estimate, detail=detail, **named
        )
    draws = SCALE * (rng.multinomial(n, counts / n, resamples) @ scores) / n
    interval = bootstrap.percentile_interval(np.asarray(draws), level)
    warnings = (
        () if rows.n_annotators == n else (ResultWarning("annotators_ignored", "block", {"n": rows.n_annotators}),)
    )
    arms = {} if interval is None else _arms(estimate, interval)
    return Estimate(estimate=estimate, interval=interval, warnings=warnings, detail={**detail, **arms}, **named)


# What a board learns from its own pilot: one label or several per item, and precision against cost.


@dataclass(frozen=True, slots=True)
class DoubleLabels(Record):
    """How many of `n` items have two labels or more: `n_double`, their `share`, and whether it reaches the `minimum`.

    `n_missing` items more need a second label. The share is None without items.
    """

    n: int
    n_double: int
    share: float | None
    minimum: float
    is_enough: bool
    n_missing: int
    unit: str = "item"


@dataclass(frozen=True, slots=True)
class PrecisionForCost(Record):
    """Standard errors of a score in points, as worst case and as measured, for several numbers of labels.

    All tuples have one entry per number of labels. `measured_se` is None if the pilot cannot measure it; `reason` says
    why. `sd` is that of an answer, in points, and `design_effect` the factor on the variance of a mean.
    """

    n_labels: tuple[int, ...]
    costs: tuple[float, ...]
    worst_case_se: tuple[float, ...]
    measured_se: tuple[float | None, ...]
    score: float | None
    sd: float | None
    design_effect: float | None
    n: int
    n_rows: int
    reason: str = ""
    unit: str = "annotator"


def pilot_label_table(
    values: npt.ArrayLike, items: npt.ArrayLike, *, labels_per_item: int, rng: np.random.Generator
) -> FloatArray:
    """Return the labels of a pilot as a table of items, for `unilabel_and_multilabel_spread_in_points`.

    `values` are answers in 0..1, with NaN for missing. The table (n_items, k) has the labels of the items with k =
    `labels_per_item` (at least 2) or more, in the order of the items. Items with fewer are left out, and `rng` chooses
    k labels of an item with more.

    >>> table = pilot_label_table([1, 0.5, 0, 1, 1], [1, 1, 2, 3, 3], labels_per_item=2, rng=np.random.default_rng(0))
    >>> np.sort(table).tolist()
    [[0.5, 1.0], [1.0, 1.0]]
    """
    if labels_per_item < 2:
        raise ValueError(f"labels_per_item: {labels_per_item} is less than 2")
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    is_used = ~np.isnan(array)
    codes, n_items = label_codes_where(items, "items", is_used)
    observed = array[is_used]
    order = np.lexsort((rng.random(len(codes)), codes))
    sizes = np.bincount(codes, minlength=n_items)
    starts = np.cumsum(sizes) - sizes
    chosen = starts[sizes >= labels_per_item, None] + np.arange(labels_per_item)
    return np.asarray(observed[order][chosen])


def double_label_share(values: npt.ArrayLike, items: npt.ArrayLike, *, minimum: float = 0.1) -> DoubleLabels:
    """Share of items with two labels or more, against the minimum that keeps agreement measurable.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers; NaN is missing.
    items : array_like, shape (n_rows,)
        Label of each row's item.
    minimum : float, default .1
        The declared minimum share.

    Returns
    -------
    DoubleLabels
        The share. With one label per item a score is most precise, but nobody can tell items from noise.

    Raises
    ------
    ValueError
        If `minimum` is not a share.

    Examples
    --------
    >>> found = double_label_share([1, 0, 1, 1], [1, 2, 3, 3], minimum=0.5)
    >>> found.n, found.n_double, found.is_enough, found.n_missing
    (3, 1, False, 1)
    """
    validate_share(minimum, "minimum")
    array = vector(values, "values")
    codes, n_items = label_codes_where(items, "items", ~np.isnan(array))
    n_double = int(np.sum(np.bincount(codes, minlength=n_items) > 1))
    # Rounding must not ask for one item more than the share.
    needed = math.ceil(minimum * n_items * (1 - 1e-12))
    share = n_double / n_items if n_items else None
    return DoubleLabels(n_items, n_double, share, minimum, n_double >= needed, max(0, needed - n_double))


def precision_for_cost(
    values: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_labels: Sequence[int],
    cost_per_label: float,
) -> PrecisionForCost:
    """Estimate the standard error of a score against cost: the worst case before there are data, and as a pilot measures it.

    `values` are answers of one system in 0..1, with NaN for missing, and `n_labels` is the horizontal axis of the
    figure. The worst case is sqrt(m (100 - m) / n) at the pilot's mean m, and at 50 without answers, for independent
    labels. The measured standard error is sd sqrt(D / n), D = D_a + D_i - 1, with the design effects of annotators and
    of items (`cluster_variances.variance_components`) at the pilot's labels per annotator and per item. More labels of the same
    annotators are less precise than that.

    >>> found = precision_for_cost([1, 1, 0.5, 0, 0.5, 1], [1, 2, 3, 1, 2, 3], [1, 1, 1, 2, 2, 2], n_labels=[100, 400],
    ...                            cost_per_label=0.5)
    >>> found.costs, found.measured_se[0] == 2 * found.measured_se[1]
    ((50.0, 200.0), True)
    """
    validate_non_negative(cost_per_label=cost_per_label)
    for n in n_labels:
        if n < 1 or not is_whole(n):
            raise ValueError(f"n_labels: {n!r} is no positive count")
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    observed = array[~np.isnan(array)]
    people = cluster_variances.variance_components(SCALE * array, annotators)
    things = cluster_variances.variance_components(SCALE * array, items)
    score = SCALE * float(observed.mean()) if len(observed) else None
    sd = SCALE * float(np.std(observed, ddof=1)) if len(observed) > 1 else None
    effect, reason = None, ""
    if people.design_effect is None:
        reason = "each annotator gave one label, or there is one annotator, so labels count as independent"
    if sd is None:
        reason = "fewer than two answers have no spread"
    else:
        effect = 1 + sum((part.design_effect or 1.0) - 1 for part in (people, things))
    return PrecisionForCost(
        n_labels=tuple(int(n) for n in n_labels),
        costs=tuple(float(n * cost_per_label) for n in n_labels),
        worst_case_se=tuple(worst_case_se_in_points(50.0 if score is None else score, int(n)) for n in n_labels),
        measured_se=tuple(None if sd is None or effect is None else sd * math.sqrt(effect / n) for n in n_labels),
        score=score,
        sd=sd,
        design_effect=effect,
        n=people.n_clusters,
        n_rows=len(observed),
        reason=reason,
        unit="annotator",
    )
