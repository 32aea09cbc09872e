"""Short jobs run before the others. Batches run after them, in parts, or in a process of their own."""

import time
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db.models.functions import Now

from studies.models import Job, JobPart, Study
from studies.services import jobs

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
State = Job.State
BATCHES = {
    "board_metrics",
    "calibrate",
    "check_judge",
    "compare_metrics",
    "compute_metrics",
    "demo_board",
    "plan_size",
    "plan_strategies",
    "plan_test_questions",
    "rehearsal",
    "invented_report",
    "submission_metrics",
}
SHORT = {"board_round", "launch", "panel_notifications", "panel_sync"}
WAITED_FOR = {
    "deliver_event",
    "example_study",
    "analyse",
    "board_labels",
    "board_snapshot",
    "board_submission",
    "compare_studies",
    "estimate_pilot",
    "export",
    "import",
    "report_pdf",
    "screen_annotators",
    "stopping_check",
}


@pytest.fixture(autouse=True)
def _no_heartbeats():
    """The cache keeps what tests with ``transaction=True`` write, and a heartbeat would keep batches from later tests."""
    keys = [jobs.heartbeat_key(work) for work in (jobs.JOBS, jobs.BATCHES)]
    cache.delete_many(keys)
    yield
    cache.delete_many(keys)


@pytest.fixture
def ran(monkeypatch):
    """What ran, in its order. Kinds of two classes are registered for one test, and batches whose parts are shared or its own."""
    jobs.autodiscover_tasks()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))
    found = []

    def work(job, progress):
        found.append(f"{job.kind} {job.arguments['n']}")

    def work_in_own_parts(job, progress):
        parts = jobs.StoredParts(job, progress, [{"n": n} for n in range(4)])
        for n in range(4):
            if n not in parts.results:
                parts.store(n, compute({"n": n}))
        return [parts.results[n] for n in range(4)]

    def work_in_shared_parts(job, progress):
        return jobs.compute_parts(job, progress, [{"n": n} for n in range(4)])

    def compute(arguments):
        found.append(f"part {arguments['n']}")
        if arguments["n"] == 1:
            jobs.submit("short", by=None, n=9)
        return arguments["n"] ** 2

    jobs.register("short")(work)
    jobs.register("alone", is_one_per_study=True)(work)
    jobs.register("urgent", is_short=True)(work)
    jobs.register("batch", is_batch=True)(work)
    jobs.register("own parts", is_batch=True)(work_in_own_parts)
    jobs.register("shared parts", is_batch=True, part=compute)(work_in_shared_parts)
    return found


def submit(*wanted: str) -> list[Job]:
    return [jobs.submit(name, by=None, n=n) for n, name in enumerate(wanted)]


def test_each_kind_is_short_or_waited_for_or_is_a_batch():
    assert set(jobs.short_kinds()) == SHORT
    assert set(jobs.batch_kinds()) == BATCHES
    assert set(jobs.kinds()) == BATCHES | WAITED_FOR | SHORT


def test_short_jobs_run_before_all_others_and_one_runner_takes_only_them(ran):
    submit("batch", "short", "urgent", "urgent")
    assert jobs.run_waiting_jobs(limit=1, runner=jobs.SHORT_JOBS) == 1 and jobs.has_waiting_jobs(jobs.SHORT_JOBS)
    assert jobs.run_waiting_jobs() == 3 and ran == ["urgent 2", "urgent 3", "short 1", "batch 0"]
    submit("batch", "short")
    assert jobs.run_waiting_jobs(runner=jobs.SHORT_JOBS) == 0 and not jobs.has_waiting_jobs(jobs.SHORT_JOBS)


def test_batches_run_after_all_other_jobs_and_each_class_in_its_order(ran):
    submit("batch", "short", "batch", "short")
    assert jobs.run_waiting_jobs() == 4
    assert ran == ["short 1", "short 3", "batch 0", "batch 2"]


@pytest.mark.parametrize("kind", ["own parts", "shared parts"])
def test_a_launch_waits_for_one_part_of_a_batch_and_no_part_is_computed_twice(ran, kind):
    batch, later = submit(kind, "batch")
    assert jobs.run_waiting_jobs() == 4, "the batch, the short job, the rest of the batch, the later batch"
    assert ran == ["part 0", "part 1", "short 9", "part 2", "part 3", "batch 1"]
    batch.refresh_from_db()
    assert (batch.state, batch.result, batch.attempts) == (State.DONE, [0, 1, 4, 9], 1)


