"""Codebooks: labels in categories, with descriptions and examples. Two default codebooks are included.

A sample keeps the codebook with which it was drawn. To use another codebook, draw another sample.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KEY_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,39}")
MAX_LABELS = 60


class CodebookRefused(ValueError):
    """The lines are not a valid codebook. The message names the line."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label of a codebook. Codings store its ``key``."""

    key: str
    name: str
    category: str
    description: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Codebook:
    """Labels in order. ``left_out``: categories whose labels coders can use, but which the shares do not count."""

    labels: tuple[Label, ...]
    left_out: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(label.key for label in self.labels)

    @property
    def categories(self) -> dict[str, list[Label]]:
        by_category: dict[str, list[Label]] = {}
        for label in self.labels:
            by_category.setdefault(label.category, []).append(label)
        return by_category

    def as_json(self) -> dict[str, Any]:
        rows = [[label.category, label.key, label.name, label.description, label.example] for label in self.labels]
        return {"labels": rows, "left_out": list(self.left_out)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Codebook":
        labels = (Label(key, name, category, *texts) for category, key, name, *texts in stored["labels"])
        return cls(tuple(labels), tuple(stored["left_out"]))

    def as_lines(self) -> list[str]:
        """Return the codebook as lines of the form: category | key | label | description | example."""
        return [
            " | ".join((label.category, label.key, label.name, label.description, label.example)).rstrip(" |")
            for label in self.labels
        ]


def parse_codebook(lines: list[str], uncounted_categories: list[str]) -> Codebook:
    """Parse lines of the form "category | key | label | description | example". Raises CodebookRefused."""
    labels: list[Label] = []
    for number, line in enumerate(lines, 1):
        parts = [part.strip() for part in line.split("|")]
        if not 3 <= len(parts) <= 5 or not all(parts[:3]):
            raise CodebookRefused(
                f"Line {number} is not a label. Write category | key | label, then optionally | description | example."
            )
        category, key, name, *texts = parts
        if not KEY_PATTERN.fullmatch(key):
            raise CodebookRefused(
                f"Line {number}: the key “{key[:40]}” is not valid. Use lower-case letters, digits and _, and start with a letter."
            )
        if key in {label.key for label in labels}:
            raise CodebookRefused(f"Line {number}: the key “{key}” is used twice. Choose another key.")
        labels.append(Label(key, name, category, *texts))
    if not labels:
        raise CodebookRefused("The codebook has no label. Write at least one line.")
    if len(labels) > MAX_LABELS:
        raise CodebookRefused(f"The codebook has {len(labels)} labels. Remove some: at most {MAX_LABELS} are allowed.")
    categories = {label.category for label in labels}
    if unknown := sorted(set(uncounted_categories) - categories):
        raise CodebookRefused(
            f"Categories that are not counted: no label has the category “{unknown[0]}”. Correct its name or remove it."
        )
    if categories <= set(uncounted_categories):
        raise CodebookRefused("Categories that are not counted: every category is listed there. Remove at least one.")
    return Codebook(tuple(labels), tuple(uncounted_categories))


# Labels and categories are from the paper's Table 4. The descriptions are ours.
EXPLANATIONS_CODEBOOK = Codebook(
    (
        Label("grammar", "Grammar", "Form", "Spelling, grammar, punctuation, formatting.", "Two commas are missing."),
        Label(
            "detail",
            "Level of detail",
            "Form",
            "How simple or how detailed the text is.",
            "It lists every step.",
        ),
        Label(
            "genre",
            "Genre",
            "Form",
            "Whether style, tone and form fit the kind of text.",
            "It reads like a news item.",
        ),
        Label("repetition", "Repetition", "Content", "Repeated words, phrases or content.", "The same sentence twice."),
        Label(
            "factuality",
            "Factuality",
            "Content",
            "Whether the statements are true.",
            "That town is in another country.",
        ),
        Label(
            "consistency",
            "Consistency",
            "Content",
            "Whether the parts fit together and fit the topic.",
            "The headline says rain, the text sun.",
        ),
        Label(
            "common_sense",
            "Common sense",
            "Content",
            "Whether it is plausible in the world of the text.",
            "Nobody bakes on top of a stove.",
        ),
        Label(
            "coherence",
            "Coherence",
            "Content",
            "Structure, order, and how sentences follow each other.",
            "The topic changes in every sentence.",
        ),
        Label(
            "intent",
            "Writer intent and expression",
            "Machine capabilities",
            "What a machine can or cannot feel, intend or know.",
            "A program would not joke.",
        ),
        Label("other", "Miscellaneous", "Null", "A reason that no other label names.", "I like it."),
        Label(
            "vague", "Null or vague", "Null", "No reason, or no understandable reason.", "It is human because it is."
        ),
    ),
    ("Null",),
)

# The paper's reasons to reject work (section 2.3).
REJECTIONS_CODEBOOK = Codebook(
    (
        Label("copied", "Copied", "Reject", "The explanation is copied from the text."),
        Label("mismatch", "Mismatch", "Reject", "The explanation does not fit the answer given."),
        Label("ignored", "Instructions ignored", "Reject", "The explanation does not do what was asked."),
        Label("vague", "Vague", "Reject", "Too short or too vague to be understood."),
    )
)
