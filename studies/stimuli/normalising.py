"""Make stimuli comparable: filter prompts, normalise texts, control lengths. Each step is a declared setting.

No text changes without a setting, and no original is lost. Each step returns a record with the new text and the
changes. The caller keeps the original (`Output.original`).

The settings are one JSON object. A missing part does nothing:

    {"prompt_filters": [{"filter": "begins_with_tag", "tags": ["WP"]}, ...],
     "output_filters": [{"filter": "copies_at_most", "references": ["Once ..."]}],
     "normalisation": {"line_breaks": true, ...},
     "length": {"manner": "longest_of_others", "trimmed": ["human"], "ends": "whole"}}
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from .texts import (
    SettingsRefused,
    is_blank,
    parse_record,
    tuples_to_lists,
    validate_settings_object,
    word_count,
    word_starts,
)

# Shorten texts at sentence ends, so that length is not a proxy for quality. Never return an empty text without a
# warning.


# Characters after the end of a sentence that belong to it.
CLOSING = "\"'\u201d\u2019\u00bb\u203a)]}\u300d\u300f\u3011\uff09*_`"
_PAPER_END = re.compile(r'[.?!]"?')
_SPACED_ENDS = ".!?\u2026\u061f\u06d4\u0964\u0965"
_WIDE_ENDS = "\u3002\uff01\uff1f\uff0e\uff61"
END_MARKS = _SPACED_ENDS + _WIDE_ENDS
# A full stop in "3.5" or "e.g. this" does not end a sentence. A wide full stop needs no blank after it.
_WHOLE_END = re.compile(
    rf"(?:[{_WIDE_ENDS}]+[{_SPACED_ENDS}]*|[{_SPACED_ENDS}]+[{_WIDE_ENDS}]*)[{re.escape(CLOSING)}]*"
)
_TITLES = re.compile(r"(?<![^\W_])(?:Mr|Mrs|Ms|Dr|Prof|Rev|Gen|Col|Capt|Lt|Sgt|St|Mt|Jr|Sr|vs|[A-Z])\.$")
_FOLLOWING = re.compile(r"\s*(\S)")


def _paper_ends(text: str) -> Iterator[int]:
    return (end.end() for end in _PAPER_END.finditer(text))


def _whole_ends(text: str) -> Iterator[int]:
    for end in _WHOLE_END.finditer(text):
        after = text[end.end() : end.end() + 1]
        is_wide = any(mark in _WIDE_ENDS for mark in end.group())
        if is_wide or ((not after or after.isspace()) and not _goes_on(text, end)):
            yield end.end()


def _goes_on(text: str, end: re.Match[str]) -> bool:
    following = _FOLLOWING.match(text, end.end())
    if following is None:
        return False
    is_title = end.group() == "." and _TITLES.search(text, max(0, end.start() - 8), end.end())
    return bool(is_title) or following.group(1).islower()


# "paper" is exactly the published rule. "whole" knows other scripts, keeps closing quotes, and does not cut in a number or
# after an abbreviation.
SENTENCE_END_RULES: dict[str, Callable[[str], Iterator[int]]] = {"paper": _paper_ends, "whole": _whole_ends}


@dataclass(frozen=True)
class TrimmedText:
    """A text after length control. `warning` is set if it could not be shortened as required."""

    text: str
    is_changed: bool = False
    warning: str = ""


def trim_to_characters(text: str, max_characters: int, sentence_end_rule: str = "whole") -> TrimmedText:
    """Return the text up to its last sentence end within `max_characters` characters, or the whole text if it is short enough."""
    require_whole_number("limit", max_characters)
    if len(text) <= max_characters:
        return TrimmedText(text)
    cut = max((end for end in get_sentence_end_rule(sentence_end_rule)(text) if end <= max_characters), default=0)
    if not cut:
        return TrimmedText(
            text, warning=f"no sentence end within the limit of {max_characters} characters: not shortened"
        )
    return TrimmedText(text[:cut], is_changed=True)


def trim_after_words(text: str, n_words: int, sentence_end_rule: str = "whole") -> TrimmedText:
    """Return the text up to the end of the sentence that contains word number `n_words`."""
    require_whole_number("words", n_words, minimum=1)
    last_word = next(islice(word_starts(text), n_words - 1, None), None)
    if last_word is None:
        return TrimmedText(text, warning=f"has fewer than {n_words} words: not shortened")
    cut = next((end for end in get_sentence_end_rule(sentence_end_rule)(text) if end > last_word), None)
    if cut is None:
        return TrimmedText(text, warning=f"no sentence end after word {n_words}: not shortened")
    if is_blank(text[cut:]):
        return TrimmedText(text)
    return TrimmedText(text[:cut], is_changed=True)


def trim_to_longest_of_others(
    texts_by_system: Mapping[str, str], trimmed_systems: Iterable[str], sentence_end_rule: str = "whole"
) -> dict[str, TrimmedText]:
    """Return the texts of one prompt by system. Texts of `trimmed_systems` systems become no longer than the longest other text."""
    trimmed_systems = set(trimmed_systems)
    limit = max((len(text) for system, text in texts_by_system.items() if system not in trimmed_systems), default=None)
    if limit is None:
        note = "no other system to compare the length with: not shortened"
        return {system: TrimmedText(text, warning=note) for system, text in texts_by_system.items()}
    return {
        system: trim_to_characters(text, limit, sentence_end_rule) if system in trimmed_systems else TrimmedText(text)
        for system, text in texts_by_system.items()
    }


def get_sentence_end_rule(name: str) -> Callable[[str], Iterator[int]]:
    """Return the rule of this name: a function from a text to the positions where its sentences end."""
    if name not in SENTENCE_END_RULES:
        raise SettingsRefused(f"length: ends must be one of {', '.join(SENTENCE_END_RULES)}, not “{name}”.")
    return SENTENCE_END_RULES[name]


def require_whole_number(name: str, value: int, minimum: int = 0) -> None:
    """Raise SettingsRefused unless the value is a whole number from `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise SettingsRefused(f"length: {name} must be a whole number from {minimum}, not {value!r}.")


# Named filters with parameters that select a study's prompts. Each dropped prompt has a reason.


# Blanks are matched possessively: otherwise a bracket with ten thousand blanks would take very long.
LEADING_TAG = re.compile(r"\s*+[\[(]\s*+([^\s\[\]()][^\[\]()]{0,39}?)\s*+[\])]")
QUESTION_MARKS = "?\uff1f\u061f\u037e\u055e\u1367"


@dataclass(frozen=True)
class BeginsWithTag:
    """The prompt begins with one of these tags in brackets, such as [WP] or [ wp ]."""

    name: ClassVar[str] = "begins_with_tag"
    tags: tuple[str, ...]

    def reason_to_drop(self, prompt: str) -> str:
        match = LEADING_TAG.match(prompt)
        if match and match.group(1).casefold() in {tag.strip("[]() ").casefold() for tag in self.tags}:
            return ""
        return f"does not begin with {' or '.join(f'[{tag}]' for tag in self.tags)}"


@dataclass(frozen=True)
class BeginsWith:
    """The prompt, or a text offered as a stimulus, begins with these words; case does not matter."""

    name: ClassVar[str] = "begins_with"
    text: str

    def reason_to_drop(self, prompt: str) -> str:
        begins = prompt.lstrip().casefold().startswith(self.text.casefold())
        return "" if begins else f"does not begin with “{self.text}”"


@dataclass(frozen=True)
class HasNoQuestion:
    """The prompt has no question mark of any script, because questions lead to opinions instead of fiction."""

    name: ClassVar[str] = "has_no_question"

    def reason_to_drop(self, prompt: str) -> str:
        return "has a question mark" if any(mark in prompt for mark in QUESTION_MARKS) else ""


@dataclass(frozen=True)
class EndsInPunctuation:
    """The last character ends a sentence. Closing quotes and brackets are ignored."""

    name: ClassVar[str] = "ends_in_punctuation"
    marks: str = END_MARKS

    def reason_to_drop(self, prompt: str) -> str:
        end = prompt.rstrip().rstrip(CLOSING)
        return "" if end and end[-1] in self.marks else "does not end in punctuation"


@dataclass(frozen=True)
class HasNoTagResidue:
    """The start has no rest of a tag: neither brackets as in "[ Horror ]" nor punctuation as in ": Children are ..."."""

    name: ClassVar[str] = "has_no_tag_residue"

    def reason_to_drop(self, prompt: str) -> str:
        start = prompt.lstrip()
        tag = LEADING_TAG.match(start)
        if tag:
            return f"begins with the tag {tag.group()}"
        return f"begins with “{start[0]}”" if start[:1] and start[0] in ":;,.-\u2013\u2014|]" else ""


@dataclass(frozen=True)
class WordLimits:
    """The number of words is within these limits. 0 means no limit."""

    name: ClassVar[str] = "word_limits"
    minimum: int = 0
    maximum: int = 0

    def __post_init__(self) -> None:
        if self.minimum < 0 or self.maximum < 0 or 0 < self.maximum < self.minimum:
            raise SettingsRefused(
                "word_limits: minimum and maximum must be from 0, and minimum not above maximum. Correct them."
            )

    def reason_to_drop(self, prompt: str) -> str:
        words = word_count(prompt)
        if words < self.minimum:
            return f"has {words} words, fewer than {self.minimum}"
        return f"has {words} words, more than {self.maximum}" if 0 < self.maximum < words else ""


@dataclass(frozen=True)
class HasNoneOf:
    """None of these strings occurs; case does not matter."""

    name: ClassVar[str] = "has_none"
    strings: tuple[str, ...]

    def reason_to_drop(self, prompt: str) -> str:
        folded = prompt.casefold()
        return next((f"has “{string}”" for string in self.strings if string.casefold() in folded), "")


@dataclass(frozen=True)
class CopiesAtMost:
    """At most this share of the text's runs of `words` words is in one of the references, such as priming texts.

    Case does not matter. A text with fewer words is one run. Clark et al. 2021, section 2.2, dropped stories that copied more than 80 %
    of a priming text, and do not say how this was measured.
    """

    name: ClassVar[str] = "copies_at_most"
    references: tuple[str, ...]
    share: float = 0.8
    words: int = 5

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.words < 1:
            raise SettingsRefused(
                "copies_at_most: share must lie between 0 and 1 and words must be at least 1. Correct them."
            )

    @cached_property
    def _runs(self) -> list[set[tuple[str, ...]]]:
        return [_runs_of_words(text, self.words) for text in self.references]

    def reason_to_drop(self, prompt: str) -> str:
        runs = _runs_of_words(prompt, self.words)
        share = max((len(runs & of_reference) / len(runs) for of_reference in self._runs if runs), default=0)
        return f"copies {share:.0%} of a reference text, more than {self.share:.0%}" if share > self.share else ""


PromptFilter = (
    BeginsWithTag
    | BeginsWith
    | HasNoQuestion
    | EndsInPunctuation
    | HasNoTagResidue
    | WordLimits
    | HasNoneOf
    | CopiesAtMost
)
FILTERS: dict[str, type[Any]] = {kind.name: kind for kind in PromptFilter.__args__}


@dataclass(frozen=True)
class FilteredPrompt:
    """The result for one prompt: it is kept, or dropped by the first filter that it fails."""

    key: str
    passes: bool
    filter: str = ""
    reason: str = ""


def per_prompt_filter_results(
    prompts: Iterable[tuple[str, str]], filters: Iterable[PromptFilter]
) -> tuple[FilteredPrompt, ...]:
    """Return for each (key, text), in order, whether it is kept, or which filter drops it and why."""
    filters = tuple(filters)
    return tuple(_filtered(key, text, filters) for key, text in prompts)


def _filtered(key: str, text: str, filters: Iterable[PromptFilter]) -> FilteredPrompt:
    for prompt_filter in filters:
        reason = prompt_filter.reason_to_drop(text)
        if reason:
            return FilteredPrompt(key, False, prompt_filter.name, reason)
    return FilteredPrompt(key, True)


def _runs_of_words(text: str, length: int) -> set[tuple[str, ...]]:
    words = text.casefold().split()
    return {tuple(words[i : i + length]) for i in range(max(len(words) - length + 1, 1 if words else 0))}


def parse_prompt_filter(value: object, error_prefix: str) -> PromptFilter:
    """Return the filter of a JSON object, which has its name as "filter" and its parameters beside it."""
    if not isinstance(value, dict):
        raise SettingsRefused(f"{error_prefix}: must be an object with the name of a filter.")
    parts = dict(value)
    name = parts.pop("filter", None)
    if not isinstance(name, str) or name not in FILTERS:
        raise SettingsRefused(f"{error_prefix}: filter must be one of {', '.join(FILTERS)}, not {name!r}.")
    declared: PromptFilter = parse_record(FILTERS[name], parts, f"{error_prefix} {name}")
    return declared


def _parse_filters(parts: Mapping[str, Any], name: str) -> tuple[PromptFilter, ...]:
    filters = parts.get(name, [])
    if not isinstance(filters, list):
        raise SettingsRefused(f"{name}: must be a list of filters.")
    return tuple(parse_prompt_filter(one, f"{name}[{number}]") for number, one in enumerate(filters, 1))


def filter_as_json(prompt_filter: PromptFilter) -> dict[str, Any]:
    """Return the JSON object of a filter. `parse_prompt_filter` of it gives an equal filter."""
    return {"filter": prompt_filter.name, **tuples_to_lists(asdict(prompt_filter))}


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
    output_filters: tuple[PromptFilter, ...] = ()

    @classmethod
    def from_json(cls, settings: object) -> "Preparation":
        """Return the settings from the JSON of a person or a file. Raise SettingsRefused, which names the fault."""
        known = {"prompt_filters", "output_filters", "normalisation", "length"}
        parts = validate_settings_object(settings, "settings", known)
        return cls(
            _parse_filters(parts, "prompt_filters"),
            parse_record(Normalisation, parts.get("normalisation", {}), "normalisation"),
            parse_record(LengthControl, parts.get("length", {}), "length"),
            _parse_filters(parts, "output_filters"),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON for the design. `from_json` of it gives equal settings."""
        parts = {
            "prompt_filters": [filter_as_json(prompt_filter) for prompt_filter in self.prompt_filters],
            "normalisation": asdict(self.normalisation),
            "length": tuples_to_lists(asdict(self.length)),
        }
        # Designs without them keep their hash.
        outputs = [filter_as_json(output_filter) for output_filter in self.output_filters]
        return parts | ({"output_filters": outputs} if outputs else {})


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
