"""The rules for every text from users, files and programs: allowed characters, and length."""

import math
import re
import unicodedata
from collections.abc import Iterator

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


class TextRefused(ValueError):
    """A text that cannot be stored. The message tells a person why."""


def clean_text(value: object, *, is_required: bool = False, max_length: int | None = None, field: str = "text") -> str:
    """Return the text with line breaks as \\n. Raise TextRefused, which names the field and the character's position.

    Nothing else changes: annotators also judge blanks, typography and direction marks.
    `max_length` counts code points, like the database and (nearly) like browsers' `maxlength`.
    """
    if not isinstance(value, str):
        raise TextRefused(f"{field}: must be a text, not {_type_label(value)}.")
    text = _LINE_BREAK.sub("\n", value)
    refused = _REFUSED.search(text)
    if refused:
        raise TextRefused(f"{field}: {_refusal(refused.group())} at character {refused.start() + 1}. Remove it.")
    if is_required and is_blank(text):
        raise TextRefused(f"{field}: must not be empty. Enter a text.")
    if max_length is not None and len(text) > max_length:
        raise TextRefused(f"{field}: has {len(text):,} characters. At most {max_length:,} are allowed. Shorten it.")
    return text


def clean_name(value: object, *, max_length: int = 200, field: str = "name") -> str:
    """Return a name or key: one line, in NFC, without outer blanks and without invisible or direction characters."""
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
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = "".join(character for character in folded if unicodedata.category(character) != "Cf")
    return " ".join(visible.split())


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
        return "contains a NUL character"
    if 0xD800 <= number <= 0xDFFF:
        return f"contains half of a surrogate pair (U+{number:04X}), which is not a character,"
    return f"contains a control character (U+{number:04X})"


def _type_label(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return {"list": "a list", "dict": "an object", "bytes": "bytes"}.get(type(value).__name__, type(value).__name__)
