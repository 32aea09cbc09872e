"""Appeals: whoever was rejected says why that is wrong, and somebody else answers by a day that was promised. The only writer of Appeal."""

from collections.abc import Iterable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import BooleanField, Case, QuerySet, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from annotators.models import Appeal, Assignment, Recruitment, Verdict
from annotators.models.constants import APPROVED
from studies.access import Action, allowed_users, check_permission
from studies.models import Study, audit
from studies.services.lifecycle import ActionRefused
from studies.stimuli.texts import TextRefused, clean_text, is_blank

from .decisions import (
    MAX_MESSAGE_LENGTH,
    clean_message,
    effective_rejection,
    lock_annotator,
    record_panel_rejection,
    reverse_rejection,
)

ANSWER_DEADLINE = timedelta(days=14)


def open_appeal(assignment: Assignment, text: str) -> Appeal:
    """One for each rejection, whether it was made here or at the panel. Raises NotNow in words for the annotator."""
    try:
        text = clean_text(text).strip()
    except TextRefused as refused:
        raise ActionRefused(str(refused)) from None
    if is_blank(text):
        raise ActionRefused("Please write a few words.")
    if len(text) > MAX_MESSAGE_LENGTH:
        raise ActionRefused(f"Please use at most {MAX_MESSAGE_LENGTH} characters.")
    try:
        with transaction.atomic():
            lock_annotator(assignment.annotator_id)
            verdict = effective_rejection(assignment) or record_panel_rejection(assignment)
            if verdict is None:
                raise ActionRefused("Nothing of yours is rejected, so there is nothing to object to.")
            due = timezone.now() + ANSWER_DEADLINE
            made = Appeal.objects.create(verdict=verdict, rejected_by_id=verdict.by_id, text=text, due_at=due)
            audit.record("appeal", study=assignment.study, by=None, assignment_code=assignment.code)
    except IntegrityError:
        raise ActionRefused("You have objected already. What you wrote then is being read.") from None
    return made


def answer_appeal(appeal: Appeal, text: str, is_upheld: bool, by, denies_rejecting: bool = False) -> Verdict | None:
    """Answer once, by another than who rejected. Upheld, the rejection is taken back: gives how. Raises NotNow.

    ``says_another``: their own word that it was not they who rejected it at the panel, where nobody here knows who did.
    """
    check_permission(by, Action.REJECT, appeal.verdict.assignment.study)
    if by.pk == appeal.rejected_by_id:
        raise ActionRefused("You rejected this work. Somebody else must answer.")
    verdict = appeal.verdict
    if appeal.rejected_by_id is None and not denies_rejecting:
        raise ActionRefused("Whoever rejected this work at the panel cannot answer. Say that it was not you.")
    if is_approved_at_panel(verdict):
        raise ActionRefused("The panel has approved this work since. There is nothing left to answer.")
    study = verdict.assignment.study
    text = clean_message(study, text, label="answer")
    with transaction.atomic():
        unanswered = Appeal.objects.filter(pk=appeal.pk, answered_at=None)
        if not unanswered.update(answer=text, is_upheld=is_upheld, answered_by=by, answered_at=Now()):
            raise ActionRefused("It was answered already.")
        said = {"says_another": True} if appeal.rejected_by_id is None else {}
        audit.record(
            "answer appeal", study=study, by=by, assignment_code=verdict.assignment.code, is_upheld=is_upheld, **said
        )
        if is_upheld and not Verdict.objects.filter(reverses=verdict).exists():
            return reverse_rejection(verdict, by, text)
    return None


def is_approved_at_panel(verdict: Verdict) -> bool:
    """Whether the panel pays the work after all, so that an appeal has nothing left to ask for."""
    return verdict.submission is not None and verdict.submission.state == APPROVED


def unanswered_appeals(recruitments: Iterable[Recruitment] | QuerySet[Recruitment]) -> QuerySet[Appeal]:
    """Those that wait for an answer, with ``is_late``: the late ones first, then by the day that was promised."""
    waiting = Appeal.objects.filter(
        verdict__assignment__recruitment__in=recruitments, answered_at=None, verdict__reversed_by=None
    ).exclude(verdict__submission__state=APPROVED)
    late = Case(When(due_at__lt=Now(), then=Value(True)), default=Value(False), output_field=BooleanField())
    return (
        waiting.annotate(is_late=late)
        .select_related("verdict__assignment__recruitment", "rejected_by")
        .order_by("due_at", "pk")
    )


def eligible_answerers(study: Study, rejected_by_id: int | None) -> list:
    """The study's people who may answer an appeal against somebody's rejection: everybody who edits it but that person. Who rejected at the
    panel is not known; they must say themselves that it was not they."""
    return list(allowed_users(Action.REJECT, study).exclude(pk=rejected_by_id))
