"""Rules for 0/1 labels as boundaries on the number of successes, and where series of labels cross them."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, refuse_level
from analysis.stats.results import Record
from analysis.stats.sequential._processes import CONCENTRATION, log_e_beta_binomial, refuse_null

READINGS = ("first", "stays")


@dataclass(frozen=True, slots=True)
class Boundaries(Record):
    """A rule for 0/1 values as what it needs after n of them, n = 1..n_max; all arrays have shape (n_max,).

    A wins with at least `upper` successes (n + 1 where none is enough), B with at most `lower` (-1 where none). With a
    margin, `above_low` is the least number that excludes every mean up to null - margin, and `below_high` the greatest
    that excludes every mean from null + margin on; both at some time: equivalent. `name` says what rule it is.
    """

    upper: IntArray
    lower: IntArray
    above_low: IntArray | None = None
    below_high: IntArray | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Crossings(Record):
    """Where each run decided: `n` (runs,) answers, 0 where it did not; `winner` 1 for A, -1 for B, 0 for neither."""

    n: IntArray
    winner: IntArray


def hoeffding_radius(n: npt.ArrayLike, delta: float) -> FloatArray:
    """t = sqrt(-ln(delta) / (2 n)): the mean of n values in 0..1 exceeds its expectation by t with probability <= delta.

    True for one n that was fixed beforehand, and one side. Source: the paper's equation 4.

    >>> round(float(hoeffding_radius(100, 0.01)), 6)
    0.151743
    """
    refuse_level(1 - delta)
    return np.asarray(np.sqrt(-math.log(delta) / (2 * np.asarray(n, dtype=np.float64))))


def hoeffding_boundaries(n_max: int, *, delta: float, every: int = 1, sides: str = "both") -> Boundaries:
    """The paper's rule: A wins where mean - t > .5, B where mean + t < .5, looked at after every `every`-th answer.

    `sides` "a" tests the lower bound alone, as the paper's simulation does.

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


def stitched_radius(n: npt.ArrayLike, level: float = 0.95) -> FloatArray:
    """r = .85 sqrt((ln ln(2 n) + .72 ln(10.4 / (1 - level))) / n): with probability `level` at least, the mean of the
    first n values in 0..1 lies within r of the mean of their expectations at every n >= 1 at once.

    `n` counts values and has any shape, which is that of the result. Bounds for stretches of n that double are stitched
    together, so that r shrinks as the law of the iterated logarithm demands; small n pay for it. What it asks is that
    each value's expectation, given the values before it, is the one asked about. Raises ValueError for a level that is
    none and for n below 1.

    Source: Howard, Ramdas, McAuliffe and Sekhon 2021, Time-uniform, nonparametric, nonasymptotic confidence sequences,
    section 1, for standard deviations of at most 1; values in 0..1 have at most 1/2, hence .85 for 1.7.

    >>> [round(float(r), 4) for r in stitched_radius([100, 5000], 0.95)]
    [0.1995, 0.0296]
    """
    refuse_level(level)
    counts = np.asarray(n, dtype=np.float64)
    if np.any(counts < 1):
        raise ValueError("n: there is no mean of fewer than one value")
    return np.asarray(0.85 * np.sqrt((np.log(np.log(2 * counts)) + 0.72 * math.log(10.4 / (1 - level))) / counts))


def stitched_boundaries(n_max: int, *, level: float = 0.95) -> Boundaries:
    """The rule of `stitched_radius` as boundaries on the number of successes after 1..n_max answers, against a mean of .5.

    It errs with probability at most 1 - level, once for all looks, and needs half to two thirds as many answers again as
    `beta_binomial_boundaries`, which is why no study stops by it. It has a closed form, and stands here to be compared.

    >>> rule = stitched_boundaries(200, level=0.95)
    >>> int(np.argmax(rule.upper <= np.arange(1, 201))) + 1, int(rule.upper[99])
    (15, 70)
    """
    refuse_level(level)
    if n_max < 1:
        raise ValueError(f"n_max: {n_max} answers are no rule")
    n = np.arange(1, n_max + 1)
    upper = _beyond(n, stitched_radius(n, level))
    return Boundaries(upper, n - upper, name=f"stitched, level {level:g}")


def beta_binomial_boundaries(
    n_max: int,
    *,
    level: float = 0.95,
    null: float = 0.5,
    margin: float | None = None,
    concentration: float = CONCENTRATION,
) -> Boundaries:
    """The beta-binomial rule as boundaries on the number of successes after 1..n_max labels.

    >>> rule = beta_binomial_boundaries(200, level=0.95)
    >>> int(np.argmax(rule.upper <= np.arange(1, 201))) + 1, int(rule.upper[99])
    (15, 66)
    """
    refuse_level(level)
    refuse_null(null, margin)
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


def crossings(answers: npt.ArrayLike, boundaries: Boundaries, *, reading: str = "first") -> Crossings:
    """Where series of 0/1 answers cross the boundaries.

    `answers` has shape (n,) or (runs, n), n at most n_max. Reading "first": the first n at which a boundary is crossed,
    which is what a study that runs can do. "stays": the first n from which on the same boundary remains crossed to the
    end of the data, which only hindsight knows; it is what the paper's tables hold.

    >>> found = crossings([1] * 12 + [0] * 12, hoeffding_boundaries(24, delta=0.01))
    >>> found.n.tolist(), found.winner.tolist()
    ([10], [1])
    """
    if reading not in READINGS:
        raise ValueError(f"reading: {reading!r} is none of {', '.join(READINGS)}")
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
    found = np.minimum(at_a, at_b)
    winner = np.where(at_a < at_b, 1, -1)
    return Crossings(np.where(found > n, 0, found), np.where(found > n, 0, winner))


def _beyond(n: IntArray, radius: FloatArray) -> IntArray:
    """The least number of successes whose share of n exceeds .5 by more than the radius; n + 1 where none does."""
    upper = np.floor(n * (0.5 + radius)).astype(np.int64) + 1
    return np.asarray(np.minimum(upper, n + 1))


def _least_successes(n_max: int, null: float, level: float, concentration: float) -> IntArray:
    """The least S above n null that refutes the null after n labels, n + 1 where none does; shape (n_max,)."""
    if n_max < 1:
        raise ValueError(f"n_max: {n_max} labels are no rule")
    threshold = math.log(1 / (1 - level))
    n = np.arange(1, n_max + 1)
    # log e is at most 0 where S = n null, convex in S, and so crosses once above it.
    within, beyond = np.floor(n * null).astype(np.int64), n + 1
    while np.any(beyond - within > 1):
        middle = (within + beyond) // 2
        refuted = log_e_beta_binomial(middle, n, null=null, concentration=concentration) >= threshold
        within, beyond = np.where(refuted, within, middle), np.where(refuted, middle, beyond)
    return beyond


def _first_true(flags: BoolArray) -> IntArray:
    """The number of columns up to and with the first true one, one more than there are where none is."""
    at = np.argmax(flags, axis=1)
    is_none = (at == 0) & ~flags[:, 0]
    return np.asarray(np.where(is_none, flags.shape[1], at) + 1, dtype=np.int64)


def _start_of_last_run(flags: BoolArray) -> IntArray:
    """The column (from 1) from which on all are true; one more than there are where the last is not."""
    length = np.argmin(flags[:, ::-1], axis=1)
    is_all = (length == 0) & flags[:, -1]
    return np.asarray(flags.shape[1] - np.where(is_all, flags.shape[1], length) + 1, dtype=np.int64)
