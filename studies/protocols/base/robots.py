"""Robots: plausible answers to any page, for the demo, test runs, rehearsals and tests.

A field gives a plausible answer of its kind (``Field.robot_answer``). A protocol answers the whole page
(``Protocol.robot_answers``) if its rules span fields, or if the report must recover what robots perceive.
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
    """A robot that answers validly and has no preference. ``annotators.participation.simulate`` has robots with preferences.

    ``middle``: the mean strength of the systems. ``round_to``: the step of answers on long scales of numbers. ``comment``:
    the text for every text field.
    """

    middle = 0.0
    round_to = 1
    is_screened_out = False
    is_inattentive = False

    def __init__(self, rng: Random, comment: str = ""):
        self.rng, self.comment, self.is_commenting = rng, comment, bool(comment)

    def strength(self, exposure_id: int | None) -> float:
        """Return the strength of an output's system, in standard deviations of a robot's perception."""
        return self.middle

    def liking(self, exposure_id: int | None) -> float:
        """Return how much the robot likes an output at this moment, for a choice among several."""
        return self.rng.random()

    def scale_position(self, page_field: Any) -> float:
        """Return an answer's place on its scale, from the lowest (0) to the highest (1)."""
        return self.rng.random()

    def check_answer(self, page_field: Any) -> str:
        """Return the answer to an attention check: the right one, or a wrong one if the robot does not read."""
        wrong_keys = [option.key for option in page_field.field.options if option.key != page_field.right_key]
        return self.rng.choice(wrong_keys) if self.is_inattentive else page_field.right_key

    def explanation(self, is_required: bool) -> str:
        return self.comment or self.rng.choice(EXPLANATIONS if is_required else COMMENTS)

    def answers(self, protocol: Any, page_fields: Mapping[str, Any]) -> dict[str, str]:
        """Return what the robot sends from a page, by input name."""
        checks = {slot: ask for slot, ask in page_fields.items() if ask.right_key}
        judged = {slot: ask for slot, ask in page_fields.items() if slot not in checks}
        sent = dict(protocol.robot_answers(judged, self))
        sent |= {slot: self.check_answer(ask) for slot, ask in checks.items()}
        for slot, ask in page_fields.items():
            names = {f"{slot}.{part}" for part in ask.field.inputs} or {slot}
            if names.isdisjoint(sent) and (answer := ask.field.robot_answer(self, ask)) is not None:
                sent[slot] = answer
        return sent
