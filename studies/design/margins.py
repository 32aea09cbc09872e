"""Check the margin and the hypothesis of a planned comparison against what its sections estimate."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from studies.models import Contrast
from studies.protocols import REGISTRY, Problem, Protocol

Sections = Iterable[tuple[Any, Sequence[Any]]]


def too_wide_margin_problem(margin: float | None, estimand: str, criterion: str, sections: Sections) -> Problem | None:
    """Return why a margin is too wide for one of these live sections, or None.

    ``sections``: each section that the comparison concerns, with its questions; they may be unsaved. Half of the scale is the limit:
    it is the farthest that a probability can be from 1/2, and no useful margin of a difference is so wide.
    """
    if margin is None:
        return None
    for section, protocol, concerned in concerned_sections(estimand, criterion, sections):
        length = protocol.estimand_scale_length(estimand, concerned)
        if length is not None and margin >= length / 2:
            return Problem(
                f"The margin must be below {length / 2:g}, half of the scale in section {section.position}. "
                "A wider one makes nearly every result equivalent. Enter a smaller margin.",
                "contrasts",
            )
    return None


def hypothesis_problem(
    hypothesis: str,
    *,
    margin: float | None,
    has_systems: bool,
    expected: str,
    estimand: str,
    criterion: str,
    sections: Sections,
) -> tuple[str, Problem] | None:
    """Return the column that contradicts a claim by a margin, and why, or None. ``sections``: as above."""
    if hypothesis == Contrast.Hypothesis.DIFFERENCE:
        return None
    if not has_systems:
        return "hypothesis", Problem(
            "This hypothesis is about two systems, and none are chosen. Choose x and y, or the hypothesis “x and y differ”.",
            "contrasts",
        )
    if margin is None:
        return "margin", Problem(
            "This hypothesis needs a margin. Enter one, or choose the hypothesis “x and y differ”.", "contrasts"
        )
    if expected == Contrast.Expected.SAME:
        return "expected", Problem(
            "This hypothesis cannot show that x and y are equivalent. Choose another expected result, or the hypothesis "
            "“x and y differ”.",
            "contrasts",
        )
    for section, protocol, concerned in concerned_sections(estimand, criterion, sections):
        direction = protocol.direction(estimand, concerned)
        if direction is None:
            return "hypothesis", Problem(
                f"Section {section.position} does not say in which direction x is better. Choose another section, criterion or "
                "estimated quantity, or the hypothesis “x and y differ”.",
                "contrasts",
            )
        if expected and expected != direction.better_sign:
            return "expected", Problem(
                f"In section {section.position} this expected result means that x is worse, which contradicts the hypothesis. "
                "Exchange x and y, or expect nothing.",
                "contrasts",
            )
        if protocol.has_stopping_rule(section):
            return "hypothesis", Problem(
                f"The stopping rule of section {section.position} tests another hypothesis. Remove the stopping rule, or "
                "choose the hypothesis “x and y differ”.",
                "contrasts",
            )
    return None


def concerned_sections(
    estimand: str, criterion: str, sections: Sections
) -> Iterator[tuple[Any, Protocol, Sequence[Any]]]:
    """Yield each section that estimates this, with its protocol and the questions that the comparison concerns."""
    for section, questions in sections:
        protocol = REGISTRY.get(section.protocol)
        if (
            protocol is None
            or not protocol.estimands(section)
            or (estimand and estimand not in protocol.estimands(section))
        ):
            continue
        yield (
            section,
            protocol,
            [question for question in questions if criterion in ("", question.criterion)] or questions,
        )
