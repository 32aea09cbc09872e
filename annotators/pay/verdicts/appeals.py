"""Appeals: a rejected annotator objects, and another person answers by a promised date. The only writer of Appeal."""

from collections.abc import Iterable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import BooleanField, Case, QuerySet, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from annotators.models import Appeal, Assignment, Recruitment, Verdict
from annotators.models.constants import APPROVED
from studies.access import Action, allowed_active_member_users, check_permission_or_404
from studies.models import Study, audit
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

ANSWER_DEADLINE = timedelta(days=14)


def create_appeal(assignment: Assignment, text: str) -> Appeal:
    """Store an appeal, one per rejection, made in heval or at the panel.

    Raises ActionRefused with a message for the annotator.
    """
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
            lock_annotator(assignment.annotator_id)
            verdict = effective_rejection(assignment) or record_panel_rejection(assignment)
            if verdict is None:
                raise ActionRefused("Your work is not rejected, so you do not need to object.")
            due = timezone.now() + ANSWER_DEADLINE
            appeal = Appeal.objects.create(verdict=verdict, rejected_by_id=verdict.by_id, text=text, due_at=due)
            audit.record("appeal", study=assignment.study, by=None, assignment_code=assignment.code)
    except IntegrityError:
        raise ActionRefused(
            "You have already sent an objection, and the researchers are reading it. You do not need to send it again."
        ) from None
    return appeal


def answer_appeal(
    appeal: Appeal, answer_text: str, is_upheld: bool, by, denies_rejecting: bool = False
) -> Verdict | None:
    """Answer an appeal once, by a person other than the one who rejected.

    If upheld, take the rejection back and return the reversal. Raises ActionRefused. ``denies_rejecting``: the answering person
    confirms that they did not reject the work at the panel; heval cannot know.
    """
    check_permission_or_404(by, Action.REJECT, appeal.verdict.assignment.study)
    if by.pk == appeal.rejected_by_id:
        raise ActionRefused("You rejected this work. Another editor must answer.")
    verdict = appeal.verdict
    if appeal.rejected_by_id is None and not denies_rejecting:
        raise ActionRefused(
            "The person who rejected this work at the panel cannot answer. Confirm that it was not you."
        )
    if is_work_approved_at_panel(verdict):
        raise ActionRefused("The panel has approved this work since. No answer is needed.")
    study = verdict.assignment.study
    answer_text = clean_message_to_annotator(study, answer_text, label="answer")
    with transaction.atomic():
        unanswered = Appeal.objects.filter(pk=appeal.pk, answered_at=None)
        if not unanswered.update(answer=answer_text, is_upheld=is_upheld, answered_by=by, answered_at=Now()):
            raise ActionRefused("This appeal is already answered. You need not do anything.")
        denial = {"says_another": True} if appeal.rejected_by_id is None else {}
        audit.record(
            "answer appeal", study=study, by=by, assignment_code=verdict.assignment.code, is_upheld=is_upheld, **denial
        )
        if is_upheld and not Verdict.objects.filter(reverses=verdict).exists():
            return create_rejection_reversal(verdict, by, answer_text)
    return None


def is_work_approved_at_panel(verdict: Verdict) -> bool:
    """Return whether the panel now pays the work, so that the appeal needs no answer."""
    return verdict.submission is not None and verdict.submission.state == APPROVED


def appeals_awaiting_answer(recruitments: Iterable[Recruitment] | QuerySet[Recruitment]) -> QuerySet[Appeal]:
    """Return open appeals with ``is_late``: late ones first, then by promised date."""
    waiting = Appeal.objects.filter(
        verdict__assignment__recruitment__in=recruitments, answered_at=None, verdict__reversed_by=None
    ).exclude(verdict__submission__state=APPROVED)
    late = Case(When(due_at__lt=Now(), then=Value(True)), default=Value(False), output_field=BooleanField())
    return (
        waiting.annotate(is_late=late)
        .select_related("verdict__assignment__recruitment", "rejected_by")
        .order_by("due_at", "pk")
    )


def eligible_appeal_answerers(study: Study, rejected_by_id: int | None) -> list:
    """Return the people who may answer an appeal: all editors of the study except the person who rejected.

    For rejections made at the panel, that person is unknown; the answering editor must confirm that it was not them.
    """
    return list(allowed_active_member_users(Action.REJECT, study).exclude(pk=rejected_by_id))
