import logging
import signal
import threading

from django.core.management.base import BaseCommand
from django.db import Error, connections

from heval_site.runtime.pseudonym_key import refuse_wrong_key_at_start
from studies.services import jobs

logger = logging.getLogger("heval.worker")
POLL_SECONDS = 1
BATCH_POLL_SECONDS = 3  # nobody waits for a batch
TICK_SECONDS = 5


class Command(BaseCommand):
    help = (
        "Run waiting jobs and periodic work, without a broker. Not needed if Celery runs the jobs. "
        "It runs short jobs, such as launches, at once. It runs batches, such as metrics and simulations, after all other jobs, or leaves them to heval worker --batches."
    )

    def add_arguments(self, parser):
        parser.add_argument("--batches", action="store_true", help="run only batches, and no periodic work")
        parser.add_argument("--once", action="store_true", help="run all waiting and due work, then end")

    def handle(self, *args, **options):
        refuse_wrong_key_at_start()
        runner = jobs.BATCHES if options["batches"] else jobs.JOBS
        if options["once"]:
            _tick(runner)
            n = jobs.run_waiting_jobs(runner=runner)
            self.stdout.write(f"{n} jobs run")
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: jobs.stop_requested.set())
        # In a separate thread, because places must be released even during an analysis of an hour.
        ticking = threading.Thread(
            target=lambda: _repeat(lambda: _tick(runner), TICK_SECONDS),
            name="heval-tick",
            daemon=True,
        )
        ticking.start()
        # Beside the main thread, because a launch must not wait for a report.
        short = threading.Thread(
            target=lambda: _repeat(lambda: _run_all_work(jobs.SHORT_JOBS), POLL_SECONDS), name="heval-short-jobs"
        )
        if runner == jobs.JOBS:
            short.start()
        _repeat(lambda: _run_all_work(runner), BATCH_POLL_SECONDS if options["batches"] else POLL_SECONDS)
        if runner == jobs.JOBS:
            short.join()
        ticking.join(5)


def _tick(runner: str) -> None:
    """Jobs run in the main thread of this process. Only a process that runs all jobs does periodic work, too."""
    jobs.record_runner_heartbeat(runner)
    if runner == jobs.JOBS:
        jobs.run_due_functions_and_record_heartbeat()


def _run_all_work(runner: str) -> None:
    """Run what waits, then help with the parts of jobs that other processes run. Parts of short jobs are not shared."""
    if not jobs.has_unfinished_jobs():
        return
    jobs.run_waiting_jobs(runner=runner)
    while runner != jobs.SHORT_JOBS and not jobs.stop_requested.is_set() and jobs.compute_open_part(runner=runner):
        jobs.run_waiting_jobs(runner=runner)


def _repeat(work, seconds: float) -> None:
    """Repeat until asked to stop. If the database is down, log it once and wait."""
    is_away = False
    while not jobs.stop_requested.is_set():
        try:
            work()
            if is_away:
                logger.warning("The database is back.")
            is_away = False
        except Error as error:
            if not is_away:
                logger.warning("The database is not available (%s); waiting for it.", " ".join(str(error).split()))
            is_away = True
        except Exception:
            logger.exception("Searching for work failed")
            jobs.stop_requested.wait(5)
        if is_away:
            connections.close_all()
        jobs.stop_requested.wait(5 if is_away else seconds)
    connections.close_all()
