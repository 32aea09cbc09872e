"""The parts of a report that an analysis returns: estimates, with their sentences, tables and figures.

This package is independent of protocols. An analysis gives ``ConclusionPhrases`` for each sentence, and
``analysis.protocols.blocks.sentences`` writes it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from .cells import claim_of, comparison_x_y_and_criterion_phrase, contrast_of
from .layouts import Figure, Table
from .systems import SystemOrder

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ConclusionPhrases:
    """The phrases for the comparisons of a block, and how to name and print the number of each.

    ``{x}``, ``{y}`` and ``{about}`` are places for the names of what is compared and the words of ``comparison_x_y_and_criterion_phrase``,
    which ``about_comparison`` fills in. ``{scored}`` is the unit of scores.

    ``above_claim`` and ``below_claim`` are sentences: the estimate is above or below its null. Both name x first, as the number
    does. ``open`` says that this is unknown. ``same`` claims equivalence; the margin and a full stop follow it. The number is printed between
    ``before`` and ``after``. ``symbol`` names it in a line of numbers. ``kind`` is its format (percent, number).

    ``subject``: the compared systems, for a sentence about an impossible estimate or test. Without it, that sentence is
    ``open``. ``expected``: sentences for the expectations above, below and the same, if they differ from the claims.
    ``interval``: the name of the interval. ``closing_text`` follows the numbers. ``item``: what the claim generalises to,
    besides people.
    """

    above_claim: str
    below_claim: str
    same: str
    open: str
    before: str
    symbol: str
    after: str = ""
    kind: str = "number"
    subject: str = ""
    expected: tuple[str, str, str] | None = None
    interval: str = "confidence interval"
    closing_text: str = ""
    item: str = "prompt"

    def about_comparison(self, estimate: "Estimate", about: str | None = None) -> "ConclusionPhrases":
        """Return the phrases with the names of one comparison. ``about``: other words than usual for what it is about."""
        x, y, usual = comparison_x_y_and_criterion_phrase(estimate)
        words = {"x": x, "y": y, "about": usual if about is None else about, "scored": estimate.settings.get("scored")}
        filled: dict[str, Any] = {
            field.name: value.format(**words)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), str)
        }
        if self.expected is not None:
            filled["expected"] = tuple(sentence.format(**words) for sentence in self.expected)
        return replace(self, **filled)


# The phrases of all comparisons of a block, or a function that returns those of one.
Phrases = ConclusionPhrases | Callable[["Estimate"], ConclusionPhrases]


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A sentence of the report about a planned comparison: its estimate and the phrases.

    The settings of the estimate contain the comparison. ``name``: the name of the comparison, with the estimand if it
    has several. ``superseded_by``: the name of a block. If that block has conclusions, this sentence is left out.
    """

    estimate: "Estimate"
    wording: ConclusionPhrases
    name: str = ""
    superseded_by: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a report. ``estimates`` are envelopes (``analysis.stats.results``).

    Tables with the same name and title, in several blocks, are merged. So are figures. ``other_results``: results that are
    not estimates, such as ranks. ``systems``: the order of all systems, if the block is about single systems.
    """

    name: str
    title: str
    mode: str = "recommended"  # or "paper"
    estimates: tuple["Estimate", ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    other_results: Mapping[str, Any] | None = None
    warnings: tuple = ()
    note: str = ""
    systems: SystemOrder | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the block as plain JSON values."""
        from analysis.stats.results import json_safe

        return json_safe(
            {
                "name": self.name,
                "title": self.title,
                "mode": self.mode,
                "note": self.note,
                "estimates": [
                    estimate.as_dict() | {"mode": self.mode, "is_blocked": estimate.is_blocked}
                    for estimate in self.estimates
                ],
                "tables": list(self.tables),
                "figures": list(self.figures),
                "other_results": self.other_results,
                "warnings": list(self.warnings),
            }
        )


@dataclass(frozen=True, slots=True)
class Overview:
    """The overview of several protocols: tables, sentences for the summary, and what must not be read into the conclusions.

    ``limits``: each completes "This report does not show that".
    """

    tables: Sequence[Table] = ()
    summary: Sequence[str] = ()
    limits: Sequence[str] = ()


def select_estimates(blocks: Iterable[Block], block_name: str, mode: str = "recommended") -> list["Estimate"]:
    """Return all estimates of the blocks with this name and mode."""
    return [
        estimate for block in blocks if block.name == block_name and block.mode == mode for estimate in block.estimates
    ]


def build_planned_conclusions(
    estimates: Iterable["Estimate"],
    phrases: Phrases,
    *,
    include_estimand_in_name: bool = True,
    superseded_by: str = "",
) -> tuple[Conclusion, ...]:
    """Return a conclusion for each planned comparison among the estimates.

    ``include_estimand_in_name``: whether the names contain the estimand. Set it if a comparison has several estimands.
    """
    make_phrases = phrases.about_comparison if isinstance(phrases, ConclusionPhrases) else phrases
    conclusions = []
    for estimate in estimates:
        contrast = contrast_of(estimate)
        if contrast.get("is_planned"):
            name = f"{contrast['key']}, {estimate.settings['key']}" if include_estimand_in_name else contrast["key"]
            conclusions.append(Conclusion(estimate, make_phrases(estimate), name, superseded_by))
    return tuple(conclusions)


def add_default_planned_conclusions(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks of one protocol, with a default sentence for each planned comparison that has an estimate but no sentence."""
    concluded = {contrast_of(conclusion.estimate)["key"] for block in blocks for conclusion in block.conclusions}
    completed = []
    for block in blocks:
        missing = []
        for estimate in block.estimates if block.mode == "recommended" else ():
            contrast = contrast_of(estimate)
            if contrast.get("is_planned") and contrast["key"] not in concluded:
                concluded.add(contrast["key"])
                missing.append(_default_conclusion(estimate))
        completed.append(replace(block, conclusions=(*block.conclusions, *missing)) if missing else block)
    return completed


def _default_conclusion(estimate: "Estimate") -> Conclusion:
    x, y, about = comparison_x_y_and_criterion_phrase(estimate)
    null = claim_of(estimate).null or 0.0
    wording = ConclusionPhrases(
        above_claim=f"{x} and {y} differ{about}: {estimate.estimand} is above {null:g}.",
        below_claim=f"{x} and {y} differ{about}: {estimate.estimand} is below {null:g}.",
        same=f"{x} and {y} are equivalent{about}",
        open=f"It remains open whether {x} and {y} differ{about}.",
        subject=f"{x} and {y}{about}",
        before=f"{estimate.estimand[:1].upper()}{estimate.estimand[1:]} is",
        symbol=f"{estimate.estimand} ({x}, {y})",
    )
    return Conclusion(estimate, wording, contrast_of(estimate)["key"])
