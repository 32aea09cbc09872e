"""JSON as the REST interface takes it: what one database or the other could not keep, or would keep as something else, is refused."""

import json
import re
from math import isfinite
from typing import Any

MAX_DEPTH = 32
MAX_DIGITS = 100
_SURROGATE = re.compile("[\ud800-\udfff]")


class BadJson(ValueError):
    """No JSON that is accepted here; the message says why."""


def loads(body: bytes) -> Any:
    """The value of a UTF-8 body. Raises BadJson."""
    if body.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise BadJson("The body begins with a byte order mark: send UTF-8 without one.")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadJson(f"The body is not UTF-8 (byte {error.start}).") from None
    if not text.strip():
        raise BadJson("The body is empty: send JSON.")
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_short
        )
    except json.JSONDecodeError as error:
        raise BadJson(f"The body is not JSON at line {error.lineno}, column {error.colno}: {error.msg}.") from None
    except RecursionError:
        raise BadJson(f"The body is nested more than {MAX_DEPTH} levels deep.") from None
    _check(value)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise BadJson(f"The key {_shown(twice)} stands twice in one object.")
    return values


def _no_constant(text: str) -> Any:
    raise BadJson(f"{text} is no number.")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise BadJson(f"{text[:40]} is too large for a number.")
    return number


def _short(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise BadJson(f"A number has {len(text):,} digits.")
    return int(text)


def _check(value: Any) -> None:
    """Depth, and the characters that PostgreSQL cannot store. Walks without recursion."""
    waiting = [(value, 1)]
    while waiting:
        each, depth = waiting.pop()
        if isinstance(each, str):
            if "\0" in each:
                raise BadJson("A text holds a NUL character (\\u0000).")
            if half := _SURROGATE.search(each):
                raise BadJson(f"A text holds half of a surrogate pair (\\u{ord(half.group()):04x}).")
        elif isinstance(each, dict | list):
            if depth > MAX_DEPTH:
                raise BadJson(f"The body is nested more than {MAX_DEPTH} levels deep.")
            if isinstance(each, dict):
                waiting += [(key, depth) for key in each]
            waiting += [(child, depth + 1) for child in (each.values() if isinstance(each, dict) else each)]


def _shown(text: str) -> str:
    return repr(text.encode("utf-8", "backslashreplace").decode()[:80])
