"""Adjustment of p-values in declared families of tests.

A family is the list of comparisons that a study planned. A comparison that could not be tested (no annotators
left, no variance) still counts, with p = 1. Otherwise excluding annotators would make the other tests more
significant.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.stats import power
from analysis.stats.arrays import FloatArray
from analysis.stats.results import Estimate, Interval, Record

# Thresholds for one, two, three stars. The SPA paper's table uses the first scheme.
STAR_SCHEMES = {"10/5/1": (0.10, 0.05, 0.01), "5/1/0.1": (0.05, 0.01, 0.001)}


@dataclass(frozen=True, slots=True)
class Family(Record):
    """A declared family: its name, the keys of the comparisons that are adjusted together, and the method of adjustment.

    `n_tests` is the number of planned tests, if the family also has tests that are adjusted elsewhere. Only Bonferroni's
    method can adjust a part of a family, because it needs no other p-value.
    """

    name: str
    planned: tuple[str, ...]
    method: str = "holm"
    n_tests: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method: {self.method!r} is not one of {', '.join(METHODS)}")
        twice = sorted({key for key in self.planned if self.planned.count(key) > 1})
        if twice:
            raise ValueError(f"planned: {twice[0]!r} occurs twice in the family {self.name}")
        if self.n_tests is not None and (self.n_tests < len(self.planned) or self.method != "bonferroni"):
            raise ValueError(
                f"n_tests: {self.n_tests} needs the method bonferroni and at least {len(self.planned)} tests"
            )

    @property
    def size(self) -> int:
        """Return the number of planned tests of the family."""
        return len(self.planned) if self.n_tests is None else self.n_tests


def holm(pvalues: Sequence[float | None], *, size: int | None = None) -> list[float | None]:
    """Holm's step-down adjustment, which controls the family-wise error.

    Parameters
    ----------
    pvalues : sequence[float or None]
        P-values; None is a planned test that is missing.
    size : int, optional
        Number of planned tests; the number of p-values if None.

    Returns
    -------
    list[float or None]
        Adjusted p-values in the same order.

    Notes
    -----
    The k-th smallest of m p-values becomes the running maximum of (m - k + 1) p. It is never less powerful than
    Bonferroni.

    References
    ----------
    Holm 1979; used for Table 1 of the SPA paper.

    Examples
    --------
    >>> [round(p, 4) for p in holm([0.04, 0.0001, 0.0004, 0.003, 0.17])]
    [0.08, 0.0005, 0.0016, 0.009, 0.17]
    >>> holm([0.02, None])
    [0.04, None]
    """
    return _adjust(pvalues, size, _holm)


def bonferroni(pvalues: Sequence[float | None], *, size: int | None = None) -> list[float | None]:
    """Bonferroni's adjustment, min(1, m p).

    Parameters
    ----------
    pvalues : sequence[float or None]
        P-values; None is a planned test that is missing.
    size : int, optional
        Number of planned tests; the number of p-values if None.

    Returns
    -------
    list[float or None]
        Adjusted p-values in the same order.

    References
    ----------
    Clark et al. 2021, section 2.4, with m = 15.

    Examples
    --------
    >>> bonferroni([0.02, 0.4], size=4)
    [0.08, 1.0]
    """
    return _adjust(pvalues, size, lambda array: array * len(array))


def benjamini_hochberg(pvalues: Sequence[float | None], *, size: int | None = None) -> list[float | None]:
    """Benjamini and Hochberg's adjustment for the false discovery rate.

    Parameters
    ----------
    pvalues : sequence[float or None]
        P-values; None is a planned test that is missing.
    size : int, optional
        Number of planned tests; the number of p-values if None.

    Returns
    -------
    list[float or None]
        Adjusted p-values in the same order.

    Notes
    -----
    For exploration only; reports label it so.

    Examples
    --------
    >>> [round(p, 5) for p in benjamini_hochberg([0.0004, 0.03, 0.012, 0.2, 0.049])]
    [0.002, 0.05, 0.03, 0.2, 0.06125]
    """
    return _adjust(pvalues, size, _benjamini_hochberg)


METHODS: Mapping[str, Callable[..., list[float | None]]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "benjamini_hochberg": benjamini_hochberg,
}


def pvalue_stars(pvalue: float | None, scheme: str = "10/5/1") -> str:
    """Return the stars of a p-value.

    Parameters
    ----------
    pvalue : float or None
        Adjusted p-value, or None without a test.
    scheme : str, default '10/5/1'
        Key of `STAR_SCHEMES`.

    Returns
    -------
    str
        The stars; '' without a p-value.

    Raises
    ------
    ValueError
        If the scheme is unknown.

    Examples
    --------
    >>> pvalue_stars(0.04), pvalue_stars(0.04, "5/1/0.1"), pvalue_stars(None)
    ('**', '*', '')
    """
    if scheme not in STAR_SCHEMES:
        raise ValueError(f"scheme: {scheme!r} is not one of {', '.join(STAR_SCHEMES)}")
    return "" if pvalue is None else "*" * sum(pvalue < threshold for threshold in STAR_SCHEMES[scheme])


def adjust_pvalues_and_intervals_of_family(
    estimates: Mapping[str, Estimate], family: Family, *, star_scheme: str | None = "10/5/1"
) -> dict[str, Estimate]:
    """Add the adjusted p-values, intervals that agree with them, and the family's name and size to the estimates.

    Parameters
    ----------
    estimates : mapping[str, Estimate]
        Estimates by the keys of the family. A planned key that is absent or has no test counts as p = 1.
    family : Family
        The declared family.
    star_scheme : str or None, default '10/5/1'
        Key of `STAR_SCHEMES`; None gives no stars.

    Returns
    -------
    dict[str, Estimate]
        The estimates with adjusted tests. With Bonferroni's method, `interval_adjusted` is set for each estimate
        with a confidence curve.

    Raises
    ------
    ValueError
        If a key is not planned in the family.

    Notes
    -----
    Bonferroni's intervals have the level 1 - (1 - level) / m, so the adjusted p-value is below 1 - level if and only if
    the adjusted interval excludes the null value. Intervals that agree with Holm's method are not standard, so estimates
    that he adjusts have none.

    Examples
    --------
    >>> from analysis.stats.basic import one_sample_t_test
    >>> family = Family("spa.primary", ("a > b", "c > b"))
    >>> result = adjust_pvalues_and_intervals_of_family({"a > b": one_sample_t_test([0.6, 0.7, 0.8, 0.9], null=0.5)}, family)["a > b"]
    >>> result.test.family_size, round(result.test.pvalue_adjusted / result.test.pvalue, 6)
    (2, 2.0)
    """
    unplanned = sorted(set(estimates) - set(family.planned))
    if unplanned:
        raise ValueError(f"estimates: {unplanned[0]!r} is not planned in the family {family.name}")
    pvalues = [estimates[key].pvalue if key in estimates else None for key in family.planned]
    after = dict(zip(family.planned, METHODS[family.method](pvalues, size=family.size), strict=True))
    results = {}
    for key, estimate in estimates.items():
        if estimate.test is None:
            results[key] = estimate
            continue
        test = replace(
            estimate.test,
            pvalue_adjusted=after[key],
            adjust=family.method,
            family=family.name,
            family_size=family.size,
            stars=None if star_scheme is None else pvalue_stars(after[key], star_scheme),
            star_scheme=star_scheme,
        )
        results[key] = replace(estimate, test=test, interval_adjusted=_adjusted_interval(estimate, family))
    return results


def _adjusted_interval(estimate: Estimate, family: Family) -> Interval | None:
    """Return the interval of the estimate's curve that agrees with its adjusted p-value, or None if there is no curve."""
    if family.method != "bonferroni" or estimate.curve is None or estimate.interval is None:
        return None
    if estimate.test is not None and estimate.test.alternative == "within margin":
        # The level of the interval that decides equivalence depends on the curve: 1 - 2 alpha for t tests.
        significance = float(estimate.settings["significance"]) / family.size
        return estimate.curve.interval(estimate.curve.equivalence_level(significance))
    return estimate.curve.interval(1 - (1 - estimate.interval.level) / family.size)


