"""Form fields of annotators' pages: what a browser may send, strict checks, and the template of each field.

An answer that is not offered is refused, and the message says what is expected. People may type a number in any usual
way (``70 %``, ``+70``, ``70,0``, digits of any script) if it has only one meaning.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from django import forms

from studies.language import gettext, gettext_noop, ngettext
from studies.stimuli.texts import TextRefused, clean_text, is_blank

# Robots: plausible answers to any page, for the demo, test runs, rehearsals and tests.
#
# A field gives a plausible answer of its kind (``Field.robot_answer``). A protocol answers the whole page
# (``Protocol.robot_answers``) if its rules span fields, or if the report must recover what robots perceive.


COMMENTS = (
    "I liked the quieter stories best.",
    "Some of them ended rather suddenly.",
    "Thank you, this was fun.",
    "Two of the writers sounded alike to me.",
    "It was a lot to read for the time given.",
)
EXPLANATIONS = (
    "The sentences follow from one another and the ending fits the beginning.",
    "It repeats the same words and loses track of who is speaking.",
    "The details are vivid, but the plot goes nowhere in particular.",
    "I believed the characters and wanted to know what happens next.",
)


class Robot:
    """A robot that answers validly and has no preference. ``annotators.participation.simulate`` has robots with preferences.

    ``middle``: the mean strength of the systems. ``round_to``: the step of answers on long scales of numbers. ``comment``:
    the text for every text field.
    """

    middle = 0.0
    round_to = 1
    is_screened_out = False
    is_inattentive = False

    def __init__(self, rng: Random, comment: str = ""):
        self.rng, self.comment, self.is_commenting = rng, comment, bool(comment)

    def strength(self, exposure_id: int | None) -> float:
        """Return the strength of an output's system, in standard deviations of a robot's perception."""
        return self.middle

    def liking(self, exposure_id: int | None) -> float:
        """Return how much the robot likes an output at this moment, for a choice among several."""
        return self.rng.random()

    def scale_position(self, page_field: Any) -> float:
        """Return an answer's place on its scale, from the lowest (0) to the highest (1)."""
        return self.rng.random()

    def check_answer(self, page_field: Any) -> str:
        """Return the answer to an attention check: the right one, or a wrong one if the robot does not read."""
        wrong_keys = [option.key for option in page_field.field.options if option.key != page_field.right_key]
        return self.rng.choice(wrong_keys) if self.is_inattentive else page_field.right_key

    def explanation(self, is_required: bool) -> str:
        return self.comment or self.rng.choice(EXPLANATIONS if is_required else COMMENTS)

    def answers(self, protocol: Any, page_fields: Mapping[str, Any]) -> dict[str, str]:
        """Return what the robot sends from a page, by input name."""
        checks = {slot: ask for slot, ask in page_fields.items() if ask.right_key}
        judged = {slot: ask for slot, ask in page_fields.items() if slot not in checks}
        sent = dict(protocol.robot_answers(judged, self))
        sent |= {slot: self.check_answer(ask) for slot, ask in checks.items()}
        for slot, ask in page_fields.items():
            names = {f"{slot}.{part}" for part in ask.field.inputs} or {slot}
            if names.isdisjoint(sent) and (answer := ask.field.robot_answer(self, ask)) is not None:
                sent[slot] = answer
        return sent


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
    # Whether an answer is stored with the text that was typed, from which its number follows.
    stores_typed_text: ClassVar[bool] = False
    # What the inputs of a field with several inputs are called.
    input_labels: ClassVar[Mapping[str, str]] = {}
    required: bool = True

    @property
    def template(self) -> str:
        return f"annotate/fields/{self.kind}.html"

    @property
    def starting_text(self) -> str:
        """Return what the field holds before anybody typed."""
        return ""

    def is_untouched(self, raw: str) -> bool:
        """Return whether the sent text is no answer, because nothing was typed."""
        return not raw.strip()

    def clean(self, raw: str) -> Any:
        if raw == "":
            if self.required:
                raise AnswerRefused(gettext(self.missing))
            return None
        return self.parse(raw)

    missing: ClassVar[str] = gettext_noop("Please answer this question.")

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

    missing: ClassVar[str] = gettext_noop("Please give a whole number from %(low)s to %(high)s.")

    def _refusal(self, message: str, **values: str) -> AnswerRefused:
        """Return the refusal with a translated message that names the lowest and the highest number."""
        return AnswerRefused(message % {"low": self.minimum, "high": self.maximum, **values})

    def clean(self, raw: str) -> Decimal | None:
        typed = normalize_number(raw)
        if typed == "":
            if self.required:
                raise self._refusal(gettext(self.missing))
            return None
        if GROUPED_NUMBER_RE.fullmatch(typed):
            raise self._refusal(
                gettext(
                    "Please give a whole number from %(low)s to %(high)s, without a comma, point or space between its digits."
                )
            )
        match = WHOLE_NUMBER_RE.fullmatch(typed)
        if match is None:
            if FRACTION_RE.fullmatch(typed):
                raise self._refusal(
                    gettext("This scale takes whole numbers only. Please give a whole number from %(low)s to %(high)s.")
                )
            raise self._refusal(gettext(self.missing))
        sign, digits, unit = match.groups()
        if unit and unit != self.unit:
            raise self._refusal(
                gettext("Please give a whole number from %(low)s to %(high)s, without “%(unit)s”."), unit=unit
            )
        number = int(sign + digits)
        if not self.minimum <= number <= self.maximum or (sign == "-" and number == 0):
            raise self._refusal(gettext(self.missing))
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


