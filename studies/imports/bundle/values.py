"""Check single values of a bundle against the types of their columns."""

from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import models

from studies.stimuli.strict_json import MAX_DEPTH
from studies.stimuli.texts import TextRefused, clean_text


class ValueRefused(Exception):
    def __init__(self, path: str, text: str):
        super().__init__(text)
        self.path, self.text = path, text


def json_to_column_value(field: models.Field, value: Any, json_path: str) -> Any:
    """Return the value as the column's Python type. Refuse a JSON value of another type; never convert it."""
    if value is None and field.null:
        return None
    if isinstance(field, models.JSONField):
        kind: type = list if field.default is list else dict
        return value if isinstance(value, kind) else _wrong(json_path, "a list" if kind is list else "an object")
    if isinstance(field, models.BooleanField):
        return value if isinstance(value, bool) else _wrong(json_path, "true or false")
    if isinstance(field, models.IntegerField):
        return value if type(value) is int else _wrong(json_path, "a whole number")
    if isinstance(field, models.FloatField):
        return float(value) if type(value) in (int, float) else _wrong(json_path, "a number")
    if not isinstance(value, str):
        _wrong(json_path, "a text")
    if isinstance(field, models.DecimalField):
        try:
            number = Decimal(value)
        except InvalidOperation:
            _wrong(json_path, "a decimal number in quotes, such as “2.50”")
        return number if number.is_finite() else _wrong(json_path, "a decimal number in quotes, such as “2.50”")
    if isinstance(field, models.DateField):
        try:
            return date.fromisoformat(value)
        except ValueError:
            _wrong(json_path, "a date such as 2026-12-31")
    return _text(value, json_path)


def _wrong(path: str, expected: str) -> Any:
    raise ValueRefused(path, f"must be {expected}.")


def _text(value: str, path: str) -> str:
    try:
        clean_text(value)
    except TextRefused as refused:
        raise ValueRefused(path, str(refused).removeprefix("text: ")) from None
    return value


def check_json_is_storable(value: Any, json_path: str, depth: int = 1) -> None:
    """Check that a database can store every text in the value, and that its nesting is limited."""
    if depth > MAX_DEPTH:
        raise ValueRefused(json_path[:200], f"is nested more than {MAX_DEPTH} levels deep.")
    if isinstance(value, str):
        _text(value, json_path)
    elif isinstance(value, list):
        for number, part in enumerate(value):
            check_json_is_storable(part, f"{json_path}[{number}]", depth + 1)
    elif isinstance(value, dict):
        for name, part in value.items():
            _text(name, json_path)
            check_json_is_storable(part, f"{json_path}.{name}", depth + 1)
