"""Claims by a margin: equivalence, non-inferiority and superiority."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic
from analysis.stats.arrays import MIN_SPREAD, drop_and_count_missing, validate_level
from analysis.stats.claims import agreeing_interval, barred_by
from analysis.stats.confidence import ConfidenceCurve, TCurve
from analysis.stats.multiplicity import Family, adjust_detectable_difference, adjust_pvalues_and_intervals_of_family
from analysis.stats.plain_records import HYPOTHESES, SUPERIORITY_BY_MARGIN
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record

# Equivalence tests: show that a difference is smaller than a margin.
#
# A result that is not significant does not show equality. Only the verdict `equivalent`, against a margin that was
# fixed before the data, may be printed as "indistinguishable".


def equivalence_test(
    values: npt.ArrayLike,
    *,
    null: float,
    margin: float,
    significance: float = 0.05,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Test the hypothesis that the mean is at least `margin` away from `null`, by two one-sided t tests (TOST).

    `values` has one value per unit, with NaN for missing, and `margin` is on the scale of the estimate. The estimate is
    the mean, with the larger of the two one-sided p-values and an interval of level 1 - 2 `significance`, clipped to
    `bounds`, the ends of the scale. p <= `significance` exactly if the interval is within null -/+ margin (Schuirmann
    1987). `detail["is_equivalent"]` uses the unadjusted p-value. Adjust it within a family of equivalence tests,
    separate from the tests of difference.

    >>> values = [0.5, 0.55, 0.45, 0.6, 0.4, 0.5, 0.5, 0.52, 0.48, 0.5, 0.47, 0.53]
    >>> result = equivalence_test(values, null=0.5, margin=0.1)
    >>> round(result.pvalue, 8), round(result.interval.low, 4), result.detail["is_equivalent"]
    (1.267e-05, 0.474, True)
    """
    _refuse(margin, significance)
    observed, n_missing = drop_and_count_missing(values, "values")
    settings = {"null": null, "margin": margin, "significance": significance}
    common: dict[str, Any] = {"analysis": "equivalence", "estimand": "mean", "unit": "annotator"}
    edge = basic.degenerate_mean_estimate(
        observed,
        level=1 - 2 * significance,
        bounds=bounds,
        n_rows=len(observed),
        settings=settings,
        detail={"n_missing": n_missing},
        **common,
    )
    if edge is not None:
        return edge
    n = len(observed)
    return equivalence_test_from_se(
        float(np.mean(observed)),
        float(np.std(observed, ddof=1)) / math.sqrt(n),
        n - 1,
        n=n,
        null=null,
        margin=margin,
        significance=significance,
        bounds=bounds,
        **common,
    )


def equivalence_test_from_se(
    estimate: float,
    se: float,
    df: float,
    *,
    n: int,
    null: float,
    margin: float,
    significance: float = 0.05,
    bounds: tuple[float, float] | None = None,
    **common: Any,
) -> Estimate:
    """TOST from an estimate, its standard error and its degrees of freedom; see `equivalence_test`.

    Parameters
    ----------
    estimate, se, df : float
        Estimate, its standard error (clustered, for example), and the degrees of freedom.
    n : int
        Number of units.
    null : float
        Value of the null hypothesis.
    margin : float
        Equivalence margin on the scale of the estimate.
    significance : float, default 0.05
        Significance level; the interval has level 1 - 2 `significance`.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them.
    **common : Any
        Other fields of the `Estimate`.

    Returns
    -------
    Estimate
        The estimate with the equivalence test.

    Examples
    --------
    >>> names = {"analysis": "a", "estimand": "b", "unit": "annotator"}
    >>> result = equivalence_test_from_se(0.5, 0.02, 30, n=31, null=0.5, margin=0.05, **names)
    >>> round(result.pvalue, 4)
    0.0091
    """
    _refuse(margin, significance)
    settings = {"null": null, "margin": margin, "significance": significance}
    if se < MIN_SPREAD:
        return Estimate(
            n=n,
            status="zero_variance",
            reason="the standard error is 0",
            estimate=estimate,
            settings=settings,
            **common,
        )
    curve = TCurve(estimate, se, df, bounds)
    return _equivalence_test_of_curve(
        curve, estimate=estimate, n=n, null=null, margin=margin, significance=significance, **common
    )


