import logging
import signal
import threading

from django.core.management.base import BaseCommand
from django.db import Error, connections

from heval_site.runtime.pseudonym_key import refuse_wrong_key_at_start
from studies.services import jobs

logger = logging.getLogger("heval.worker")
POLL_SECONDS = 0.5
TICK_SECONDS = 5


class Command(BaseCommand):
    help = "Run waiting jobs and periodic work, without a broker. Not needed if Celery runs the jobs."

    def add_arguments(self, parser):
        parser.add_argument("--once", action="store_true", help="run all waiting and due work, then end")

    def handle(self, *args, **options):
        refuse_wrong_key_at_start()
        if options["once"]:
            _tick()
            n = jobs.run_waiting_jobs()
            self.stdout.write(f"{n} jobs run")
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: jobs.stop_requested.set())
        # In a separate thread, because places must be released even during an analysis of an hour.
        ticking = threading.Thread(
            target=lambda: _repeat(_tick, TICK_SECONDS),
            name="heval-tick",
            daemon=True,
        )
        ticking.start()
        _repeat(_run_all_work, POLL_SECONDS)
        ticking.join(5)


def _tick() -> None:
    """This process runs both kinds of work, jobs in its main thread."""
    jobs.record_runner_heartbeat(jobs.JOBS)
    jobs.run_due_functions_and_record_heartbeat()


def _run_all_work() -> None:
    """Run what waits, then help with the parts of jobs that other processes run."""
    jobs.run_waiting_jobs()
    while not jobs.stop_requested.is_set() and jobs.compute_open_part():
        jobs.run_waiting_jobs()


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
