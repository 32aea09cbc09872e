"""E-processes, and boundaries of stopping rules: on the number of votes after each label, and at a few planned looks."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats import betting
from analysis.stats.arrays import BoolArray, FloatArray, IntArray, validate_level, validate_within_bounds, vector
from analysis.stats.betting import ConfidenceSequence
from analysis.stats.quadrature import gauss_legendre
from analysis.stats.results import Record

# E-processes and their confidence sequences.


PROCESSES = ("beta_binomial", "betting")
# Beta(10, 10) suits effects of some ten points; with fewer than five expected, 50 decides sooner.
CONCENTRATION = 10.0
BISECTIONS = 60


def beta_binomial_log_e_values(
    successes: npt.ArrayLike, n: npt.ArrayLike, *, null: npt.ArrayLike = 0.5, concentration: float = CONCENTRATION
) -> FloatArray:
    """Logarithm of the beta-binomial mixture e-process against a success probability of `null`.

    Parameters
    ----------
    successes, n : array_like
        Numbers of successes and of labels. All arguments broadcast.
    null : array_like, default 0.5
        Success probability under the null hypothesis.
    concentration : float, default CONCENTRATION
        Parameter a of the Beta(a, a) mixture.

    Returns
    -------
    ndarray of float
        The logarithm; 0 at n = 0.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    log B(a + S, a + n - S) - log B(a, a) - S log(null) - (n - S) log(1 - null). Use it only for independent labels,
    one per annotator.

    References
    ----------
    Robbins 1970, Statistical methods related to the law of the iterated logarithm; Ville 1939.

    Examples
    --------
    >>> round(float(beta_binomial_log_e_values(130, 200)), 6)
    7.114851
    """
    k, size, m = (np.asarray(value, dtype=np.float64) for value in (successes, n, null))
    if not concentration > 0:
        raise ValueError(f"concentration: {concentration!r} is not a positive number")
    if np.any((k < 0) | (k > size)):
        raise ValueError("successes: not in 0..n")
    if np.any((m < 0) | (m > 1)):
        raise ValueError("null: outside 0..1")
    return np.asarray(
        _log_mixture(k, size, concentration) - special.xlogy(k, m) - special.xlog1py(size - k, -m), dtype=np.float64
    )


def beta_binomial_anytime_interval(
    successes: npt.ArrayLike, n: npt.ArrayLike, *, level: float = 0.95, concentration: float = CONCENTRATION
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of the means that the beta-binomial e-process has not refuted at this n.

    `successes` and `n`, the numbers of successes and of labels, broadcast, and `concentration` is the parameter of the
    Beta prior, see `beta_binomial_log_e_values`. log e is convex in the null, so there is one root on each side; the
    lower end is 0 without a success, the upper end 1 without a failure. `confidence_sequence` intersects these
    intervals over n.

    >>> low, high = beta_binomial_anytime_interval(60, 100, concentration=1)
    >>> round(float(low), 6), round(float(high), 6)
    (0.440774, 0.746036)
    """
    validate_level(level)
    k, size = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64))
    threshold = math.log(1 / (1 - level))
    centre = np.divide(k, size, out=np.full(k.shape, 0.5), where=size > 0)

    # log e = mixture - S log(null) - (n - S) log(1 - null), and only the second part varies along the search.
    ceiling = _log_mixture(k, size, concentration) - threshold
    # Bisection, both ends at once, from a refuted point (or the edge of 0..1) towards the share, which never is.
    outside = np.stack([np.zeros(k.shape), np.ones(k.shape)])
    inside = np.stack([centre, centre])
    for _ in range(BISECTIONS):
        middle = (outside + inside) / 2
        refuted = special.xlogy(k, middle) + special.xlog1py(size - k, -middle) <= ceiling
        outside, inside = np.where(refuted, middle, outside), np.where(refuted, inside, middle)
    return np.where(k > 0, outside[0], 0.0), np.where(k < size, outside[1], 1.0)


def confidence_sequence(
    values: npt.ArrayLike, *, process: str = "betting", level: float = 0.95, concentration: float = CONCENTRATION
) -> ConfidenceSequence:
    """Compute the confidence sequence of a mean: intervals after each unit that all cover it at once with probability `level`.

    The values are in the order in which units enter: 0/1 labels for the process "beta_binomial", and 0..1 for
    "betting". `concentration` is the parameter of the Beta prior, for "beta_binomial". Each interval is intersected
    with those before.

    >>> sequence = confidence_sequence([1, 0, 1, 1] * 25, process="beta_binomial")
    >>> round(float(sequence.low[-1]), 4), round(float(sequence.high[-1]), 4)
    (0.5823, 0.8745)
    """
    validate_level(level)
    series = checked_sequential_values(values, process)
    if process == "betting":
        return betting.betting_confidence_sequence(series, level=level)
    n = np.arange(1, len(series) + 1)
    low, high = beta_binomial_anytime_interval(np.cumsum(series), n, level=level, concentration=concentration)
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high)
    empty = np.flatnonzero(low > high)
    if len(empty) == 0:
        return ConfidenceSequence(level, low, high, "beta_binomial")
    last = int(empty[0])
    low[last:], high[last:] = low[last - 1], high[last - 1]
    return ConfidenceSequence(level, low, high, "beta_binomial", last + 1)


