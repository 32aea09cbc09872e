"""Read settings from JSON into frozen records, and write them back as plain JSON for the design."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any


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
