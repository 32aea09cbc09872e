"""Named filters with parameters that select a study's prompts. Each dropped prompt has a reason."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from .lengths import CLOSING, END_MARKS
from .settings_records import SettingsRefused, parse_record, tuples_to_lists
from .texts import word_count

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

    The paper on untrained evaluators dropped stories that copied more than 80 % of a priming text. It does not say how this
    was measured.
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

    def reason_to_drop(self, prompt: str) -> str:
        runs = _runs_of_words(prompt, self.words)
        share = max(
            (len(runs & _runs_of_words(text, self.words)) / len(runs) for text in self.references if runs), default=0
        )
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


def filter_as_json(prompt_filter: PromptFilter) -> dict[str, Any]:
    """Return the JSON object of a filter. `parse_prompt_filter` of it gives an equal filter."""
    return {"filter": prompt_filter.name, **tuples_to_lists(asdict(prompt_filter))}
