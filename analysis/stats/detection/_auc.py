"""The clustered area under the ROC curve of ratings."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap, clusters
from analysis.stats.arrays import FloatArray, group_sums, label_codes, label_codes_where, validate_level, vector
from analysis.stats.detection._answers import bootstrap_column_sums, checked_truths
from analysis.stats.results import Estimate


def graded_auc(
    ratings: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
    sensitivity_resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate the area under the ROC curve: P(a machine text is rated more machine-like than a human text).

    Ties count half, a higher rating means machine, and a missing rating is NaN. The area needs no threshold, so it does
    not depend on the criterion; it is tested against .5. The standard error is the jackknife over annotators (CV3);
    with five texts or more in `items` it is two-way: the jackknife variances over annotators and over texts are added,
    less the sum over pairs of annotator and text of DeLong's components (Obuchowski 1997, Nonparametric analysis of
    clustered ROC curve data; DeLong et al. 1988). The sensitivities are the bootstrap over annotators, and the same
    probability within annotators.

    >>> ratings, truth = [3, 4, 2, 4, 1, 1, 2, 2, 3, 1], [1] * 5 + [0] * 5
    >>> round(graded_auc(ratings, truth, [*range(5)] * 2, rng=np.random.default_rng(0), sensitivity_resamples=99).estimate, 9)
    0.74
    """
    validate_level(level)
    array, truths = vector(ratings, "ratings"), checked_truths(is_machine, len(np.asarray(ratings)))
    item_codes = None if items is None else label_codes(np.asarray(items), "items", len(array))[0]
    is_observed = ~np.isnan(array)
    observed, truths, n_rows = array[is_observed], truths[is_observed], int(is_observed.sum())
    annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
    common: dict[str, Any] = {
        "analysis": "humanlike.auc",
        "estimand": "P(machine rated above human) + half the ties",
        "unit": "annotator",
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": n_rows,
        "settings": {"null": 0.5, "level": level, "resamples": sensitivity_resamples},
    }
    n_machine, n_human = int(truths.sum()), int(n_rows - truths.sum())
    if min(n_machine, n_human) == 0:
        status = "no_data" if n_rows == 0 else "not_identified"
        return Estimate(status=status, reason="needs ratings of texts of both kinds", **common)
    points, point_codes = np.unique(observed, return_inverse=True)
    k = len(points)
    keys = annotator_codes * k + point_codes
    machine = group_sums(keys, truths, n_annotators * k).reshape(-1, k)
    human = group_sums(keys, 1 - truths, n_annotators * k).reshape(-1, k)
    estimate = float(_aucs(machine.sum(axis=0)[None], human.sum(axis=0)[None])[0])
    detail: dict[str, Any] = {"n_machine": n_machine, "n_human": n_human}
    common["detail"] = detail
    if n_annotators < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=estimate, **common)
    if k == 1:
        return Estimate(status="zero_variance", reason="all ratings are equal", estimate=0.5, **common)
    by_annotator = _jackknife(machine, human, estimate)
    if by_annotator is None:
        reason = "one annotator alone rated a kind of text"
        return Estimate(status="not_identified", reason=reason, estimate=estimate, **common)
    (variance, df), method, has_enough = by_annotator, "cv3_t", n_annotators >= clusters.TOO_FEW_CLUSTERS
    item_codes, n_items = (None, 0) if item_codes is None else label_codes(item_codes[is_observed], "items", n_rows)
    is_two_way = item_codes is not None and n_items >= clusters.TOO_FEW_ITEMS
    if item_codes is not None and is_two_way:
        keys = item_codes * k + point_codes
        of_machine = group_sums(keys, truths, n_items * k).reshape(-1, k)
        by_item = _jackknife(of_machine, group_sums(keys, 1 - truths, n_items * k).reshape(-1, k), estimate)
        if by_item is None:
            reason = "a kind has only one text; add texts"
            return Estimate(status="not_identified", reason=reason, estimate=estimate, **common)
        # What each pair of annotator and text moves the area by.
        placements = _placements(machine.sum(axis=0), human.sum(axis=0))
        moves = np.where(truths > 0, (placements[0][point_codes] - estimate) / n_machine, 0.0)
        moves += np.where(truths > 0, 0.0, (placements[1][point_codes] - estimate) / n_human)
        pairs, _ = label_codes(annotator_codes * n_items + item_codes, "pairs", n_rows)
        by_pair = float(np.sum(np.bincount(pairs, moves) ** 2))
        spread, df = clusters.combine_two_way_variances((variance, by_item[0]), by_pair, (df, by_item[1]))
        variance, method = spread.variance, "two_way_cv3_t"
        detail |= {**spread.detail(), "n_items": n_items}
    common["settings"] = {
        **common["settings"],
        "population": clusters.PEOPLE_AND_PROMPTS if is_two_way else clusters.PEOPLE,
    }
    drawn = bootstrap_column_sums(np.hstack([machine, human]), sensitivity_resamples, rng)
    draws = _aucs(drawn[:, :k], drawn[:, k:])
    named = {**common, "analysis": "humanlike.auc.bootstrap"}
    resampled = bootstrap.estimate_with_percentile_interval(draws, level=level, estimate=estimate, **named)
    result = clusters.t_estimate(
        estimate,
        math.sqrt(variance),
        df,
        fewest_clusters=None,
        level=level,
        method=method,
        null=0.5 if has_enough else None,
        bounds=(0.0, 1.0),
        **common,
    )
    warned = clusters.cluster_warnings(np.bincount(annotator_codes), name="annotator")
    within = _within_auc(machine, human, level, {**common, "analysis": "humanlike.auc.within", "detail": {}})
    return replace(result, sensitivity=(resampled, within), warnings=warned)


