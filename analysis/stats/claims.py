"""What may be claimed about one comparison, in one frozen record.

Verdicts, sentences, tables, lines in APA style and the JSON of a report print this record. None of them reads the interval or
the p-value again, so words and numbers cannot disagree.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from analysis.stats.plain_records import NONINFERIORITY, SUPERIORITY_BY_MARGIN
from analysis.stats.results import Estimate, Interval, Record

DIFFERENCE = "difference"
# Verdicts that say on which side of the null the true value is, as seen from the estimate.
SIDED_VERDICTS = ("different", "different_but_trivial")
# Methods whose adjusted p-values have no intervals that agree with them.
METHODS_WITHOUT_INTERVALS = ("holm", "hommel")
SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Record):
    """What is claimed about the true value of a comparison, from which numbers, and what is left unclaimed.

    Attributes
    ----------
    hypothesis : str
        `difference`, `noninferiority` or `superiority_by_margin`.
    verdict : str or None
        The verdict after adjustment. None without one.
    null : float or None
        Value without a difference. None without a test.
    margin, limit : float or None
        The declared margin, and for a claim by a margin the value that it must exclude.
    is_lower_better : bool
        Whether a lower value is better for x.
    above, below : float or None
        The claim: the true value is above the one and below the other. None claims nothing on this side.
    interval : Interval or None
        The interval that agrees with `pvalue`. None if its method has no such interval.
    pvalue : float or None
        The p-value, adjusted in its family. None if the comparison was not tested.
    level : float
        Significance level of the test.
    population : str
        What the claim is about besides people like these: `people and prompts`, `people` (exactly these prompts), or ''.
    shown_above, shown_below : float or None
        The nearest of null and limit that the whole interval is above or below.
    withheld : str
        Why the claim says less than the interval shows, or '' if it does not: `gate` (the level goes to the next family),
        `family before` (the adjusted p-value includes that of the family before), `not tested`, `no claim` (a warning forbids
        it), `stopping rule` (it has not decided) or `level` (test and interval have different levels).
    is_test_alone : bool
        Whether the claim says more than its interval shows, because test and interval have different levels.
    """

    hypothesis: str
    verdict: str | None
    null: float | None
    margin: float | None
    limit: float | None
    is_lower_better: bool
    above: float | None
    below: float | None
    interval: Interval | None
    pvalue: float | None
    level: float
    population: str
    shown_above: float | None
    shown_below: float | None
    withheld: str
    is_test_alone: bool

    @property
    def side(self) -> str:
        """Return `>` or `<` if the claim says on which side of the null the true value is, `~` for equivalence, or ''."""
        if self.verdict == "equivalent":
            return "~"
        if self.null is None:
            return ""
        if self.above is not None and self.above >= self.null:
            return ">"
        return "<" if self.below is not None and self.below <= self.null else ""

    @property
    def references(self) -> tuple[float, ...]:
        """Return the values from which a printed end of the interval must differ if it is another value."""
        values = [self.null, self.limit, *(_around(self.null, self.margin) if self.hypothesis == DIFFERENCE else ())]
        return tuple(value for value in values if value is not None)

    @property
    def is_limit_missed(self) -> bool:
        """Return whether the claim is that the true value is on the other side of the limit."""
        if self.limit is None:
            return False
        end = self.above if self.is_lower_better else self.below
        return end is not None and (end >= self.limit if self.is_lower_better else end <= self.limit)

    @property
    def unclaimed(self) -> str:
        """Return what the interval shows and the claim does not say: `better`, `worse`, `not worse`, `not better` or ''.

        `not worse` and `not better` mean by more than the margin.
        """
        if not self.withheld or self.null is None:
            return ""
        better, worse = self.shown_above, self.shown_below
        if self.is_lower_better:
            better, worse = worse, better
        sign = -1 if self.is_lower_better else 1
        if better is not None and sign * better >= sign * self.null:
            return "better"
        if worse is not None and sign * worse <= sign * self.null:
            return "worse"
        return "not better" if better is None else "not worse"


def claim_of_estimate(estimate: Estimate) -> Claim:
    """Return what may be claimed from an estimate that was adjusted in its family and has its verdict.

    The estimate comes from `margins.adjust_and_add_verdicts` or from a stopping rule. `settings["contrast"]` is its
    comparison, `settings["claim"]` its claim by a margin (see `margins.margin_test`), if any, and `detail["is_gate"]`
    says that another family waits for its own. The verdict decides what is claimed. The interval decides how far a
    claim by a margin goes: if it is wholly beyond the limit, "worse" means worse by more than the margin. In a family
    that another one waits for, the interval decides nothing, because the level that such a statement would use goes to
    the next family.

    >>> from analysis.stats.basic import one_sample_t_test
    >>> from analysis.stats.margins import adjust_and_add_verdicts
    >>> from analysis.stats.multiplicity import Family
    >>> tested = one_sample_t_test([0.6, 0.7, 0.65, 0.62, 0.58, 0.66], null=0.5)
    >>> claim = claim_of_estimate(adjust_and_add_verdicts({"x > y": tested}, Family("primary", ("x > y",)))["x > y"])
    >>> claim.verdict, claim.above, claim.below, claim.side
    ('different', 0.5, None, '>')
    """
    test, detail, settings = estimate.test, estimate.detail, estimate.settings
    contrast, tested = settings.get("contrast") or {}, settings.get("claim") or {}
    verdict = detail.get("verdict")
    null = tested.get("null", settings.get("null") if test is None else test.null)
    margin, limit = tested.get("margin", contrast.get("margin")), tested.get("limit")
    hypothesis = tested.get("hypothesis", DIFFERENCE)
    is_lower_better = bool(tested.get("is_lower_better"))
    level = float(contrast.get("level", SIGNIFICANCE))
    is_not_tested = verdict == "not_tested"
    interval, barred = agreeing_interval(estimate), barred_by(estimate, level)
    above, below = _claimed(
        estimate, verdict, null, margin, limit, hypothesis, is_lower_better, None if barred else interval
    )
    cuts = [] if test is None else [value for value in (null, limit) if value is not None]
    shown_above, shown_below = _passed(interval, cuts)
    is_more_shown = _is_more(shown_above, above) or _is_more(_negative(shown_below), _negative(below))
    return Claim(
        hypothesis=hypothesis,
        verdict=verdict,
        null=null,
        margin=margin or None,
        limit=limit,
        is_lower_better=is_lower_better,
        above=above,
        below=below,
        interval=interval,
        pvalue=None if test is None or is_not_tested else _pvalue(estimate),
        level=level,
        population=settings.get("population") or "",
        shown_above=shown_above,
        shown_below=shown_below,
        withheld=(barred or ("stopping rule" if is_sequential(estimate) else "level")) if is_more_shown else "",
        is_test_alone=interval is not None
        and verdict != "equivalent"
        and (
            _is_more(above if above in cuts else None, shown_above)
            or _is_more(_negative(below if below in cuts else None), _negative(shown_below))
        ),
    )


def agreeing_interval(estimate: Estimate) -> Interval | None:
    """Return the interval that agrees with the adjusted p-value, or None if the method of adjustment has none.

    The result is the simultaneous interval of the family, or that of a single test. The estimate may be adjusted or
    not. If it was not tested, its interval only describes, and is that of it alone.

    >>> from analysis.stats.basic import one_sample_t_test
    >>> round(agreeing_interval(one_sample_t_test([0.6, 0.7, 0.65, 0.62], null=0.5)).low, 3)
    0.573
    """
    test = estimate.test
    if estimate.interval_adjusted is not None:
        return estimate.interval_adjusted
    if test is None or (test.family_size or 1) == 1 or estimate.detail.get("verdict") == "not_tested":
        return estimate.interval
    # A stopping rule has its own level for each comparison. Other methods of adjustment have no interval of their own.
    has_none = test.adjust in METHODS_WITHOUT_INTERVALS or (test.adjust == "bonferroni" and not is_sequential(estimate))
    return None if has_none else estimate.interval


def barred_by(estimate: Estimate, level: float) -> str:
    """Return why the interval of an adjusted estimate decides nothing beyond its test, or ''.

    `level` is the significance level of the test. The result is `not tested`, `no claim`, `gate`, `family before` or
    '': see `Claim.withheld`.

    >>> from analysis.stats.basic import one_sample_t_test
    >>> barred_by(one_sample_t_test([0.6, 0.7, 0.65], null=0.5), 0.05)
    ''
    """
    detail, gate = estimate.detail, estimate.detail.get("gate")
    if detail.get("verdict") == "not_tested":
        return "not tested"
    if estimate.supports_no_claim:
        return "no claim"
    if detail.get("is_gate"):
        return "gate"
    return "family before" if gate and gate["pvalue"] >= level else ""


def is_sequential(estimate: Estimate) -> bool:
    """Return whether a stopping rule decided the number of labels.

    Examples
    --------
    >>> from analysis.stats.basic import one_sample_t_test
    >>> is_sequential(one_sample_t_test([0.6, 0.7, 0.65], null=0.5))
    False
    """
    return estimate.analysis.endswith(".sequential")


def _pvalue(estimate: Estimate) -> float | None:
    test = estimate.test
    if test is None:
        return None
    return test.pvalue if test.pvalue_adjusted is None else test.pvalue_adjusted


def _claimed(
    estimate: Estimate,
    verdict: str | None,
    null: float | None,
    margin: float | None,
    limit: float | None,
    hypothesis: str,
    is_lower_better: bool,
    interval: Interval | None,
) -> tuple[float | None, float | None]:
    """Return above and below which values the true value is claimed to be."""
    if null is None or estimate.estimate is None:
        return None, None
    if verdict == "equivalent":
        return _around(null, margin)
    if verdict in SIDED_VERDICTS:
        low, high = _around(null, margin) if verdict == "different_but_trivial" else (None, None)
        return (null, high) if estimate.estimate > null else (low, null)
    if limit is None:
        return None, None
    ends = (interval.low, interval.high) if interval is not None else None
    is_missed = ends is not None and (ends[0] > limit if is_lower_better else ends[1] < limit)
    # From worse to better, as if higher were better.
    worse, better = {
        "noninferior": (limit, None),
        "noninferior_but_worse": (limit, null),
        "superior_by_margin": (limit, None),
        "better": (null, limit if hypothesis == SUPERIORITY_BY_MARGIN and is_missed else None),
        "worse": (None, limit if hypothesis == NONINFERIORITY and is_missed else null),
        "inconclusive": (None, limit if hypothesis == SUPERIORITY_BY_MARGIN and is_missed else None),
    }.get(verdict or "", (None, None))
    return (better, worse) if is_lower_better else (worse, better)


def _around(null: float | None, margin: float | None) -> tuple[float | None, float | None]:
    return (None, None) if null is None or not margin else (round(null - margin, 12), round(null + margin, 12))


def _passed(interval: Interval | None, cuts: Iterable[float]) -> tuple[float | None, float | None]:
    """Return the largest cut that the whole interval is above, and the smallest one that it is below."""
    if interval is None:
        return None, None
    cuts = list(cuts)
    passed_low = [cut for cut in cuts if interval.low > cut]
    passed_high = [cut for cut in cuts if interval.high < cut]
    return max(passed_low, default=None), min(passed_high, default=None)


def _is_more(shown: float | None, claimed: float | None) -> bool:
    return shown is not None and (claimed is None or claimed < shown)


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
