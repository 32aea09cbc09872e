"""What a researcher declares before a file of answers is read."""

from dataclasses import asdict, dataclass, field
from typing import Any

from studies.stimuli.settings_records import SettingsRefused

from .columns import COLUMNS, SHOWN_COLUMN

MAX_COLUMN_NAME_LENGTH = 200


@dataclass(frozen=True)
class Options:
    """``columns``: the file's own name of a column of ours, where it differs: {"annotator": "worker", "shown:A": "model_a"}."""

    columns: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: object) -> "Options":
        """The record of stored options; SettingsRefused names what is none."""
        options = stored if isinstance(stored, dict) else {"columns": None}
        given = options.get("columns", {})
        if not isinstance(given, dict) or set(options) - {"columns"}:
            raise SettingsRefused("options: must be an object with “columns” alone.")
        return cls(check_column_mapping(given))

    @classmethod
    def from_text(cls, lines: str) -> "Options":
        """Read from lines such as ``annotator = worker``; SettingsRefused names the line that is none."""
        found: dict[str, str] = {}
        for number, line in enumerate(lines.splitlines(), 1):
            if not line.strip():
                continue
            ours, equals, theirs = (part.strip() for part in line.partition("="))
            if not (ours and equals and theirs):
                raise SettingsRefused(f"line {number}: write a name of ours, =, and the file's: annotator = worker.")
            if ours in found:
                raise SettingsRefused(f"line {number}: {ours[:60]} is there twice.")
            found[ours] = theirs
        return cls(check_column_mapping(found))


def check_column_mapping(given: dict[Any, Any]) -> dict[str, str]:
    """The mapping with the names of ours checked. Raises SettingsRefused."""
    for ours, theirs in given.items():
        if (
            not isinstance(ours, str)
            or not isinstance(theirs, str)
            or not theirs
            or len(theirs) > MAX_COLUMN_NAME_LENGTH
        ):
            raise SettingsRefused(f"columns: {str(ours)[:60]!r} must be the name of a column of the file.")
        if ours not in COLUMNS and not SHOWN_COLUMN.fullmatch(ours):
            known = f"{', '.join(COLUMNS)}, and shown:A, shown:B, …"
            raise SettingsRefused(f"columns: there is no “{ours[:60]}”; there are {known}.")
    twice = [theirs for theirs in given.values() if list(given.values()).count(theirs) > 1]
    if twice:
        raise SettingsRefused(f"columns: “{twice[0][:60]}” is named twice.")
    return dict(given)
