"""Check the parts of a bundle. Report all faults at once, each with its path."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from studies.stimuli.texts import name_key

from .schema import MAX_PROBLEMS, BundleRefused
from .values import ValueRefused, check_json_is_storable, json_to_column_value


class BaseValidator:
    """Check a value part by part and collect its faults."""

    def __init__(self, value: dict[str, Any]):
        self.value = value
        self.problems: list[str] = []

    def add_problem(self, path: str, text: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            # A name may contain half of a surrogate pair, which no page can show.
            self.problems.append(f"{path}: {text}".encode("utf-8", "replace").decode())

    def listed_rows_with_paths(self, value: dict[str, Any], name: str, path: str = "") -> list[tuple[str, Any]]:
        listed = value.get(name)
        where = f"{path}.{name}" if path else name
        if not isinstance(listed, list):
            self.add_problem(where, "must be a list." if name in value else "is missing.")
            return []
        return [(f"{where}[{number}]", row) for number, row in enumerate(listed)]

    def check_object(self, value: Any, path: str, names: tuple[str, ...]) -> bool:
        """Return whether the value is an object with exactly these names."""
        if not isinstance(value, dict):
            self.add_problem(path, "must be an object.")
            return False
        unknown, missing = sorted(set(value) - set(names)), sorted(set(names) - set(value))
        for name in unknown:
            self.add_problem(f"{path}.{name[:80]}" if path else name[:80], "is not allowed here.")
        for name in missing:
            self.add_problem(f"{path}.{name}" if path else name, "is missing.")
        return not (unknown or missing)

    def check_columns(
        self, model: type[models.Model], value: dict[str, Any], names: tuple[str, ...], path: str
    ) -> dict[str, Any]:
        """Return the values of these columns, each with the type, length and choice of its column."""
        fields = {name: model._meta.get_field(name) for name in names}
        return {
            name: self.check_column(field, value[name], f"{path}.{name}")
            for name, field in fields.items()
            if isinstance(field, models.Field)
        }

    def check_column(self, field: models.Field, value: Any, path: str) -> Any:
        try:
            value = json_to_column_value(field, value, path)
            if isinstance(field, models.JSONField):
                check_json_is_storable(value, path)
                return value
            return field.clean(value, None)
        except ValueRefused as refused:
            self.add_problem(refused.path, refused.text)
        except ValidationError as error:
            self.add_problem(path, " ".join(error.messages))
        return None

    def check_reference(self, value: Any, known: Any, path: str, noun: str) -> Any:
        """Return the value if it is one of the known names or numbers, or None."""
        if isinstance(value, bool) or not isinstance(value, str | int) or value not in known:
            self.add_problem(path, f"there is no {noun} {value!r:.60}.")
            return None
        return value

    def check_references(self, value: Any, known: Any, path: str, noun: str) -> list[Any]:
        if not isinstance(value, list):
            self.add_problem(path, "must be a list.")
            return []
        for number, name in enumerate(value):
            self.check_reference(name, known, f"{path}[{number}]", noun)
        if not self.problems and len(set(value)) < len(value):
            self.add_problem(path, "contains the same name twice.")
        return value

    def check_unique(self, seen: set, name: Any, path: str) -> None:
        if name is None:  # refused already
            return
        key = name_key(name) if isinstance(name, str) else name
        if key in seen:
            self.add_problem(path, f"{name!r:.60} occurs twice (names must differ in more than case and blanks).")
        seen.add(key)

    def raise_if_problems(self) -> None:
        if self.problems:
            raise BundleRefused(self.problems)
