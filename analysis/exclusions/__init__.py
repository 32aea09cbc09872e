"""Exclusion rules: each says of every submitted assignment pass, fail or unknown, with its evidence; unknown never excludes.

A rule is one module in ``rules`` that registers a function (``studies.models.rules.register``); there is no list to edit. Rules see the
answers as they were given, never what other rules left, so that the kept set does not depend on their order. A rule that looks at
what was answered to the questions under study is not outcome-blind, and is left out of the recommended estimates.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from . import rules

if TYPE_CHECKING:
    from pandas import DataFrame

PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"


@dataclass(frozen=True, slots=True)
class RuleInput:
    """What rules may look at: the frames of submitted assignments, decisions of people, and texts read on demand.

    ``words``: the words shown in each batch; ``shown``: the texts shown in each batch, by batch number; ``reviews``: what reviewers
    decided of each annotator's work, the reasons where they refuse it and '' where not; ``asked``: the items of each live section for
    those who were asked about fewer than the draw gave others, because an item was retired or a third label alone was wanted.
    """

    responses: "DataFrame"
    assignments: "DataFrame"
    decisions: Mapping[int, str] = field(default_factory=dict)
    allowed: int = 1
    words: Callable[[], Mapping[int, int]] = dict
    shown: Callable[[], Mapping[int, list[str]]] = dict
    review_reasons: Callable[[], Mapping[int, str]] = dict
    asked: Callable[[], Mapping[int, tuple[tuple[int, int], ...]]] = dict

    @property
    def submitted(self) -> list[int]:
        return self.assignments.loc[self.assignments["is_submitted"], "assignment"].tolist()


@dataclass(slots=True)
class Flags:
    """What a rule found: a state for each assignment, and for those that fail (or might) what it rests on."""

    states: dict[int, str] = field(default_factory=dict)
    evidence: dict[int, str] = field(default_factory=dict)

    def add(self, assignment: int, state: str, evidence: str = "") -> None:
        self.states[assignment] = state
        if evidence:
            self.evidence[assignment] = evidence


def load_rules() -> None:
    """Import every rule, which registers it. Called once, when the application is ready: rules must not import pandas at the top."""
    for module in iter_modules(rules.__path__):
        import_module(f"{rules.__name__}.{module.name}")
