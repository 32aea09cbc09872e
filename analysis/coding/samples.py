"""Store and read codings: the items of a coder, current codings, and disagreements. Only this module creates Coding rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet

from annotators.counting import Use, about_what_counts, select
from annotators.models import Response
from studies.access import Action, allowed_active_member_users, allowed_member_ids, check_permission_or_404
from studies.design.draw import seeded_random
from studies.models import Arm, Exposure, Study, audit
from studies.protocols.base.fields import parse_scale
from studies.services.lifecycle import ActionRefused

from .codebook import Codebook
from .hints import HINT_LABELS, reviewer_hints_by_row
from .models import Coding, CodingItem, CodingSample, CodingSeat

# Draw coding samples: random annotators of each arm, with one explanation or all explanations of each.


def codable_explanation_responses(study: Study, origin: str) -> QuerySet[Response]:
    """Return the explanations in live sections of annotators who submitted and did not withdraw. A rewritten text explains nothing."""
    explanations = about_what_counts(Response.objects.filter(assignment__study=study, erased_at=None))
    return select(Use.RESULTS, explanations, [origin]).exclude(text="").exclude(question__scale__kind="rewrite")


@transaction.atomic
def draw_coding_sample(
    study: Study,
    *,
    kind: str,
    rule: str,
    codebook: Codebook,
    per_arm: int,
    coders: Sequence,
    by,
    origin: str = "live",
) -> CodingSample:
    """Draw a sample, with the items of all arms in random order. Raises ActionRefused, which says what is missing."""
    check_permission_or_404(by, Action.SAMPLE, study)
    study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
    if study.state == Study.State.DRAFT:
        raise ActionRefused("A draft has no answers to code. Launch the study first.")
    n_coders = 3 if rule == CodingSample.Rule.THIRD else 2
    if len(coders) != n_coders or len({coder.pk for coder in coders}) != n_coders:
        raise ActionRefused(
            f"This rule needs {'three' if n_coders == 3 else 'two'} different coders. Choose another person in each field."
        )
    members = set(allowed_active_member_users(Action.CODE, study).values_list("pk", flat=True))
    if strangers := [coder for coder in coders if coder.pk not in members]:
        raise ActionRefused(f"{strangers[0]} is not a coder, editor or owner of this study. Choose another coder.")
    explanations_by_arm: dict[str, dict[tuple[str, int], list[int]]] = {}
    rows = codable_explanation_responses(study, origin).values_list(
        "assignment__batch__arm__name", "assignment__code", "assignment_id", "pk"
    )
    for arm, code, assignment, response in rows:
        explanations_by_arm.setdefault(arm, {}).setdefault((code, assignment), []).append(response)
    if not explanations_by_arm:
        raise ActionRefused(
            "No submitted assignment of this origin has an explanation to code. Choose another origin under “answers of”."
        )
    number = (study.coding_samples.aggregate(last=Max("number"))["last"] or 0) + 1
    rng = seeded_random(study.seed, "coding", number)
    chosen: list[tuple[int, int | None]] = []
    for arm in sorted(explanations_by_arm):
        people = sorted(explanations_by_arm[arm])
        for person in rng.sample(people, min(per_arm, len(people))):
            sampled = (
                rng.choice(sorted(explanations_by_arm[arm][person])) if kind == CodingSample.Kind.EXPLANATIONS else None
            )
            chosen.append((person[1], sampled))
    rng.shuffle(chosen)
    sample = CodingSample.objects.create(
        study=study,
        number=number,
        kind=kind,
        rule=rule,
        codebook=codebook.as_json(),
        per_arm=per_arm,
        origin=origin,
        by=by,
    )
    CodingSeat.objects.bulk_create(CodingSeat(sample=sample, number=n, user=user) for n, user in enumerate(coders, 1))
    CodingItem.objects.bulk_create(
        CodingItem(sample=sample, number=n, assignment_id=assignment, response_id=response)
        for n, (assignment, response) in enumerate(chosen, 1)
    )
    audit.record("draw coding sample", study=study, by=by, number=number, kind=kind, rule=rule, items=len(chosen))
    return sample


def items_without_withdrawn_or_erased(sample: CodingSample) -> QuerySet[CodingItem]:
    """Return the items without withdrawn annotators and erased texts."""
    items = select(Use.ROWS, sample.items.all(), path="assignment")
    return items.exclude(response__erased_at__isnull=False)


# The texts that coders see: plain records without a link to a system, an arm or a person.
#
# A coder of explanations sees only the explanation and the codebook. A reviewer of work also sees the judged text and
# the answers, to decide whether the explanation fits them. The author of the text and the condition stay hidden.


@dataclass(frozen=True, slots=True)
class ShownExplanation:
    """One explanation, with the judged text and the annotator's answers about it."""

    asked: str
    said: str
    text: str = ""
    answers: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def explanations_shown_to_coder(sample: CodingSample, item: CodingItem) -> tuple[ShownExplanation, ...]:
    """Return the explanations of one item."""
    if sample.kind == CodingSample.Kind.EXPLANATIONS:
        return (ShownExplanation("", item.response.text),)
    answers = list(
        about_what_counts(Response.objects.filter(assignment=item.assignment))
        .select_related("question", "exposure__output")
        .order_by("item__number", "question__position", "pk")
    )
    written = [answer for answer in answers if answer.text and answer.erased_at is None]
    flags = reviewer_hints_by_response(sample, [answer.pk for answer in written])
    return tuple(
        ShownExplanation(
            answer.question.text,
            answer.text,
            answer.exposure.output.text if answer.exposure else "",
            tuple(
                _answer(other)
                for other in answers
                if other.value is not None and other.exposure_id == answer.exposure_id
            ),
            tuple(HINT_LABELS[flag] for flag in flags[answer.pk]),
        )
        for answer in written
    )


