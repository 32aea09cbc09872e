"""Comparisons of groups: study arms, domains, training conditions.

There are three kinds of data. One value per annotator (for example an accuracy): analysis of variance and
pairwise comparisons, as in papers. One row per answer: contrasts of cell means whose rows share annotators and
items, for claims beyond these people and texts. Counts of people: who was lost, and from which arm.
And the order of arrival: whether arms were filled at the same time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats import basic, effects, multiplicity, power_of_means
from analysis.stats.arrays import MIN_SPREAD, FloatArray, IntArray, label_codes, matrix, validate_level, vector
from analysis.stats.quadrature import gauss_legendre
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, ResultWarning

# One value per unit, by group.


@dataclass(frozen=True, slots=True)
class GroupSample:
    """One value a unit, by group; groups sorted."""

    names: tuple[Any, ...]
    members: tuple[FloatArray, ...]
    sizes: FloatArray
    means: FloatArray
    variances: FloatArray
    grand_mean: float
    n_missing: int

    @classmethod
    def from_arrays(cls, values: npt.ArrayLike, groups: npt.ArrayLike) -> "GroupSample":
        array = vector(values, "values")
        positions, names = label_codes_and_names(groups, "groups", len(array))
        is_observed = ~np.isnan(array)
        members = tuple(array[is_observed & (positions == group)] for group in range(len(names)))
        sizes = np.array([len(member) for member in members], dtype=np.float64)
        means = np.array([np.mean(member) if len(member) else 0.0 for member in members])
        variances = np.array([np.var(member, ddof=1) if len(member) > 1 else 0.0 for member in members])
        grand = float(np.mean(array[is_observed])) if is_observed.any() else 0.0
        return cls(names, members, sizes, means, variances, grand, int((~is_observed).sum()))

    def common(self, analysis: str, mode: str, level: float) -> dict[str, Any]:
        n = int(self.sizes.sum())
        return {
            "analysis": analysis,
            "estimand": "eta squared",
            "unit": "annotator",
            "mode": mode,
            "n": n,
            "n_rows": n,
            "settings": {"level": level},
        }

    def detail(self) -> dict[str, Any]:
        return {
            "n_missing": self.n_missing,
            "groups": {
                str(name): {"n": int(n), "mean": float(mean) if n else None}
                for name, n, mean in zip(self.names, self.sizes, self.means, strict=True)
            },
        }

    def undefined_status_and_reason(self, *, min_group_size: int) -> tuple[str, str] | None:
        """Return a status and reason if a group has fewer than `min_group_size` values or there is only one group."""
        if not np.any(self.sizes):
            return "no_data", "no value to analyse"
        if len(self.sizes) < 2:
            return "not_identified", "there is one group only"
        small = np.flatnonzero(self.sizes < min_group_size)
        if len(small):
            name, n = self.names[int(small[0])], int(self.sizes[small[0]])
            return ("no_data", f"group {name} has no value") if n == 0 else ("n_lt_2", f"group {name} has one value")
        return None


def label_codes_and_names(labels: npt.ArrayLike, name: str, length: int) -> tuple[IntArray, tuple[Any, ...]]:
    """Return the codes of labels, and the labels in the order of their codes."""
    array = np.asarray(labels)
    positions, n_groups = label_codes(array, name, length)
    first = np.full(n_groups, length, dtype=np.int64)
    np.minimum.at(first, positions, np.arange(length))
    return positions, tuple(array[first].tolist())


def difference_detectable_at_power_80(se: float, df: float, level: float, tests: int = 1) -> float:
    """Return the smallest distance that a t test with this standard error finds with power .8."""
    n = max(2, int(df) + 1)
    return power_of_means.t_test_detectable_difference(n, sd=se * math.sqrt(n), significance=1 - level, tests=tests)


# F tests that all groups have the same mean, with equal variances or unequal (Welch).


def one_way_anova(values: npt.ArrayLike, groups: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """Estimate eta squared, the share of the variance between groups, and test by F that all means are equal.

    There is one value per unit; NaN is missing. F = (SSB / (k - 1)) / (SSW / (n - k)) on k - 1 and n - k degrees of
    freedom, which are in `detail["df_between"]` and `detail["df_within"]`. The interval inverts the noncentral F, eta^2
    = nc / (nc + n). The method assumes equal variances; otherwise use `welch_anova`. The estimate is undefined, with a
    status, if there are fewer than two groups, a group without values, no more values than groups, or no variance
    within groups. Clark et al. 2021, section 2.4, use it across domains: 390 evaluators in 3 domains have F(2, 387),
    but the paper prints F(2, 390).

    >>> result = one_way_anova([0.4, 0.6, 0.8, 0.2, 0.4, 0.3, 0.9, 0.7, 0.8], list("aaabbbccc"))
    >>> result.detail["df_between"], result.detail["df_within"], round(result.test.statistic, 4)
    (2, 6, 9.5)
    """
    validate_level(level)
    sample = GroupSample.from_arrays(values, groups)
    common = sample.common("one_way_anova", "paper", level)
    problem = sample.undefined_status_and_reason(min_group_size=1)
    if problem is not None:
        return Estimate(status=problem[0], reason=problem[1], detail=sample.detail(), **common)
    k, n = len(sample.sizes), int(sample.sizes.sum())
    between = float(np.sum(sample.sizes * (sample.means - sample.grand_mean) ** 2))
    within = float(np.sum(sample.variances * (sample.sizes - 1)))
    detail = {**sample.detail(), "df_between": k - 1, "df_within": n - k}
    if n <= k:
        return Estimate(status="n_lt_2", reason="no group has two values", detail=detail, **common)
    if within < MIN_SPREAD * n:
        return Estimate(status="zero_variance", reason="no variance within the groups", detail=detail, **common)
    statistic = (between / (k - 1)) / (within / (n - k))
    pvalue = float(special.fdtrc(k - 1, n - k, statistic))
    eta = between / (between + within)
    omega = (between - (k - 1) * within / (n - k)) / (between + within + within / (n - k))
    ends = _noncentral_f(statistic, k - 1, n - k, level)
    return Estimate(
        estimate=eta,
        interval=None if ends is None else Interval(level, ends[0] / (ends[0] + n), ends[1] / (ends[1] + n), "f"),
        test=HypothesisTest(name="anova_f", null=0.0, statistic=statistic, pvalue=pvalue, alternative="greater"),
        detail={**detail, "omega_squared": omega, "ms_within": within / (n - k)},
        **common,
    )


def welch_anova(values: npt.ArrayLike, groups: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """Test by Welch's F that all groups have the same mean, for unequal variances; the estimate is eta squared.

    There is one value per unit, NaN is missing, and every group needs two values that differ. With weights w = n / s^2,
    F = sum w (mean - weighted mean)^2 / (k - 1) / (1 + 2 (k - 2) L / (k^2 - 1)) on k - 1 and (k^2 - 1) / (3 L) degrees
    of freedom, L = sum (1 - w / sum w)^2 / (n - 1) (Welch 1951, On the comparison of several mean values: an
    alternative approach). Eta squared is as in `one_way_anova`, but without an interval.

    >>> result = welch_anova([0.4, 0.6, 0.8, 0.2, 0.4, 0.3, 0.9, 0.7, 0.8], list("aaabbbccc"))
    >>> round(result.test.statistic, 4), round(result.detail["df_within"], 4)
    (16.0157, 3.7895)
    """
    validate_level(level)
    sample = GroupSample.from_arrays(values, groups)
    common = sample.common("welch_anova", "recommended", level)
    problem = sample.undefined_status_and_reason(min_group_size=2)
    if problem is not None:
        return Estimate(status=problem[0], reason=problem[1], detail=sample.detail(), **common)
    constant = np.flatnonzero(sample.variances < MIN_SPREAD**2)
    if len(constant):
        reason = f"group {sample.names[int(constant[0])]} is constant"
        return Estimate(status="zero_variance", reason=reason, detail=sample.detail(), **common)
    k = len(sample.sizes)
    weights = sample.sizes / sample.variances
    centre = float(np.sum(weights * sample.means) / np.sum(weights))
    lack = float(np.sum((1 - weights / np.sum(weights)) ** 2 / (sample.sizes - 1)))
    statistic = float(np.sum(weights * (sample.means - centre) ** 2)) / (k - 1)
    statistic /= 1 + 2 * (k - 2) * lack / (k**2 - 1)
    df_within = (k**2 - 1) / (3 * lack)
    between = float(np.sum(sample.sizes * (sample.means - sample.grand_mean) ** 2))
    within = float(np.sum(sample.variances * (sample.sizes - 1)))
    pvalue = float(special.fdtrc(k - 1, df_within, statistic))
    return Estimate(
        estimate=between / (between + within),
        test=HypothesisTest(name="welch_anova_f", null=0.0, statistic=statistic, pvalue=pvalue, alternative="greater"),
        detail={**sample.detail(), "df_between": k - 1, "df_within": df_within},
        **common,
    )


def _noncentral_f(statistic: float, df_between: float, df_within: float, level: float) -> tuple[float, float] | None:
    """Return the noncentralities with the observed F at the two tail probabilities; 0 if none is that small."""
    ends = []
    for probability in ((1 + level) / 2, (1 - level) / 2):

        def excess(noncentrality: float, probability: float = probability) -> float:
            return float(special.ncfdtr(df_between, df_within, noncentrality, statistic)) - probability

        if float(special.fdtr(df_between, df_within, statistic)) <= probability:
            ends.append(0.0)
            continue
        high = 10.0 + 2 * df_between * statistic
        while excess(high) > 0:
            high *= 2
            if high > 1e7:
                return None
        if math.isnan(excess(high)):
            return None
        ends.append(float(optimize.brentq(excess, 0.0, high, xtol=1e-10)))
    return ends[0], ends[1]


# Pairwise comparisons of groups by the studentised range.


def pairwise_comparisons(
    values: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    method: str = "games_howell",
    level: float = 0.95,
    analysis: str = "pairwise",
    mode_label: str = "recommended",
) -> tuple[Estimate, ...]:
    """Differences between all pairs of groups, with simultaneous intervals and p-values.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value per unit; NaN is missing.
    groups : array_like, shape (n,)
        Label of each unit's group.
    method : {"games_howell", "tukey_hsd"}, default 'games_howell'
        Unequal or pooled variances; the paper uses "tukey_hsd".
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis, mode_label : str, optional
        Labels that are copied to the record.

    Returns
    -------
    tuple[Estimate, ...]
        One estimate x - y per pair, in the order of the sorted groups; `settings` has both names. `pvalue` is already
        adjusted. The effect is Cohen's d. `detail["detectable"]` is the difference that a t test finds with power .8
        at the family's first step.

    Raises
    ------
    ValueError
        If `method` is not allowed.

    Notes
    -----
    "tukey_hsd": q = |difference| / sqrt(MSW / 2 (1 / n_x + 1 / n_y)) on n - k. "games_howell": q = |difference| /
    sqrt((s_x^2 / n_x + s_y^2 / n_y) / 2) on Welch's degrees of freedom.

    References
    ----------
    Tukey 1949; Games and Howell 1976; Clark et al. 2021, section 3.2, footnote 10, across training conditions.

    Examples
    --------
    >>> pairs = pairwise_comparisons([0.4, 0.6, 0.8, 0.2, 0.4, 0.3, 0.9, 0.7, 0.8], list("aaabbbccc"), method="tukey_hsd")
    >>> [(pair.settings["x"], pair.settings["y"], round(pair.pvalue, 4)) for pair in pairs]
    [('a', 'b', 0.0901), ('a', 'c', 0.2694), ('b', 'c', 0.0117)]
    """
    validate_level(level)
    if method not in ("tukey_hsd", "games_howell"):
        raise ValueError(f"method: {method!r} is neither tukey_hsd nor games_howell")
    sample = GroupSample.from_arrays(values, groups)
    k = len(sample.names)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    problem = sample.undefined_status_and_reason(min_group_size=2)
    within = float(np.sum(sample.variances * (sample.sizes - 1)))
    df_within = float(sample.sizes.sum()) - k
    if problem is None and within < MIN_SPREAD * max(1.0, df_within):
        problem = ("zero_variance", "no variance within the groups")
    results = []
    for i, j in pairs:
        n_x, n_y = int(sample.sizes[i]), int(sample.sizes[j])
        common: dict[str, Any] = {
            "analysis": analysis,
            "estimand": "difference of means x - y",
            "unit": "annotator",
            "mode": mode_label,
            "n": n_x + n_y,
            "n_rows": n_x + n_y,
            "settings": {"x": str(sample.names[i]), "y": str(sample.names[j]), "method": method, "level": level},
            "estimate": float(sample.means[i] - sample.means[j]) if min(n_x, n_y) else None,
        }
        detail: dict[str, Any] = {"n_x": n_x, "n_y": n_y, "n_missing": sample.n_missing}
        if problem is not None:
            results.append(Estimate(status=problem[0], reason=problem[1], detail=detail, **common))
            continue
        part_x, part_y = sample.variances[i] / n_x, sample.variances[j] / n_y
        df, se = df_within, math.sqrt(within / df_within * (1 / n_x + 1 / n_y))
        if method == "games_howell":
            se = math.sqrt(part_x + part_y)
        if se < MIN_SPREAD:
            results.append(Estimate(status="zero_variance", reason="both groups are constant", detail=detail, **common))
            continue
        if method == "games_howell":
            df = float((part_x + part_y) ** 2 / (part_x**2 / (n_x - 1) + part_y**2 / (n_y - 1)))
        difference = float(common["estimate"])
        statistic = abs(difference) / se * math.sqrt(2)
        pvalue = studentized_range_sf(statistic, k, df)
        half = _critical_range(k, df, level) * se / math.sqrt(2)
        test = HypothesisTest(
            name=method,
            null=0.0,
            statistic=statistic,
            df=df,
            pvalue=pvalue,
            pvalue_adjusted=pvalue,
            adjust=method,
            family=analysis,
            family_size=len(pairs),
        )
        results.append(
            Estimate(
                interval=Interval(level, difference - half, difference + half, method),
                test=test,
                effect=effects.cohen_d(sample.members[i], sample.members[j], level=level),
                detail={**detail, "se": se, "detectable": difference_detectable_at_power_80(se, df, level, len(pairs))},
                **common,
            )
        )
    return tuple(results)


def studentized_range_sf(q: float, k: int, df: float) -> float:
    """Return the survival function of the studentised range: the probability that the range of `k` means exceeds `q`.

    The range `q` is in standard errors, and `df` are the degrees of freedom of the standard error. The function raises
    ValueError if k < 2 or df < 1. It computes the integral over the standard error s of P(range > q s), which is k
    times the integral of phi(z) [Phi(z)^(k-1) - (Phi(z) - Phi(z - q s))^(k-1)]. Both integrals use Gauss-Legendre
    quadrature, which is much faster than a general integrator.

    >>> round(studentized_range_sf(3.578, 3, 20), 4)
    0.05
    """
    if k < 2 or df < 1:
        raise ValueError(f"k, df: {k} groups on {df:g} degrees of freedom have no studentised range")
    if q <= 0:
        return 1.0
    nodes, masses = gauss_legendre(160)
    low, high = (math.sqrt(float(special.chdtri(df, tail)) / df) for tail in (1 - 1e-15, 1e-15))
    # As a function of sqrt(s) the density has no kink at 0; as a function of s it has one for few df.
    root = math.sqrt(low) + (nodes + 1) / 2 * (math.sqrt(high) - math.sqrt(low))
    s = root**2
    log_density = math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2) + (df - 1) * np.log(s) - df * s**2 / 2
    z_nodes, z_masses = gauss_legendre(96)
    z = 8.5 * z_nodes
    below = special.ndtr(z)
    inside = np.minimum(special.ndtr(z - q * s[:, None]) / below, 1.0)
    with np.errstate(divide="ignore"):
        # Compute the complement directly, so that a small p keeps its digits.
        beyond = -np.expm1((k - 1) * np.log1p(-inside))
    exceed = beyond @ (k * 8.5 * z_masses * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * below ** (k - 1))
    total = float(np.sum(masses * np.exp(log_density) * exceed * root)) * (math.sqrt(high) - math.sqrt(low))
    return min(1.0, max(0.0, total))


@lru_cache(maxsize=1024)
def _critical_range(k: int, df: float, level: float) -> float:
    """Return the q that the studentised range exceeds with probability 1 - level."""

    def excess(q: float) -> float:
        return studentized_range_sf(q, k, df) - (1 - level)

    high = 8.0
    while excess(high) > 0:
        high *= 2
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-10))


# Counts of people: differences of shares, independence, and attrition by condition.


# Below this expected count the chi-square approximation is poor.
SMALL_EXPECTED = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attrition(Record):
    """Attrition: `shares` lost by condition, `differences` from the reference, and the `test` of equal shares."""

    shares: tuple[Estimate, ...]
    differences: tuple[Estimate, ...]
    test: Estimate


def share_difference(
    successes_x: int,
    n_x: int,
    successes_y: int,
    n_y: int,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the difference x - y of two shares of independent units, with Newcombe's interval and Fisher's exact test.

    With Wilson intervals (l, u), low = d - sqrt((p_x - l_x)^2 + (u_y - p_y)^2), and high likewise (Newcombe 1998,
    Interval estimation for the difference between independent proportions, method 10). The interval is also valid for
    shares of 0 and 1. If both groups have no successes, or only successes, the status is `zero_variance`, with an
    interval and without a test.

    >>> result = share_difference(56, 70, 48, 80)
    >>> round(result.estimate, 3), round(result.interval.low, 4), round(result.interval.high, 4)
    (0.2, 0.0524, 0.3339)
    """
    from scipy import stats

    validate_level(level)
    for name, successes, n in (("successes_x", successes_x, n_x), ("successes_y", successes_y, n_y)):
        if not 0 <= successes <= n:
            raise ValueError(f"{name}: {successes} is not in 0..{n}")
    common: dict[str, Any] = {
        "analysis": "share_difference",
        "estimand": "difference of shares x - y",
        "unit": "annotator",
        "n": n_x + n_y,
        "n_rows": n_x + n_y,
        "settings": {"null": 0.0, "level": level},
    }
    detail: dict[str, Any] = {"n_x": n_x, "n_y": n_y, "successes_x": successes_x, "successes_y": successes_y}
    if min(n_x, n_y) == 0:
        return Estimate(status="no_data", reason="a group is empty", detail=detail, **common)
    x, y = successes_x / n_x, successes_y / n_y
    low_x, high_x = basic.wilson_interval(successes_x, n_x, level)
    low_y, high_y = basic.wilson_interval(successes_y, n_y, level)
    low = x - y - math.hypot(x - low_x, high_y - y)
    high = x - y + math.hypot(high_x - x, y - low_y)
    common |= {"estimate": x - y, "interval": Interval(level, low, high, "newcombe"), "detail": detail}
    if successes_x + successes_y in (0, n_x + n_y):
        return Estimate(status="zero_variance", reason="all units of both groups have one outcome", **common)
    table = [[successes_x, n_x - successes_x], [successes_y, n_y - successes_y]]
    pvalue = min(1.0, float(stats.fisher_exact(table).pvalue))
    return Estimate(test=HypothesisTest(name="fisher_exact", null=0.0, statistic=None, pvalue=pvalue), **common)


