"""Run a job under a lease, and renew the lease until the job ends."""

import logging
import os
import socket
import threading
import uuid
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol
from zlib import crc32

from django.db import Error, close_old_connections, connection, connections, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from studies.models import Job
from studies.services.database_errors import is_database_unavailable_error
from studies.services.signal_flag import SignalFlag

from .registry import UnknownKind, autodiscover_tasks, get_job_kind, kinds, validate_json_value

logger = logging.getLogger("heval.jobs")
LEASE_SECONDS = 60
RENEW_SECONDS = 15
State = Job.State


class Cancelled(Exception):
    """Raised by ``progress`` if a researcher cancelled the job."""


class Interrupted(Exception):
    """Raised by ``progress`` if the process has to stop. The job waits again."""


class LeaseLost(Exception):
    """Another process has taken over the job. The result of this process is discarded."""


# Set when the process should end: running jobs wait again from their next progress report.
stop_requested = SignalFlag()


def lease_end() -> Any:
    return Now() + timedelta(seconds=LEASE_SECONDS)


def new_holder_id() -> str:
    return f"{socket.gethostname()[:32]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class ProgressReporter:
    """Report a job's progress: ``progress(done, total, doing)`` renews the lease and notices a cancellation."""

    def __init__(self, pk: int, holder: str):
        self._own_row = Job.objects.filter(pk=pk, state=State.RUNNING, holder=holder)

    def __call__(self, done: int, total: int, doing: str = "") -> None:
        if stop_requested.is_set():
            raise Interrupted
        columns = {"done": max(0, int(done)), "total": max(0, int(total)), "leased_until": lease_end()}
        if doing:
            columns["doing"] = doing[:200]
        if self._own_row.filter(is_cancel_wanted=False).update(**columns):
            return
        raise Cancelled if self._own_row.exists() else LeaseLost

    def renew_lease(self) -> bool:
        return bool(self._own_row.update(leased_until=lease_end()))


class RenewsLease(Protocol):
    def renew_lease(self) -> bool: ...


@contextmanager
def lease_renewal(held: RenewsLease):
    """Renew the lease of work that reports no progress for a long time, such as the fit of a model."""
    ended = threading.Event()

    def renew():
        while not ended.wait(RENEW_SECONDS):
            try:
                if not held.renew_lease():
                    return
            except Error:
                logger.warning("A lease could not be renewed; the database is not there.")
            finally:
                connections.close_all()  # the connections of this thread

    thread = threading.Thread(target=renew, name="heval-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()


def claim_and_run_job(job_pk: int, holder: str | None = None) -> bool:
    """Run a waiting job to its end. Return False if another process has it or a job of its kind runs for the study."""
    autodiscover_tasks()
    holder = holder or new_holder_id()
    job = Job.objects.filter(pk=job_pk).select_related("study", "by").first()
    if job is None or not _claim(job, holder):
        return False
    job.refresh_from_db()
    progress = ProgressReporter(job.pk, holder)
    logger.info("Job %s %s begins (attempt %d)", job.kind, job.code, job.attempts)
    try:
        kind = get_job_kind(job.kind)
        with lease_renewal(progress):
            result = validate_json_value(kind.work(job, progress))
        _end(job, holder, State.DONE, result=result)
    except Cancelled:
        _end(job, holder, State.CANCELLED)
    except Interrupted:
        _put_back(job, holder, attempts=F("attempts") - 1)
    except LeaseLost:
        logger.warning("Job %s %s was taken over by another runner", job.kind, job.code)
    except Exception as error:
        if is_database_unavailable_error(error):
            logger.exception("Job %s %s met a database that is not there; it will be tried again", job.kind, job.code)
            _give_up_lease(job, holder)
        else:
            _fail(job, holder, error)
    return True


def _claim(job: Job, holder: str) -> bool:
    with transaction.atomic():
        if not _may_start(job):
            return False
        claimed = Job.objects.filter(pk=job.pk, state=State.WAITING).update(
            state=State.RUNNING,
            holder=holder,
            leased_until=lease_end(),
            attempts=F("attempts") + 1,
            started_at=Coalesce(F("started_at"), Now()),
        )
    return bool(claimed)


def _may_start(job: Job) -> bool:
    """Return whether an exclusive job may start. Claims of one kind and study wait for each other's commit."""
    kind = kinds().get(job.kind)
    if kind is None or not kind.exclusive:
        return True
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", [_signed(job.kind), job.study_id or 0])
            if not cursor.fetchone()[0]:
                return False
    return not Job.objects.filter(kind=job.kind, study=job.study_id, state=State.RUNNING).exclude(pk=job.pk).exists()


def _signed(kind: str) -> int:
    return crc32(kind.encode()) - 2**31


def _held_job(job: Job, holder: str):
    return Job.objects.filter(pk=job.pk, state=State.RUNNING, holder=holder)


def _end(job: Job, holder: str, state: str, **columns: Any) -> None:
    if _held_job(job, holder).update(state=state, ended_at=Now(), leased_until=None, **columns):
        logger.info("Job %s %s ends: %s", job.kind, job.code, state)
    else:
        logger.warning("Job %s %s ended after its lease was lost; its result is thrown away", job.kind, job.code)


def _put_back(job: Job, holder: str, **columns: Any) -> None:
    _held_job(job, holder).update(state=State.WAITING, holder="", leased_until=None, **columns)
    logger.info("Job %s %s waits again", job.kind, job.code)


def _give_up_lease(job: Job, holder: str) -> None:
    """Expire the lease now, so that the next sweep decides. If the database is unreachable, the lease expires later."""
    try:
        close_old_connections()
        _held_job(job, holder).update(leased_until=Now())
    except Error:
        logger.warning("Job %s %s waits for the end of its lease", job.kind, job.code)


def _fail(job: Job, holder: str, error: Exception) -> None:
    kind = kinds().get(job.kind)
    if isinstance(error, UnknownKind) or (kind and isinstance(error, kind.user_facing)):
        logger.warning("Job %s %s fails: %s", job.kind, job.code, error)
        sentence = " ".join(str(error).split()) or type(error).__name__
    else:
        logger.error("Job %s %s fails", job.kind, job.code, exc_info=error)
        sentence = f"This did not work ({type(error).__name__}). The server's log tells more under {str(job.code)[:8]}."
    _end(job, holder, State.FAILED, error=sentence)


def run_waiting_jobs(limit: int = 100, holder: str | None = None) -> int:
    """Run waiting jobs, oldest first, until no job can run or ``limit`` jobs have run. Return their number."""
    holder = holder or new_holder_id()
    passed_over: list[int] = []
    n = 0
    while n < limit and not stop_requested.is_set():
        waiting = Job.objects.filter(state=State.WAITING).exclude(pk__in=passed_over)
        pk = waiting.order_by("pk").values_list("pk", flat=True).first()
        if pk is None:
            break
        if claim_and_run_job(pk, holder):
            n += 1
        passed_over.append(pk)
    return n


def has_waiting_jobs() -> bool:
    return Job.objects.filter(state=State.WAITING).exists()
