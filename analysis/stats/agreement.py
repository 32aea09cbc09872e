"""How far annotators agree, and how far a second half of them would have said the same.

Agreement is information about the people and the question, not only about quality: low agreement on a question of
taste means that tastes differ. No adjectives are attached to the numbers.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import DEGENERATE, FloatArray, IntArray, codes, matrix, refuse_level, vector
from analysis.stats.bootstrap import percentile_interval
from analysis.stats.results import Estimate, Warning

LEVELS = ("nominal", "ordinal", "interval", "ratio")


def count_table(units: npt.ArrayLike, values: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Ratings in rows as a table of shape (n_units, n_values): how often each value was given to each unit.

    `units` and `values` have shape (n_rows,); a missing value is left out. Returns the table and the sorted values of
    its columns.

    >>> counts, values = count_table(["a", "a", "b"], [1, 3, 3])
    >>> counts.tolist(), values.tolist()
    ([[1.0, 1.0], [0.0, 1.0]], [1.0, 3.0])
    """
    array = vector(values, "values")
    positions, n_units = codes(np.asarray(units), "units", len(array))
    here = ~np.isnan(array)
    kept = array if here.all() else array[here]
    positions = positions if here.all() else positions[here]
    found, columns = _scale(kept)
    table = np.bincount(positions * len(found) + columns, minlength=n_units * len(found))
    return table.reshape(n_units, len(found)).astype(np.float64), found


def krippendorff_alpha(
    counts: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    level_of_measurement: str,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
    analysis: str = "krippendorff_alpha",
    unit: str = "item",
    mode: str = "recommended",
) -> Estimate:
    """Krippendorff's alpha, 1 - observed / expected disagreement, with a bootstrap interval over units.

    `counts` has shape (n_units, n_values), how often each value was given to each unit (see `count_table`); any
    number of raters per unit, units with fewer than two ratings carry no information and are left out; `values` has
    shape (n_values,), ascending. Disagreement of two values by `level_of_measurement`: nominal 0 or 1; ordinal the
    squared difference of mid-ranks; interval the squared difference; ratio ((a - b) / (a + b))^2. `n` counts pairable
    units. One value only, or nothing pairable: `not_identified`, with the percentage of agreement in detail.

    With n_uc ratings of value c among m_u of unit u and n_c in all N pairable ratings:
    alpha = 1 - (N - 1) sum_u sum_ck n_uc n_uk d_ck / (m_u - 1) / sum_ck n_c n_k d_ck.

    Source: Krippendorff 2011, Computing Krippendorff's alpha-reliability; used in Clark et al. 2021, section 3.

    >>> table = [[3, 0], [1, 2], [0, 3], [2, 1]]
    >>> result = krippendorff_alpha(table, [1, 2], level_of_measurement="nominal", rng=np.random.default_rng(0))
    >>> round(result.estimate, 4), round(result.detail["percent_agreement"], 4)
    (0.3889, 0.6667)
    """
    refuse_level(level)
    if level_of_measurement not in LEVELS:
        raise ValueError(f"level_of_measurement: {level_of_measurement!r} is none of {', '.join(LEVELS)}")
    table, scale = matrix(counts, "counts"), vector(values, "values")
    if table.shape[1] != len(scale):
        raise ValueError(f"values: {len(scale)} values where counts has {table.shape[1]} columns")
    if np.isnan(table).any() or np.any(table < 0) or np.any(table != np.round(table)):
        raise ValueError("counts: only whole, non-negative numbers count ratings")
    if np.any(np.diff(scale) <= 0):
        raise ValueError("values: must ascend")
    if level_of_measurement == "ratio" and len(scale) and scale[0] < 0:
        raise ValueError("values: a ratio scale has no negative value")
    ratings = table.sum(axis=1)
    pairable = table[ratings > 1]
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"Krippendorff's alpha ({level_of_measurement})",
        "unit": unit,
        "mode": mode,
        "n": len(pairable),
        "n_rows": int(pairable.sum()),
        "settings": {"level_of_measurement": level_of_measurement, "level": level, "resamples": resamples},
    }
    detail: dict[str, Any] = {"n_unpairable": int(np.sum(ratings <= 1)), "marginals": pairable.sum(axis=0)}
    if len(pairable) == 0:
        reason = "no unit has two ratings"
        status = "no_data" if len(table) == 0 or float(ratings.sum()) == 0 else "not_identified"
        return Estimate(status=status, reason=reason, detail=detail, **common)
    patterns, weights = _patterns(pairable)
    per_unit = patterns.sum(axis=1)
    agreeing = (np.sum(patterns**2, axis=1) - per_unit) / (per_unit * (per_unit - 1))
    detail["percent_agreement"] = float(np.average(agreeing, weights=weights))
    estimate = _alphas(patterns, scale, weights[None, :].astype(np.float64), level_of_measurement)[0]
    if not np.isfinite(estimate):
        return Estimate(status="not_identified", reason="all ratings have one value", detail=detail, **common)
    n_units = int(weights.sum())
    drawn = rng.multinomial(n_units, weights / n_units, size=resamples).astype(np.float64)
    draws = _alphas(patterns, scale, drawn, level_of_measurement)
    defined = draws[np.isfinite(draws)]
    warnings: tuple[Warning, ...] = ()
    if len(defined) < resamples:
        # A resample in which everyone said the same has no alpha; leaving many out narrows the interval.
        warnings = (Warning("undefined_resamples", "warn", {"share": 1 - len(defined) / resamples}),)
    interval = percentile_interval(defined, level) if n_units > 1 and len(defined) > resamples / 2 else None
    return Estimate(
        estimate=float(estimate), interval=interval, warnings=warnings, detail=detail, n_clusters=n_units, **common
    )


