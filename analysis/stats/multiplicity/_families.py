"""Families of tests: their adjusted p-values, with intervals that agree, their stars and their gate."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from analysis.stats import power
from analysis.stats.multiplicity._pvalues import METHODS, adjust_among, behind_gate
from analysis.stats.results import Estimate, Interval, Record

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
    detectable = power.t_test_detectable_difference(n, sd=sd, significance=significance, tests=tests)
    return replace(
        estimate, detail={**estimate.detail, name: detectable}, settings={**estimate.settings, "tests": tests}
    )
