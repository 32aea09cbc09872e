"""Make stimuli comparable: filter prompts, normalise texts, control lengths. Each step is a declared setting.

No text changes without a setting, and no original is lost. Each step returns a record with the new text and the
changes. The caller keeps the original (`Output.original`).

The settings are one JSON object. A missing part does nothing:

    {"prompt_filters": [{"filter": "begins_with_tag", "tags": ["WP"]}, ...],
     "normalisation": {"line_breaks": true, ...},
     "length": {"manner": "longest_of_others", "trimmed": ["human"], "ends": "whole"}}
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .lengths import (
    TrimmedText,
    get_sentence_end_rule,
    require_whole_number,
    trim_after_words,
    trim_to_characters,
    trim_to_longest_of_others,
)
from .prompt_filters import (
    LEADING_TAG,
    FilteredPrompt,
    PromptFilter,
    filter_as_json,
    parse_prompt_filter,
    per_prompt_filter_results,
)
from .settings_records import SettingsRefused, parse_record, tuples_to_lists, validate_settings_object
from .texts import is_blank

__all__ = [
    "FilteredPrompt",
    "LengthControl",
    "Normalisation",
    "NormalisedText",
    "Preparation",
    "PreparedText",
    "SettingsRefused",
    "TrimmedText",
    "per_prompt_filter_results",
    "normalise_text",
    "prepared_outputs",
    "trim_after_words",
    "trim_to_characters",
    "trim_to_longest_of_others",
]

_BLANK_BEFORE = re.compile(r"(?<=\S) +(?=[,;:!?)\]}]|\.(?!\.)|n't\b|'(?:s|m|d|re|ve|ll)\b)")
_BLANK_AFTER = re.compile(r"(?<=[(\[{]) +(?=\S)")
# The look-behind prevents a new attempt at each position of a long run of blanks.
_TRAILING_BLANKS = re.compile(r"(?<![ \t\u00a0])[ \t\u00a0]++(?=[\r\n]|\Z)")
_BARE_MARK = re.compile(r"^\s*(?:[:\u2013\u2014|-]\s+)?")


def _without_byte_order_mark(text: str) -> str:
    return text.removeprefix("\ufeff")


def _with_unix_line_breaks(text: str) -> str:
    return re.sub(r"\r\n?", "\n", text)


def _without_trailing_blanks(text: str) -> str:
    return _TRAILING_BLANKS.sub("", text).strip("\r\n")


def _without_tokeniser_quotes(text: str) -> str:
    return text.replace("``", '"').replace("''", '"')


def _without_tokenised_spacing(text: str) -> str:
    return _BLANK_AFTER.sub("", _BLANK_BEFORE.sub("", text))


def _with_straight_quotes(text: str) -> str:
    return text.translate({0x201C: '"', 0x201D: '"', 0x201E: '"', 0x2018: "'", 0x2019: "'", 0x201A: "'"})


def _without_leading_tag(text: str) -> str:
    tag = LEADING_TAG.match(text)
    without = _BARE_MARK.sub("", text[tag.end() if tag else 0 :])
    return text if is_blank(without) else without


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


@dataclass(frozen=True)
class Normalisation:
    """The surface differences to remove. Each is a switch, off by default. They are applied in this order.

    `leading_tag` is meant for prompts. `trailing_blanks` also removes blank lines at both ends. `tokenised_spacing` would
    harm French, which has blanks before its punctuation.
    """

    byte_order_mark: bool = False
    line_breaks: bool = False
    composed: bool = False
    leading_tag: bool = False
    tokeniser_quotes: bool = False
    straight_quotes: bool = False
    tokenised_spacing: bool = False
    trailing_blanks: bool = False


_STEPS: dict[str, Callable[[str], str]] = {
    "byte_order_mark": _without_byte_order_mark,
    "line_breaks": _with_unix_line_breaks,
    "composed": _composed,
    "leading_tag": _without_leading_tag,
    "tokeniser_quotes": _without_tokeniser_quotes,
    "straight_quotes": _with_straight_quotes,
    "tokenised_spacing": _without_tokenised_spacing,
    "trailing_blanks": _without_trailing_blanks,
}


@dataclass(frozen=True)
class NormalisedText:
    """A text after normalisation and the switches that changed it."""

    text: str
    changed_by: tuple[str, ...] = ()
    warning: str = ""


def normalise_text(text: str, settings: Normalisation) -> NormalisedText:
    """Return the text without the declared differences, or the original text if nothing of it would remain."""
    result, changed_by = text, []
    for switch, step in _STEPS.items():
        if getattr(settings, switch):
            before, result = result, step(result)
            if result != before:
                changed_by.append(switch)
    if is_blank(result) and not is_blank(text):
        return NormalisedText(text, warning="normalisation would leave no text: not changed")
    return NormalisedText(result, tuple(changed_by))


@dataclass(frozen=True)
class LengthControl:
    """The manner of making lengths comparable: `none`, `longest_of_others`, `characters` or `words`.

    `trimmed` names the systems whose texts are shortened. For `characters` and `words`, no name means all systems.
    """

    manner: str = "none"
    limit: int = 0
    trimmed: tuple[str, ...] = ()
    ends: str = "whole"

    def __post_init__(self) -> None:
        if self.manner not in {"none", "longest_of_others", "characters", "words"}:
            raise SettingsRefused(
                f"length: manner must be none, longest_of_others, characters or words, not “{self.manner}”."
            )
        get_sentence_end_rule(self.ends)
        if self.manner == "longest_of_others" and not self.trimmed:
            raise SettingsRefused(
                "length: longest_of_others needs “trimmed”, the systems whose texts are shortened. Add it."
            )
        require_whole_number("limit", self.limit, minimum=1 if self.manner in {"characters", "words"} else 0)


@dataclass(frozen=True)
class Preparation:
    """All changes to the stimuli of a study before annotators see them."""

    prompt_filters: tuple[PromptFilter, ...] = ()
    normalisation: Normalisation = field(default_factory=Normalisation)
    length: LengthControl = field(default_factory=LengthControl)

    @classmethod
    def from_json(cls, settings: object) -> "Preparation":
        """Return the settings from the JSON of a person or a file. Raise SettingsRefused, which names the fault."""
        parts = validate_settings_object(settings, "settings", {"prompt_filters", "normalisation", "length"})
        filters = parts.get("prompt_filters", [])
        if not isinstance(filters, list):
            raise SettingsRefused("prompt_filters: must be a list of filters.")
        return cls(
            tuple(
                parse_prompt_filter(prompt_filter, f"prompt_filters[{number}]")
                for number, prompt_filter in enumerate(filters, 1)
            ),
            parse_record(Normalisation, parts.get("normalisation", {}), "normalisation"),
            parse_record(LengthControl, parts.get("length", {}), "length"),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON for the design. `from_json` of it gives equal settings."""
        return {
            "prompt_filters": [filter_as_json(prompt_filter) for prompt_filter in self.prompt_filters],
            "normalisation": asdict(self.normalisation),
            "length": tuples_to_lists(asdict(self.length)),
        }


