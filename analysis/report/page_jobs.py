"""What pages that start a job of a study show of it, and what their forms send with it."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from studies.admin.jobs import running_jobs
from studies.models import Job, Study

MAX_TOKEN_LENGTH = 32


def job_context(request: HttpRequest, study: Study, *kinds: str) -> dict[str, Any]:
    """Return the jobs of these kinds that wait or run, and the token of the page's form."""
    found = Job.objects.filter(study=study, kind__in=kinds)
    return {"running_jobs": running_jobs(request, found), "token": uuid.uuid4().hex}


def token_of_form(study: Study, name: str, posted: Mapping[str, Any]) -> str | None:
    """Return what a form that is sent twice sends twice, so that it starts one job. None if it sends no token of ours."""
    sent = posted.get("token", "")
    return f"{name}-{study.pk}-{sent}" if sent.isalnum() and len(sent) <= MAX_TOKEN_LENGTH else None
