"""Long work as rows. docs: explanation/jobs.

A job is a row of the database from the moment it is asked for, in the transaction that asks. Whoever runs it holds a lease and
renews it; when the holder dies the lease runs out and the job waits again, three times at most. Neither a broker nor a process
is needed to remember anything. All times are the database's.

    @jobs.register("launch", readable=(NotReady,), exclusive=True)
    def work(job, progress):
        progress(0, 10, "Drawing batches")
        return {"batches": 10}

An app's kinds stand in its ``tasks`` module. It is imported here, when the first job is submitted or run, so it must import
numpy and its friends inside its functions.
"""

import json
import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zlib import crc32

from django.core.cache import cache
from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
    transaction,
)
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now
from django.utils.module_loading import autodiscover_modules

from studies import signals
from studies.access import Action, check, check_own
from studies.models import Job, audit

from .wish import Wish

logger = logging.getLogger("heval.jobs")

LEASE_SECONDS = 60
RENEW_SECONDS = 15
ATTEMPTS = 3
HEARTBEAT_KEY = "heval:runner"
HEARTBEAT_SECONDS = 90  # without a word for so long, nobody runs jobs

State = Job.State
ENDED = (State.DONE, State.FAILED, State.CANCELLED)


class UnknownKind(LookupError):
    """No app registers this kind of job."""


class Cancelled(Exception):
    """Raised by ``progress`` where a researcher asked for an end."""


class Interrupted(Exception):
    """Raised by ``progress`` where the process that runs the job is asked to stop: the job waits again."""


class LeaseLost(Exception):
    """Another holder has the job: whatever this one finds is thrown away."""


class Readable(Exception):
    """An error whose message is a sentence for the researcher."""


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    work: Callable[[Job, "Progress"], Any]
    exclusive: bool
    readable: tuple[type[Exception], ...]


@dataclass(frozen=True, slots=True)
class Periodic:
    name: str
    seconds: int
    function: Callable[[], Any]


_kinds: dict[str, Kind] = {}
_periodic: dict[str, Periodic] = {}
_is_loaded = False

# Set when the process should end: running jobs go back to waiting at their next progress.
stopping = Wish()


def register(kind: str, *, exclusive: bool = False, readable: tuple[type[Exception], ...] = ()):
    """Make a function ``work(job, progress)`` the work of a kind of job. What it returns must fit into JSON.

    ``exclusive``: of one study, only one job of the kind runs at a time. ``readable``: exceptions whose message tells the
    researcher what to do; of all others only the log has the words. Work is run again after a crash: it must be idempotent.
    """

    def registered(work):
        if kind in _kinds and _kinds[kind].work.__module__ != work.__module__:
            raise ValueError(
                f"Two functions want to be the job {kind!r}: in {_kinds[kind].work.__module__} and {work.__module__}."
            )
        _kinds[kind] = Kind(kind, work, exclusive, (Readable, *readable))
        return work

    return registered


def every(seconds: int):
    """Run a function without arguments about so often, in one process of all. It must bear being run twice at once."""

    def registered(function):
        name = f"{function.__module__}.{function.__qualname__}"
        _periodic[name] = Periodic(name, seconds, function)
        return function

    return registered


def load() -> None:
    """Import the ``tasks`` module of every app, once."""
    global _is_loaded
    if not _is_loaded:
        autodiscover_modules("tasks")
        _is_loaded = True


def kinds() -> dict[str, Kind]:
    load()
    return dict(_kinds)


def _kind(name: str) -> Kind:
    load()
    try:
        return _kinds[name]
    except KeyError:
        raise UnknownKind(f"There is no job {name!r}. There are: {', '.join(sorted(_kinds))}.") from None


def _as_json(value: Any) -> Any:
    """The value, or ValueError/TypeError where JSON (as the database takes it) cannot hold it."""
    text = json.dumps(value, allow_nan=False)
    if "\\u0000" in text:
        raise ValueError("a NUL character cannot be stored")
    return json.loads(text)


# Asking


def submit(kind: str, *, study=None, by=None, request_token: str | None = None, **arguments: Any) -> Job:
    """Ask for a job, in the caller's transaction: it exists if and only if that commits.

    The same ``request_token`` gives the same row, however often and from wherever it is asked.
    """
    _kind(kind)
    columns = {"kind": kind, "study": study, "by": by, "arguments": _as_json(arguments)}
    if request_token is None:
        job, is_new = Job.objects.create(**columns), True
    else:
        job, is_new = _with_token(request_token, columns)
    if is_new:
        transaction.on_commit(_wake, robust=True)
    return job


