"""Questions and reports that annotators send to the researchers."""

from django.db import transaction
from django.db.models.functions import Now

from annotators.models import Inquiry
from studies.access import Action, check_permission_or_404
from studies.models import audit


def mark_inquiry_handled(inquiry: Inquiry, by, is_handled: bool = True) -> None:
    """Mark an annotator's report or question as handled, or as not handled."""
    study = inquiry.assignment.study
    check_permission_or_404(by, Action.MANAGE_ASSIGNMENTS, study)
    with transaction.atomic():
        rows = Inquiry.objects.filter(pk=inquiry.pk, handled_at__isnull=is_handled)
        if rows.update(handled_at=Now() if is_handled else None):
            verb = "handle inquiry" if is_handled else "reopen inquiry"
            audit.record(verb, study=study, by=by, assignment_code=inquiry.assignment.code)
