"""Submit and cancel jobs."""

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from studies import signals
from studies.access import Action, check_owner_or_admin_or_404, check_permission_or_404
from studies.models import Job, audit

from .registry import get_job_kind, validate_json_value

State = Job.State
ENDED = (State.DONE, State.FAILED, State.CANCELLED)


def submit(kind: str, *, by, study=None, request_token: str | None = None, **arguments: Any) -> Job:
    """Create a job in the caller's transaction: the job exists only if the transaction commits.

    Idempotent: a repeated ``request_token`` returns the same row.
    """
    get_job_kind(kind)
    columns = {"kind": kind, "study": study, "by": by, "arguments": validate_json_value(arguments)}
    if request_token is None:
        job, is_new = Job.objects.create(**columns), True
    else:
        job, is_new = _with_token(request_token, columns)
    if is_new:
        transaction.on_commit(wake_runners, robust=True)
    return job


def _with_token(request_token: str, columns: dict[str, Any]) -> tuple[Job, bool]:
    job, is_new = Job.objects.get_or_create(request_token=request_token, defaults=columns)
    if (job.kind, job.study_id) != (columns["kind"], columns["study"] and columns["study"].pk):
        raise ValueError("This request token belongs to another job.")
    return job, is_new


def wake_runners() -> None:
    signals.jobs_waiting.send(Job)


def request_cancel(job: Job, by) -> bool:
    """Cancel a waiting job now, or a running job at its next progress report. Return False if it has already ended."""
    if job.study_id is not None:
        check_permission_or_404(by, Action.CANCEL, job.study_id)
    else:
        check_owner_or_admin_or_404(by, job.by_id)
    row = Job.objects.filter(pk=job.pk)
    with transaction.atomic():
        is_new = row.filter(state=State.WAITING).update(state=State.CANCELLED, is_cancel_wanted=True, ended_at=Now())
        is_new = is_new or row.filter(state=State.RUNNING, is_cancel_wanted=False).update(is_cancel_wanted=True)
        if is_new and job.study:
            audit.record_study_event("cancel job", job.study, by=by, kind=job.kind)
        elif is_new:
            audit.record("cancel job", by=by, kind=job.kind)
    return bool(is_new) or row.filter(state=State.RUNNING).exists()
