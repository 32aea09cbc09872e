"""JSON from outside: what one database or the other could not keep, or would keep as something else, is refused.

Bodies of requests, bundles and lines of tables are read by the one function here.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

MAX_DEPTH = 32
MAX_DIGITS = 100
_SURROGATE = re.compile("[\ud800-\udfff]")
# What may stand for a NUL or half of a pair, written out or escaped.
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])|[" + "\ud800-\udfff]")


class BadJson(ValueError):
    """No JSON that is accepted here. The message lacks its subject, which the caller knows: “holds NaN, which is no number.”

    ``place`` is where it stands within the value, such as ``rows[3].text``; empty where it is the whole.
    """

    def __init__(self, text: str, place: str = ""):
        self.text, self.place = _printable(text), _printable(place)[:200]
        super().__init__(f"{self.text} (at {self.place})." if self.place else f"{self.text}.")


@dataclass(frozen=True, slots=True)
class _Fault:
    """Stands in the value for what is refused, until it is known where that is."""

    text: str


def loads(data: bytes | str) -> Any:
    """The value. Bytes are UTF-8, a byte order mark is passed over. Raises BadJson, naming what is wrong and where."""
    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise BadJson(f"is not UTF-8 (byte {error.start + 1})") from None
    if not text.strip():
        raise BadJson("is empty")
    faults: list[_Fault] = []

    def fault(words: str) -> _Fault:
        faults.append(_Fault(words))
        return faults[-1]

    def unique(pairs: list[tuple[str, Any]]) -> Any:
        values = dict(pairs)
        if len(values) == len(pairs):
            return values
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        return fault(f"has the key “{twice[:80]}” more than once")

    def finite(digits: str) -> Any:
        number = float(digits)
        return number if isfinite(number) else fault(f"holds {digits[:40]}, which is too large for a number")

    def short(digits: str) -> Any:
        if len(digits) <= MAX_DIGITS:
            return int(digits)
        return fault(f"holds an integer of {len(digits):,} digits; write it as a text")

    def constant(name: str) -> Any:
        return fault(f"holds {name}, which is no number")

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=constant, parse_float=finite, parse_int=short)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text.strip() else ""
        raise BadJson(f"is not JSON at {line}character {error.colno}: {error.msg}") from None
    except RecursionError:
        raise BadJson(f"is nested more than {MAX_DEPTH} levels deep") from None
    # Counting brackets is cheap and never too low: only what looks deep or odd is walked through.
    if faults or text.count("{") + text.count("[") > MAX_DEPTH or _SUSPECT.search(text):
        for place, words in _faults_in(value):
            raise BadJson(words, place)
    return value


def _faults_in(value: Any) -> Iterator[tuple[str, str]]:
    """(place, what is wrong), in the order of the text. Walks without recursion."""
    waiting: list[tuple[str, Any, int]] = [("", value, 1)]
    while waiting:
        place, each, depth = waiting.pop()
        if isinstance(each, str):
            if words := _wrong_character(each):
                yield place, words
        elif isinstance(each, _Fault):
            yield place, each.text
        elif isinstance(each, dict | list):
            if depth > MAX_DEPTH:
                yield place, f"is nested more than {MAX_DEPTH} levels deep"
                continue
            if isinstance(each, dict):
                for key in each:
                    if words := _wrong_character(key):
                        yield place, f"has a key that {words}"
                children = [(f"{place}.{key[:80]}" if place else key[:80], one) for key, one in each.items()]
            else:
                children = [(f"{place}[{number}]", one) for number, one in enumerate(each)]
            waiting += [(where, one, depth + 1) for where, one in reversed(children)]


def _wrong_character(text: str) -> str:
    if "\0" in text:
        return "holds a NUL character (\\u0000)"
    half = _SURROGATE.search(text)
    return f"holds half of a surrogate pair (\\u{ord(half.group()):04x}), which is no character" if half else ""


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
