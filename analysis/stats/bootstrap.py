"""Bootstrap and Bayesian bootstrap, computed from sums and counts of units instead of rows.

Rows of one annotator are not independent, so annotators are resampled. One draw of weights for all annotators
serves every mean of a report as one matrix product. The cost does not grow with the number of rows.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import MIN_SPREAD, FloatArray, matrix, validate_level
from analysis.stats.results import Estimate, Interval, ResultWarning

# Draws of bootstrap weights, and ratios over them.


RESAMPLES = 9999
BLOCK = 512


def multinomial_weights(n_units: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield how often each unit is drawn in each bootstrap sample.

    Each array has a block of samples, of shape (up to 512, n_units); all blocks together have `resamples` rows.

    >>> sum(block.shape[0] for block in multinomial_weights(5, 1000, np.random.default_rng(0)))
    1000
    """
    for start in range(0, resamples, BLOCK):
        size = min(BLOCK, resamples - start)
        drawn = rng.integers(0, n_units, size=(size, n_units))
        drawn += np.arange(size)[:, None] * n_units
        yield np.bincount(drawn.ravel(), minlength=size * n_units).reshape(size, n_units).astype(np.float64)


def unnormalised_dirichlet_weights(n_units: int, resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield weights of the Bayesian bootstrap: standard exponentials that are not divided by their sum.

    Each yield is a block of draws with the shape (up to 512, n_units), and all blocks together have `resamples` draws.
    The method is that of Rubin 1981, The Bayesian bootstrap.

    >>> next(unnormalised_dirichlet_weights(3, 2, np.random.default_rng(0))).shape
    (2, 3)
    """
    for start in range(0, resamples, BLOCK):
        yield rng.standard_exponential(size=(min(BLOCK, resamples - start), n_units))


def ratio_draws(sums: npt.ArrayLike, counts: npt.ArrayLike, weights: Iterator[FloatArray]) -> FloatArray:
    """Compute resampled ratios of several columns: (weights @ sums) / (weights @ counts).

    `sums` and `counts`, of one shape (n_units, n_columns), are each unit's part of the numerator and the denominator, 0
    and 0 if it has none. `weights` yields arrays (block, n_units), for example those of `multinomial_weights`. The
    ratios have the shape (resamples, n_columns), with NaN if nothing was drawn. Different shapes raise ValueError.

    >>> weights = iter([np.array([[2.0, 0.0], [1.0, 1.0]])])
    >>> ratio_draws([[1.0], [3.0]], [[1.0], [2.0]], weights).ravel().round(4).tolist()
    [1.0, 1.3333]
    """
    numerators, denominators = matrix(sums, "sums"), matrix(counts, "counts")
    if numerators.shape != denominators.shape:
        raise ValueError(f"counts: shape {denominators.shape} where sums has {numerators.shape}")
    # Without missing answers all columns share one denominator; computing it once halves the work.
    kinds: dict[bytes, int] = {}
    kind = [kinds.setdefault(column.tobytes(), len(kinds)) for column in np.ascontiguousarray(denominators.T)]
    distinct = denominators[:, [kind.index(number) for number in range(len(kinds))]]
    draws = []
    for block in weights:
        with np.errstate(invalid="ignore", divide="ignore"):
            draws.append((block @ numerators) / (block @ distinct)[:, kind])
    return np.concatenate(draws)


def monte_carlo_error(share: float, resamples: int) -> float:
    """Return the standard error of a share p of B resamples, sqrt(p (1 - p) / B).

    >>> round(monte_carlo_error(0.05, 9999), 5)
    0.00218
    """
    return math.sqrt(share * (1 - share) / resamples)


# Intervals from resampled estimates.


def percentile_interval(draws: FloatArray, level: float = 0.95) -> Interval | None:
    """Compute the percentile bootstrap interval: numpy's linear quantiles of the draws.

    `draws` are the resampled estimates. The result is None if a draw is undefined (NaN) or there are none. Genie
    (Khashabi et al. 2021), section 4, uses this interval for a leaderboard's means.

    >>> interval = percentile_interval(np.arange(101.0))
    >>> round(interval.low, 6), interval.high
    (2.5, 97.5)
    """
    validate_level(level)
    if len(draws) == 0 or not np.isfinite(draws).all():
        return None
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Interval(level, float(low), float(high), "percentile")


def estimate_with_percentile_interval(draws: FloatArray, *, level: float, **estimate_fields: Any) -> Estimate:
    """Build an estimate with the percentile interval of its resamples.

    `draws` are the resampled estimates, with NaN for undefined, and `estimate_fields` are the other fields of the
    estimate. Undefined resamples are left out with the warning `undefined_resamples`, because leaving out many narrows
    the interval. If half are undefined, there is no interval. If all are equal, the status is `zero_variance`.

    >>> common = {"analysis": "a", "estimand": "share", "unit": "comment", "n": 9, "estimate": 0.5}
    >>> estimate_with_percentile_interval(np.array([0.5, 0.5, np.nan]), level=0.95, **common).status
    'zero_variance'
    """
    defined = draws[np.isfinite(draws)]
    warnings: tuple[ResultWarning, ...] = estimate_fields.pop("warnings", ())
    if len(defined) < len(draws):
        warnings = (*warnings, ResultWarning("undefined_resamples", "warn", {"share": 1 - len(defined) / len(draws)}))
    if len(defined) and float(np.ptp(defined)) < MIN_SPREAD:
        reason = "all resamples give the same value"
        return Estimate(status="zero_variance", reason=reason, warnings=warnings, **estimate_fields)
    interval = percentile_interval(defined, level) if len(defined) > len(draws) / 2 else None
    return Estimate(interval=interval, warnings=warnings, **estimate_fields)


def bca_interval(estimate: float, draws: FloatArray, jackknife: FloatArray, level: float = 0.95) -> Interval | None:
    """Compute the bias-corrected and accelerated (BCa) bootstrap interval of an estimate.

    `draws` has the resampled estimates, and `jackknife` the estimate without each unit in turn. With z0 the normal
    quantile of the share of draws below the estimate (ties count half), d = mean(jackknife) - jackknife and a =
    sum(d^3) / (6 sum(d^2)^1.5), the ends are the quantiles Phi(z0 + (z0 + z) / (1 - a (z0 + z))) (Efron 1987, Better
    bootstrap confidence intervals). The result is None if the interval is undefined (constant data).

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
    """Compute the ratio sum(sums) / sum(counts) without each unit in turn.

    `sums` and `counts` are each unit's part of the numerator and of the denominator.

    >>> leave_one_out_ratios(np.array([1.0, 2.0, 6.0]), np.ones(3)).tolist()
    [4.0, 3.5, 1.5]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((np.sum(sums) - sums) / (np.sum(counts) - counts))


def bootstrap_ratio_interval(
    estimate: float, draws: FloatArray, sums: FloatArray, counts: FloatArray, *, level: float
) -> Interval | None:
    """Compute the bootstrap interval of one ratio.

    The result is the BCa interval of the resampled ratios, or the percentile interval if BCa is undefined. It is None
    if the draws are undefined or equal. `sums` and `counts` are each unit's part of the numerator and of the
    denominator, for the jackknife.

    >>> bootstrap_ratio_interval(1.0, np.ones(9), np.ones(3), np.ones(3), level=0.95) is None
    True
    """
    is_counted = counts > 0
    interval = bca_interval(estimate, draws, leave_one_out_ratios(sums[is_counted], counts[is_counted]), level)
    if interval is None:
        interval = percentile_interval(draws, level)
    if interval is None or interval.high - interval.low < MIN_SPREAD:
        return None
    return interval


# Bootstrap and Bayesian bootstrap of a mean.


def posterior_probability_above(draws: FloatArray, null: float) -> float:
    """Return the share of Bayesian bootstrap draws of a mean above `null`, where a draw equal to `null` counts half.

    >>> posterior_probability_above(np.array([0.4, 0.5, 0.6, 0.7]), 0.5)
    0.625
    """
    return (float(np.mean(draws > null)) + float(np.mean(draws >= null))) / 2


def posterior_probability_estimate(
    draws: FloatArray, *, n: int, null: float, level: float, common: dict[str, Any]
) -> Estimate:
    """Estimate the posterior probability that a mean exceeds `null`, from draws of the Bayesian bootstrap.

    `n` is the number of units, `common` has the other fields of the estimate, and `detail` has the credible interval of
    the mean.

    >>> common = {"analysis": "a", "estimand": "b", "unit": "annotator"}
    >>> posterior_probability_estimate(np.array([0.6, 0.7]), n=2, null=0.5, level=0.95, common=common).estimate
    1.0
    """
    credible = percentile_interval(draws, level)
    ends = {} if credible is None else {"level": level, "low": credible.low, "high": credible.high}
    return Estimate(n=n, estimate=posterior_probability_above(draws, null), detail={"mean_credible": ends}, **common)