def adjust_detectable_difference(estimate: Estimate, family: Family, *, significance: float) -> Estimate:
    """Adjust the detectable difference in the estimate's `detail` to the first step of the family.

    Parameters
    ----------
    estimate : Estimate
        An estimate with `detectable` or `detectable_difference` in its `detail`.
    family : Family
        The declared family.
    significance : float
        Significance level of the family.

    Returns
    -------
    Estimate
        The estimate with the adjusted difference.

    Notes
    -----
    An estimate is made before its family is known, so it holds what a single test finds with power .8. The new value
    uses its standard error and degrees of freedom (or sd and n), at `significance` divided by the size of the family.

    Examples
    --------
    >>> from analysis.stats.spa import pair_preference_recommended
    >>> pair = pair_preference_recommended([70, 80, 65, 30] * 9, [30, 25, 45, 20] * 9, rng=np.random.default_rng(0), sensitivity_resamples=99)
    >>> of_five = adjust_detectable_difference(pair, Family("spa.primary", tuple("abcde")), significance=0.05)
    >>> [round(one.detail["detectable_difference"], 3) for one in (pair, of_five)]
    [0.043, 0.053]
    """
    name = next((name for name in ("detectable", "detectable_difference") if name in estimate.detail), None)
    if name is None:
        return estimate
    if "df" in estimate.detail:
        n = max(2, int(estimate.detail["df"]) + 1)
        sd = float(estimate.detail["se"]) * math.sqrt(n)
    else:
        n, sd = estimate.n, float(estimate.detail["sd"])
    tests = family.size
    detectable = power.t_test_detectable_difference(n, sd=sd, significance=significance, tests=tests)
    return replace(
        estimate, detail={**estimate.detail, name: detectable}, settings={**estimate.settings, "tests": tests}
    )


def _adjust(
    pvalues: Sequence[float | None], size: int | None, rule: Callable[[FloatArray], FloatArray]
) -> list[float | None]:
    planned = len(pvalues) if size is None else size
    if planned < len(pvalues):
        raise ValueError(f"size: {planned} is less than the {len(pvalues)} tests given; a family never shrinks")
    filled = np.ones(planned)
    for position, pvalue in enumerate(pvalues):
        if pvalue is None or pvalue != pvalue:
            continue
        if not 0 <= pvalue <= 1:
            raise ValueError(f"pvalues: row {position} is {pvalue!r}, not in 0..1")
        filled[position] = pvalue
    after = np.minimum(1.0, rule(filled)) if planned else filled
    return [
        None if pvalue is None or pvalue != pvalue else float(after[position])
        for position, pvalue in enumerate(pvalues)
    ]


def _holm(pvalues: FloatArray) -> FloatArray:
    order = np.argsort(pvalues, kind="stable")
    stepped = np.maximum.accumulate(np.arange(len(pvalues), 0, -1) * pvalues[order])
    after = np.empty_like(pvalues)
    after[order] = stepped
    return after


def _benjamini_hochberg(pvalues: FloatArray) -> FloatArray:
    m = len(pvalues)
    order = np.argsort(pvalues, kind="stable")[::-1]
    stepped = np.minimum.accumulate(m / np.arange(m, 0, -1) * pvalues[order])
    after = np.empty_like(pvalues)
    after[order] = stepped
    return after
