"""The expected answers of practice items, and the known answers of test questions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms

from .fields import TIE, parse_scale

# Known answers, of test questions among the live items and of tests before the work.
#
# A section has test questions if its draft holds items of the kind ``test`` (``studies.services.known_answers``).


MAX_SHARE = 0.5
RANGE = re.compile(r"^\s*(-?\d+(?:\.\d+)?)\s*(?:-|–|to)\s*(-?\d+(?:\.\d+)?)\s*$")
NUMBER = re.compile(r"^\s*-?\d+(?:\.\d+)?\s*$")


class KnownAnswerSettings(forms.Form):
    """The settings of sections that can have test questions. They have no effect while a section has none."""

    parts = {
        "Test questions": (
            "Items with a known answer, among the others. These settings have no effect while the section has none.",
            ("positive_share", "negative_share", "neutral", "pilot_answers"),
        )
    }

    positive_share = forms.FloatField(
        min_value=0,
        max_value=MAX_SHARE,
        initial=0.05,
        label="share of positive test questions",
        help_text="Test questions added for each live item: .05 is one for 20 items. Only if the section has test questions.",
    )
    negative_share = forms.FloatField(
        min_value=0,
        max_value=MAX_SHARE,
        initial=0.05,
        label="share of negative test questions",
        help_text="Negative, damaged and given test questions together. Ten items or more always get at least one test question.",
    )
    neutral = forms.ChoiceField(
        choices=[("skip", "does not count"), ("wrong", "counts as wrong")],
        initial="skip",
        label="a neutral answer to a test question",
        help_text="Neutral: the middle of the scale, or a tie.",
    )
    pilot_answers = forms.IntegerField(
        min_value=0,
        max_value=1000,
        initial=10,
        label="pilot answers",
        help_text="Damaged and given test questions count only after 90 % of this many first answers agree with them. 0: at once.",
    )


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """The expected answer to a question: the id of the ``better`` exposure, a range from ``low`` to ``high``, or the ``key`` of
    an option.

    ``about``: the exposure whose rating must be in the range, or None for every answer. ``middle``: the neutral value
    of the scale, or None if the scale has none. ``is_neutral_counted``: whether a neutral answer is a wrong one.
    """

    better: int | None = None
    low: float | None = None
    high: float | None = None
    about: int | None = None
    middle: float | None = None
    is_neutral_counted: bool = False
    key: str = ""

    def is_right(
        self, *, value: float | None, exposure: int | None = None, chosen: int | None = None, choice: str = ""
    ) -> bool | None:
        """Return whether an answer is right, or None if it does not count.

        An answer does not count if it is missing, about another output, or neutral where neutral answers are skipped.
        ``value``: on the question's own scale. ``exposure``: the output that the answer is about; for a relative scale the
        one that higher values favour.
        """
        if self.key:
            return choice == self.key
        neutral = False if self.is_neutral_counted else None
        if self.better is not None:
            if chosen is not None:
                return chosen == self.better
            if choice == TIE:
                return neutral
            if value is None or exposure is None or self.middle is None:
                return None
            if value == self.middle:
                return neutral
            return (value > self.middle) == (exposure == self.better)
        if value is None or self.low is None or self.high is None:
            return None
        if self.about is not None and exposure != self.about:
            return None
        if value == self.middle and self.low != self.high:
            return neutral
        return self.low <= value <= self.high


def known_answer(expected: Any, settings: Mapping[str, Any]) -> KnownAnswer:
    """Return the known answer of an ``Expected`` row, with the rule for neutral answers of its section's cleaned settings."""
    try:
        middle = scale_middle(parse_scale(expected.question.scale))
    except (ValueError, TypeError, KeyError, AttributeError):
        middle = None
    return KnownAnswer(
        better=expected.exposure_id,
        low=expected.low,
        high=expected.high,
        about=expected.about_id,
        middle=middle,
        is_neutral_counted=settings.get("neutral") == "wrong",
    )


def practice_answer(expected: Any, scale: Any) -> KnownAnswer:
    """Return the known answer of a practice item's ``Expected`` row. ``scale``: the parsed scale of its question.

    Nothing is neutral in practice: the declared range says whether the middle is right, and a tie chooses no output.
    """
    return KnownAnswer(
        better=expected.exposure_id,
        low=expected.low,
        high=expected.high,
        about=expected.about_id,
        middle=scale_middle(scale) if expected.exposure_id else None,
        is_neutral_counted=True,
    )


def parse_range(text: str) -> tuple[float, float] | None:
    """Return the two ends of a range such as "4-5", or a number twice. Return None for any other text."""
    if match := RANGE.match(text):
        return float(match[1]), float(match[2])
    return (float(text), float(text)) if NUMBER.match(text) else None


def scale_middle(scale: Any) -> float | None:
    """Return the middle of a parsed scale, or None if the scale has no order."""
    if scale.kind not in ("likert", "continuous", "percent"):
        return None
    return (float(scale.minimum) + float(scale.maximum)) / 2


# The expected answers of practice items, as a researcher enters them.


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