def anytime_pvalues(log_e: npt.ArrayLike) -> FloatArray:
    """Return the p-value after each unit: min(1, 1 / the greatest e so far).

    `log_e` is the logarithm of the e-process. The p-values are valid at any n, however it is chosen.

    >>> anytime_pvalues(np.log([0.5, 4.0, 2.0, 10.0])).round(3).tolist()
    [1.0, 0.25, 0.25, 0.1]
    """
    series = vector(log_e, "log_e")
    return np.asarray(np.exp(-np.maximum.accumulate(np.maximum(series, 0.0)))) if len(series) else series


def _log_mixture(successes: FloatArray, n: FloatArray, concentration: float) -> FloatArray:
    """Return the log-probability of one order of the labels, averaged over the Beta prior of their mean."""
    of_all = special.betaln(concentration + successes, concentration + n - successes)
    return np.asarray(of_all - special.betaln(concentration, concentration))


def checked_sequential_values(values: npt.ArrayLike, process: str) -> FloatArray:
    """Return `values` as a series for `process`. Raise ValueError with the row for a missing or invalid value."""
    if process not in PROCESSES:
        raise ValueError(f"process: {process!r} is not one of {', '.join(PROCESSES)}")
    series = vector(values, "values")
    missing = np.flatnonzero(np.isnan(series))
    if len(missing):
        raise ValueError(
            f"values: row {int(missing[0])} is missing; a series has no gaps, see annotator_means_in_claim_order"
        )
    validate_within_bounds(series, (0.0, 1.0), "values")
    broken = np.flatnonzero((series != 0) & (series != 1))
    if process == "beta_binomial" and len(broken):
        raise ValueError(f"values: row {int(broken[0])} is neither 0 nor 1; the betting process takes shares")
    return series


def validate_null_and_margin(null: float, margin: float | None) -> None:
    """Raise ValueError if the null, or null -/+ margin, is at the edge of the scale."""
    if not 0 < null < 1:
        raise ValueError(f"null: {null!r} is not strictly between 0 and 1")
    if margin is not None and not 0 < margin < min(null, 1 - null):
        raise ValueError(f"margin: {margin!r} does not lie between 0 and the edge of the scale")


# Stopping rules for 0/1 labels as boundaries on the number of successes, and where series cross them.


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
    """Return Hoeffding's radius t = sqrt(-ln(delta) / (2 n)) for one n that was fixed before the study.

    The mean of n values in 0..1 exceeds its expectation by t with probability at most `delta`, the probability of an
    error on one side (the paper's equation 4).

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

    `answers` has the shape (n,) or (runs, n), with n at most n_max of the boundaries. The reading "first" takes the
    first n with a crossing, as in a running study. "stays" takes the first n from which the same boundary stays crossed
    to the end of the data, as in the paper's tables; this needs hindsight. The function raises ValueError if the
    reading, the shape or a value is not allowed.

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


# Boundaries of group-sequential tests: a few planned looks at a study without a larger error.
#
# At most five looks are planned at given numbers of units. At each one the p-value is compared with a boundary, so
# that the probability of ever rejecting a true null is `significance`. O'Brien and Fleming's boundaries are strict
# early and cost almost nothing at the end, Pocock's are nearly constant. They come from the spending functions of Lan
# and DeMets, so the looks need not be equally spaced.
#
# References: O'Brien and Fleming 1979, Pocock 1977, Lan and DeMets 1983, Jennison and Turnbull 2000 (chapters 2, 7
# and 19); the numerical integration is that of Armitage, McPherson and Rowe 1969.


MAX_LOOKS = 5
SHAPES = ("obrien_fleming", "pocock")
# A boundary that is never crossed: the spending function allows almost nothing at a very early look.
NEVER = 12.0
NODES = 128


@dataclass(frozen=True, slots=True)
class GroupSequentialDesign(Record):
    """Boundaries for K planned looks, two-sided and symmetric.

    `fractions` (K,) is the information at each look; the last is 1. `z` (K,) is the boundary of |Z|, `nominal` (K,) the
    two-sided p at which a look rejects. `spent` (K,) is the probability of having rejected a true null by then.
    """

    shape: str
    significance: float
    fractions: FloatArray
    z: FloatArray
    nominal: FloatArray
    spent: FloatArray


def group_sequential_design(
    fractions: int | npt.ArrayLike,
    *,
    shape: str = "obrien_fleming",
    significance: float = 0.05,
) -> GroupSequentialDesign:
    """Boundaries for planned looks at fractions of the information.

    Parameters
    ----------
    fractions : int or array_like
        Fractions of the planned information, ascending to 1, or the number of equally spaced looks; at most five
        looks.
    shape : {"obrien_fleming", "pocock"}, default 'obrien_fleming'
        Shape of the boundaries.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    GroupSequentialDesign
        The boundaries.

    Raises
    ------
    ValueError
        If an option or the fractions are not allowed.

    Notes
    -----
    Each look may reject until the total is alpha(t) per side: 2 - 2 Phi(z_{alpha/2} / sqrt(t)) or alpha ln(1 + (e - 1) t),
    with alpha half of `significance`.

    Examples
    --------
    >>> group_sequential_design(5).z.round(3).tolist()
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    if shape not in SHAPES:
        raise ValueError(f"shape: {shape!r} is not one of {', '.join(SHAPES)}")
    if not 0 < significance < 0.5:
        raise ValueError(f"significance: {significance!r} is not strictly between 0 and .5")
    return _design(tuple(_times(fractions).tolist()), shape, significance)


