"""Store and read codings: the items of a coder, current codings, and disagreements. Only this module creates Coding rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import IntegrityError, transaction

from studies.access import Action, allowed_active_member_users, allowed_member_ids
from studies.models import Arm, Study
from studies.services.lifecycle import ActionRefused

from .codebook import Codebook
from .coder_display import study_reviewer_hints_by_assignment
from .models import Coding, CodingItem, CodingSample
from .sampling import items_without_withdrawn_or_erased

ADJUDICATOR_SEAT = 3


class CodingConflict(ActionRefused):
    """The coder stored another coding of the item meanwhile, from another window."""


@dataclass(frozen=True, slots=True)
class CurrentCoding:
    """One coder's current labels of one item. Empty ``labels``: no label applies."""

    labels: frozenset[str]
    revision: int


def coder_seat_number(sample: CodingSample, user) -> int | None:
    """Return the user's seat, or None if the user has no seat or no longer a role that can code."""
    if not allowed_active_member_users(Action.CODE, sample.study).filter(pk=user.pk).exists():
        return None
    return sample.seats.filter(user=user).values_list("number", flat=True).first()


def current_codings_by_item(sample: CodingSample) -> dict[int, dict[int, CurrentCoding]]:
    """Return the latest coding of each item (id) and seat."""
    seats = dict(sample.seats.values_list("user", "number"))
    by_item: dict[int, dict[int, CurrentCoding]] = {}
    rows = Coding.objects.filter(item__sample=sample).order_by("item", "coder", "revision")
    for item, coder, revision, labels in rows.values_list("item_id", "coder_id", "revision", "labels"):
        by_item.setdefault(item, {})[seats[coder]] = CurrentCoding(frozenset(labels.split()), revision)
    return by_item


def are_first_two_codings_different(codings_by_seat: Mapping[int, CurrentCoding]) -> bool:
    """Return whether both coders have coded the item with different labels."""
    return 1 in codings_by_seat and 2 in codings_by_seat and codings_by_seat[1].labels != codings_by_seat[2].labels


def items_of_seat(
    sample: CodingSample, seat: int, codings_by_item: Mapping[int, Mapping[int, CurrentCoding]]
) -> list[CodingItem]:
    """Return the items of a seat in order: all items, or for the third coder those on which the first two differ."""
    items = list(items_without_withdrawn_or_erased(sample).select_related("response__question", "assignment"))
    return [
        item
        for item in items
        if seat != ADJUDICATOR_SEAT or are_first_two_codings_different(codings_by_item.get(item.pk, {}))
    ]


def store_coding(item: CodingItem, user, labels: list[str], is_none: bool, seen_revision: int) -> Coding | None:
    """Store a coding or a new revision. ``seen_revision``: the revision that the page showed, 0 for none.

    Return None if nothing changed. Raises ActionRefused.
    """
    known = Codebook.from_json(item.sample.codebook).keys
    if unknown := [label for label in labels if label not in known]:
        raise ActionRefused(f"The codebook has no label “{unknown[0][:40]}”. Reload the page and choose again.")
    chosen = [label for label in known if label in labels]
    if chosen and is_none:
        raise ActionRefused("Choose either labels or “no label applies”, not both.")
    if not chosen and not is_none:
        raise ActionRefused("Choose at least one label, or choose that no label applies.")
    last = item.codings.filter(coder=user).order_by("revision").last()
    if (last.revision if last else 0) != seen_revision:
        raise CodingConflict
    if last is not None and last.labels.split() == chosen and last.is_none == is_none:
        return None
    try:
        with transaction.atomic():
            return Coding.objects.create(
                item=item, coder=user, revision=seen_revision + 1, labels=" ".join(chosen), is_none=is_none
            )
    except IntegrityError:
        raise CodingConflict from None


# Read the coding samples of a study for a report, and combine two codings by the declared rule.


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
        return [item.labels_by_seat[ADJUDICATOR_SEAT]] if ADJUDICATOR_SEAT in item.labels_by_seat else None

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
        codings = current_codings_by_item(sample)
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
