"""The options of an import of answers."""

from dataclasses import asdict, dataclass, field
from typing import Any

from studies.stimuli.settings_records import SettingsRefused

from .columns import COLUMNS, SHOWN_COLUMN

MAX_COLUMN_NAME_LENGTH = 200


@dataclass(frozen=True)
class Options:
    """``columns`` maps heval's column names to the file's names, if they differ, as in {"annotator": "worker"}."""

    columns: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, options_json: object) -> "Options":
        """Return the options from stored JSON. Raises SettingsRefused for anything invalid."""
        options = options_json if isinstance(options_json, dict) else {"columns": None}
        columns = options.get("columns", {})
        if not isinstance(columns, dict) or set(options) - {"columns"}:
            raise SettingsRefused("options: must be an object with only the key “columns”.")
        return cls(validate_column_mapping(columns))

    @classmethod
    def from_text(cls, lines: str) -> "Options":
        """Return the options from lines such as ``annotator = worker``.

        Raises SettingsRefused with the number of a bad line.
        """
        mapping: dict[str, str] = {}
        for number, line in enumerate(lines.splitlines(), 1):
            if not line.strip():
                continue
            name, equals, column = (part.strip() for part in line.partition("="))
            if not (name and equals and column):
                raise SettingsRefused(
                    f"line {number}: write heval's column name, “=”, and the file's column name, as in: annotator = worker."
                )
            if name in mapping:
                raise SettingsRefused(f"line {number}: the column {name[:60]} is named twice.")
            mapping[name] = column
        return cls(validate_column_mapping(mapping))


def validate_column_mapping(mapping: dict[Any, Any]) -> dict[str, str]:
    """Return the mapping after checking its column names. Raises SettingsRefused."""
    for name, column in mapping.items():
        if (
            not isinstance(name, str)
            or not isinstance(column, str)
            or not column
            or len(column) > MAX_COLUMN_NAME_LENGTH
        ):
            raise SettingsRefused(f"columns: the value of {str(name)[:60]!r} must be the name of a column of the file.")
        if name not in COLUMNS and not SHOWN_COLUMN.fullmatch(name):
            known_names = f"{', '.join(COLUMNS)}, and shown:A, shown:B, …"
            raise SettingsRefused(f"columns: heval has no column “{name[:60]}”. Its columns are {known_names}.")
    repeated = [column for column in mapping.values() if list(mapping.values()).count(column) > 1]
    if repeated:
        raise SettingsRefused(f"columns: “{repeated[0][:60]}” is named twice.")
    return dict(mapping)
