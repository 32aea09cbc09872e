"""Power, detectable effects and sample sizes, exact for the tests of this library: t, F, binomial, Fisher, TOST.

Observed power, at the effect that was found, depends only on the p-value and adds nothing. Print the smallest
effect that this n can detect instead.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import optimize, special

from analysis.stats.arrays import FloatArray, validate_finite, validate_level, validate_non_negative, vector
from analysis.stats.quadrature import gauss_legendre

# Search for the least n and the least effect by bisection.


MAX_N = 10_000_000


def least_n(is_enough: Callable[[int], bool], *, largest: int = MAX_N) -> int:
    """Return the least n >= 2 that is enough, if every larger n is too. Raise ValueError beyond `largest`."""
    high = 2
    while not is_enough(high):
        high *= 2
        if high > largest:
            raise ValueError(f"effect: more than {largest} units would be needed")
    low = max(2, high // 2)
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return low


def validate_n_tests(tests: int) -> None:
    """Raise ValueError for a family without a test."""
    if tests < 1:
        raise ValueError(f"tests: {tests} is less than 1")


def least_effect(
    power_at: Callable[[float], float], target_power: float, *, first_guess: float, largest: float
) -> float:
    """Return the least effect in 0..`largest` with the wanted power, for a power that grows with the effect."""
    validate_level(target_power)
    if power_at(0.0) >= target_power:
        return 0.0
    high = first_guess
    while power_at(high) < target_power:
        if high >= largest:
            raise ValueError(f"n: too few units to find even the largest effect with power {target_power:g}")
        high = min(largest, 2 * high)
    return float(optimize.brentq(lambda effect: power_at(effect) - target_power, 0.0, high, xtol=1e-10))


# Power of t tests: one sample, pairs, equivalence.


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

    Noncentral distributions can return NaN far out. A `lower` tail (the wrong direction) that is NaN is close to 0
    there and does not count. An `upper` tail that is NaN is replaced by its limit far out, `upper_if_nan`. The sum is
    in 0..1.

    >>> power_from_tails(0.8, 0.01), power_from_tails(0.8, math.nan), power_from_tails(math.nan, math.nan)
    (0.81, 0.8, 1.0)
    """
    beyond = upper_if_nan if math.isnan(upper) else upper
    wrong_way = 0.0 if math.isnan(lower) else lower
    return min(1.0, max(0.0, beyond + wrong_way))


# Power of t tests of two independent groups.


def two_sample_t_test_power(
    difference: float,
    n_x: int,
    n_y: int,
    *,
    sd_x: float = 1.0,
    sd_y: float | None = None,
    variances: str = "unequal",
    significance: float = 0.05,
) -> float:
    """Power of the two-sided t test of two independent groups.

    Parameters
    ----------
    difference : float
        True difference of the means; Cohen's d with `sd_x` = 1.
    n_x, n_y : int
        Units in each group.
    sd_x, sd_y : float, optional
        Standard deviations; `sd_y` equals `sd_x` if None.
    variances : {"unequal", "equal"}, default 'unequal'
        Welch's test (`basic.welch_t_test`), or Student's pooled test.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    float
        The power.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Notes
    -----
    "unequal" is exact for normal values: the rejection probability given both observed variances, integrated over
    their chi-square distributions. "equal": noncentral t on n_x + n_y - 2 with nc = difference / (sd sqrt(1 / n_x + 1
    / n_y)).

    References
    ----------
    Welch 1938; Cohen 1988.

    Examples
    --------
    >>> round(two_sample_t_test_power(0.25, 130, 130), 3), round(two_sample_t_test_power(0.25, 130, 130, variances="equal"), 3)
    (0.519, 0.519)
    >>> round(two_sample_t_test_power(0.5, 20, 60, sd_x=1.0, sd_y=2.0), 3)
    0.302
    """
    validate_level(significance)
    validate_finite(difference=difference)
    other = sd_x if sd_y is None else sd_y
    for name, n in (("n_x", n_x), ("n_y", n_y)):
        if n < 2:
            raise ValueError(f"{name}: {n} is less than 2")
    for name, sd in (("sd_x", sd_x), ("sd_y", other)):
        if not (math.isfinite(sd) and sd > 0):
            raise ValueError(f"{name}: {sd!r} is not a positive number")
    if variances not in ("unequal", "equal"):
        raise ValueError(f"variances: {variances!r} is neither unequal nor equal")
    if variances == "equal":
        if other != sd_x:
            raise ValueError("sd_y: the pooled test assumes that it equals sd_x")
        scale = math.sqrt(1 / n_x + 1 / n_y) * math.sqrt(n_x + n_y - 1)
        return t_test_power(difference / (sd_x * scale), n_x + n_y - 1, significance=significance)
    part_x, part_y = sd_x**2 / n_x, other**2 / n_y
    shift = abs(difference) / math.sqrt(part_x + part_y)
    ratio_x, weight_x = _spread_nodes(n_x - 1)
    ratio_y, weight_y = _spread_nodes(n_y - 1)
    seen_x, seen_y = part_x * ratio_x[:, None] ** 2, part_y * ratio_y[None, :] ** 2
    df = (seen_x + seen_y) ** 2 / (seen_x**2 / (n_x - 1) + seen_y**2 / (n_y - 1))
    bound = special.stdtrit(df, 1 - significance / 2) * np.sqrt((seen_x + seen_y) / (part_x + part_y))
    beyond = special.ndtr(shift - bound) + special.ndtr(-shift - bound)
    return power_from_tails(float(weight_x @ beyond @ weight_y))


