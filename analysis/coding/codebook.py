"""Codebooks: labels in categories, each with what it means and an example; and the two that a study may begin with.

A sample keeps its codebook as it was when the sample was drawn: another codebook is another sample.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KEY_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,39}")
MAX_LABELS = 60


class CodebookRefused(ValueError):
    """These lines make no codebook; the message names the line."""


@dataclass(frozen=True, slots=True)
class Label:
    """One label. ``key`` is what is stored."""

    key: str
    name: str
    category: str
    description: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True)
class Codebook:
    """Labels in their order; ``left_out``: categories whose labels are given and not counted among the shares."""

    labels: tuple[Label, ...]
    left_out: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(label.key for label in self.labels)

    @property
    def categories(self) -> dict[str, list[Label]]:
        found: dict[str, list[Label]] = {}
        for label in self.labels:
            found.setdefault(label.category, []).append(label)
        return found

    def as_json(self) -> dict[str, Any]:
        rows = [[label.category, label.key, label.name, label.description, label.example] for label in self.labels]
        return {"labels": rows, "left_out": list(self.left_out)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Codebook":
        labels = (Label(key, name, category, *words) for category, key, name, *words in stored["labels"])
        return cls(tuple(labels), tuple(stored["left_out"]))

    def as_lines(self) -> list[str]:
        """As a researcher writes it: category | key | label | what it means | example."""
        return [
            " | ".join(part for part in (one.category, one.key, one.name, one.description, one.example)).rstrip(" |")
            for one in self.labels
        ]


def parse_codebook(lines: list[str], excluded_categories: list[str]) -> Codebook:
    """The codebook of lines "category | key | label | what it means | example". Raises CodebookRefused."""
    labels: list[Label] = []
    for number, line in enumerate(lines, 1):
        parts = [part.strip() for part in line.split("|")]
        if not 3 <= len(parts) <= 5 or not all(parts[:3]):
            raise CodebookRefused(
                f"Line {number}: write category | key | label, and if you like | what it means | example."
            )
        category, key, name, *words = parts
        if not KEY_PATTERN.fullmatch(key):
            raise CodebookRefused(
                f"Line {number}: the key “{key[:40]}” must be small letters, digits and _, beginning with a letter."
            )
        if key in {label.key for label in labels}:
            raise CodebookRefused(f"Line {number}: the key “{key}” stands twice.")
        labels.append(Label(key, name, category, *words))
    if not labels:
        raise CodebookRefused("A codebook has at least one label.")
    if len(labels) > MAX_LABELS:
        raise CodebookRefused(f"A codebook has at most {MAX_LABELS} labels; these are {len(labels)}.")
    categories = {label.category for label in labels}
    if strange := sorted(set(excluded_categories) - categories):
        raise CodebookRefused(f"No label is in the category “{strange[0]}” that is to be left out.")
    if categories <= set(excluded_categories):
        raise CodebookRefused("Some category must count.")
    return Codebook(tuple(labels), tuple(excluded_categories))


# The labels and categories of the paper's Table 4; what they mean is said in our own words.
EXPLANATIONS_CODEBOOK = Codebook(
    (
        Label("grammar", "Grammar", "Form", "Spelling, grammar, punctuation, formatting.", "Two commas are missing."),
        Label(
            "detail",
            "Level of detail",
            "Form",
            "How simple the text is, or how far it goes into things.",
            "It lists every step.",
        ),
        Label(
            "genre",
            "Genre",
            "Form",
            "Whether style, tone and form are those of such a text.",
            "It reads like a news item.",
        ),
        Label(
            "repetition", "Repetition", "Content", "Words, phrases or content come again.", "The same sentence twice."
        ),
        Label(
            "factuality", "Factuality", "Content", "Whether what is said is true.", "That town is in another country."
        ),
        Label(
            "consistency",
            "Consistency",
            "Content",
            "Whether parts fit one another and what the text is about.",
            "The headline says rain, the text sun.",
        ),
        Label(
            "common_sense",
            "Common sense",
            "Content",
            "Whether it makes sense in its own world.",
            "Nobody bakes on top of a stove.",
        ),
        Label(
            "coherence",
            "Coherence",
            "Content",
            "Structure, order, how sentences follow from one another.",
            "It jumps about.",
        ),
        Label(
            "intent",
            "Writer intent and expression",
            "Machine capabilities",
            "What a machine can or cannot feel, mean or know.",
            "A program would not joke.",
        ),
        Label("other", "Miscellaneous", "Null", "A reason that no other label names.", "I like it."),
        Label(
            "vague", "Null or vague", "Null", "No reason, or none that can be understood.", "It is human because it is."
        ),
    ),
    ("Null",),
)

# What the paper rejected work for (section 2.3).
REJECTIONS_CODEBOOK = Codebook(
    (
        Label("copied", "Copied", "Reject", "The explanation is copied from the text."),
        Label("mismatch", "Mismatch", "Reject", "The explanation does not fit the answer given."),
        Label("ignored", "Instructions ignored", "Reject", "It is something else than what was asked for."),
        Label("vague", "Vague", "Reject", "Too short or too vague to be understood."),
    )
)
