"""Decisions of people about assignments: leave one out, take that back, open its place again, release it.

An exclusion is a row and never goes away; taking it back is another row.
"""

from collections.abc import Iterable, Sequence

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, Max, OuterRef, QuerySet
from django.db.models.functions import Greatest, Now

from annotators.models import Assignment, Exclusion, Inquiry
from studies.access import Action, check_permission
from studies.models import FIRST_TEST_NUMBER, Batch, Placement, Study, audit
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused

from .assign import Released, release

TOP_UP = Batch.Origin.TOP_UP
# What an exclusion may be for. The key is stored; "other" asks for a note.
EXCLUSION_REASONS = {
    "not_native": "does not read the language well enough",
    "failed_tests": "failed the test questions",
    "too_fast": "answered faster than one can read",
    "copied_text": "copied text instead of writing",
    "repeated": "the same person took part before",
    "technical": "a technical fault",
    "misunderstood": "says that the task was misunderstood",
    "own_wish": "asked to be left out",
    "other": "another reason (say which)",
}


def active_exclusions(assignments) -> QuerySet[Exclusion]:
    """Exclusions of these assignments that nobody has taken back."""
    return Exclusion.objects.filter(assignment__in=assignments, reverses=None, reversed_by=None)


def annotate_is_excluded(assignments: QuerySet[Assignment]) -> QuerySet[Assignment]:
    """The same assignments, each with ``is_excluded``."""
    standing = Exclusion.objects.filter(assignment=OuterRef("pk"), reverses=None, reversed_by=None)
    return assignments.annotate(is_excluded=Exists(standing))


def _lock_study(study_id: int) -> Study:
    return Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study_id)


def exclude(
    assignments: Iterable[Assignment], reason: str, by, note: str = "", reopen: bool = False
) -> list[Exclusion]:
    """Leave submitted assignments of one study out of every later analysis, and open their places again if wished.

    Those that are excluded already are passed over. All or nothing; raises NotNow with the reason.
    """
    assignments = list(assignments)
    if reason not in EXCLUSION_REASONS:
        raise ActionRefused("Choose a reason.")
    if reason == "other" and not note.strip():
        raise ActionRefused("Say which reason.")
    studies = {one.study_id for one in assignments}
    if len(studies) > 1:
        raise ActionRefused("Choose assignments of one study.")
    if not studies:
        raise ActionRefused("Choose at least one assignment.")
    check_permission(by, Action.MANAGE_ASSIGNMENTS, min(studies))
    with transaction.atomic():
        study = _lock_study(studies.pop())
        rows = list(
            annotate_is_excluded(Assignment.objects.filter(pk__in=[one.pk for one in assignments])).order_by("pk")
        )
        if tests := [one for one in rows if one.origin == Assignment.Origin.TEST]:
            raise ActionRefused(f"{tests[0]} is a try: tries are never counted. Choose the others alone.")
        if unfinished := [one for one in rows if not one.submitted_at]:
            raise ActionRefused(
                f"{unfinished[0]} is not submitted: there is nothing to leave out yet. Choose the others alone."
            )
        new = [one for one in rows if not one.is_excluded]
        made = Exclusion.objects.bulk_create(
            Exclusion(assignment=one, reason=reason, note=note.strip(), by=by) for one in new
        )
        for one in new:
            # The note may speak of a person: the log keeps the reason alone.
            audit.record("exclude", study=study, by=by, assignment_code=one.code, reason=reason)
        if reopen and new:
            reopen_places(study, new, by)
    return made


def describe_excluded_places(study: Study, n_excluded: int, is_reopened: bool) -> str:
    """What became of the places of n people who were just excluded, and what a researcher may do about it, as sentences."""
    its, places, stay, are = ("Its", "place", "stays", "is") if n_excluded == 1 else ("Their", "places", "stay", "are")
    if is_reopened:
        return f"{its} {places} {are} open again for somebody else."
    if study.state not in Study.RUNNING:
        return f"The study takes nobody new, so {its.lower()} {places} {stay} closed."
    if study.target_kind == Study.Target.KEPT or study.replaces_excluded:
        when = "within a few minutes" if study.state == Study.State.LAUNCHED else "when the study is resumed"
        most = f", as far as the cap of {study.cap} places allows" if study.cap is not None else ""
        return f"{its} {places} {are} opened again {when}{most}. You need not do anything."
    left = None if study.cap is None else max(0, study.cap - lifecycle.count_open_places(study))
    how = f"{its} {places} {stay} taken: nobody else gets {'it' if n_excluded == 1 else 'them'}."
    if left == 0:
        return f"{how} The cap of {study.cap} places is reached, so no other place can be opened; clone the study to collect more."
    return f"{how} To let somebody else answer, choose “Open more places” on the study's page."


