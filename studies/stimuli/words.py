"""The words of a text in any script. No dictionary and no model is loaded."""

import re
from collections import Counter
from functools import lru_cache
from unicodedata import category, normalize

# Scripts that put no spaces between words: Thai, Lao, Burmese, Khmer, Kana with Bopomofo, and Chinese characters.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")
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
    return "unspaced" if UNSPACED_CHARACTER.match(character) else "letter"


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


def share_of_words_kept(original: str, rewritten: str) -> float | None:
    """Return the share of a text's words that a rewrite has too, each as often as both have it. None for a text without words.

    >>> share_of_words_kept("the cat sat on the mat", "The cat slept on a mat.")
    0.6666666666666666
    """
    before = Counter(words(original))
    return (before & Counter(words(rewritten))).total() / before.total() if before else None
