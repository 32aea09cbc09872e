"""Simultaneous intervals for all differences of scores."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    matrix,
    validate_level,
    vector,
)
from analysis.stats.bootstrap import RESAMPLES
from analysis.stats.ranks._spread import ScoreSpread
from analysis.stats.results import Record

# Number of resamples that are compared at a time.
BLOCK = 250


@dataclass(frozen=True, slots=True)
class SimultaneousDifferences(Record):
    """All differences of K scores, row minus column, with simultaneous intervals; arrays have shape (K, K).

    `low` and `high` bound all differences at once with probability `level`. `pvalues` are adjusted for all pairs by
    the same maximum. If the standard error is 0 they are NaN and the pair is not `decidable`. `largest` (n_draws,)
    are the maxima over pairs.
    """

    level: float
    estimates: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    pvalues: FloatArray
    decidable: BoolArray
    critical_value: float
    largest: FloatArray


def simultaneous_differences(
    scores: npt.ArrayLike,
    draws: npt.ArrayLike,
    *,
    level: float = 0.95,
    df: npt.ArrayLike | None = None,
    standard_errors: npt.ArrayLike | None = None,
) -> SimultaneousDifferences:
    """Simultaneous intervals for all differences of K scores, from resampled scores.

    D_ij is the difference, D*_ij its draws, se_ij their standard deviation. q is the `level` quantile of max_ij
    |D*_ij - D_ij| / se_ij. The interval is D_ij -/+ q se_ij, and p_ij = (1 + number of maxima >= |D_ij| / se_ij) / (B
    + 1). The bootstrap is too narrow with few clusters. With `df`, the t quantile with the same tail replaces q.

    Parameters
    ----------
    scores, draws : array_like, shapes (K,) and (B, K)
        Scores, and scores estimated again in each resample; finite.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    df : array_like, optional
        Degrees of freedom, a number or (K, K) by pair.
    standard_errors : array_like, shape (K, K), optional
        Standard errors of the differences, NaN if undefined, if they are not the standard deviations of the draws. The
        draws then only give q, each deviation divided by its own standard deviation over the draws.

    Returns
    -------
    SimultaneousDifferences
        Differences, intervals and adjusted p-values.

    Examples
    --------
    >>> draws = np.array([[0.0, 1.0], [0.2, 0.9], [0.1, 1.2], [0.1, 0.9]])
    >>> result = simultaneous_differences([0.1, 1.0], draws)
    >>> result.estimates[1, 0].round(3).item(), result.standard_errors[1, 0].round(4).item()
    (0.9, 0.1826)
    """
    validate_level(level)
    estimates, resampled = vector(scores, "scores"), matrix(draws, "draws")
    k = len(estimates)
    if resampled.shape[1] != k:
        raise ValueError(f"draws: {resampled.shape[1]} columns for {k} scores")
    if len(resampled) < 2:
        raise ValueError("draws: at least two resamples are needed")
    if np.isnan(estimates).any() or np.isnan(resampled).any():
        raise ValueError("draws: a score that is not defined cannot be compared; leave it out first")
    freedom = np.full((k, k), np.inf) if df is None else np.broadcast_to(np.asarray(df, dtype=np.float64), (k, k))
    if np.isnan(freedom).any() or np.any(freedom <= 0):
        raise ValueError("df: degrees of freedom are positive")
    estimate = estimates[:, None] - estimates[None, :]
    spread = np.zeros((k, k))
    # One system at a time: all pairs of a hundred systems over all resamples would need a gigabyte.
    for i in range(k - 1):
        spread[i, i + 1 :] = np.std(resampled[:, i, None] - resampled[:, i + 1 :], axis=0, ddof=1)
    spread = spread + spread.T
    se = spread if standard_errors is None else _checked_standard_errors(standard_errors, k)
    # Rounding errors of a score do not count as variation.
    smallest = MIN_SPREAD * max(1.0, float(np.max(np.abs(estimates), initial=0.0)))
    decidable = se > smallest
    largest = _largest_deviations(resampled, estimate, np.where(decidable & (spread > smallest), spread, np.inf))
    critical = float(np.quantile(largest, level))
    half = _as_t(critical, freedom) * se
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = _as_normal(np.abs(estimate) / se, freedom)
    exceeding = len(largest) - np.searchsorted(np.sort(largest), np.nan_to_num(statistic), side="left")
    undefined = ~decidable
    return SimultaneousDifferences(
        level=level,
        estimates=estimate,
        standard_errors=se,
        low=np.where(undefined, np.nan, estimate - half),
        high=np.where(undefined, np.nan, estimate + half),
        pvalues=np.where(undefined, np.nan, (1 + exceeding) / (1 + len(largest))),
        decidable=decidable,
        critical_value=critical,
        largest=largest,
    )


@dataclass(frozen=True, slots=True)
class SimultaneousScores(Record):
    """K scores with intervals that hold for all at once with probability `level`; arrays have shape (K,).

    `pvalues` that a score is 0 are adjusted for all scores by the same maximum; NaN where the score is not `decidable`.
    """

    level: float
    estimates: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    pvalues: FloatArray
    decidable: BoolArray
    critical_value: float


def simultaneous_scores(
    spread: ScoreSpread, *, level: float = 0.95, resamples: int = RESAMPLES, rng: np.random.Generator
) -> SimultaneousScores:
    """Simultaneous intervals for scores with a joint spread, as `simultaneous_differences` for their differences.

    Parameters
    ----------
    spread : ScoreSpread
        The scores.
    level : float, default 0.95
        Probability that all intervals contain the true scores.
    resamples : int, default RESAMPLES
        Number of normal draws for the quantile of the largest deviation.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    SimultaneousScores
        Intervals and adjusted p-values.

    Examples
    --------
    >>> from analysis.stats.ranks import score_spread
    >>> values, people, systems = [1, 0.2, 0.5, 0.1, 0.8, 0], ["a", "a", "b", "b", "c", "c"], ["x", "y"] * 3
    >>> found = simultaneous_scores(score_spread(values, people, systems), rng=np.random.default_rng(0))
    >>> found.estimates.round(3).tolist(), bool(found.pvalues[0] < found.pvalues[1])
    ([0.767, 0.1], True)
    """
    validate_level(level)
    se, df = spread.of_scores()
    deviations = spread.draws(resamples, rng) - spread.scores
    varies = np.std(deviations, axis=0, ddof=1)
    smallest = MIN_SPREAD * max(1.0, float(np.max(np.abs(spread.scores), initial=0.0)))
    decidable = se > smallest
    used = decidable & (varies > smallest)
    largest = np.abs(deviations[:, used] / varies[used]).max(axis=1, initial=0.0)
    critical = float(np.quantile(largest, level))
    half = _as_t(critical, df) * se
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = _as_normal(np.abs(spread.scores) / se, df)
    exceeding = len(largest) - np.searchsorted(np.sort(largest), np.nan_to_num(statistic), side="left")
    return SimultaneousScores(
        level=level,
        estimates=spread.scores,
        standard_errors=se,
        low=np.where(decidable, spread.scores - half, np.nan),
        high=np.where(decidable, spread.scores + half, np.nan),
        pvalues=np.where(decidable, (1 + exceeding) / (1 + len(largest)), np.nan),
        decidable=decidable,
        critical_value=critical,
    )


def _largest_deviations(draws: FloatArray, differences: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the largest |draw_i - draw_j - difference_ij| / spread_ij of each row of draws (B, K)."""
    n, k = draws.shape
    largest = np.zeros(n)
    # Few resamples at a time, so that all systems' draws stay in the processor's cache.
    for low in range(0, n, BLOCK):
        block = np.ascontiguousarray(draws[low : low + BLOCK].T)
        found = largest[low : low + BLOCK]
        for i in range(k - 1):
            apart = block[i] - block[i + 1 :]
            apart -= differences[i, i + 1 :, None]
            np.abs(apart, out=apart)
            apart /= spread[i, i + 1 :, None]
            np.maximum(found, apart.max(axis=0), out=found)
    return largest


def _checked_standard_errors(values: npt.ArrayLike, k: int) -> FloatArray:
    table = np.asarray(values, dtype=np.float64)
    if table.shape != (k, k):
        raise ValueError(f"standard_errors: shape {table.shape} for {k} scores")
    if np.any(table < 0):
        raise ValueError("standard_errors: a standard error is not negative")
    return table


def _as_t(normal: float, df: FloatArray) -> FloatArray:
    """Return the t quantiles with the same tail as a normal quantile."""
    tail = float(special.ndtr(-normal))
    return np.where(np.isinf(df), normal, -special.stdtrit(np.where(np.isinf(df), 1.0, df), tail))


def _as_normal(statistic: FloatArray, df: FloatArray) -> FloatArray:
    finite = np.where(np.isinf(df), 1.0, df)
    return np.where(np.isinf(df), statistic, -special.ndtri(special.stdtr(finite, -statistic)))
