"""Simulate many studies at once and analyse them like real data."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic
from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray, validate_level
from analysis.stats.results import Estimate, Record

T = TypeVar("T")
MAX_RUNS = 2000
MAX_ANSWERS = 50_000_000
# Number of answers in a block of runs, and smallest number of progress steps.
CELLS = 2_000_000
BLOCKS = 20


class SimulationCancelled(Exception):
    """The simulation was cancelled. Its results are discarded."""


@dataclass(frozen=True, slots=True)
class Outcomes(Record):
    """Results of the analysis in each run: arrays of shape (runs,), or (runs, k) for k comparisons.

    NaN if a run has no such result. `is_equivalent` says whether TOST showed equivalence, if a margin was given.
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    pvalue: FloatArray
    is_equivalent: BoolArray | None = None


def simulate(
    generate: Callable[[int, np.random.Generator], T],
    analyse: Callable[[T], Outcomes],
    *,
    n_answers: int,
    runs: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Outcomes:
    """Simulate and analyse many runs of one study.

    Parameters
    ----------
    generate : callable[[int, numpy.random.Generator], T]
        Takes a number of runs and a generator and returns their answers.
    analyse : callable[[T], Outcomes]
        Takes these answers and returns the outcomes.
    n_answers : int
        Number of answers in one run.
    runs : int
        Number of runs, at most 2,000.
    rng : numpy.random.Generator
        Source of the random draws.
    progress : callable[[int, int], None], optional
        Called with (done, total) after each block of runs.
    is_cancelled : callable[[], bool], optional
        Called before each block of runs.

    Returns
    -------
    Outcomes
        The outcomes of all runs.

    Raises
    ------
    ValueError, SimulationCancelled
        For more than 2,000 runs or 50,000,000 answers in all; if `is_cancelled` returns True.

    Examples
    --------
    >>> outcomes = simulate(lambda size, rng: rng.normal(0.6, 0.2, (size, 30)), one_sample_t_test_outcomes, n_answers=30, runs=400,
    ...                     rng=np.random.default_rng(0))
    >>> bool(np.mean(outcomes.pvalue < 0.05) > 0.6)
    True
    """
    validate_simulation_size(runs, n_answers)
    size = max(1, min(CELLS // max(1, n_answers), math.ceil(runs / BLOCKS)))
    parts = []
    for start in range(0, runs, size):
        if is_cancelled is not None and is_cancelled():
            raise SimulationCancelled(f"after {start} of {runs} runs")
        n_block = min(size, runs - start)
        parts.append(analyse(generate(n_block, rng)))
        if progress is not None:
            progress(start + n_block, runs)
    equivalent = [part.is_equivalent for part in parts if part.is_equivalent is not None]
    return Outcomes(
        np.concatenate([part.estimate for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.pvalue for part in parts]),
        np.concatenate(equivalent) if equivalent else None,
    )


def validate_simulation_size(runs: int, n_answers: int) -> None:
    """Raise ValueError for a simulation that is too large to run next to a website.

    Parameters
    ----------
    runs, n_answers : int
        Number of runs, and of answers in one run.

    Raises
    ------
    ValueError
        If there are too many runs or answers. The message says what to do.

    Examples
    --------
    >>> validate_simulation_size(2000, 40_000)
    Traceback (most recent call last):
        ...
    ValueError: runs: 2000 runs of 40000 answers are more than 50000000 answers; at most 1250 runs of this study
    """
    if not 1 <= runs <= MAX_RUNS:
        raise ValueError(f"runs: {runs} is not in 1..{MAX_RUNS}")
    if runs * n_answers > MAX_ANSWERS:
        advice = (
            f"at most {MAX_ANSWERS // n_answers} runs of this study"
            if n_answers <= MAX_ANSWERS
            else "too large a study"
        )
        raise ValueError(f"runs: {runs} runs of {n_answers} answers are more than {MAX_ANSWERS} answers; {advice}")


def outcomes_from_estimates(estimates: Iterable[Estimate]) -> Outcomes:
    """Collect the outcomes of an analysis that handles one run at a time.

    Parameters
    ----------
    estimates : Iterable[Estimate]
        One estimate per run.

    Returns
    -------
    Outcomes
        The outcomes.

    Examples
    --------
    >>> outcomes_from_estimates([basic.one_sample_t_test([0.6, 0.7], null=0.5), basic.one_sample_t_test([], null=0.5)]).pvalue.round(3).tolist()
    [0.205, nan]
    """
    rows = []
    for estimate in estimates:
        ends = (None, None) if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
        rows.append([estimate.estimate, *ends, estimate.pvalue])
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 4)
    return Outcomes(*table.T)


def one_sample_t_test_outcomes(
    values: npt.ArrayLike,
    *,
    null: float = 0.5,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    margin: float | None = None,
) -> Outcomes:
    """Run `basic.one_sample_t_test` on many runs at once, with the same numbers.

    Parameters
    ----------
    values : array_like, shape (runs, n)
        One value per unit; NaN is missing.
    null : float, default 0.5
        Value of the null hypothesis.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them.
    margin : float, optional
        Equivalence margin. With it, the outcomes say whether TOST is significant at 1 - level.

    Returns
    -------
    Outcomes
        The outcomes. Rows that are edge cases (no variance, a ceiling) use `basic.one_sample_t_test` itself.

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(0.6, 0.2, (3, 30))
    >>> ours, theirs = one_sample_t_test_outcomes(values), basic.one_sample_t_test(values[1], null=0.5)
    >>> bool(abs(ours.pvalue[1] - theirs.pvalue) < 1e-12)
    True
    """
    validate_level(level)
    table = np.asarray(values, dtype=np.float64)
    is_observed = ~np.isnan(table)
    n = is_observed.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(is_observed, table, 0.0).sum(axis=1) / n
        sd = np.sqrt((np.where(is_observed, table - mean[:, None], 0.0) ** 2).sum(axis=1) / (n - 1))
        se = sd / np.sqrt(n)
    is_plain = (n > 1) & (sd >= MIN_SPREAD)
    if bounds is not None:
        is_plain &= (n >= basic.CEILING_N) | (_largest_share(table, is_observed, n) < basic.CEILING_SHARE)
    df = np.where(is_plain, n - 1, 1)
    scale = np.where(is_plain, se, 1.0)
    pvalue = np.minimum(1.0, 2 * special.stdtr(df, -np.abs((mean - null) / scale)))
    half = special.stdtrit(df, (1 + level) / 2) * scale
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = np.maximum(low, bounds[0]), np.minimum(high, bounds[1])
    equivalent = None
    if margin is not None:
        reach = special.stdtrit(df, level) * scale
        equivalent = is_plain & (mean - reach > null - margin) & (mean + reach < null + margin)
    for row in np.flatnonzero(~is_plain):
        alone = outcomes_from_estimates([basic.one_sample_t_test(table[row], null=null, level=level, bounds=bounds)])
        mean[row], low[row], high[row], pvalue[row] = alone.estimate[0], alone.low[0], alone.high[0], alone.pvalue[0]
    return Outcomes(mean, low, high, pvalue, equivalent)


def _largest_share(table: FloatArray, is_observed: BoolArray, n: npt.NDArray[np.int64]) -> FloatArray:
    """Return the share of each row's most frequent value, or 0 if it is below one half."""
    ordered = np.sort(np.where(is_observed, table, np.inf), axis=1)
    middle = np.take_along_axis(ordered, np.maximum(0, (n - 1) // 2)[:, None], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((is_observed & (table == middle)).sum(axis=1) / n)
