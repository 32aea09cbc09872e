"""Numbers in the cells of a file, read in one way: ASCII digits with a decimal point, and nothing that only a program would write."""

import re
from math import isfinite

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")


class NumberRefused(ValueError):
    """A cell that is not a number. The message has no subject: “is not a number. Write 0.5, not 0,5.”"""


def is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text.strip()))


def is_whole_number(value: object) -> bool:
    """Return whether a value of JSON is a whole number, which true is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def parse_number(value: object) -> float:
    """Return the number of a cell: a text, or a number or truth value of JSON. Raise NumberRefused.

    >>> parse_number(" 0.50 "), parse_number(True), parse_number(3)
    (0.5, 1.0, 3.0)
    """
    if isinstance(value, bool | int | float):
        return float(value)
    text = str(value).strip()
    if is_number(text) and isfinite(number := float(text)):
        return number
    shown = f"“{text[:40]}” is not a number."
    if _DECIMAL_COMMA.fullmatch(text):
        raise NumberRefused(f"{shown} Write a decimal point: {text[:40].replace(',', '.')}.")
    if re.fullmatch(r"[\d.,_ ]+", text):
        raise NumberRefused(f"{shown} Write it with the digits 0 to 9 and a decimal point.")
    raise NumberRefused(f"{shown} Enter a number, or leave the cell empty.")


def parse_whole_number(value: object, low: int, high: int) -> int:
    """Return a whole number from ``low`` to ``high``. 3.0 is 3, because programs write whole numbers so. Raise NumberRefused.

    >>> parse_whole_number("3.0", 0, 9)
    3
    """
    wanted = f"must be a whole number from {low:,} to {high:,}"
    if isinstance(value, bool):
        raise NumberRefused(f"{wanted}, not {str(value).lower()}.")
    try:
        number = parse_number(value)
    except NumberRefused:
        raise NumberRefused(f"{wanted}, not {value!r:.40}.") from None
    if not number.is_integer() or not low <= number <= high:
        raise NumberRefused(f"{wanted}, not {value!r:.40}.")
    return int(number)
