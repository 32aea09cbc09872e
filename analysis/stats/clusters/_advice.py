"""What would narrow an interval by bets."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.stats.arrays import FloatArray
from analysis.stats.confidence import GRID, STAKE_LEVEL, BettingCurve
from analysis.stats.results import Interval, ResultWarning
from analysis.stats.unit_bets import final_log_wealth_of_ratio

# How many times as many clusters are tried, and the ratio of widths that counts as narrower.
TIMES = (2, 4)
NARROWER = 0.8


def betting_warning(
    why: str,
    skewness: float,
    interval: Interval,
    bounds: tuple[float, float],
    ways: Sequence[tuple[str, FloatArray, FloatArray]],
) -> ResultWarning:
    """Warning that bets replace the t test, with the number of clusters that would narrow their interval.

    Parameters
    ----------
    why : {"no spread", "skewed", "few clusters"}
        Why no t interval is valid.
    skewness : float
        Skewness that the ends of the scale do not explain.
    interval : Interval
        The interval by bets.
    bounds : tuple[float, float]
        Ends of the scale.
    ways : sequence of tuple[str, ndarray, ndarray]
        Name of a cluster of each kind, and the sums of values and the sizes of the clusters.

    Returns
    -------
    ResultWarning
        `betting_instead_of_t`. Its detail has `width`, the part of the scale that the interval covers; `needed`, the number of
        clusters of each kind of which more would be needed; and `width_with_needed`, the part that the interval would then
        cover. `is_narrower` is False if it would hardly be narrower with four times as many.

    Notes
    -----
    Bets count units that share no cluster, so there are as many as the rarer kind has clusters. Bets on these clusters, each
    of them two or four times, say by how much more of them narrow the interval. More of the other kind alone add no unit.

    Examples
    --------
    >>> always = Interval(0.95, 0.7, 1.0, "betting")
    >>> ways = [("annotator", np.full(30, 5.0), np.full(30, 5.0)), ("item", np.full(12, 12.5), np.full(12, 12.5))]
    >>> found = betting_warning("no spread", 0.0, always, (0.0, 1.0), ways)
    >>> found.detail["needed"], found.detail["width_with_needed"] < found.detail["width"]
    ({'item': 24}, True)
    """
    low, high = bounds
    _, sums, sizes = min(ways, key=lambda way: len(way[1]))
    means = np.sort(np.clip((sums / sizes - low) / (high - low), 0.0, 1.0))
    shares = (sizes / sizes.max())[np.argsort(sums / sizes, kind="stable")]
    width = (interval.high - interval.low) / (high - low)
    now = _width(means, shares, interval.level)
    detail: dict[str, Any] = {"why": why, "skewness": skewness, "width": width, "is_narrower": False}
    for times in TIMES:
        ratio = _width(np.tile(means, times), np.tile(shares, times), interval.level) / now
        goal = times * len(means)
        detail["needed"] = {name: goal for name, of_kind, _ in ways if len(of_kind) < goal}
        detail["width_with_needed"] = min(1.0, ratio) * width
        if ratio <= NARROWER:
            detail["is_narrower"] = True
            break
    return ResultWarning("betting_instead_of_t", "warn", detail)


def _width(means: FloatArray, shares: FloatArray, level: float) -> float:
    order = np.random.default_rng(0).permutation(len(means))
    wealth = final_log_wealth_of_ratio(means[order], shares[order], np.linspace(0.0, 1.0, GRID), STAKE_LEVEL)
    estimate = float(np.average(means, weights=shares))
    found = BettingCurve(estimate, tuple(wealth.tolist()), (0.0, 1.0)).interval(level)
    return found.high - found.low