def equivalence_test_of_estimate(
    estimate: Estimate,
    *,
    null: float,
    margin: float,
    significance: float = 0.05,
) -> Estimate | None:
    """Return the TOST of an estimate that has a t test of `null`, or None without an estimate or a standard error.

    The margin is on the scale of the estimate, and the interval has level 1 - 2 `significance`. The standard error and
    the degrees of freedom are those of the estimate. An estimate without a test (fewer than six clusters) gives an
    interval and no p-value. A standard error of 0 gives the status `zero_variance`.

    >>> from analysis.stats.basic import one_sample_t_test
    >>> values = [0.5, 0.55, 0.45, 0.6, 0.4, 0.5, 0.5, 0.52, 0.48, 0.5, 0.47, 0.53]
    >>> result = equivalence_test_of_estimate(one_sample_t_test(values, null=0.5), null=0.5, margin=0.1)
    >>> result.analysis, round(result.pvalue, 8)
    ('one_sample.equivalence', 1.267e-05)
    """
    common: dict[str, Any] = {
        "analysis": f"{estimate.analysis}.equivalence",
        "estimand": estimate.estimand,
        "unit": estimate.unit,
    }
    if estimate.curve is not None:
        equivalence = _equivalence_test_of_curve(
            estimate.curve,
            estimate=estimate.estimate,
            n=estimate.n,
            null=null,
            margin=margin,
            significance=significance,
            **common,
        )
    else:
        tested, se = estimate.test, estimate.detail.get("se")
        df = estimate.detail.get("df", None if tested is None else tested.df)
        if estimate.estimate is None or se is None or (df is None and se >= MIN_SPREAD):
            return None
        equivalence = equivalence_test_from_se(
            estimate.estimate,
            float(se),
            1.0 if df is None else float(df),
            n=estimate.n,
            null=null,
            margin=margin,
            significance=significance,
            **common,
        )
    if population := estimate.settings.get("population"):
        equivalence = replace(equivalence, settings={**equivalence.settings, "population": population})
    if estimate.test is not None or equivalence.test is None:
        return equivalence
    return replace(equivalence, test=None, detail={"low_bound": null - margin, "high_bound": null + margin})


def _equivalence_test_of_curve(
    curve: ConfidenceCurve,
    *,
    estimate: float | None,
    n: int,
    null: float,
    margin: float,
    significance: float,
    **common: Any,
) -> Estimate:
    """Return the equivalence test of an estimate by its own confidence curve, so that it agrees with its interval."""
    _refuse(margin, significance)
    low, high = null - margin, null + margin
    if curve.bounds is not None and low <= curve.bounds[0] and high >= curve.bounds[1]:
        return Estimate(
            n=n,
            estimate=estimate,
            status="not_applicable",
            reason=f"the margin {margin:g} covers the whole scale, so equivalence would be concluded from any data",
            settings={"null": null, "margin": margin, "significance": significance},
            **common,
        )
    pvalue_low, pvalue_high = curve.one_sided_pvalues(low, high)
    closest = low if pvalue_low >= pvalue_high else high
    return Estimate(
        n=n,
        estimate=estimate,
        interval=curve.interval(curve.equivalence_level(significance)),
        test=HypothesisTest(
            name="tost" if curve.df is not None else f"{curve.test_name}_tost",
            null=null,
            statistic=curve.statistic(closest),
            df=curve.df,
            pvalue=max(pvalue_low, pvalue_high),
            alternative="within margin",
        ),
        detail={
            "low_bound": low,
            "high_bound": high,
            "pvalue_low": pvalue_low,
            "pvalue_high": pvalue_high,
            "is_equivalent": max(pvalue_low, pvalue_high) < significance,
        },
        settings={"null": null, "margin": margin, "significance": significance},
        _curve=curve,
        **common,
    )


