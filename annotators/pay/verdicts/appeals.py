"""Appeals: an annotator objects to a decision, and a person who did not make it answers by a promised date.

The only writer of Appeal.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import BooleanField, Case, Q, QuerySet, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from annotators.models import Annotator, Appeal, Assignment, Recruitment, Verdict
from annotators.models.constants import APPROVED
from annotators.places.assign import change_failed_checks_to_fault
from annotators.places.barrings import active_barrings, lift_barring
from studies.access import Action, allowed_active_member_users, check_permission_or_404
from studies.models import Study, audit
from studies.models.guards import allowing_erasure
from studies.services.lifecycle import ActionRefused
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from .decisions import (
    MAX_MESSAGE_LENGTH,
    clean_message_to_annotator,
    create_rejection_reversal,
    effective_rejection,
    lock_annotator,
    record_panel_rejection,
)

Subject, Released = Appeal.Subject, Assignment.Released
ANSWER_DEADLINE = timedelta(days=14)
# Answered, or without need of an answer: the barring is lifted, or the rejection was taken back or overtaken by the panel.
_CLOSED = (
    Q(answered_at__isnull=False)
    | Q(barring__lifted_at__isnull=False)
    | Q(verdict__submission__state=APPROVED)
    | Q(verdict__reversed_by__isnull=False)
)


def create_appeal(assignment: Assignment, text: str, subject: str = Subject.REJECTION) -> Appeal:
    """Store an appeal: one per rejection, made in heval or at the panel, per barring, or per end by failed checks.

    Raises ActionRefused with a message for the annotator.
    """
    find: dict[str, Callable[[], dict[str, Any]]] = {
        Subject.REJECTION: lambda: _rejection_to_appeal(assignment),
        Subject.BARRING: lambda: _barring_to_appeal(assignment.study, assignment.annotator_id, assignment),
        Subject.CHECKS: lambda: _failed_checks_to_appeal(assignment),
    }
    return _store_appeal(assignment.annotator_id, text, find[subject])


def create_appeal_of_refused_visitor(study: Study, annotator: Annotator, text: str) -> Appeal:
    """Store an appeal against a barring, of a person whom a link of the study refused. They may have no assignment in it.

    Raises ActionRefused with a message for the annotator.
    """
    return _store_appeal(annotator.pk, text, lambda: _barring_to_appeal(study, annotator.pk))


def _store_appeal(annotator_id: int, text: str, find_subject: Callable[[], dict[str, Any]]) -> Appeal:
    try:
        text = clean_text(text).strip()
    except TextRefused as refused:
        raise ActionRefused(str(refused)) from None
    if is_blank(text):
        raise ActionRefused("Your objection is empty. Please write a few words.")
    if len(text) > MAX_MESSAGE_LENGTH:
        raise ActionRefused(f"Your objection is too long. Please use at most {MAX_MESSAGE_LENGTH} characters.")
    try:
        with transaction.atomic():
            lock_annotator(annotator_id)
            appeal = Appeal.objects.create(**find_subject(), text=text, due_at=timezone.now() + ANSWER_DEADLINE)
            audit.record(
                "appeal", study=appeal.work.study, by=None, assignment_code=appeal.work.code, subject=appeal.subject
            )
    except IntegrityError:
        raise ActionRefused(
            "You have already sent an objection, and the researchers are reading it. You do not need to send it again."
        ) from None
    return appeal


def _rejection_to_appeal(assignment: Assignment) -> dict[str, Any]:
    verdict = effective_rejection(assignment) or record_panel_rejection(assignment)
    if verdict is None:
        raise ActionRefused("Your work is not rejected, so you do not need to object.")
    return {"verdict": verdict, "rejected_by_id": verdict.by_id}


def _barring_to_appeal(study: Study, annotator_id: int, page: Assignment | None = None) -> dict[str, Any]:
    """Return what an objection to the barring is about. People of the study that barred answer, wherever the page is.

    ``page``: the assignment from whose page the annotator objects; None if they were refused before a first one.
    """
    barrings = list(active_barrings(study).filter(annotator=annotator_id))
    # First the study's own, as on the page.
    barrings.sort(key=lambda barring: (barring.study_id != study.pk, -barring.pk))
    barring, work = barrings[0] if barrings else None, page
    if barring is not None and (page is None or barring.study_id != page.study_id):
        done = Assignment.objects.filter(study=barring.study_id, annotator=annotator_id, batch__isnull=False)
        work = done.exclude(origin=Assignment.Origin.TEST).order_by("-pk").first() or page
    if barring is None or work is None:
        raise ActionRefused("You may do further parts, so you do not need to object.")
    return {"barring": barring, "assignment": work, "rejected_by_id": barring.by_id}


def _failed_checks_to_appeal(assignment: Assignment) -> dict[str, Any]:
    if assignment.origin == Assignment.Origin.TEST:
        raise ActionRefused("This is a test run, so nobody would answer. Only objections of annotators are stored.")
    if assignment.released_reason not in (Released.FAILED_CHECKS, Released.FAULT):
        raise ActionRefused("Your work did not end because of wrong answers, so you do not need to object.")
    return {"assignment": assignment}


def answer_appeal(
    appeal: Appeal, answer_text: str, is_upheld: bool, by, denies_rejecting: bool = False
) -> Verdict | None:
    """Answer an appeal once, by a person other than the one who rejected or barred.

    If upheld, lift the barring, change how the assignment ended from failed checks to a fault of the study, or take the
    rejection back and return the reversal. Raises ActionRefused.
    ``denies_rejecting``: the answering person confirms that they did not reject the work at the panel; heval cannot know.
    """
    study, verdict, barring = appeal.work.study, appeal.verdict, appeal.barring
    check_permission_or_404(by, Action.REJECT, study)
    if by.pk == appeal.rejected_by_id and barring is not None:
        raise ActionRefused("You barred this annotator. Another editor must answer, or you lift the barring.")
    if by.pk == appeal.rejected_by_id:
        raise ActionRefused("You rejected this work. Another editor must answer.")
    is_by_unknown_person = verdict is not None and appeal.rejected_by_id is None
    if is_by_unknown_person and not denies_rejecting:
        raise ActionRefused(
            "The person who rejected this work at the panel cannot answer. Confirm that it was not you."
        )
    if is_appeal_settled(appeal):
        raise ActionRefused(
            "The barring is lifted since. No answer is needed."
            if barring
            else "The panel has approved this work since. No answer is needed."
        )
    answer_text = clean_message_to_annotator(study, answer_text, label="answer")
    with transaction.atomic():
        unanswered = Appeal.objects.filter(pk=appeal.pk, answered_at=None)
        if not unanswered.update(answer=answer_text, is_upheld=is_upheld, answered_by=by, answered_at=Now()):
            raise ActionRefused("This appeal is already answered. You need not do anything.")
        erase_closed_appeals_of_withdrawn()
        denial = {"says_another": True} if is_by_unknown_person else {}
        audit.record(
            "answer appeal", study=study, by=by, assignment_code=appeal.work.code, is_upheld=is_upheld, **denial
        )
        if is_upheld and barring is not None:
            lift_barring(barring, answer_text, by)
        if is_upheld and appeal.subject == Subject.CHECKS and change_failed_checks_to_fault(appeal.work.pk):
            outcomes = {"before": Released.FAILED_CHECKS, "after": Released.FAULT}
            audit.record("change outcome", study=study, by=by, assignment_code=appeal.work.code, **outcomes)
        if is_upheld and verdict is not None and not Verdict.objects.filter(reverses=verdict).exists():
            return create_rejection_reversal(verdict, by, answer_text)
    return None


def erase_closed_appeals_of_withdrawn() -> int:
    """Erase what people who left a study wrote in appeals that are closed. Return the number of these appeals.

    The answer stays, for the person to read. An appeal without an answer is deleted.
    """
    left = Q(assignment__withdrawn_at__isnull=False) | Q(verdict__assignment__withdrawn_at__isnull=False)
    closed = Appeal.objects.filter(pk__in=Appeal.objects.filter(left & _CLOSED).exclude(text="").values("pk"))
    with allowing_erasure():
        n_deleted, _ = closed.filter(answered_at=None).delete()
        return n_deleted + closed.filter(answered_at__isnull=False).update(text="")


def has_open_appeal(assignment: Assignment) -> bool:
    """Return whether an objection of this person in this study still waits for an answer."""
    own = Assignment.objects.filter(study=assignment.study_id, annotator=assignment.annotator_id)
    return Appeal.objects.filter(Q(assignment__in=own) | Q(verdict__assignment__in=own)).exclude(_CLOSED).exists()


def is_appeal_settled(appeal: Appeal) -> bool:
    """Return whether an open appeal needs no answer any more: the barring is lifted, or the panel now pays the work."""
    if appeal.answered_at is not None:
        return False
    if appeal.barring is not None:
        return appeal.barring.lifted_at is not None
    submission = appeal.verdict.submission if appeal.verdict else None
    return submission is not None and submission.state == APPROVED


def appeals_awaiting_answer(recruitments: Iterable[Recruitment] | QuerySet[Recruitment]) -> QuerySet[Appeal]:
    """Return open appeals with ``is_late``: late ones first, then by promised date."""
    rejected = Q(verdict__assignment__recruitment__in=recruitments, verdict__reversed_by=None)
    barred_or_failed = Q(assignment__recruitment__in=recruitments, barring__lifted_at=None)
    waiting = Appeal.objects.filter(rejected | barred_or_failed, answered_at=None)
    waiting = waiting.exclude(verdict__submission__state=APPROVED)
    late = Case(When(due_at__lt=Now(), then=Value(True)), default=Value(False), output_field=BooleanField())
    return (
        waiting.annotate(is_late=late)
        .select_related("verdict__assignment__recruitment", "assignment", "barring", "rejected_by")
        .order_by("due_at", "pk")
    )


def eligible_appeal_answerers(study: Study, rejected_by_id: int | None) -> list:
    """Return the people who may answer an appeal: all editors of the study except the person who rejected.

    For rejections made at the panel, that person is unknown; the answering editor must confirm that it was not them.
    """
    return list(allowed_active_member_users(Action.REJECT, study).exclude(pk=rejected_by_id))
