"""The options that a researcher sets before an import. heval never guesses them from the file."""

from dataclasses import asdict, dataclass
from typing import Any

from studies.stimuli.settings_records import SettingsRefused, parse_record, tuples_to_lists


@dataclass(frozen=True)
class Options:
    """How to read a file. Each switch allows something that is refused without it.

    ``makes_batches``: the rows name ready-made batches, one per annotator. ``creates_systems``: add systems that the
    study does not have. ``allows_empty``: a blank text is an empty output, even without ``is_empty``.
    ``replaces_changed``: replace content of the study that differs from the file. ``makes_pairs``: the rows are single
    texts of two systems. Pairs have equal attributes ``pairs_by`` and lengths that differ by at most ``pairs_within``
    words. ``pairs_most`` limits their number; 0 means all.
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
            raise SettingsRefused(
                "options: a file of single texts cannot contain ready-made batches. Choose makes_pairs or makes_batches."
            )
        if self.pairs_within < 0 or self.pairs_most < 0:
            raise SettingsRefused(
                "options: the maximum difference in length and the maximum number of pairs must be whole numbers from 0."
            )

    def as_json(self) -> dict[str, Any]:
        return tuples_to_lists(asdict(self))

    @classmethod
    def from_json(cls, stored: object) -> "Options":
        """Return the options from stored JSON. Raise SettingsRefused, which names the wrong part."""
        options: Options = parse_record(cls, stored, "options")
        return options
