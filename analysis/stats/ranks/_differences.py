"""Simultaneous intervals for all differences of scores."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    validate_level,
    vector,
)
from analysis.stats.bootstrap import RESAMPLES
from analysis.stats.ranks._spread import ScoreSpread
from analysis.stats.results import Record


@dataclass(frozen=True, slots=True)
class SimultaneousDifferences(Record):
    """All differences of K scores, row minus column, with simultaneous intervals; arrays have shape (K, K).

    `low` and `high` bound all differences at once with probability `level`. `pvalues` are adjusted for all pairs by the
    same bound. If the standard error is 0 they are NaN and the pair is not `decidable`.
    """

    level: float
    estimates: FloatArray
    standard_errors: FloatArray
    low: FloatArray
    high: FloatArray
    pvalues: FloatArray
    decidable: BoolArray
    critical_value: float


def simultaneous_differences(
    scores: npt.ArrayLike,
    standard_errors: npt.ArrayLike,
    *,
    df: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> SimultaneousDifferences:
    """Compute simultaneous intervals for all differences of K scores, by Šidák's bound.

    The scores are finite. D_ij is the difference with the standard error se_ij (NaN if undefined) and df_ij degrees of
    freedom (`df` is a number or (K, K) by pair, and infinite if None). For m pairs, q is the normal quantile with the
    two-sided tail 1 - level^(1/m), and q_ij the t quantile with the same tail. The interval is D_ij -/+ q_ij se_ij, and
    the adjusted p-value is 1 - (1 - p_ij)^m (Šidák 1967, Rectangular confidence regions for the means of multivariate
    normal distributions). `level` is the probability that all intervals contain the true differences. The quantile of
    the largest of normal draws with the estimated covariance is too small: over few clusters this covariance has too
    few dimensions, and the maximum over pairs finds the smallest standard error. Rank sets of six equal systems over
    seven prompts then held in .915 instead of .95 of studies (`tests/calibration/rank_sets.py`).

    >>> result = simultaneous_differences([0.1, 1.0], [[0, 0.3], [0.3, 0]], df=12)
    >>> result.estimates[1, 0].round(3).item(), result.low[1, 0].round(3).item(), result.pvalues[1, 0].round(4).item()
    (0.9, 0.246, 0.0111)
    """
    validate_level(level)
    estimates = vector(scores, "scores")
    k = len(estimates)
    if np.isnan(estimates).any():
        raise ValueError("scores: a score that is not defined cannot be compared; leave it out first")
    se = np.asarray(standard_errors, dtype=np.float64)
    if se.shape != (k, k):
        raise ValueError(f"standard_errors: shape {se.shape} for {k} scores")
    if np.any(se < 0):
        raise ValueError("standard_errors: a standard error is not negative")
    freedom = np.full((k, k), np.inf) if df is None else np.broadcast_to(np.asarray(df, dtype=np.float64), (k, k))
    if np.isnan(freedom).any() or np.any(freedom <= 0):
        raise ValueError("df: degrees of freedom are positive")
    estimate = estimates[:, None] - estimates[None, :]
    # Rounding errors of a score do not count as variation.
    decidable = se > MIN_SPREAD * max(1.0, float(np.max(np.abs(estimates), initial=0.0)))
    n_pairs = max(1, int(np.triu(decidable, 1).sum()))
    critical = -float(special.ndtri(-np.expm1(np.log(level) / n_pairs) / 2))
    half = _as_t(critical, freedom) * se
    with np.errstate(invalid="ignore", divide="ignore"):
        pvalues = 2 * special.ndtr(-_as_normal(np.abs(estimate) / se, freedom))
        adjusted = -np.expm1(n_pairs * np.log1p(-pvalues))
    return SimultaneousDifferences(
        level=level,
        estimates=estimate,
        standard_errors=se,
        low=np.where(decidable, estimate - half, np.nan),
        high=np.where(decidable, estimate + half, np.nan),
        pvalues=np.where(decidable, np.clip(adjusted, 0.0, 1.0), np.nan),
        decidable=decidable,
        critical_value=critical,
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
    """Simultaneous intervals for scores with a joint spread, by the largest deviation over scores.

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


def _as_t(normal: float, df: FloatArray) -> FloatArray:
    """Return the t quantiles with the same tail as a normal quantile."""
    tail = float(special.ndtr(-normal))
    return np.where(np.isinf(df), normal, -special.stdtrit(np.where(np.isinf(df), 1.0, df), tail))


def _as_normal(statistic: FloatArray, df: FloatArray) -> FloatArray:
    finite = np.where(np.isinf(df), 1.0, df)
    return np.where(np.isinf(df), statistic, -special.ndtri(special.stdtr(finite, -statistic)))
