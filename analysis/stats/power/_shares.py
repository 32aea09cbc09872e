"""Power of exact tests of one share and of two independent shares."""

import math

from scipy import special

from analysis.stats.arrays import validate_level, validate_share
from analysis.stats.power._means import power_from_tails
from analysis.stats.power._regions import (
    binomial_outcomes_within_reach,
    binomial_pmf,
    binomial_rejection_region,
    fisher_rejection_region,
)
from analysis.stats.power._search import least_effect, least_n, validate_n_tests

# The time of an exact test is proportional to the number of tables that it enumerates.
MAX_EXACT_N = 1_000_000
MAX_FISHER_N = 20_000
# Number of larger sizes to check, because the power of an exact test can fall again.
TEETH = 25


def proportion_power(p: float, n: int, *, null: float = 0.5, significance: float = 0.05) -> float:
    """Power of the exact two-sided binomial test, as in `basic.proportion`.

    Parameters
    ----------
    p : float
        True share.
    n : int
        Number of independent units.
    null : float, default 0.5
        Share under the null hypothesis.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    float
        The exact power. It is a sawtooth in n: one more unit can have less power.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    Examples
    --------
    >>> round(proportion_power(0.55, 820), 3), round(proportion_power(0.9, 60, null=0.8), 3)
    (0.81, 0.437)
    """
    validate_level(significance)
    validate_share(p, "p")
    if not 0 < null < 1:
        raise ValueError(f"null: {null!r} is not strictly between 0 and 1")
    if n < 1:
        raise ValueError(f"n: {n} is less than 1")
    low, high = binomial_rejection_region(n, null, significance)
    below = float(special.bdtr(low, n, p)) if low >= 0 else 0.0
    above = float(special.bdtrc(high - 1, n, p)) if high <= n else 0.0
    return power_from_tails(above, below)


def proportion_detectable_increase(
    n: int, *, null: float = 0.5, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> float:
    """Compute the smallest distance above `null` of a share that the exact binomial test finds with probability `power`.

    The distance is a share (0.1 is ten percentage points), and `n` counts independent units. The level is significance
    / tests, for a Holm family of `tests` tests. If even a share of 1 is not found, `n` is too small for the test to
    reject, and the function raises ValueError.

    >>> round(proportion_detectable_increase(210), 3)
    0.097
    """
    validate_n_tests(tests)
    return least_effect(
        lambda distance: proportion_power(null + distance, n, null=null, significance=significance / tests),
        power,
        first_guess=(1 - null) / 2,
        largest=1 - null,
    )


def n_for_proportion(
    p: float, *, null: float = 0.5, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> int:
    """Compute the least number of independent units from which `proportion_power` stays at `power` or above.

    `p` is the true share. The level is significance / tests, for a Holm family of `tests` tests. A `p` that equals
    `null` raises ValueError, as does a need of more than a million units.

    >>> n_for_proportion(0.60), n_for_proportion(0.65), n_for_proportion(0.9, null=0.8)
    (210, 97, 120)
    """
    validate_level(power)
    validate_n_tests(tests)
    validate_share(p, "p")
    if p == null:
        raise ValueError("p: no number of units finds a share that equals the null")
    level = significance / tests
    reach = special.ndtri(1 - level / 2) * math.sqrt(null * (1 - null)) + special.ndtri(power) * math.sqrt(p * (1 - p))
    centre = max(1.0, (float(reach) / (p - null)) ** 2)
    # A tooth of the sawtooth is a multiple of sqrt(n) long; further on the power does not fall below again.
    high = int(centre + 20 * math.sqrt(centre) + 100)
    if high > MAX_EXACT_N:
        raise ValueError(f"p: more than {MAX_EXACT_N} units would be needed")
    n = high
    while n > 1 and proportion_power(p, n - 1, null=null, significance=level) >= power:
        n -= 1
    return n


def two_proportions_power(p_x: float, p_y: float, n_x: int, n_y: int, *, significance: float = 0.05) -> float:
    """Power of Fisher's exact two-sided test, as in `groups.share_difference`.

    Parameters
    ----------
    p_x, p_y : float
        True shares.
    n_x, n_y : int
        Independent units in each group.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    float
        The exact power, over all tables that the test rejects.

    Raises
    ------
    ValueError
        If a share or size is outside its range.

    Examples
    --------
    >>> round(two_proportions_power(0.5, 0.7, 93, 93), 3)
    0.751
    """
    validate_level(significance)
    for name, p in (("p_x", p_x), ("p_y", p_y)):
        validate_share(p, name)
    for name, n in (("n_x", n_x), ("n_y", n_y)):
        if n < 1:
            raise ValueError(f"{name}: {n} is less than 1")
    of_x, of_y = binomial_outcomes_within_reach(n_x, p_x), binomial_outcomes_within_reach(n_y, p_y)
    low, high = fisher_rejection_region(n_x, n_y, int(of_x[0] + of_y[0]), int(of_x[-1] + of_y[-1]), significance)
    row = of_x[:, None] + of_y[None, :] - (of_x[0] + of_y[0])
    is_rejected = (of_x[:, None] <= low[row]) | (of_x[:, None] >= high[row])
    return power_from_tails(float(binomial_pmf(of_x, n_x, p_x) @ is_rejected @ binomial_pmf(of_y, n_y, p_y)))


def two_proportions_detectable_increase(
    p_y: float, n_x: int, n_y: int, *, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> float:
    """Compute the smallest distance p_x - p_y above `p_y` that Fisher's exact test finds with probability `power`.

    `p_y` is the true share of the second group, and `n_x` and `n_y` count independent units. The level is significance
    / tests, for a Holm family of `tests` tests.

    >>> round(two_proportions_detectable_increase(0.5, 93, 93), 3)
    0.211
    """
    validate_n_tests(tests)
    validate_share(p_y, "p_y")
    return least_effect(
        lambda distance: two_proportions_power(p_y + distance, p_y, n_x, n_y, significance=significance / tests),
        power,
        first_guess=(1 - p_y) / 2,
        largest=1 - p_y,
    )


def n_for_two_proportions(
    p_x: float, p_y: float, *, ratio: float = 1.0, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> tuple[int, int]:
    """Compute the least numbers of units n_x and n_y from which Fisher's exact test keeps `power`.

    `p_x` and `p_y` are the true shares; two equal shares raise ValueError. `ratio` is n_y / n_x, and n_y is rounded up.
    The power is a sawtooth in n, so the search also checks the next 25 sizes. The level is significance / tests, for a
    Holm family of `tests` tests.

    >>> n_for_two_proportions(0.5, 0.7)
    (102, 102)
    """
    validate_level(power)
    validate_n_tests(tests)
    if p_x == p_y:
        raise ValueError("p_x: no number of units finds a difference of 0")
    if not (math.isfinite(ratio) and ratio > 0):
        raise ValueError(f"ratio: {ratio!r} is not a positive number")

    def enough(n: int) -> bool:
        n_y = max(1, math.ceil(ratio * n - 1e-9))
        return two_proportions_power(p_x, p_y, n, n_y, significance=significance / tests) >= power

    first = least_n(enough, largest=MAX_FISHER_N)
    n = first + TEETH
    while n > 1 and enough(n - 1):
        n -= 1
    return n, max(1, math.ceil(ratio * n - 1e-9))
