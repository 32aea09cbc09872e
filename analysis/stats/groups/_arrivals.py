"""Whether conditions were filled at the same time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import vector
from analysis.stats.results import Estimate, HypothesisTest, Record

# With a smaller condition, the chi-square approximation of the rank test is poor.
SMALL_CONDITION = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals(Record):
    """The mean `places` of conditions in the order of arrival, and the `test` that the order is the same in all of them."""

    places: tuple[Estimate, ...]
    test: Estimate


def arrival_order(
    arrivals: npt.ArrayLike,
    conditions: Sequence[str],
    *,
    rng: np.random.Generator,
    resamples: int = 9999,
) -> Arrivals:
    """Estimate the mean place of each condition in the order of arrival, and test that the orders are equal.

    Arrivals are times in any unit, because only their order counts; NaN is missing, and an infinite time is an error.
    Each place is a mean between 0 (first) and 1 (last), and .5 is expected: of n annotators, the one with rank r is at
    (r - 0.5) / n, and equal arrivals share their mean rank. The test is Kruskal and Wallis's H (1952) with its
    correction for ties, on k - 1 degrees of freedom; if a condition has fewer than five annotators, H is compared with
    `resamples` permuted arrivals: p = (1 + number as extreme) / (1 + resamples). Its estimate is epsilon squared
    (Kelley 1935), H / (n - 1), the share of the variance of ranks that is between conditions. The status of the test is
    `not_identified` with one condition, and `zero_variance` if all arrived together.

    >>> result = arrival_order([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], ["a"] * 5 + ["b"] * 5, rng=np.random.default_rng(1))
    >>> [place.estimate for place in result.places], round(result.test.pvalue, 3)
    ([0.25, 0.75], 0.009)
    """
    from scipy import special, stats

    times = vector(arrivals, "arrivals")
    if len(times) != len(conditions):
        raise ValueError(f"conditions: {len(conditions)} for {len(times)} arrivals")
    is_known = ~np.isnan(times)
    names, codes = np.unique(np.asarray(conditions, dtype=str)[is_known], return_inverse=True)
    n, sizes = int(is_known.sum()), np.bincount(codes, minlength=len(names))
    ranks = stats.rankdata(times[is_known])
    means = np.bincount(codes, weights=(ranks - 0.5) / n, minlength=len(names)) / sizes if n else np.empty(0)
    places = tuple(
        Estimate(
            analysis="arrival.place",
            estimand="mean place in the order of arrival",
            unit="annotator",
            n=int(size),
            n_rows=int(size),
            estimate=float(mean),
            settings={"condition": str(name)},
        )
        for name, size, mean in zip(names, sizes, means, strict=True)
    )
    common: dict[str, Any] = {
        "analysis": "arrival.order",
        "estimand": "epsilon squared",
        "unit": "annotator",
        "n": n,
        "n_rows": n,
        "settings": {"resamples": resamples},
    }

    def between(own_ranks: npt.NDArray[np.float64]) -> float:
        sums = np.bincount(codes, weights=own_ranks - (n + 1) / 2, minlength=len(names))
        return float(np.sum(sums**2 / sizes))

    if n == 0:
        return Arrivals(places=places, test=Estimate(status="no_data", reason="nobody arrived", **common))
    if len(names) < 2:
        return Arrivals(places=places, test=Estimate(status="not_identified", reason="needs two conditions", **common))
    variance = float(np.var(ranks, ddof=1))
    if variance == 0:
        return Arrivals(places=places, test=Estimate(status="zero_variance", reason="all arrived together", **common))
    statistic = between(ranks) / variance
    df: float | None = float(len(names) - 1)
    name, pvalue = "kruskal_wallis", float(special.chdtrc(df, statistic))
    if sizes.min() < SMALL_CONDITION:
        drawn = np.array([between(rng.permutation(ranks)) for _ in range(resamples)]) / variance
        n_extreme = int(np.sum(drawn >= statistic * (1 - 1e-9)))
        name, df, pvalue = "kruskal_wallis_permuted", None, (1 + n_extreme) / (1 + resamples)
    test = HypothesisTest(name=name, null=0.0, statistic=statistic, df=df, pvalue=pvalue, alternative="greater")
    return Arrivals(places=places, test=Estimate(estimate=statistic / (n - 1), test=test, **common))
