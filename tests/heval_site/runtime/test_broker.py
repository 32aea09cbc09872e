"""The broker only wakes; it may be down or silent, and no request notices."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest
from django.core.cache import cache
from django.dispatch import Signal

from heval_site.runtime import broker
from studies import signals

pytestmark = pytest.mark.postgres


@contextmanager
def silent_port():
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def celery_app(settings):
    from heval_site import celery

    before = celery.app.conf.broker_url

    def use(url):
        settings.CELERY_BROKER_URL = url
        celery.app.conf.broker_url = celery.app.conf.broker_write_url = celery.app.conf.broker_read_url = url
        celery.app.amqp._producer_pool = None
        celery.app._pool = None
        return celery

    yield use
    use(before)


def test_waking_returns_at_once_while_the_broker_is_silent(celery_app):
    with silent_port() as port:
        celery_app(f"redis://127.0.0.1:{port}/0")
        began = time.monotonic()
        for _ in range(100):
            broker.wake_workers()
        assert time.monotonic() - began < 0.5


class OfOneThread(threading.Event):
    """The thread that an earlier test left behind would take what is meant for this one's."""

    def wait(self, timeout=None):
        if threading.current_thread() is not broker._thread:
            threading.Event().wait()
        return super().wait(timeout)


def test_a_broker_that_is_down_is_logged_once_and_the_thread_lives_on(monkeypatch, caplog):
    sent = threading.Semaphore(0)

    def refuse():
        sent.release()
        raise ConnectionRefusedError

    monkeypatch.setattr(broker, "send_wakeup", refuse)
    monkeypatch.setattr(broker, "_thread", None)
    monkeypatch.setattr(broker, "_wakeup_requested", OfOneThread())
    monkeypatch.setattr(broker.time, "sleep", lambda seconds: None)
    for _ in range(3):
        broker.wake_workers()
        assert sent.acquire(timeout=5)
    told = [one for one in caplog.records if one.thread == broker._thread.ident]
    assert len(told) == 1 and "cannot be reached" in told[0].getMessage()


def test_without_a_broker_nobody_is_woken(settings, monkeypatch):
    woken = []
    monkeypatch.setattr(signals, "jobs_waiting", Signal())
    monkeypatch.setattr(broker, "wake_workers", lambda **kwargs: woken.append(1))
    settings.CELERY_BROKER_URL = ""
    broker.connect_worker_wakeup()
    signals.jobs_waiting.send(None)
    assert woken == []
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    broker.connect_worker_wakeup()
    broker.connect_worker_wakeup()
    signals.jobs_waiting.send(None)
    assert woken == [1], "a second connection is the first one"


def test_short_jobs_and_batches_have_queues_of_their_own():
    from heval_site import celery

    app = celery.app
    tasks = (
        celery.run_one_job_and_trigger_next,
        celery.run_short_job_and_trigger_next,
        celery.run_one_batch_and_trigger_next,
        celery.run_periodic_work,
    )
    routed = {task.name: app.amqp.router.route({}, task.name)["queue"].name for task in tasks}
    assert routed == {
        "heval.run_job": "jobs",
        "heval.run_batch": "batches",
        "heval.run_short_job": "short",
        "heval.run_periodic": "periodic",
    }


def test_only_json_is_taken_from_the_broker():
    from heval_site.celery import app

    assert app.conf.accept_content == ["json"] and app.conf.task_serializer == "json"
    assert app.conf.task_acks_late and app.conf.task_reject_on_worker_lost


@pytest.mark.django_db(transaction=True)
def test_a_celery_worker_runs_what_waits(redis_url, celery_app, monkeypatch):
    from celery.contrib.testing.worker import start_worker

    from studies.models import Job
    from studies.services import jobs

    jobs.autodiscover_tasks()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))
    monkeypatch.setattr(signals, "jobs_waiting", Signal())
    signals.jobs_waiting.connect(lambda **kwargs: broker.send_wakeup(), weak=False)
    jobs.register("count")(lambda job, progress: {"n": 1})
    celery = celery_app(redis_url)
    assert broker.is_broker_reachable()
    with start_worker(
        celery.app, perform_ping_check=False, pool="solo", queues=["jobs", "periodic"], shutdown_timeout=30
    ):
        submitted = [jobs.submit("count", by=None).pk for _ in range(3)]
        celery.run_periodic_work.apply_async()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and Job.objects.filter(pk__in=submitted, state="done").count() < 3:
            time.sleep(0.1)
        assert Job.objects.filter(pk__in=submitted, state="done").count() == 3
        while time.monotonic() < deadline and not jobs.is_runner_alive():
            time.sleep(0.1)
        assert jobs.is_runner_alive()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("workers", [1, 2])
