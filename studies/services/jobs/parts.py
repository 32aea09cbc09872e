"""Share the parts of a running job among all processes that run jobs.

The process that runs the job computes parts, too, and waits only for parts that others hold. So a job ends with one process as with
many, and no process waits for work that needs its own place. A part must give the same result wherever and whenever it is computed.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from studies.models import Job, JobPart
from studies.services.database_errors import is_database_unavailable_error

from .queue import ENDED, wake_runners
from .registry import get_job_kind, validate_json_value
from .running import ProgressReporter, lease_end, lease_renewal, new_holder_id, stop_requested

logger = logging.getLogger("heval.jobs")
# How often a job looks whether other processes have finished their parts.
WAIT_SECONDS = 0.2


class HeldPart:
    """A part of which this process holds the lease."""

    def __init__(self, part: JobPart, holder: str):
        self.part = part
        self._own_row = JobPart.objects.filter(pk=part.pk, holder=holder)

    def renew_lease(self) -> bool:
        return bool(self._own_row.update(leased_until=lease_end()))

    def compute(self) -> None:
        """Compute and store the result. After an error the part is free again."""
        try:
            compute = _function_of(self.part.job)
            with lease_renewal(self):
                result = validate_json_value(compute(self.part.arguments))
        except BaseException:
            self._end()
            raise
        self._end(is_done=True, result=result)

    def _end(self, **columns: Any) -> None:
        self._own_row.update(holder="", leased_until=None, **columns)


def compute_parts(
    job: Job, progress: ProgressReporter, arguments: Sequence[Mapping[str, Any]], doing: str = ""
) -> list[Any]:
    """Return the result of each part, in the order of ``arguments``. Other processes that run jobs compute some of them.

    The function that computes a part is that of the job's kind (``jobs.register(kind, part=...)``). If the job is run again, what is
    computed stays, so a repetition must ask for the same parts.
    """
    _function_of(job)
    JobPart.objects.bulk_create(
        [JobPart(job=job, number=number, arguments=validate_json_value(one)) for number, one in enumerate(arguments)],
        ignore_conflicts=True,
    )
    wake_runners()
    parts = job.parts.order_by("number")
    holder = new_holder_id()
    while True:
        n_done = parts.filter(is_done=True).count()
        progress(n_done, len(arguments), doing)
        if n_done == len(arguments):
            return list(parts.values_list("result", flat=True))
        # Parts whose process died, or could not compute them, are left to the job itself: it shows the error.
        if held := _hold_first(parts.filter(Q(leased_until=None) | Q(leased_until__lt=Now())), holder):
            held.compute()
        else:
            stop_requested.wait(WAIT_SECONDS)


def compute_open_part(holder: str | None = None) -> bool:
    """Compute a part of a job that another process runs. Return False if no part is open. Errors are left to the job."""
    held = _hold_first(_open_parts(), holder or new_holder_id())
    if held is None:
        return False
    if _open_parts().exists():
        wake_runners()
    try:
        held.compute()
    except Exception as error:
        if is_database_unavailable_error(error):
            raise
        logger.exception("The %s could not be computed here; the job tries it itself", held.part)
    return True


def delete_parts_of_ended_jobs() -> None:
    JobPart.objects.filter(job__state__in=ENDED).delete()


def _function_of(job: Job) -> Callable[[dict[str, Any]], Any]:
    function = get_job_kind(job.kind).part
    if function is None:
        raise TypeError(f"jobs.register({job.kind!r}) has no part=, so the job has no parts.")
    return function


def _open_parts() -> QuerySet[JobPart]:
    """Return the parts that no process has tried yet, of jobs that run and are not to be cancelled."""
    running = JobPart.objects.filter(job__state=Job.State.RUNNING, job__is_cancel_wanted=False)
    return running.filter(is_done=False, attempts=0, leased_until=None)


def _hold_first(parts: QuerySet[JobPart], holder: str) -> HeldPart | None:
    """Take the lease of the first part that is not done, or return None if no part is open."""
    while part := parts.filter(is_done=False).select_related("job").order_by("job", "number").first():
        row = JobPart.objects.filter(pk=part.pk, holder=part.holder, attempts=part.attempts, is_done=False)
        if row.update(holder=holder, leased_until=lease_end(), attempts=F("attempts") + 1):
            return HeldPart(part, holder)
    return None
