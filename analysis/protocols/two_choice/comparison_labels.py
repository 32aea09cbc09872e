"""The labels of one comparison: those given in time, those that rules keep, the final answers and the stopping status."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.planned_labels import PlannedLabels
from analysis.protocols import StoppingStatus
from analysis.protocols.blocks.comparisons import Comparison
from analysis.protocols.blocks.populations import SECOND_SAMPLE
from analysis.protocols.blocks.subjects import join_words

from .labels import (
    FinalAnswers,
    comparison_rows_with_values,
    final_item_answers,
    planned_comparisons_then_other_pairs,
    third_label_mask,
)
from .stopping import primary_comparison_stopping_statuses

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True)
class ComparisonLabels:
    """The labels of one comparison: all labels given in time, those that the rules keep, and the final answers.

    ``is_third`` marks third labels in each of them. ``n_submitted``: the number of annotators who
    finished a batch of the section, with any pairs.
    """

    section: Any
    comparison: Comparison
    given: "DataFrame"
    kept: "DataFrame"
    paper: "DataFrame"
    answers: FinalAnswers
    stopping_status: StoppingStatus | None
    n_submitted: int

    @property
    def title(self) -> str:
        return join_words(f"{self.comparison.x} and {self.comparison.y}", self.comparison.subject.note)

    @property
    def anytime_status(self) -> StoppingStatus | None:
        """Return the status of the anytime-valid rule if its estimate is the headline, which is then about people only."""
        status = self.stopping_status
        return status if status is not None and status.rule == "anytime" and status.estimate is not None else None

    @property
    def shares(self) -> "DataFrame":
        """Return the labels that count for shares: all except third labels."""
        return self.kept[~self.kept["is_third"].to_numpy(bool)]

    @property
    def rows_with_values(self) -> "DataFrame":
        """Return the labels of the share of choices. A tie counts half; "cannot judge" is left out."""
        return self.shares[self.shares["value"].notna()]

    @property
    def values_annotators_and_prompts(self) -> tuple[Any, Any, Any]:
        """Return the labels of the share of choices, with their annotators and their second sample."""
        rows = self.rows_with_values
        return rows["value"].to_numpy(float), rows["annotator"].to_numpy(object), rows[SECOND_SAMPLE].to_numpy(object)


def read_comparison_labels(
    context: AnalysisContext, planned_labels: PlannedLabels, section: Any
) -> list[ComparisonLabels]:
    rows = context.rows
    kept_ids, paper_ids = (set(rows.loc[rows[column].astype(bool), "id"]) for column in ("is_kept", "is_kept_paper"))
    statuses = {
        status.name: status for status in primary_comparison_stopping_statuses(planned_labels, section, context.seed)
    }
    section_rows = planned_labels.rows[planned_labels.rows["section"] == section.position]
    n_submitted = section_rows.loc[section_rows["is_submitted"] & ~section_rows["is_top_up"], "assignment"].nunique()
    pairs = [frozenset(pair.split("\x1f")) for pair in sorted(set(section_rows["pair"])) if pair.count("\x1f") == 1]
    labels_by_comparison = []
    for compared in planned_comparisons_then_other_pairs(section, other_pairs=pairs):
        rows = comparison_rows_with_values(section_rows, compared)
        given_rows = rows[rows["is_given"] & rows["is_submitted"]]
        given_rows = given_rows.assign(is_third=third_label_mask(given_rows, section))
        paper_rows = given_rows[given_rows["id"].isin(paper_ids)]
        labels_by_comparison.append(
            ComparisonLabels(
                section,
                compared,
                given_rows,
                given_rows[given_rows["id"].isin(kept_ids)],
                paper_rows,
                final_item_answers(paper_rows, section),
                statuses.get(compared.key),
                n_submitted,
            )
        )
    return labels_by_comparison


def logged_stopping_outcome(comparison_labels: ComparisonLabels) -> dict[str, Any] | None:
    """Return the logged outcome of this comparison, if the study closed itself."""
    event = comparison_labels.section.study.audit_events.filter(verb="decide").order_by("pk").last()
    outcomes = event.data.get("outcomes", []) if event else []
    return next(
        (outcome for outcome in outcomes if outcome.get("comparison") == comparison_labels.comparison.key), None
    )