@pytest.mark.parametrize("kind", ["own parts", "shared parts"])
def test_a_process_that_runs_only_batches_leaves_other_jobs_and_does_not_stop_for_them(ran, kind):
    submit("short", kind, "batch")
    assert jobs.run_waiting_jobs(runner=jobs.BATCHES) == 2
    assert ran == ["part 0", "part 1", "part 2", "part 3", "batch 2"]
    assert not jobs.has_waiting_jobs(jobs.BATCHES) and jobs.has_waiting_jobs()
    assert Job.objects.filter(state=State.WAITING, kind="short").count() == 2


def test_other_processes_leave_batches_to_one_that_runs_only_them(ran):
    submit("batch", "short")
    jobs.record_runner_heartbeat(jobs.BATCHES)
    assert jobs.run_waiting_jobs() == 1 and ran == ["short 1"]
    assert not jobs.has_waiting_jobs() and jobs.has_waiting_jobs(jobs.BATCHES)
    cache.delete(jobs.heartbeat_key(jobs.BATCHES))
    assert jobs.run_waiting_jobs() == 1 and ran == ["short 1", "batch 0"]


def test_processes_that_run_all_jobs_run_one_batch_at_a_time(ran):
    """So the others are free for jobs that people wait for, even if a batch has no parts."""
    running, waiting = submit("batch", "batch")
    Job.objects.filter(pk=running.pk).update(
        state=State.RUNNING, holder="other", leased_until=Now() + timedelta(seconds=60)
    )
    assert jobs.run_waiting_jobs() == 0
    assert jobs.run_waiting_jobs(runner=jobs.BATCHES) == 1, "a process of their own runs each"
    Job.objects.filter(pk=waiting.pk).update(state=State.WAITING, ended_at=None)
    Job.objects.filter(pk=running.pk).update(leased_until=Now() - timedelta(seconds=1))
    assert jobs.run_waiting_jobs() == 1, "a dead process runs nothing"


def test_a_job_that_cannot_start_yet_stops_no_batch(ran):
    study = Study.objects.create(title="one")
    held, _ = (jobs.submit("alone", by=None, study=study, n=n) for n in range(2))
    Job.objects.filter(pk=held.pk).update(
        state=State.RUNNING, holder="other", leased_until=Now() + timedelta(seconds=60)
    )
    (batch,) = submit("own parts")
    calls = jobs.run_waiting_jobs(limit=1)
    batch.refresh_from_db()
    assert calls == 1 and batch.state == State.WAITING and ran == ["part 0", "part 1"], "a short job can start"
    assert jobs.run_waiting_jobs() == 2
    assert ran[2:] == ["short 9", "part 2", "part 3"], "it does not stop for the one that cannot"


@pytest.mark.parametrize(
    ("runner", "has_process", "takes"),
    [(jobs.JOBS, False, True), (jobs.JOBS, True, False), (jobs.BATCHES, True, True)],
)
def test_parts_of_a_batch_are_computed_where_batches_run(ran, runner, has_process, takes):
    (batch,) = submit("shared parts")
    Job.objects.filter(pk=batch.pk).update(
        state=State.RUNNING, holder="other", leased_until=Now() + timedelta(seconds=60)
    )
    JobPart.objects.create(job=batch, number=0, arguments={"n": 0})
    if has_process:
        jobs.record_runner_heartbeat(jobs.BATCHES)
    assert jobs.compute_open_part(runner=runner) is takes
    assert JobPart.objects.get().is_done is takes


def test_parts_of_other_jobs_are_not_computed_where_only_batches_run(ran):
    jobs.register("report", part=lambda arguments: 1)(lambda job, progress: None)
    (report,) = submit("report")
    Job.objects.filter(pk=report.pk).update(
        state=State.RUNNING, holder="other", leased_until=Now() + timedelta(seconds=60)
    )
    JobPart.objects.create(job=report, number=0, arguments={})
    assert not jobs.compute_open_part(runner=jobs.BATCHES) and jobs.compute_open_part()


def test_no_other_process_takes_the_parts_that_a_job_computes_itself(ran):
    (batch,) = submit("own parts")
    Job.objects.filter(pk=batch.pk).update(
        state=State.RUNNING, holder="other", leased_until=Now() + timedelta(seconds=60)
    )
    JobPart.objects.create(job=batch, number=0, arguments={"n": 0})
    assert not jobs.compute_open_part() and not jobs.compute_open_part(runner=jobs.BATCHES)


