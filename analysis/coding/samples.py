"""The samples of a study as a report reads them: every item with its codings, and what the declared rule makes of two."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from studies.access import Action, allowed_member_ids
from studies.models import Arm, Study

from . import record
from .codebook import Codebook
from .coder_display import hints_by_assignment
from .models import CodingSample
from .sampling import remaining_items

CONDITIONS = tuple(Arm.Condition.values)


dataclass(frozen=True, slots=True)


@dataclass(frozen=True, slots=True)
class CodedItem:
    """One item as it was coded: by seat the labels, absent where that seat has not coded it."""

    condition: str
    assignment: int
    labels_by_seat: Mapping[int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class CodedSample:
    """A sample as a report reads it."""

    number: int
    kind: str
    rule: str
    codebook: Codebook
    items: tuple[CodedItem, ...]
    n_unblinded_coders: int
    hints: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @property
    def pairs(self) -> list[CodedItem]:
        """Items that both have coded."""
        return [item for item in self.items if 1 in item.labels_by_seat and 2 in item.labels_by_seat]

    @property
    def conditions(self) -> list[str]:
        return sorted({item.condition for item in self.items}, key=CONDITIONS.index)

    def counted_codings(self, item: CodedItem) -> list[frozenset[str]] | None:
        """The codings that count for an item, by the declared rule; None where a third has not decided yet."""
        both = [item.labels_by_seat[1], item.labels_by_seat[2]]
        if self.rule != CodingSample.Rule.THIRD:
            return both
        if both[0] == both[1]:
            return both[:1]
        return (
            [item.labels_by_seat[record.ADJUDICATOR_SEAT]] if record.ADJUDICATOR_SEAT in item.labels_by_seat else None
        )

    def is_work_refused(self, item: CodedItem) -> bool | None:
        """Of a review: whether the work is refused, by the declared rule; None where that is not decided."""
        codings = self.counted_codings(item)
        if codings is None:
            return None
        return all(codings) if self.rule == CodingSample.Rule.INTERSECTION else any(codings)


def read_samples(study: Study, origins: Iterable[str]) -> list[CodedSample]:
    """Every sample of these origins with what stands of its codings. Reads the database: call it inside the report's snapshot."""
    found = []
    # Coders see the words and the codebook alone; whoever may look at the study too could see more.
    seers = allowed_member_ids(Action.CODE, study) & allowed_member_ids(Action.VIEW, study)
    for sample in study.coding_samples.filter(origin__in=list(origins)).order_by("number"):
        said = record.current_codings(sample)
        rows = remaining_items(sample).values_list("pk", "assignment_id", "assignment__batch__arm__condition")
        items = tuple(
            CodedItem(condition, assignment, {seat: one.labels for seat, one in said.get(pk, {}).items()})
            for pk, assignment, condition in rows.order_by("number")
        )
        more = len(seers.intersection(sample.seats.values_list("user", flat=True)))
        hints = hints_by_assignment(sample) if sample.kind == CodingSample.Kind.REJECTIONS else {}
        found.append(
            CodedSample(
                sample.number, sample.kind, sample.rule, Codebook.from_json(sample.codebook), items, more, hints
            )
        )
    return found


def refusal_reasons(samples: Sequence[CodedSample]) -> dict[int, str]:
    """Assignments that reviewers refused, each with the reasons given. The newest sample in which one was decided counts."""
    found: dict[int, str] = {}
    for sample in samples:
        if sample.kind != CodingSample.Kind.REJECTIONS:
            continue
        names = {label.key: label.name for label in sample.codebook.labels}
        for item in sample.pairs:
            is_refused = sample.is_work_refused(item)
            if is_refused:
                reasons = sorted({names[key] for labels in sample.counted_codings(item) or () for key in labels})
                found[item.assignment] = f"reviewed: {', '.join(reasons)}"
            elif is_refused is not None:
                found.pop(item.assignment, None)
    return found


def reviewed_assignment_ids(samples: Sequence[CodedSample]) -> set[int]:
    """Assignments on which reviewers have decided."""
    reviews = [sample for sample in samples if sample.kind == CodingSample.Kind.REJECTIONS]
    return {item.assignment for sample in reviews for item in sample.pairs if sample.is_work_refused(item) is not None}
