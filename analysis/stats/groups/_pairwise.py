"""Pairwise comparisons of groups by the studentised range."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats import effects
from analysis.stats.arrays import MIN_SPREAD, validate_level
from analysis.stats.groups._sample import GroupSample, difference_detectable_at_power_80
from analysis.stats.quadrature import gauss_legendre
from analysis.stats.results import Estimate, HypothesisTest, Interval


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
    """Survival function of the studentised range: P(range of k means > q).

    Parameters
    ----------
    q : float
        Range in standard errors.
    k : int
        Number of means, at least 2.
    df : float
        Degrees of freedom of the standard error, at least 1.

    Returns
    -------
    float
        The probability.

    Raises
    ------
    ValueError
        If `k` or `df` is too small.

    Notes
    -----
    The integral over the standard error s of P(range > q s). That is k times the integral of phi(z) [Phi(z)^(k-1) -
    (Phi(z) - Phi(z - q s))^(k-1)]. Both use Gauss-Legendre quadrature, which is much faster than a general
    integrator.

    Examples
    --------
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
