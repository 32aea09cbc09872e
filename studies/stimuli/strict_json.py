"""Read JSON from outside. Refuse values that a supported database cannot store, or would store as another value.

``loads`` reads the bodies of requests, bundles, and lines of tables.
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
# Possible spellings of a NUL or half of a surrogate pair, literal or escaped.
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])|[" + "\ud800-\udfff]")


class BadJson(ValueError):
    """JSON that is not accepted. The message has no subject, because the caller knows it: “contains NaN, which is not a number.”

    ``position`` is the fault's position in the value, such as ``rows[3].text``. It is empty for the whole value.
    """

    def __init__(self, text: str, position: str = ""):
        self.text, self.position = _printable(text), _printable(position)[:200]
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
        raise BadJson(f"is not JSON at {line}character {error.colno}: {error.msg}") from None
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
