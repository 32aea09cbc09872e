"""Withdrawal: erase a person's answers, release their place, and erase their panel id."""

import json
import logging
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Now

from annotators.models import Annotator, Assignment, Inquiry, PageVisit, Response, SampleValue, Verdict
from annotators.pay.decisions import clean_message_to_annotator, erase_closed_appeals_of_withdrawn, lock_annotator
from annotators.pay.ledger import erase_ids_of_withdrawn_without_open_payments
from annotators.pay.statement import is_annotator_owed_on_withdrawal
from studies.access import Action, check_permission_or_404
from studies.models import Batch, audit
from studies.models.guards import allowing_erasure
from studies.services.events import record_attention
from studies.services.lifecycle import ActionRefused

# A file beside the database that says which people withdrew, so that a restored backup does not bring their texts
# back.
#
# It has a line for each assignment, with the moment and the SHA-256 of its random code, and nothing else. It belongs
# to what an operator copies to another place, more often than backups are made.


logger = logging.getLogger("heval.site")


def note_erasure(codes: Iterable[str]) -> None:
    """Append the assignments to the file once the erasure is committed. A full disk must not stop a withdrawal."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    text = "".join(json.dumps({"at": now, "assignment": digest_of_code(code)}) + "\n" for code in codes)

    def append() -> None:
        try:
            handle = os.open(settings.ERASURES_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "a", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            logger.error(
                "%s cannot be written (%s): an erasure is not noted for restored backups",
                settings.ERASURES_FILE,
                error.strerror,
            )

    if text:
        transaction.on_commit(append)


def digest_of_code(code: str) -> str:
    return sha256(str(code).encode()).hexdigest()


def withdraw_annotator_and_erase_texts(assignment: Assignment) -> int:
    """Withdraw all assignments of the annotator in this study. Return the number of withdrawn assignments.

    Texts are erased at once, ratings only if the study declared so. An open objection keeps its text until it is
    closed. The place is released unless the work was submitted. The keyed hash of the person stays, to prevent a second
    start. Their panel id is erased, unless they are owed pay or take part in another study.
    """
    study, is_owed = assignment.study, is_annotator_owed_on_withdrawal(assignment)
    with allowing_erasure():
        Annotator.objects.select_for_update(no_key=True, of=("self",)).get(pk=assignment.annotator_id)
        own_assignments = Assignment.objects.filter(study=study, annotator=assignment.annotator_id)
        # Lock batches by number, then the assignments, in the same order as all other code.
        batches = [pk for pk in own_assignments.values_list("batch", flat=True) if pk]
        list(Batch.objects.select_for_update(no_key=True, of=("self",)).filter(pk__in=batches).order_by("number"))
        held_assignments = list(
            own_assignments.filter(batch__isnull=False).select_for_update(no_key=True, of=("self",)).order_by("pk")
        )
        for row in held_assignments:
            if not row.released_at and not row.submitted_at:
                Assignment.objects.filter(pk=row.pk).update(
                    released_at=Now(), released_reason=Assignment.Released.WITHDRAWN
                )
                Batch.objects.filter(pk=row.batch_id, claimed__gt=0).update(claimed=F("claimed") - 1)  # type: ignore[misc]  # not None
        withdrawn = Assignment.objects.filter(pk__in=[row.pk for row in held_assignments], withdrawn_at=None)
        codes = list(withdrawn.values_list("code", flat=True))
        withdrawn.update(withdrawn_at=Now())
        _erase_answers(
            Response.objects.filter(assignment__in=held_assignments, erased_at=None), study.withdrawal_blanks_ratings
        )
        if study.withdrawal_blanks_ratings:
            for verdict in Verdict.objects.filter(assignment__in=held_assignments, evidence__has_key="failed_checks"):
                Verdict.objects.filter(pk=verdict.pk).update(evidence=_erase_evidence_answers(verdict.evidence))
        blanked = {"unseen": ""} if study.withdrawal_blanks_ratings else {}
        PageVisit.objects.filter(assignment__in=held_assignments).update(draft=None, **blanked)
        Inquiry.objects.filter(assignment__in=own_assignments).delete()
        SampleValue.objects.filter(column__study=study, annotator=assignment.annotator_id).delete()
        if not is_owed:
            erase_ids_of_withdrawn_without_open_payments([assignment.annotator_id])
        for code in codes:
            audit.record("withdraw", study=study, by=None, assignment_code=code)
        erase_closed_appeals_of_withdrawn()
        note_erasure(codes)
    return len(codes)


def _erase_answers(answers: QuerySet[Response], blanks_ratings: bool) -> None:
    if blanks_ratings:
        answers.update(text="", value=None, chosen=None, choice="", part="", skip_reason="", erased_at=Now())
    else:
        answers.exclude(text="").update(text="", erased_at=Now())


def _erase_evidence_answers(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return a verdict's evidence without the person's answers."""
    return {name: value for name, value in evidence.items() if name != "failed_checks"}


# Questions and reports that annotators send to the researchers.


def create_inquiry(assignment: Assignment, kind: str, text: str, page_key: str) -> bool:
    """Store an annotator's message once, however often it is sent.

    Return False if they have left the study: a withdrawal erases all messages.
    """
    own_assignments = Assignment.objects.filter(study=assignment.study_id, annotator=assignment.annotator_id)
    with transaction.atomic():
        lock_annotator(assignment.annotator_id)
        if own_assignments.filter(withdrawn_at__isnull=False).exists():
            return False
        message = {"assignment": assignment, "kind": kind, "text": text, "page_key": page_key}
        if not Inquiry.objects.filter(**message).exists():
            inquiry = Inquiry.objects.create(**message)
            record_attention(assignment.study, "an annotator has written", inquiry.pk)
    return True


def answer_inquiry(inquiry: Inquiry, answer: str, by) -> None:
    """Answer an annotator's message once; this marks it as handled. Raises ActionRefused."""
    study = inquiry.assignment.study
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, study)
    answer = clean_message_to_annotator(study, answer, label="answer")
    with transaction.atomic():
        open_rows = Inquiry.objects.filter(pk=inquiry.pk, answered_at=None)
        answered = open_rows.update(
            answer=answer, answered_by=by, answered_at=Now(), handled_at=Coalesce(F("handled_at"), Now())
        )
        if not answered:
            raise ActionRefused("This message is already answered. You need not do anything.")
        audit.record("answer inquiry", study=study, by=by, assignment_code=inquiry.assignment.code)


def mark_inquiry_handled(inquiry: Inquiry, by, is_handled: bool = True) -> None:
    """Mark an annotator's report or question as handled, or as not handled."""
    study = inquiry.assignment.study
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, study)
    with transaction.atomic():
        rows = Inquiry.objects.filter(pk=inquiry.pk, handled_at__isnull=is_handled)
        if rows.update(handled_at=Now() if is_handled else None):
            verb = "handle inquiry" if is_handled else "reopen inquiry"
            audit.record(verb, study=study, by=by, assignment_code=inquiry.assignment.code)
