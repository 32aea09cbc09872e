"""The stability of a score over days."""

from typing import Any

import numpy as np

from analysis.stats import clusters, ranks
from analysis.stats.results import Estimate, HypothesisTest, Interval


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
