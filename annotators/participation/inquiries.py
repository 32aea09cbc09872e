"""Questions and reports that annotators send to the researchers."""

from django.db import transaction
from django.db.models.functions import Now

from annotators.models import Assignment, Inquiry
from annotators.pay.verdicts.decisions import lock_annotator
from studies.access import Action, check_permission_or_404
from studies.models import audit


def create_inquiry(assignment: Assignment, kind: str, text: str, page_key: str) -> bool:
    """Store an annotator's message. Return False if they have left the study: a withdrawal erases all messages."""
    own_assignments = Assignment.objects.filter(study=assignment.study_id, annotator=assignment.annotator_id)
    with transaction.atomic():
        lock_annotator(assignment.annotator_id)
        if own_assignments.filter(withdrawn_at__isnull=False).exists():
            return False
        Inquiry.objects.create(assignment=assignment, kind=kind, text=text, page_key=page_key)
    return True


def mark_inquiry_handled(inquiry: Inquiry, by, is_handled: bool = True) -> None:
    """Mark an annotator's report or question as handled, or as not handled."""
    study = inquiry.assignment.study
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, study)
    with transaction.atomic():
        rows = Inquiry.objects.filter(pk=inquiry.pk, handled_at__isnull=is_handled)
        if rows.update(handled_at=Now() if is_handled else None):
            verb = "handle inquiry" if is_handled else "reopen inquiry"
            audit.record(verb, study=study, by=by, assignment_code=inquiry.assignment.code)
