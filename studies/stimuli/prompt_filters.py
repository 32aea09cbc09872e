"""Which prompts a study takes: small named filters with parameters; each prompt dropped is dropped with a reason."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from .lengths import CLOSING, END_MARKS
from .settings_records import SettingsRefused, parse_record, tuples_to_lists
from .texts import word_count

# Blanks are never given back: of a bracket with ten thousand of them each division would be tried.
LEADING_TAG = re.compile(r"\s*+[\[(]\s*+([^\s\[\]()][^\[\]()]{0,39}?)\s*+[\])]")
QUESTION_MARKS = "?\uff1f\u061f\u037e\u055e\u1367"


@dataclass(frozen=True)
class BeginsWithTag:
    """The prompt begins with one of these tags in brackets, such as [WP] or [ wp ]."""

    name: ClassVar[str] = "begins_with_tag"
    tags: tuple[str, ...]

    def reason(self, prompt: str) -> str:
        found = LEADING_TAG.match(prompt)
        if found and found.group(1).casefold() in {tag.strip("[]() ").casefold() for tag in self.tags}:
            return ""
        return f"does not begin with {' or '.join(f'[{tag}]' for tag in self.tags)}"


@dataclass(frozen=True)
class BeginsWith:
    """The prompt, or a text offered as a stimulus, begins with these words; case does not matter."""

    name: ClassVar[str] = "begins_with"
    text: str

    def reason(self, prompt: str) -> str:
        begins = prompt.lstrip().casefold().startswith(self.text.casefold())
        return "" if begins else f"does not begin with “{self.text}”"


@dataclass(frozen=True)
class HasNoQuestion:
    """The prompt holds no question mark of any script: questions draw opinions where fiction is asked for."""

    name: ClassVar[str] = "has_no_question"

    def reason(self, prompt: str) -> str:
        return "has a question mark" if any(mark in prompt for mark in QUESTION_MARKS) else ""


@dataclass(frozen=True)
class EndsInPunctuation:
    """The last character, quotes and brackets passed over, ends a sentence."""

    name: ClassVar[str] = "ends_in_punctuation"
    marks: str = END_MARKS

    def reason(self, prompt: str) -> str:
        end = prompt.rstrip().rstrip(CLOSING)
        return "" if end and end[-1] in self.marks else "does not end in punctuation"


@dataclass(frozen=True)
class HasNoTagResidue:
    """No left-over of a tag in front: brackets as in "[ Horror ]", or bare punctuation as in ": Children are ..."."""

    name: ClassVar[str] = "has_no_tag_residue"

    def reason(self, prompt: str) -> str:
        start = prompt.lstrip()
        tag = LEADING_TAG.match(start)
        if tag:
            return f"begins with the tag {tag.group()}"
        return f"begins with “{start[0]}”" if start[:1] and start[0] in ":;,.-\u2013\u2014|]" else ""


@dataclass(frozen=True)
class WordLimits:
    """Neither fewer nor more words than these; 0 for no limit."""

    name: ClassVar[str] = "word_limits"
    minimum: int = 0
    maximum: int = 0

    def __post_init__(self) -> None:
        if self.minimum < 0 or self.maximum < 0 or 0 < self.maximum < self.minimum:
            raise SettingsRefused("word_limits: minimum and maximum must be from 0, and minimum not above maximum.")

    def reason(self, prompt: str) -> str:
        words = word_count(prompt)
        if words < self.minimum:
            return f"has {words} words, fewer than {self.minimum}"
        return f"has {words} words, more than {self.maximum}" if 0 < self.maximum < words else ""


@dataclass(frozen=True)
class HasNoneOf:
    """None of these strings occurs; case does not matter."""

    name: ClassVar[str] = "has_none"
    strings: tuple[str, ...]

    def reason(self, prompt: str) -> str:
        folded = prompt.casefold()
        return next((f"has “{string}”" for string in self.strings if string.casefold() in folded), "")


@dataclass(frozen=True)
class CopiesAtMost:
    """At most this share of the text's runs of `words` words stands in one of the references, such as priming texts.

    The paper on untrained evaluators dropped stories that copied more than 80 % of a priming text and does not say how
    that was measured.
    """

    name: ClassVar[str] = "copies_at_most"
    references: tuple[str, ...]
    share: float = 0.8
    words: int = 5

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.words < 1:
            raise SettingsRefused("copies_at_most: share must lie between 0 and 1 and words must be at least 1.")

    def reason(self, prompt: str) -> str:
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

# Appendix A of the paper on system-level probabilistic assessment.
SPA_PROMPT_FILTERS: tuple[PromptFilter, ...] = (BeginsWithTag(("WP",)), HasNoQuestion(), EndsInPunctuation())


@dataclass(frozen=True)
class FilteredPrompt:
    """What became of one prompt: kept, or dropped by the first filter that it fails."""

    key: str
    passes: bool
    filter: str = ""
    reason: str = ""


def filter_prompts(prompts: Iterable[tuple[str, str]], filters: Iterable[PromptFilter]) -> tuple[FilteredPrompt, ...]:
    """Each (key, text) with whether it is kept and, if not, by which filter and why; in the order given."""
    filters = tuple(filters)
    return tuple(_filtered(key, text, filters) for key, text in prompts)


def _filtered(key: str, text: str, filters: Iterable[PromptFilter]) -> FilteredPrompt:
    for each in filters:
        reason = each.reason(text)
        if reason:
            return FilteredPrompt(key, False, each.name, reason)
    return FilteredPrompt(key, True)


def _runs_of_words(text: str, length: int) -> set[tuple[str, ...]]:
    words = text.casefold().split()
    return {tuple(words[i : i + length]) for i in range(max(len(words) - length + 1, 1 if words else 0))}


def parse_prompt_filter(value: object, where: str) -> PromptFilter:
    """The filter that a JSON object declares: its name under "filter", its parameters beside it."""
    if not isinstance(value, dict):
        raise SettingsRefused(f"{where}: must be an object.")
    parts = dict(value)
    name = parts.pop("filter", None)
    if not isinstance(name, str) or name not in FILTERS:
        raise SettingsRefused(f"{where}: filter must be one of {', '.join(FILTERS)}, not {name!r}.")
    declared: PromptFilter = parse_record(FILTERS[name], parts, f"{where} {name}")
    return declared


def filter_as_json(prompt_filter: PromptFilter) -> dict[str, Any]:
    """The JSON object of a filter: `prompt_filter` of it is equal."""
    return {"filter": prompt_filter.name, **tuples_to_lists(asdict(prompt_filter))}
