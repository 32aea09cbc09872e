"""How the answers of a protocol become scores or preferences of systems, for boards and for metrics beside people."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from studies.models import Question, Section
from studies.protocols.base.fields import TEXT_KINDS

if TYPE_CHECKING:
    from pandas import DataFrame


class Scorer:
    """How a protocol's answers become scores. Each analysis whose answers do so has one (``ProtocolAnalysis.scorer``)."""

    # "scores": each answer gives one output a score. "preferences": each answer prefers one of two systems.
    kind = "scores"
    # Whether a score is about one output by itself, so that a judge's points for this output are on the same scale.
    gives_scores_of_one_output = True
    # Whether an answer is about outputs of one prompt. Otherwise it is a stated chance about two systems, and metrics have no
    # output that they could be compared on.
    is_about_outputs = True

    def is_scored(self, question: Question) -> bool:
        """Return whether the answers to a question give scores or preferences."""
        return (question.scale or {}).get("kind") not in TEXT_KINDS

    def describe_scores(self, section: Section, question: Question) -> str:
        """Return a sentence that says what a score means, or '' where it is the answer as given."""
        return ""

    def find_problem(self, section: Section, settings: Mapping[str, Any]) -> str:
        """Return why the section's answers cannot be used by a board, or ''."""
        return ""

    def shows_one_output(self, settings: Mapping[str, Any]) -> bool:
        """Return whether a page shows one output, whose answer is its score, so that a judge can be checked on it."""
        return False

    def items_per_prompt(self, settings: Mapping[str, Any], n_systems: int, n_references: int) -> float:
        """Return how many items of a prompt show the output of each system once."""
        raise NotImplementedError

    def ask_about_all_systems(self, section: Section) -> None:
        """Replace the questions of a round's draft by questions about its systems, if questions name systems."""

    def score_answers(
        self, section: Section, question: Any, answers: "DataFrame", shown: Mapping[str, tuple[str, ...]]
    ) -> "DataFrame":
        """Return the answers to a question with ``value`` from 0 to 1 (higher is better for ``system``), ``other`` and ``is_first``.

        ``shown``: the systems of each item. Rows without a value are left out.
        """
        raise NotImplementedError


def with_other_outputs(rows: "DataFrame", shown: Mapping[str, tuple[tuple[str, int], ...]]) -> "DataFrame":
    """Return rows about one output of a pair, each with a row about the other output, whose value is what is left to 1."""
    import pandas as pd

    keys = zip(rows["item"], rows["system"], rows["sample"], strict=True)
    others = [next((one for one in shown.get(item, ()) if one != (name, sample)), None) for item, name, sample in keys]
    rows = rows[pd.Series([other is not None for other in others], index=rows.index, dtype=bool)]
    found = [other for other in others if other is not None]
    systems, samples = [name for name, _ in found], [sample for _, sample in found]
    other_rows = rows.assign(system=systems, sample=samples, value=1 - rows["value"])
    return pd.concat([rows, other_rows]).assign(unit=lambda both: both["item"])


def other_system(pair: Any, system: str) -> str | None:
    """Return the other system of a pair."""
    return next((name for name in pair if name != system), None) if isinstance(pair, tuple) else None
