"""Long work is stored as rows. docs: explanation/jobs.

A job is a row of the database from the moment of the request, in the same transaction. The process that runs it holds a lease
and renews it. If the process dies, the lease expires and the job waits again, at most three times. No broker or process has
to remember anything. All times come from the database.

    @jobs.register("launch", user_facing_errors=(NotReady,), is_one_per_study=True)
    def work(job, progress):
        progress(0, 10, "Drawing batches")
        return {"batches": 10}

A job that takes long may ask for its parts (``compute_parts``). Other processes that run jobs then compute some of them.

Each app registers its kinds in its ``tasks`` module. This package imports it when the first job is submitted or run, so a
``tasks`` module must import numpy and similar packages inside its functions.
"""

from .heartbeats import (
    HEARTBEAT_SECONDS,
    JOBS,
    PERIODIC_WORK,
    heartbeat_key,
    is_runner_alive,
    record_runner_heartbeat,
    work_without_runner,
)
from .parts import compute_open_part, compute_parts
from .periodic import (
    PeriodicFunction,
    register_periodic,
    requeue_or_fail_expired_jobs,
    run_due_functions_and_record_heartbeat,
    unfinished_job_counts,
)
from .queue import ENDED, request_cancel, submit
from .registry import JobKind, UnknownKind, UserFacingError, autodiscover_tasks, kinds, register
from .running import (
    LEASE_SECONDS,
    Cancelled,
    Interrupted,
    LeaseLost,
    ProgressReporter,
    claim_and_run_job,
    has_waiting_jobs,
    new_holder_id,
    run_waiting_jobs,
    stop_requested,
)

__all__ = [
    "Cancelled",
    "compute_open_part",
    "compute_parts",
    "ENDED",
    "JOBS",
    "PERIODIC_WORK",
    "heartbeat_key",
    "work_without_runner",
    "HEARTBEAT_SECONDS",
    "Interrupted",
    "JobKind",
    "LEASE_SECONDS",
    "LeaseLost",
    "PeriodicFunction",
    "ProgressReporter",
    "UserFacingError",
    "UnknownKind",
    "record_runner_heartbeat",
    "request_cancel",
    "register_periodic",
    "has_waiting_jobs",
    "is_runner_alive",
    "kinds",
    "autodiscover_tasks",
    "new_holder_id",
    "register",
    "requeue_or_fail_expired_jobs",
    "claim_and_run_job",
    "run_due_functions_and_record_heartbeat",
    "run_waiting_jobs",
    "unfinished_job_counts",
    "stop_requested",
    "submit",
]