def _answer(response: Response) -> str:
    if response.value is None:
        return ""
    try:
        scale = parse_scale(response.question.scale)
    except (ValueError, TypeError, KeyError):
        return f"{response.value:f}"
    labels = {point.key: point.label for point in scale.points} if scale.kind == "likert" else {}
    value = f"{response.value.normalize():f}"
    return labels.get(value) or value


def reviewer_hints_by_response(sample: CodingSample, response_ids: list[int]) -> dict[int, tuple[str, ...]]:
    """Return the hints of these explanations (ids), compared with all explanations of the study."""
    hints = _all_hints(sample, set(response_ids))
    return {pk: flags for pk, _, flags in hints if pk in set(response_ids)}


def study_reviewer_hints_by_assignment(sample: CodingSample) -> dict[int, frozenset[str]]:
    """Return the hints of each assignment's explanations."""
    by_assignment: dict[int, set[str]] = {}
    for _, assignment, flags in _all_hints(sample):
        by_assignment.setdefault(assignment, set()).update(flags)
    return {assignment: frozenset(flags) for assignment, flags in by_assignment.items()}


def _all_hints(sample: CodingSample, explanation_ids: set[int] | None = None) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return (explanation, assignment, hints). Copied words are checked for the wanted explanations, or for all if None."""
    rows = list(
        codable_explanation_responses(sample.study, sample.origin)
        .order_by("pk")
        .values_list("pk", "assignment_id", "assignment__annotator", "exposure", "text")
    )
    ids = {exposure for pk, *_, exposure, _ in rows if exposure and (explanation_ids is None or pk in explanation_ids)}
    texts_by_exposure = {
        str(pk): [text] for pk, text in Exposure.objects.filter(pk__in=ids).values_list("pk", "output__text")
    }
    keyed = [(annotator, str(exposure or ""), text) for _, _, annotator, exposure, text in rows]
    flags = reviewer_hints_by_row(keyed, texts_by_exposure)
    return [(pk, assignment, row_flags) for (pk, assignment, *_), row_flags in zip(rows, flags, strict=True)]


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