def _row_shape(labels: Sequence[str], most: int) -> str:
    """Return the CSS class of choices that lie side by side on a phone, or "" if their words need lines of their own."""
    is_short = all(len(label) <= 28 and len(word) <= 9 for label in labels for word in label.split())
    return " short" if is_short and len(labels) <= most else ""


@dataclass(frozen=True, slots=True)
class ScalePointsField(Field):
    """A list of ordered points. Exactly one is chosen."""

    kind: ClassVar[str] = "scale"
    missing: ClassVar[str] = gettext_noop("Please choose one of the points.")
    points: tuple[Option, ...] = ()

    @property
    def ends(self) -> tuple[Option, ...]:
        """Return the points whose words are shown below the row of numbers: few of many. Else ()."""
        labelled = tuple(point for point in self.points if point.label)
        return labelled if len(labelled) <= 3 < len(self.points) else ()

    @property
    def shape(self) -> str:
        """Return the CSS classes of the points: numbers in rows, a row of short words, or a list ("")."""
        if self.ends or not any(point.label for point in self.points):
            return " numbers many" if len(self.points) > 7 else " numbers"
        return _row_shape([point.label for point in self.points], 5)

    def parse(self, raw: str) -> Decimal:
        if raw not in {point.key for point in self.points}:
            raise AnswerRefused(gettext(self.missing))
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
    missing: ClassVar[str] = gettext_noop("Please choose one of the answers.")
    options: tuple[Option, ...] = ()

    @property
    def shape(self) -> str:
        return _row_shape([option.label for option in self.options], 3)

    def parse(self, raw: str) -> str:
        if raw not in {option.key for option in self.options}:
            raise AnswerRefused(gettext(self.missing))
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
    missing: ClassVar[str] = gettext_noop("Please choose one of them.")
    exposures: tuple[tuple[str, int], ...] = ()
    tie: str = ""

    def parse(self, raw: str) -> int | Answer:
        if self.tie and raw == TIE:
            return Answer(choice=TIE)
        try:
            return dict(self.exposures)[raw]
        except KeyError:
            raise AnswerRefused(gettext(self.missing)) from None

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
    missing: ClassVar[str] = gettext_noop("Please tick this box to go on.")
    option: Option = field(default_factory=lambda: Option("1", ""))

    def clean(self, raw: str) -> Decimal:
        if raw not in ("", "1") or (raw == "" and self.required):
            raise AnswerRefused(gettext(self.missing))
        return Decimal(1 if raw else 0)

    def displayed_text(self, raw, part=""):
        # Translators: what a person sent who ticked a box
        return (self.option.label or gettext("Yes")) if raw == "1" else None

    def robot_answer(self, robot, page_field):
        return "1" if self.required or robot.rng.random() < 0.5 else None


@dataclass(frozen=True, slots=True)
class TextField(Field):
    """A free text. Lengths are counted in code points, as in the browser."""

    kind: ClassVar[str] = "text"
    missing: ClassVar[str] = gettext_noop("Please write a few words.")
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
                raise AnswerRefused(gettext(self.missing))
            return None
        if len(text) > self.maximum_length:
            message = ngettext(
                "Please use at most %(n)s character; these are %(typed)s.",
                "Please use at most %(n)s characters; these are %(typed)s.",
                self.maximum_length,
            )
            raise AnswerRefused(message % {"n": self.maximum_length, "typed": len(text)})
        if len(text) < self.minimum_length:
            message = ngettext(
                "Please write at least %(n)s character.", "Please write at least %(n)s characters.", self.minimum_length
            )
            raise AnswerRefused(message % {"n": self.minimum_length})
        return text

    def robot_answer(self, robot, page_field):
        if not self.required and not robot.is_commenting:
            return None
        text = robot.explanation(self.required)
        while len(text) < self.minimum_length:
            text += " " + robot.explanation(True)
        return text[: self.maximum_length]