@dataclass(frozen=True)
class PreparedText:
    """A text as annotators will see it, with its changes."""

    text: str
    is_changed: bool
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def prepared_outputs(texts_by_system: Mapping[str, str], preparation: Preparation) -> dict[str, PreparedText]:
    """Return the outputs of one prompt by system, normalised and then shortened."""
    clean = {system: normalise_text(text, preparation.normalisation) for system, text in texts_by_system.items()}
    trimmed = _brought_to_length({system: result.text for system, result in clean.items()}, preparation.length)
    return {
        system: PreparedText(
            trimmed[system].text,
            trimmed[system].text != text,
            (*clean[system].changed_by, *(["trimmed"] if trimmed[system].is_changed else [])),
            tuple(warning for warning in (clean[system].warning, trimmed[system].warning) if warning),
        )
        for system, text in texts_by_system.items()
    }


def _brought_to_length(texts: Mapping[str, str], length: LengthControl) -> dict[str, TrimmedText]:
    if length.manner == "longest_of_others":
        return trim_to_longest_of_others(texts, length.trimmed, length.ends)
    if length.manner == "none":
        return {system: TrimmedText(text) for system, text in texts.items()}
    trim = trim_to_characters if length.manner == "characters" else trim_after_words
    return {
        system: trim(text, length.limit, length.ends)
        if not length.trimmed or system in length.trimmed
        else TrimmedText(text)
        for system, text in texts.items()
    }
