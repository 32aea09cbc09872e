"""What tables, figures and sentences are filled with: the parts of an estimate, and what it says of an expectation."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .comparisons import NOT_PLANNED

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

EXPECTATION_LABELS = {">": "x > y", "<": "x < y", "~": "x ~ y", "": ""}


def interval_bounds(estimate: "Estimate | None") -> list[float] | None:
    """The interval of an estimate; None where there is none, or no estimate, or an end that is not finite."""
    if estimate is None or estimate.interval is None:
        return None
    found = [estimate.interval.low, estimate.interval.high]
    return found if all(map(math.isfinite, found)) else None


def reported_pvalue(estimate: "Estimate | None") -> float | None:
    """The p-value of an estimate, adjusted within its family where it has one."""
    if estimate is None or estimate.test is None:
        return None
    return estimate.test.pvalue if estimate.test.pvalue_adjusted is None else estimate.test.pvalue_adjusted


def significance_stars(estimate: "Estimate | None") -> str:
    return (estimate and estimate.test and estimate.test.stars) or ""


def verdict_text(estimate: "Estimate") -> str:
    """What a tested estimate allows one to say, in words."""
    return str(estimate.detail.get("verdict") or "inconclusive").replace("_", " ") if estimate.test else ""


def contrast_of(estimate: "Estimate") -> Mapping[str, Any]:
    """The comparison that an estimate is about; nothing where it is about none."""
    return estimate.settings.get("contrast") or {}


def comparison_label(estimate: "Estimate", with_section: bool = False) -> str:
    """x > y, with what else tells its comparison from others of the study."""
    contrast = contrast_of(estimate)
    text = f"{contrast['x']} > {contrast['y']}"
    if contrast.get("criterion"):
        text += f", {contrast['criterion']}"
    return text + (f" (section {contrast['section']})" if with_section else "")


def comparison_words(estimate: "Estimate") -> tuple[str, str, str]:
    """x and y of its comparison, and " on" the criterion, where there is one, for sentences."""
    contrast = contrast_of(estimate)
    return contrast["x"], contrast["y"], f" on {contrast['criterion']}" if contrast["criterion"] else ""


def span_several_sections(estimates: Iterable["Estimate"]) -> bool:
    """Whether they are of more sections than one, so that each must say of which."""
    return len({contrast_of(one)["section"] for one in estimates}) > 1


def role_label(contrast: Mapping[str, Any]) -> str:
    """The role of a comparison as tables name it, or that nobody planned it."""
    return str(contrast["role"]) if contrast["is_planned"] else NOT_PLANNED


def observed_direction(estimate: "Estimate | None", null: float, is_paper: bool = False) -> str:
    """What was found: >, <, ~ (equivalent; in the paper's way of counting, not significant) or ? (open), '' without data."""
    if estimate is None or estimate.estimate is None:
        return ""
    side = ">" if estimate.estimate > null else "<"
    if is_paper:
        if estimate.test is None:
            return "?"
        return side if estimate.test.stars else "~"
    if estimate.detail.get("verdict") in ("different", "different_but_trivial"):
        return side
    return "~" if estimate.detail.get("verdict") == "equivalent" else "?"


def expectation_outcome(expected: str, observed: str) -> str:
    """Whether what was expected was found."""
    if not expected or not observed:
        return ""
    if observed == expected:
        return "recovered"
    if observed == "?" or (observed == "~" and expected != "~"):
        return "not shown"
    return "contradicted"
