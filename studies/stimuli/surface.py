"""Find surface differences that identify a system: marks that readers notice without judging the content.

If only one system's texts have a mark, annotators can recognise the system, and their opinion of the mark affects their
opinion of the system. Shares and means are compared by one rule:

    order the systems by the value and split them at the widest gap. Warn if three conditions are met: the gap is wide
    enough (MIN_SHARE_GAP, or MIN_RATIO for lengths), both sides have at least MIN_TEXTS texts, and the pooled sides differ
    by MIN_STATISTIC standard errors. Shares use two proportions with pooled variance, and means use Welch's statistic.

The split at the widest gap names only the exceptional system, not every system that differs from it. MIN_STATISTIC is
high because the gap is chosen after seeing the data, among about twenty marks.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import entry_points
from itertools import accumulate
from math import inf, sqrt

from .normalising import SENTENCE_END_RULES
from .texts import is_blank, word_count

MIN_TEXTS = 20
MIN_SHARE_GAP = 0.03
MIN_RATIO = 1.2
MIN_STATISTIC = 4.0
LONG_RUN = 20

_NON_ASCII_LETTER = re.compile(r"[^\W\d_\x00-\x7f]")
_RUN = re.compile(r"(\S)\1+")
_TOKENISED_SPACING = re.compile(r"[ ];|\([ ]")
_BLANKS_BEFORE_MARKS = re.compile(r"\S (?:,|[.!?:](?:\s|$))")
_MARKUP = re.compile(r"</?[A-Za-z][^<>]{0,200}>|<<\w|<\|\w")
_ENTITIES = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
_MARKDOWN = re.compile(
    r"(?<![*\w])\*{1,2}[^\s*][^*\n]{0,200}\*|(?<![_\w])_[^\s_][^_\n]{0,200}_(?!\w)|^#{1,6} |^```", re.MULTILINE
)
_ADDRESSES = re.compile(r"\bhttps?://|\bwww\.")
_CURLY_QUOTES = re.compile(r"[\u2018\u2019\u201c\u201d\u201e]")
_DAMAGED = re.compile("\ufffd|\u00e2\u20ac|\u00c3[\u0080-\u00bf]")
_SINGLE_BREAKS = re.compile(r"[^\n\r](?:\r\n|\n|\r)(?![\n\r])")
_BLANK_LINES = re.compile(r"\n\r?\n|\r\r")


def _bears(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.search(text) is not None


def longest_repeated_character_run(text: str) -> int:
    """Return the length of the longest run of one character other than a blank."""
    return max((len(run.group()) for run in _RUN.finditer(text)), default=min(len(text.strip()), 1))


def has_non_latin_letters(text: str) -> bool:
    """Return whether the text has a letter of a script other than Latin."""
    return any(not _is_latin(letter) for letter in set(_NON_ASCII_LETTER.findall(text)))


@lru_cache(maxsize=4096)
def _is_latin(letter: str) -> bool:
    name = unicodedata.name(letter, "")
    return "LATIN" in name or name.startswith(("FEMININE ORDINAL", "MASCULINE ORDINAL", "MODIFIER LETTER"))


def _ends_a_sentence(text: str) -> bool:
    end = len(text.rstrip())
    return any(stop >= end for stop in SENTENCE_END_RULES["whole"](text))


@dataclass(frozen=True)
class SurfaceMark:
    """A property that a text has or has not, with its description."""

    description: str
    is_present: Callable[[str], bool]


SURFACE_MARKS: dict[str, SurfaceMark] = {
    "tokeniser_quotes": SurfaceMark("tokeniser quotes, `` and ''", lambda text: "``" in text),
    "straight_quotes": SurfaceMark("straight quotes", lambda text: '"' in text),
    "curly_quotes": SurfaceMark("curly quotes", _bears(_CURLY_QUOTES)),
    "tokenised_spacing": SurfaceMark("spaces of a tokeniser, as in “ ;” and “( ”", _bears(_TOKENISED_SPACING)),
    "blanks_before_marks": SurfaceMark("blanks before commas and full stops", _bears(_BLANKS_BEFORE_MARKS)),
    "other_scripts": SurfaceMark("letters of a script other than Latin", has_non_latin_letters),
    "markup": SurfaceMark("remains of markup", _bears(_MARKUP)),
    "entities": SurfaceMark("character entities, as in &amp;", _bears(_ENTITIES)),
    "markdown": SurfaceMark("Markdown signs, as in *this*", _bears(_MARKDOWN)),
    "addresses": SurfaceMark("web addresses", _bears(_ADDRESSES)),
    "damaged_encoding": SurfaceMark("signs of a damaged encoding", _bears(_DAMAGED)),
    "single_line_breaks": SurfaceMark("single line breaks", _bears(_SINGLE_BREAKS)),
    "blank_lines": SurfaceMark("blank lines", _bears(_BLANK_LINES)),
    "carriage_returns": SurfaceMark("carriage returns", lambda text: "\r" in text),
    "edge_blanks": SurfaceMark("blanks at the start or end", lambda text: text != text.strip()),
    "capitals_only": SurfaceMark("capitals only", lambda text: text.isupper() and len(text) >= LONG_RUN),
    "long_run": SurfaceMark(
        f"a run of {LONG_RUN} equal characters", lambda text: longest_repeated_character_run(text) >= LONG_RUN
    ),
    "cut_off": SurfaceMark("an end within a sentence", lambda text: not is_blank(text) and not _ends_a_sentence(text)),
    "no_text": SurfaceMark("no text", is_blank),
}
LENGTHS: dict[str, Callable[[str], int]] = {"words": word_count, "characters": len}


@dataclass
class SurfaceProfile:
    """Counts over one system's texts: the number with each mark, and sums of the lengths."""

    n: int = 0
    mark_counts: Counter[str] = field(default_factory=Counter)
    total: Counter[str] = field(default_factory=Counter)
    length_square_sums: Counter[str] = field(default_factory=Counter)

    def share(self, mark: str) -> float | None:
        return self.mark_counts[mark] / self.n if self.n else None

    def mean(self, length: str) -> float | None:
        return self.total[length] / self.n if self.n else None

    def add(self, text: str) -> None:
        self.n += 1
        self.mark_counts.update(key for key, mark in SURFACE_MARKS.items() if mark.is_present(text))
        for length, measure in LENGTHS.items():
            value = measure(text)
            self.total[length] += value
            self.length_square_sums[length] += value * value


