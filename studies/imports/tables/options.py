"""What a researcher declares before a file is read: nothing of it is guessed from the file."""

from dataclasses import asdict, dataclass
from typing import Any

from studies.stimuli.settings_records import SettingsRefused, parse_record, tuples_to_lists


@dataclass(frozen=True)
class Options:
    """How a file is to be understood; each switch allows something that is refused without it.

    makes_batches: the rows name ready-made batches, one an annotator. creates_systems: names unknown to the study become
    systems. allows_empty: a blank text is an empty output, also where no row says so. replaces_changed: what stands in the
    study with other content is replaced. makes_pairs: the rows are single texts of two systems, which are paired by the attributes
    ``pairs_by`` and by length, at most ``pairs_within`` words apart; ``pairs_most`` of them, 0 for all.
    """

    makes_batches: bool = False
    creates_systems: bool = False
    allows_empty: bool = False
    replaces_changed: bool = False
    makes_pairs: bool = False
    pairs_by: tuple[str, ...] = ()
    pairs_within: int = 0
    pairs_most: int = 0

    def __post_init__(self) -> None:
        if self.makes_pairs and self.makes_batches:
            raise SettingsRefused("options: a file of single texts to be paired cannot hold ready-made batches too.")
        if self.pairs_within < 0 or self.pairs_most < 0:
            raise SettingsRefused("options: pairs_within and pairs_most are whole numbers from 0.")

    def as_json(self) -> dict[str, Any]:
        return tuples_to_lists(asdict(self))

    @classmethod
    def from_json(cls, stored: object) -> "Options":
        """The record of stored options; SettingsRefused names what is none."""
        options: Options = parse_record(cls, stored, "options")
        return options