def independence_test(
    table: npt.ArrayLike, *, resamples: int = 9999, rng: np.random.Generator | None = None
) -> Estimate:
    """Estimate Cramer's V of a table of counts, and test whether its rows and columns are independent.

    `table` has whole numbers, and each unit counts in one cell. If every expected count is at least 5, the test is
    Pearson's chi-square on (r - 1)(c - 1), without continuity correction. Otherwise it is Fisher's exact test for 2 by
    2, and for larger tables chi-square over `resamples` random tables with the same margins: p = (1 + number as
    extreme) / (1 + resamples). `rng` draws these tables; without it the p-value is asymptotic (warning
    `small_expected`). A row or column without units gives the status `not_identified`, and all units in one column give
    `zero_variance`.

    >>> result = independence_test([[30, 10], [20, 20], [25, 15]])
    >>> round(result.test.statistic, 4), result.test.df, round(result.pvalue, 4)
    (5.3333, 2.0, 0.0695)
    >>> independence_test([[30, 0], [20, 0]]).status
    'zero_variance'
    """
    from scipy import stats

    counts = matrix(table, "table")
    if np.isnan(counts).any() or np.any(counts < 0) or np.any(counts != np.round(counts)):
        raise ValueError("table: only whole, non-negative numbers count units")
    rows, columns, n = counts.sum(axis=1), counts.sum(axis=0), int(counts.sum())
    common: dict[str, Any] = {
        "analysis": "independence",
        "estimand": "Cramer's V",
        "unit": "annotator",
        "n": n,
        "n_rows": n,
        "settings": {"resamples": resamples},
    }
    if n == 0:
        return Estimate(status="no_data", reason="no unit is counted", **common)
    if min(counts.shape) < 2:
        return Estimate(status="not_identified", reason="needs two rows and two columns", **common)
    if np.any(rows == 0):
        reason = f"row {int(np.flatnonzero(rows == 0)[0])} counts nobody"
        return Estimate(status="not_identified", reason=reason, **common)
    if np.count_nonzero(columns) == 1:
        return Estimate(status="zero_variance", reason="all units are in one column", **common)
    if np.any(columns == 0):
        reason = f"column {int(np.flatnonzero(columns == 0)[0])} counts nobody"
        return Estimate(status="not_identified", reason=reason, **common)
    expected = rows[:, None] * columns[None, :] / n
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    df = (len(rows) - 1) * (len(columns) - 1)
    name, pvalue = "chi_square", float(special.chdtrc(df, statistic))
    warnings: tuple[ResultWarning, ...] = ()
    if float(expected.min()) < SMALL_EXPECTED:
        if counts.shape == (2, 2):
            name, pvalue = "fisher_exact", float(stats.fisher_exact(counts.astype(np.int64)).pvalue)
        elif rng is not None:
            drawn = stats.random_table(rows.astype(int), columns.astype(int)).rvs(resamples, random_state=rng)
            extreme = np.sum((drawn - expected) ** 2 / expected, axis=(1, 2)) >= statistic * (1 - 1e-9)
            name, pvalue = "chi_square_resampled", (1 + int(extreme.sum())) / (1 + resamples)
        else:
            warnings = (ResultWarning("small_expected", "warn", {"smallest": float(expected.min())}),)
    test = HypothesisTest(
        name=name,
        null=0.0,
        statistic=None if name == "fisher_exact" else statistic,
        df=float(df) if name == "chi_square" else None,
        pvalue=min(1.0, pvalue),
        alternative="two-sided" if name == "fisher_exact" else "greater",
    )
    return Estimate(
        estimate=math.sqrt(statistic / (n * (min(counts.shape) - 1))),
        test=test,
        warnings=warnings,
        detail={"chi_square": statistic, "df": df, "smallest_expected": float(expected.min())},
        **common,
    )


