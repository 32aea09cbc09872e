"""Adjustment of p-values in declared families of tests.

A family is the list of comparisons that a study planned. A comparison that could not be tested (no annotators
left, no variance) still counts, with p = 1. Otherwise excluding annotators would make the other tests more
significant.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.stats import power_of_means
from analysis.stats.arrays import FloatArray
from analysis.stats.results import Estimate, Interval, Record

# Adjusted p-values of the tests of one family, and of a family behind a gate.


def holm(pvalues: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment, which controls the family-wise error.

    Parameters
    ----------
    pvalues : sequence[float or None]
        P-values; None is a planned test that is missing.

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
    return _adjust(pvalues, _holm)


def bonferroni(pvalues: Sequence[float | None]) -> list[float | None]:
    """Return Bonferroni's adjusted p-values, min(1, m p), in the same order.

    A p-value of None is a planned test that is missing; it counts in the number m of tests. Clark et al. 2021, section
    2.4, has m = 15.

    >>> bonferroni([0.02, 0.4, None, None])
    [0.08, 1.0, None, None]
    """
    return _adjust(pvalues, lambda array: array * len(array))


def hommel(pvalues: Sequence[float | None]) -> list[float | None]:
    """Return Hommel's adjusted p-values, in the same order, which control the family-wise error if Simes' test is valid.

    Simes' test has to be valid for every part of the family. It is so for independent and for positively dependent
    p-values, such as those of comparisons with shared annotators or a shared system in the same direction. The adjusted
    p-value of a test is the largest p-value of Simes' test, min over k of j p_(k) / k, over all parts of the family
    that contain the test; among the parts with j tests, the one with the j - 1 largest other p-values decides, so m
    parts are enough (Hommel 1988, Biometrika 75, 383-386; Wright 1992, Biometrics 48, 1005-1013; Simes 1986, Biometrika
    73, 751-754). The method is never less powerful than Holm's. A p-value of None is a planned test that is missing and
    counts as 1.

    >>> hommel([0.01, 0.02, 0.03, 0.04]), [round(p, 4) for p in holm([0.01, 0.02, 0.03, 0.04])]
    ([0.04, 0.04, 0.04, 0.04], [0.04, 0.06, 0.06, 0.06])
    >>> hommel([0.02, None])
    [0.04, None]
    """
    return _adjust(pvalues, _hommel)


def behind_gate(pvalues: Sequence[float | None], gate_pvalue: float) -> list[float | None]:
    """Return the adjusted p-values of a family that is tested only after all comparisons of another family were shown.

    `pvalues` are adjusted within their own family. `gate_pvalue` is the largest adjusted p-value of the family before,
    which includes the gate of that family. The result is the larger of both for each test; None stays None. This is
    serial gatekeeping: if a hypothesis of the family before is true, an error in the later family needs an error in the
    one before, which has at most its level. If none is true, only the later family can have an error. So the level
    holds over both families, and each may use it in full (Westfall and Krishen 2001, Journal of Statistical Planning
    and Inference 99, 25-40; Dmitrienko and Tamhane 2007, Pharmaceutical Statistics 6, 171-180).

    >>> behind_gate([0.001, 0.04, None], 0.02)
    [0.02, 0.04, None]
    """
    return [None if pvalue is None else max(pvalue, gate_pvalue) for pvalue in pvalues]


def adjust_among(
    pvalues: Sequence[float | None], others: Sequence[float | None], method: str = "holm"
) -> list[float | None]:
    """Return adjusted p-values of tests with an alternative test each, of which at most one has a true hypothesis.

    For example, a comparison is tested for a difference and for equivalence within a margin: "there is no difference"
    and "the difference is at least as large as the margin" cannot both be true. `pvalues` has one test of each
    comparison; None is a planned test that is missing. `others` has the larger p-value of the tests of each comparison,
    with which it counts while another is adjusted; another length raises ValueError. `method` is a key of `METHODS`.
    The adjusted p-values of all tests of all comparisons together control the family-wise error, if the method does so
    for one test of each comparison. A closed test (Marcus, Peritz and Gabriel 1976, Biometrika 63, 655-660) rejects a
    hypothesis if it rejects every set of hypotheses that can be true together and contain it. Such a set has at most
    one hypothesis of each comparison (Shaffer 1986, Journal of the American Statistical Association 81, 826-831). The
    set with the larger p-value of each other comparison is the last to be rejected, because Bonferroni's and Simes'
    tests depend on the size of a set and increase with each p-value. So m p-values are enough, and a family does not
    grow by its tests of equivalence.

    >>> difference, equivalence = [0.001, 0.03], [0.9, 0.01]
    >>> larger = [max(pair) for pair in zip(difference, equivalence)]
    >>> adjust_among(difference, larger), adjust_among(equivalence, larger)
    ([0.002, 0.06], [0.9, 0.02])
    >>> holm(difference)
    [0.002, 0.03]
    """
    if len(pvalues) != len(others):
        raise ValueError(f"others: {len(others)} where pvalues has {len(pvalues)}")
    adjust = METHODS[method]
    if list(pvalues) == list(others):
        return adjust(pvalues)
    return [
        adjust([*others[:position], pvalue, *others[position + 1 :]])[position]
        for position, pvalue in enumerate(pvalues)
    ]


def benjamini_hochberg(pvalues: Sequence[float | None]) -> list[float | None]:
    """Return Benjamini and Hochberg's adjusted p-values for the false discovery rate, in the same order.

    A p-value of None is a planned test that is missing. The method is for exploration only, and reports label it so.

    >>> [round(p, 5) for p in benjamini_hochberg([0.0004, 0.03, 0.012, 0.2, 0.049])]
    [0.002, 0.05, 0.03, 0.2, 0.06125]
    """
    return _adjust(pvalues, _benjamini_hochberg)


METHODS: Mapping[str, Callable[[Sequence[float | None]], list[float | None]]] = {
    "holm": holm,
    "bonferroni": bonferroni,
    "hommel": hommel,
    "benjamini_hochberg": benjamini_hochberg,
}


def _adjust(pvalues: Sequence[float | None], rule: Callable[[FloatArray], FloatArray]) -> list[float | None]:
    filled = np.ones(len(pvalues))
    for position, pvalue in enumerate(pvalues):
        if pvalue is None or pvalue != pvalue:
            continue
        if not 0 <= pvalue <= 1:
            raise ValueError(f"pvalues: row {position} is {pvalue!r}, not in 0..1")
        filled[position] = pvalue
    after = np.minimum(1.0, rule(filled)) if len(filled) else filled
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


def _hommel(pvalues: FloatArray) -> FloatArray:
    m = len(pvalues)
    order = np.argsort(pvalues, kind="stable")
    ordered = pvalues[order]
    largest = np.zeros(m)
    for j in range(1, m + 1):
        # Simes' test of each test with the j - 1 largest others. The j largest tests share one part of the family.
        others = np.min(j * ordered[m - j + 1 :] / np.arange(2, j + 1), initial=np.inf)
        of_parts = np.minimum(j * ordered, others)
        of_parts[m - j :] = of_parts[m - j]
        largest = np.maximum(largest, of_parts)
    after = np.empty_like(pvalues)
    after[order] = largest
    return after


def _benjamini_hochberg(pvalues: FloatArray) -> FloatArray:
    m = len(pvalues)
    order = np.argsort(pvalues, kind="stable")[::-1]
    stepped = np.minimum.accumulate(m / np.arange(m, 0, -1) * pvalues[order])
    after = np.empty_like(pvalues)
    after[order] = stepped
    return after


# Families of tests: their adjusted p-values, with intervals that agree, their stars and their gate.


# Thresholds for one, two, three stars. The SPA paper's table uses the first scheme.
STAR_SCHEMES = {"10/5/1": (0.10, 0.05, 0.01), "5/1/0.1": (0.05, 0.01, 0.001)}


@dataclass(frozen=True, slots=True)
class Gate(Record):
    """The family that must be shown before another family is tested.

    `pvalue` is the largest adjusted p-value of that family, which includes its own gate. `is_open` says whether all its
    comparisons were shown, each at its own level.
    """

    family: str
    pvalue: float
    is_open: bool


@dataclass(frozen=True, slots=True)
class Family(Record):
    """A declared family: its name, the keys of all its planned comparisons, the method of adjustment, and its gate if any."""

    name: str
    planned: tuple[str, ...]
    method: str = "holm"
    gate: Gate | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method: {self.method!r} is not one of {', '.join(METHODS)}")
        twice = sorted({key for key in self.planned if self.planned.count(key) > 1})
        if twice:
            raise ValueError(f"planned: {twice[0]!r} occurs twice in the family {self.name}")

    @property
    def size(self) -> int:
        """Return the number of planned tests of the family."""
        return len(self.planned)


def pvalue_stars(pvalue: float | None, scheme: str = "10/5/1") -> str:
    """Return the stars of an adjusted p-value by a scheme of `STAR_SCHEMES`, or '' without a p-value.

    >>> pvalue_stars(0.04), pvalue_stars(0.04, "5/1/0.1"), pvalue_stars(None)
    ('**', '*', '')
    """
    if scheme not in STAR_SCHEMES:
        raise ValueError(f"scheme: {scheme!r} is not one of {', '.join(STAR_SCHEMES)}")
    return "" if pvalue is None else "*" * sum(pvalue < threshold for threshold in STAR_SCHEMES[scheme])


def adjust_pvalues_and_intervals_of_family(
    estimates: Mapping[str, Estimate],
    family: Family,
    *,
    others: Mapping[str, float] | None = None,
    star_scheme: str | None = "10/5/1",
) -> dict[str, Estimate]:
    """Add the adjusted p-values, intervals that agree with them, and the family's name and size to the estimates.

    Parameters
    ----------
    estimates : mapping[str, Estimate]
        Estimates by the keys of the family. A planned key that is absent or has no test counts as p = 1.
    family : Family
        The declared family.
    others : mapping[str, float], optional
        P-values with which comparisons count while another is adjusted, if they have a second test: the larger one of both (see
        `adjust_among`). By default the p-value of the estimate.
    star_scheme : str or None, default '10/5/1'
        Key of `STAR_SCHEMES`; None gives no stars.

    Returns
    -------
    dict[str, Estimate]
        The estimates with adjusted tests. Those that support no claim (`Estimate.supports_no_claim`) have no stars. With
        Bonferroni's method, `interval_adjusted` is set for each estimate with a confidence curve. Behind a closed gate
        there are no stars and no adjusted intervals.

    Raises
    ------
    ValueError
        If a key is not planned in the family.

    Notes
    -----
    Bonferroni's intervals have the level 1 - (1 - level) / m, so the adjusted p-value is below 1 - level if and only if
    the adjusted interval excludes the null value. Holm's and Hommel's methods have no standard intervals that agree with
    them, so their estimates have no adjusted interval. Behind a gate, p-values are those of `behind_gate`.

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
    larger = [(others or {}).get(key, pvalue) for key, pvalue in zip(family.planned, pvalues, strict=True)]
    adjusted = adjust_among(pvalues, larger, family.method)
    if family.gate is not None:
        adjusted = behind_gate(adjusted, family.gate.pvalue)
    after = dict(zip(family.planned, adjusted, strict=True))
    is_open = family.gate is None or family.gate.is_open
    stars_scheme = star_scheme if is_open else None
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
            stars=None
            if stars_scheme is None
            else pvalue_stars(None if estimate.supports_no_claim else after[key], stars_scheme),
            star_scheme=stars_scheme,
        )
        interval = _adjusted_interval(estimate, family) if is_open else None
        results[key] = replace(estimate, test=test, interval_adjusted=interval)
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

    An estimate is made before its family is known, so its `detectable` or `detectable_difference` is what a single test
    finds with power .8. The new value uses its standard error and degrees of freedom (or sd and n), at `significance`,
    the level of the family, divided by the size of the family. An estimate without such a difference stays as it is.

    >>> import numpy as np
    >>> from analysis.stats.spa import pair_preferences_recommended
    >>> xy, yx, rng = [[70], [80], [65], [30]] * 9, [[30], [25], [45], [20]] * 9, np.random.default_rng(0)
    >>> pair = pair_preferences_recommended(xy, yx, pair_names=["a"], rng=rng, sensitivity_resamples=99)["a"]
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
    detectable = power_of_means.t_test_detectable_difference(n, sd=sd, significance=significance, tests=tests)
    return replace(
        estimate, detail={**estimate.detail, name: detectable}, settings={**estimate.settings, "tests": tests}
    )
