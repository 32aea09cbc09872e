"""The words of a text in any script. No dictionary and no model is loaded."""

import re
from functools import lru_cache
from unicodedata import category, normalize

# Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Kana with Bopomofo, and Chinese characters.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
# A text with a larger share of such letters is split into characters. English that quotes a name in Chinese is not.
UNSPACED_SHARE = 0.1
# English with some names and loanwords has a larger share of letters without accents; other languages that have accents do not.
ENGLISH_SHARE = 0.99
# The same where the language is declared as English: a declaration for a text in another script is about its prompt.
DECLARED_ENGLISH_SHARE = 0.5
_JOINERS = "\u200c\u200d"


@lru_cache(maxsize=20_000)
def _kind(character: str) -> str:
    """Return what a character is to words: "letter" (or digit), "unspaced", "mark", "joiner", or nothing if it ends a word."""
    group = category(character)
    if character in _JOINERS:
        return "joiner"
    # Selectors of the shape of an emoji are marks by their category.
    if group in ("Mn", "Mc") and not "\ufe00" <= character <= "\ufe0f":
        return "mark"
    if group[0] not in "LN":
        return ""
    return "unspaced" if _UNSPACED_CHARACTER.match(character) else "letter"


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation: letters and digits of all scripts, with their marks.

    In a script that puts no spaces between words, each character counts as a word.
    """
    found: list[str] = []
    is_open, takes_marks = False, False
    for character in normalize("NFC", text.casefold()):
        kind = _kind(character)
        if kind == "letter" and is_open or kind == "mark" and takes_marks:
            found[-1] += character
        elif kind in ("letter", "unspaced"):
            found.append(character)
        if kind != "joiner":
            is_open = kind == "letter" or (kind == "mark" and is_open)
            takes_marks = bool(kind) and (kind != "mark" or takes_marks)
    return found


def is_unspaced(text: str) -> bool:
    """Return whether a text is written without spaces between words, as Chinese, Japanese and Thai are."""
    if text.isascii():
        return False
    n_letters = sum(map(str.isalpha, text))
    return n_letters > 0 and len(_UNSPACED_CHARACTER.findall(text)) >= UNSPACED_SHARE * n_letters


def spaced(text: str) -> str:
    """Return the text with spaces around each character of a script that has none between words."""
    return _UNSPACED_CHARACTER.sub(r" \g<0> ", text)


def is_english(text: str, language: str = "") -> bool:
    """Return whether the words of a text are those of English, by its declared language or else by its letters."""
    declared = language.lower().partition("-")[0]
    if declared not in ("", "en"):
        return False
    if text.isascii():
        return True
    letters = [character for character in text if character.isalpha()]
    least = DECLARED_ENGLISH_SHARE if declared else ENGLISH_SHARE
    return sum(map(str.isascii, letters)) >= least * len(letters)
