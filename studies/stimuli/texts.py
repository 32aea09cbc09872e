"""The rules for every text from users, files and programs: allowed characters, and length."""

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from math import isfinite
from typing import Any

from studies.language import gettext, gettext_noop

LANGUAGE_TAG = r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*"  # the form of BCP 47, in enough characters for a page
READING_SPEED = 240  # words per minute, as printed for the story study

_LINE_BREAK = re.compile(r"\r\n?")
# Cc without \t and \n; Cs. PostgreSQL refuses NUL and surrogates with its own error. No browser shows the other controls.
_REFUSED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ZERO_WIDTH_CATEGORIES = frozenset({"Cf", "Mn", "Me", "Zs", "Zl", "Zp", "Cc"})
_LETTERS_OF_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # in the category of letters, but invisible

# Scripts without spaces between words, by the number of letters that count as a word.
_IDEOGRAPHIC = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
_UNSPACED = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_WIDE_PUNCTUATION = "\u3000-\u3004\u3008-\u3020\u3030\u303d\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
_WORD = re.compile(rf"[{_IDEOGRAPHIC}]|[{_UNSPACED}]{{1,4}}|[^\s{_IDEOGRAPHIC}{_UNSPACED}{_WIDE_PUNCTUATION}]+")
_HAS_UNSPACED_SCRIPT = re.compile(rf"[{_IDEOGRAPHIC}{_UNSPACED}{_WIDE_PUNCTUATION}]")


def advice_on_unknown_name(name: str, known: Iterable[str]) -> str:
    """Return what to do about a name that is not known: write the one that it resembles, or remove it."""
    by_letters = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_letters, 1, cutoff=0.75)
    return f"Write “{by_letters[close[0]]}” instead, or remove it." if close else "Remove it."


class TextRefused(ValueError):
    """A text that cannot be stored. The message tells a person why."""


# Translators: what a person has typed, in "text: contains a control character …"
TYPED_TEXT = gettext_noop("text")


def clean_text(
    value: object, *, is_required: bool = False, max_length: int | None = None, field: str = TYPED_TEXT
) -> str:
    """Return the text with line breaks as \\n. Raise TextRefused, which names the field and the character's position.

    Nothing else changes: annotators also judge blanks, typography and direction marks.
    `max_length` counts code points, like the database and (nearly) like browsers' `maxlength`.
    """
    if not isinstance(value, str):
        raise TextRefused(f"{field}: must be a text, not {_type_label(value)}.")
    text = _LINE_BREAK.sub("\n", value)
    refused = _REFUSED.search(text)
    if refused:
        character = refused.group()
        values = {"field": gettext(field), "code": f"U+{ord(character):04X}", "position": refused.start() + 1}
        raise TextRefused(_refusal(character) % values)
    if is_required and is_blank(text):
        raise TextRefused(f"{field}: must not be empty. Enter a text.")
    if max_length is not None and len(text) > max_length:
        raise TextRefused(f"{field}: has {len(text):,} characters. At most {max_length:,} are allowed. Shorten it.")
    return text


def clean_name(value: object, *, max_length: int = 200, field: str = "name") -> str:
    """Return a name or key: one line, in NFC, without outer blanks and without invisible or direction characters."""
    if isinstance(value, str) and value.isascii() and value.isprintable() and 0 < len(value.strip()) <= max_length:
        return value.strip()  # most names: the rules below cannot refuse or change it
    text = unicodedata.normalize("NFC", clean_text(value, is_required=True, field=field)).strip()
    for number, character in enumerate(text, 1):
        if unicodedata.category(character) in {"Cf", "Zl", "Zp", "Cc"} and character not in "\u200c\u200d":
            raise TextRefused(
                f"{field}: contains an invisible character (U+{ord(character):04X}) at character {number}. Remove it."
            )
    if len(text) > max_length:
        raise TextRefused(f"{field}: has {len(text):,} characters. At most {max_length:,} are allowed. Shorten it.")
    return text


def name_key(name: str) -> str:
    """Return a key that is equal for names that look the same to a person (case, width, composition, blanks)."""
    if name.isascii():
        return " ".join(name.casefold().split())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = "".join(character for character in folded if unicodedata.category(character) != "Cf")
    return " ".join(visible.split())


# What programs write where a value is missing. Texts keep these words; a name that is one of them is a mistake.
MISSING_WORDS = frozenset({"nan", "none", "null", "undefined", "n/a", "#n/a", "<na>", "nat"})


