"""Celery, if a broker is set: `celery -A heval_site.celery worker` and the same with `beat`.

Its four tasks carry no content. `look` runs one waiting job, `heval.run_short_job` one short job, `heval.run_batch` one waiting
batch, `tick` the periodic work. A lost or doubled message changes nothing, and pickled or unknown messages are refused.
"""

import logging
import os
import sys
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")

import celery
from celery.signals import celeryd_init, setup_logging
from django.conf import settings

BEAT_SECONDS = 15

app = celery.Celery("heval", broker=settings.CELERY_BROKER_URL, set_as_current=False)
app.conf.update(
    task_serializer="json",
    accept_content=["json"],
    task_ignore_result=True,
    # If a worker is killed, its message goes to another; the job's lease decides when it runs again.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    # Analyses leak memory; a new process frees it.
    worker_max_tasks_per_child=200,
    task_default_queue="jobs",
    # Releasing places and a launch must not wait for an analysis of an hour, and an analysis not for a batch.
    task_routes={
        "heval.run_periodic": {"queue": "periodic"},
        "heval.run_short_job": {"queue": "short"},
        "heval.run_batch": {"queue": "batches"},
    },
    broker_connection_retry_on_startup=True,
    broker_transport_options={"socket_connect_timeout": 3, "socket_timeout": 10, "max_retries": 1},
    timezone="UTC",
    beat_schedule={
        "tick": {"task": "heval.run_periodic", "schedule": float(BEAT_SECONDS), "options": {"expires": BEAT_SECONDS}},
        "look": {"task": "heval.run_job", "schedule": float(BEAT_SECONDS), "options": {"expires": BEAT_SECONDS}},
    },
)


@setup_logging.connect
def _configure_logging(**kwargs):
    from logging.config import dictConfig

    dictConfig(settings.LOGGING)


@celeryd_init.connect
def _print_no_banner(instance: Any = None, **kwargs: object) -> None:
    """Print no banner and no farewell, and log warnings, so that each line of the log is an event."""
    instance.quiet = True
    sys.__stdout__ = None  # type: ignore[misc]  # Celery's signal handlers print to it
    _configure_logging()
    logging.captureWarnings(True)
    import django

    django.setup(set_prefix=False)
    from django.apps import apps

    site: Any = apps.get_app_config("heval_site")
    site.prepare_before_fork()


def _run_one(runner: str, task: Any) -> None:
    """Run one waiting job, then send another message if more jobs wait. If none waits, compute a part of a job that runs."""
    from studies.services import jobs

    jobs.record_runner_heartbeat(runner)
    if not jobs.run_waiting_jobs(limit=1, runner=runner):
        if runner != jobs.SHORT_JOBS:
            jobs.compute_open_part(runner=runner)
    elif jobs.has_waiting_jobs(runner):
        task.apply_async(expires=60)


@app.task(name="heval.run_job")
def run_one_job_and_trigger_next() -> None:
    """Run a job. A batch runs last, and only if no worker runs the queue of batches."""
    from studies.services import jobs

    _run_one(jobs.JOBS, run_one_job_and_trigger_next)


@app.task(name="heval.run_short_job")
def run_short_job_and_trigger_next() -> None:
    """Run a short job."""
    from studies.services import jobs

    _run_one(jobs.SHORT_JOBS, run_short_job_and_trigger_next)


@app.task(name="heval.run_batch")
def run_one_batch_and_trigger_next() -> None:
    """Run a batch."""
    from studies.services import jobs

    _run_one(jobs.BATCHES, run_one_batch_and_trigger_next)


@app.task(name="heval.run_periodic")
def run_periodic_work() -> None:
    """Run the periodic work that is due, and let workers of one class look for a job and record their heartbeat."""
    from studies.services import jobs

    jobs.run_due_functions_and_record_heartbeat()
    wake_workers_of_one_class()


def wake_workers_of_one_class() -> None:
    """Send a message to the queues of short jobs and batches that are empty: without a worker they would collect messages for ever."""
    for queue, task in (("short", run_short_job_and_trigger_next), ("batches", run_one_batch_and_trigger_next)):
        with app.connection_or_acquire() as connection:
            waiting = app.amqp.queues[queue](connection.default_channel).queue_declare().message_count
        if not waiting:
            task.apply_async(retry=False, ignore_result=True)
