"""The labels of one comparison: those given in time, those that rules keep, the final answers and the stopping status."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.planned_labels import PlannedLabels
from analysis.protocols import StoppingStatus
from analysis.protocols.blocks.comparisons import Comparison

from .labels import FinalAnswers, comparison_rows, final_answers, section_comparisons, third_label_mask
from .stopping import stopping_statuses

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class ComparisonLabels:
    """The labels of one comparison: all labels given in time, those that the rules keep, and the final answers.

    ``is_third`` marks third labels in each of them. ``n_submitted``: who finished a batch of the section, whatever pairs it held.
    """

    section: Any
    comparison: Comparison
    given: "DataFrame"
    kept: "DataFrame"
    paper: "DataFrame"
    answers: FinalAnswers
    look: StoppingStatus | None
    n_submitted: int

    @property
    def title(self) -> str:
        criterion = f", {self.comparison.criterion}" if self.comparison.criterion else ""
        return f"section {self.section.position}, {self.comparison.x} and {self.comparison.y}{criterion}"

    @property
    def shares(self) -> "DataFrame":
        """Return the labels that count for shares: all except third labels."""
        return self.kept[~self.kept["is_third"].to_numpy(bool)]


def read_comparison_labels(
    context: AnalysisContext, planned_labels: PlannedLabels, section: Any
) -> list[ComparisonLabels]:
    rows = context.rows
    kept, paper = (set(rows.loc[rows[column].astype(bool), "assignment"]) for column in ("is_kept", "is_kept_paper"))
    said = {look.name: look for look in stopping_statuses(planned_labels, section, context.seed)}
    mine = planned_labels.rows[planned_labels.rows["section"] == section.position]
    n_submitted = mine.loc[mine["is_submitted"] & ~mine["is_top_up"], "assignment"].nunique()
    pairs = [frozenset(pair.split("\x1f")) for pair in sorted(set(mine["pair"])) if pair.count("\x1f") == 1]
    found = []
    for compared in section_comparisons(section, shown_pairs=pairs):
        rows = comparison_rows(mine, compared)
        given = rows[rows["is_given"] & rows["is_submitted"]]
        given = given.assign(is_third=third_label_mask(given, section))
        in_paper = given[given["assignment"].isin(paper)]
        found.append(
            ComparisonLabels(
                section,
                compared,
                given,
                given[given["assignment"].isin(kept)],
                in_paper,
                final_answers(in_paper, section),
                said.get(compared.key),
                n_submitted,
            )
        )
    return found


def logged_stopping_outcome(comparison_labels: ComparisonLabels) -> dict[str, Any] | None:
    """Return the logged outcome of this comparison, if the study closed itself."""
    event = comparison_labels.section.study.audit_events.filter(verb="decide").order_by("pk").last()
    outcomes = event.data.get("outcomes", []) if event else []
    return next(
        (outcome for outcome in outcomes if outcome.get("comparison") == comparison_labels.comparison.key), None
    )
