"""Run periodic functions in one process only, and record that a job runner is alive."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from studies.models import Job

from .heartbeats import PERIODIC_WORK, record_runner_heartbeat
from .parts import delete_parts_of_ended_jobs
from .queue import wake_runners
from .registry import autodiscover_tasks
from .running import stop_requested

logger = logging.getLogger("heval.jobs")
State = Job.State

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
    for periodic in list(_periodic.values()):
        if stop_requested.is_set():
            break
        try:
            # All processes share the cache: the process that adds the key runs the function.
            if cache.add(f"heval:every:{periodic.name}", 1, periodic.seconds):
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
            or row.update(
                state=State.FAILED,
                leased_until=None,
                ended_at=Now(),
                error=f"Tried {MAX_ATTEMPTS} times; each time the process that ran it, or the database, ended before the work did. "
                "Is there enough memory?",
            )
        )
    if n:
        logger.warning("%d jobs had lost their runner", n)
        transaction.on_commit(wake_runners, robust=True)
    delete_parts_of_ended_jobs()
    return n


def unfinished_job_counts() -> dict[str, int]:
    """Return how many jobs wait, how many run, and how many of these have no living process."""
    rows = Job.objects
    return {
        "waiting": rows.filter(state=State.WAITING).count(),
        "running": rows.filter(state=State.RUNNING).count(),
        "expired": rows.filter(Q(state=State.RUNNING, leased_until__lt=Now())).count(),
    }