@dataclass(frozen=True, slots=True)
class RewriteField(TextField):
    """The output shown, to be rewritten: the field starts with its text, and an answer has other words or signs.

    ``original`` is the output's text, see ``with_shown_texts``.
    """

    kind: ClassVar[str] = "rewrite"
    depends_on_page: ClassVar[bool] = True
    missing: ClassVar[str] = gettext_noop("The field is empty. Please write the text as you would have it.")
    original: str = ""

    @property
    def starting_text(self):
        return self.original

    def is_untouched(self, raw):
        return is_blank(raw) or raw.split() == self.original.split()

    def clean(self, raw):
        if not self.is_untouched(raw):
            return TextField.clean(self, raw)
        if not self.required:
            return None
        raise AnswerRefused(
            gettext(self.missing)
            if is_blank(raw)
            else gettext("This is the text as it was shown. Please change it, then go on.")
        )

    def robot_answer(self, robot, page_field):
        if not self.required and not robot.is_commenting:
            return None
        # Other words in place of the first one.
        return f"{robot.explanation(True)} {self.original.partition(' ')[2]}"[: self.maximum_length]


# Fields that the settings of several protocols share, each call gives a new one, and what a new row stores of a
# settings form.


def values_of_new_row(form: type[forms.Form] | None) -> dict[str, Any]:
    """Return what a new section or rule stores of its settings form: every setting, so that no later default changes it.

    A field's ``initial`` is what a missing key means. Stored designs lack keys, so it never changes. If new rows need another
    value, the form names it in ``values_of_new_rows``.
    """
    if form is None:
        return {}
    fields = form().fields
    return {name: field.initial for name, field in fields.items()} | getattr(form, "values_of_new_rows", {})


def letters_field() -> forms.ChoiceField:
    """Return the setting of how outputs get their letters."""
    return forms.ChoiceField(
        choices=[
            ("random", "random letters for each prompt"),
            ("fixed", "the same letters for all annotators, in the order of the systems' names"),
        ],
        initial="random",
        label="letters",
    )


def layout_field() -> forms.ChoiceField:
    """Return the setting of how outputs are first laid out."""
    return forms.ChoiceField(
        choices=[("side", "side by side"), ("one", "one under the other")], initial="side", label="first layout"
    )


def noun_field() -> forms.CharField:
    """Return the setting of what a labelled output is called."""
    return forms.CharField(
        max_length=30, initial="text", help_text="What a labelled output is called: text, summary, image."
    )


def explanation_field(help_text: str, rows: int = 4) -> forms.CharField:
    """Return the setting of a Markdown text for annotators."""
    return forms.CharField(
        widget=forms.Textarea(attrs={"rows": rows}), required=False, help_text=f"{help_text} Markdown."
    )


def source_field() -> forms.ChoiceField:
    """Return the setting of whether the pages of a section show the source document of a prompt."""
    return forms.ChoiceField(
        choices=[("shown", "shown with the prompt"), ("hidden", "not shown in this section")],
        initial="shown",
        label="source document",
        help_text="Hide it in the first of two sections with the same items, to ask about the outputs before annotators read the document.",
    )


# Scales of questions: their stored JSON, their form fields, and how a report reads the answers.


# kind: (label for researchers, column in which an answer is stored)
SCALE_KINDS: dict[str, tuple[str, str]] = {
    "percent": ("a chance from 0 to 100", "value"),
    "likert": ("points from 1 to k, one is chosen", "value"),
    "continuous": ("a number between two ends", "value"),
    "number": ("a whole number", "value"),
    "choice": ("one of several answers", "choice"),
    "output": ("one of the outputs shown", "chosen"),
    "multiple": ("any of several answers", "value"),
    "acknowledgement": ("a box to tick", "value"),
    "text": ("words", "text"),
    "rewrite": ("the text shown, rewritten", "text"),
}
# Questions whose answers are texts: nothing about them can be counted, chosen or averaged as it is.
TEXT_KINDS = tuple(kind for kind, (_, column) in SCALE_KINDS.items() if column == "text")
# What an option may do: end a screening section's visit, or be the right answer of an attention check.
OPTION_FLAGS = ("screens_out", "is_right")


