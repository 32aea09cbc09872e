"""What operations return."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """What a draft lacks (``is_blocking``), or a warning. A launch names the ``key`` of each warning that you accept."""

    key: str
    text: str
    is_blocking: bool


@dataclass(frozen=True, slots=True)
class Checklist:
    """``page``: the address of the page on which a person reads the list, and launches the study.

    ``populations``: for each planned comparison, what its result can be about, and what would make its interval narrower.
    """

    problems: tuple[Problem, ...]
    page: str = ""
    populations: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[Problem, ...]:
        return tuple(one for one in self.problems if one.is_blocking)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(one for one in self.problems if not one.is_blocking)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a study of this size can find. ``sentences`` say it, and ``advice`` says what would find more.

    ``data``: all that the site says: the ``approximate`` numbers, and the ``plan`` that is simulated and stored, or None.
    """

    sentences: tuple[str, ...]
    advice: tuple[str, ...]
    has_wanted_power: bool
    data: Mapping[str, Any] = field(repr=False, default_factory=dict)


@dataclass(frozen=True, slots=True)
class Link:
    """How people come to a study. ``missing``: what it needs before people can come. ``data``: all that the site says."""

    address: str
    key: str
    state: str
    missing: tuple[str, ...]
    data: Mapping[str, Any] = field(repr=False, default_factory=dict)

    def __str__(self) -> str:
        return self.address


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the newest analysis decides about a claim: ``yes``, ``no`` or ``open``. ``sentence`` says it as the report does."""

    claim: str
    verdict: str
    sentence: str
    numbers: str = ""
    pvalue: float | None = None
    warnings: tuple[str, ...] = ()
    analysis: int | None = None

    @property
    def holds(self) -> bool:
        return self.verdict == "yes"
