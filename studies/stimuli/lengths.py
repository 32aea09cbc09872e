"""Shorten texts at sentence ends, so that length is not a proxy for quality. Never return an empty text without a warning."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from .settings_records import SettingsRefused
from .texts import is_blank, word_starts

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
