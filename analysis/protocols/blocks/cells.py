"""Read the parts of an estimate for tables, figures and sentences, and compare it with the expectation."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .comparisons import NOT_PLANNED
from .subjects import OVERALL, join_words

if TYPE_CHECKING:
    from analysis.stats.claims import Claim
    from analysis.stats.results import Estimate, Interval

# In the place of a p-value or a verdict of an estimate that a warning of severity "block" concerns.
NO_CLAIM = "no claim"
MARGIN_VERDICT_LABELS = {
    "noninferior": "not worse by more than the margin",
    "noninferior_but_worse": "worse, by less than the margin",
    "superior_by_margin": "better by more than the margin",
}
EXPECTATION_LABELS = {">": "x > y", "<": "x < y", "~": "x ~ y", "": ""}


def interval_bounds(estimate: "Estimate | None") -> list[float] | None:
    """Return the interval that agrees with ``reported_pvalue``, or None if it is missing or not finite."""
    return None if estimate is None else finite_bounds(estimate.interval_adjusted or estimate.interval)


def finite_bounds(interval: "Interval | None") -> list[float] | None:
    """Return the ends of an interval, or None if it is missing or not finite."""
    bounds = [interval.low, interval.high] if interval else []
    return bounds if bounds and all(map(math.isfinite, bounds)) else None


def claim_of(estimate: "Estimate") -> "Claim":
    """Return what may be claimed from an estimate. Sentences, tables and lines in APA style print this record only."""
    from analysis.stats.claims import claim_of_estimate

    return claim_of_estimate(estimate)


def reported_pvalue(estimate: "Estimate | None") -> float | None:
    """Return the p-value of an estimate, adjusted if it has a family. What its family's order left untested has none."""
    if estimate is None or estimate.test is None or is_not_tested(estimate):
        return None
    return estimate.test.pvalue if estimate.test.pvalue_adjusted is None else estimate.test.pvalue_adjusted


def pvalue_cell(estimate: "Estimate | None") -> float | str | None:
    """Return the cell of a table for the reported p-value: "no claim" in its place if a warning forbids a claim."""
    pvalue = reported_pvalue(estimate)
    return NO_CLAIM if pvalue is not None and estimate is not None and estimate.supports_no_claim else pvalue


def significance_stars(estimate: "Estimate | None") -> str:
    return (estimate and estimate.test and estimate.test.stars) or ""


def is_not_tested(estimate: "Estimate") -> bool:
    """Return whether the comparison was not tested, because the family before its own was not shown."""
    return estimate.detail.get("verdict") == "not_tested"


def is_sequential(estimate: "Estimate") -> bool:
    """Return whether a stopping rule decided the number of labels."""
    from analysis.stats import claims

    return claims.is_sequential(estimate)


def verdict_text(estimate: "Estimate", if_open: str = "inconclusive") -> str:
    """Return the verdict of a tested estimate in words."""
    if not estimate.test:
        return ""
    if estimate.supports_no_claim and not is_not_tested(estimate):
        return NO_CLAIM
    claim = claim_of(estimate)
    verdict = str(claim.verdict or if_open)
    return f"{MARGIN_VERDICT_LABELS.get(verdict, verdict.replace('_', ' '))}{unclaimed_phrase(claim)}"


def unclaimed_phrase(claim: "Claim") -> str:
    """Return ", no claim “worse”" if another family gets the level that the claim would use, or ''."""
    by_margin = " by the margin" if "not" in claim.unclaimed else ""
    return f", no claim “{claim.unclaimed}{by_margin}”" if claim.withheld == "gate" else ""


def comparisons_note(estimates: Iterable["Estimate"]) -> str:
    """Return what readers of a table of comparisons must know: which people and prompts they are about, and other limits.

    >>> comparisons_note([])
    ''
    """
    estimates = list(estimates)
    return population_note(estimates) + claims_note(estimates)