@dataclass(frozen=True, slots=True)
class ScaleSpec:
    """A scale, read from a question's JSON, with all defaults."""

    kind: str = "percent"
    minimum: int = 0
    maximum: int = 100
    low: str = ""
    middle: str = ""
    high: str = ""
    labels: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    minimum_length: int = 0
    maximum_length: int = 2000
    is_long: bool = True
    is_best_first: bool = False
    is_lower_better: bool = False

    @property
    def right_key(self) -> str:
        """Return the key of the one right answer, or '' if there is none or more than one."""
        keys = [option.key for option in self.options if option.is_right]
        return keys[0] if len(keys) == 1 else ""

    @property
    def answer_column(self) -> str:
        return SCALE_KINDS[self.kind][1]

    @property
    def points(self) -> tuple[Option, ...]:
        """The points of a Likert scale with their words: all points, or the two ends and the middle."""
        values = range(self.minimum, self.maximum + 1)
        if len(self.labels) == len(values):
            labels = dict(zip(values, self.labels, strict=True))
        else:
            labels = {self.minimum: self.low, self.maximum: self.high}
            if (self.minimum + self.maximum) % 2 == 0 and self.middle:
                labels[(self.minimum + self.maximum) // 2] = self.middle
        points = tuple(Option(str(value), labels.get(value, "")) for value in values)
        return points[::-1] if self.is_best_first else points

    def field(self, required: bool = True) -> Field:
        """Return the form field for one answer on this scale (for ``multiple`` see ``option_fields``)."""
        return _build_field(self, required)

    def option_fields(self) -> list[tuple[Option, Field]]:
        """Return a tick box for each option of a ``multiple`` scale."""
        return [(option, TickBoxField(required=False, option=option)) for option in self.options]

    def as_json(self) -> dict:
        """Return the shortest JSON of this scale."""
        default = ScaleSpec(self.kind)
        stored: dict[str, Any] = {"kind": self.kind}
        for name in self.__slots__:
            value = getattr(self, name)
            if name == "kind" or value == getattr(default, name):
                continue
            if name == "options":
                value = [
                    {"key": o.key, "label": o.label} | {flag: True for flag in OPTION_FLAGS if getattr(o, flag)}
                    for o in value
                ]
            stored[name] = list(value) if isinstance(value, tuple) else value
        return stored


@lru_cache(maxsize=1024)
def _build_field(scale: ScaleSpec, required: bool) -> Field:
    # The same question is asked on each page under each output.
    ends: dict[str, Any] = {
        "minimum": scale.minimum,
        "maximum": scale.maximum,
        "low": scale.low,
        "middle": scale.middle,
        "high": scale.high,
    }
    match scale.kind:
        case "percent":
            return WholeNumberField(required, **ends, unit="%", has_range=True)
        case "continuous":
            return WholeNumberField(required, **ends, has_range=True)
        case "number":
            return WholeNumberField(required, **ends)
        case "likert":
            return ScalePointsField(required, points=scale.points)
        case "choice":
            return ChoiceField(required, options=scale.options)
        case "acknowledgement":
            return TickBoxField(required, option=Option("1", scale.high))
        case "text":
            return TextField(required, scale.minimum_length, scale.maximum_length, scale.is_long)
        case "rewrite":
            return RewriteField(required, scale.minimum_length, scale.maximum_length)
        case "output":
            raise ValueError("A question about the outputs shown is asked under Two choices alone.")
    raise ValueError(f"a question on a {scale.kind} scale has several fields")


def shortest_scale_length(questions: Iterable[Any]) -> float | None:
    """Return the shortest distance between the ends of the questions' scales, or None if no scale has ends."""
    lengths = []
    for question in questions:
        try:
            scale = parse_scale(question.scale)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # the checklist reports the scale
        if scale.kind in ("percent", "likert", "continuous", "number"):
            lengths.append(float(scale.maximum - scale.minimum))
    return min(lengths, default=None)


def parse_scale(scale_json: dict) -> ScaleSpec:
    """Return the scale of a question. Raise ValueError with the reason if the JSON is not a scale."""
    scale_json = dict(scale_json or {"kind": "percent"})
    kind = scale_json.pop("kind", "percent")
    if kind not in SCALE_KINDS:
        raise ValueError(f"The scale {kind!r} does not exist. Choose one of {', '.join(SCALE_KINDS)}.")
    unknown = set(scale_json) - set(ScaleSpec.__slots__)
    if unknown:
        raise ValueError(f"A scale has no setting {', '.join(sorted(unknown))}. Remove it.")
    if "options" in scale_json:
        scale_json["options"] = tuple(
            Option(o["key"], o["label"], **{flag: bool(o.get(flag)) for flag in OPTION_FLAGS})
            for o in scale_json["options"]
        )
    if "labels" in scale_json:
        scale_json["labels"] = tuple(scale_json["labels"])
    if kind == "likert":
        scale_json.setdefault("minimum", 1)
        scale_json.setdefault("maximum", len(scale_json["labels"]) if scale_json.get("labels") else 5)
    spec = ScaleSpec(kind, **scale_json)
    if spec.minimum >= spec.maximum:
        raise ValueError("A scale's lowest value must be below its highest.")
    if kind == "likert" and spec.maximum - spec.minimum > 19:
        raise ValueError("A scale of points has at most 20 points. For more, use a number between two ends.")
    if kind in ("choice", "multiple"):
        keys = [option.key for option in spec.options]
        if len(keys) < (2 if kind == "choice" else 1) or len(set(keys)) < len(keys):
            raise ValueError("Give at least two answers to choose from, each with its own key.")
    return spec
