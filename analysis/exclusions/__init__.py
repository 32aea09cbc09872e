"""Exclusion rules. A rule marks each submitted assignment as pass, fail or unknown, with evidence. Unknown never excludes.

A rule is one module in ``rules`` that registers a function (``studies.models.design.register``); there is no list to edit. Rules
see all answers as given, not only those that other rules keep, so the kept set does not depend on their order. A rule that uses
answers to the questions under study is not outcome-blind, and is not applied to the recommended estimates.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from . import rules

if TYPE_CHECKING:
    from pandas import DataFrame

PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"


def _no_test_answers() -> "DataFrame":
    from pandas import DataFrame

    return DataFrame()


@dataclass(frozen=True, slots=True)
class RuleInput:
    """The input of rules: the frames of submitted assignments, decisions of people, and texts that are read on demand.

    ``words_by_batch``: number of words shown in each batch. ``texts_by_batch``: texts shown in each batch, by batch
    number. ``review_reasons``: why reviewers refuse each reviewed annotator's work, '' if they accept it.
    ``live_item_counts``: number of items in each live section. It has only assignments with fewer items than drawn: an
    item was retired, or only third labels were needed. ``test_answers``: the answers to test questions, one row each.
    ``unseen_answers``: ids of the given answers about images that the annotator could not see, by assignment.
    ``attention_check_keys``: the key of the right answer of each attention check, by section and question. ``rewriting_questions``: section
    and key of the questions that have a shown text rewritten.
    """

    responses: "DataFrame"
    assignments: "DataFrame"
    decisions: Mapping[int, str] = field(default_factory=dict)
    allowed: int = 1
    words_by_batch: Callable[[], Mapping[int, int]] = dict
    texts_by_batch: Callable[[], Mapping[int, list[str]]] = dict
    review_reasons: Callable[[], Mapping[int, str]] = dict
    live_item_counts: Callable[[], Mapping[int, tuple[tuple[int, int], ...]]] = dict
    test_answers: Callable[[], "DataFrame"] = _no_test_answers
    unseen_answers: Callable[[], Mapping[int, list[int]]] = dict
    attention_check_keys: Callable[[], Mapping[tuple[int, str], str]] = dict
    rewriting_questions: Callable[[], Collection[tuple[int, str]]] = tuple

    @property
    def submitted(self) -> list[int]:
        return self.assignments.loc[self.assignments["is_submitted"], "assignment"].tolist()


@dataclass(slots=True)
class AssignmentFlags:
    """The result of a rule: a state for each assignment, and evidence for those that fail or may fail.

    ``answers``: ids of single answers that the rule leaves out. The other answers of the assignment count.
    """

    states: dict[int, str] = field(default_factory=dict)
    answers: set[int] = field(default_factory=set)
    evidence: dict[int, str] = field(default_factory=dict)

    def add(self, assignment: int, state: str, evidence: str = "") -> None:
        self.states[assignment] = state
        if evidence:
            self.evidence[assignment] = evidence

    def judge(self, assignment: int, is_failed: bool | None, evidence: str = "") -> None:
        """Add an assignment that fails, passes or (None) cannot be judged. Only a failed one keeps the evidence."""
        state = UNKNOWN if is_failed is None else FAIL if is_failed else PASS
        self.add(assignment, state, evidence if is_failed else "")


def load_rules() -> None:
    """Import every rule module, which registers its rule. Called when Django starts, so rules must not import pandas at the top."""
    for module in iter_modules(rules.__path__):
        import_module(f"{rules.__name__}.{module.name}")