def split_half_reliability(
    scores: npt.ArrayLike,
    *,
    level: float = 0.95,
    splits: int = 500,
    resamples: int = 999,
    rng: np.random.Generator,
    analysis: str = "split_half_reliability",
    unit: str = "item",
    mode: str = "recommended",
) -> Estimate:
    """How well the mean scores of one random half of the annotators predict those of the other half.

    `scores` has shape (n_annotators, n_items), NaN where an annotator did not score the item. For each of `splits`
    random halvings of the annotators the items' means in both halves are correlated (Pearson, over items scored in
    both) and stepped up to all annotators by Spearman and Brown, 2 r / (1 + r); the estimate is their mean. The
    interval is the percentile bootstrap over items, each resample with a random halving of its own, so it holds both
    sources of chance. `n` counts items. Fewer than three items, or fewer than two annotators: `not_identified`.

    >>> truth = np.arange(8.0)
    >>> scores = truth + np.random.default_rng(0).normal(0, 0.1, (10, 8))
    >>> split_half_reliability(scores, rng=np.random.default_rng(1)).estimate > 0.99
    True
    """
    refuse_level(level)
    table = matrix(scores, "scores")
    here = ~np.isnan(table)
    table = table[here.any(axis=1)][:, here.any(axis=0)]
    here = ~np.isnan(table)
    n_annotators, n_items = table.shape
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "split-half reliability of the items' means (Spearman-Brown)",
        "unit": unit,
        "mode": mode,
        "n": n_items,
        "n_rows": int(here.sum()),
        "settings": {"level": level, "splits": splits, "resamples": resamples},
        "detail": {"n_annotators": n_annotators},
    }
    if table.size == 0:
        return Estimate(status="no_data", reason="no score to analyse", **common)
    if n_items < 3 or n_annotators < 2:
        return Estimate(status="not_identified", reason="needs three items and two annotators", **common)
    filled, ones = np.where(here, table, 0.0), here.astype(np.float64)
    first, second = _halves(filled, ones, max(splits, 1), rng)
    correlations = _weighted_correlations(first, second, np.ones((len(first), n_items)))
    defined = _stepped_up(correlations)
    defined = defined[np.isfinite(defined)]
    if len(defined) <= len(first) / 2:
        return Estimate(status="not_identified", reason="the halves share too few items that differ", **common)
    first, second = _halves(filled, ones, resamples, rng)
    weights = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=resamples).astype(np.float64)
    draws = _stepped_up(_weighted_correlations(first, second, weights))
    finite = draws[np.isfinite(draws)]
    warnings: tuple[Warning, ...] = ()
    if len(finite) < resamples:
        warnings = (Warning("undefined_resamples", "warn", {"share": 1 - len(finite) / resamples}),)
    interval = percentile_interval(finite, level) if len(finite) > resamples / 2 else None
    return Estimate(estimate=float(np.mean(defined)), interval=interval, warnings=warnings, **common)


