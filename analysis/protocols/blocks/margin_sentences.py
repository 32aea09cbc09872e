"""Write the sentences about claims by a margin: x is not worse, or is better, by more than the margin.

The interval that decides the claim also decides whether x is better or worse at all, so each sentence says what the
interval shows and against which values.
"""

from collections.abc import Mapping
from typing import Any

from . import Conclusion, apa
from .cells import claim_of, comparison_x_y_and_criterion_phrase, interval_bounds

NOT_WORSE = "noninferiority"


def margin_claim_and_reason(conclusion: Conclusion) -> tuple[str, str]:
    """Return the claim that a verdict allows, without a full stop, and the sentence about the values that decided it."""
    estimate, wording = conclusion.estimate, conclusion.wording
    x, y, about = comparison_x_y_and_criterion_phrase(estimate)
    tested, verdict = claim_of(estimate), estimate.detail["verdict"]
    margin = format_margin_size(tested["margin"], wording.kind)
    is_not_worse_asked = tested["hypothesis"] == NOT_WORSE
    better, worse = (claim[:-1] for claim in (wording.above_claim, wording.below_claim))
    if tested["is_lower_better"]:
        better, worse = worse, better
    by_margin = f"{'worse' if is_not_worse_asked else 'better'} than {y} by more than {margin}"
    is_excluded = _is_limit_excluded(conclusion, tested)
    claims = {
        "noninferior": f"{x} is not {by_margin}{about}",
        "noninferior_but_worse": f"{worse}, but by less than the margin of {margin}",
        "superior_by_margin": f"{x} is {by_margin}{about}",
        "better": better,
        "worse": f"{x} is {by_margin}{about}" if is_not_worse_asked and is_excluded else worse,
        "inconclusive": f"{x} is not {by_margin}{about}, and it remains open which of the two is better"
        if is_excluded
        else f"It remains open whether {x} is {by_margin}{about}",
    }
    if is_not_worse_asked:
        claims["better"] += f", so {x} is not worse by more than {margin}"
    else:
        claims["better"] += ", but by less than " if is_excluded else ", but it remains open whether by more than "
        claims["better"] += margin
    return claims[verdict], f" {_reason(conclusion, tested, verdict, is_excluded)}"


def _is_limit_excluded(conclusion: Conclusion, tested: Mapping[str, Any]) -> bool:
    """Return whether the whole interval is on the other side of the limit, so that the claim is shown to be false."""
    between = conclusion.estimate.interval_adjusted
    if between is None:
        return False
    return between.low > tested["limit"] if tested["is_lower_better"] else between.high < tested["limit"]


def format_limit(tested: Mapping[str, Any], kind: str) -> str:
    """Format the limit of a claim by a margin: "45 %", "−0.50"."""
    return _format_value(tested["limit"], kind)


def _reason(conclusion: Conclusion, tested: Mapping[str, Any], verdict: str, is_excluded: bool) -> str:
    """Return the sentence about the interval, or the p-value, and the limit and the null."""
    estimate, kind = conclusion.estimate, conclusion.wording.kind
    limit, null = (_format_value(tested[name], kind) for name in ("limit", "null"))
    better, worse = ("below", "above") if tested["is_lower_better"] else ("above", "below")
    if estimate.interval_adjusted is None or interval_bounds(estimate) is None:
        shown = "shows" if verdict != "inconclusive" else "does not show"
        return f"The adjusted p-value {shown} that the true value is {better} {limit}, the limit that the margin sets."
    named_limit = f"{limit}, the limit that the margin sets"
    if is_excluded:
        other = {"better": f", but {better} {null}", "worse": f", and {worse} {null}"}.get(verdict, "")
        return f"The whole interval is {worse} {named_limit}{other}."
    if verdict == "better" and tested["hypothesis"] == NOT_WORSE:
        return (
            f"The whole interval is {better} {named_limit}, and {better} {null}. One interval decides "
            "both, so “better” needs no further adjustment."
        )
    return {
        "noninferior": f"The whole interval is {better} {named_limit}.",
        "noninferior_but_worse": f"The whole interval is {better} {named_limit}, but {worse} {null}.",
        "superior_by_margin": f"The whole interval is {better} {named_limit}.",
        "better": f"The whole interval is {better} {null}, but not {better} {named_limit}.",
        "worse": f"The whole interval is {worse} {null}, and not wholly {better} {named_limit}.",
        "inconclusive": f"The interval is not wholly {better} {named_limit}.",
    }[verdict]


def _format_value(value: float, kind: str) -> str:
    """Format a limit with as many decimals as it has, so that 45 % and 47.5 % differ."""
    scaled = round(100 * value, 9) if kind == "percent" else value
    digits = next((digits for digits in range(6) if round(scaled, digits) == scaled), 6)
    return apa.format_percent(value, digits) if kind == "percent" else apa.format_number(value, max(digits, 2))


def format_margin_size(margin: float, kind: str) -> str:
    """Format the size of a margin: "5 percentage points", "0.50".

    >>> format_margin_size(0.05, "percent"), format_margin_size(0.025, "percent"), format_margin_size(0.5, "number")
    ('5 percentage points', '2.5 percentage points', '0.50')
    """
    points = _format_value(margin, kind).replace(" %", " percentage points")
    return points.replace("points", "point") if points.startswith("1 ") else points