def two_sample_detectable_difference(
    n_x: int,
    n_y: int,
    *,
    sd_x: float = 1.0,
    sd_y: float | None = None,
    variances: str = "unequal",
    power: float = 0.8,
    significance: float = 0.05,
    tests: int = 1,
) -> float:
    """Compute the smallest difference of two means that `two_sample_t_test_power` finds with probability `power`.

    The difference is on the scale of the standard deviations, so it is Cohen's d if `sd_x` is 1; `sd_y` equals `sd_x`
    if None. `variances` is "unequal" for Welch's test or "equal" for Student's pooled test, and `tests` is the number
    of tests in a Holm family: the level is significance / tests.

    >>> round(two_sample_detectable_difference(130, 130), 2), round(two_sample_detectable_difference(130, 130, tests=15), 2)
    (0.35, 0.47)
    """
    validate_n_tests(tests)

    def power_at(difference: float) -> float:
        return two_sample_t_test_power(
            difference, n_x, n_y, sd_x=sd_x, sd_y=sd_y, variances=variances, significance=significance / tests
        )

    return least_effect(power_at, power, first_guess=sd_x, largest=math.inf)


def n_for_two_sample_t_test(
    difference: float,
    *,
    sd_x: float = 1.0,
    sd_y: float | None = None,
    ratio: float = 1.0,
    variances: str = "unequal",
    power: float = 0.8,
    significance: float = 0.05,
    tests: int = 1,
) -> tuple[int, int]:
    """Compute the least numbers of units in each group, n_x and n_y, for the given `power` of `two_sample_t_test_power`.

    `difference` is the true difference of the means, Cohen's d if `sd_x` is 1; it must not be 0, because no number of
    units finds a difference of 0. `sd_y` equals `sd_x` if None. `ratio` is n_y / n_x, and n_y is rounded up.
    `variances` is "unequal" for Welch's test or "equal" for Student's pooled test, and `tests` is the number of tests
    in a Holm family: the level is significance / tests.

    >>> n_for_two_sample_t_test(0.05, sd_x=0.224), n_for_two_sample_t_test(0.5, ratio=2)
    ((317, 317), (49, 98))
    """
    validate_level(power)
    validate_n_tests(tests)
    if difference == 0:
        raise ValueError("difference: no number of units finds a difference of 0")
    if not (math.isfinite(ratio) and ratio > 0):
        raise ValueError(f"ratio: {ratio!r} is not a positive number")

    def sizes(n: int) -> tuple[int, int]:
        return n, max(2, math.ceil(ratio * n - 1e-9))

    n_x = least_n(
        lambda n: (
            two_sample_t_test_power(
                difference, *sizes(n), sd_x=sd_x, sd_y=sd_y, variances=variances, significance=significance / tests
            )
            >= power
        )
    )
    return sizes(n_x)


def _spread_nodes(df: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights for an expectation over s / sigma, which is sqrt(chi-square / df)."""
    nodes, weights = gauss_legendre(64)
    low = math.sqrt(max(0.0, float(special.chdtri(df, 1 - 1e-14)) / df))
    high = math.sqrt(float(special.chdtri(df, 1e-14)) / df)
    ratio = low + (nodes + 1) / 2 * (high - low)
    log_density = (
        math.log(2) + (df / 2) * math.log(df / 2) - math.lgamma(df / 2) + (df - 1) * np.log(ratio) - df * ratio**2 / 2
    )
    return ratio, weights * np.exp(log_density) * (high - low) / 2


# Power of the F test over several groups.


def anova_power(effect: float, sizes: Sequence[int], *, significance: float = 0.05) -> float:
    """Power of the one-way analysis of variance.

    Parameters
    ----------
    effect : float
        Cohen's f.
    sizes : sequence[int]
        Number of units in each group.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    float
        P(F > F_crit), with F noncentral on k - 1 and N - k degrees of freedom, nc = N f^2.

    Raises
    ------
    ValueError
        If the groups are too small.

    References
    ----------
    Cohen 1988, chapter 8; the comparison of domains in Clark et al. 2021, section 4.

    Examples
    --------
    >>> round(anova_power(0.1094, [130, 130, 130]), 3)
    0.472
    """
    validate_level(significance)
    counts = vector(sizes, "sizes")
    k, n = len(counts), float(np.sum(counts))
    if k < 2 or np.any(counts < 1) or n - k < 1:
        raise ValueError(f"sizes: {counts.tolist()} leave no variance within groups to compare with")
    critical = float(special.fdtri(k - 1, n - k, 1 - significance))
    noncentrality = n * effect**2
    return power_from_tails(1 - float(special.ncfdtr(k - 1, n - k, noncentrality, critical)))


def anova_detectable_effect(
    sizes: Sequence[int], *, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> float:
    """Compute the smallest Cohen's f that the one-way analysis of variance finds with the given power.

    `sizes` are the numbers of units in each group, and `tests` is the number of tests in a Holm family: the level is
    significance / tests.

    >>> round(anova_detectable_effect([130, 130, 130]), 3)
    0.158
    """
    validate_n_tests(tests)
    return least_effect(
        lambda effect: anova_power(effect, sizes, significance=significance / tests),
        power,
        first_guess=0.1,
        largest=math.inf,
    )


def n_per_group_for_anova(
    effect: float, n_groups: int, *, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> int:
    """Compute the least number of units per group for the given power of the analysis of variance.

    `effect` is Cohen's f, which must not be 0, because no number of units finds an effect of 0, and `tests` is the
    number of tests in a Holm family: the level is significance / tests.

    >>> n_per_group_for_anova(0.25, 3)
    53
    """
    validate_level(power)
    validate_n_tests(tests)
    if effect == 0:
        raise ValueError("effect: no number of units finds an effect of 0")
    if n_groups < 2:
        raise ValueError(f"n_groups: {n_groups} is less than 2")
    return least_n(lambda n: anova_power(effect, [n] * n_groups, significance=significance / tests) >= power)
