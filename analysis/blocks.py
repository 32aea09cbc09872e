"""The piece of a report that an analysis returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a report. ``estimates`` are envelopes (analysis.stats.results); tables and series are made of them.

    ``tables``: each with name, title, place (first, sure, more), columns ("key|label|kind; …"), rows and note. ``series``: figures,
    each with name, title, description, axis, reference, limits, rows and, where it is no row of intervals, kind. An estimate of a
    planned comparison whose settings have ``words`` (more, less, same, open, what, symbol, kind) is a sentence of the report.
    """

    name: str
    title: str
    mode: str  # paper | recommended
    estimates: tuple = ()
    tables: Sequence[Mapping[str, Any]] = ()
    series: Sequence[Mapping[str, Any]] = ()
    verdict: Mapping[str, Any] | None = None
    warnings: tuple = ()
    note: str = ""
