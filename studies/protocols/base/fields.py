"""Form fields of annotators' pages: what a browser may send, strict checks, and the template of each field.

An answer that is not offered is refused, and the message says what is expected. People may type a number in any usual
way (``70 %``, ``+70``, ``70,0``, digits of any script) if it has only one meaning.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

from studies.stimuli.texts import TextRefused, clean_text, is_blank

from .robots import Robot


class AnswerRefused(Exception):
    """The answer is refused. The message is for the annotator."""


class ColumnRefused(Exception):
    """A column of an imported row is refused. The message is for the researcher who imports the file."""

    def __init__(self, column: str, message: str):
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, slots=True)
class Answer:
    """The columns of Response that a slot stores, if it stores more than one value."""

    value: Decimal | None = None
    chosen_id: int | None = None
    choice: str = ""
    part: str = ""
    text: str = ""
    skip_reason: str = ""

    @property
    def is_empty(self) -> bool:
        return self == EMPTY_ANSWER


EMPTY_ANSWER = Answer()


@dataclass(frozen=True, slots=True)
class Option:
    """An option that may be chosen. ``key`` is sent and stored. ``is_right``: the right answer of an attention check."""

    key: str
    label: str
    screens_out: bool = False
    is_right: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """The field of a single answer. ``clean`` takes the text sent ('' if absent) and returns the value to store or None.

    A field with several inputs (an error mark: category, severity, place) names them in ``inputs``. They are sent as
    ``<slot>.<input>``, ``clean`` takes a dict of texts, ``as_form_values`` turns a stored row back into such a dict, and
    ``form_values_of_columns`` does so for a row of an imported file.
    """

    kind: ClassVar[str] = ""
    inputs: ClassVar[tuple[str, ...]] = ()
    # Whether the template also needs data of the page, such as the letters. Otherwise it gets only the field.
    depends_on_page: ClassVar[bool] = False
    required: bool = True

    @property
    def template(self) -> str:
        return f"annotate/fields/{self.kind}.html"

    def clean(self, raw: str) -> Any:
        if raw == "":
            if self.required:
                raise AnswerRefused(self.missing)
            return None
        return self.parse(raw)

    missing: ClassVar[str] = "Please answer this question."

    def parse(self, raw: str) -> Any:
        raise NotImplementedError

    def as_form_values(self, row: Any) -> dict[str, str]:
        """Return what was sent for a stored row, by input. Only fields with several inputs need it."""
        raise NotImplementedError

    def form_values_of_columns(self, value: str, choice: str, part: str, text: str) -> dict[str, str]:
        """Return what a page would send for an imported row about an output with this text. Raises ColumnRefused."""
        raise NotImplementedError

    def displayed_text(self, raw: str, part: str = "") -> str | None:
        """Return the sent text (of the input ``part``) in the page's words, or None if no control can show it."""
        return raw

    def robot_answer(self, robot: Robot, page_field: Any) -> str | None:
        """Return what a robot sends for this field by default, or None if it sends nothing."""
        raise NotImplementedError(
            f"Robots do not know how to answer a {type(self).__name__}: give this field a method `robot_answer`, or let "
            "`robot_answers` of its protocol send its inputs."
        )


@dataclass(frozen=True, slots=True)
class WholeNumberField(Field):
    """A whole number between two ends, both included: a chance from 0 to 100, or a count."""

    kind: ClassVar[str] = "number"
    minimum: int = 0
    maximum: int = 100
    low: str = ""
    middle: str = ""
    high: str = ""
    unit: str = ""
    has_range: bool = False

    @property
    def number_range_text(self) -> str:
        return f"a whole number from {self.minimum} to {self.maximum}"

    def clean(self, raw: str) -> Decimal | None:
        typed = normalize_number(raw)
        if typed == "":
            if self.required:
                raise AnswerRefused(f"Please give {self.number_range_text}.")
            return None
        if GROUPED_NUMBER_RE.fullmatch(typed):
            raise AnswerRefused(
                f"Please give {self.number_range_text}, without a comma, point or space between its digits."
            )
        match = WHOLE_NUMBER_RE.fullmatch(typed)
        if match is None:
            if FRACTION_RE.fullmatch(typed):
                raise AnswerRefused(f"This scale takes whole numbers only. Please give {self.number_range_text}.")
            raise AnswerRefused(f"Please give {self.number_range_text}.")
        sign, digits, unit = match.groups()
        if unit and unit != self.unit:
            raise AnswerRefused(f"Please give {self.number_range_text}, without “{unit}”.")
        number = int(sign + digits)
        if not self.minimum <= number <= self.maximum or (sign == "-" and number == 0):
            raise AnswerRefused(f"Please give {self.number_range_text}.")
        return Decimal(number)

    def robot_answer(self, robot, page_field):
        span = self.maximum - self.minimum
        step = robot.round_to if span >= 20 else 1
        value = self.minimum + robot.scale_position(page_field) * span
        return str(int(min(self.maximum, max(self.minimum, step * round(value / step)))))


# How people type a whole number. static/answers.js reads numbers in the same way: change both together.
WHOLE_NUMBER_RE = re.compile(r"([+-]?)([0-9]{1,9})(?:[.,](?:00?|0{4,}))?(?: *(%))?")
# 1,000 may mean a thousand, or one with three decimals.
GROUPED_NUMBER_RE = re.compile(r"[+-]?[0-9]{1,3}(?:[.,'’ ][0-9]{3})+(?: *%)?")
FRACTION_RE = re.compile(r"[+-]?[0-9]*[.,][0-9]+(?: *%)?")
SIGN_REPLACEMENTS = dict(zip("−﹣－＋％٪．，٫", "---+%%.,,", strict=True))
DIRECTION_MARKS = frozenset("\u061c\u200e\u200f")


