"""Power of McNemar's exact test of paired shares."""

import numpy as np
from scipy import special

from analysis.stats.arrays import validate_level, validate_share
from analysis.stats.power._means import power_from_tails
from analysis.stats.power._regions import binomial_outcomes_within_reach, binomial_pmf, sign_test_critical_counts
from analysis.stats.power._search import least_effect, least_n, validate_n_tests
from analysis.stats.power._shares import MAX_EXACT_N


def paired_proportions_power(only_x: float, only_y: float, n: int, *, significance: float = 0.05) -> float:
    """Power of McNemar's exact test of paired shares.

    Parameters
    ----------
    only_x, only_y : float
        Shares of units that say yes to x alone, and to y alone.
    n : int
        Number of units that answer for both.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    float
        The exact power.

    Raises
    ------
    ValueError
        If a share or `n` is outside its range.

    Notes
    -----
    Given D discordant units, the test is the exact binomial test of one half (`basic.sign_test`); D is binomial(n,
    only_x + only_y).

    References
    ----------
    McNemar 1947; Duffy 1984, for the unconditional power.

    Examples
    --------
    >>> round(paired_proportions_power(0.25, 0.10, 100), 3)
    0.674
    """
    validate_level(significance)
    for name, share in (("only_x", only_x), ("only_y", only_y)):
        validate_share(share, name)
    discordant = only_x + only_y
    if discordant > 1 or discordant == 0:
        raise ValueError(f"only_x: with only_y it makes {discordant:g}, which is not in 0..1 or nothing to count")
    if n < 1:
        raise ValueError(f"n: {n} is less than 1")
    seen = binomial_outcomes_within_reach(n, discordant)
    critical = sign_test_critical_counts(seen, significance)
    share = only_x / discordant
    is_possible = critical <= seen
    below, above = np.zeros(len(seen)), np.zeros(len(seen))
    below[is_possible] = special.bdtr((seen - critical)[is_possible], seen[is_possible], share)
    above[is_possible] = special.bdtrc((critical - 1)[is_possible], seen[is_possible], share)
    return power_from_tails(float(binomial_pmf(seen, n, discordant) @ (below + above)))


def n_for_paired_proportions(
    only_x: float, only_y: float, *, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> int:
    """Compute the least number of units that answer for both x and y for the given power of McNemar's exact test.

    `only_x` and `only_y` are the shares of units that say yes to x alone, and to y alone; two equal shares raise
    ValueError. The level is significance / tests, for a Holm family of `tests` tests.

    >>> n_for_paired_proportions(0.25, 0.10)
    129
    """
    validate_level(power)
    validate_n_tests(tests)
    if only_x == only_y:
        raise ValueError("only_x: no number of units finds a difference of 0")
    return least_n(
        lambda n: paired_proportions_power(only_x, only_y, n, significance=significance / tests) >= power,
        largest=MAX_EXACT_N,
    )


def paired_proportions_detectable_difference(
    discordant: float, n: int, *, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> float:
    """Compute the smallest difference of paired shares, only_x - only_y, that McNemar's exact test finds with `power`.

    `discordant` is the share of units whose two answers differ, only_x + only_y; the difference is at most this. `n`
    counts units that answer for both. The level is significance / tests, for a Holm family of `tests` tests.

    >>> round(paired_proportions_detectable_difference(0.35, 100), 3)
    0.171
    """
    validate_n_tests(tests)
    return least_effect(
        lambda difference: paired_proportions_power(
            (discordant + difference) / 2, (discordant - difference) / 2, n, significance=significance / tests
        ),
        power,
        first_guess=discordant / 2,
        largest=discordant,
    )
