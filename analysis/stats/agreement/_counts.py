"""Tables of counts: checked, reduced to their distinct rows, resampled by units."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, matrix
from analysis.stats.bootstrap import percentile_estimate
from analysis.stats.results import Estimate


def patterns_of(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows and how many units have each: a bootstrap then costs the same for a million ratings."""
    base = int(table.max()) + 1
    if base ** table.shape[1] < 2**62:
        keys = table.astype(np.int64) @ (base ** np.arange(table.shape[1], dtype=np.int64))
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return table[first], np.asarray(counts, dtype=np.int64)
    rows, counts = np.unique(table, axis=0, return_counts=True)
    return rows, np.asarray(counts, dtype=np.int64)


def checked_counts(counts: npt.ArrayLike) -> FloatArray:
    """`counts` as a table of floats; raises ValueError for what counts nothing."""
    table = matrix(counts, "counts")
    if np.isnan(table).any() or np.any(table < 0) or np.any(table != np.round(table)):
        raise ValueError("counts: only whole, non-negative numbers count ratings")
    return table


def not_pairable(table: FloatArray, detail: dict[str, Any], common: dict[str, Any]) -> Estimate:
    """What is said where no unit has two ratings."""
    is_empty = len(table) == 0 or float(table.sum()) == 0
    status = "no_data" if is_empty else "not_identified"
    return Estimate(status=status, reason="no unit has two ratings", detail=detail, **common)


def resampled_units(
    estimate: float,
    weights: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    rng: np.random.Generator,
    **common: Any,
) -> Estimate:
    """The estimate with the percentile interval over resampled units; `weights` counts the units of each pattern."""
    n_units, level, resamples = int(weights.sum()), common["settings"]["level"], common["settings"]["resamples"]
    common |= {"estimate": estimate, "n_clusters": n_units}
    if n_units < 2:
        return Estimate(status="n_lt_2", reason="one unit has no spread", **common)
    drawn = rng.multinomial(n_units, weights / n_units, size=resamples).astype(np.float64)
    return percentile_estimate(statistic(drawn), level=level, **common)


def mean_agreement(patterns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean agreement of pairs of raters (n_resamples,) and the categories' shares (n_resamples, k)."""
    per_unit = patterns.sum(axis=1)
    agreeing = (np.sum(patterns**2, axis=1) - per_unit) / (per_unit * (per_unit - 1))
    n_units = weights.sum(axis=1)
    return weights @ agreeing / n_units, weights @ (patterns / per_unit[:, None]) / n_units[:, None]
