"""Comparison of two metrics."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray, IntArray, label_codes, matrix
from analysis.stats.metrics._flips import sign_flip_blocks
from analysis.stats.metrics._statistics import agreement_statistic_by_row, divide_by_max_abs
from analysis.stats.metrics._systems import MIN_SYSTEMS, STATISTICS
from analysis.stats.metrics._tables import ITEMS, OutputPairs, ScoreTables, too_few_systems_estimate
from analysis.stats.results import Estimate, HypothesisTest


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