def test_celery_workers_share_the_parts_of_a_job_and_one_alone_ends_it(redis_url, celery_app, monkeypatch, workers):
    from celery.contrib.testing.worker import start_worker

    from studies.models import Job
    from studies.services import jobs

    jobs.autodiscover_tasks()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))
    monkeypatch.setattr(jobs, "WAIT_SECONDS", 0.02)
    monkeypatch.setattr(signals, "jobs_waiting", Signal())
    signals.jobs_waiting.connect(lambda **kwargs: broker.send_wakeup(), weak=False)

    def compute_part(arguments):
        time.sleep(0.1)
        return [arguments["n"], threading.get_ident()]

    def compute_all(job, progress):
        return jobs.compute_parts(job, progress, [{"n": n} for n in range(12)])

    jobs.register("shared", part=compute_part)(compute_all)
    celery = celery_app(redis_url)
    with start_worker(
        celery.app,
        perform_ping_check=False,
        pool="threads",
        concurrency=workers,
        queues=["jobs"],
        shutdown_timeout=30,
    ):
        job = jobs.submit("shared", by=None)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not Job.objects.filter(pk=job.pk, state="done").exists():
            time.sleep(0.05)
    job.refresh_from_db()
    numbers, threads = zip(*job.result, strict=True)
    assert numbers == tuple(range(12)) and len(set(threads)) == workers


@pytest.fixture
def two_classes(monkeypatch):
    """Kinds of both classes, which record in which thread they ran, and wake workers."""
    from studies.services import jobs

    jobs.autodiscover_tasks()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))
    monkeypatch.setattr(signals, "jobs_waiting", Signal())
    signals.jobs_waiting.connect(lambda **kwargs: broker.send_wakeup(), weak=False)
    keys = [jobs.heartbeat_key(work) for work in (jobs.JOBS, jobs.BATCHES)]
    cache.delete_many(keys)

    def work(job, progress):
        return threading.current_thread().name

    jobs.register("short")(work)
    jobs.register("urgent", is_short=True)(work)
    jobs.register("long", is_batch=True)(work)
    yield jobs
    cache.delete_many(keys)  # a heartbeat would keep batches from later tests


def run_with_worker(celery, wanted: list[str], queues: list[str], expected: dict[str, str]) -> dict[str, str]:
    """The states of jobs of these kinds after a worker of the queues had time for what is expected."""
    from celery.contrib.testing.worker import start_worker

    from studies.models import Job
    from studies.services import jobs

    celery.app.control.purge()
    submitted = [jobs.submit(kind, by=None).pk for kind in wanted]
    with start_worker(celery.app, perform_ping_check=False, pool="solo", queues=queues, shutdown_timeout=30):
        celery.run_periodic_work.apply_async()
        deadline = time.monotonic() + 20
        done = [kind for kind in expected if expected[kind] == "done"]
        while time.monotonic() < deadline and Job.objects.filter(kind__in=done, state="waiting").exists():
            time.sleep(0.1)
        time.sleep(1)  # for what is not expected
    return dict(Job.objects.filter(pk__in=submitted).values_list("kind", "state").distinct())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        (["jobs", "periodic"], {"long": "done", "short": "done"}),
        (["batches", "periodic"], {"long": "done", "short": "waiting"}),
        (["jobs", "batches", "periodic"], {"long": "done", "short": "done"}),
    ],
)
def test_workers_of_batches_take_only_batches_and_others_take_them_without_one(
    redis_url, celery_app, two_classes, queues, expected
):
    found = run_with_worker(celery_app(redis_url), ["long", "short", "long", "short"], queues, expected)
    assert found == expected
    assert two_classes.is_recorded(two_classes.BATCHES) is ("batches" in queues)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        (["short", "periodic"], {"long": "waiting", "short": "waiting", "urgent": "done"}),
        (["jobs", "periodic"], {"long": "done", "short": "done", "urgent": "done"}),
    ],
)
def test_a_worker_of_short_jobs_takes_only_them_and_others_take_them_without_one(
    redis_url, celery_app, two_classes, queues, expected
):
    found = run_with_worker(celery_app(redis_url), ["long", "short", "urgent", "urgent"], queues, expected)
    assert found == expected


@pytest.mark.django_db(transaction=True)
def test_a_worker_leaves_batches_to_one_of_their_own(redis_url, celery_app, two_classes):
    two_classes.record_runner_heartbeat(two_classes.BATCHES)
    expected = {"long": "waiting", "short": "done"}
    assert run_with_worker(celery_app(redis_url), ["long", "short"], ["jobs", "periodic"], expected) == expected


@pytest.mark.parametrize("queue_name", ["short", "batches"])
def test_a_site_without_a_worker_of_one_class_collects_no_messages(redis_url, celery_app, queue_name):
    celery = celery_app(redis_url)
    celery.app.control.purge()
    for _ in range(5):
        celery.wake_workers_of_one_class()
    with celery.app.connection_or_acquire() as connection:
        queue = celery.app.amqp.queues[queue_name](connection.default_channel)
        assert queue.queue_declare().message_count == 1
        queue.purge()
    celery.wake_workers_of_one_class()
    with celery.app.connection_or_acquire() as connection:
        assert celery.app.amqp.queues[queue_name](connection.default_channel).queue_declare().message_count == 1
