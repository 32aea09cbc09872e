"""Long work is stored as rows. docs: explanation/jobs.

A job is a row of the database from the moment of the request, in the same transaction. The process that runs it holds a lease
and renews it. If the process dies, the lease expires and the job waits again, at most three times. No broker or process has
to remember anything. All times come from the database.

    @jobs.register("launch", user_facing_errors=(NotReady,), is_one_per_study=True)
    def work(job, progress):
        progress(0, 10, "Drawing batches")
        return {"batches": 10}

A job of a few seconds that people wait for, such as a launch, is short (``is_short=True``). Short jobs run before the others, and do
not wait for one that runs. A job that takes long and that nobody waits for is a batch (``is_batch=True``). Batches run after all other
jobs, or in a process of their own. A batch may have parts: it goes on after those that are done, and other processes may compute some of them.

Each app registers its kinds in its ``tasks`` module. This package imports it when the first job is submitted or run, so a
``tasks`` module must import numpy and similar packages inside its functions.
"""

import json
import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol
from zlib import crc32

from django.core.cache import cache
from django.db import Error, close_old_connections, connection, connections, transaction
from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, When
from django.db.models.functions import Coalesce, Now
from django.utils.module_loading import autodiscover_modules

from studies import signals
from studies.access import Action, check_owner_or_admin_or_404, check_permission_or_404
from studies.models import Job, JobPart, audit
from studies.services import events
from studies.services.databases import is_database_unavailable_error
from studies.services.signal_flag import SignalFlag

# Register kinds of jobs.


class UnknownKind(LookupError):
    """No app has registered this kind of job."""


class UserFacingError(Exception):
    """An error with a message for the researcher."""


@dataclass(frozen=True, slots=True)
class JobKind:
    name: str
    work: Callable[..., Any]
    exclusive: bool
    user_facing: tuple[type[Exception], ...]
    part: Callable[[dict[str, Any]], Any] | None = None
    is_batch: bool = False
    keeps_steps: bool = False
    is_short: bool = False


_kinds: dict[str, JobKind] = {}
_is_loaded = False