def _with_token(request_token: str, columns: dict[str, Any]) -> tuple[Job, bool]:
    job, is_new = Job.objects.get_or_create(request_token=request_token, defaults=columns)
    if (job.kind, job.study_id) != (columns["kind"], columns["study"] and columns["study"].pk):
        raise ValueError("This request token belongs to another job.")
    return job, is_new


def _wake() -> None:
    signals.jobs_waiting.send(Job)


def cancel(job: Job, by) -> bool:
    """End a waiting job at once, a running one at its next progress. False where it has ended already."""
    if job.study_id is not None:
        check(by, Action.CANCEL, job.study_id)
    else:
        check_own(by, job.by_id)
    mine = Job.objects.filter(pk=job.pk)
    with transaction.atomic():
        is_new = mine.filter(state=State.WAITING).update(state=State.CANCELLED, is_cancel_wanted=True, ended_at=Now())
        is_new = is_new or mine.filter(state=State.RUNNING, is_cancel_wanted=False).update(is_cancel_wanted=True)
        if is_new and job.study:
            audit.note("cancel job", job.study, by, kind=job.kind)
        elif is_new:
            audit.record("cancel job", by=by, kind=job.kind)
    return bool(is_new) or mine.filter(state=State.RUNNING).exists()


# Running


def _lease():
    return Now() + timedelta(seconds=LEASE_SECONDS)


def new_holder() -> str:
    return f"{socket.gethostname()[:32]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class Progress:
    """What a job reports with: ``progress(done, total, doing)``. It renews the lease and hears of a wish to cancel."""

    def __init__(self, pk: int, holder: str):
        self._mine = Job.objects.filter(pk=pk, state=State.RUNNING, holder=holder)

    def __call__(self, done: int, total: int, doing: str = "") -> None:
        if stopping.is_set():
            raise Interrupted
        columns = {"done": max(0, int(done)), "total": max(0, int(total)), "leased_until": _lease()}
        if doing:
            columns["doing"] = doing[:200]
        if self._mine.filter(is_cancel_wanted=False).update(**columns):
            return
        raise Cancelled if self._mine.exists() else LeaseLost

    def renew(self) -> bool:
        return bool(self._mine.update(leased_until=_lease()))


