"""What pages that start a job of a study show of it, and what their forms send with it."""

import uuid
from collections.abc import Mapping
from typing import Any

from studies.models import Job, Study
from studies.services import jobs

MAX_TOKEN_LENGTH = 32


def job_context(study: Study, *kinds: str) -> dict[str, Any]:
    """Return the job of these kinds that waits or runs, whether nothing will run it, and the token of the page's form."""
    states = [Job.State.WAITING, Job.State.RUNNING]
    running = Job.objects.filter(study=study, kind__in=kinds, state__in=states).order_by("pk").last()
    return {
        "running": running,
        "is_running": running is not None,
        "is_runner_missing": running is not None and not jobs.is_runner_alive(),
        "token": uuid.uuid4().hex,
    }


def token_of_form(study: Study, name: str, posted: Mapping[str, Any]) -> str | None:
    """Return what a form that is sent twice sends twice, so that it starts one job. None if it sends no token of ours."""
    sent = posted.get("token", "")
    return f"{name}-{study.pk}-{sent}" if sent.isalnum() and len(sent) <= MAX_TOKEN_LENGTH else None
