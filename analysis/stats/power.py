"""Power, detectable effects and sample sizes, exact for the tests that this library does: t, F, binomial, Fisher, TOST.

Observed power, at the effect that was found, is a function of the p-value only and says nothing new: a test that is not
significant at .10 cannot have had it near 1. What may be printed beside a result is the smallest effect that this n
could detect.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats.arrays import FloatArray, IntArray, refuse_level, vector

MAX_N = 10_000_000
# Exact tests on counts take time in proportion to what they enumerate.
MAX_EXACT_N = 1_000_000
MAX_FISHER_N = 20_000
# Outcomes further than this many standard deviations from the mean do not change a power in double precision.
REACH = 9.0
# Two tables are equally likely if their probabilities differ by no more than rounding; scipy uses the same.
TIE = 1e-7
# How many sizes on an exact test's power may still fall back below what one size had reached.
TEETH = 25


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


def safe_power(upper: float, lower: float = 0.0, *, limit: float = 1.0) -> float:
    """The probability of the two tails of a test, 0..1, also where a library could not compute one of them.

    Noncentral distributions come back as nan far out. A `lower` tail (the wrong way) that is nan is next to 0 there,
    so only the upper counts; an `upper` tail that is nan is `limit`, what it tends to there.

    >>> safe_power(0.8, 0.01), safe_power(0.8, math.nan), safe_power(math.nan, math.nan)
    (0.81, 0.8, 1.0)
    """
    beyond = limit if math.isnan(upper) else upper
    wrong_way = 0.0 if math.isnan(lower) else lower
    return min(1.0, max(0.0, beyond + wrong_way))


def two_sample_power(
    difference: float,
    n_x: int,
    n_y: int,
    *,
    sd_x: float = 1.0,
    sd_y: float | None = None,
    variances: str = "unequal",
    significance: float = 0.05,
) -> float:
    """The power of the two-sided t test of two independent groups at a true difference of their means.

    "unequal": Welch's test as `basic.welch` does it, exact for normal values: its rejection probability given the two
    observed variances, integrated over their chi-square distributions. "equal": Student's pooled test, noncentral t on
    n_x + n_y - 2 with nc = difference / (sd sqrt(1 / n_x + 1 / n_y)); it takes one standard deviation (`sd_x`).
    `sd_y` None means the same as `sd_x`. With `sd_x` = 1 the difference is Cohen's d.

    Source: Welch 1938; Cohen 1988.

    >>> round(two_sample_power(0.25, 130, 130), 3), round(two_sample_power(0.25, 130, 130, variances="equal"), 3)
    (0.519, 0.519)
    >>> round(two_sample_power(0.5, 20, 60, sd_x=1.0, sd_y=2.0), 3)
    0.302
    """
    refuse_level(significance)
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
        return t_power(difference / (sd_x * scale), n_x + n_y - 1, significance=significance)
    part_x, part_y = sd_x**2 / n_x, other**2 / n_y
    shift = abs(difference) / math.sqrt(part_x + part_y)
    ratio_x, weight_x = _spread_nodes(n_x - 1)
    ratio_y, weight_y = _spread_nodes(n_y - 1)
    seen_x, seen_y = part_x * ratio_x[:, None] ** 2, part_y * ratio_y[None, :] ** 2
    df = (seen_x + seen_y) ** 2 / (seen_x**2 / (n_x - 1) + seen_y**2 / (n_y - 1))
    bound = special.stdtrit(df, 1 - significance / 2) * np.sqrt((seen_x + seen_y) / (part_x + part_y))
    beyond = special.ndtr(shift - bound) + special.ndtr(-shift - bound)
    return safe_power(float(weight_x @ beyond @ weight_y))


def two_sample_detectable(
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
    """The smallest difference of two means that `two_sample_power` finds with probability `power`.

    With several `tests` in a Holm family at the first step's level, significance / tests.

    >>> round(two_sample_detectable(130, 130), 2), round(two_sample_detectable(130, 130, tests=15), 2)
    (0.35, 0.47)
    """
    _refuse_family(tests)

    def power_at(difference: float) -> float:
        return two_sample_power(
            difference, n_x, n_y, sd_x=sd_x, sd_y=sd_y, variances=variances, significance=significance / tests
        )

    return _detectable(power_at, power, start=sd_x, end=math.inf)


def n_for_two_samples(
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
    """The least units in each group, n_y = ratio n_x rounded up, at which `two_sample_power` reaches `power`.

    >>> n_for_two_samples(0.05, sd_x=0.224), n_for_two_samples(0.5, ratio=2)
    ((317, 317), (49, 98))
    """
    refuse_level(power)
    _refuse_family(tests)
    if difference == 0:
        raise ValueError("difference: no number of units finds a difference of 0")
    if not (math.isfinite(ratio) and ratio > 0):
        raise ValueError(f"ratio: {ratio!r} is not a positive number")

    def sizes(n: int) -> tuple[int, int]:
        return n, max(2, math.ceil(ratio * n - 1e-9))

    n_x = _least(
        lambda n: (
            two_sample_power(
                difference, *sizes(n), sd_x=sd_x, sd_y=sd_y, variances=variances, significance=significance / tests
            )
            >= power
        )
    )
    return sizes(n_x)


def cohen_f(means: Sequence[float], sizes: Sequence[int], *, sd: float) -> float:
    """Cohen's f of true group means: sqrt(sum n_g (mean_g - mean)^2 / N) / sd, the mean weighted by n_g.

    >>> round(cohen_f([0.50, 0.53, 0.56], [130, 130, 130], sd=0.224), 4)
    0.1094
    """
    centres, counts = vector(means, "means"), vector(sizes, "sizes")
    if centres.shape != counts.shape:
        raise ValueError(f"sizes: {len(counts)} groups where means has {len(centres)}")
    if not (math.isfinite(sd) and sd > 0):
        raise ValueError(f"sd: {sd!r} is not a positive number")
    shares = counts / np.sum(counts)
    return math.sqrt(float(shares @ (centres - shares @ centres) ** 2)) / sd


def anova_power(effect: float, sizes: Sequence[int], *, significance: float = 0.05) -> float:
    """The power of the one-way analysis of variance at Cohen's f = `effect`; `sizes` are the groups' numbers of units.

    P(F > F_crit) with F noncentral on k - 1 and N - k degrees of freedom, nc = N f^2.

    Source: Cohen 1988, chapter 8; the comparison of domains in Clark et al. 2021, section 4.

    >>> round(anova_power(0.1094, [130, 130, 130]), 3)
    0.472
    """
    refuse_level(significance)
    counts = vector(sizes, "sizes")
    k, n = len(counts), float(np.sum(counts))
    if k < 2 or np.any(counts < 1) or n - k < 1:
        raise ValueError(f"sizes: {counts.tolist()} leave no variance within groups to compare with")
    critical = float(special.fdtri(k - 1, n - k, 1 - significance))
    noncentrality = n * effect**2
    return safe_power(1 - float(special.ncfdtr(k - 1, n - k, noncentrality, critical)))


def anova_detectable(sizes: Sequence[int], *, power: float = 0.8, significance: float = 0.05, tests: int = 1) -> float:
    """The smallest Cohen's f that `anova_power` finds with probability `power`.

    >>> round(anova_detectable([130, 130, 130]), 3)
    0.158
    """
    _refuse_family(tests)
    return _detectable(
        lambda effect: anova_power(effect, sizes, significance=significance / tests), power, start=0.1, end=math.inf
    )


def n_for_anova(effect: float, n_groups: int, *, power: float = 0.8, significance: float = 0.05, tests: int = 1) -> int:
    """The least number of units in each of `n_groups` groups at which `anova_power` reaches `power`.

    >>> n_for_anova(0.25, 3)
    53
    """
    refuse_level(power)
    _refuse_family(tests)
    if effect == 0:
        raise ValueError("effect: no number of units finds an effect of 0")
    if n_groups < 2:
        raise ValueError(f"n_groups: {n_groups} is less than 2")
    return _least(lambda n: anova_power(effect, [n] * n_groups, significance=significance / tests) >= power)


def proportion_power(p: float, n: int, *, null: float = 0.5, significance: float = 0.05) -> float:
    """The power of the exact two-sided binomial test of `null` on n independent units, each 1 with probability `p`.

    The test is that of `basic.proportion`: it rejects the outcomes that are least likely under the null, as many as
    stay within `significance`. Exact. It saws in n: one unit more may have less power.

    >>> round(proportion_power(0.55, 820), 3), round(proportion_power(0.9, 60, null=0.8), 3)
    (0.81, 0.437)
    """
    refuse_level(significance)
    _refuse_share(p, "p")
    if not 0 < null < 1:
        raise ValueError(f"null: {null!r} is not strictly between 0 and 1")
    if n < 1:
        raise ValueError(f"n: {n} is less than 1")
    low, high = _binomial_region(n, null, significance)
    below = float(special.bdtr(low, n, p)) if low >= 0 else 0.0
    above = float(special.bdtrc(high - 1, n, p)) if high <= n else 0.0
    return safe_power(above, below)


def proportion_detectable(
    n: int, *, null: float = 0.5, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> float:
    """How far above `null` a share must lie for the exact test to find it with probability `power` in n units.

    Raises ValueError where even a share of 1 would not be found: then n is too small for the test to reject at all.

    >>> round(proportion_detectable(210), 3)
    0.097
    """
    _refuse_family(tests)
    return _detectable(
        lambda distance: proportion_power(null + distance, n, null=null, significance=significance / tests),
        power,
        start=(1 - null) / 2,
        end=1 - null,
    )


def n_for_proportion(
    p: float, *, null: float = 0.5, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> int:
    """The least n from which on `proportion_power` stays at `power` or above.

    >>> n_for_proportion(0.60), n_for_proportion(0.65), n_for_proportion(0.9, null=0.8)
    (210, 97, 120)
    """
    refuse_level(power)
    _refuse_family(tests)
    _refuse_share(p, "p")
    if p == null:
        raise ValueError("p: no number of units finds a share that equals the null")
    level = significance / tests
    reach = special.ndtri(1 - level / 2) * math.sqrt(null * (1 - null)) + special.ndtri(power) * math.sqrt(p * (1 - p))
    centre = max(1.0, (float(reach) / (p - null)) ** 2)
    # A tooth of the saw is some multiple of sqrt(n); well beyond that nothing falls short any more.
    high = int(centre + 20 * math.sqrt(centre) + 100)
    if high > MAX_EXACT_N:
        raise ValueError(f"p: more than {MAX_EXACT_N} units would be needed")
    n = high
    while n > 1 and proportion_power(p, n - 1, null=null, significance=level) >= power:
        n -= 1
    return n


def two_proportions_power(p_x: float, p_y: float, n_x: int, n_y: int, *, significance: float = 0.05) -> float:
    """The power of Fisher's exact two-sided test, as `groups.share_difference` does it, at true shares p_x and p_y.

    Exact: the probability of all tables that the test rejects. Units are independent, n_x and n_y of them.

    >>> round(two_proportions_power(0.5, 0.7, 93, 93), 3)
    0.751
    """
    refuse_level(significance)
    for name, p in (("p_x", p_x), ("p_y", p_y)):
        _refuse_share(p, name)
    for name, n in (("n_x", n_x), ("n_y", n_y)):
        if n < 1:
            raise ValueError(f"{name}: {n} is less than 1")
    of_x, of_y = _likely(n_x, p_x), _likely(n_y, p_y)
    low, high = _fisher_region(n_x, n_y, int(of_x[0] + of_y[0]), int(of_x[-1] + of_y[-1]), significance)
    row = of_x[:, None] + of_y[None, :] - (of_x[0] + of_y[0])
    is_rejected = (of_x[:, None] <= low[row]) | (of_x[:, None] >= high[row])
    return safe_power(float(_binomial_pmf(of_x, n_x, p_x) @ is_rejected @ _binomial_pmf(of_y, n_y, p_y)))


def two_proportions_detectable(
    p_y: float, n_x: int, n_y: int, *, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> float:
    """How far above p_y the other share must lie for Fisher's test to find it with probability `power`.

    >>> round(two_proportions_detectable(0.5, 93, 93), 3)
    0.211
    """
    _refuse_family(tests)
    _refuse_share(p_y, "p_y")
    return _detectable(
        lambda distance: two_proportions_power(p_y + distance, p_y, n_x, n_y, significance=significance / tests),
        power,
        start=(1 - p_y) / 2,
        end=1 - p_y,
    )


def n_for_two_proportions(
    p_x: float, p_y: float, *, ratio: float = 1.0, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> tuple[int, int]:
    """The least units in each group, n_y = ratio n_x rounded up, from which on Fisher's test keeps `power`.

    The power saws in n, with teeth a few sizes wide; that it no longer falls short is looked for over the next 25.

    >>> n_for_two_proportions(0.5, 0.7)
    (102, 102)
    """
    refuse_level(power)
    _refuse_family(tests)
    if p_x == p_y:
        raise ValueError("p_x: no number of units finds a difference of 0")
    if not (math.isfinite(ratio) and ratio > 0):
        raise ValueError(f"ratio: {ratio!r} is not a positive number")

    def enough(n: int) -> bool:
        n_y = max(1, math.ceil(ratio * n - 1e-9))
        return two_proportions_power(p_x, p_y, n, n_y, significance=significance / tests) >= power

    first = _least(enough, largest=MAX_FISHER_N)
    n = first + TEETH
    while n > 1 and enough(n - 1):
        n -= 1
    return n, max(1, math.ceil(ratio * n - 1e-9))


def paired_proportions_power(only_x: float, only_y: float, n: int, *, significance: float = 0.05) -> float:
    """The power of McNemar's exact test: n units that each answer for x and for y, of which only the discordant count.

    `only_x` and `only_y` are the shares of units that say yes to x alone and to y alone. Given D discordant units the
    test is the exact binomial of one half (`basic.sign_test`); D is binomial(n, only_x + only_y).

    Source: McNemar 1947; Duffy 1984, for the unconditional power.

    >>> round(paired_proportions_power(0.25, 0.10, 100), 3)
    0.674
    """
    refuse_level(significance)
    for name, share in (("only_x", only_x), ("only_y", only_y)):
        _refuse_share(share, name)
    discordant = only_x + only_y
    if discordant > 1 or discordant == 0:
        raise ValueError(f"only_x: with only_y it makes {discordant:g}, which is not in 0..1 or nothing to count")
    if n < 1:
        raise ValueError(f"n: {n} is less than 1")
    seen = _likely(n, discordant)
    critical = _sign_critical(seen, significance)
    share = only_x / discordant
    is_possible = critical <= seen
    below, above = np.zeros(len(seen)), np.zeros(len(seen))
    below[is_possible] = special.bdtr((seen - critical)[is_possible], seen[is_possible], share)
    above[is_possible] = special.bdtrc((critical - 1)[is_possible], seen[is_possible], share)
    return safe_power(float(_binomial_pmf(seen, n, discordant) @ (below + above)))


def n_for_paired_proportions(
    only_x: float, only_y: float, *, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> int:
    """The least number of units at which McNemar's exact test reaches `power`.

    >>> n_for_paired_proportions(0.25, 0.10)
    129
    """
    refuse_level(power)
    _refuse_family(tests)
    if only_x == only_y:
        raise ValueError("only_x: no number of units finds a difference of 0")
    return _least(
        lambda n: paired_proportions_power(only_x, only_y, n, significance=significance / tests) >= power,
        largest=MAX_EXACT_N,
    )


def paired_proportions_detectable(
    discordant: float, n: int, *, power: float = 0.8, significance: float = 0.05, tests: int = 1
) -> float:
    """The smallest difference of paired shares, only_x - only_y, that is found when `discordant` of the units differ.

    >>> round(paired_proportions_detectable(0.35, 100), 3)
    0.171
    """
    _refuse_family(tests)
    return _detectable(
        lambda difference: paired_proportions_power(
            (discordant + difference) / 2, (discordant - difference) / 2, n, significance=significance / tests
        ),
        power,
        start=discordant / 2,
        end=discordant,
    )


@cache
def _quadrature(count: int = 200) -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return np.asarray(nodes, dtype=np.float64), np.asarray(weights, dtype=np.float64)


def _least(is_enough: Callable[[int], bool], *, largest: int = MAX_N) -> int:
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


def _refuse_family(tests: int) -> None:
    if tests < 1:
        raise ValueError(f"tests: {tests} is less than 1")


def _refuse_share(share: float, name: str) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"{name}: {share!r} is not in 0..1")


def _detectable(power_at: Callable[[float], float], wanted: float, *, start: float, end: float) -> float:
    """The least effect in 0..end with the power wanted, for a power that grows with the effect."""
    refuse_level(wanted)
    if power_at(0.0) >= wanted:
        return 0.0
    high = start
    while power_at(high) < wanted:
        if high >= end:
            raise ValueError(f"n: too few units to find even the largest effect with power {wanted:g}")
        high = min(end, 2 * high)
    return float(optimize.brentq(lambda effect: power_at(effect) - wanted, 0.0, high, xtol=1e-10))


def _spread_nodes(df: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights for an expectation over s / sigma, which is sqrt(chi-square / df)."""
    nodes, weights = _quadrature(64)
    low = math.sqrt(max(0.0, float(special.chdtri(df, 1 - 1e-14)) / df))
    high = math.sqrt(float(special.chdtri(df, 1e-14)) / df)
    ratio = low + (nodes + 1) / 2 * (high - low)
    log_density = (
        math.log(2) + (df / 2) * math.log(df / 2) - math.lgamma(df / 2) + (df - 1) * np.log(ratio) - df * ratio**2 / 2
    )
    return ratio, weights * np.exp(log_density) * (high - low) / 2