def register(
    kind: str,
    *,
    is_one_per_study: bool = False,
    is_short: bool = False,
    is_batch: bool = False,
    user_facing_errors: tuple[type[Exception], ...] = (),
    part: Callable[[dict[str, Any]], Any] | None = None,
    keeps_steps: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function ``work(job, progress)`` for a kind of job. Its result must be serializable as JSON.

    ``is_one_per_study``: only one job of this kind runs at a time for a study. ``is_short``: the job takes seconds and little
    memory, and starts at once whatever else runs. ``is_batch``: the job takes long, and people do
    something else meanwhile, so other jobs run first. ``user_facing_errors``: exceptions whose message the researcher sees; other
    errors appear only in the log. ``part``: computes a part of the job from its arguments, in any process that runs such jobs
    (``jobs.compute_parts``). ``keeps_steps``: what the job did before it is cancelled stays. A job runs again after a crash, so the work must be idempotent.
    """

    def registered(work):
        if kind in _kinds and _kinds[kind].work.__module__ != work.__module__:
            raise ValueError(
                f"Two functions want to be the job {kind!r}: in {_kinds[kind].work.__module__} and {work.__module__}."
            )
        errors: tuple[type[Exception], ...] = (UserFacingError, *user_facing_errors)
        _kinds[kind] = JobKind(kind, work, is_one_per_study, errors, part, is_batch, keeps_steps, is_short)
        return work

    return registered


def autodiscover_tasks() -> None:
    """Import the ``tasks`` module of every app, once."""
    global _is_loaded
    if not _is_loaded:
        autodiscover_modules("tasks")
        _is_loaded = True


def kinds() -> dict[str, JobKind]:
    autodiscover_tasks()
    return dict(_kinds)


def get_job_kind(name: str) -> JobKind:
    autodiscover_tasks()
    try:
        return _kinds[name]
    except KeyError:
        raise UnknownKind(f"There is no job {name!r}. There are: {', '.join(sorted(_kinds))}.") from None


def batch_kinds() -> list[str]:
    """Return the kinds of jobs that run after the others."""
    return [kind.name for kind in kinds().values() if kind.is_batch]


def short_kinds() -> list[str]:
    """Return the kinds of jobs that run before the others."""
    return [kind.name for kind in kinds().values() if kind.is_short]


def validate_json_value(value: Any) -> Any:
    """Return the value. Raise ValueError or TypeError if a JSON column of the database cannot store it."""
    text = json.dumps(value, allow_nan=False)
    if "\\u0000" in text:
        raise ValueError("a NUL character cannot be stored")
    return json.loads(text)


# Submit and cancel jobs.


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


# Record that processes run jobs, batches and periodic work. With Celery these are three processes, and each can die alone.


HEARTBEAT_SECONDS = 90  # after this long without a heartbeat, no process does the work
# What a process runs. One that runs JOBS also runs batches while no process records BATCHES.
JOBS, SHORT_JOBS, BATCHES, PERIODIC_WORK = "jobs", "short jobs", "batches", "periodic work"


def heartbeat_key(work: str) -> str:
    return f"heval:runs {work}".replace(" ", "-")


def record_runner_heartbeat(work: str) -> None:
    cache.set(heartbeat_key(work), 1, HEARTBEAT_SECONDS)


def is_recorded(work: str) -> bool:
    """Return whether a process recorded within ``HEARTBEAT_SECONDS`` that it does the work."""
    return cache.get(heartbeat_key(work)) is not None


def work_without_runner() -> list[str]:
    """Return what no process does now. Batches are not named, because a process that runs jobs runs them, too."""
    found = cache.get_many([heartbeat_key(work) for work in (JOBS, PERIODIC_WORK)])
    return [work for work in (JOBS, PERIODIC_WORK) if heartbeat_key(work) not in found]


def is_runner_alive() -> bool:
    """Return whether a process runs jobs, and one periodic work."""
    return not work_without_runner()


# Run a job under a lease, and renew the lease until the job ends.


logger = logging.getLogger("heval.jobs")
LEASE_SECONDS = 60
RENEW_SECONDS = 15


class Cancelled(Exception):
    """Raised by ``progress`` if a researcher cancelled the job."""


class Interrupted(Exception):
    """Raised by ``progress`` if the process has to stop, or to run another job first. The job waits again."""


class LeaseLost(Exception):
    """Another process has taken over the job. The result of this process is discarded."""


# Set when the process should end: running jobs wait again from their next progress report.
stop_requested = SignalFlag()


def lease_end() -> Any:
    return Now() + timedelta(seconds=LEASE_SECONDS)


def new_holder_id() -> str:
    return f"{socket.gethostname()[:32]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class ProgressReporter:
    """Report a job's progress: ``progress(done, total, doing)`` renews the lease and notices a cancellation.

    ``gives_way``: the job is a batch, and its process also runs the jobs that come before batches.
    """

    def __init__(self, pk: int, holder: str, gives_way: bool = False):
        self._own_row = Job.objects.filter(pk=pk, state=State.RUNNING, holder=holder)
        self._gives_way = gives_way
        self._stored: list[str] = []

    def __call__(self, done: int, total: int, doing: str = "") -> None:
        if stop_requested.is_set():
            raise Interrupted
        columns = {"done": max(0, int(done)), "total": max(0, int(total)), "leased_until": lease_end()}
        if doing:
            columns["doing"] = doing[:200]
        if self._own_row.filter(is_cancel_wanted=False).update(**columns):
            return
        raise Cancelled if self._own_row.exists() else LeaseLost

    def give_way(self) -> None:
        """After a part of a batch is stored, raise Interrupted if a job waits that comes before batches."""
        if self._gives_way and _jobs_before_batches().exists():
            raise Interrupted

    def record_stored(self, name: str) -> None:
        """Record what the job has stored for good, so that its page can name it if the job ends before the rest."""
        self._stored.append(name)
        self._own_row.update(result={"stored": self._stored})

    def renew_lease(self) -> bool:
        return bool(self._own_row.update(leased_until=lease_end()))


class RenewsLease(Protocol):
    def renew_lease(self) -> bool: ...


@contextmanager
def lease_renewal(held: RenewsLease, runner: str = ""):
    """Renew the lease of work that reports no progress for a long time, such as the fit of a model.

    ``runner``: what the process runs. Its heartbeat is renewed, too, because the process does not look for jobs meanwhile.
    """
    ended = threading.Event()

    def renew():
        while not ended.wait(RENEW_SECONDS):
            try:
                if not held.renew_lease():
                    return
                if runner:
                    record_runner_heartbeat(runner)
            except Error:
                logger.warning("A lease could not be renewed; the database is not there.")
            except Exception as error:  # of the cache; the next lease must be renewed all the same
                logger.warning("A heartbeat could not be recorded (%s).", type(error).__name__)
            finally:
                connections.close_all()  # the connections of this thread

    thread = threading.Thread(target=renew, name="heval-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()


def claim_and_run_job(job_pk: int, holder: str | None = None, runner: str = "") -> bool:
    """Run a waiting job to its end. Return False if another process has it or a job of its kind runs for the study.

    ``runner``: what the process runs. If it runs all jobs, a batch gives way to others between two of its parts.
    """
    autodiscover_tasks()
    holder = holder or new_holder_id()
    job = Job.objects.filter(pk=job_pk).select_related("study", "by").first()
    if job is None or not _claim(job, holder):
        return False
    job.refresh_from_db()
    progress = ProgressReporter(job.pk, holder, gives_way=runner == JOBS and job.kind in batch_kinds())
    logger.info("Job %s %s begins (attempt %d)", job.kind, job.code, job.attempts)
    try:
        kind = get_job_kind(job.kind)
        with lease_renewal(progress, runner):
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


@contextmanager
def running_here(kind: str, *, study, by, **arguments: Any) -> Iterator[tuple[Job, ProgressReporter]]:
    """Create a job that this process runs at once, and end it with the block.

    If the process dies, the lease expires, and another process calls the kind's function.
    """
    holder = new_holder_id()
    job = Job.objects.create(
        kind=kind, study=study, by=by, arguments=validate_json_value(arguments), state=State.RUNNING, holder=holder,
        leased_until=lease_end(), started_at=Now(), attempts=1,
    )  # fmt: skip
    progress = ProgressReporter(job.pk, holder)
    try:
        with lease_renewal(progress):
            yield job, progress
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, Cancelled | Interrupted):
            _fail(job, holder, error)
        else:
            _end(job, holder, State.CANCELLED)
        raise
    _held_job(job, holder).update(state=State.DONE, ended_at=Now(), leased_until=None)


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
    with transaction.atomic():
        is_ended = _held_job(job, holder).update(state=state, ended_at=Now(), leased_until=None, **columns)
        if is_ended and state == State.FAILED:
            events.record_failed_job(job)
    if is_ended:
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


def run_waiting_jobs(limit: int = 100, holder: str | None = None, runner: str = JOBS) -> int:
    """Run waiting jobs until no job can run or ``limit`` jobs have run. Return their number.

    ``runner``: ``JOBS`` runs short jobs first and batches last, and of each class the oldest job first. It leaves batches to the
    processes that run only them, if there is one. ``SHORT_JOBS`` and ``BATCHES`` run only these.
    """
    holder = holder or new_holder_id()
    blocked: list[int] = []
    n = 0
    while n < limit and not stop_requested.is_set() and (pk := _next_job(runner, blocked)) is not None:
        if claim_and_run_job(pk, holder, runner):
            n += 1
        else:
            blocked.append(pk)
    return n


def has_waiting_jobs(runner: str = JOBS) -> bool:
    """Return whether a job waits that this runner may run."""
    return _next_job(runner) is not None


def _next_job(runner: str, blocked: Sequence[int] = ()) -> int | None:
    short, batches = short_kinds(), batch_kinds()
    waiting = Job.objects.filter(state=State.WAITING).exclude(pk__in=blocked)
    if runner != JOBS:
        waiting = waiting.filter(kind__in=batches if runner == BATCHES else short)
    by_class = Case(When(kind__in=short, then=0), When(kind__in=batches, then=2), default=1)
    found = waiting.order_by(by_class, "pk").values_list("pk", "kind").first()
    if found is None or (runner != BATCHES and found[1] in batches and not _may_begin_batch()):
        return None
    return int(found[0])


def _may_begin_batch() -> bool:
    """Return whether a process that runs all jobs may begin a batch: one at a time, and none if another process runs only batches."""
    running = Job.objects.filter(state=State.RUNNING, kind__in=batch_kinds(), leased_until__gt=Now())
    return not is_recorded(BATCHES) and not running.exists()


def _jobs_before_batches() -> QuerySet[Job]:
    """Return the waiting jobs that can start now and come before batches."""
    exclusive = [kind.name for kind in kinds().values() if kind.exclusive]
    like = Job.objects.filter(kind=OuterRef("kind"), study=OuterRef("study"), state=State.RUNNING)
    waiting = Job.objects.filter(state=State.WAITING).exclude(kind__in=batch_kinds())
    return waiting.exclude(Exists(like), kind__in=exclusive)


# Store the parts of a running job, so that a repetition goes on after them, and share them with other processes.
#
# The process that runs the job computes parts, too, and waits only for parts that others hold. So a job ends with one
# process as with many, and no process waits for work that needs its own place. A part must give the same result
# wherever and whenever it is computed.


# How often a job looks whether other processes have finished their parts.
WAIT_SECONDS = 0.2


class HeldPart:
    """A part of which this process holds the lease."""

    def __init__(self, part: JobPart, holder: str):
        self.part = part
        self._own_row = JobPart.objects.filter(pk=part.pk, holder=holder)

    def renew_lease(self) -> bool:
        return bool(self._own_row.update(leased_until=lease_end()))

    def compute(self, runner: str = "") -> None:
        """Compute and store the result. After an error the part is free again."""
        try:
            compute = _function_of(self.part.job)
            with lease_renewal(self, runner):
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
    numbers = _numbers_of_parts(job, arguments)
    wake_runners()
    parts, n_parts = job.parts.filter(number__in=numbers), len(set(numbers))
    holder = new_holder_id()
    while True:
        n_done = parts.filter(is_done=True).count()
        progress(n_done, n_parts, doing)
        if n_done == n_parts:
            results = dict(parts.values_list("number", "result"))
            return [results[number] for number in numbers]
        # Parts whose process died, or could not compute them, are left to the job itself: it shows the error.
        if held := _hold_first(parts.filter(Q(leased_until=None) | Q(leased_until__lt=Now())), holder):
            held.compute()
            progress.give_way()
        else:
            stop_requested.wait(WAIT_SECONDS)


class UnstoredParts:
    """Results of parts by their position, for a computation without a job."""

    def __init__(self, arguments: Sequence[Mapping[str, Any]]):
        self.results: dict[int, Any] = {}

    def store(self, position: int, result: Any) -> None:
        self.results[position] = result


class StoredParts(UnstoredParts):
    """The parts of a job that its own process computes, in any order, for example because it has processes of its own for them.

    ``results``: by the position of the part in ``arguments``. If the job is run again, those that an earlier run stored are there.
    """

    def __init__(self, job: Job, progress: ProgressReporter, arguments: Sequence[Mapping[str, Any]]):
        self._rows, self._give_way = job.parts, progress.give_way
        self._numbers = _numbers_of_parts(job, arguments)
        done = dict(job.parts.filter(is_done=True).values_list("number", "result"))
        self.results = {position: done[number] for position, number in enumerate(self._numbers) if number in done}

    def store(self, position: int, result: Any) -> None:
        """Store a result. Then raise Interrupted if the process has to run another job first."""
        self.results[position] = stored = validate_json_value(result)
        self._rows.filter(number=self._numbers[position]).update(is_done=True, result=stored)
        self._give_way()


# Returns where the results of parts with these arguments are kept.
PartsOf = Callable[[Sequence[Mapping[str, Any]]], UnstoredParts]


def _numbers_of_parts(job: Job, arguments: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the number of the part with each of these arguments. A part is created if the job has none with them."""
    wanted = {_hashable(one): one for one in map(validate_json_value, arguments)}
    while True:
        known = {_hashable(one): number for one, number in job.parts.values_list("arguments", "number")}
        new = [one for key, one in wanted.items() if key not in known]
        if not new:
            return [known[_hashable(validate_json_value(one))] for one in arguments]
        # A process that lost the lease may create parts at the same time. Numbers that it took are tried again.
        free = enumerate(new, max(known.values(), default=-1) + 1)
        parts = [JobPart(job=job, number=number, arguments=one) for number, one in free]
        JobPart.objects.bulk_create(parts, ignore_conflicts=True)


def _hashable(value: Any) -> Any:
    """Return a key that is equal for equal JSON values. PostgreSQL may return 1e20 as a whole number, so texts would differ."""
    if isinstance(value, dict):
        return frozenset((name, _hashable(one)) for name, one in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def compute_open_part(holder: str | None = None, runner: str = JOBS) -> bool:
    """Compute a part of a job that another process runs. Return False if no part is open. Errors are left to the job.

    A process that runs all jobs computes no part of a batch if another process runs only batches.
    """
    parts = _open_parts(runner)
    held = _hold_first(parts, holder or new_holder_id())
    if held is None:
        return False
    if parts.all().exists():
        wake_runners()
    try:
        held.compute(runner)
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


def _open_parts(runner: str) -> QuerySet[JobPart]:
    """Return the parts that no process has tried yet and this runner may compute, of jobs that run and are not to be cancelled."""
    takes_batches = runner == BATCHES or not is_recorded(BATCHES)
    takes_others = runner != BATCHES
    shared = [
        kind.name for kind in kinds().values() if kind.part and (takes_batches if kind.is_batch else takes_others)
    ]
    running = JobPart.objects.filter(job__state=Job.State.RUNNING, job__kind__in=shared, job__is_cancel_wanted=False)
    return running.filter(is_done=False, attempts=0, leased_until=None)


def _hold_first(parts: QuerySet[JobPart], holder: str) -> HeldPart | None:
    """Take the lease of the first part that is not done, or return None if no part is open."""
    while part := parts.filter(is_done=False).select_related("job").order_by("job", "number").first():
        row = JobPart.objects.filter(pk=part.pk, holder=part.holder, attempts=part.attempts, is_done=False)
        if row.update(holder=holder, leased_until=lease_end(), attempts=F("attempts") + 1):
            return HeldPart(part, holder)
    return None


# Run periodic functions in one process only, and record that a job runner is alive.


MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class PeriodicFunction:
    name: str
    seconds: int
    function: Callable[[], Any]


_periodic: dict[str, PeriodicFunction] = {}


def register_periodic(seconds: int) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function without arguments that one process runs about this often.

    The function must be safe to run twice at the same time.
    """

    def registered(function):
        name = f"{function.__module__}.{function.__qualname__}"
        _periodic[name] = PeriodicFunction(name, seconds, function)
        return function

    return registered


def run_due_functions_and_record_heartbeat() -> int:
    """Run the periodic functions that are due, and record a heartbeat. Return how many functions ran."""
    autodiscover_tasks()
    record_runner_heartbeat(PERIODIC_WORK)
    n = 0
    keys = {name: f"heval:every:{name}" for name in _periodic}
    not_due = cache.get_many(keys.values())
    for periodic in [periodic for name, periodic in _periodic.items() if keys[name] not in not_due]:
        if stop_requested.is_set():
            break
        try:
            # All processes share the cache: the process that adds the key runs the function.
            if cache.add(keys[periodic.name], 1, periodic.seconds):
                periodic.function()
                n += 1
        except Exception:
            logger.exception("Periodic work %s failed", periodic.name)
    return n


@register_periodic(15)
def requeue_or_fail_expired_jobs() -> int:
    """Let jobs wait again if their process died; after the third attempt they fail. Return the number of jobs.

    It also deletes the parts of jobs that have ended.
    """
    expired = Job.objects.filter(state=State.RUNNING, leased_until__lt=Now())
    n = 0
    for pk in list(expired.order_by("pk").values_list("pk", flat=True)[:1000]):
        row = expired.filter(pk=pk)
        n += (
            row.filter(is_cancel_wanted=True).update(state=State.CANCELLED, leased_until=None, ended_at=Now())
            or row.filter(attempts__lt=MAX_ATTEMPTS).update(state=State.WAITING, holder="", leased_until=None)
            or _fail_expired(row)
        )
    if n:
        logger.warning("%d jobs had lost their runner", n)
        transaction.on_commit(wake_runners, robust=True)
    delete_parts_of_ended_jobs()
    return n


def _fail_expired(row: QuerySet[Job]) -> int:
    job = row.select_related("study").first()
    with transaction.atomic():
        n = row.update(
            state=State.FAILED,
            leased_until=None,
            ended_at=Now(),
            error=f"Tried {MAX_ATTEMPTS} times; each time the process that ran it, or the database, ended before the work did. "
            "Is there enough memory?",
        )
        if n and job:
            events.record_failed_job(job)
    return n


def has_unfinished_jobs() -> bool:
    """Return whether a job waits or runs. This costs less than to look for one that can start."""
    return Job.objects.filter(state__in=(State.WAITING, State.RUNNING)).exists()


def unfinished_job_counts() -> dict[str, int]:
    """Return how many jobs wait, how many run, and how many of these have no living process."""
    rows = Job.objects
    return {
        "waiting": rows.filter(state=State.WAITING).count(),
        "running": rows.filter(state=State.RUNNING).count(),
        "expired": rows.filter(Q(state=State.RUNNING, leased_until__lt=Now())).count(),
    }
