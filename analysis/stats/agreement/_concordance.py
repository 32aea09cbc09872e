"""Kendall's coefficient of concordance and Friedman's test."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from analysis.stats.arrays import MIN_SPREAD, FloatArray, matrix
from analysis.stats.results import Estimate, HypothesisTest


def kendall_w(scores: npt.ArrayLike) -> Estimate:
    """Estimate Kendall's W, the agreement of n rankings of K systems, and test it with Friedman's test.

    A row of `scores` (n, K) has one annotator's scores or ranks of all systems. Only the order within a row counts,
    ties get mid-ranks, and a row with a missing value is left out (`detail["n_incomplete"]`). With R_j the sum of ranks
    of system j and t the sizes of the ties, W = 12 sum_j (R_j - n (K + 1) / 2)^2 / (n^2 (K^3 - K) - n sum (t^3 - t)),
    from 0 (equal mean ranks) to 1 (identical rankings), without an interval (Kendall and Babington Smith 1939, The
    problem of m rankings). `detail["mean_rank_correlation"]` = (n W - 1) / (n - 1) is the mean of Spearman's
    correlations over pairs of rows (exact without ties). The hypothesis of the test (Friedman 1937) is that every order
    is equally likely within each row, with independent rows: chi2 = n (K - 1) W on K - 1 degrees of freedom. It says
    nothing about a pair. Without any agreement W is 1 / n on average, so it is too high with few rows.

    >>> result = kendall_w([[1, 2, 3], [1, 2, 3], [2, 1, 3], [1, 3, 2]])
    >>> round(result.estimate, 4), round(result.test.statistic, 2), result.test.df
    (0.5625, 4.5, 2.0)
    """
    table = matrix(scores, "scores")
    is_complete = ~np.isnan(table).any(axis=1)
    ranks: FloatArray = np.asarray(stats.rankdata(table[is_complete], axis=1), dtype=np.float64)
    n, k = ranks.shape
    detail: dict[str, Any] = {"n_incomplete": int((~is_complete).sum()), "n_systems": k}
    common: dict[str, Any] = {
        "analysis": "ranking.friedman",
        "estimand": "Kendall's W",
        "unit": "annotator",
        "mode": "paper",
        "n": n,
        "n_rows": n * k,
        "detail": detail,
    }
    if n == 0:
        return Estimate(status="no_data", reason="no complete ranking", **common)
    if n < 2 or k < 2:
        return Estimate(status="n_lt_2", reason="agreement needs two rankings and two systems", **common)
    detail["mean_ranks"] = ranks.mean(axis=0)
    ties = sum(float(np.sum(counts**3 - counts)) for counts in (np.unique(row, return_counts=True)[1] for row in ranks))
    possible = n**2 * (k**3 - k) - n * ties
    if possible < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="every ranking ties all systems", **common)
    estimate = 12 * float(np.sum((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2)) / possible
    detail["mean_rank_correlation"] = (n * estimate - 1) / (n - 1)
    statistic = n * (k - 1) * estimate
    test = HypothesisTest(
        name="friedman",
        null=0.0,
        statistic=statistic,
        pvalue=float(special.chdtrc(k - 1, statistic)),
        df=float(k - 1),
        alternative="greater",
    )
    return Estimate(estimate=estimate, test=test, **common)