def difference_and_equivalence_verdict(
    difference_pvalue: float | None, equivalence_pvalue: float | None, *, significance: float = 0.05
) -> str:
    """Combine the test of difference and the test of equivalence into one verdict.

    The p-values are adjusted if there is a family; None means that there is no test. The verdict is `different` (only a
    difference is shown), `equivalent` (only equivalence is shown), `different_but_trivial` (both are shown) or
    `inconclusive` (neither is shown).

    >>> difference_and_equivalence_verdict(0.001, 0.7), difference_and_equivalence_verdict(0.6, 0.001), difference_and_equivalence_verdict(0.001, 0.001), difference_and_equivalence_verdict(0.3, 0.2)
    ('different', 'equivalent', 'different_but_trivial', 'inconclusive')
    """
    validate_level(significance)
    is_different = difference_pvalue is not None and difference_pvalue < significance
    is_small = equivalence_pvalue is not None and equivalence_pvalue < significance
    if is_different:
        return "different_but_trivial" if is_small else "different"
    return "equivalent" if is_small else "inconclusive"


def _refuse(margin: float, significance: float) -> None:
    if not (math.isfinite(margin) and margin > 0):
        raise ValueError(f"margin: {margin!r} is not a positive number")
    if not 0 < significance < 0.5:
        raise ValueError(f"significance: {significance!r} is not strictly between 0 and .5")


def adjust_and_add_verdicts(
    estimates: Mapping[str, Estimate],
    family: Family,
    *,
    significance: float | Mapping[str, float] = 0.05,
    star_scheme: str | None = "10/5/1",
) -> dict[str, Estimate]:
    """Adjust the tests of difference and of equivalence together, and add the verdicts.

    `estimates` has the keys of `family`; `significance` is one level for all tests or the level of each key. A TOST is
    the sensitivity whose analysis ends in ".equivalence", and the tests of equivalence form a family with
    ".equivalence" after its name. `star_scheme` is a key of `multiplicity.STAR_SCHEMES`; None gives no stars. "No
    difference" and "at least the margin" cannot both be true, so the family-wise error of all these tests is at most
    the level although each comparison counts once: with the larger of its two p-values (see
    `multiplicity.adjust_among`). The results have adjusted tests and `detail["verdict"]`. Without a TOST the verdict is
    `different` or None. With a warning of severity `block`, a recommended estimate has no verdict but `inconclusive`.
    Behind a gate that is closed, the verdict is `not_tested`; `detail["gate"]` is the gate, if the family has one. The
    detectable difference is that of the family's first step (see `multiplicity.adjust_detectable_difference`).

    >>> from analysis.stats.basic import one_sample_t_test
    >>> values = [0.5, 0.515, 0.485, 0.505] * 9
    >>> tost = equivalence_test(values, null=0.5, margin=0.05).labelled(analysis="pair.equivalence")
    >>> estimates = {"a > b": replace(one_sample_t_test(values, null=0.5), sensitivity=(tost,))}
    >>> adjust_and_add_verdicts(estimates, Family("pairs", ("a > b",)))["a > b"].detail["verdict"]
    'equivalent'
    """
    found = [(key, other) for key, estimate in estimates.items() for other in estimate.sensitivity]
    tosts = {key: other for key, other in found if other.analysis.endswith(".equivalence")}
    larger = {
        key: max(1.0 if one.pvalue is None else one.pvalue for one in (estimate, tosts.get(key, estimate)))
        for key, estimate in estimates.items()
    }
    differences = adjust_pvalues_and_intervals_of_family(estimates, family, others=larger, star_scheme=star_scheme)
    tosts = adjust_pvalues_and_intervals_of_family(
        tosts, replace(family, name=f"{family.name}.equivalence"), others=larger, star_scheme=None
    )
    results = {}
    for key, estimate in differences.items():
        tost = tosts.get(key)
        after = None if estimate.test is None else estimate.test.pvalue_adjusted
        small = None if tost is None or tost.test is None else tost.test.pvalue_adjusted
        level = significance[key] if isinstance(significance, Mapping) else significance
        verdict: str | None = difference_and_equivalence_verdict(after, small, significance=level)
        if estimate.supports_no_claim:
            verdict = "inconclusive"
        if tost is None and verdict == "inconclusive":
            verdict = None
        detail = {**estimate.detail, "verdict": verdict}
        if family.gate is not None:
            detail["gate"] = family.gate.as_dict()
            if not family.gate.is_open:
                detail["verdict"] = "not_tested"
        sensitivity = tuple(
            tost if tost is not None and other.analysis == tost.analysis else other for other in estimate.sensitivity
        )
        judged = replace(estimate, sensitivity=sensitivity, detail=detail)
        results[key] = adjust_detectable_difference(judged, family, significance=level)
    return results


