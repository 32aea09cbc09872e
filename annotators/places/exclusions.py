"""Researchers' decisions about assignments: exclude, undo an exclusion, open the place again, release a place.

An exclusion is a row that is never deleted. A second row undoes it.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, Max, OuterRef, QuerySet
from django.db.models.functions import Greatest, Now

from annotators.models import Assignment, Exclusion
from studies.access import Action, check_permission_or_404
from studies.models import FIRST_TEST_NUMBER, Batch, Placement, Study, audit
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused

from .assign import Released, release_assignment

if TYPE_CHECKING:
    from annotators.models.assignments import JudgedAssignment

TOP_UP = Batch.Origin.TOP_UP
# The reasons for an exclusion. The key is stored; "other" needs a note.
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
    """Return the exclusions of these assignments that were not undone."""
    return Exclusion.objects.filter(assignment__in=assignments, reverses=None, reversed_by=None)


def annotate_is_excluded(assignments: QuerySet[Assignment]) -> "QuerySet[JudgedAssignment]":
    """Annotate each assignment with ``is_excluded``."""
    active = Exclusion.objects.filter(assignment=OuterRef("pk"), reverses=None, reversed_by=None)
    return assignments.annotate(is_excluded=Exists(active))


def _lock_study(study_id: int) -> Study:
    return Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study_id)


def exclude_assignments(
    assignments: Iterable[Assignment], reason: str, by, note: str = "", should_reopen_places: bool = False
) -> list[Exclusion]:
    """Leave submitted assignments of one study out of every later analysis; with ``should_reopen_places``, open their places again.

    Assignments that are already excluded are skipped. Either all are excluded or none. Raises ActionRefused with the
    reason.
    """
    assignments = list(assignments)
    if reason not in EXCLUSION_REASONS:
        raise ActionRefused("Choose a reason.")
    if reason == "other" and not note.strip():
        raise ActionRefused("Describe the other reason in the note.")
    studies = {assignment.study_id for assignment in assignments}
    if len(studies) > 1:
        raise ActionRefused("Choose assignments of one study.")
    if not studies:
        raise ActionRefused("Choose at least one assignment.")
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, min(studies))
    with transaction.atomic():
        study = _lock_study(studies.pop())
        rows = list(
            annotate_is_excluded(Assignment.objects.filter(pk__in=[row.pk for row in assignments])).order_by("pk")
        )
        if tests := [row for row in rows if row.origin == Assignment.Origin.TEST]:
            raise ActionRefused(f"{tests[0]} is a test run, and test runs are never counted. Choose only the others.")
        if unfinished := [row for row in rows if not row.submitted_at]:
            raise ActionRefused(
                f"{unfinished[0]} is not submitted yet, so it cannot be excluded. Choose only the others."
            )
        new = [row for row in rows if not row.is_excluded]
        exclusions = Exclusion.objects.bulk_create(
            Exclusion(assignment=row, reason=reason, note=note.strip(), by=by) for row in new
        )
        for row in new:
            # The note may describe a person, so the log stores only the reason.
            audit.record("exclude", study=study, by=by, assignment_code=row.code, reason=reason)
        if should_reopen_places and new:
            open_replacement_batches(study, new, by)
    return exclusions


def describe_excluded_places(study: Study, n_excluded: int, is_reopened: bool) -> str:
    """Describe what happens to the places of n people who were just excluded, and what the researcher can do."""
    pronoun, places, verb, are = (
        ("Its", "place", "stays", "is") if n_excluded == 1 else ("Their", "places", "stay", "are")
    )
    if is_reopened:
        return f"{pronoun} {places} {are} open again for other annotators."
    if study.state not in Study.RUNNING:
        return f"The study is not running, so {pronoun.lower()} {places} {verb} closed."
    if study.target_kind == Study.Target.KEPT or study.replaces_excluded:
        start_time = "within a few minutes" if study.state == Study.State.LAUNCHED else "when the study is resumed"
        limit = f", up to the cap of {study.cap} places" if study.cap is not None else ""
        return f"{pronoun} {places} {are} opened again {start_time}{limit}. You do not need to do anything."
    n_openable = None if study.cap is None else max(0, study.cap - lifecycle.count_opened_places_towards_cap(study))
    explanation = f"{pronoun} {places} {verb} taken: no other annotator gets {'it' if n_excluded == 1 else 'them'}."
    if n_openable == 0:
        return f"{explanation} The cap of {study.cap} places is reached. Clone the study to collect more."
    return f"{explanation} To let another annotator answer, choose “Open more places” on the study's page."


def create_exclusion_reversal(exclusion: Exclusion, by, note: str = "") -> Exclusion:
    """Undo an exclusion. The decision stays on record. Raises ActionRefused."""
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, exclusion.assignment.study_id)
    if exclusion.reverses_id:
        raise ActionRefused(
            "This row already undoes an exclusion. To exclude the assignment again, exclude it as before."
        )
    try:
        with transaction.atomic():
            reversal = Exclusion.objects.create(
                assignment=exclusion.assignment, reason=exclusion.reason, note=note.strip(), by=by, reverses=exclusion
            )
            assignment = exclusion.assignment
            audit.record("reverse exclusion", study=assignment.study, by=by, assignment_code=assignment.code)
    except IntegrityError:
        raise ActionRefused(
            "This exclusion is already undone, so the assignment counts. You do not need to do anything."
        ) from None
    return reversal


def open_replacement_places_up_to_cap(study: Study, assignment_ids: Sequence[int]) -> int:
    """Open the places of these assignments again, in order and up to the cap. Skip places that were opened before.

    Return the number of opened places; 0 unless the study is launched.
    """
    with transaction.atomic():
        study = _lock_study(study.pk)
        if study.state != Study.State.LAUNCHED:
            return 0
        rows = list(Assignment.objects.filter(study=study, pk__in=assignment_ids, replaced_at=None).order_by("pk"))
        if study.cap is not None:
            rows = rows[: max(0, study.cap - lifecycle.count_opened_places_towards_cap(study))]
        if rows:
            open_replacement_batches(study, rows, None)
        return len(rows)


def open_replacement_batches(study: Study, assignments: Sequence[Assignment], by) -> list[Batch]:
    """Copy each assignment's batch with one place for another annotator. Raises ActionRefused above the cap.

    The copy of a top-up batch is a top-up batch too: it is not limited by the cap and asks only about items in
    disagreement. If the study has drawn batches that were never opened, the next of those are opened instead, because
    batches open in order.
    """
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, study)
    with transaction.atomic():
        study = _lock_study(study.pk)
        if study.state not in Study.RUNNING:
            raise ActionRefused(
                f"Places can be opened only while a study is launched or paused, but it is {study.state}. Exclude without opening the place again."
            )
        Assignment.objects.filter(pk__in=[row.pk for row in assignments]).update(replaced_at=Now())
        batches = study.batches.filter(number__lt=FIRST_TEST_NUMBER)
        if batches.filter(number__gte=study.open_to).exists():
            lifecycle.open_more_places(study, len(assignments), by)
            return []
        open_now = lifecycle.count_opened_places_towards_cap(study)
        originals: dict[int | None, Batch] = {
            batch.pk: batch for batch in Batch.objects.filter(pk__in=[row.batch_id for row in assignments])
        }
        counted = sum(originals[row.batch_id].origin != TOP_UP for row in assignments)
        if study.cap is not None and counted and open_now + counted > study.cap:
            raise ActionRefused(
                f"The study is capped at {study.cap} places, and {open_now} are open or taken. Exclude without opening the place "
                "again, or clone the study."
            )
        last = batches.aggregate(n=Max("number"))["n"]
        first = 0 if last is None else last + 1
        copies = Batch.objects.bulk_create(
            Batch(
                study=study,
                arm_id=originals[row.batch_id].arm_id,
                number=first + n,
                wanted=1,
                origin=TOP_UP if originals[row.batch_id].origin == TOP_UP else Batch.Origin.REPLACEMENT,
                copy_of_id=row.batch_id,
            )
            for n, row in enumerate(assignments)
        )
        placed: dict[int, list[tuple[int, int]]] = {}
        rows = Placement.objects.filter(batch__in=list(originals)).order_by("number")
        for batch_id, item_id, number in rows.values_list("batch_id", "item_id", "number"):
            placed.setdefault(batch_id, []).append((item_id, number))
        Placement.objects.bulk_create(
            Placement(batch=batch, item_id=item, number=number)
            for batch in copies
            for item, number in placed.get(batch.copy_of_id, ())
        )
        Study.objects.filter(pk=study.pk).update(open_to=Greatest(F("open_to"), first + len(copies)))
        for assignment, batch in zip(assignments, copies, strict=True):
            audit.record("reopen", study=study, by=by, assignment_code=assignment.code, batch=batch.number)
    return copies


def release_place(assignment: Assignment, by) -> None:
    """Release the place of an unfinished assignment, as if the annotator had returned it. Raises ActionRefused."""
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, assignment.study_id)
    with transaction.atomic():
        if not release_assignment(assignment.pk, Released.RETURNED):
            raise ActionRefused(
                "This assignment holds no place: it was already submitted or released. You do not need to do anything."
            )
        audit.record("release", study=assignment.study, by=by, assignment_code=assignment.code)
