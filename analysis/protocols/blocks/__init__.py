"""The pieces of a report that an analysis returns: estimates, and the sentences, tables and figures that are made of them.

Nothing here knows a protocol. What a sentence may say comes with it as a ``Wording``; ``analysis.protocols.blocks.sentences`` writes it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .cells import contrast_of, sides_of
from .figures import Figure
from .tables import Table

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What may be said of one comparison, and how its number is named and printed.

    ``more`` and ``less`` claim that the estimate lies above or below its null, ``open`` that this is not known: sentences with a full
    stop. ``same`` claims equivalence, without the margin and the full stop that follow. The number is told as ``before`` number
    ``after``; ``symbol`` names it in a line of numbers, ``kind`` says how it is printed (percent, number).

    ``subject``: of what nothing can be said, or for what no test was possible; without it ``open`` is claimed then. ``expected``: what
    it means to expect more, less and the same, where that is not said as it is claimed. ``interval``: what the interval is called.
    ``ending``: what follows after the numbers.
    """

    more: str
    less: str
    same: str
    open: str
    before: str
    symbol: str
    after: str = ""
    kind: str = "number"
    subject: str = ""
    expected: tuple[str, str, str] | None = None
    interval: str = "confidence interval"
    ending: str = ""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A sentence of the report about a planned comparison: the estimate with its comparison among its settings, the value that it is
    tested against, and the words. ``name``: what the comparison is called, where several estimands are about it.
    ``yields_to``: the name of a block; where that concludes anything, this sentence is left out.
    """

    estimate: "Estimate"
    wording: Wording
    null: float
    name: str = ""
    yields_to: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a report. ``estimates`` are envelopes (``analysis.stats.results``).

    Tables of one name and title, in several blocks, are one table; so are figures.
    """

    name: str
    title: str
    mode: str  # paper | recommended
    estimates: tuple["Estimate", ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    verdict: Mapping[str, Any] | None = None
    warnings: tuple = ()
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The block as plain JSON."""
        from analysis.stats.results import plain

        return plain(
            {
                "name": self.name,
                "title": self.title,
                "mode": self.mode,
                "note": self.note,
                "estimates": [estimate.as_dict() | {"mode": self.mode} for estimate in self.estimates],
                "tables": list(self.tables),
                "series": list(self.figures),
                "verdict": self.verdict,
                "warnings": list(self.warnings),
            }
        )


@dataclass(frozen=True, slots=True)
class Overview:
    """What puts blocks of several protocols beside each other: tables, and sentences for the summary."""

    tables: Sequence[Table] = ()
    summary: Sequence[str] = ()


def estimates_of(blocks: Iterable[Block], name: str, mode: str = "recommended") -> list["Estimate"]:
    """All estimates of the blocks of that name and mode."""
    return [one for block in blocks if block.name == name and block.mode == mode for one in block.estimates]


def concluded(
    estimates: Iterable["Estimate"],
    wording: Callable[["Estimate"], Wording],
    null: float | Callable[["Estimate"], float],
    *,
    is_named_by_estimand: bool = True,
    yields_to: str = "",
) -> tuple[Conclusion, ...]:
    """A sentence for each planned comparison among the estimates.

    ``is_named_by_estimand``: whether the estimand belongs to the name, as it does where a comparison has several.
    """
    found = []
    for one in estimates:
        contrast = contrast_of(one)
        if contrast.get("is_planned"):
            name = f"{contrast['key']}, {one.settings['key']}" if is_named_by_estimand else contrast["key"]
            found.append(Conclusion(one, wording(one), null(one) if callable(null) else null, name, yields_to))
    return tuple(found)


def with_every_conclusion(blocks: Sequence[Block]) -> list[Block]:
    """The blocks of one protocol, with a plain sentence for each planned comparison that was estimated and has none."""
    known = {contrast_of(one.estimate)["key"] for block in blocks for one in block.conclusions}
    made = []
    for block in blocks:
        more = []
        for one in block.estimates if block.mode == "recommended" else ():
            contrast = contrast_of(one)
            if contrast.get("is_planned") and contrast["key"] not in known:
                known.add(contrast["key"])
                more.append(_plain_conclusion(one))
        made.append(replace(block, conclusions=(*block.conclusions, *more)) if more else block)
    return made


def _plain_conclusion(one: "Estimate") -> Conclusion:
    x, y, about = sides_of(one)
    null = one.test.null if one.test and one.test.null is not None else 0.0
    wording = Wording(
        more=f"{x} and {y} differ{about}: {one.estimand} is above {null:g}.",
        less=f"{x} and {y} differ{about}: {one.estimand} is below {null:g}.",
        same=f"{x} and {y} are equivalent{about}",
        open=f"It remains open whether {x} and {y} differ{about}.",
        subject=f"{x} and {y}{about}",
        before=f"{one.estimand[:1].upper()}{one.estimand[1:]} is",
        symbol=one.estimand,
    )
    return Conclusion(one, wording, null, contrast_of(one)["key"])
