"""Resampling of units, from their sums and counts instead of rows.

Rows of one annotator are not independent, so annotators are resampled. One draw of weights for all annotators
serves every mean of a report as one matrix product. The cost does not grow with the number of rows.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic, betting
from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    group_sizes,
    group_sums,
    label_codes_where,
    matrix,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.results import Estimate, Interval, ResultWarning

RESAMPLES = 9999
BLOCK = 512


def multinomial_weights(n_units: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield how often each unit appears in each bootstrap sample, in blocks of shape (up to 512, n_units).

    >>> sum(block.shape[0] for block in multinomial_weights(5, 1000, np.random.default_rng(0)))
    1000
    """
    for start in range(0, resamples, BLOCK):
        size = min(BLOCK, resamples - start)
        drawn = rng.integers(0, n_units, size=(size, n_units))
        drawn += np.arange(size)[:, None] * n_units
        yield np.bincount(drawn.ravel(), minlength=size * n_units).reshape(size, n_units).astype(np.float64)


def dirichlet_weights(n_units: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield weights of the Bayesian bootstrap (standard exponentials), in blocks of shape (up to 512, n_units).

    The weights are not divided by their sum. Reference: Rubin 1981, The Bayesian bootstrap.

    >>> next(dirichlet_weights(3, 2, np.random.default_rng(0))).shape
    (2, 3)
    """
    for start in range(0, resamples, BLOCK):
        yield rng.standard_exponential(size=(min(BLOCK, resamples - start), n_units))


def ratio_draws(sums: npt.ArrayLike, counts: npt.ArrayLike, weights: Iterator[FloatArray]) -> FloatArray:
    """Resampled means of several columns: (weights @ sums) / (weights @ counts), NaN if nothing was drawn.

    `sums` and `counts` (n_units, n_columns) are each unit's part of the numerator and the denominator, 0 and 0 if it
    has none. Return shape (resamples, n_columns).

    >>> weights = iter([np.array([[2.0, 0.0], [1.0, 1.0]])])
    >>> ratio_draws([[1.0], [3.0]], [[1.0], [2.0]], weights).ravel().round(4).tolist()
    [1.0, 1.3333]
    """
    numerators, denominators = matrix(sums, "sums"), matrix(counts, "counts")
    if numerators.shape != denominators.shape:
        raise ValueError(f"counts: shape {denominators.shape} where sums has {numerators.shape}")
    # Where nobody missed a question all columns share one denominator, and multiplying it once halves the work.
    kinds: dict[bytes, int] = {}
    kind = [kinds.setdefault(column.tobytes(), len(kinds)) for column in np.ascontiguousarray(denominators.T)]
    distinct = denominators[:, [kind.index(number) for number in range(len(kinds))]]
    draws = []
    for block in weights:
        with np.errstate(invalid="ignore", divide="ignore"):
            draws.append((block @ numerators) / (block @ distinct)[:, kind])
    return np.concatenate(draws)


def bootstrap_ratios(sums: FloatArray, counts: FloatArray, *, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Resampled ratios sum(sums) / sum(counts) over units of shape (n_units,); shape (resamples,).

    If many units are equal, only the number of each kind is drawn, so the cost does not grow with the units.

    >>> draws = bootstrap_ratios(np.array([0.0, 1.0, 1.0, 0.0] * 50), np.ones(200), resamples=999, rng=np.random.default_rng(0))
    >>> draws.shape, bool(abs(draws.std() - 0.5 / 200**0.5) < 0.003)
    ((999,), True)
    """
    n_units = len(sums)
    if np.all(counts == counts[0]):
        kinds, times = np.unique(sums, return_counts=True)
        denominators = np.full(len(kinds), counts[0])
    else:
        pairs, times = np.unique(np.stack([sums, counts], axis=1), axis=0, return_counts=True)
        kinds, denominators = pairs[:, 0], pairs[:, 1]
    if 2 * len(kinds) > n_units:
        return ratio_draws(sums[:, None], counts[:, None], multinomial_weights(n_units, resamples, rng))[:, 0]
    shares = times / n_units
    drawn = (
        rng.multinomial(n_units, shares, size=min(BLOCK, resamples - start)).astype(np.float64)
        for start in range(0, resamples, BLOCK)
    )
    return ratio_draws(kinds[:, None], denominators[:, None], drawn)[:, 0]


def percentile_interval(draws: FloatArray, level: float = 0.95) -> Interval | None:
    """Percentile bootstrap interval: numpy's linear quantiles of the draws; None if draws are undefined.

    Reference: Genie (Khashabi et al. 2021), section 4, for a leaderboard's means.

    >>> interval = percentile_interval(np.arange(101.0))
    >>> round(interval.low, 6), interval.high
    (2.5, 97.5)
    """
    validate_level(level)
    if len(draws) == 0 or not np.isfinite(draws).all():
        return None
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(level, float(low), float(high), "percentile")


def percentile_estimate(draws: FloatArray, *, level: float, **common: Any) -> Estimate:
    """Build an estimate with the percentile interval of its resamples; `common` has the other fields.

    Undefined resamples (NaN) are left out with the warning `undefined_resamples`, because leaving out many narrows
    the interval. If half are undefined, there is no interval. If all resamples are equal: `zero_variance`.

    >>> common = {"analysis": "a", "estimand": "share", "unit": "comment", "n": 9, "estimate": 0.5}
    >>> percentile_estimate(np.array([0.5, 0.5, np.nan]), level=0.95, **common).status
    'zero_variance'
    """
    defined = draws[np.isfinite(draws)]
    warnings: tuple[ResultWarning, ...] = common.pop("warnings", ())
    if len(defined) < len(draws):
        warnings = (*warnings, ResultWarning("undefined_resamples", "warn", {"share": 1 - len(defined) / len(draws)}))
    if len(defined) and float(np.ptp(defined)) < MIN_SPREAD:
        reason = "all resamples give the same value"
        return Estimate(status="zero_variance", reason=reason, warnings=warnings, **common)
    interval = percentile_interval(defined, level) if len(defined) > len(draws) / 2 else None
    return Estimate(interval=interval, warnings=warnings, **common)


def bca_interval(estimate: float, draws: FloatArray, jackknife: FloatArray, level: float = 0.95) -> Interval | None:
    """Bias-corrected and accelerated bootstrap interval; None if it is undefined (constant data).

    `jackknife` has the estimate without each unit in turn. z0 is the normal quantile of the share of draws below the
    estimate (ties count half), a = sum(d^3) / (6 sum(d^2)^1.5), d = mean(jackknife) - jackknife. The interval uses
    the quantiles Phi(z0 + (z0 + z) / (1 - a (z0 + z))).

    Reference: Efron 1987, Better bootstrap confidence intervals.

    >>> bca_interval(1.0, np.ones(10), np.ones(5)) is None
    True
    """
    validate_level(level)
    if len(draws) == 0 or not np.isfinite(draws).all() or not np.isfinite(jackknife).all():
        return None
    share = (float(np.mean(draws < estimate)) + float(np.mean(draws <= estimate))) / 2
    distance = np.mean(jackknife) - jackknife
    spread = float(np.sum(distance**2))
    if not 0 < share < 1 or spread < MIN_SPREAD**2:
        return None
    bias = float(special.ndtri(share))
    acceleration = float(np.sum(distance**3)) / (6 * spread**1.5)
    ends = []
    for probability in ((1 - level) / 2, (1 + level) / 2):
        z = bias + float(special.ndtri(probability))
        shrink = 1 - acceleration * z
        if shrink <= 0:
            return None
        ends.append(float(special.ndtr(bias + z / shrink)))
    low, high = np.quantile(draws, ends)
    return Interval(level, float(low), float(high), "bca")


def leave_one_out_ratios(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the ratio sum(sums) / sum(counts) without each unit in turn; shape (n_units,).

    >>> leave_one_out_ratios(np.array([1.0, 2.0, 6.0]), np.ones(3)).tolist()
    [4.0, 3.5, 1.5]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((np.sum(sums) - sums) / (np.sum(counts) - counts))


def interval_from_draws(
    estimate: float, draws: FloatArray, sums: FloatArray, counts: FloatArray, *, method: str, level: float
) -> Interval | None:
    """Interval of one ratio by `method` ("bca" or "percentile"). BCa falls back to percentile, then to None.

    >>> interval_from_draws(1.0, np.ones(9), np.ones(3), np.ones(3), method="bca", level=0.95) is None
    True
    """
    if method not in ("bca", "percentile"):
        raise ValueError(f"method: {method!r} is neither bca nor percentile")
    interval = None
    if method == "bca":
        here = counts > 0
        interval = bca_interval(estimate, draws, leave_one_out_ratios(sums[here], counts[here]), level)
    if interval is None:
        interval = percentile_interval(draws, level)
    if interval is None or interval.high - interval.low < MIN_SPREAD:
        return None
    return interval


def bootstrap_mean(
    values: npt.ArrayLike,
    *,
    clusters: npt.ArrayLike | None = None,
    method: str = "bca",
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    bounds: tuple[float, float] | None = None,
    analysis: str = "bootstrap_mean",
    estimand: str = "mean",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Mean of the values with a bootstrap interval over clusters (annotators).

    `values` (n_rows,), NaN is missing; `clusters` is the label of each row's cluster (None: each row is a cluster).
    Clusters are resampled with all their rows, so the mean is label-weighted. Constant data within `bounds` get a
    betting interval over the clusters. So do data with nine in ten answers equal and fewer than 100 clusters (warning
    `ceiling`).

    >>> result = bootstrap_mean([0, 0.25, 0.5, 1, 1, 0.75], rng=np.random.default_rng(0), resamples=999)
    >>> round(result.estimate, 4), result.interval.method
    (0.5833, 'bca')
    """
    validate_level(level)
    array = vector(values, "values")
    labels = np.arange(len(array)) if clusters is None else np.asarray(clusters)
    here = ~np.isnan(array)
    kept = array[here]
    if bounds is not None:
        validate_within_bounds(kept, bounds, "values")
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n_rows": len(kept),
        "settings": {"method": method, "level": level, "resamples": resamples, "bounds": bounds},
    }
    if len(kept) == 0:
        return Estimate(n=0, status="no_data", reason="no value to analyse", **common)
    positions, n_clusters = label_codes_where(labels, "clusters", here)
    sums = group_sums(positions, kept, n_clusters)
    counts = group_sizes(positions, n_clusters)
    mean = float(np.mean(kept))
    common |= {"n": n_clusters, "n_clusters": n_clusters, "estimate": mean, "detail": {"n_missing": int((~here).sum())}}
    if n_clusters == 1:
        return Estimate(status="n_lt_2", reason="one cluster has no spread", **common)
    draws = bootstrap_ratios(sums, counts, resamples=resamples, rng=rng)
    interval = interval_from_draws(mean, draws, sums, counts, method=method, level=level)
    bet = None if bounds is None else betting.ratio_interval(sums, counts, level=level, bounds=bounds)
    if interval is None:
        return Estimate(status="zero_variance", reason="all resamples have the same mean", interval=bet, **common)
    warnings: tuple[ResultWarning, ...] = ()
    if (
        bet is not None
        and n_clusters < basic.CEILING_N
        and basic.most_frequent_value_share(kept) >= basic.CEILING_SHARE
    ):
        detail = {f"{interval.method}_low": interval.low, f"{interval.method}_high": interval.high}
        warnings = (
            ResultWarning("ceiling", "warn", {"largest_share": basic.most_frequent_value_share(kept), **detail}),
        )
        interval = bet
    return Estimate(interval=interval, warnings=warnings, **common)


def posterior_probability_above(draws: FloatArray, null: float) -> float:
    """Share of Bayesian bootstrap draws above `null`; a draw equal to it counts half.

    >>> posterior_probability_above(np.array([0.4, 0.5, 0.6, 0.7]), 0.5)
    0.625
    """
    return (float(np.mean(draws > null)) + float(np.mean(draws >= null))) / 2


def bayesian_bootstrap_probability_above(
    values: npt.ArrayLike,
    *,
    null: float,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "bayesian_bootstrap",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Posterior probability that the mean exceeds `null`, by the Bayesian bootstrap.

    `values` (n,) has one value per unit. Weights come from a flat Dirichlet distribution; nothing else is assumed.
    The probability is not 1 - p, and there is no test. `detail` has the credible interval of the mean.

    >>> result = bayesian_bootstrap_probability_above([0.6, 0.7, 0.5, 0.9], null=0.5, rng=np.random.default_rng(0), resamples=999)
    >>> result.estimate
    1.0
    """
    array = vector(values, "values")
    kept = array[~np.isnan(array)]
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"posterior probability that the mean exceeds {null:g}",
        "unit": unit,
        "mode": mode,
        "n_rows": len(kept),
        "settings": {"null": null, "level": level, "resamples": resamples},
    }
    edge = basic.degenerate_estimate(kept, **{key: value for key, value in common.items() if key != "n_rows"})
    if edge is not None:
        # The law's estimate is a mean; here it would be read as a probability.
        return Estimate(n=len(kept), status=edge.status, reason=edge.reason, **common)
    draws = ratio_draws(kept[:, None], np.ones((len(kept), 1)), dirichlet_weights(len(kept), resamples, rng))[:, 0]
    return posterior_probability_estimate(draws, n=len(kept), null=null, level=level, common=common)


def posterior_probability_estimate(
    draws: FloatArray, *, n: int, null: float, level: float, common: dict[str, Any]
) -> Estimate:
    """Build the estimate of `bayesian_bootstrap` from existing draws; `common` has the other fields.

    >>> common = {"analysis": "a", "estimand": "b", "unit": "annotator"}
    >>> posterior_probability_estimate(np.array([0.6, 0.7]), n=2, null=0.5, level=0.95, common=common).estimate
    1.0
    """
    credible = percentile_interval(draws, level)
    ends = {} if credible is None else {"level": level, "low": credible.low, "high": credible.high}
    return Estimate(n=n, estimate=posterior_probability_above(draws, null), detail={"mean_credible": ends}, **common)


def monte_carlo_error(share: float, resamples: int) -> float:
    """Standard error of a share of resamples, sqrt(p (1 - p) / B).

    >>> round(monte_carlo_error(0.05, 9999), 5)
    0.00218
    """
    return math.sqrt(share * (1 - share) / resamples)