# Non-inferiority and superiority by a margin: x is not worse, or is better, by more than a margin.
#
# Both claims compare the estimate with a limit instead of "no difference". The estimate's own confidence curve gives
# the p-value of the limit, so the claim and the interval never disagree.


@dataclass(frozen=True, slots=True)
class MarginHypothesis(Record):
    """A claim about x by a margin, on the scale of the estimate.

    Attributes
    ----------
    hypothesis : str
        `noninferiority` (x is not worse than y by more than the margin) or `superiority_by_margin` (x is better than
        y by more than the margin).
    null : float
        Value of the estimand without a difference.
    margin : float
        The margin, above 0.
    is_lower_better : bool, default False
        Whether a lower value is better for x.

    Raises
    ------
    ValueError
        If the hypothesis is unknown or the margin is not a positive number.

    Notes
    -----
    With s = 1, or s = -1 where lower is better, the limit is null - s margin for non-inferiority, and null + s margin
    for superiority by the margin.

    Examples
    --------
    >>> claim = MarginHypothesis("noninferiority", null=0.5, margin=0.05)
    >>> claim.limit, claim.side
    (0.45, 'greater')
    >>> MarginHypothesis("superiority_by_margin", null=0.0, margin=0.5, is_lower_better=True).limit
    -0.5
    """

    hypothesis: str
    null: float
    margin: float
    is_lower_better: bool = False

    def __post_init__(self) -> None:
        if self.hypothesis not in HYPOTHESES:
            raise ValueError(f"hypothesis: {self.hypothesis!r} is not one of {', '.join(HYPOTHESES)}")
        if not (math.isfinite(self.margin) and self.margin > 0):
            raise ValueError(f"margin: {self.margin!r} is not a positive number")

    @property
    def limit(self) -> float:
        """Return the value that the claim must exclude, rounded so that .5 - .05 is .45."""
        towards_better = -1.0 if self.is_lower_better else 1.0
        sign = towards_better if self.hypothesis == SUPERIORITY_BY_MARGIN else -towards_better
        return round(self.null + sign * self.margin, 12)

    @property
    def side(self) -> str:
        """Return the side of the limit that the claim is about: `greater` or `less`."""
        return "less" if self.is_lower_better else "greater"

    def is_better_than(self, value: float, limit: float) -> bool:
        """Return whether a value of the estimand is better for x than another."""
        return value < limit if self.is_lower_better else value > limit

    def is_wholly_better(self, interval: Interval, value: float) -> bool:
        """Return whether all values of an interval are better for x than `value`."""
        return self.is_better_than(interval.high if self.is_lower_better else interval.low, value)

    def is_wholly_worse(self, interval: Interval, value: float) -> bool:
        """Return whether all values of an interval are worse for x than `value`."""
        return self.is_better_than(value, interval.low if self.is_lower_better else interval.high)


