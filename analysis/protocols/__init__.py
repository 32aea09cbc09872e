"""The registry of the protocols' analyses: what the answers to each protocol of ``studies.protocols`` say.

An analysis is one module or package of this folder, named as its protocol is; there is no list to edit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from analysis.data.context import AnalysisContext
from analysis.data.planned_labels import PlannedLabels

from .blocks import Block, Overview

REGISTRY: dict[str, "ProtocolAnalysis"] = {}


@dataclass(frozen=True, slots=True)
class StoppingStatus:
    """What a stopping rule says of one comparison so far. ``evidence`` after each unit, on one scale with ``threshold``, tells no
    side. ``verdict`` and ``estimate`` do: nobody sees them while the study is blind. ``remaining``: labels still to be expected.
    """

    name: str
    rule: str
    unit: str
    evidence: tuple[float, ...]
    threshold: float
    is_decided: bool
    verdict: str | None
    stopped_at: int | None
    n_overrun: int = 0
    remaining: Mapping[str, Any] | None = None
    estimate: Any = None


class ProtocolAnalysis:
    """What a protocol's answers say. ``slug`` is the protocol's; it and ``analyse`` must be given."""

    slug = ""
    # Whether ``analyse`` takes every planned label, given or not, in ``Context.claims`` (``analysis.data.planned_labels``).
    needs_planned_labels = False
    # What puts the blocks of several protocols beside each other, from all blocks and the star scheme. Where protocols share one,
    # it is called once.
    build_overview: Callable[[Sequence[Block], str], Overview] | None = None

    def analyse(self, context: AnalysisContext) -> list[Block]:
        """All live sections of this protocol: blocks, each ``paper`` or ``recommended``."""
        raise NotImplementedError

    def looks(self, planned_labels: PlannedLabels, section: Any, seed: str = "") -> list[StoppingStatus]:
        """What the section's stopping rule says of the planned labels so far (``analysis.data.planned_labels``), a Look a comparison."""
        return []


def register(cls):
    """Class decorator: make an analysis known by its protocol's slug."""
    if not cls.slug or cls.slug in REGISTRY:
        raise ValueError(f"The analysis of {cls.slug!r} has no slug or is registered twice.")
    REGISTRY[cls.slug] = cls()
    return cls


def load_analyses() -> None:
    """Import every module of this package. Called once, when the application is ready."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
