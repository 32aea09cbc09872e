"""Parts of a running job: any process may compute them, and the result is that of one process."""

import time
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from studies.models import Job, JobPart
from studies.services import jobs

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
State = Job.State


@pytest.fixture
def shared(monkeypatch):
    """Registers a job of five parts for one test, and returns the row: shared(function of a part's number)."""
    jobs.autodiscover_tasks()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))
    monkeypatch.setattr(jobs, "WAIT_SECONDS", 0.01)

    def submit(part):
        def work(job, progress):
            return jobs.compute_parts(job, progress, [{"n": n} for n in range(5)], "Counting")

        jobs.register("shared", part=lambda arguments: part(arguments["n"]))(work)
        return jobs.submit("shared", by=None)

    return submit


def ended(job) -> Job:
    jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    return job


def take_as_other_process(number) -> None:
    """What a process leaves behind that takes a part and dies."""
    JobPart.objects.filter(number=number).update(holder="other", attempts=1, leased_until=Now() + timedelta(seconds=60))


def expire_all() -> None:
    JobPart.objects.exclude(leased_until=None).update(leased_until=Now() - timedelta(seconds=1))


def test_one_process_computes_all_parts_in_their_order(shared):
    job = ended(shared(lambda n: n**2))
    assert (job.state, job.result, job.done, job.total, job.doing) == (State.DONE, [0, 1, 4, 9, 16], 5, 5, "Counting")
    assert set(job.parts.values_list("attempts", "holder", "leased_until")) == {(1, "", None)}
    jobs.requeue_or_fail_expired_jobs()
    assert not JobPart.objects.exists(), "parts of a job that has ended are kept"


def test_other_processes_take_parts_that_nobody_has(shared):
    computed = []

    def part(n):
        computed.append(n)
        if n == 0:
            assert [jobs.compute_open_part() for _ in range(3)] == [True, True, True]
        return n

    assert ended(shared(part)).result == [0, 1, 2, 3, 4]
    assert computed == [0, 1, 2, 3, 4]
    assert not jobs.compute_open_part(), "a job that has ended has no open part"


def test_a_part_that_another_process_computes_wakes_the_next(shared, monkeypatch):
    woken = []
    monkeypatch.setattr(jobs, "wake_runners", lambda: woken.append(1))

    def part(n):
        if n == 0:
            while jobs.compute_open_part():
                pass
            assert len(woken) == 4, "one by the job, and one by each part that leaves others open"

    ended(shared(part))
    assert len(woken) == 4


def test_a_cancelled_job_gives_no_more_parts(shared):
    computed = []

    def part(n):
        computed.append(n)
        jobs.request_cancel(job, None)
        assert not jobs.compute_open_part()

    job = shared(part)
    assert (ended(job).state, computed) == (State.CANCELLED, [0])


def test_the_job_takes_a_part_whose_process_died(shared):
    computed = []

    def part(n):
        computed.append(n)
        if n == 0:
            take_as_other_process(1)
        if n == 4:
            expire_all()
        return n

    assert ended(shared(part)).result == [0, 1, 2, 3, 4]
    assert computed == [0, 2, 3, 4, 1]


def test_the_job_waits_for_a_part_that_another_process_holds(shared, monkeypatch):
    def finish_as_other_process(seconds):
        JobPart.objects.filter(number=1).update(holder="", leased_until=None, is_done=True, result="other")

    monkeypatch.setattr(jobs.stop_requested, "wait", finish_as_other_process, raising=False)
    assert ended(shared(lambda n: take_as_other_process(1) if n == 0 else n)).result == [None, "other", 2, 3, 4]


def test_who_lost_a_part_cannot_write_its_result(shared):
    def part(n):
        if n == 1 and JobPart.objects.get(number=1).attempts == 1:
            # As if the lease ran out, and another process took the part and let it go.
            JobPart.objects.filter(number=1).update(holder="", leased_until=None)
            return "late"
        return n

    assert ended(shared(part)).result == [0, 1, 2, 3, 4]


def test_an_error_in_another_process_is_shown_by_the_job(shared, caplog):
    computed = []

    def part(n):
        computed.append(n)
        if n == 0:
            assert jobs.compute_open_part() and jobs.compute_open_part()
        if n == 1:
            raise LookupError
        return n

    job = ended(shared(part))
    assert (job.state, computed) == (State.FAILED, [0, 1, 2, 1]), "another process tries it again"
    assert "LookupError" in job.error and "could not be computed here" in caplog.text


def test_a_job_that_runs_again_keeps_the_parts_that_are_done(shared):
    computed = []

    def part(n):
        computed.append(n)
        if computed == [0, 1]:
            jobs.stop_requested.set()
        return n

    try:
        job = ended(shared(part))
    finally:
        jobs.stop_requested.clear()
    assert (job.state, computed) == (State.WAITING, [0, 1])
    assert not jobs.compute_open_part(), "a job that waits gives no parts"
    assert ended(job).result == computed == [0, 1, 2, 3, 4]


def test_only_a_kind_with_a_function_for_parts_has_parts(shared):
    jobs.register("whole")(lambda job, progress: jobs.compute_parts(job, progress, [{}]))
    assert "TypeError" in ended(jobs.submit("whole", by=None)).error and not JobPart.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_lease_of_a_long_part_and_of_its_job_is_renewed(shared, monkeypatch):
    monkeypatch.setattr(jobs, "RENEW_SECONDS", 0.02)
    renewed = []

    def part(n):
        if n == 0:
            expire_all()
            Job.objects.update(leased_until=Now() - timedelta(seconds=1))
            deadline = time.monotonic() + 5
            while time.monotonic() < deadline and not renewed:
                time.sleep(0.02)
                live = {"leased_until__gt": Now() + timedelta(seconds=30)}
                if Job.objects.filter(**live).exists() and JobPart.objects.filter(number=0, **live).exists():
                    renewed.append(n)
        return n

    assert ended(shared(part)).state == State.DONE and renewed == [0]