@dataclass(frozen=True)
class SurfaceWarning:
    """A mark or a length in which `systems` differ: value and n on both sides, and the test statistic."""

    mark: str
    systems: tuple[str, ...]
    value: float
    others_value: float
    n: int
    others_n: int
    statistic: float
    text: str


def surface_warnings_from_profiles(profiles: Mapping[str, SurfaceProfile]) -> tuple[SurfaceWarning, ...]:
    """Return the same differences from existing profiles, which an import fills while it reads."""
    profiles = {name: profile for name, profile in profiles.items() if profile.n}
    if len(profiles) < 2:
        return ()
    warnings = [_share_warning(mark, profiles) for mark in SURFACE_MARKS] + [
        _length_warning(name, profiles) for name in LENGTHS
    ]
    return tuple(
        sorted(
            (warning for warning in warnings if warning), key=lambda warning: (-abs(warning.statistic), warning.mark)
        )
    )


def _share_warning(mark: str, profiles: Mapping[str, SurfaceProfile]) -> SurfaceWarning | None:
    low, high, gap = _split(
        {name: profile.mark_counts[mark] / profile.n for name, profile in profiles.items()}, lambda a, b: b - a
    )
    if gap < MIN_SHARE_GAP:
        return None
    systems, others = _the_fewer(high, low)
    n, others_n = (sum(profiles[name].n for name in side) for side in (systems, others))
    value, others_value = (
        sum(profiles[name].mark_counts[mark] for name in side) / count
        for side, count in ((systems, n), (others, others_n))
    )
    pooled = (value * n + others_value * others_n) / (n + others_n)
    statistic = _ratio(value - others_value, sqrt(pooled * (1 - pooled) * (1 / n + 1 / others_n)))
    text = f"{SURFACE_MARKS[mark].description}: in {value:.1%} of the texts of {_names(systems)}, in {others_value:.1%} of {_of_others(others)}."
    return _warning(mark, systems, value, others_value, n, others_n, statistic, text)


def _of_others(others: tuple[str, ...]) -> str:
    return f"those of {_names(others)}" if len(others) == 1 else "the others'"


def _length_warning(length: str, profiles: Mapping[str, SurfaceProfile]) -> SurfaceWarning | None:
    means = {name: profile.total[length] / profile.n for name, profile in profiles.items()}
    low, high, ratio = _split(means, lambda a, b: b / a if a else (inf if b else 1.0))
    if ratio < MIN_RATIO:
        return None
    systems, others = _the_fewer(high, low)
    (value, n, error), (others_value, others_n, others_error) = (
        _pooled_mean(length, [profiles[name] for name in side]) for side in (systems, others)
    )
    statistic = _ratio(value - others_value, sqrt(error + others_error))
    text = f"{length}: {value:.0f} on average in the texts of {_names(systems)}, {others_value:.0f} in {_of_others(others)}."
    return _warning(length, systems, value, others_value, n, others_n, statistic, text)


def _warning(
    mark: str,
    systems: tuple[str, ...],
    value: float,
    others_value: float,
    n: int,
    others_n: int,
    statistic: float,
    text: str,
) -> SurfaceWarning | None:
    if min(n, others_n) < MIN_TEXTS or abs(statistic) < MIN_STATISTIC:
        return None
    return SurfaceWarning(mark, systems, value, others_value, n, others_n, statistic, text)


