"""Stopping rules for 0/1 labels as boundaries on the number of successes, and where series cross them."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, validate_level
from analysis.stats.results import Record
from analysis.stats.sequential._processes import CONCENTRATION, beta_binomial_log_e_values, validate_null_and_margin

READINGS = ("first", "stays")


@dataclass(frozen=True, slots=True)
class Boundaries(Record):
    """A stopping rule for 0/1 values: the numbers of successes it needs after n = 1..n_max values; shape (n_max,).

    A wins with at least `upper` successes (n + 1 if no number is enough), B with at most `lower` (-1 if none). With a
    margin, `above_low` is the least number that excludes all means up to null - margin. `below_high` is the greatest
    that excludes all means from null + margin. Equivalent: both have been reached. `name` is the name of the rule.
    """

    upper: IntArray
    lower: IntArray
    above_low: IntArray | None = None
    below_high: IntArray | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Crossings(Record):
    """The decision of each run: `n` (runs,) answers, 0 without one; `winner` 1 for A, -1 for B, 0 for neither."""

    n: IntArray
    winner: IntArray


def hoeffding_radius(n: npt.ArrayLike, delta: float) -> FloatArray:
    """Hoeffding's radius t = sqrt(-ln(delta) / (2 n)) for one n that was fixed before the study.

    Parameters
    ----------
    n : array_like
        Numbers of values.
    delta : float
        Probability of an error on one side.

    Returns
    -------
    ndarray of float
        The mean of n values in 0..1 exceeds its expectation by t with probability at most delta.

    References
    ----------
    The paper's equation 4.

    Examples
    --------
    >>> round(float(hoeffding_radius(100, 0.01)), 6)
    0.151743
    """
    validate_level(1 - delta)
    return np.asarray(np.sqrt(-math.log(delta) / (2 * np.asarray(n, dtype=np.float64))))


def hoeffding_boundaries(n_max: int, *, delta: float, every: int = 1, sides: str = "both") -> Boundaries:
    """The paper's rule: A wins if mean - t > .5, B wins if mean + t < .5.

    Parameters
    ----------
    n_max : int
        Largest number of answers.
    delta : float
        Probability of an error on one side.
    every : int, default 1
        Number of answers between two checks.
    sides : {"both", "a"}, default 'both'
        "a" tests only the lower bound, as the paper's simulation does.

    Returns
    -------
    Boundaries
        The rule.

    Raises
    ------
    ValueError
        If `sides` or `n_max` is not allowed.

    Examples
    --------
    >>> rule = hoeffding_boundaries(100, delta=0.01)
    >>> int(np.argmax(rule.upper <= np.arange(1, 101))) + 1  # unanimous answers that it takes
    10
    """
    if sides not in ("both", "a"):
        raise ValueError(f"sides: {sides!r} is neither both nor a")
    if n_max < 1 or every < 1:
        raise ValueError(f"n_max: {n_max} answers, looked at every {every}, are no rule")
    n = np.arange(1, n_max + 1)
    upper = np.where(n % every == 0, _beyond(n, hoeffding_radius(n, delta)), n + 1)
    lower = n - upper if sides == "both" else np.full(n_max, -1)
    return Boundaries(upper, lower, name=f"hoeffding, delta {delta:g}, every {every}, sides {sides}")


def beta_binomial_boundaries(
    n_max: int,
    *,
    level: float = 0.95,
    null: float = 0.5,
    margin: float | None = None,
    concentration: float = CONCENTRATION,
) -> Boundaries:
    """The beta-binomial rule as boundaries on the number of successes after 1..n_max labels.

    Parameters
    ----------
    n_max : int
        Largest number of labels.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    null : float, default 0.5
        Value of the null hypothesis.
    margin : float, optional
        Equivalence margin on the scale of the estimate.
    concentration : float, default CONCENTRATION
        Parameter of the Beta prior, see `beta_binomial_log_e_values`.

    Returns
    -------
    Boundaries
        The rule.

    Examples
    --------
    >>> rule = beta_binomial_boundaries(200, level=0.95)
    >>> int(np.argmax(rule.upper <= np.arange(1, 201))) + 1, int(rule.upper[99])
    (15, 66)
    """
    validate_level(level)
    validate_null_and_margin(null, margin)
    upper = _least_successes(n_max, null, level, concentration)
    n = np.arange(1, n_max + 1)
    lower = n - _least_successes(n_max, 1 - null, level, concentration)
    name = f"beta_binomial, level {level:g}, null {null:g}, margin {margin}, concentration {concentration:g}"
    if margin is None:
        return Boundaries(upper, lower, name=name)
    return Boundaries(
        upper,
        lower,
        _least_successes(n_max, null - margin, level, concentration),
        n - _least_successes(n_max, 1 - null - margin, level, concentration),
        name,
    )


def find_boundary_crossings(answers: npt.ArrayLike, boundaries: Boundaries, *, reading: str = "first") -> Crossings:
    """Find where series of 0/1 answers cross the boundaries.

    Parameters
    ----------
    answers : array_like, shape (n,) or (runs, n)
        0/1 answers; n is at most n_max.
    boundaries : Boundaries
        The stopping rule.
    reading : {"first", "stays"}, default 'first'
        "first": the first n with a crossing, as in a running study. "stays": the first n from which the same boundary
        stays crossed to the end of the data, as in the paper's tables; this needs hindsight.

    Returns
    -------
    Crossings
        The decision of each run.

    Raises
    ------
    ValueError
        If `reading`, the shape or a value is not allowed.

    Examples
    --------
    >>> result = find_boundary_crossings([1] * 12 + [0] * 12, hoeffding_boundaries(24, delta=0.01))
    >>> result.n.tolist(), result.winner.tolist()
    ([10], [1])
    """
    if reading not in READINGS:
        raise ValueError(f"reading: {reading!r} is not one of {', '.join(READINGS)}")
    series = np.atleast_2d(np.asarray(answers))
    if series.ndim != 2 or series.shape[1] > len(boundaries.upper):
        raise ValueError(f"answers: shape {series.shape}, where the boundaries are for {len(boundaries.upper)} answers")
    if series.dtype != np.bool_ and not np.all((series == 0) | (series == 1)):
        raise ValueError("answers: only 0 and 1 are counted")
    n = series.shape[1]
    if n == 0:
        none = np.zeros(len(series), dtype=np.int64)
        return Crossings(none, none)
    successes = np.cumsum(series, axis=1, dtype=np.int32)
    is_a = successes >= boundaries.upper[:n].astype(np.int32)
    is_b = successes <= boundaries.lower[:n].astype(np.int32)
    if reading == "first":
        at_a, at_b = _first_true(is_a), _first_true(is_b)
    else:
        at_a, at_b = _start_of_last_run(is_a), _start_of_last_run(is_b)
    first_crossing = np.minimum(at_a, at_b)
    winner = np.where(at_a < at_b, 1, -1)
    return Crossings(np.where(first_crossing > n, 0, first_crossing), np.where(first_crossing > n, 0, winner))


def _beyond(n: IntArray, radius: FloatArray) -> IntArray:
    """Return the least number of successes with a share above .5 by more than the radius; n + 1 if no number does."""
    upper = np.floor(n * (0.5 + radius)).astype(np.int64) + 1
    return np.asarray(np.minimum(upper, n + 1))


def _least_successes(n_max: int, null: float, level: float, concentration: float) -> IntArray:
    """Return the least S above n null that refutes the null after n labels; n + 1 if no S does."""
    if n_max < 1:
        raise ValueError(f"n_max: {n_max} labels are no rule")
    threshold = math.log(1 / (1 - level))
    n = np.arange(1, n_max + 1)
    # log e is at most 0 where S = n null, convex in S, and so crosses once above it.
    within, beyond = np.floor(n * null).astype(np.int64), n + 1
    while np.any(beyond - within > 1):
        middle = (within + beyond) // 2
        refuted = beta_binomial_log_e_values(middle, n, null=null, concentration=concentration) >= threshold
        within, beyond = np.where(refuted, within, middle), np.where(refuted, middle, beyond)
    return beyond


def _first_true(flags: BoolArray) -> IntArray:
    """Return the number (from 1) of the first true column; one more than the columns if no column is true."""
    at = np.argmax(flags, axis=1)
    is_none = (at == 0) & ~flags[:, 0]
    return np.asarray(np.where(is_none, flags.shape[1], at) + 1, dtype=np.int64)


def _start_of_last_run(flags: BoolArray) -> IntArray:
    """Return the column (from 1) from which all are true; one more than the columns if the last is false."""
    length = np.argmin(flags[:, ::-1], axis=1)
    is_all = (length == 0) & flags[:, -1]
    return np.asarray(flags.shape[1] - np.where(is_all, flags.shape[1], length) + 1, dtype=np.int64)