def margin_test(estimate: Estimate, claim: MarginHypothesis, *, significance: float = 0.05) -> Estimate:
    """Test an estimate against the limit of a claim, in the place of its test of difference.

    Parameters
    ----------
    estimate : Estimate
        An estimate with its test of no difference and its confidence curve.
    claim : MarginHypothesis
        The claim, on the scale of the estimate.
    significance : float, default 0.05
        Significance level of the two-sided test; the interval has level 1 - `significance`.

    Returns
    -------
    Estimate
        The same estimate. `test.null` is the limit and `test.alternative` is the claimed side (`greater`, `less`).
        `settings["claim"]` has the claim and its limit. Without a test of difference, there is no test either.
        Without a curve, or with a limit at or beyond an end of the scale, the status is `not_applicable`.

    Raises
    ------
    ValueError
        If `significance` is not in 0..1.

    Notes
    -----
    If the estimate is on the claimed side of the limit, p is the two-sided p-value of the limit. Otherwise p = 1. So
    half of `significance` is spent on the claimed side, and p < `significance` exactly if the estimate is on that side
    and the interval excludes the limit. This is the usual convention that the two-sided 95 % interval decides.

    References
    ----------
    EMA (CPMP) 2000, Points to consider on switching between superiority and non-inferiority.

    Examples
    --------
    >>> from analysis.stats.basic import one_sample_t_test
    >>> values = [0.5, 0.55, 0.45, 0.6, 0.4, 0.5, 0.5, 0.52, 0.48, 0.5, 0.47, 0.53]
    >>> claim = MarginHypothesis("noninferiority", null=0.5, margin=0.05)
    >>> result = margin_test(one_sample_t_test(values, null=0.5), claim)
    >>> result.test.null, result.test.alternative, round(result.pvalue, 4), round(result.interval.low, 3)
    (0.45, 'greater', 0.0054, 0.468)
    """
    validate_level(significance)
    settings = {**estimate.settings, "claim": {**claim.as_dict(), "limit": claim.limit}}
    estimate = replace(estimate, settings=settings)
    curve = estimate.curve
    if estimate.test is None or estimate.estimate is None:
        return estimate
    if curve is None:
        return _no_claim(estimate, "its method gives no p-value for another value than no difference")
    if curve.bounds is not None and not curve.bounds[0] < claim.limit < curve.bounds[1]:
        return _no_claim(estimate, f"the margin {claim.margin:g} reaches the end of the scale")
    is_on_side = claim.is_better_than(estimate.estimate, claim.limit)
    test = HypothesisTest(
        name=curve.test_name,
        null=claim.limit,
        statistic=curve.statistic(claim.limit),
        df=curve.df,
        pvalue=curve.pvalue(claim.limit) if is_on_side else 1.0,
        alternative=claim.side,
    )
    return replace(estimate, test=test, interval=curve.interval(1 - significance))


def _no_claim(estimate: Estimate, reason: str) -> Estimate:
    return replace(estimate, test=None, status="not_applicable", reason=reason)


def margin_verdict(estimate: Estimate, claim: MarginHypothesis, *, significance: float = 0.05) -> str:
    """Return what an estimate shows about a claim by a margin, after adjustment in its family.

    The estimate comes from `margin_test` and is adjusted by `multiplicity.adjust_pvalues_and_intervals_of_family`;
    `significance` is that of the two-sided test. `noninferior` and `superior_by_margin` mean that the claim is shown,
    `noninferior_but_worse` that x is worse, but by less than the margin, `better` that x is better than y (for
    non-inferiority, this includes the claim; for superiority by a margin, the claim is not shown), `worse` that x is
    worse than y and the claim is not shown, and `inconclusive` that nothing is shown. The adjusted p-value decides the
    claim. `better` and `worse` need the interval that agrees with it: all such intervals of a family contain their true
    values jointly, so every statement about where an interval lies holds without a further adjustment. For one
    comparison this is the closed test of "not worse" and then "better" (Morikawa and Yoshida 1995, A useful testing
    strategy in phase III trials). Without such an interval (several comparisons and a method other than Bonferroni's),
    in a family that another one waits for, and where the p-value of the family before is too large, only the claim can
    be shown.

    >>> from analysis.stats.basic import one_sample_t_test
    >>> from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
    >>> claim = MarginHypothesis("noninferiority", null=0.5, margin=0.1)
    >>> tested = margin_test(one_sample_t_test([0.6, 0.7, 0.65, 0.62, 0.58, 0.66], null=0.5), claim)
    >>> margin_verdict(adjust_pvalues_and_intervals_of_family({"x > y": tested}, Family("primary", ("x > y", "x > z")))["x > y"], claim)
    'noninferior'
    >>> margin_verdict(adjust_pvalues_and_intervals_of_family({"x > y": tested}, Family("primary", ("x > y",)))["x > y"], claim)
    'better'
    """
    validate_level(significance)
    test = estimate.test
    between = None if barred_by(estimate, significance) else agreeing_interval(estimate)
    if test is None or estimate.is_blocked:
        return "inconclusive"
    pvalue = test.pvalue if test.pvalue_adjusted is None else test.pvalue_adjusted
    is_shown = pvalue < significance
    if claim.hypothesis == SUPERIORITY_BY_MARGIN and is_shown:
        return "superior_by_margin"
    if between is not None and claim.is_wholly_better(between, claim.null):
        return "better"
    is_worse = between is not None and claim.is_wholly_worse(between, claim.null)
    if is_shown:
        return "noninferior_but_worse" if is_worse else "noninferior"
    return "worse" if is_worse else "inconclusive"
