"""Power of t tests of two independent groups."""

import math

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray, validate_finite, validate_level
from analysis.stats.power._means import power_from_tails, t_test_power
from analysis.stats.power._search import least_effect, least_n, validate_n_tests
from analysis.stats.quadrature import gauss_legendre


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