def normalize_number(typed: str) -> str:
    """Return the typed number with the digits and signs of an English keyboard. Superscripts do not count as digits."""
    if not typed.isascii():
        typed = "".join(_normalize_character(character) for character in typed if character not in DIRECTION_MARKS)
    return typed.replace("\t", " ").strip(" ")


def _normalize_character(character: str) -> str:
    if unicodedata.category(character) == "Zs":
        return " "
    digit = unicodedata.decimal(character, None)
    return SIGN_REPLACEMENTS.get(character, character) if digit is None else str(digit)


@dataclass(frozen=True, slots=True)
class ScalePointsField(Field):
    """A list of ordered points. Exactly one is chosen."""

    kind: ClassVar[str] = "scale"
    missing: ClassVar[str] = "Please choose one of the points."
    points: tuple[Option, ...] = ()

    def parse(self, raw: str) -> Decimal:
        if raw not in {point.key for point in self.points}:
            raise AnswerRefused(self.missing)
        return Decimal(raw)

    def displayed_text(self, raw, part=""):
        labels = {point.key: point.label for point in self.points}
        return (f"{raw} ({labels[raw]})" if labels[raw] else raw) if raw in labels else None

    def robot_answer(self, robot, page_field):
        points = sorted(int(point.key) for point in self.points)
        return str(points[min(len(points) - 1, int(robot.scale_position(page_field) * len(points)))])


@dataclass(frozen=True, slots=True)
class ChoiceField(Field):
    """Exactly one of several options; the option's key is stored as ``choice``."""

    kind: ClassVar[str] = "choice"
    missing: ClassVar[str] = "Please choose one of the answers."
    options: tuple[Option, ...] = ()

    def parse(self, raw: str) -> str:
        if raw not in {option.key for option in self.options}:
            raise AnswerRefused(self.missing)
        return raw

    def displayed_text(self, raw, part=""):
        return {option.key: option.label for option in self.options}.get(raw)

    def robot_answer(self, robot, page_field):
        """If some answers end participation, return the first of the others, so that the robot can continue."""
        right = [option.key for option in self.options if option.is_right]
        if right and not robot.is_inattentive:
            return right[0]
        leaving = [option.key for option in self.options if option.screens_out]
        staying = [option.key for option in self.options if not option.screens_out]
        if leaving and (robot.is_screened_out or not staying):
            return robot.rng.choice(leaving)
        return staying[0] if leaving else robot.rng.choice(staying)


TIE = "tie"


@dataclass(frozen=True, slots=True)
class ExposureChoiceField(Field):
    """A choice of one of the outputs on the page, by its label. The exposure is stored as ``chosen``.

    ``tie``: the words for "neither", if this answer is allowed. It is stored as the choice ``tie``, without a label.
    """

    kind: ClassVar[str] = "exposure"
    depends_on_page: ClassVar[bool] = True
    missing: ClassVar[str] = "Please choose one of them."
    exposures: tuple[tuple[str, int], ...] = ()
    tie: str = ""

    def parse(self, raw: str) -> int | Answer:
        if self.tie and raw == TIE:
            return Answer(choice=TIE)
        try:
            return dict(self.exposures)[raw]
        except KeyError:
            raise AnswerRefused(self.missing) from None

    def displayed_text(self, raw, part=""):
        if self.tie and raw == TIE:
            return self.tie
        return raw if raw in dict(self.exposures) else None

    def robot_answer(self, robot, page_field):
        return max(self.exposures, key=lambda exposure: robot.liking(exposure[1]))[0]


@dataclass(frozen=True, slots=True)
class TickBoxField(Field):
    """A tick box: 1 if ticked, else 0. A required box must be ticked."""

    kind: ClassVar[str] = "tick"
    missing: ClassVar[str] = "Please tick this box to go on."
    option: Option = field(default_factory=lambda: Option("1", ""))

    def clean(self, raw: str) -> Decimal:
        if raw not in ("", "1"):
            raise AnswerRefused(self.missing)
        if raw == "" and self.required:
            raise AnswerRefused(self.missing)
        return Decimal(1 if raw else 0)

    def displayed_text(self, raw, part=""):
        return (self.option.label or "Yes") if raw == "1" else None

    def robot_answer(self, robot, page_field):
        return "1" if self.required or robot.rng.random() < 0.5 else None


@dataclass(frozen=True, slots=True)
class TextField(Field):
    """A free text. Lengths are counted in code points, as in the browser."""

    kind: ClassVar[str] = "text"
    missing: ClassVar[str] = "Please write a few words."
    minimum_length: int = 0
    maximum_length: int = 2000
    is_long: bool = True

    def parse(self, raw: str) -> str | None:
        try:
            text = clean_text(raw).strip()
        except TextRefused as error:
            raise AnswerRefused(str(error)) from None
        if is_blank(text):
            if self.required:
                raise AnswerRefused(self.missing)
            return None
        if len(text) > self.maximum_length:
            raise AnswerRefused(f"Please use at most {self.maximum_length} characters; these are {len(text)}.")
        if len(text) < self.minimum_length:
            raise AnswerRefused(f"Please write at least {self.minimum_length} characters.")
        return text

    def robot_answer(self, robot, page_field):
        if not self.required and not robot.is_commenting:
            return None
        text = robot.explanation(self.required)
        while len(text) < self.minimum_length:
            text += " " + robot.explanation(True)
        return text[: self.maximum_length]
