"""Power, detectable effects and sample sizes of exact tests of shares."""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray, validate_level, validate_share
from analysis.stats.power_of_means import least_effect, least_n, power_from_tails, validate_n_tests

# Rejection regions of exact tests of shares: binomial, Fisher and sign test.


# Outcomes further than this many standard deviations from the mean do not change a power in double precision.
REACH = 9.0
# Two tables are equally likely if their probabilities differ by no more than rounding; scipy uses the same.
TIE = 1e-7


def binomial_outcomes_within_reach(n: int, p: float) -> IntArray:
    """Return the outcomes of a binomial that are within reach of its mean; see REACH."""
    half = REACH * math.sqrt(n * p * (1 - p)) + REACH**2
    return np.arange(max(0, math.floor(n * p - half)), min(n, math.ceil(n * p + half)) + 1, dtype=np.int64)


def binomial_pmf(k: IntArray, n: int, p: float) -> FloatArray:
    """Return the binomial probabilities of the outcomes `k`; shape of `k`."""
    log_ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(log_ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)))


def _rejected(likelihood: FloatArray, significance: float) -> npt.NDArray[np.bool_]:
    """Return which outcomes of each row are its least likely ones, with total probability at most `significance`.

    Outcomes with equal probability are rejected together or not at all.
    """
    order = np.argsort(likelihood, axis=-1)
    ascending = np.take_along_axis(likelihood, order, axis=-1)
    total = np.cumsum(ascending, axis=-1)
    ends = np.ones(likelihood.shape, dtype=np.bool_)
    ends[..., :-1] = ascending[..., 1:] > ascending[..., :-1] * (1 + TIE)
    allowed = ends & (total <= significance)
    # The largest likelihood at which a complete group of ties still fits; -1 rejects nothing.
    threshold = np.max(np.where(allowed, ascending, -1.0), axis=-1, keepdims=True)
    return np.asarray(likelihood <= threshold * (1 + TIE))


def binomial_rejection_region(n: int, null: float, significance: float) -> tuple[int, int]:
    """Return the ends of the rejection region: at most `low` (-1: none) and at least `high` (n + 1: none) successes."""
    k = binomial_outcomes_within_reach(n, null)
    is_rejected = _rejected(binomial_pmf(k, n, null), significance)
    accepted = k[~is_rejected]
    low, high = int(accepted[0]) - 1, int(accepted[-1]) + 1
    return low, high


def fisher_rejection_region(
    n_x: int, n_y: int, first_total: int, last_total: int, significance: float
) -> tuple[IntArray, IntArray]:
    """Return, for each total of successes first..last, at most and at least how many in x Fisher's test rejects."""
    n = n_x + n_y
    total = np.arange(first_total, last_total + 1)[:, None]
    centre = np.floor(total * (n_x / n)).astype(np.int64)
    half = math.ceil(REACH * math.sqrt(n_x * n_y / (4 * max(1, n - 1))) + REACH**2)
    k = centre + np.arange(-half, half + 1)[None, :]
    is_there = (k >= np.maximum(0, total - n_y)) & (k <= np.minimum(n_x, total))
    inside = np.where(is_there, k, np.maximum(0, total - n_y))
    log_pmf = _log_choose(n_x, inside) + _log_choose(n_y, total - inside) - _log_choose(n, total)
    pmf = np.where(is_there, np.exp(log_pmf), 0.0)
    accepted = is_there & ~_rejected(pmf, significance)
    # The distribution has one peak, so the accepted outcomes are a run around it.
    low = np.take_along_axis(k, np.argmax(accepted, axis=1)[:, None], axis=1)[:, 0] - 1
    backwards = np.argmax(accepted[:, ::-1], axis=1)
    high = np.take_along_axis(k, (k.shape[1] - 1 - backwards)[:, None], axis=1)[:, 0] + 1
    return low, high


def _log_choose(n: int, k: IntArray) -> FloatArray:
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def sign_test_critical_counts(n: IntArray, significance: float) -> IntArray:
    """Return the least c with P(S >= c) <= significance / 2 for S binomial(n, 1/2); n + 1 if no c does."""
    low, high = n // 2, n + 1
    while np.any(high - low > 1):
        middle = (low + high) // 2
        tail = special.bdtrc(middle - 1, n, 0.5)
        is_enough = (tail <= significance / 2) & (middle > 0)
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    return np.asarray(high, dtype=np.int64)


# Power of exact tests of one share and of two independent shares.


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


# Power of McNemar's exact test of paired shares.


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
