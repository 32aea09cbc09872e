"""Comparing groups: arms of a study, domains, conditions of training.

Two kinds of data come here. One value an annotator (an accuracy, say): analysis of variance and its pairwise
comparisons, as papers do. One row an answer: contrasts of the means of cells whose rows share annotators and items, so
that a claim reaches beyond these people and these texts. And counts of people: who was lost, and from which arm.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats import basic, clusters, effects, multiplicity, power
from analysis.stats.arrays import (
    DEGENERATE,
    FloatArray,
    IntArray,
    codes,
    kept_codes,
    matrix,
    refuse_level,
    refuse_outside,
    sizes_of,
    totals,
    vector,
)
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, Warning

LINKS = ("identity", "logit", "probit")
# Under this expected count the chi-square distribution is a poor guide to its own test.
SMALL_EXPECTED = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attrition(Record):
    """Who was lost: `shares` by condition, `differences` from the reference, and the `test` that all shares are one."""

    shares: tuple[Estimate, ...]
    differences: tuple[Estimate, ...]
    test: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionModel(Record):
    """Means by condition and domain, what each condition adds to the reference, and whether that depends on the domain.

    `cells` has one mean for each condition in each domain, `effects` one difference from the reference for each other
    condition (the mean of its differences in the domains, each domain counting the same), `by_domain` those
    differences, `interaction` the joint test that they are equal in all domains.
    """

    cells: tuple[Estimate, ...]
    effects: tuple[Estimate, ...]
    by_domain: tuple[Estimate, ...]
    interaction: Estimate


def one_way_anova(
    values: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    level: float = 0.95,
    analysis: str = "one_way_anova",
    unit: str = "annotator",
    mode: str = "paper",
) -> Estimate:
    """Eta squared, the share of the variance that lies between groups, and the F test that all means are one.

    `values` has shape (n,), one value a unit, NaN missing; `groups` the group of each. F = (SSB / (k - 1)) /
    (SSW / (n - k)) on k - 1 and n - k degrees of freedom (detail["df_between"], detail["df_within"]); the interval of
    eta squared inverts the noncentral F, eta^2 = nc / (nc + n). Assumes equal variances: see `welch_anova`. Fewer than
    two groups, a group without values, no more values than groups, no variance within groups: a status.

    Source: Clark et al. 2021, section 2.4, across domains; 390 evaluators in 3 domains have F(2, 387), where the paper
    prints F(2, 390).

    >>> result = one_way_anova([0.4, 0.6, 0.8, 0.2, 0.4, 0.3, 0.9, 0.7, 0.8], list("aaabbbccc"))
    >>> result.detail["df_between"], result.detail["df_within"], round(result.test.statistic, 4)
    (2, 6, 9.5)
    """
    refuse_level(level)
    sample = _Sample.of(values, groups)
    common = sample.common(analysis, "eta squared", unit, mode, level)
    problem = sample.problem(least=1)
    if problem is not None:
        return Estimate(status=problem[0], reason=problem[1], detail=sample.detail(), **common)
    k, n = len(sample.sizes), int(sample.sizes.sum())
    between = float(np.sum(sample.sizes * (sample.means - sample.grand) ** 2))
    within = float(np.sum(sample.variances * (sample.sizes - 1)))
    detail = {**sample.detail(), "df_between": k - 1, "df_within": n - k}
    if n <= k:
        return Estimate(status="n_lt_2", reason="no group has two values", detail=detail, **common)
    if within < DEGENERATE * n:
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


def welch_anova(
    values: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    level: float = 0.95,
    analysis: str = "welch_anova",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """The F test that the means of groups are one where their variances need not be; the estimate is eta squared.

    As `one_way_anova`, with weights w = n / s^2: F = sum w (mean - weighted mean)^2 / (k - 1) / (1 + 2 (k - 2) L /
    (k^2 - 1)) on k - 1 and (k^2 - 1) / (3 L), L = sum (1 - w / sum w)^2 / (n - 1). Every group needs two values that
    differ. (Alexander and Govern's test, sometimes named beside it, is another one.)

    Source: Welch 1951, On the comparison of several mean values: an alternative approach.

    >>> result = welch_anova([0.4, 0.6, 0.8, 0.2, 0.4, 0.3, 0.9, 0.7, 0.8], list("aaabbbccc"))
    >>> round(result.test.statistic, 4), round(result.detail["df_within"], 4)
    (16.0157, 3.7895)
    """
    refuse_level(level)
    sample = _Sample.of(values, groups)
    common = sample.common(analysis, "eta squared", unit, mode, level)
    problem = sample.problem(least=2)
    if problem is not None:
        return Estimate(status=problem[0], reason=problem[1], detail=sample.detail(), **common)
    constant = np.flatnonzero(sample.variances < DEGENERATE**2)
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
    between = float(np.sum(sample.sizes * (sample.means - sample.grand) ** 2))
    within = float(np.sum(sample.variances * (sample.sizes - 1)))
    pvalue = float(special.fdtrc(k - 1, df_within, statistic))
    return Estimate(
        estimate=between / (between + within),
        test=HypothesisTest(name="welch_anova_f", null=0.0, statistic=statistic, pvalue=pvalue, alternative="greater"),
        detail={**sample.detail(), "df_between": k - 1, "df_within": df_within},
        **common,
    )


def pairwise(
    values: npt.ArrayLike,
    groups: npt.ArrayLike,
    *,
    method: str = "games_howell",
    level: float = 0.95,
    analysis: str = "pairwise",
    unit: str = "annotator",
    mode: str = "recommended",
) -> tuple[Estimate, ...]:
    """Every difference between two groups, with intervals and p-values that hold for all of them at once.

    `values` and `groups` as for `one_way_anova`; the pairs stand in the order of the sorted groups and settings name
    each, x - y. "tukey_hsd" (the paper's) pools the variance, q = |difference| / sqrt(MSW / 2 (1 / n_x + 1 / n_y)) on
    n - k; "games_howell" does not, q = |difference| / sqrt((s_x^2 / n_x + s_y^2 / n_y) / 2) on Welch's degrees of
    freedom. Both refer q to the studentised range, so `pvalue` is adjusted already, which `adjust` says. Effect:
    Cohen's d of the two groups. detail["detectable"] is the smallest difference that a t test with this standard error
    would find in 80 % of studies at the family's first step: what "not significant" leaves possible. A status where a group has fewer than two values or nothing varies.

    Source: Tukey 1949; Games and Howell 1976; Clark et al. 2021, section 3.2, footnote 10, across training conditions.

    >>> pairs = pairwise([0.4, 0.6, 0.8, 0.2, 0.4, 0.3, 0.9, 0.7, 0.8], list("aaabbbccc"), method="tukey_hsd")
    >>> [(pair.settings["x"], pair.settings["y"], round(pair.pvalue, 4)) for pair in pairs]
    [('a', 'b', 0.0901), ('a', 'c', 0.2694), ('b', 'c', 0.0117)]
    """
    refuse_level(level)
    if method not in ("tukey_hsd", "games_howell"):
        raise ValueError(f"method: {method!r} is neither tukey_hsd nor games_howell")
    sample = _Sample.of(values, groups)
    k = len(sample.names)
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    problem = sample.problem(least=2)
    within = float(np.sum(sample.variances * (sample.sizes - 1)))
    df_within = float(sample.sizes.sum()) - k
    if problem is None and within < DEGENERATE * max(1.0, df_within):
        problem = ("zero_variance", "no variance within the groups")
    results = []
    for i, j in pairs:
        n_x, n_y = int(sample.sizes[i]), int(sample.sizes[j])
        common: dict[str, Any] = {
            "analysis": analysis,
            "estimand": "difference of means x - y",
            "unit": unit,
            "mode": mode,
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
        if se < DEGENERATE:
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
                detail={**detail, "se": se, "detectable": _detectable(se, df, level, len(pairs))},
                **common,
            )
        )
    return tuple(results)


def studentized_range_sf(q: float, k: int, df: float) -> float:
    """P(the range of k means, in standard errors estimated on df degrees of freedom, exceeds q), k >= 2, df >= 1.

    The integral over the standard error s of P(range > q s), itself k times the integral of phi(z) [Phi(z)^(k-1) -
    (Phi(z) - Phi(z - q s))^(k-1)], both by Gauss and Legendre: what the library's general integrator takes seconds
    for, a table of pairs needs at once.

    >>> round(studentized_range_sf(3.578, 3, 20), 4)
    0.05
    """
    if k < 2 or df < 1:
        raise ValueError(f"k, df: {k} groups on {df:g} degrees of freedom have no studentised range")
    if q <= 0:
        return 1.0
    nodes, masses = _nodes(160)
    low, high = (math.sqrt(float(special.chdtri(df, tail)) / df) for tail in (1 - 1e-15, 1e-15))
    # In the square root of s the density has no kink at 0, which on few degrees of freedom it has in s.
    root = math.sqrt(low) + (nodes + 1) / 2 * (math.sqrt(high) - math.sqrt(low))
    s = root**2
    log_density = math.log(2) + df / 2 * math.log(df / 2) - math.lgamma(df / 2) + (df - 1) * np.log(s) - df * s**2 / 2
    z_nodes, z_masses = _nodes(96)
    z = 8.5 * z_nodes
    below = special.ndtr(z)
    inside = np.minimum(special.ndtr(z - q * s[:, None]) / below, 1.0)
    with np.errstate(divide="ignore"):
        # The complement itself, so that a small p keeps its digits.
        beyond = -np.expm1((k - 1) * np.log1p(-inside))
    exceed = beyond @ (k * 8.5 * z_masses * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * below ** (k - 1))
    total = float(np.sum(masses * np.exp(log_density) * exceed * root)) * (math.sqrt(high) - math.sqrt(low))
    return min(1.0, max(0.0, total))


def share_difference(
    successes_x: int,
    n_x: int,
    successes_y: int,
    n_y: int,
    *,
    level: float = 0.95,
    analysis: str = "share_difference",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """The difference of two shares of independent units, x - y: Newcombe's interval, Fisher's exact test.

    The interval joins two Wilson intervals (l, u) of the shares: low = d - sqrt((p_x - l_x)^2 + (u_y - p_y)^2), high
    likewise; it stands also at 0 % and 100 %. Nobody (or everybody) in both groups: `zero_variance`, with the interval
    and without a test, for which the margins leave only one table.

    Source: Newcombe 1998, Interval estimation for the difference between independent proportions, method 10.

    >>> result = share_difference(56, 70, 48, 80)
    >>> round(result.estimate, 3), round(result.interval.low, 4), round(result.interval.high, 4)
    (0.2, 0.0524, 0.3339)
    """
    from scipy import stats

    refuse_level(level)
    for name, successes, n in (("successes_x", successes_x, n_x), ("successes_y", successes_y, n_y)):
        if not 0 <= successes <= n:
            raise ValueError(f"{name}: {successes} is not in 0..{n}")
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "difference of shares x - y",
        "unit": unit,
        "mode": mode,
        "n": n_x + n_y,
        "n_rows": n_x + n_y,
        "settings": {"null": 0.0, "level": level},
    }
    detail: dict[str, Any] = {"n_x": n_x, "n_y": n_y, "successes_x": successes_x, "successes_y": successes_y}
    if min(n_x, n_y) == 0:
        return Estimate(status="no_data", reason="a group is empty", detail=detail, **common)
    x, y = successes_x / n_x, successes_y / n_y
    low_x, high_x = basic.wilson(successes_x, n_x, level)
    low_y, high_y = basic.wilson(successes_y, n_y, level)
    low = x - y - math.hypot(x - low_x, high_y - y)
    high = x - y + math.hypot(high_x - x, y - low_y)
    common |= {"estimate": x - y, "interval": Interval(level, low, high, "newcombe"), "detail": detail}
    if successes_x + successes_y in (0, n_x + n_y):
        return Estimate(status="zero_variance", reason="all units of both groups have one outcome", **common)
    table = [[successes_x, n_x - successes_x], [successes_y, n_y - successes_y]]
    pvalue = min(1.0, float(stats.fisher_exact(table).pvalue))
    return Estimate(test=HypothesisTest(name="fisher_exact", null=0.0, statistic=None, pvalue=pvalue), **common)


def independence(
    table: npt.ArrayLike,
    *,
    resamples: int = 9999,
    rng: np.random.Generator | None = None,
    analysis: str = "independence",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Cramer's V of a table of counts and the test that rows and columns are independent.

    `table` has shape (n_rows, n_columns), each unit counted in one cell. Pearson's chi-square without continuity
    correction on (r - 1)(c - 1) where every expected count is at least 5; else Fisher's exact test for 2 by 2 and, for
    larger tables, chi-square over `resamples` tables with these margins drawn by `rng`, p = (1 + as extreme) /
    (1 + resamples); without `rng` the asymptotic p, with a warning `small_expected`. A row or a column without any
    unit makes the question meaningless (libraries raise, or give nan): `not_identified`, or `zero_variance` where all
    units are in one column.

    >>> result = independence([[30, 10], [20, 20], [25, 15]])
    >>> round(result.test.statistic, 4), result.test.df, round(result.pvalue, 4)
    (5.3333, 2.0, 0.0695)
    >>> independence([[30, 0], [20, 0]]).status
    'zero_variance'
    """
    from scipy import stats

    counts = matrix(table, "table")
    if np.isnan(counts).any() or np.any(counts < 0) or np.any(counts != np.round(counts)):
        raise ValueError("table: only whole, non-negative numbers count units")
    rows, columns, n = counts.sum(axis=1), counts.sum(axis=0), int(counts.sum())
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "Cramer's V",
        "unit": unit,
        "mode": mode,
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
    warnings: tuple[Warning, ...] = ()
    if float(expected.min()) < SMALL_EXPECTED:
        if counts.shape == (2, 2):
            name, pvalue = "fisher_exact", float(stats.fisher_exact(counts.astype(np.int64)).pvalue)
        elif rng is not None:
            drawn = stats.random_table(rows.astype(int), columns.astype(int)).rvs(resamples, random_state=rng)
            extreme = np.sum((drawn - expected) ** 2 / expected, axis=(1, 2)) >= statistic * (1 - 1e-9)
            name, pvalue = "chi_square_resampled", (1 + int(extreme.sum())) / (1 + resamples)
        else:
            warnings = (Warning("small_expected", "warn", {"smallest": float(expected.min())}),)
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
    reference: str | None = None,
    level: float = 0.95,
    resamples: int = 9999,
    rng: np.random.Generator | None = None,
    analysis: str = "attrition",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Attrition:
    """Whether conditions lost different shares of the people who started in them, which would undo the randomisation.

    `started`, `lost` and `conditions` have shape (n_conditions,): how many started, how many of them were lost (left,
    or were excluded: one reason at a time). Shares with Wilson's intervals, differences from the `reference` (the
    first) by `share_difference`, adjusted by Holm over all of them, and one test over all conditions by
    `independence`.

    Source: a longer training loses more people; Clark et al. 2021, footnote 11, lost over 70 % in one condition.

    >>> found = differential_attrition([100, 100, 100], [10, 12, 31], ["none", "instructions", "examples"])
    >>> [round(share.estimate, 2) for share in found.shares], [round(d.estimate, 2) for d in found.differences]
    ([0.1, 0.12, 0.31], [0.02, 0.21])
    >>> found.test.pvalue < 0.001
    True
    """
    names = [str(condition) for condition in conditions]
    if not len(started) == len(lost) == len(names):
        raise ValueError(f"lost: {len(lost)} and started: {len(started)} counts for {len(names)} conditions")
    if len(set(names)) < len(names):
        raise ValueError("conditions: one of them stands twice")
    for row, (n, gone) in enumerate(zip(started, lost, strict=True)):
        if not 0 <= gone <= n:
            raise ValueError(f"lost: row {row} is {gone}, not in 0..{n}")
    base = names[0] if reference is None and names else str(reference)
    if names and base not in names:
        raise ValueError(f"reference: {base!r} is none of the conditions")
    common: dict[str, Any] = {"level": level, "unit": unit, "mode": mode}
    shares, differences = [], {}
    for name, n, gone in zip(names, started, lost, strict=True):
        share = basic.proportion(gone, n, analysis=f"{analysis}.share", estimand="share lost", **common)
        shares.append(replace(share, settings={**share.settings, "condition": name}))
        if name != base:
            at = names.index(base)
            other = share_difference(gone, n, lost[at], started[at], analysis=f"{analysis}.difference", **common)
            differences[name] = replace(other, settings={**other.settings, "condition": name, "reference": base})
    family = multiplicity.Family(f"{analysis}.difference", tuple(differences))
    table = np.array([lost, np.subtract(started, lost)], dtype=np.float64).T.reshape(len(names), 2)
    return Attrition(
        shares=tuple(shares),
        differences=tuple(multiplicity.adjusted(differences, family, star_scheme=None).values()),
        test=independence(
            table, resamples=resamples, rng=rng, analysis=f"{analysis}.independence", unit=unit, mode=mode
        ),
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    """One value a unit, by group; groups sorted."""

    names: tuple[Any, ...]
    members: tuple[FloatArray, ...]
    sizes: FloatArray
    means: FloatArray
    variances: FloatArray
    grand: float
    n_missing: int

    @classmethod
    def of(cls, values: npt.ArrayLike, groups: npt.ArrayLike) -> "_Sample":
        array = vector(values, "values")
        positions, names = _labelled(groups, "groups", len(array))
        here = ~np.isnan(array)
        members = tuple(array[here & (positions == group)] for group in range(len(names)))
        sizes = np.array([len(member) for member in members], dtype=np.float64)
        means = np.array([np.mean(member) if len(member) else 0.0 for member in members])
        variances = np.array([np.var(member, ddof=1) if len(member) > 1 else 0.0 for member in members])
        grand = float(np.mean(array[here])) if here.any() else 0.0
        return cls(names, members, sizes, means, variances, grand, int((~here).sum()))

    def common(self, analysis: str, estimand: str, unit: str, mode: str, level: float) -> dict[str, Any]:
        n = int(self.sizes.sum())
        return {
            "analysis": analysis,
            "estimand": estimand,
            "unit": unit,
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

    def problem(self, *, least: int) -> tuple[str, str] | None:
        """Status and reason where a group has fewer than `least` values, or there are no two groups."""
        if not np.any(self.sizes):
            return "no_data", "no value to analyse"
        if len(self.sizes) < 2:
            return "not_identified", "there is one group only"
        small = np.flatnonzero(self.sizes < least)
        if len(small):
            name, n = self.names[int(small[0])], int(self.sizes[small[0]])
            return ("no_data", f"group {name} has no value") if n == 0 else ("n_lt_2", f"group {name} has one value")
        return None


def _labelled(labels: npt.ArrayLike, name: str, length: int) -> tuple[IntArray, tuple[Any, ...]]:
    """Codes of labels and the labels in the order of their codes."""
    array = np.asarray(labels)
    positions, n_groups = codes(array, name, length)
    first = np.full(n_groups, length, dtype=np.int64)
    np.minimum.at(first, positions, np.arange(length))
    return positions, tuple(array[first].tolist())


def _noncentral_f(statistic: float, df_between: float, df_within: float, level: float) -> tuple[float, float] | None:
    """The noncentralities at which the observed F lies at the two tail probabilities, 0 where none is that small."""
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


@cache
def _nodes(n: int) -> tuple[FloatArray, FloatArray]:
    nodes, masses = np.polynomial.legendre.leggauss(n)
    return np.asarray(nodes, dtype=np.float64), np.asarray(masses, dtype=np.float64)


@lru_cache(maxsize=1024)
def _critical_range(k: int, df: float, level: float) -> float:
    """The q that the studentised range exceeds with probability 1 - level."""

    def excess(q: float) -> float:
        return studentized_range_sf(q, k, df) - (1 - level)

    high = 8.0
    while excess(high) > 0:
        high *= 2
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-10))


def _detectable(se: float, df: float, level: float, tests: int = 1) -> float:
    """The smallest distance that a t test with this standard error finds with power .8."""
    n = max(2, int(df) + 1)
    return power.detectable_effect(n, sd=se * math.sqrt(n), significance=1 - level, tests=tests)


def cell_contrast(
    values: npt.ArrayLike,
    cells: npt.ArrayLike,
    weights: Mapping[Any, float],
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    link: str = "identity",
    corrected: bool = False,
    null: float = 0.0,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    analysis: str = "cell_contrast",
    estimand: str = "contrast of cell means",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """sum_c w_c g(mean of cell c), with annotators and, where given, items as clusters, and the t test of `null`.

    `values`, `cells`, `annotators` and `items` have shape (n_rows,), NaN missing; `weights` maps a cell's label to
    its w_c, and rows of other cells are left out. g by `link`: identity, or logit or probit of a share of 0/1 values,
    which makes this the marginal regression with these cells (log odds ratios, sensitivity), nothing iterated.
    `corrected` moves shares off 0 and 1, (sum + 1/2) / (n + 1); a cell that is all 0 or all 1 has status
    `separation` under these links, with the exact interval of each cell in detail, and an estimate only if corrected.

    Each row moves the contrast by e = w_c g'(mean) (y - mean) / n_c. With items the variance is two-way CR1 of these,
    never less than either way alone, on min(G_a, G_i) - 1; without, the jackknife CV3 over annotators on G* - 1. Only
    clusters with a row in these cells count. Under six there is no test. detail["detectable"] is the smallest distance
    from the null that this standard error would find in 80 % of studies.

    Source: Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2023; log-linear correction of Hautus 1995.

    >>> correct, arms = [1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1], ["a"] * 6 + ["b"] * 8
    >>> result = cell_contrast(correct, arms, {"a": 1, "b": -1}, np.repeat(np.arange(7), 2))
    >>> round(result.estimate, 4), result.n, result.n_rows
    (0.0417, 7, 14)
    """
    refuse_level(level)
    if link not in LINKS:
        raise ValueError(f"link: {link!r} is none of {', '.join(LINKS)}")
    rows = _Rows.of(values, cells, annotators, items, wanted=[cell for cell, weight in weights.items() if weight != 0])
    if bounds is not None:
        refuse_outside(rows.values, bounds, "values")
    if link != "identity" and not np.isin(rows.values, (0.0, 1.0)).all():
        raise ValueError(f"values: the {link} link takes shares of 0 and 1")
    factors = np.array([float(weights[cell]) for cell in rows.names])
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": rows.n_annotators,
        "n_clusters": rows.n_clusters,
        "n_rows": len(rows.values),
        "settings": {
            "null": null,
            "link": link,
            "corrected": corrected,
            "level": level,
            "method": rows.method,
            "weights": {str(cell): float(weight) for cell, weight in weights.items()},
        },
    }
    empty = np.flatnonzero(rows.counts == 0)
    if len(empty) or not len(factors):
        reason = f"cell {rows.names[int(empty[0])]} has no value" if len(empty) else "no cell has a weight"
        return Estimate(status="no_data", reason=reason, **common)
    raw = rows.sums / rows.counts
    means = (rows.sums + 0.5) / (rows.counts + 1) if corrected else raw
    detail: dict[str, Any] = {
        "cells": {
            str(cell): {"n": int(n), "mean": float(mean)}
            for cell, n, mean in zip(rows.names, rows.counts, raw, strict=True)
        },
        "n_missing": rows.n_missing,
    }
    is_split = link != "identity" and bool(np.any((raw <= 0) | (raw >= 1)))
    if is_split and not corrected:
        detail |= {"clopper_pearson": _exact(rows, level)}
        return Estimate(status="separation", reason="a cell is all 0 or all 1", detail=detail, **common)
    scores, slopes = _linked(means, link)
    estimate = float(np.sum(factors * scores))
    if is_split:
        detail |= {"clopper_pearson": _exact(rows, level)}
        reason = "a cell is all 0 or all 1"
        return Estimate(status="separation", reason=reason, estimate=estimate, detail=detail, **common)
    if rows.n_clusters < 2:
        reason = "one cluster has no spread"
        return Estimate(status="n_lt_2", reason=reason, estimate=estimate, detail=detail, **common)
    spread = rows.covariance((factors * slopes)[None, :], raw)
    if spread is None:
        reason = "one annotator alone gave the answers of a cell"
        return Estimate(status="not_identified", reason=reason, estimate=estimate, detail=detail, **common)
    se = math.sqrt(max(0.0, float(spread.variance()[0])))
    detail |= spread.detail()
    if se >= DEGENERATE:
        detail["detectable"] = _detectable(se, rows.df, level)
    return clusters.t_estimate(
        estimate,
        se,
        rows.df,
        fewest=rows.n_clusters,
        level=level,
        method=rows.method,
        null=null,
        bounds=bounds,
        warnings=rows.warnings(unit),
        detail=detail,
        **common,
    )


def condition_model(
    values: npt.ArrayLike,
    conditions: npt.ArrayLike,
    domains: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    reference: Any,
    link: str = "identity",
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    analysis: str = "condition_model",
    unit: str = "annotator",
    mode: str = "recommended",
) -> ConditionModel:
    """The condition x domain model: one mean a cell, and contrasts of these, rows clustered as in `cell_contrast`.

    All arrays have shape (n_rows,); `values` is 1 where the answer was correct, say. `reference` is the condition that
    the others are compared with. The mean of a condition's effects gives every domain the same weight, however many
    answers it has. The interaction, that the effects differ between domains, is a joint F test of
    (k - 1)(d - 1) contrasts, its covariance by the jackknife (CR1 rejects a true null in 8 % with 13 annotators a
    cell): with items the least F among the two-way covariance and either way alone (where the two-way one is not
    positive definite, their sum), as the largest variance rules a single contrast, on min(G) - 1; without, with
    Hotelling's correction on G* - q.

    Source: Clark et al. 2021, section 3.2, where the mean gain is significant and no domain's is; a difference in
    significance between domains is not a difference between domains, which is what the interaction tests.

    >>> rng = np.random.default_rng(0)
    >>> who, text = np.repeat(np.arange(80), 5), rng.integers(0, 20, 400)
    >>> arms, domains = np.array(["none", "examples"])[who % 2], np.array(["news", "story"])[who // 2 % 2]
    >>> model = condition_model(rng.random(400) < 0.5, arms, domains, who, text, reference="none")
    >>> len(model.cells), model.effects[0].settings["condition"], model.interaction.detail["df_between"]
    (4, 'examples', 1)
    """
    array = vector(values, "values")
    arms, arm_names = _labelled(conditions, "conditions", len(array))
    places, place_names = _labelled(domains, "domains", len(array))
    if reference not in arm_names:
        raise ValueError(f"reference: {reference!r} is none of the conditions")
    base = arm_names.index(reference)
    n_places = len(place_names)
    cells = arms * n_places + places
    who, _ = codes(np.asarray(annotators), "annotators", len(array))
    what = None if items is None else codes(np.asarray(items), "items", len(array))[0]
    common: dict[str, Any] = {"link": link, "level": level, "unit": unit, "mode": mode}

    def contrast(weights: dict[int, float], named: dict[str, Any], **more: Any) -> Estimate:
        result = cell_contrast(array, cells, weights, who, what, **common, **more)
        detail = {key: value for key, value in result.detail.items() if key != "cells"}
        settings = {key: value for key, value in result.settings.items() if key != "weights"}
        return replace(result, detail=detail, settings={**settings, **named})

    def named(arm: int, place: int | None) -> dict[str, Any]:
        found = {"condition": str(arm_names[arm])}
        return found if place is None else {**found, "domain": str(place_names[place])}

    means = []
    for arm in range(len(arm_names)):
        for place in range(n_places):
            more = {"analysis": f"{analysis}.cell", "estimand": "mean of the cell", "bounds": bounds}
            mean = contrast({arm * n_places + place: 1.0}, named(arm, place), **more)
            # A mean has no null of its own here; what is tested are differences.
            means.append(replace(mean, test=None))
    gains, by_domain = [], []
    others = [arm for arm in range(len(arm_names)) if arm != base]
    for arm in others:
        weights: dict[int, float] = {}
        for place in range(n_places):
            pair = {arm * n_places + place: 1.0, base * n_places + place: -1.0}
            weights |= {cell: weight / n_places for cell, weight in pair.items()}
            more = {"analysis": f"{analysis}.by_domain", "estimand": "difference from the reference in the domain"}
            by_domain.append(contrast(pair, {**named(arm, place), "reference": str(reference)}, **more))
        more = {"analysis": f"{analysis}.effect", "estimand": "mean over domains of the difference from the reference"}
        gains.append(contrast(weights, {**named(arm, None), "reference": str(reference)}, **more))
    rows = _Rows.of(array, cells, who, what, wanted=list(range(len(arm_names) * n_places)))
    shift = [
        {arm * n_places + p: 1.0, base * n_places + p: -1.0, arm * n_places: -1.0, base * n_places: 1.0}
        for arm in others
        for p in range(1, n_places)
    ]
    hypotheses = np.zeros((len(shift), len(rows.names)))
    for row, cell_weights in enumerate(shift):
        for cell, weight in cell_weights.items():
            hypotheses[row, cell] = weight
    interaction = _joint(rows, hypotheses, link, level, f"{analysis}.interaction", unit, mode)
    return ConditionModel(cells=tuple(means), effects=tuple(gains), by_domain=tuple(by_domain), interaction=interaction)


@dataclass(frozen=True, slots=True)
class _Covariance:
    """The covariance of contrasts: one way (`two_way` None), or annotators, items and both combined."""

    annotators: FloatArray
    items: FloatArray | None = None
    two_way: FloatArray | None = None

    def variance(self) -> FloatArray:
        """The variance of each contrast; with two ways never less than either."""
        if self.items is None or self.two_way is None:
            return np.asarray(np.diag(self.annotators), dtype=np.float64)
        parts = [np.diag(part) for part in (self.two_way, self.annotators, self.items)]
        return np.asarray(np.max(parts, axis=0), dtype=np.float64)

    def detail(self) -> dict[str, Any]:
        if self.items is None or self.two_way is None:
            return {}
        return clusters.TwoWay(*(float(part[0, 0]) for part in (self.annotators, self.items, self.two_way))).detail()

    def candidates(self) -> list[FloatArray]:
        """The covariances under each of which a joint hypothesis must be rejected."""
        if self.items is None or self.two_way is None:
            return [self.annotators]
        scale = np.trace(self.annotators + self.items)
        is_definite = float(np.linalg.eigvalsh(self.two_way)[0]) > 1e-9 * scale
        return [self.annotators, self.items, self.two_way if is_definite else self.annotators + self.items]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Answers in cells, with the codes of their annotators and items, and the sums of the cells."""

    values: FloatArray
    cells: IntArray
    names: tuple[Any, ...]
    annotators: IntArray
    items: IntArray | None
    n_annotators: int
    n_items: int
    sums: FloatArray
    counts: FloatArray
    n_missing: int

    @classmethod
    def of(
        cls,
        values: npt.ArrayLike,
        cells: npt.ArrayLike,
        annotators: npt.ArrayLike,
        items: npt.ArrayLike | None,
        *,
        wanted: Sequence[Any],
    ) -> "_Rows":
        array = vector(values, "values")
        positions, found = _labelled(cells, "cells", len(array))
        what = None if items is None else codes(np.asarray(items), "items", len(array))[0]
        place = {cell: column for column, cell in enumerate(wanted)}
        columns = np.array([place.get(cell, -1) for cell in found], dtype=np.int64)
        column = columns[positions] if len(found) else positions
        chosen = column >= 0
        here = chosen & ~np.isnan(array)
        kept = array[here]
        who, n_annotators = kept_codes(annotators, "annotators", here)
        n_items = 0
        if what is not None:
            what, n_items = codes(what[here], "items", len(kept))
        sums, counts = totals(column[here], kept, len(place)), sizes_of(column[here], len(place))
        missing = int(chosen.sum()) - len(kept)
        return cls(kept, column[here], tuple(wanted), who, what, n_annotators, n_items, sums, counts, missing)

    @property
    def n_clusters(self) -> int:
        return self.n_annotators if self.items is None else min(self.n_annotators, self.n_items)

    @property
    def df(self) -> float:
        if self.items is None:
            return max(1.0, clusters.effective_clusters(sizes_of(self.annotators, self.n_annotators)) - 1)
        return float(self.n_clusters - 1)

    @property
    def method(self) -> str:
        return "cv3_t" if self.items is None else "two_way_t"

    def warnings(self, unit: str) -> tuple[Warning, ...]:
        if self.items is None:
            return clusters.cluster_warnings(sizes_of(self.annotators, self.n_annotators), name=unit)
        return clusters.two_way_warnings(self.annotators, self.items, unit=unit)

    def covariance(self, gradients: FloatArray, means: FloatArray, *, is_jackknife: bool = False) -> _Covariance | None:
        """The covariance of contrasts whose derivatives by the cell means are `gradients` (n_contrasts, n_cells).

        With items CR1, or with `is_jackknife` CV3 in each way; without them always CV3. None where a cell is one
        annotator's (or one item's) alone, so that the jackknife has nothing left of it.
        """
        if self.items is None:
            one_way = self._jackknife(gradients, means, self.annotators, self.n_annotators)
            return None if one_way is None else _Covariance(one_way)
        pairs, n_pairs = codes(self.annotators * self.n_items + self.items, "pairs", len(self.values))
        ways = ((self.annotators, self.n_annotators), (self.items, self.n_items), (pairs, n_pairs))
        if is_jackknife:
            found = [self._jackknife(gradients, means, positions, n) for positions, n in ways]
        else:
            # One column a contrast: what each row moves it by.
            moves = (gradients / self.counts)[:, self.cells].T * (self.values - means[self.cells])[:, None]
            found = [_clustered(moves, positions, n) for positions, n in ways]
        by_annotator, by_item, by_both = found
        if by_annotator is None or by_item is None or by_both is None:
            return None
        return _Covariance(by_annotator, by_item, by_annotator + by_item - by_both)

    def _jackknife(
        self, gradients: FloatArray, means: FloatArray, positions: IntArray, n_clusters: int
    ) -> FloatArray | None:
        n_cells = len(self.counts)
        both = positions * n_cells + self.cells
        sums = totals(both, self.values, n_clusters * n_cells).reshape(-1, n_cells)
        counts = sizes_of(both, n_clusters * n_cells).reshape(-1, n_cells)
        left = self.counts - counts
        if np.any(left == 0):
            return None
        shift = ((self.sums - sums) / left - means) @ gradients.T
        return np.asarray((n_clusters - 1) / n_clusters * shift.T @ shift, dtype=np.float64)


def _clustered(moves: FloatArray, positions: IntArray, n_groups: int) -> FloatArray:
    sums = np.stack([totals(positions, column, n_groups) for column in moves.T], axis=1)
    factor = n_groups / (n_groups - 1) if n_groups > 1 else 0.0
    return np.asarray(factor * sums.T @ sums, dtype=np.float64)


def _linked(means: FloatArray, link: str) -> tuple[FloatArray, FloatArray]:
    """g(mean) and its derivative."""
    if link == "logit":
        return np.asarray(special.logit(means)), 1 / (means * (1 - means))
    if link == "probit":
        z = np.asarray(special.ndtri(means), dtype=np.float64)
        return z, math.sqrt(2 * math.pi) * np.exp(z**2 / 2)
    return means, np.ones_like(means)


def _exact(rows: _Rows, level: float) -> dict[str, list[float]]:
    return {
        str(cell): list(basic.clopper_pearson(int(hits), int(n), level))
        for cell, hits, n in zip(rows.names, rows.sums, rows.counts, strict=True)
    }


def _joint(
    rows: _Rows, hypotheses: FloatArray, link: str, level: float, analysis: str, unit: str, mode: str
) -> Estimate:
    """The joint F test that all contrasts are 0."""
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "whether the effects of conditions differ between domains",
        "unit": unit,
        "mode": mode,
        "n": rows.n_annotators,
        "n_clusters": rows.n_clusters,
        "n_rows": len(rows.values),
        "settings": {"link": link, "level": level, "method": rows.method},
    }
    n_contrasts = len(hypotheses)
    if n_contrasts == 0:
        return Estimate(status="not_applicable", reason="needs two conditions and two domains", **common)
    if np.any(rows.counts == 0):
        return Estimate(status="no_data", reason="a condition has no answers in some domain", **common)
    if rows.n_clusters <= max(n_contrasts, clusters.TOO_FEW_CLUSTERS - 1):
        return Estimate(status="not_identified", reason="too few clusters for a joint test", **common)
    means = rows.sums / rows.counts
    if link != "identity" and np.any((means <= 0) | (means >= 1)):
        return Estimate(status="separation", reason="a cell is all 0 or all 1", **common)
    scores, slopes = _linked(means, link)
    spread = rows.covariance(hypotheses * slopes, means, is_jackknife=True)
    if spread is None:
        reason = "one annotator (or item) alone gives the answers of a cell"
        return Estimate(status="not_identified", reason=reason, **common)
    contrasts = hypotheses @ scores
    statistics = []
    for covariance in spread.candidates():
        smallest = float(np.linalg.eigvalsh(covariance)[0])
        if smallest <= DEGENERATE * max(1.0, float(np.trace(covariance))):
            continue
        statistics.append(float(contrasts @ np.linalg.solve(covariance, contrasts)) / n_contrasts)
    if not statistics:
        return Estimate(status="zero_variance", reason="the contrasts do not vary", **common)
    statistic, df = min(statistics), rows.df
    if rows.items is None and df > n_contrasts:
        # Hotelling's correction for a covariance that is estimated; the least of three statistics makes up for it.
        statistic *= (df - n_contrasts + 1) / df
        df -= n_contrasts - 1
    pvalue = float(special.fdtrc(n_contrasts, df, statistic))
    return Estimate(
        test=HypothesisTest(name="clustered_f", null=0.0, statistic=statistic, pvalue=pvalue, alternative="greater"),
        detail={"df_between": n_contrasts, "df_within": df, "contrasts": contrasts},
        warnings=rows.warnings(unit),
        **common,
    )
