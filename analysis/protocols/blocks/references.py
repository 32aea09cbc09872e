"""Planted references in analyses: the names of the systems that are ends of the scale."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from .comparisons import Comparison


@dataclass(frozen=True, slots=True)
class PlantedReferences:
    """The names of the systems that are planted ends of the scale."""

    maximal: frozenset[str] = frozenset()
    minimal: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        return self.maximal | self.minimal

    @property
    def is_complete(self) -> bool:
        return bool(self.maximal and self.minimal)

    def kind_of(self, system: str) -> str:
        """Return which end a system is, for tables, or '' for a system under evaluation."""
        return "maximal" if system in self.maximal else "minimal" if system in self.minimal else ""


def planted_references_of(study: Any) -> PlantedReferences:
    kinds = study.systems.model.Reference
    names_by_kind: dict[str, set[str]] = {}
    for name, reference in study.systems.exclude(reference="").values_list("name", "reference"):
        names_by_kind.setdefault(reference, set()).add(name)
    return PlantedReferences(
        frozenset(names_by_kind.get(kinds.MAXIMAL, ())), frozenset(names_by_kind.get(kinds.MINIMAL, ()))
    )


def unplanned_pairs(
    systems: Iterable[str], planned_comparisons: Iterable[Comparison], references: PlantedReferences
) -> Iterator[tuple[str, str]]:
    """Return all unplanned pairs of systems under evaluation. Planted ends are compared only if this is planned."""
    planned_pairs = {frozenset((contrast.x, contrast.y)) for contrast in planned_comparisons}
    for x, y in combinations(sorted(set(systems) - references.names), 2):
        if frozenset((x, y)) not in planned_pairs:
            yield x, y
