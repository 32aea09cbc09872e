"""The options that a researcher sets before an import. heval never guesses them from the file."""

from dataclasses import asdict, dataclass
from typing import Any

from studies.stimuli.settings_records import SettingsRefused, parse_record, tuples_to_lists

SOURCE = "source"
# Columns that may name what prompts belong together to, and the source, of which equal texts make a group.
GROUP_COLUMNS = ("document", "doc_id", "dialogue", "topic")
GROUPS_BY = (*GROUP_COLUMNS, SOURCE)
# Names in the record of a file that was uploaded before an upgrade.
OLDER_NAMES = {"pairs_within": "max_length_difference", "pairs_most": "max_pairs"}


@dataclass(frozen=True)
class Options:
    """How to read a file. Each switch allows something that is refused without it.

    ``makes_batches``: the rows name ready-made batches, one per annotator. ``creates_systems``: add systems that the
    study does not have. ``allows_empty``: a blank text is an empty output, even without ``is_empty``.
    ``replaces_changed``: replace content of the study that differs from the file. ``makes_pairs``: the rows are single
    texts of two systems. Pairs have equal attributes ``pairs_by`` and lengths that differ by at most
    ``max_length_difference`` words. ``max_pairs`` limits their number; 0 means all. ``groups_by``: what names the group of a prompt
    (``GROUPS_BY``); '' is the column ``group``, if the file has one.
    """

    makes_batches: bool = False
    creates_systems: bool = False
    allows_empty: bool = False
    replaces_changed: bool = False
    makes_pairs: bool = False
    pairs_by: tuple[str, ...] = ()
    max_length_difference: int = 0
    max_pairs: int = 0
    groups_by: str = ""

    def __post_init__(self) -> None:
        if self.makes_pairs and self.makes_batches:
            raise SettingsRefused(
                "options: a file of single texts cannot contain ready-made batches. Choose makes_pairs or makes_batches."
            )
        if self.groups_by and self.groups_by not in GROUPS_BY:
            raise SettingsRefused(
                f"options: groups_by must be empty or one of {', '.join(GROUPS_BY)}, not “{self.groups_by:.40}”."
            )
        if self.max_length_difference < 0 or self.max_pairs < 0:
            raise SettingsRefused(
                "options: the maximum difference in length and the maximum number of pairs must be whole numbers from 0."
            )

    def as_json(self) -> dict[str, Any]:
        return tuples_to_lists(asdict(self))

    @classmethod
    def from_json(cls, stored: object) -> "Options":
        """Return the options from stored JSON. Raise SettingsRefused, which names the wrong part."""
        if isinstance(stored, dict):
            stored = {OLDER_NAMES.get(name, name): part for name, part in stored.items()}
        options: Options = parse_record(cls, stored, "options")
        return options
