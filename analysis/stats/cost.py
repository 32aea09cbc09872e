"""The hourly wage at the median time of a label. Money is in the study's currency."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    label_codes_where,
    validate_level,
    validate_non_negative,
    vector,
)
from analysis.stats.results import Estimate, Interval, ResultWarning

SECONDS_AN_HOUR = 3600.0


def median_hourly_wage(
    elapsed_seconds: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    pay_per_label: float,
    target: float | None = None,
    level: float = 0.95,
    analysis: str = "cost.hourly_wage",
) -> Estimate:
    """Hourly wage at the median time of a label: 3600 pay / median.

    Parameters
    ----------
    elapsed_seconds : array_like, shape (n_labels,)
        Time of each label; NaN is missing. 0 seconds or less is left out and counted.
    annotators : array_like, shape (n_labels,)
        Label of each row's annotator.
    pay_per_label : float
        Pay for one label.
    target : float, optional
        Lowest acceptable hourly wage. Below it: warning `below_target_wage` (severity block).
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The wage. The sensitivity is the wage of the median annotator, with the exact interval by order statistics.
        `detail["share_below"]` is the share of annotators below `target`.

    Examples
    --------
    >>> result = median_hourly_wage([30, 40, 60, 50], ["a", "a", "b", "b"], pay_per_label=0.25, target=18)
    >>> result.estimate, result.n, result.detail["share_below"], result.has_warning("below_target_wage")
    (20.0, 4, 0.5, False)
    """
    validate_level(level)
    validate_non_negative(pay=pay_per_label)
    if target is not None:
        validate_non_negative(target=target)
    seconds = vector(elapsed_seconds, "elapsed_seconds")
    is_timed = seconds > 0
    timed = seconds[is_timed]
    positions, n_annotators = label_codes_where(annotators, "annotators", is_timed)
    n_missing = int(np.isnan(seconds).sum())
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "pay by the hour at the median time of a label",
        "unit": "label",
        "n": len(timed),
        "n_clusters": n_annotators,
        "n_rows": len(timed),
        "settings": {"pay": pay_per_label, "target": target, "level": level},
    }
    counts = {"n_missing": n_missing, "n_without_time": len(seconds) - len(timed) - n_missing}
    if len(timed) == 0:
        return Estimate(status="no_data", reason="no label has a time", detail=counts, **common)
    median = float(np.median(timed))
    wage = pay_per_label * SECONDS_AN_HOUR / median
    own = pay_per_label * SECONDS_AN_HOUR / _medians(timed, positions, n_annotators)
    below = None if target is None else float(np.mean(own < target))
    warnings = []
    if target is not None and wage < target:
        warnings.append(ResultWarning("below_target_wage", "block", {"wage": wage, "target": target}))
    ends = _median_interval(own, level)
    by_annotator = Estimate(
        analysis=f"{analysis}.annotators",
        estimand="pay by the hour of the median annotator",
        unit="annotator",
        n=n_annotators,
        n_rows=len(timed),
        estimate=float(np.median(own)),
        interval=ends,
        settings={"level": level},
    )
    return Estimate(
        estimate=wage,
        sensitivity=(by_annotator,),
        warnings=tuple(warnings),
        detail={"median_seconds": median, "share_below": below, **counts},
        **common,
    )


def _medians(values: FloatArray, positions: IntArray, n_groups: int) -> FloatArray:
    order = np.lexsort((values, positions))
    ordered = values[order]
    sizes = np.bincount(positions, minlength=n_groups)
    start = np.cumsum(sizes) - sizes
    return np.asarray((ordered[start + (sizes - 1) // 2] + ordered[start + sizes // 2]) / 2)


def _median_interval(values: FloatArray, level: float) -> Interval | None:
    """Return the order statistics that contain the median with at least `level`, or None for too few values."""
    n = len(values)
    tail = (1 - level) / 2
    counts = np.arange(n + 1)
    below = special.bdtr(counts, n, 0.5)
    # The largest r with P(fewer than r of n lie below the median) <= tail.
    r = int(np.sum(below <= tail))
    if r == 0:
        return None
    ordered = np.sort(values)
    return Interval(level, float(ordered[r - 1]), float(ordered[n - r]), "order_statistics")
