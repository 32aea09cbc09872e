"""Planned comparisons before the launch: the order of their families, their margins, and what the report will claim about them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from studies.design.subjects import numbered_name, read_words_of_sections
from studies.models import Contrast, Section, Study
from studies.protocols import REGISTRY, EstimandDirection, Problem, Protocol

# The order of the families of comparisons.


def families_before(name: str, after: Mapping[str, str]) -> list[str]:
    """Return the families that must be shown before this one, the nearest first. ``after``: the one before, or '', by name.

    >>> families_before("c", {"c": "b", "b": "a"}), families_before("a", {"a": "b", "b": "a"})
    (['b', 'a'], ['b', 'a'])
    """
    before: list[str] = []
    while (name := after.get(name, "")) and name not in before:
        before.append(name)
    return before


def order_fault(after: Mapping[str, str]) -> str:
    """Return why families cannot be tested in this order, or ''.

    >>> order_fault({"secondary": "primary"}), order_fault({"a": "b", "b": "a"})
    ('', 'must not wait for each other: a after b after a. Empty one of the fields “after”.')
    """
    for name in after:
        before = families_before(name, after)
        if name in before:
            cycle = [name, *before[: before.index(name) + 1]]
            return f"must not wait for each other: {' after '.join(cycle)}. Empty one of the fields “after”."
    return ""


# Check the margin and the hypothesis of a planned comparison against what its sections estimate.


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
                f"The margin must be below {length / 2:g}, half of the scale in section {numbered_name(section)}. "
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
                f"Section {numbered_name(section)} does not say in which direction x is better. Choose another section, criterion or "
                "estimated quantity, or the hypothesis “x and y differ”.",
                "contrasts",
            )
        if expected and expected != direction.better_sign:
            return "expected", Problem(
                f"In section {numbered_name(section)} this expected result means that x is worse, which contradicts the hypothesis. "
                "Exchange x and y, or expect nothing.",
                "contrasts",
            )
        if protocol.has_stopping_rule(section):
            return "hypothesis", Problem(
                f"The stopping rule of section {numbered_name(section)} tests another hypothesis. Remove the stopping rule, or "
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


# Say before the launch what the report will claim about comparisons with a margin, and on which condition.


def planned_claim_sentences(study: Study) -> list[str]:
    """Return a sentence for each comparison that claims "not worse" or "better by more than the margin", in each live section."""
    contrasts = list(study.contrasts.select_related("x", "y"))
    in_family = Counter(contrast.family or contrast.role for contrast in contrasts)
    live = list(study.sections.filter(purpose=Section.Purpose.LIVE).prefetch_related("questions", "arms"))
    read_words_of_sections(live)
    sections = [(section, list(section.questions.all())) for section in live]
    sentences = []
    for contrast in contrasts:
        if contrast.hypothesis == Contrast.Hypothesis.DIFFERENCE:
            continue
        own_sections = [pair for pair in sections if contrast.section_id in (None, pair[0].pk)]
        for section, protocol, questions in concerned_sections(contrast.estimand, contrast.criterion, own_sections):
            direction = protocol.direction(contrast.estimand, questions)
            if direction is not None:
                is_alone = in_family[contrast.family or contrast.role] == 1
                sentences.append(_sentence(contrast, direction, numbered_name(section), is_alone))
    return sentences


def _sentence(contrast: Contrast, direction: EstimandDirection, section: str, is_alone: bool) -> str:
    margin = contrast.margin or 0.0
    is_not_worse = contrast.hypothesis == Contrast.Hypothesis.NONINFERIORITY
    claim = f"{contrast.x} is {'not worse' if is_not_worse else 'better'} than {contrast.y} by more than {_size(margin, direction)}"
    about = f" on {contrast.criterion}" if contrast.criterion else ""
    is_limit_below = is_not_worse != direction.is_lower_better
    limit = _value(direction.null + (-margin if is_limit_below else margin), direction)
    side = "below" if direction.is_lower_better else "above"
    interval = f"{100 * (1 - contrast.level):g} % {'' if is_alone else 'simultaneous '}interval"
    return f"Section {section}: the report will claim “{claim}{about}” if the whole {interval} is {side} {limit}."


def _is_probability(direction: EstimandDirection) -> bool:
    return direction.null == 0.5


def _value(value: float, direction: EstimandDirection) -> str:
    return f"{100 * value:.6g} %" if _is_probability(direction) else f"{value:.6g}".replace("-", "−")


def _size(margin: float, direction: EstimandDirection) -> str:
    return f"{100 * margin:.6g} percentage points" if _is_probability(direction) else f"{margin:.6g}"