class Killed(BaseException):
    """As a killed process leaves its job: nothing is written."""


def test_a_killed_job_loses_only_the_part_that_it_was_computing(ran):
    computed = []

    def work(job, progress):
        parts = jobs.StoredParts(job, progress, [{"n": n} for n in (5, 6, 7)])
        for position in (2, 0, 1):
            if position in parts.results:
                continue
            computed.append(position)
            if computed == [2, 0]:
                raise Killed
            parts.store(position, {"float": 0.1 + position, "large": 1e20})
        return [parts.results[position] for position in range(3)]

    jobs.register("killed", is_batch=True)(work)
    (job,) = submit("killed")
    with pytest.raises(Killed):
        jobs.run_waiting_jobs()
    Job.objects.filter(pk=job.pk).update(leased_until=Now() - timedelta(seconds=1))
    jobs.requeue_or_fail_expired_jobs()
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert computed == [2, 0, 0, 1]
    assert job.result == [{"float": 0.1 + position, "large": 1e20} for position in range(3)]
    jobs.requeue_or_fail_expired_jobs()
    assert not JobPart.objects.exists()


def test_parts_are_known_by_their_arguments(ran):
    """A job may compute parts of several things one after the other, and of what has changed since an earlier run."""
    (job,) = submit("own parts")
    silent = jobs.ProgressReporter(job.pk, "")
    first = jobs.StoredParts(job, silent, [{"n": 1e20}, {"n": [1, {"a": None}]}])
    first.store(1, "found")
    again = jobs.StoredParts(job, silent, [{"n": "new"}, {"n": [1, {"a": None}]}, {"n": 1e20}])
    assert again.results == {1: "found"}
    again.store(0, "new")
    again.store(2, "large")
    assert jobs.StoredParts(job, silent, [{"n": 1e20}, {"n": "new"}]).results == {0: "large", 1: "new"}
    assert list(job.parts.order_by("number").values_list("number", flat=True)) == [0, 1, 2]


def test_numbers_that_a_process_without_a_lease_takes_are_left_to_it(ran, monkeypatch):
    (job,) = submit("own parts")
    create = type(JobPart.objects).bulk_create

    def create_after_another(manager, parts, **options):
        monkeypatch.undo()
        JobPart.objects.create(job=job, number=0, arguments={"n": "other"}, is_done=True, result="other")
        return create(manager, parts, **options)

    monkeypatch.setattr(type(JobPart.objects), "bulk_create", create_after_another)
    parts = jobs.StoredParts(job, jobs.ProgressReporter(job.pk, ""), [{"n": 0}, {"n": 1}])
    assert parts.results == {}
    parts.store(0, "mine")
    assert dict(job.parts.values_list("arguments__n", "result")) == {"other": "other", 0: "mine", 1: None}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("runner", [jobs.JOBS, jobs.BATCHES])
def test_the_heartbeat_of_a_process_with_a_long_job_is_renewed_as_what_it_runs(ran, monkeypatch, runner):
    monkeypatch.setattr(jobs, "RENEW_SECONDS", 0.02)
    recorded = []

    def work(job, progress):
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and not jobs.is_recorded(runner):
            time.sleep(0.02)
        recorded.extend(work for work in (jobs.JOBS, jobs.BATCHES) if jobs.is_recorded(work))

    jobs.register("long", is_batch=True)(work)
    submit("long")
    assert jobs.run_waiting_jobs(runner=runner) == 1
    assert recorded == [runner]


@pytest.mark.django_db(transaction=True)
def test_a_cache_that_is_away_ends_no_lease(ran, monkeypatch, caplog):
    monkeypatch.setattr(jobs, "RENEW_SECONDS", 0.02)

    def refuse(work):
        raise ConnectionError

    monkeypatch.setattr(jobs, "record_runner_heartbeat", refuse)

    def work(job, progress):
        for _ in range(2):  # the second time shows that the first error did not end the renewal
            Job.objects.update(leased_until=Now() - timedelta(seconds=1))
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline and not Job.objects.filter(leased_until__gt=Now()).exists():
                time.sleep(0.02)
        return Job.objects.filter(leased_until__gt=Now()).exists()

    jobs.register("long")(work)
    (job,) = submit("long")
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert job.result is True and "heartbeat could not be recorded (ConnectionError)" in caplog.text