def reverse_exclusion(exclusion: Exclusion, by, note: str = "") -> Exclusion:
    """Take an exclusion back. What was decided stays on record."""
    check_permission(by, Action.MANAGE_ASSIGNMENTS, exclusion.assignment.study_id)
    if exclusion.reverses_id:
        raise ActionRefused(
            "That is the taking back of an exclusion, not one. Exclude the assignment once more instead."
        )
    try:
        with transaction.atomic():
            made = Exclusion.objects.create(
                assignment=exclusion.assignment, reason=exclusion.reason, note=note.strip(), by=by, reverses=exclusion
            )
            assignment = exclusion.assignment
            audit.record("reverse exclusion", study=assignment.study, by=by, assignment_code=assignment.code)
    except IntegrityError:
        raise ActionRefused("It was taken back already: the assignment counts. You need not do anything.") from None
    return made


def reopen_places_up_to_cap(study: Study, assignment_ids: Sequence[int]) -> int:
    """Open the places of those of these assignments that were not opened again yet, in this order, up to the cap.

    Gives how many were. 0 unless the study is launched.
    """
    with transaction.atomic():
        study = _lock_study(study.pk)
        if study.state != Study.State.LAUNCHED:
            return 0
        rows = list(Assignment.objects.filter(study=study, pk__in=assignment_ids, replaced_at=None).order_by("pk"))
        if study.cap is not None:
            rows = rows[: max(0, study.cap - lifecycle.count_open_places(study))]
        if rows:
            reopen_places(study, rows, None)
        return len(rows)


def reopen_places(study: Study, assignments: Sequence[Assignment], by) -> list[Batch]:
    """A copy of each assignment's batch with one place, for somebody else. Raises NotNow above the cap.

    The copy of a batch of third labels is one of third labels: beyond the cap, and asked of items in disagreement alone. Where batches wait that were drawn and never opened, the next of those are opened instead: a higher number cannot be claimed
    without opening all below it.
    """
    check_permission(by, Action.MANAGE_ASSIGNMENTS, study)
    with transaction.atomic():
        study = _lock_study(study.pk)
        if study.state not in Study.RUNNING:
            raise ActionRefused(
                f"Places can be opened while a study is launched or paused, and it is {study.state}. Exclude without opening the place again."
            )
        Assignment.objects.filter(pk__in=[one.pk for one in assignments]).update(replaced_at=Now())
        batches = study.batches.filter(number__lt=FIRST_TEST_NUMBER)
        if batches.filter(number__gte=study.open_to).exists():
            lifecycle.open_more_places(study, len(assignments), by)
            return []
        open_now = lifecycle.count_open_places(study)
        originals = {batch.pk: batch for batch in Batch.objects.filter(pk__in=[one.batch_id for one in assignments])}
        counted = sum(originals[one.batch_id].origin != TOP_UP for one in assignments)
        if study.cap is not None and counted and open_now + counted > study.cap:
            left = max(0, study.cap - open_now)
            raise ActionRefused(
                f"The study is capped at {study.cap} places, and {open_now} are open or taken, so {counted} more cannot be opened. "
                f"{lifecycle.remaining_places_text(left)} Exclude without opening the place again, or clone the study to collect more."
            )
        last = batches.aggregate(n=Max("number"))["n"]
        first = 0 if last is None else last + 1
        made = Batch.objects.bulk_create(
            Batch(
                study=study,
                arm_id=originals[one.batch_id].arm_id,
                number=first + n,
                wanted=1,
                origin=TOP_UP if originals[one.batch_id].origin == TOP_UP else Batch.Origin.REPLACEMENT,
                copy_of_id=one.batch_id,
            )
            for n, one in enumerate(assignments)
        )
        placed: dict[int, list[tuple[int, int]]] = {}
        rows = Placement.objects.filter(batch__in=list(originals)).order_by("number")
        for batch_id, item_id, number in rows.values_list("batch_id", "item_id", "number"):
            placed.setdefault(batch_id, []).append((item_id, number))
        Placement.objects.bulk_create(
            Placement(batch=batch, item_id=item, number=number)
            for batch in made
            for item, number in placed.get(batch.copy_of_id, ())
        )
        Study.objects.filter(pk=study.pk).update(open_to=Greatest(F("open_to"), first + len(made)))
        for one, batch in zip(assignments, made, strict=True):
            audit.record("reopen", study=study, by=by, assignment_code=one.code, batch=batch.number)
    return made


def release_place(assignment: Assignment, by) -> None:
    """Give an unfinished assignment's place back, as if its person had returned it."""
    check_permission(by, Action.MANAGE_ASSIGNMENTS, assignment.study_id)
    with transaction.atomic():
        if not release(assignment.pk, Released.RETURNED):
            raise ActionRefused(
                "There is no place to give back: it was submitted or released before. You need not do anything."
            )
        audit.record("release", study=assignment.study, by=by, assignment_code=assignment.code)


def mark_inquiry_handled(inquiry: Inquiry, by, is_handled: bool = True) -> None:
    """Mark what an annotator asked or reported as handled, or as not handled after all."""
    study = inquiry.assignment.study
    check_permission(by, Action.MANAGE_ASSIGNMENTS, study)
    with transaction.atomic():
        rows = Inquiry.objects.filter(pk=inquiry.pk, handled_at__isnull=is_handled)
        if rows.update(handled_at=Now() if is_handled else None):
            verb = "handle inquiry" if is_handled else "reopen inquiry"
            audit.record(verb, study=study, by=by, assignment_code=inquiry.assignment.code)