def _scale(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct values, ascending, and the place of each rating among them."""
    whole = values.astype(np.int64)
    if len(values) and np.array_equal(whole, values):
        places, n_values = codes(whole, "values", len(values))
        found = np.empty(n_values)
        found[places] = values
        return found, places
    found, places = np.unique(values, return_inverse=True)
    return found, np.asarray(places, dtype=np.int64)


def _patterns(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows and how many units have each: a bootstrap then costs the same for a million ratings."""
    base = int(table.max()) + 1
    if base ** table.shape[1] < 2**62:
        keys = table.astype(np.int64) @ (base ** np.arange(table.shape[1], dtype=np.int64))
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return table[first], np.asarray(counts, dtype=np.int64)
    rows, counts = np.unique(table, axis=0, return_counts=True)
    return rows, np.asarray(counts, dtype=np.int64)


def _alphas(patterns: FloatArray, scale: FloatArray, weights: FloatArray, level_of_measurement: str) -> FloatArray:
    """Alpha for each row of `weights` (n_resamples, n_patterns); NaN where no disagreement was possible."""
    per_unit = patterns.sum(axis=1)
    marginals = weights @ patterns
    total = marginals.sum(axis=1)
    if level_of_measurement == "ordinal":
        ranks = np.cumsum(marginals, axis=1) - marginals / 2
        # sum_ck n_c n_k (r_c - r_k)^2 = 2 (m sum_c n_c r_c^2 - (sum_c n_c r_c)^2): no table of pairs is needed.
        squares, linear = patterns @ (ranks**2).T, patterns @ ranks.T
        spread = 2 * (per_unit[:, None] * squares - linear**2) / (per_unit - 1)[:, None]
        observed = np.einsum("bp,pb->b", weights, spread)
        expected = 2 * (total * np.sum(marginals * ranks**2, axis=1) - np.sum(marginals * ranks, axis=1) ** 2)
    else:
        distances = _distances(scale, level_of_measurement)
        spread = np.sum((patterns @ distances) * patterns, axis=1) / (per_unit - 1)
        observed = weights @ spread
        expected = np.sum((marginals @ distances) * marginals, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas = 1 - (total - 1) * observed / expected
    return np.where(expected > DEGENERATE * np.maximum(1.0, total**2), alphas, np.nan)


def _distances(scale: FloatArray, level_of_measurement: str) -> FloatArray:
    if level_of_measurement == "nominal":
        return 1.0 - np.eye(len(scale))
    difference = scale[:, None] - scale[None, :]
    if level_of_measurement == "interval":
        # Divided by the range, so that what counts as no disagreement does not depend on the unit of the scale.
        span = float(scale[-1] - scale[0]) if len(scale) > 1 else 1.0
        return np.asarray((difference / span) ** 2, dtype=np.float64)
    sums = scale[:, None] + scale[None, :]
    return np.asarray(np.where(sums > 0, difference / np.where(sums > 0, sums, 1.0), 0.0) ** 2, dtype=np.float64)


def _halves(
    filled: FloatArray, ones: FloatArray, splits: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The items' means in the two halves of `splits` random halvings; NaN where a half did not score an item."""
    n_annotators = len(filled)
    order = np.argsort(rng.random((splits, n_annotators)), axis=1)
    # With an odd number the extra annotator falls to either half, so neither is systematically the larger.
    size = n_annotators // 2 + (rng.integers(0, 2, size=splits) if n_annotators % 2 else np.zeros(splits, dtype=int))
    in_first = (order < size[:, None]).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        first = (in_first @ filled) / (in_first @ ones)
        second = ((1 - in_first) @ filled) / ((1 - in_first) @ ones)
    return first, second


def _weighted_correlations(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    """Pearson's correlation of each row over its items, weighted; NaN under three items or without variance."""
    usable = ~np.isnan(first) & ~np.isnan(second)
    weight = np.where(usable, weights, 0.0)
    x, y = np.where(usable, first, 0.0), np.where(usable, second, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weight.sum(axis=1, keepdims=True)
        x = x - (weight * x).sum(axis=1, keepdims=True) / total
        y = y - (weight * y).sum(axis=1, keepdims=True) / total
        spread_x, spread_y = (weight * x * x).sum(axis=1), (weight * y * y).sum(axis=1)
        correlation = (weight * x * y).sum(axis=1) / np.sqrt(spread_x * spread_y)
    varies = (spread_x > DEGENERATE) & (spread_y > DEGENERATE) & ((weight > 0).sum(axis=1) >= 3)
    return np.where(varies, correlation, np.nan)


def _stepped_up(correlations: FloatArray) -> FloatArray:
    # A correlation near -1 would step up to minus infinity; such halves simply do not agree.
    with np.errstate(invalid="ignore", divide="ignore"):
        stepped = 2 * correlations / (1 + correlations)
    return np.where(np.isnan(correlations), np.nan, np.maximum(stepped, -1.0))
