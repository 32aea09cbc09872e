"""Robots: plausible answers to whatever a page asks, for the demo, for trying a study, for rehearsals and for tests.

A field knows what is plausible for its kind (``Field.plausible``). A protocol whose rules span fields, or whose robots shall find
what is there to be found, answers the page as a whole (``Protocol.plausible``).
"""

from collections.abc import Mapping
from random import Random
from typing import Any

COMMENTS = (
    "I liked the quieter stories best.",
    "Some of them ended rather suddenly.",
    "Thank you, this was fun.",
    "Two of the writers sounded alike to me.",
    "It was a lot to read for the time given.",
)
EXPLANATIONS = (
    "The sentences follow from one another and the ending fits the beginning.",
    "It repeats the same words and loses track of who is speaking.",
    "The details are vivid, but the plot goes nowhere in particular.",
    "I believed the characters and wanted to know what happens next.",
)


class Robot:
    """Answers validly and prefers nothing. A subclass with opinions perceives systems: see ``annotators.participation.simulate``.

    ``middle``: the mean strength of the systems. ``round_to``: long scales of numbers are answered in such steps. ``comment``: what
    it writes wherever words may be written.
    """

    middle = 0.0
    round_to = 1
    is_screened_out = False

    def __init__(self, rng: Random, comment: str = ""):
        self.rng, self.comment, self.is_commenting = rng, comment, bool(comment)

    def strength(self, exposure_id: int | None) -> float:
        """How strong the system behind an output is, in standard deviations of what a robot perceives."""
        return self.middle

    def liking(self, exposure_id: int | None) -> float:
        """How this robot likes an output just now, for choosing among several."""
        return self.rng.random()

    def share(self, page_field: Any) -> float:
        """An answer's place between the lowest (0) and the highest (1) of its scale."""
        return self.rng.random()

    def words(self, is_required: bool) -> str:
        return self.comment or self.rng.choice(EXPLANATIONS if is_required else COMMENTS)

    def answers(self, protocol: Any, page_fields: Mapping[str, Any]) -> dict[str, str]:
        """What is sent from a page, by the names of its inputs."""
        sent = dict(protocol.plausible(page_fields, self))
        for slot, ask in page_fields.items():
            names = {f"{slot}.{part}" for part in ask.field.inputs} or {slot}
            if names.isdisjoint(sent) and (answer := ask.field.plausible(self, ask)) is not None:
                sent[slot] = answer
        return sent
