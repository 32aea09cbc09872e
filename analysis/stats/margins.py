"""Non-inferiority and superiority by a margin: x is not worse, or is better, by more than a margin.

Both claims compare the estimate with a limit instead of "no difference". The estimate's own confidence curve gives the
p-value of the limit, so the claim and the interval never disagree.
"""

import math
from dataclasses import dataclass, replace

from analysis.stats.arrays import validate_level
from analysis.stats.claims import agreeing_interval, barred_by
from analysis.stats.margin_names import HYPOTHESES, SUPERIORITY_BY_MARGIN
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record


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
