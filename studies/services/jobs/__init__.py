"""Long work as rows. docs: explanation/jobs.

A job is a row of the database from the moment it is asked for, in the transaction that asks. Whoever runs it holds a lease and
renews it; when the holder dies the lease runs out and the job waits again, three times at most. Neither a broker nor a process
is needed to remember anything. All times are the database's.

    @jobs.register("launch", user_facing_errors=(NotReady,), is_one_per_study=True)
    def work(job, progress):
        progress(0, 10, "Drawing batches")
        return {"batches": 10}

An app's kinds stand in its ``tasks`` module. It is imported here, when the first job is submitted or run, so it must import
numpy and its friends inside its functions.
"""

from .periodic import (
    HEARTBEAT_KEY,
    HEARTBEAT_SECONDS,
    PeriodicFunction,
    is_runner_alive,
    job_counts,
    record_runner_heartbeat,
    register_periodic,
    requeue_or_fail_expired_jobs,
    run_due_periodic_functions,
)
from .queue import ENDED, cancel, submit
from .registry import JobKind, UnknownKind, UserFacingError, autodiscover_tasks, kinds, register
from .running import (
    LEASE_SECONDS,
    Cancelled,
    Interrupted,
    LeaseLost,
    ProgressReporter,
    has_waiting_jobs,
    new_holder_id,
    run_job,
    run_waiting_jobs,
    stop_requested,
)

__all__ = [
    "Cancelled",
    "ENDED",
    "HEARTBEAT_KEY",
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
    "cancel",
    "register_periodic",
    "has_waiting_jobs",
    "is_runner_alive",
    "kinds",
    "autodiscover_tasks",
    "new_holder_id",
    "register",
    "requeue_or_fail_expired_jobs",
    "run_job",
    "run_due_periodic_functions",
    "run_waiting_jobs",
    "job_counts",
    "stop_requested",
    "submit",
]