def differential_attrition(
    started: Sequence[int],
    lost: Sequence[int],
    conditions: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 9999,
    rng: np.random.Generator | None = None,
) -> Attrition:
    """Estimate and test the differences between conditions in the share of annotators who were lost.

    `started` and `lost` are, for each condition, the numbers of annotators who started and of those who were lost for
    one reason. The result has the shares with Wilson's intervals, Holm-adjusted differences from the first condition
    (`share_difference`), and one test over all conditions (`independence_test`, which uses `resamples` and `rng`).
    Unequal attrition undoes the randomisation: Clark et al. 2021, footnote 11, lost over 70 % in one condition with
    longer training.

    >>> result = differential_attrition([100, 100, 100], [10, 12, 31], ["none", "instructions", "examples"])
    >>> [round(share.estimate, 2) for share in result.shares], [round(d.estimate, 2) for d in result.differences]
    ([0.1, 0.12, 0.31], [0.02, 0.21])
    >>> result.test.pvalue < 0.001
    True
    """
    names = [str(condition) for condition in conditions]
    if not len(started) == len(lost) == len(names):
        raise ValueError(f"lost: {len(lost)} and started: {len(started)} counts for {len(names)} conditions")
    if len(set(names)) < len(names):
        raise ValueError("conditions: a condition is repeated")
    for row, (n, gone) in enumerate(zip(started, lost, strict=True)):
        if not 0 <= gone <= n:
            raise ValueError(f"lost: row {row} is {gone}, not in 0..{n}")
    shares, differences = [], {}
    for name, n, gone in zip(names, started, lost, strict=True):
        share = basic.proportion(gone, n, level=level)
        share = share.labelled(analysis="attrition.share", estimand="share lost", unit="assignment")
        shares.append(replace(share, settings={**share.settings, "condition": name}))
        if name != names[0]:
            other = share_difference(gone, n, lost[0], started[0], level=level)
            other = other.labelled(analysis="attrition.difference", unit="assignment")
            differences[name] = replace(other, settings={**other.settings, "condition": name, "reference": names[0]})
    family = multiplicity.Family("attrition.difference", tuple(differences))
    table = np.array([lost, np.subtract(started, lost)], dtype=np.float64).T.reshape(len(names), 2)
    return Attrition(
        shares=tuple(shares),
        differences=tuple(
            multiplicity.adjust_pvalues_and_intervals_of_family(differences, family, star_scheme=None).values()
        ),
        test=independence_test(table, resamples=resamples, rng=rng).labelled(
            analysis="attrition.independence", unit="assignment"
        ),
    )


