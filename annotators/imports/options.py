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
        given = options.get("columns", {})
        if not isinstance(given, dict) or set(options) - {"columns"}:
            raise SettingsRefused("options: must be an object with only the key “columns”.")
        return cls(validate_column_mapping(given))

    @classmethod
    def from_text(cls, lines: str) -> "Options":
        """Return the options from lines such as ``annotator = worker``.

        Raises SettingsRefused with the number of a bad line.
        """
        mapping: dict[str, str] = {}
        for number, line in enumerate(lines.splitlines(), 1):
            if not line.strip():
                continue
            ours, equals, theirs = (part.strip() for part in line.partition("="))
            if not (ours and equals and theirs):
                raise SettingsRefused(
                    f"line {number}: write heval's column name, “=”, and the file's column name, as in: annotator = worker."
                )
            if ours in mapping:
                raise SettingsRefused(f"line {number}: the column {ours[:60]} is named twice.")
            mapping[ours] = theirs
        return cls(validate_column_mapping(mapping))


def validate_column_mapping(mapping: dict[Any, Any]) -> dict[str, str]:
    """Return the mapping after checking its column names. Raises SettingsRefused."""
    for ours, theirs in mapping.items():
        if (
            not isinstance(ours, str)
            or not isinstance(theirs, str)
            or not theirs
            or len(theirs) > MAX_COLUMN_NAME_LENGTH
        ):
            raise SettingsRefused(f"columns: the value of {str(ours)[:60]!r} must be the name of a column of the file.")
        if ours not in COLUMNS and not SHOWN_COLUMN.fullmatch(ours):
            known = f"{', '.join(COLUMNS)}, and shown:A, shown:B, …"
            raise SettingsRefused(f"columns: heval has no column “{ours[:60]}”. Its columns are {known}.")
    twice = [theirs for theirs in mapping.values() if list(mapping.values()).count(theirs) > 1]
    if twice:
        raise SettingsRefused(f"columns: “{twice[0][:60]}” is named twice.")
    return dict(mapping)
