"""The codebook of error marks: error categories, and severity levels with weights, written one per line."""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from studies.protocols.base.fields import Option
from studies.stimuli.texts import TextRefused, clean_text

DEFAULT_CATEGORIES = """\
accuracy | Accuracy | It says something else than it should: wrong, added, left out, or left untranslated
fluency | Fluency | Grammar, spelling, punctuation: one stumbles even without knowing what was asked
terms | Terms | A word that the field, or this text elsewhere, would not use for the thing
style | Style | Right but clumsy, or in a tone that does not fit
coherence | Coherence | It contradicts or repeats itself, or one thing does not follow from the other
task | Task | It does not do what was asked: length, form, question, audience
conventions | Conventions | Dates, numbers, units, names in a form that these readers do not use
other | Something else | An error of none of these kinds"""
DEFAULT_SEVERITIES = """\
minor | Minor | 1 | One notices it; the meaning stays and nobody is misled
major | Major | 5 | It changes or hides the meaning, misleads, or makes the text unfit for its use"""
MAX_WEIGHT = Decimal(100)
_NUMBER = re.compile(r"[0-9]{1,3}(\.[0-9]{1,4})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Category:
    key: str
    label: str
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Severity:
    key: str
    label: str
    weight: Decimal
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class Codebook:
    """The error categories and severity levels of a mark. A level is stored as its weight, so all weights differ."""

    categories: tuple[Category, ...]
    severities: tuple[Severity, ...]

    def severity_of(self, weight: Decimal) -> Severity | None:
        return next((level for level in self.severities if level.weight == weight), None)

    @property
    def category_options(self) -> tuple[Option, ...]:
        return tuple(Option(category.key, category.label) for category in self.categories)

    @property
    def severity_options(self) -> tuple[Option, ...]:
        return tuple(Option(level.key, level.label) for level in self.severities)


def parse_categories(text: object) -> tuple[Category, ...]:
    """Parse lines of ``key | label | explanation``. Raise ValueError with the line number."""
    categories = []
    for number, parts in _parse_lines(text):
        if len(parts) not in (2, 3):
            raise ValueError(
                f"Line {number}: write “key | label | explanation”, such as “style | Style | A clumsy word”."
            )
        categories.append(Category(*parts))
    return _require_distinct(categories, "error category")


def parse_severities(text: object) -> tuple[Severity, ...]:
    """Parse lines of ``key | label | weight | explanation``. Raise ValueError with the line number."""
    levels = []
    for number, parts in _parse_lines(text):
        if len(parts) not in (3, 4):
            raise ValueError(f"Line {number}: write “key | label | weight | explanation”, such as “minor | Minor | 1”.")
        levels.append(Severity(parts[0], parts[1], _parse_weight(parts[2], number), *parts[3:]))
    levels = _require_distinct(levels, "severity level")
    if len({level.weight for level in levels}) < len(levels):
        raise ValueError("Two severity levels have the same weight, so the report cannot distinguish them. Change one.")
    return levels


@lru_cache(maxsize=64)
def parse_codebook(categories: str, severities: str) -> Codebook:
    """Return the codebook of a section's settings. Raise ValueError if it cannot be read."""
    return Codebook(parse_categories(categories), parse_severities(severities))


def _parse_lines(text):
    try:
        cleaned = clean_text(text, field="This list")
    except TextRefused as refused:
        raise ValueError(str(refused)) from None
    for number, line in enumerate(cleaned.split("\n"), 1):
        if line.strip():
            parts = [part.strip() for part in line.split("|")]
            if not parts[0] or len(parts[0]) > 50 or len(parts) > 1 and not parts[1]:
                raise ValueError(f"Line {number}: write a key of at most 50 characters and a label.")
            yield number, parts


def _parse_weight(text: str, number: int) -> Decimal:
    try:
        weight = Decimal(text) if _NUMBER.fullmatch(text) else Decimal(0)
    except InvalidOperation:
        weight = Decimal(0)
    if not 0 < weight <= MAX_WEIGHT:
        raise ValueError(
            f"Line {number}: the weight must be a number above 0 and at most {MAX_WEIGHT}, not “{text[:40]}”."
        )
    return weight


def _require_distinct(entries, noun):
    if not entries:
        raise ValueError(f"Write at least one {noun}.")
    for name in ("key", "label"):
        values = [getattr(entry, name).casefold() for entry in entries]
        if repeated := next((value for value in values if values.count(value) > 1), None):
            raise ValueError(f"“{repeated}” occurs twice. Remove or rename one.")
    return tuple(entries)
