"""Record that processes run jobs and periodic work. With Celery these are two processes, and each can die alone."""

from django.core.cache import cache
from django.db.models.functions import Now

from studies.models import Job

HEARTBEAT_SECONDS = 90  # after this long without a heartbeat, no process does the work
JOBS, PERIODIC_WORK = "jobs", "periodic work"


def heartbeat_key(work: str) -> str:
    return f"heval:runs {work}".replace(" ", "-")


def record_runner_heartbeat(work: str) -> None:
    cache.set(heartbeat_key(work), 1, HEARTBEAT_SECONDS)


def work_without_runner() -> list[str]:
    """Return what no process does now. A process whose job takes long renews its lease instead of looking for jobs."""
    found = cache.get_many([heartbeat_key(work) for work in (JOBS, PERIODIC_WORK)])
    missing = [work for work in (JOBS, PERIODIC_WORK) if heartbeat_key(work) not in found]
    if JOBS in missing and Job.objects.filter(state=Job.State.RUNNING, leased_until__gt=Now()).exists():
        missing.remove(JOBS)
    return missing


def is_runner_alive() -> bool:
    """Return whether a process runs jobs, and one periodic work."""
    return not work_without_runner()
