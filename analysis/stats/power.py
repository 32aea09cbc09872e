"""Power of the one-sample (and paired) t test and of equivalence: what a study can show, planned and in retrospect.

Observed power, at the effect that was found, is a function of the p-value only and says nothing new: a test that is not
significant at .10 cannot have had it near 1. What may be printed beside a result is the smallest effect that this n
could detect.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import optimize, special

from analysis.stats.arrays import FloatArray, refuse_level

MAX_N = 10_000_000


def t_power(effect: float, n: int, *, significance: float = 0.05) -> float:
    """The power of the two-sided one-sample or paired t test at standardised effect d_z over n units.

    P(|T| > t_crit) with T noncentral t, df = n - 1, nc = |d_z| sqrt(n); both tails count. Where the distribution
    cannot be evaluated in the far tail its limit is used. Raises ValueError below n = 2.

    Source: Cohen 1988; the curve of Figure 2 in the SPA paper is this function at the observed effect.

    >>> round(t_power(0.3, 90), 6)
    0.803794
    """
    refuse_level(significance)
    if n < 2:
        raise ValueError(f"n: {n} is less than 2")
    df, noncentrality = n - 1, abs(effect) * math.sqrt(n)
    critical = float(special.stdtrit(df, 1 - significance / 2))
    beyond = 1 - float(special.nctdtr(df, noncentrality, critical))
    wrong_way = float(special.nctdtr(df, noncentrality, -critical))
    if math.isnan(beyond):
        # Only reached when the noncentrality is far from the critical value, where a normal shift is exact enough.
        beyond = float(special.ndtr(noncentrality - critical))
    if math.isnan(wrong_way):
        wrong_way = 0.0
    return min(1.0, max(0.0, beyond + wrong_way))


def detectable_effect(
    n: int, *, sd: float = 1.0, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> float:
    """The smallest difference that the test finds with probability `power` (the MDE), in units of `sd`'s scale.

    With several `tests` in a Holm family the first step's level, significance / tests, is what must be passed.

    >>> round(detectable_effect(90, sd=0.30), 3), round(detectable_effect(90, sd=0.30, tests=5), 3)
    (0.09, 0.11)
    """
    refuse_level(power)
    _refuse_family(tests)
    if sd < 0 or not math.isfinite(sd):
        raise ValueError(f"sd: {sd!r} is not a non-negative number")
    level = significance / tests

    def shortfall(effect: float) -> float:
        return t_power(effect, n, significance=level) - power

    if shortfall(0.0) >= 0:
        return 0.0
    high = 1.0
    while shortfall(high) < 0:
        high *= 2
    return sd * float(optimize.brentq(shortfall, 0.0, high, xtol=1e-10))


def n_for_power(effect: float, *, power: float = 0.8, significance: float = 0.05, tests: int = 1) -> int:
    """The least number of units at which the test has `power` against standardised effect d_z.

    Raises ValueError for an effect of 0 and for one that would need more than ten million units.

    >>> n_for_power(0.5)
    34
    """
    refuse_level(power)
    _refuse_family(tests)
    level = significance / tests
    if effect == 0:
        raise ValueError("effect: no number of units finds an effect of 0")
    return _least(lambda n: t_power(effect, n, significance=level) >= power)


def equivalence_power(
    n: int, *, sd: float, margin: float, difference: float = 0.0, significance: float = 0.05
) -> float:
    """The probability that TOST shows equivalence within `margin` when the true difference is `difference`.

    Exact: the probability that the mean falls within margin - t_crit s / sqrt(n) of the null, integrated over the
    distribution of s. `sd`, `margin` and `difference` are on one scale.

    >>> round(equivalence_power(216, sd=0.25, margin=0.05), 3)
    0.801
    """
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
    nodes, weights = _quadrature()
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
    """The least number of units at which TOST has `power`. Raises ValueError unless |difference| < margin.

    >>> n_for_equivalence(sd=0.25, margin=0.10)
    55
    """
    refuse_level(power)
    if abs(difference) >= margin:
        raise ValueError("difference: a difference of at least the margin is not equivalence")
    return _least(
        lambda n: equivalence_power(n, sd=sd, margin=margin, difference=difference, significance=significance) >= power
    )


@cache
def _quadrature() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return np.asarray(nodes, dtype=np.float64), np.asarray(weights, dtype=np.float64)


def _least(is_enough: Callable[[int], bool]) -> int:
    high = 2
    while not is_enough(high):
        high *= 2
        if high > MAX_N:
            raise ValueError(f"effect: more than {MAX_N} units would be needed")
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _refuse_family(tests: int) -> None:
    if tests < 1:
        raise ValueError(f"tests: {tests} is less than 1")