def _jackknife(machine: FloatArray, human: FloatArray, estimate: float) -> tuple[float, float] | None:
    """Return the CV3 variance of the AUC and its degrees of freedom, from the counts (G, n_points) of each cluster.

    None if one cluster alone has all texts of a kind.
    """
    sizes = machine.sum(axis=1), human.sum(axis=1)
    if any(float(size.max()) == float(size.sum()) for size in sizes):
        return None
    without = _aucs(machine.sum(axis=0) - machine, human.sum(axis=0) - human)
    variance = (len(without) - 1) / len(without) * float(np.sum((without - estimate) ** 2))
    # Each answer about a kind has the weight 1 / (number of answers about the kind), so its variance is that squared.
    shares = sizes[0] / float(sizes[0].sum()) ** 2 + sizes[1] / float(sizes[1].sum()) ** 2
    return variance, max(1.0, clusters.effective_n_clusters(shares) - 1)


def _placements(machine: FloatArray, human: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return, at each point, the share of human answers below it and of machine answers above it; ties count half."""
    below = (np.cumsum(human) - human / 2) / human.sum()
    above = 1 - (np.cumsum(machine) - machine / 2) / machine.sum()
    return below, above


def _aucs(machine: FloatArray, human: FloatArray) -> FloatArray:
    """Return the AUC of each row of counts (n, n_points); NaN if a kind of text is missing."""
    below = np.cumsum(human, axis=1) - human / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        areas = np.sum(machine * below, axis=1) / (machine.sum(axis=1) * human.sum(axis=1))
    return np.asarray(areas, dtype=np.float64)


def _within_auc(machine: FloatArray, human: FloatArray, level: float, common: dict[str, Any]) -> Estimate:
    pairs = machine.sum(axis=1) * human.sum(axis=1)
    wins = np.sum(machine * (np.cumsum(human, axis=1) - human / 2), axis=1)
    wins, pairs = wins[pairs > 0], pairs[pairs > 0]
    n = len(pairs)
    name = "P(machine rated above human by the same annotator) + half the ties"
    common = {**common, "estimand": name, "n": n, "n_clusters": n, "settings": {"null": 0.5, "level": level}}
    if n == 0:
        return Estimate(status="not_identified", reason="no annotator rated both kinds of text", **common)
    estimate = float(wins.sum() / pairs.sum())
    if n == 1:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=estimate, **common)
    se, df = math.sqrt(clusters.cv3_variance(wins, pairs)), max(1.0, clusters.effective_n_clusters(pairs) - 1)
    return clusters.t_estimate(
        estimate, se, df, fewest_clusters=n, level=level, method="cv3_t", null=0.5, bounds=(0.0, 1.0), **common
    )
