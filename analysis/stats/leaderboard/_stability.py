"""The stability of a score over days."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap, clusters, ranks
from analysis.stats.arrays import label_codes, validate_level, validate_within_bounds, vector
from analysis.stats.leaderboard._rows import SCALE, equal_item_weights
from analysis.stats.results import Estimate, HypothesisTest, Interval


def largest_day_score_difference_in_points(
    values: npt.ArrayLike,
    days: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "leaderboard.stability",
    unit: str = "annotator",
) -> Estimate:
    """Largest difference between the scores of one system on several days, in points.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers in 0..1; NaN is missing.
    days, items, annotators : array_like, shape (n_rows,)
        Labels of each row's day, item and annotator.
    rng : numpy.random.Generator
        Source of the random draws.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default bootstrap.RESAMPLES
        Number of resamples.
    analysis, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The largest difference and the test ("max_t") that no two days differ. `detail["by_day"]` has the score of
        each day.

    Notes
    -----
    Only items answered on every day count. Noise alone makes the largest difference positive, so use the interval:
    from max_ij (|d_ij| - h_ij), at least 0, to max_ij (|d_ij| + h_ij). h_ij is the half width of the simultaneous
    interval for days i and j, with resampled annotators.

    References
    ----------
    Section 4, Figure 2 (one system on three weekdays).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> days, items, annotators = np.repeat([1, 2], 60), np.tile(np.arange(60), 2), np.repeat(np.arange(24), 5)
    >>> result = largest_day_score_difference_in_points(rng.choice([0.5, 0.75, 1], 120), days, items, annotators, rng=rng, resamples=999)
    >>> result.detail["n_items"], result.interval.low
    (60, 0.0)
    """
    validate_level(level)
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    day_codes, _ = label_codes(np.asarray(days), "days", len(array))
    item_codes, n_items = label_codes(np.asarray(items), "items", len(array))
    label_codes(np.asarray(annotators), "annotators", len(array))
    is_observed = ~np.isnan(array)
    present = np.unique(day_codes[is_observed])
    seen = np.zeros((int(day_codes.max(initial=0)) + 1, n_items), dtype=bool)
    seen[day_codes[is_observed], item_codes[is_observed]] = True
    on_all = np.asarray(seen[present].all(axis=0)) if len(present) else np.zeros(n_items, dtype=bool)
    is_used = is_observed & on_all[item_codes]
    labels, shared = np.asarray(days)[is_used], item_codes[is_used]
    people = np.asarray(annotators)[is_used]
    n = len(np.unique(people))
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "largest difference between days, in points of 100",
        "unit": unit,
        "n": n,
        "n_clusters": n,
        "n_rows": int(is_used.sum()),
        "settings": {"level": level, "resamples": resamples},
    }
    detail: dict[str, Any] = {
        "n_days": len(present),
        "n_items": int(on_all.sum()),
        "n_items_dropped": len(np.unique(item_codes[is_observed])) - int(on_all.sum()),
    }
    if not is_observed.any():
        return Estimate(status="no_data", reason="no answer to analyse", detail=detail, **common)
    if len(present) == 1:
        return Estimate(status="not_applicable", reason="all answers are of one day", detail=detail, **common)
    if not is_used.any():
        return Estimate(status="not_identified", reason="no item was answered on every day", detail=detail, **common)
    drawn = ranks.bootstrap_system_scores(
        SCALE * array[is_used],
        people,
        labels,
        weights=equal_item_weights(array[is_used], labels, shared),
        resamples=resamples,
        rng=rng,
        unit=unit,
    )
    detail["by_day"] = {str(day): score for day, score in zip(drawn.systems, drawn.scores.tolist(), strict=True)}
    common |= {"warnings": drawn.warnings, "detail": detail}
    draws = drawn.draws[np.isfinite(drawn.draws).all(axis=1)]
    if n == 1:
        spread = float(np.ptp(drawn.scores))
        return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=spread, **common)
    if len(draws) < ranks.MAX_UNDEFINED * resamples:
        reason = "some days were rated by too few to be resampled"
        return Estimate(status="not_identified", reason=reason, estimate=float(np.ptp(drawn.scores)), **common)
    differences = ranks.simultaneous_differences(drawn.scores, draws, level=level, df=drawn.df)
    if not differences.decidable[~np.eye(len(drawn.systems), dtype=bool)].all():
        reason = "the difference of two days does not vary"
        return Estimate(status="zero_variance", reason=reason, estimate=float(np.ptp(drawn.scores)), **common)
    found = largest_difference(differences, n, common)
    interval = found.interval
    if interval is not None and interval.high > SCALE:
        interval = replace(interval, high=SCALE, clipped=True)
    return replace(found, interval=interval)


def largest_difference(
    found: ranks.SimultaneousDifferences | ranks.SimultaneousScores, n_annotators: int, named: dict[str, Any]
) -> Estimate:
    """Return the largest of several differences, its interval, and the test that all are 0.

    >>> values, people, systems = [1, 0.2, 0.5, 0.1, 0.8, 0], ["a", "a", "b", "b", "c", "c"], ["x", "y"] * 3
    >>> spread = ranks.score_spread(values, people, systems)
    >>> found = ranks.simultaneous_scores(spread, rng=np.random.default_rng(0))
    >>> named = {"analysis": "demo", "estimand": "largest score", "unit": "annotator", "n": 3}
    >>> round(largest_difference(found, 3, named).estimate, 3)
    0.767
    """
    sizes = np.abs(found.estimates)
    apart = float(np.max(sizes))
    if not found.decidable.any():
        return Estimate(status="zero_variance", reason="the differences do not vary", estimate=apart, **named)
    half = np.nan_to_num((found.high - found.low) / 2, nan=0.0)
    low, high = max(0.0, float(np.max(sizes - half))), float(np.max(sizes + half))
    pvalue = float(np.nanmin(found.pvalues))
    tested = n_annotators >= clusters.TOO_FEW_CLUSTERS
    return Estimate(
        estimate=apart,
        interval=Interval(found.level, low, high, "max_t"),
        test=HypothesisTest(name="max_t", null=0.0, statistic=None, pvalue=pvalue) if tested else None,
        **named,
    )