@contextmanager
def _renewed(progress: Progress):
    """Keep the lease of work that is silent for long: one fit of a model may take minutes. It ends with the process."""
    ended = threading.Event()

    def renew():
        while not ended.wait(RENEW_SECONDS):
            try:
                if not progress.renew():
                    return
            except (OperationalError, InterfaceError):
                logger.warning("A lease could not be renewed; the database is not there.")
            finally:
                connections.close_all()  # this thread's own

    thread = threading.Thread(target=renew, name="heval-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()


def run(job_pk: int, holder: str | None = None) -> bool:
    """Run a waiting job to its end. False where it is not there to be run: somebody has it, or its like is running."""
    load()
    holder = holder or new_holder()
    job = Job.objects.filter(pk=job_pk).select_related("study", "by").first()
    if job is None or not _claim(job, holder):
        return False
    job.refresh_from_db()
    progress = Progress(job.pk, holder)
    logger.info("Job %s %s begins (attempt %d)", job.kind, job.code, job.attempts)
    try:
        kind = _kind(job.kind)
        with _renewed(progress):
            result = _as_json(kind.work(job, progress))
        _end(job, holder, State.DONE, result=result)
    except Cancelled:
        _end(job, holder, State.CANCELLED)
    except Interrupted:
        _put_back(job, holder, attempts=F("attempts") - 1)
    except LeaseLost:
        logger.warning("Job %s %s was taken over by another runner", job.kind, job.code)
    except (OperationalError, InterfaceError):
        logger.exception("Job %s %s met a database that is not there; it will be tried again", job.kind, job.code)
        _give_up_lease(job, holder)
    except Exception as error:
        _fail(job, holder, error)
    return True


def _claim(job: Job, holder: str) -> bool:
    with transaction.atomic():
        if not _is_alone(job):
            return False
        claimed = Job.objects.filter(pk=job.pk, state=State.WAITING).update(
            state=State.RUNNING,
            holder=holder,
            leased_until=_lease(),
            attempts=F("attempts") + 1,
            started_at=Coalesce(F("started_at"), Now()),
        )
    return bool(claimed)


def _is_alone(job: Job) -> bool:
    """Whether an exclusive job may start. Claims of one kind and study go one after the other until they commit."""
    kind = _kinds.get(job.kind)
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


def _mine(job: Job, holder: str):
    return Job.objects.filter(pk=job.pk, state=State.RUNNING, holder=holder)


def _end(job: Job, holder: str, state: str, **columns: Any) -> None:
    if _mine(job, holder).update(state=state, ended_at=Now(), leased_until=None, **columns):
        logger.info("Job %s %s ends: %s", job.kind, job.code, state)
    else:
        logger.warning("Job %s %s ended after its lease was lost; its result is thrown away", job.kind, job.code)


def _put_back(job: Job, holder: str, **columns: Any) -> None:
    _mine(job, holder).update(state=State.WAITING, holder="", leased_until=None, **columns)
    logger.info("Job %s %s waits again", job.kind, job.code)


def _give_up_lease(job: Job, holder: str) -> None:
    """Let the sweeper decide at once, if the database hears us; otherwise when the lease runs out."""
    try:
        close_old_connections()
        _mine(job, holder).update(leased_until=Now())
    except (OperationalError, InterfaceError):
        logger.warning("Job %s %s waits for the end of its lease", job.kind, job.code)


def _fail(job: Job, holder: str, error: Exception) -> None:
    kind = _kinds.get(job.kind)
    if isinstance(error, UnknownKind) or (kind and isinstance(error, kind.readable)):
        logger.warning("Job %s %s fails: %s", job.kind, job.code, error)
        sentence = " ".join(str(error).split()) or type(error).__name__
    else:
        logger.error("Job %s %s fails", job.kind, job.code, exc_info=error)
        sentence = f"This did not work ({type(error).__name__}). The server's log tells more under {str(job.code)[:8]}."
    _end(job, holder, State.FAILED, error=sentence)


def run_waiting(limit: int = 100, holder: str | None = None) -> int:
    """Run waiting jobs, the oldest first, until there is none to be run or ``limit`` were. Gives their number."""
    holder = holder or new_holder()
    n, passed_over = 0, []
    while n < limit and not stopping.is_set():
        waiting = Job.objects.filter(state=State.WAITING).exclude(pk__in=passed_over)
        pk = waiting.order_by("pk").values_list("pk", flat=True).first()
        if pk is None:
            break
        if run(pk, holder):
            n += 1
        passed_over.append(pk)
    return n


def is_any_waiting() -> bool:
    return Job.objects.filter(state=State.WAITING).exists()


@every(15)
def requeue_expired() -> int:
    """Jobs whose holder died wait again; after the third attempt they fail. Gives their number."""
    expired = Job.objects.filter(state=State.RUNNING, leased_until__lt=Now())
    n = 0
    for pk in list(expired.order_by("pk").values_list("pk", flat=True)[:1000]):
        one = expired.filter(pk=pk)
        n += (
            one.filter(is_cancel_wanted=True).update(state=State.CANCELLED, leased_until=None, ended_at=Now())
            or one.filter(attempts__lt=ATTEMPTS).update(state=State.WAITING, holder="", leased_until=None)
            or one.update(
                state=State.FAILED,
                leased_until=None,
                ended_at=Now(),
                error=f"Tried {ATTEMPTS} times; each time the process that ran it, or the database, ended before the work did. "
                "Is there enough memory?",
            )
        )
    if n:
        logger.warning("%d jobs had lost their runner", n)
        transaction.on_commit(_wake, robust=True)
    return n


# Periodic work, and whether anybody does it


def run_periodic() -> int:
    """Run the periodic functions that are due in no other process, and say that somebody runs jobs. Gives their number."""
    load()
    beat()
    n = 0
    for periodic in list(_periodic.values()):
        if stopping.is_set():
            break
        try:
            # Shared by all processes: who adds the key has the turn.
            if cache.add(f"heval:every:{periodic.name}", 1, periodic.seconds):
                periodic.function()
                n += 1
        except Exception:
            logger.exception("Periodic work %s failed", periodic.name)
    return n


def beat() -> None:
    cache.set(HEARTBEAT_KEY, new_holder(), HEARTBEAT_SECONDS)


def is_runner_alive() -> bool:
    """Whether somebody has run periodic work lately."""
    return cache.get(HEARTBEAT_KEY) is not None


def standing() -> dict[str, int]:
    """How many jobs wait, run, and run without a living holder."""
    rows = Job.objects
    return {
        "waiting": rows.filter(state=State.WAITING).count(),
        "running": rows.filter(state=State.RUNNING).count(),
        "expired": rows.filter(Q(state=State.RUNNING, leased_until__lt=Now())).count(),
    }
