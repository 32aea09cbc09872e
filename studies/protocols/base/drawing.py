"""Records for drawing the items of a batch: what a protocol draws from, and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item of a future batch: outputs in the order of their numbers, or ``item``, an item made in the draft."""

    prompt: int | None = None
    outputs: tuple[int, ...] = ()
    kind: str = "live"
    item: int | None = None


@dataclass(frozen=True, slots=True)
class StimulusPool:
    """What a batch may draw from.

    ``prompts``: ids in the order of this pass. ``systems``: ids by name. ``outputs``: samples by prompt and system.
    ``turns`` (balanced coverage): the place of each prompt in the first pass and the number of this pass, both from 0. A
    protocol that shows a part of a prompt's outputs uses them to take turns. ``sources``: if the protocol shows one output
    per prompt, the systems from which the output at each place is taken. ``is_balanced``: the batch shows systems equally
    often, as far as possible. Studies that were launched before this was done draw each item by itself.
    """

    prompts: Sequence[int]
    systems: Sequence[int]
    outputs: Mapping[tuple[int, int], tuple[int, ...]]
    turns: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    sources: Sequence[tuple[int, ...]] = ()
    is_balanced: bool = False


class UnfillableBatch(Exception):
    """Not enough is left to fill a batch. The message names what is missing; ``field`` is the part of the study that lacks it."""

    def __init__(self, text: str = "There is not enough left for one batch.", field: str = "prompts"):
        super().__init__(text)
        self.field = field


@dataclass(slots=True)
class ShownSystems:
    """The ids of systems and arms that the batches read so far show in one section.

    ``arms``: the systems that each arm shows. ``items``: the systems of each item. ``batches``: the systems of all items of
    a batch in the section.
    """

    systems: set[int] = field(default_factory=set)
    arms: dict[int, set[int]] = field(default_factory=dict)
    items: set[frozenset[int]] = field(default_factory=set)
    batches: set[frozenset[int]] = field(default_factory=set)
