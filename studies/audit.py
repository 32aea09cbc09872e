"""The record of acts. One row an act, in the act's own transaction."""

from .models import AuditEvent


def record(verb: str, *, study=None, by=None, assignment_code: str = "", **data) -> AuditEvent:
    """Write down that ``by`` did ``verb``. ``data`` holds no personal data of annotators."""
    return AuditEvent.objects.create(verb=verb, study=study, by=by, assignment_code=assignment_code, data=data)
