"""E-processes and their confidence sequences."""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import betting
from analysis.stats.arrays import FloatArray, validate_level, validate_within_bounds, vector
from analysis.stats.betting import ConfidenceSequence

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
