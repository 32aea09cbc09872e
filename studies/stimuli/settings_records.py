"""Settings that a person or a file declares, read into frozen records, and back into plain JSON for the design."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any


class SettingsRefused(ValueError):
    """Settings that cannot be carried out; the message names the part."""


def parse_record(record_class: type[Any], value: object, where: str) -> Any:
    """A frozen record of this kind from a JSON object; SettingsRefused names the part and what it may be."""
    types = {each.name: each.type for each in fields(record_class)}
    parts = settings_object(value, where, set(types))
    try:
        return record_class(**{name: _typed(part, types[name], f"{where}.{name}") for name, part in parts.items()})
    except TypeError as error:  # a parameter without default is absent: the only way left
        raise SettingsRefused(f"{where}: {str(error).partition(' ')[2]}.") from error


def settings_object(value: object, where: str, names: set[str]) -> dict[str, Any]:
    """The value as an object that holds only these names."""
    if not isinstance(value, dict):
        raise SettingsRefused(f"{where}: must be an object.")
    unknown = sorted(str(name) for name in value if name not in names)
    if unknown:
        raise SettingsRefused(
            f"{where}: does not know {', '.join(unknown)}; it knows {', '.join(sorted(names)) or 'none'}."
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
    if kind == tuple[str, ...] and isinstance(value, list) and all(isinstance(each, str) and each for each in value):
        return tuple(value)
    words = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}
    raise SettingsRefused(f"{where}: must be {words.get(kind, 'a list of texts')}, not {value!r:.40}.")


def tuples_to_lists(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The same parts with tuples as lists, as JSON has them."""
    return {name: list(part) if isinstance(part, tuple) else part for name, part in parts.items()}