def key_from_text(text: str) -> str:
    """Return a key that shows how a text begins, and that no other text has.

    >>> key_from_text("What is the capital of France?")
    'what-is-the-capital-of-france-115049'
    """
    words = re.sub(r"[\W_]+", "-", text.strip().casefold())[:40].strip("-")
    return f"{words or 'prompt'}-{hashlib.sha256(text.strip().encode()).hexdigest()[:6]}"


def is_missing_word(text: str) -> bool:
    return text.strip().casefold() in MISSING_WORDS


def lookalikes(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that differ only in case, width, blanks or composition.

    >>> lookalikes(["W1", "w1", "w2", "w 2", "x"])
    [['W1', 'w1'], ['w2', 'w 2']]
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault("".join(unicodedata.normalize("NFKC", name_key(name)).split()), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


_SHORTENED = re.compile(r"[0-9](?:[.,][0-9]+)?E\+[0-9]{2,3}", re.IGNORECASE)


def is_shortened_number(text: str) -> bool:
    """Return whether a spreadsheet wrote a long number in this form, which has lost digits."""
    return bool(_SHORTENED.fullmatch(text.strip()))


def is_blank(text: str) -> bool:
    """Return whether the text is invisible: only blanks, zero-width characters, or marks without a letter."""
    return all(
        character in _LETTERS_OF_BLANKS or unicodedata.category(character) in _ZERO_WIDTH_CATEGORIES
        for character in text
    )


def word_starts(text: str) -> Iterator[int]:
    """Yield the position of each word, counted as in `word_count`."""
    return (word.start() for word in _WORD.finditer(text))


def word_count(text: str) -> int:
    """Return the number of words in a text.

    Blanks separate words. Scripts without blanks are counted as in word processors: an ideograph or kana is a word. In
    Thai, Lao, Burmese and Khmer every four letters or marks are a word. Wide punctuation is not a word.
    """
    if text.isascii() or not _HAS_UNSPACED_SCRIPT.search(text):
        return len(text.split())
    return sum(1 for _ in _WORD.finditer(text))


def reading_minutes(words: float, words_per_minute: float = READING_SPEED) -> float:
    """Return the minutes that it takes to read this many words at the given speed."""
    if not (math.isfinite(words) and words >= 0):
        raise ValueError(f"words: must be a number from 0, not {words}.")
    if not (math.isfinite(words_per_minute) and words_per_minute > 0):
        raise ValueError(f"words_per_minute: must be a number above 0, not {words_per_minute}.")
    return words / words_per_minute


def _refusal(character: str) -> str:
    number = ord(character)
    if number == 0:
        # Translators: %(field)s is what was typed into, such as: text
        return gettext("%(field)s: contains a NUL character at character %(position)s. Remove it.")
    if 0xD800 <= number <= 0xDFFF:
        return gettext(
            "%(field)s: contains half of a surrogate pair (%(code)s), which is not a character, at character %(position)s. Remove it."
        )
    return gettext("%(field)s: contains a control character (%(code)s) at character %(position)s. Remove it.")


def _type_label(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return {"list": "a list", "dict": "an object", "bytes": "bytes"}.get(type(value).__name__, type(value).__name__)


# Read JSON from outside. Refuse values that a supported database cannot store, or would store as another value.
#
# ``loads`` reads the bodies of requests, bundles, and lines of tables.


MAX_DEPTH = 32
MAX_DIGITS = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
# Possible spellings of a NUL or half of a surrogate pair, literal or escaped.
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])|[" + "\ud800-\udfff]")


class BadJson(ValueError):
    """JSON that is not accepted. The message has no subject, because the caller knows it: “contains NaN, which is not a number.”

    ``position`` is the fault's position in the value, such as ``rows[3].text``. It is empty for the whole value. ``is_cut_off``: the
    text ends before the value does.
    """

    def __init__(self, text: str, position: str = "", *, is_cut_off: bool = False):
        self.text, self.position = _printable(text), _printable(position)[:200]
        self.is_cut_off = is_cut_off
        super().__init__(f"{self.text} (at {self.position})." if self.position else f"{self.text}.")


@dataclass(frozen=True, slots=True)
class _Fault:
    """A placeholder for a refused value, until its position is known."""

    text: str


def loads(data: bytes | str) -> Any:
    """Return the value. Bytes are UTF-8; a byte order mark is skipped. Raise BadJson, which names the fault and its position."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise BadJson(f"is not UTF-8 (byte {error.start + 1})") from None
    if not text.strip():
        raise BadJson("is empty")
    faults: list[_Fault] = []

    def fault(text: str) -> _Fault:
        faults.append(_Fault(text))
        return faults[-1]

    def unique(pairs: list[tuple[str, Any]]) -> Any:
        values = dict(pairs)
        if len(values) == len(pairs):
            return values
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # None: false
        return fault(f"has the key “{repeated[:80]}” more than once")

    def finite(digits: str) -> Any:
        number = float(digits)
        return number if isfinite(number) else fault(f"contains {digits[:40]}, which is too large for a number")

    def short(digits: str) -> Any:
        if len(digits) <= MAX_DIGITS:
            return int(digits)
        return fault(f"contains an integer of {len(digits):,} digits; write it as a text")

    def constant(name: str) -> Any:
        return fault(f"contains {name}, which is not a number")

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=constant, parse_float=finite, parse_int=short)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text.strip() else ""
        is_cut_off = error.pos >= len(text.rstrip())
        raise BadJson(f"is not JSON at {line}character {error.colno}: {error.msg}", is_cut_off=is_cut_off) from None
    except RecursionError:
        raise BadJson(f"is nested more than {MAX_DEPTH} levels deep") from None
    # The number of brackets is cheap and never below the depth: check only values that look deep or unusual.
    if faults or text.count("{") + text.count("[") > MAX_DEPTH or _SUSPECT.search(text):
        for position, fault_text in _faults_in(value):
            raise BadJson(fault_text, position)
    return value


def _faults_in(value: Any) -> Iterator[tuple[str, str]]:
    """Yield (place, fault) in the order of the text, without recursion."""
    waiting: list[tuple[str, Any, int]] = [("", value, 1)]
    while waiting:
        position, element, depth = waiting.pop()
        if isinstance(element, str):
            if character_fault := _wrong_character(element):
                yield position, character_fault
        elif isinstance(element, _Fault):
            yield position, element.text
        elif isinstance(element, dict | list):
            if depth > MAX_DEPTH:
                yield position, f"is nested more than {MAX_DEPTH} levels deep"
                continue
            if isinstance(element, dict):
                for key in element:
                    if character_fault := _wrong_character(key):
                        yield position, f"has a key that {character_fault}"
                children = [
                    (f"{position}.{key[:80]}" if position else key[:80], child) for key, child in element.items()
                ]
            else:
                children = [(f"{position}[{number}]", child) for number, child in enumerate(element)]
            waiting += [(where, child, depth + 1) for where, child in reversed(children)]


def _wrong_character(text: str) -> str:
    if "\0" in text:
        return "contains a NUL character (\\u0000)"
    half = _SURROGATE.search(text)
    return f"contains half of a surrogate pair (\\u{ord(half.group()):04x}), which is not a character" if half else ""


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


# Read settings from JSON into frozen records, and write them back as plain JSON for the design.


class SettingsRefused(ValueError):
    """Invalid settings. The message names the wrong part."""


def parse_record(record_class: type[Any], value: object, error_prefix: str) -> Any:
    """Return a record of this class from a JSON object. SettingsRefused names the wrong part and its allowed values."""
    types = {record_field.name: record_field.type for record_field in fields(record_class)}
    parts = validate_settings_object(value, error_prefix, set(types))
    needed = [
        record_field.name
        for record_field in fields(record_class)
        if record_field.default is MISSING and record_field.default_factory is MISSING
    ]
    if missing := [name for name in needed if name not in parts]:
        raise SettingsRefused(f"{error_prefix}: {missing[0]} is missing. Add it.")
    return record_class(**{name: _typed(part, types[name], f"{error_prefix}.{name}") for name, part in parts.items()})


def validate_settings_object(value: object, error_prefix: str, allowed_names: set[str]) -> dict[str, Any]:
    """Return the value if it is an object with only these names."""
    if not isinstance(value, dict):
        raise SettingsRefused(f"{error_prefix}: must be an object with names and values.")
    unknown = sorted(str(name) for name in value if name not in allowed_names)
    if unknown:
        raise SettingsRefused(
            f"{error_prefix}: unknown names {', '.join(unknown)}. Remove them. Allowed are: {', '.join(sorted(allowed_names)) or 'none'}."
        )
    return value


def _typed(value: object, kind: Any, where: str) -> Any:
    if kind is bool and isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind == tuple[str, ...] and isinstance(value, list) and all(isinstance(part, str) and part for part in value):
        return tuple(value)
    labels = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}
    raise SettingsRefused(f"{where}: must be {labels.get(kind, 'a list of texts')}, not {value!r:.40}.")


def tuples_to_lists(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts with tuples as lists, as in JSON."""
    return {name: list(part) if isinstance(part, tuple) else part for name, part in parts.items()}