def _likely(n: int, p: float) -> IntArray:
    """The outcomes of a binomial that are not beyond reach."""
    half = REACH * math.sqrt(n * p * (1 - p)) + REACH**2
    return np.arange(max(0, math.floor(n * p - half)), min(n, math.ceil(n * p + half)) + 1, dtype=np.int64)


def _binomial_pmf(k: IntArray, n: int, p: float) -> FloatArray:
    log_ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(log_ways + special.xlogy(k, p) + special.xlog1py(n - k, -p)))


def _rejected(likelihood: FloatArray, significance: float) -> npt.NDArray[np.bool_]:
    """Which outcomes of each row are among its least likely, ties whole, within `significance` of probability."""
    order = np.argsort(likelihood, axis=-1)
    ascending = np.take_along_axis(likelihood, order, axis=-1)
    total = np.cumsum(ascending, axis=-1)
    ends = np.ones(likelihood.shape, dtype=np.bool_)
    ends[..., :-1] = ascending[..., 1:] > ascending[..., :-1] * (1 + TIE)
    allowed = ends & (total <= significance)
    # The largest likelihood at which a whole group of ties still fits; -1 rejects nothing.
    threshold = np.max(np.where(allowed, ascending, -1.0), axis=-1, keepdims=True)
    return np.asarray(likelihood <= threshold * (1 + TIE))


