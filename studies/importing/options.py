"""What a researcher declares before a file is read: nothing of it is guessed from the file."""

from dataclasses import asdict, dataclass
from typing import Any

from ..declared import record


@dataclass(frozen=True)
class Options:
    """How a file is to be understood; each switch allows something that is refused without it.

    makes_batches: the rows name ready-made batches, one an annotator. creates_systems: names unknown to the study become
    systems. allows_empty: a blank text is an empty output, also where no row says so. replaces_changed: what stands in the
    study with other content is replaced.
    """

    makes_batches: bool = False
    creates_systems: bool = False
    allows_empty: bool = False
    replaces_changed: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: object) -> "Options":
        """The record of stored options; SettingsRefused names what is none."""
        options: Options = record(cls, stored, "options")
        return options
