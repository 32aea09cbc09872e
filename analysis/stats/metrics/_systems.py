"""Agreement on systems."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, validate_level
from analysis.stats.bootstrap import multinomial_weights, percentile_interval
from analysis.stats.metrics._flips import (
    mask_of_scored_pairs_by_item,
    sign_flip_upper_tail_pvalues,
    system_pair_differences_or_zero,
)
from analysis.stats.metrics._statistics import (
    agreement_statistic_by_row,
    divide_by_max_abs,
    system_means,
    weighted_system_means,
)
from analysis.stats.metrics._tables import ITEMS, ScoreTables, too_few_systems_estimate
from analysis.stats.results import Estimate, ResultWarning

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
