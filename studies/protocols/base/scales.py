"""Scales of questions: their stored JSON, their form fields, and how a report reads the answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .fields import ChoiceField, Field, Option, ScalePointsField, TextField, TickBoxField, WholeNumberField

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
}
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
