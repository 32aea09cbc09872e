"""Read the coding samples of a study for a report, and combine two codings by the declared rule."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from studies.access import Action, allowed_member_ids
from studies.models import Arm, Study

from . import record
from .codebook import Codebook
from .coder_display import study_reviewer_hints_by_assignment
from .models import CodingSample
from .sampling import items_without_withdrawn_or_erased

CONDITIONS = tuple(Arm.Condition.values)


@dataclass(frozen=True, slots=True)
class CodedItem:
    """One item with the labels of each seat that has coded it."""

    condition: str
    assignment: int
    labels_by_seat: Mapping[int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class CodedSample:
    """A sample with its items, for a report."""

    number: int
    kind: str
    rule: str
    codebook: Codebook
    items: tuple[CodedItem, ...]
    n_unblinded_coders: int
    hints: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @property
    def items_coded_by_both(self) -> list[CodedItem]:
        """Return the items that both coders have coded."""
        return [item for item in self.items if 1 in item.labels_by_seat and 2 in item.labels_by_seat]

    @property
    def conditions(self) -> list[str]:
        return sorted({item.condition for item in self.items}, key=CONDITIONS.index)

    def counted_codings(self, item: CodedItem) -> list[frozenset[str]] | None:
        """Return the codings that count for an item by the declared rule, or None if the third coder has not decided yet."""
        codings = [item.labels_by_seat[1], item.labels_by_seat[2]]
        if self.rule != CodingSample.Rule.THIRD:
            return codings
        if codings[0] == codings[1]:
            return codings[:1]
        return (
            [item.labels_by_seat[record.ADJUDICATOR_SEAT]] if record.ADJUDICATOR_SEAT in item.labels_by_seat else None
        )

    def is_work_refused(self, item: CodedItem) -> bool | None:
        """Return whether reviewers refuse the work, by the declared rule. Return None if it is undecided."""
        codings = self.counted_codings(item)
        if codings is None:
            return None
        return all(codings) if self.rule == CodingSample.Rule.INTERSECTION else any(codings)


def read_coded_samples(study: Study, origins: Iterable[str]) -> list[CodedSample]:
    """Return every sample of these origins with its current codings. Call it inside the report's snapshot."""
    samples = []
    # Coders see only the texts and the codebook. Members who can also view the study may know more.
    unblinded_members = allowed_member_ids(Action.CODE, study) & allowed_member_ids(Action.VIEW, study)
    for sample in study.coding_samples.filter(origin__in=list(origins)).order_by("number"):
        codings = record.current_codings_by_item(sample)
        rows = items_without_withdrawn_or_erased(sample).values_list(
            "pk", "assignment_id", "assignment__batch__arm__condition"
        )
        items = tuple(
            CodedItem(condition, assignment, {seat: coding.labels for seat, coding in codings.get(pk, {}).items()})
            for pk, assignment, condition in rows.order_by("number")
        )
        n_unblinded = len(unblinded_members.intersection(sample.seats.values_list("user", flat=True)))
        hints = study_reviewer_hints_by_assignment(sample) if sample.kind == CodingSample.Kind.REJECTIONS else {}
        samples.append(
            CodedSample(
                sample.number, sample.kind, sample.rule, Codebook.from_json(sample.codebook), items, n_unblinded, hints
            )
        )
    return samples


def refusal_reasons_by_assignment(samples: Sequence[CodedSample]) -> dict[int, str]:
    """Return the reasons of each refused assignment. The newest sample with a decision counts."""
    reasons_by_assignment: dict[int, str] = {}
    for sample in samples:
        if sample.kind != CodingSample.Kind.REJECTIONS:
            continue
        names = {label.key: label.name for label in sample.codebook.labels}
        for item in sample.items_coded_by_both:
            is_refused = sample.is_work_refused(item)
            if is_refused:
                reasons = sorted({names[key] for labels in sample.counted_codings(item) or () for key in labels})
                reasons_by_assignment[item.assignment] = f"reviewed: {', '.join(reasons)}"
            elif is_refused is not None:
                reasons_by_assignment.pop(item.assignment, None)
    return reasons_by_assignment


def decided_review_assignment_ids(samples: Sequence[CodedSample]) -> set[int]:
    """Return the assignments that reviewers have decided."""
    reviews = [sample for sample in samples if sample.kind == CodingSample.Kind.REJECTIONS]
    return {
        item.assignment
        for sample in reviews
        for item in sample.items_coded_by_both
        if sample.is_work_refused(item) is not None
    }