def _split(
    values: Mapping[str, float], distance: Callable[[float, float], float]
) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    order = sorted(values, key=lambda name: (values[name], name))
    gaps = [distance(values[a], values[b]) for a, b in zip(order, order[1:], strict=False)]
    widest = max(range(len(gaps)), key=lambda i: gaps[i])
    return tuple(order[: widest + 1]), tuple(order[widest + 1 :]), gaps[widest]


def _the_fewer(high: tuple[str, ...], low: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    # For two systems or two halves, name the side that has the mark.
    return (high, low) if len(high) <= len(low) else (low, high)


def _pooled_mean(length: str, profiles: list[SurfaceProfile]) -> tuple[float, int, float]:
    n = sum(profile.n for profile in profiles)
    mean = sum(profile.total[length] for profile in profiles) / n
    squares = sum(profile.length_square_sums[length] for profile in profiles)
    variance = max(squares - n * mean * mean, 0.0) / (n - 1) if n > 1 else 0.0
    return mean, n, variance / n


def _ratio(difference: float, error: float) -> float:
    if error:
        return difference / error
    return 0.0 if not difference else inf if difference > 0 else -inf


def _names(systems: tuple[str, ...]) -> str:
    return " and ".join(sorted(systems))


# Repeated prompts.


@dataclass(frozen=True)
class RepeatedPrompt:
    """A prompt that one batch contains several times."""

    batch: str
    prompt: str
    times: int


def find_repeated_prompts(batches: Iterable[tuple[str, Iterable[str]]]) -> tuple[RepeatedPrompt, ...]:
    """Return every prompt that one batch contains more than once, from (batch, its prompts)."""
    return tuple(
        RepeatedPrompt(batch, prompt, times)
        for batch, prompts in batches
        for prompt, times in Counter(prompts).items()
        if times > 1
    )


# What a researcher should see before people read the texts. Each is a finding, and changes nothing.


_REFUSAL = re.compile(
    r"\s*(?:i['’]?m (?:very |so )?sorry|sorry, (?:but|i)\b|i (?:cannot|can['’]t|am unable to|am not able to|won['’]t be able to)\b|as an ai\b"
    r"|i apologi[sz]e, but)",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,24}\b")
_COUNTRY_CODE = re.compile(r"\+[1-9][0-9 (]")
# Addresses of examples belong to nobody.
_NOBODY = re.compile(r"@(?:[\w-]+\.)*example\.", re.IGNORECASE)
MOST_WORDS_OF_A_REFUSAL = 60
ODD_RATIO = 10


def is_refusal(text: str) -> bool:
    """Return whether a text begins as models do that refuse to answer, and is as short as these answers are.

    >>> is_refusal("I'm sorry, but I can't help with that."), is_refusal("I can swim.")
    (True, False)
    """
    return bool(_REFUSAL.match(text)) and word_count(text[:2000]) <= MOST_WORDS_OF_A_REFUSAL


def has_email_address(text: str) -> bool:
    """Return whether a text contains an e-mail address, other than one of an example.

    >>> has_email_address("Write to ann@uni.edu."), has_email_address("ann@example.org"), has_email_address("@ann at 5@6")
    (True, False, False)
    """
    return "@" in text and any(not _NOBODY.search(found[0]) for found in _EMAIL.finditer(text))


@cache
def _personal_data() -> dict[str, Callable[[str], bool]]:
    added = {found.name: found.load() for found in entry_points(group="heval.personal_data")}
    return {"e-mail addresses": has_email_address, "telephone numbers": has_telephone_number} | added


def has_telephone_number(text: str) -> bool:
    """Return whether a text contains a telephone number in the international form. Other forms are too like other numbers.

    >>> has_telephone_number("Call +49 30 901820."), has_telephone_number("1 + 49 = 50"), has_telephone_number("030 901820")
    (True, False, False)
    """
    if not _COUNTRY_CODE.search(text):
        return False
    from phonenumbers import PhoneNumberMatcher

    return PhoneNumberMatcher(text, None).has_next()


def personal_data_in(text: str) -> list[str]:
    """Return what personal data a text contains. The entry points “heval.personal_data” add kinds: a noun, and a function of a text."""
    return [noun for noun, finds in _personal_data().items() if finds(text)]


def odd_lengths(texts_by_words: Counter[int]) -> tuple[int, int, int]:
    """Return the median number of words, and how many texts have less than a tenth or more than ten times of it.

    >>> odd_lengths(Counter([20] * 30 + [1, 900]))
    (20, 1, 1)
    """
    n_texts = texts_by_words.total()
    if n_texts < MIN_TEXTS:
        return 0, 0, 0
    lengths = sorted(texts_by_words)
    at_most = accumulate(texts_by_words[n] for n in lengths)
    median = next(n for n, n_shorter in zip(lengths, at_most, strict=True) if n_shorter > n_texts // 2)
    short = sum(texts_by_words[n] for n in lengths if ODD_RATIO * n < median)
    return median, short, sum(texts_by_words[n] for n in lengths if n > ODD_RATIO * median)