# Whether conditions were filled at the same time.


# With a smaller condition, the chi-square approximation of the rank test is poor.
SMALL_CONDITION = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals(Record):
    """The mean `places` of conditions in the order of arrival, and the `test` that the order is the same in all of them."""

    places: tuple[Estimate, ...]
    test: Estimate


def arrival_order(
    arrivals: npt.ArrayLike,
    conditions: Sequence[str],
    *,
    rng: np.random.Generator,
    resamples: int = 9999,
) -> Arrivals:
    """Estimate the mean place of each condition in the order of arrival, and test that the orders are equal.

    Arrivals are times in any unit, because only their order counts; NaN is missing, and an infinite time is an error.
    Each place is a mean between 0 (first) and 1 (last), and .5 is expected: of n annotators, the one with rank r is at
    (r - 0.5) / n, and equal arrivals share their mean rank. The test is Kruskal and Wallis's H (1952) with its
    correction for ties, on k - 1 degrees of freedom; if a condition has fewer than five annotators, H is compared with
    `resamples` permuted arrivals: p = (1 + number as extreme) / (1 + resamples). Its estimate is epsilon squared
    (Kelley 1935), H / (n - 1), the share of the variance of ranks that is between conditions. The status of the test is
    `not_identified` with one condition, and `zero_variance` if all arrived together.

    >>> result = arrival_order([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], ["a"] * 5 + ["b"] * 5, rng=np.random.default_rng(1))
    >>> [place.estimate for place in result.places], round(result.test.pvalue, 3)
    ([0.25, 0.75], 0.009)
    """
    from scipy import special, stats

    times = vector(arrivals, "arrivals")
    if len(times) != len(conditions):
        raise ValueError(f"conditions: {len(conditions)} for {len(times)} arrivals")
    is_known = ~np.isnan(times)
    names, codes = np.unique(np.asarray(conditions, dtype=str)[is_known], return_inverse=True)
    n, sizes = int(is_known.sum()), np.bincount(codes, minlength=len(names))
    ranks = stats.rankdata(times[is_known])
    means = np.bincount(codes, weights=(ranks - 0.5) / n, minlength=len(names)) / sizes if n else np.empty(0)
    places = tuple(
        Estimate(
            analysis="arrival.place",
            estimand="mean place in the order of arrival",
            unit="annotator",
            n=int(size),
            n_rows=int(size),
            estimate=float(mean),
            settings={"condition": str(name)},
        )
        for name, size, mean in zip(names, sizes, means, strict=True)
    )
    common: dict[str, Any] = {
        "analysis": "arrival.order",
        "estimand": "epsilon squared",
        "unit": "annotator",
        "n": n,
        "n_rows": n,
        "settings": {"resamples": resamples},
    }

    def between(own_ranks: npt.NDArray[np.float64]) -> float:
        sums = np.bincount(codes, weights=own_ranks - (n + 1) / 2, minlength=len(names))
        return float(np.sum(sums**2 / sizes))

    if n == 0:
        return Arrivals(places=places, test=Estimate(status="no_data", reason="nobody arrived", **common))
    if len(names) < 2:
        return Arrivals(places=places, test=Estimate(status="not_identified", reason="needs two conditions", **common))
    variance = float(np.var(ranks, ddof=1))
    if variance == 0:
        return Arrivals(places=places, test=Estimate(status="zero_variance", reason="all arrived together", **common))
    statistic = between(ranks) / variance
    df: float | None = float(len(names) - 1)
    name, pvalue = "kruskal_wallis", float(special.chdtrc(df, statistic))
    if sizes.min() < SMALL_CONDITION:
        drawn = np.array([between(rng.permutation(ranks)) for _ in range(resamples)]) / variance
        n_extreme = int(np.sum(drawn >= statistic * (1 - 1e-9)))
        name, df, pvalue = "kruskal_wallis_permuted", None, (1 + n_extreme) / (1 + resamples)
    test = HypothesisTest(name=name, null=0.0, statistic=statistic, df=df, pvalue=pvalue, alternative="greater")
    return Arrivals(places=places, test=Estimate(estimate=statistic / (n - 1), test=test, **common))