def _binomial_region(n: int, null: float, significance: float) -> tuple[int, int]:
    """The test rejects at most `low` (-1: none) and at least `high` (n + 1: none) successes."""
    k = _likely(n, null)
    is_rejected = _rejected(_binomial_pmf(k, n, null), significance)
    accepted = k[~is_rejected]
    low, high = int(accepted[0]) - 1, int(accepted[-1]) + 1
    return low, high


def _fisher_region(n_x: int, n_y: int, first: int, last: int, significance: float) -> tuple[IntArray, IntArray]:
    """For each total of successes first..last: Fisher's test rejects at most `low` and at least `high` of them in x."""
    n = n_x + n_y
    total = np.arange(first, last + 1)[:, None]
    centre = np.floor(total * (n_x / n)).astype(np.int64)
    half = math.ceil(REACH * math.sqrt(n_x * n_y / (4 * max(1, n - 1))) + REACH**2)
    k = centre + np.arange(-half, half + 1)[None, :]
    is_there = (k >= np.maximum(0, total - n_y)) & (k <= np.minimum(n_x, total))
    inside = np.where(is_there, k, np.maximum(0, total - n_y))
    log_pmf = _log_choose(n_x, inside) + _log_choose(n_y, total - inside) - _log_choose(n, total)
    pmf = np.where(is_there, np.exp(log_pmf), 0.0)
    accepted = is_there & ~_rejected(pmf, significance)
    # The distribution has one peak, so what is accepted is a run of outcomes around it.
    low = np.take_along_axis(k, np.argmax(accepted, axis=1)[:, None], axis=1)[:, 0] - 1
    backwards = np.argmax(accepted[:, ::-1], axis=1)
    high = np.take_along_axis(k, (k.shape[1] - 1 - backwards)[:, None], axis=1)[:, 0] + 1
    return low, high


def _log_choose(n: int, k: IntArray) -> FloatArray:
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def _sign_critical(n: IntArray, significance: float) -> IntArray:
    """The least c with P(S >= c) <= significance / 2 for S binomial(n, 1/2); n + 1 where there is none."""
    low, high = n // 2, n + 1
    while np.any(high - low > 1):
        middle = (low + high) // 2
        tail = special.bdtrc(middle - 1, n, 0.5)
        is_enough = (tail <= significance / 2) & (middle > 0)
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    return np.asarray(high, dtype=np.int64)
