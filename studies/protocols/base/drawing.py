"""A protocol draws the items of a batch from these records, and into them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item of a batch to be: outputs in the order of their numbers; or ``item``, one that was made in the draft."""

    prompt: int | None = None
    outputs: tuple[int, ...] = ()
    kind: str = "live"
    item: int | None = None


@dataclass(frozen=True, slots=True)
class StimulusPool:
    """What a batch may draw from: prompts (ids, in the order of this pass), systems (ids, by name), samples by both, and the
    section's items made in draft.

    ``turns`` (balanced coverage): of each prompt its place in the first pass, and the number of this pass, both from 0: a protocol
    that shows parts of a prompt's outputs goes through them turn by turn. ``sources``: where the protocol shows one output of a
    prompt, the systems from which each place's is taken.
    """

    prompts: Sequence[int]
    systems: Sequence[int]
    outputs: Mapping[tuple[int, int], tuple[int, ...]]
    items: Sequence[tuple[int, str]] = ()
    turns: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    sources: Sequence[tuple[int, ...]] = ()


class UnfillableBatch(Exception):
    """There is not enough left for one batch. The message names what is missing; ``field`` is the part of the study that lacks it."""

    def __init__(self, text: str = "There is not enough left for one batch.", field: str = "prompts"):
        super().__init__(text)
        self.field = field


@dataclass(slots=True)
class ShownSystems:
    """What the batches of a study show in one section, as far as they were looked at: ids of systems and of arms.

    ``arms``: the systems that each arm shows; ``items``: the systems of each item; ``batches``: the systems of all items that one
    batch shows in the section.
    """

    systems: set[int] = field(default_factory=set)
    arms: dict[int, set[int]] = field(default_factory=dict)
    items: set[frozenset[int]] = field(default_factory=set)
    batches: set[frozenset[int]] = field(default_factory=set)
