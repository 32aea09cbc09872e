"""The expected answers of practice items, as a researcher enters them."""

from collections.abc import Mapping
from typing import Any

from .scales import parse_scale
from .test_questions import parse_range, scale_middle

FIRST, SECOND, SAME = "first", "second", "same"
# A range of values, or the place of an output among those of the item.
ExpectedAnswer = tuple[float, float] | int
# The kinds of scales that a question with an expected answer has.
_KINDS: Mapping[str, tuple[str, ...]] = {
    "choice": ("output",),
    "points": ("likert", "continuous", "percent", "number"),
    "points_toward_first": ("likert",),
}


def practice_questions(protocol: Any, section: Any) -> list[Any]:
    """Return the questions of a section to which a researcher can enter an expected answer."""
    kinds = _KINDS.get(protocol.practice_answers, ())
    return [question for question in section.questions.all() if (question.scale or {}).get("kind") in kinds]


def parse_practice_answers(
    protocol: Any, section: Any, n_outputs: int, given: Mapping[str, str]
) -> dict[str, ExpectedAnswer]:
    """Return the expected answers by question key. Raise ValueError with the reason if there is none, or one is not possible."""
    if protocol.comparison_scope == "pair" and n_outputs != 2:
        raise ValueError("A page shows two texts. Choose a second text.")
    questions = practice_questions(protocol, section)
    expected = {
        question.key: _parse(protocol.practice_answers, question, n_outputs, text)
        for question in questions
        if (text := given.get(question.key, "").strip())
    }
    if not expected:
        raise ValueError("No expected answer is entered. Enter the right answer to at least one question.")
    return expected


def _parse(kind: str, question: Any, n_outputs: int, text: str) -> ExpectedAnswer:
    scale: Any = parse_scale(question.scale)
    if kind != "points":
        if text == SAME and kind == "points_toward_first":
            middle = scale_middle(scale) or 0.0
            return middle, middle
        place = {FIRST: 0, SECOND: 1}.get(text)
        if place is None or place >= n_outputs:
            raise ValueError(f"The expected answer to {question.key} is not among the texts. Choose one of them.")
        return place
    ends = parse_range(text)
    if ends is None or not float(scale.minimum) <= ends[0] <= ends[1] <= float(scale.maximum):
        raise ValueError(
            f"The expected answer to {question.key} must be a number or a range from {float(scale.minimum):g} to "
            f"{float(scale.maximum):g}, such as {float(scale.minimum):g}-{float(scale.minimum) + 1:g}."
        )
    return ends