def first_crossing_probabilities(fractions: npt.ArrayLike, z: npt.ArrayLike) -> FloatArray:
    """Compute the probability of first crossing |Z_k| >= z_k at each look, under the null.

    `fractions` and `z` are the fraction of the information and the boundary at each look. The sum of the probabilities
    is the error of all looks together.

    >>> first_crossing_probabilities([0.5, 1.0], [2.797, 1.977]).sum().round(4)
    np.float64(0.05)
    """
    times, bounds = vector(fractions, "fractions"), vector(z, "z")
    if times.shape != bounds.shape:
        raise ValueError(f"z: {len(bounds)} boundaries where there are {len(times)} looks")
    probabilities, state = [], _Continuing()
    for time, bound in zip(times, bounds, strict=True):
        probabilities.append(state.leaving(float(time), float(bound)))
        state = state.after(float(time), float(bound))
    return np.asarray(probabilities)


class _Continuing:
    """The density of Z among studies that have not stopped, at the nodes of a Gauss-Legendre rule."""

    def __init__(self) -> None:
        self.time = 0.0
        # Before the first look the score is exactly 0: one node has all the mass.
        self.scores, self.mass = np.zeros(1), np.ones(1)

    def leaving(self, time: float, bound: float) -> float:
        """Return the probability of |Z| >= bound at `time`."""
        root, sd = math.sqrt(time), math.sqrt(time - self.time)
        out = special.ndtr((-bound * root - self.scores) / sd) + special.ndtr((self.scores - bound * root) / sd)
        return float(np.sum(self.mass * out))

    def after(self, time: float, bound: float) -> "_Continuing":
        """Return the density at `time` of the studies that do not stop then."""
        root, sd = math.sqrt(time), math.sqrt(time - self.time)
        nodes, weights = gauss_legendre(NODES)
        # The density vanishes far from 0, so an infinite boundary needs no wide rule.
        half = min(bound, 9.0) * root
        following = _Continuing()
        following.time, following.scores = time, nodes * half
        distance = following.scores[:, None] - self.scores[None, :]
        density = np.exp(-0.5 * (distance / sd) ** 2) / (sd * math.sqrt(2 * math.pi)) @ self.mass
        following.mass = density * weights * half
        return following


@lru_cache(maxsize=64)
def _design(fractions: tuple[float, ...], shape: str, significance: float) -> GroupSequentialDesign:
    times = np.asarray(fractions)
    z = _spending_boundaries(times, 2 * _spent(times, shape, significance / 2))
    nominal, spent = np.asarray(2 * special.ndtr(-z)), np.cumsum(first_crossing_probabilities(times, z))
    for shared in (times, z, nominal, spent):
        shared.flags.writeable = False
    return GroupSequentialDesign(shape, significance, times, z, nominal, spent)


def _times(fractions: int | npt.ArrayLike) -> FloatArray:
    if isinstance(fractions, (int, np.integer)):
        if not 1 <= fractions <= MAX_LOOKS:
            raise ValueError(f"fractions: {fractions} looks; at least one and at most {MAX_LOOKS} are planned")
        return np.arange(1, int(fractions) + 1) / int(fractions)
    times = vector(fractions, "fractions")
    if not 1 <= len(times) <= MAX_LOOKS:
        raise ValueError(f"fractions: {len(times)} looks; at least one and at most {MAX_LOOKS} are planned")
    if np.isnan(times).any() or times[0] <= 0 or np.any(np.diff(times) <= 0) or abs(times[-1] - 1) > 1e-9:
        raise ValueError("fractions: must ascend from above 0 to 1")
    return times


def _spent(times: FloatArray, shape: str, one_sided: float) -> FloatArray:
    """Return the error that one side may have spent by each time."""
    if shape == "pocock":
        return np.asarray(one_sided * np.log1p((math.e - 1) * times))
    quantile = float(special.ndtri(1 - one_sided / 2))
    return np.asarray(2 * special.ndtr(-quantile / np.sqrt(times)))


def _spending_boundaries(times: FloatArray, spent: FloatArray) -> FloatArray:
    z, state, before = [], _Continuing(), 0.0
    for time, total in zip(times.tolist(), spent.tolist(), strict=True):
        allowed = total - before

        def excess(bound: float, time: float = time, allowed: float = allowed, state: _Continuing = state) -> float:
            return state.leaving(time, bound) - allowed

        bound = NEVER if excess(NEVER) >= 0 else float(optimize.brentq(excess, 0.0, NEVER, xtol=1e-10))
        z.append(bound)
        state = state.after(time, bound)
        before = total
    return np.asarray(z)
