"""Tests before the work: two attempts at a section with a pass mark, and their scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from studies.design.seeds import seeded_random
from studies.protocols import REGISTRY, PageField
from studies.protocols.base.test_questions import KnownAnswer

if TYPE_CHECKING:
    from .sequence import OrderedSection

FIRST, SECOND = 1, 2
Positioned = TypeVar("Positioned", bound=Any)


@dataclass(frozen=True, slots=True)
class AttemptScore:
    """The score of a complete attempt."""

    section_id: int
    number: int
    n_right: int
    n_asked: int
    is_passed: bool


def split_into_attempts(section: "OrderedSection", seed: int) -> list["OrderedSection"]:
    """Return the two attempts at a test. The second has other items if there are enough, else the same in another order.

    A test without items asks m of its questions; all of them if m is 0.
    """
    attempts = []
    for number in (FIRST, SECOND):
        rng = seeded_random(seed, "attempt", section.planned.position, number)
        position = section.section.position + number - 1
        items, questions = section.items, section.section.questions
        if items:
            items = tuple(_share(items, section.planned.m, number, rng))
        else:
            questions = tuple(_share(questions, section.planned.m, number, rng))
        own = replace(section.section, position=position, questions=questions)
        attempts.append(replace(section, section=own, items=items, attempt=number))
    return attempts


def _share(rows: Sequence[Positioned], wanted: int, number: int, rng) -> list[Positioned]:
    """Return the rows of one attempt with their new positions."""
    n = min(wanted or len(rows), len(rows))
    first = (number - 1) * n
    chosen = list(rows[first : first + n] if len(rows) >= 2 * n else rng.sample(rows[:n], n))
    return [replace(row, position=position) for position, row in enumerate(chosen, 1)]


def score_attempt(section: "OrderedSection", answers: Mapping[str, Any]) -> AttemptScore | None:
    """Return the score of an attempt, or None if a question with a right answer is not answered yet."""
    planned = section.planned
    protocol = REGISTRY[planned.protocol]
    n_right = n_asked = 0
    for page in protocol.pages(section.section, section.items, answers):
        for slot, ask in protocol.page_fields(page).items():
            right = planned.right_answers.get((ask.item_id, ask.question_id))
            if right is None or (right.about is not None and right.about != ask.exposure_id):
                continue
            if slot not in answers:
                return None
            n_asked += 1
            n_right += _is_right(right, ask, answers[slot])
    is_passed = planned.pass_mark is not None and n_right >= planned.pass_mark
    return AttemptScore(planned.pk, section.attempt, n_right, n_asked, is_passed)


def _is_right(right: KnownAnswer, ask: PageField, value: Any) -> bool:
    """Return whether an answer, as protocols see it, is the right one. A skipped question is not answered right."""
    given: dict[str, Any] = {"value": None}
    if isinstance(value, str):
        given["choice"] = value
    elif ask.answer_column == "chosen":
        given["chosen"] = value
    elif value is not None:
        given["value"] = float(value)
    return right.is_right(exposure=ask.exposure_id, **given) is True
