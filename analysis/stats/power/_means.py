"""Power of t tests: one sample, pairs, equivalence."""

import math

import numpy as np
from scipy import optimize, special

from analysis.stats.arrays import validate_finite, validate_level, validate_non_negative
from analysis.stats.power._search import least_n, validate_n_tests
from analysis.stats.quadrature import gauss_legendre


def t_test_power(effect: float, n: int, *, significance: float = 0.05) -> float:
    """Power of the two-sided one-sample or paired t test.

    Parameters
    ----------
    effect : float
        Standardised effect d_z.
    n : int
        Number of units, at least 2.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    float
        P(|T| > t_crit), with T noncentral t, df = n - 1, nc = |d_z| sqrt(n); both tails count.

    Raises
    ------
    ValueError
        If `n` is less than 2.

    References
    ----------
    Cohen 1988; the curve of Figure 2 in the SPA paper is this function at the observed effect.

    Examples
    --------
    >>> round(t_test_power(0.3, 90), 6)
    0.803794
    """
    validate_level(significance)
    validate_finite(effect=effect)
    if n < 2:
        raise ValueError(f"n: {n} is less than 2")
    df, noncentrality = n - 1, abs(effect) * math.sqrt(n)
    critical = float(special.stdtrit(df, 1 - significance / 2))
    beyond = 1 - float(special.nctdtr(df, noncentrality, critical))
    wrong_way = float(special.nctdtr(df, noncentrality, -critical))
    # Far from the critical value, where the distribution cannot be evaluated, a normal shift is exact enough.
    return power_from_tails(beyond, wrong_way, upper_if_nan=float(special.ndtr(noncentrality - critical)))


def t_test_detectable_difference(
    n: int, *, sd: float = 1.0, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> float:
    """Smallest difference that the one-sample t test finds with the given power.

    Parameters
    ----------
    n : int
        Number of units.
    sd : float, default 1.0
        Standard deviation; the result is on its scale.
    power : float, default 0.8
        Power.
    significance : float, default 0.05
        Significance level of the test.
    tests : int, default 1
        Number of tests in a Holm family; the level is significance / tests.

    Returns
    -------
    float
        The difference.

    Examples
    --------
    >>> round(t_test_detectable_difference(90, sd=0.30), 3), round(t_test_detectable_difference(90, sd=0.30, tests=5), 3)
    (0.09, 0.11)
    """
    validate_level(power)
    validate_n_tests(tests)
    validate_non_negative(sd=sd)
    level = significance / tests

    def shortfall(effect: float) -> float:
        return t_test_power(effect, n, significance=level) - power

    if shortfall(0.0) >= 0:
        return 0.0
    high = 1.0
    while shortfall(high) < 0:
        high *= 2
    return sd * float(optimize.brentq(shortfall, 0.0, high, xtol=1e-10))


def n_for_t_test(effect: float, *, power: float = 0.8, significance: float = 0.05, tests: int = 1) -> int:
    """Compute the least number of units for the given power of the one-sample or paired t test.

    `effect` is the standardised d_z. The level is significance / tests, for a Holm family of `tests` tests. An effect
    of 0 raises ValueError, as does a need of more than ten million units.

    >>> n_for_t_test(0.5)
    34
    """
    validate_level(power)
    validate_n_tests(tests)
    level = significance / tests
    if effect == 0:
        raise ValueError("effect: no number of units finds an effect of 0")
    return least_n(lambda n: t_test_power(effect, n, significance=level) >= power)


def equivalence_power(
    n: int, *, sd: float, margin: float, difference: float = 0.0, significance: float = 0.05
) -> float:
    """Power of TOST to show equivalence, exactly.

    Parameters
    ----------
    n : int
        Number of units.
    sd, margin, difference : float
        Standard deviation, equivalence margin and true difference, on one scale.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    float
        The power: P(mean within margin - t_crit s / sqrt(n) of the null), integrated over the distribution of s.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> round(equivalence_power(216, sd=0.25, margin=0.05), 3)
    0.801
    """
    validate_finite(difference=difference)
    if n < 2:
        raise ValueError(f"n: {n} is less than 2")
    if not sd > 0:
        raise ValueError(f"sd: {sd!r} is not a positive number")
    if not margin > 0:
        raise ValueError(f"margin: {margin!r} is not a positive number")
    df, se = n - 1, sd / math.sqrt(n)
    critical = float(special.stdtrit(df, 1 - significance))
    # Beyond this s the interval is wider than the margins and nothing can be shown.
    largest = min(margin / (critical * se), math.sqrt(float(special.chdtri(df, 1e-14)) / df))
    smallest = math.sqrt(max(0.0, float(special.chdtri(df, 1 - 1e-14)) / df))
    if largest <= smallest:
        return 0.0
    nodes, weights = gauss_legendre(200)
    ratio = smallest + (nodes + 1) / 2 * (largest - smallest)
    # The density of s / sigma, from that of chi-square with df degrees of freedom.
    log_density = (
        math.log(2) + (df / 2) * math.log(df / 2) - math.lgamma(df / 2) + (df - 1) * np.log(ratio) - df * ratio**2 / 2
    )
    room = margin / se - critical * ratio
    shift = difference / se
    inside = special.ndtr(room - shift) - special.ndtr(-room - shift)
    total = float(np.sum(weights * np.exp(log_density) * inside)) * (largest - smallest) / 2
    return min(1.0, max(0.0, total))


def n_for_equivalence(
    *, sd: float, margin: float, difference: float = 0.0, power: float = 0.8, significance: float = 0.05
) -> int:
    """Compute the least number of units for the given power of TOST.

    `sd`, `margin` and the true `difference` are on one scale. The function raises ValueError unless |difference| <
    margin.

    >>> n_for_equivalence(sd=0.25, margin=0.10)
    55
    """
    validate_level(power)
    if abs(difference) >= margin:
        raise ValueError("difference: a difference of at least the margin is not equivalence")
    return least_n(
        lambda n: equivalence_power(n, sd=sd, margin=margin, difference=difference, significance=significance) >= power
    )


def power_from_tails(upper: float, lower: float = 0.0, *, upper_if_nan: float = 1.0) -> float:
    """Return the total probability of both tails of a test, even if a library could not compute one of them.

    Parameters
    ----------
    upper, lower : float
        Probabilities of the two tails. Noncentral distributions can return NaN far out.
    upper_if_nan : float, default 1.0
        Limit of the upper tail far out.

    Returns
    -------
    float
        The sum, in 0..1. A `lower` tail (the wrong direction) that is NaN is close to 0 there and does not count. An
        `upper` tail that is NaN is replaced by `upper_if_nan`.

    Examples
    --------
    >>> power_from_tails(0.8, 0.01), power_from_tails(0.8, math.nan), power_from_tails(math.nan, math.nan)
    (0.81, 0.8, 1.0)
    """
    beyond = upper_if_nan if math.isnan(upper) else upper
    wrong_way = 0.0 if math.isnan(lower) else lower
    return min(1.0, max(0.0, beyond + wrong_way))