def claims_note(estimates: Iterable["Estimate"]) -> str:
    """Return the sentence below a table about the comparisons that were tested for a claim by a margin, or ''."""
    limits = [
        f"{comparison_label(one)}: {claim.limit:g}"
        + (f", by the {100 * claim.interval.level:g} % interval" if claim.interval else "")
        for one in estimates
        if (claim := claim_of(one)).limit is not None and one.test
    ]
    return f" p tests the limit that the margin sets in {'; '.join(dict.fromkeys(limits))}." if limits else ""


def population_note(estimates: Iterable["Estimate"]) -> str:
    """Return the sentence below a table about which people and prompts its comparisons are about, or '' if none says it.

    >>> population_note([])
    ''
    """
    populations = {estimate.settings.get("population") for estimate in estimates if estimate.estimate is not None}
    named = populations & {"people", "people and prompts"}
    if not named:
        return ""
    if named == {"people"}:
        return " Comparisons are about people like these, and exactly these prompts."
    exception = (
        "; those of fewer than five prompts, of a stopping rule, or declared so, are about exactly these"
        if len(named) > 1
        else ""
    )
    return f" Comparisons are about people and prompts like these{exception}."


def contrast_of(estimate: "Estimate") -> Mapping[str, Any]:
    """Return the comparison of an estimate, or an empty mapping."""
    return estimate.settings.get("contrast") or {}


def compared_names(estimate: "Estimate") -> tuple[str, str]:
    """Return the names of x and y for readers."""
    contrast, subject = contrast_of(estimate), estimate.settings.get("subject") or {}
    return subject.get("x") or contrast["x"], subject.get("y") or contrast["y"]


def subject_note(estimate: "Estimate") -> str:
    """Return what a comparison is about besides x and y, for a cell: "fluency, after 8 examples", or ''."""
    subject = estimate.settings.get("subject") or {}
    return join_words(subject.get("topic", ""), subject.get("circumstance", ""))


def comparison_label(estimate: "Estimate") -> str:
    """Return x > y, with the details that distinguish this comparison from others."""
    return join_words(" > ".join(compared_names(estimate)), subject_note(estimate))


def comparison_x_y_and_criterion_phrase(estimate: "Estimate") -> tuple[str, str, str]:
    """Return x, y and " on <criterion> after 8 examples" (or '') for sentences."""
    subject = estimate.settings.get("subject") or {}
    topic, circumstance = subject.get("topic"), subject.get("circumstance")
    about = f" {topic}" if topic == OVERALL else f" on {topic}" if topic else ""
    about += f" {circumstance}" if circumstance else ""
    return *compared_names(estimate), about


def role_label(contrast: Mapping[str, Any]) -> str:
    """Return the role of a comparison for tables, or that it was not planned."""
    return str(contrast["role"]) if contrast["is_planned"] else NOT_PLANNED


def verdict_direction_symbol(estimate: "Estimate | None") -> str:
    """Return the result: >, <, ~ (equivalent), ? (open), or '' without data or if not tested."""
    if estimate is None or estimate.estimate is None or is_not_tested(estimate):
        return ""
    return claim_of(estimate).side or "?"


def direction_symbol_as_published(estimate: "Estimate | None", null: float) -> str:
    """Return the result as published tables count it: > or < if significant at the level of the comparison, else ~.

    The result is ? if not tested, and '' without data.
    """
    if estimate is None or estimate.estimate is None:
        return ""
    pvalue = reported_pvalue(estimate)
    if pvalue is None:
        return "?"
    return (">" if estimate.estimate > null else "<") if pvalue < claim_of(estimate).level else "~"


def expectation_outcome(expected: str, observed: str) -> str:
    """Return whether the result matches the expectation."""
    if not expected or not observed:
        return ""
    if observed == expected:
        return "recovered"
    if observed == "?" or (observed == "~" and expected != "~"):
        return "not shown"
    return "contradicted"
