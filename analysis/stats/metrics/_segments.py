"""Agreement on single outputs."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    validate_level,
    validate_non_negative,
)
from analysis.stats.bootstrap import multinomial_weights, percentile_interval, ratio_draws
from analysis.stats.clusters import TOO_FEW_ITEMS
from analysis.stats.metrics._tables import ITEMS, OutputPairs, ScoreTables
from analysis.stats.results import Estimate, Interval, ResultWarning


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
