"""Write the sentences about claims by a margin: x is not worse, or is better, by more than the margin.

The interval that decides the claim also decides whether x is better or worse at all, so each sentence says what the
interval shows and against which values. All of it is in the claim (``analysis.stats.claims``).
"""

from typing import TYPE_CHECKING

from analysis.stats.margin_names import NONINFERIORITY

from . import Conclusion, apa
from .cells import comparison_x_y_and_criterion_phrase, finite_bounds

if TYPE_CHECKING:
    from analysis.stats.claims import Claim


def margin_claim_and_reason(conclusion: Conclusion, claim: "Claim") -> tuple[str, str]:
    """Return the claim in words, without a full stop, and the sentence about the values that decided it."""
    wording = conclusion.wording
    x, y, about = comparison_x_y_and_criterion_phrase(conclusion.estimate)
    margin = format_margin_size(claim.margin or 0.0, wording.kind)
    is_not_worse_asked = claim.hypothesis == NONINFERIORITY
    better, worse = (sentence[:-1] for sentence in (wording.above_claim, wording.below_claim))
    if claim.is_lower_better:
        better, worse = worse, better
    by_margin = f"{'worse' if is_not_worse_asked else 'better'} than {y} by more than {margin}"
    asked = f"{x} is {'not ' if is_not_worse_asked else ''}{by_margin}{about}"
    if claim.verdict == "inconclusive" and claim.withheld:
        return f"It is not shown that {asked}", ""
    claims = {
        "noninferior": asked,
        "noninferior_but_worse": f"{worse}, but by less than the margin of {margin}",
        "superior_by_margin": asked,
        "better": better,
        "worse": f"{x} is {by_margin}{about}" if is_not_worse_asked and claim.is_limit_missed else worse,
        "inconclusive": f"{x} is not {by_margin}{about}, and it remains open which of the two is better"
        if claim.is_limit_missed
        else f"It remains open whether {x} is {by_margin}{about}",
    }
    if is_not_worse_asked:
        claims["better"] += f", so {x} is not worse by more than {margin}"
    else:
        claims["better"] += (
            ", but by less than " if claim.is_limit_missed else ", but it remains open whether by more than "
        )
        claims["better"] += margin
    return claims[str(claim.verdict)], f" {_reason(claim, wording.kind)}"


def unclaimed_sentence(conclusion: Conclusion, claim: "Claim") -> str:
    """Return a sentence about what the interval shows without a claim, and why, or ''.

    What was not tested, and what a warning forbids to claim, has its own sentence.
    """
    kind, bounds = conclusion.wording.kind, finite_bounds(claim.interval)
    if claim.is_test_alone and claim.interval is not None:
        return f" The test has the level {_level(claim)} and decides; the interval has the level {_level_of_interval(claim)}."
    if claim.withheld in ("", "not tested", "no claim") or bounds is None:
        return ""
    gate = conclusion.estimate.detail.get("gate") or {}
    why = {
        "gate": "the level goes to the next family",
        "family before": f"the adjusted p-value includes that of the family “{gate.get('family')}”",
        "stopping rule": "the stopping rule has not decided",
        "level": f"the test has the level {_level(claim)}, and the interval {_level_of_interval(claim)}",
    }[claim.withheld]
    _, low, high = apa.format_estimate_with_bounds(None, bounds, kind, claim.references)
    is_below = (claim.unclaimed in ("better", "not worse")) == claim.is_lower_better
    cut = claim.shown_below if is_below else claim.shown_above
    place = f"{'below' if is_below else 'above'} {_format_value(cut or 0.0, kind)}"
    by_margin = f" by more than {format_margin_size(claim.margin or 0.0, kind)}" if "not" in claim.unclaimed else ""
    named = f"no claim “{claim.unclaimed}{by_margin}”" if claim.limit is not None else "no claim of a difference"
    return f" The whole interval ({low} to {high}) is {place}; {named} is made, because {why}."


def _level(claim: "Claim") -> str:
    return apa.format_percent(claim.level, apa.exact_digits(round(100 * claim.level, 9), 0))


def _level_of_interval(claim: "Claim") -> str:
    level = 0.0 if claim.interval is None else claim.interval.level
    return apa.format_percent(1 - level, min(4, apa.exact_digits(round(100 * (1 - level), 4), 0)))


def format_limit(claim: "Claim", kind: str) -> str:
    """Format the limit of a claim by a margin: "45 %", "−0.50"."""
    return _format_value(claim.limit or 0.0, kind)


def _reason(claim: "Claim", kind: str) -> str:
    """Return the sentence about the interval, or the p-value, and the limit and the null."""
    limit, null = format_limit(claim, kind), _format_value(claim.null or 0.0, kind)
    better, worse = ("below", "above") if claim.is_lower_better else ("above", "below")
    verdict = str(claim.verdict)
    if finite_bounds(claim.interval) is None:
        shown = "shows" if verdict != "inconclusive" else "does not show"
        return f"The adjusted p-value {shown} that the true value is {better} {limit}, the limit that the margin sets."
    named_limit = f"{limit}, the limit that the margin sets"
    if claim.is_limit_missed:
        other = {"better": f", but {better} {null}", "worse": f", and {worse} {null}"}.get(verdict, "")
        return f"The whole interval is {worse} {named_limit}{other}."
    if verdict == "better" and claim.hypothesis == NONINFERIORITY:
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
    if kind == "percent":
        return apa.format_percent(value, apa.exact_digits(round(100 * value, 9), 0))
    return apa.format_number(value, apa.exact_digits(value, 2))


def format_margin_size(margin: float, kind: str) -> str:
    """Format the size of a margin: "5 percentage points", "0.50".

    >>> format_margin_size(0.05, "percent"), format_margin_size(0.025, "percent"), format_margin_size(0.5, "number")
    ('5 percentage points', '2.5 percentage points', '0.50')
    """
    points = _format_value(margin, kind).replace(" %", " percentage points")
    return points.replace("points", "point") if points.startswith("1 ") else points
