"""Power of the F test over several groups."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from analysis.stats.arrays import validate_level, vector
from analysis.stats.power._means import power_from_tails
from analysis.stats.power._search import least_effect, least_n, validate_n_tests


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
