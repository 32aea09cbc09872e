"""Jobs: rows with a lease. What must hold if a process dies, asks twice or cancels."""

import threading
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models.functions import Now
from django.dispatch import Signal

from studies import signals
from studies.models import Job, Study
from studies.services import jobs

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
State = Job.State


@pytest.fixture
def kind(monkeypatch):
    """Registers work for one test alone: kind("name", work, ...)."""
    jobs.autodiscover_tasks()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))

    def register(name, work, **options):
        jobs.register(name, **options)(work)
        return name

    return register


@pytest.fixture(autouse=True)
def _nobody_stops():
    yield
    jobs.stop_requested.clear()


def expire(job):
    Job.objects.filter(pk=job.pk).update(leased_until=Now() - timedelta(seconds=1))


def standing(job) -> Job:
    job.refresh_from_db()
    return job


def test_a_job_runs_once_and_keeps_its_result(kind):
    calls = []

    def work(job, progress):
        calls.append(job.arguments)
        progress(3, 7, "Counting")
        return {"n": 7}

    job = jobs.submit(kind("count", work), by=None, colour="red")
    assert jobs.claim_and_run_job(job.pk)
    assert not jobs.claim_and_run_job(job.pk), "a job that is done is not run again"
    standing(job)
    assert calls == [{"colour": "red"}]
    assert (job.state, job.result, job.done, job.total, job.doing) == (State.DONE, {"n": 7}, 3, 7, "Counting")
    assert job.ended_at and job.started_at and job.leased_until is None and job.attempts == 1


def test_an_unknown_kind_is_refused_when_asked_for():
    with pytest.raises(jobs.UnknownKind, match="no job 'nonsense'"):
        jobs.submit("nonsense", by=None)


@pytest.mark.parametrize("value", [float("nan"), object(), "a\0b"])
def test_arguments_that_json_cannot_hold_are_refused_when_asked_for(kind, value):
    with pytest.raises((TypeError, ValueError)):
        jobs.submit(kind("any", lambda job, progress: None), by=None, value=value)


def test_a_result_that_json_cannot_hold_is_a_failure_and_no_crash(kind):
    job = jobs.submit(kind("any", lambda job, progress: {"n": float("nan")}), by=None)
    jobs.claim_and_run_job(job.pk)
    assert standing(job).state == State.FAILED


def test_the_same_request_token_gives_the_same_row(kind):
    kind("any", lambda job, progress: None)
    first = jobs.submit("any", by=None, request_token="token", n=1)
    assert jobs.submit("any", by=None, request_token="token", n=2) == first
    assert first.arguments == {"n": 1}
    kind("other", lambda job, progress: None)
    with pytest.raises(ValueError, match="another job"):
        jobs.submit("other", by=None, request_token="token")


def test_a_job_exists_only_if_the_transaction_that_asked_commits(kind, monkeypatch, django_capture_on_commit_callbacks):
    woken = []
    monkeypatch.setattr(signals, "jobs_waiting", Signal())
    signals.jobs_waiting.connect(lambda **kwargs: woken.append(1), weak=False)
    kind("any", lambda job, progress: None)
    with pytest.raises(IntegrityError), transaction.atomic():
        jobs.submit("any", by=None)
        raise IntegrityError
    assert not Job.objects.exists()
    with django_capture_on_commit_callbacks(execute=True):
        jobs.submit("any", by=None, request_token="t")
        assert not woken, "nobody is woken before the commit"
        jobs.submit("any", by=None, request_token="t")
    assert woken == [1]


def test_a_waker_that_fails_does_not_fail_the_request(kind, monkeypatch, django_capture_on_commit_callbacks):
    def broken(**kwargs):
        raise ConnectionError("the broker is down")

    monkeypatch.setattr(signals, "jobs_waiting", Signal())
    signals.jobs_waiting.connect(broken)
    with django_capture_on_commit_callbacks(execute=True):
        job = jobs.submit(kind("any", lambda job, progress: None), by=None)
    assert standing(job).state == State.WAITING


def test_progress_renews_the_lease(kind):
    def work(job, progress):
        expire(job)
        progress(1, 2)
        assert Job.objects.get(pk=job.pk, leased_until__gt=Now() + timedelta(seconds=jobs.LEASE_SECONDS - 10)).done == 1

    job = jobs.submit(kind("any", work), by=None)
    jobs.claim_and_run_job(job.pk)
    assert standing(job).state == State.DONE


def test_a_job_whose_holder_died_runs_again_and_fails_after_three_attempts(kind):
    def dies(job, progress):
        raise SystemExit  # as a killed process leaves it: nothing is written

    job = jobs.submit(kind("fatal", dies), by=None)
    for attempt in (1, 2, 3):
        with pytest.raises(SystemExit):
            jobs.claim_and_run_job(job.pk)
        assert (standing(job).state, job.attempts) == (State.RUNNING, attempt)
        assert jobs.requeue_or_fail_expired_jobs() == 0, "a lease that lives is left alone"
        expire(job)
        assert jobs.requeue_or_fail_expired_jobs() == 1
    assert standing(job).state == State.FAILED
    assert "Tried 3 times" in job.error


def test_who_lost_the_lease_cannot_write_a_result(kind):
    def work(job, progress):
        Job.objects.filter(pk=job.pk).update(holder="somebody else")
        return "stale"

    job = jobs.submit(kind("any", work), by=None)
    jobs.claim_and_run_job(job.pk)
    assert (standing(job).state, job.result, job.holder) == (State.RUNNING, None, "somebody else")


def test_progress_tells_who_lost_the_lease(kind):
    reached = []

    def work(job, progress):
        Job.objects.filter(pk=job.pk).update(holder="somebody else")
        progress(1, 2)
        reached.append("the end")

    job = jobs.submit(kind("any", work), by=None)
    jobs.claim_and_run_job(job.pk)
    assert not reached and standing(job).done == 0


def test_a_waiting_job_is_cancelled_at_once_and_a_running_one_at_its_next_progress(kind):
    reached = []

    def work(job, progress):
        assert jobs.request_cancel(job, None)
        progress(1, 2)
        reached.append("the end")

    kind("any", work)
    waiting, running = jobs.submit("any", by=None), jobs.submit("any", by=None)
    assert jobs.request_cancel(waiting, None)
    assert not jobs.claim_and_run_job(waiting.pk)
    jobs.claim_and_run_job(running.pk)
    assert standing(waiting).state == standing(running).state == State.CANCELLED
    assert not reached
    assert not jobs.request_cancel(running, None), "what has ended cannot be cancelled"


def test_a_cancelled_job_whose_holder_died_is_not_run_again(kind):
    def dies(job, progress):
        jobs.request_cancel(job, None)
        raise SystemExit

    job = jobs.submit(kind("fatal", dies), by=None)
    with pytest.raises(SystemExit):
        jobs.claim_and_run_job(job.pk)
    expire(job)
    jobs.requeue_or_fail_expired_jobs()
    assert standing(job).state == State.CANCELLED


def test_a_process_that_is_asked_to_stop_puts_its_job_back(kind):
    def work(job, progress):
        jobs.stop_requested.set()
        progress(1, 2)

    job = jobs.submit(kind("any", work), by=None)
    jobs.claim_and_run_job(job.pk)
    assert (standing(job).state, job.attempts, job.holder) == (State.WAITING, 0, "")


class Told(Exception):
    pass


def test_an_error_is_a_sentence_in_the_row_and_a_traceback_in_the_log(kind, caplog):
    def told(job, progress):
        raise Told("The study has\nno prompts.")

    def secret(job, progress):
        raise KeyError("password=hunter2")

    meant = jobs.submit(kind("told", told, user_facing_errors=(Told,)), by=None)
    unmeant = jobs.submit(kind("secret", secret), by=None)
    jobs.run_waiting_jobs()
    assert standing(meant).error == "The study has no prompts."
    assert standing(unmeant).error.startswith("This did not work (KeyError).") and "hunter2" not in unmeant.error
    assert "hunter2" in caplog.text and str(unmeant.code) in caplog.text
    assert meant.state == unmeant.state == State.FAILED


@pytest.mark.django_db(transaction=True)
def test_a_database_that_went_away_is_no_failure_of_the_job(kind):
    def work(job, progress):
        raise OperationalError("server closed the connection unexpectedly")

    job = jobs.submit(kind("any", work), by=None)
    jobs.claim_and_run_job(job.pk)
    Job.objects.filter(pk=job.pk).update(leased_until=Now() - timedelta(milliseconds=5))
    jobs.requeue_or_fail_expired_jobs()
    assert standing(job).state == State.WAITING


def test_of_one_study_one_exclusive_job_runs_at_a_time(kind):
    one, other = Study.objects.create(title="one"), Study.objects.create(title="other")
    started = []

    def work(job, progress):
        started.append(job.study.title)
        if len(started) == 1:
            assert not jobs.claim_and_run_job(second.pk), "its like is running"
            assert jobs.claim_and_run_job(elsewhere.pk), "another study's runs"

    kind("settle", work, is_one_per_study=True)
    first, second, elsewhere = (jobs.submit("settle", study=study, by=None) for study in (one, one, other))
    jobs.claim_and_run_job(first.pk)
    assert started == ["one", "other"]
    assert jobs.run_waiting_jobs() == 1
    assert standing(second).state == State.DONE


def test_waiting_jobs_run_in_order_and_a_blocked_one_blocks_no_other(kind):
    study, ran = Study.objects.create(title="one"), []
    kind("settle", lambda job, progress: ran.append("settle"), is_one_per_study=True)
    kind("any", lambda job, progress: ran.append("any"))
    held, blocked, free = (
        jobs.submit("settle", study=study, by=None),
        jobs.submit("settle", study=study, by=None),
        jobs.submit("any", by=None),
    )
    Job.objects.filter(pk=held.pk).update(state=State.RUNNING, holder="x", leased_until=Now() + timedelta(seconds=60))
    assert jobs.run_waiting_jobs() == 1
    assert (standing(free).state, standing(blocked).state, ran) == (State.DONE, State.WAITING, ["any"])


def test_periodic_work_runs_once_in_its_time_and_a_failure_stops_no_other(monkeypatch):
    ran = []
    monkeypatch.setattr(jobs, "_periodic", {})
    jobs.autodiscover_tasks()

    @jobs.register_periodic(60)
    def broken():
        ran.append("broken")
        raise ValueError

    @jobs.register_periodic(60)
    def sound():
        ran.append("sound")

    assert not jobs.is_runner_alive()
    jobs.run_due_functions_and_record_heartbeat()
    jobs.run_due_functions_and_record_heartbeat()
    assert ran == ["broken", "sound"]
    assert jobs.work_without_runner() == [jobs.JOBS]


def test_two_modules_cannot_want_the_same_kind(kind):
    def elsewhere(job, progress):
        pass

    elsewhere.__module__ = "another.tasks"
    kind("any", lambda job, progress: None)
    with pytest.raises(ValueError, match="Two functions"):
        kind("any", elsewhere)


@pytest.mark.django_db(transaction=True)
def test_many_runners_at_once_run_each_job_once(kind):
    ran, lock, n = [], threading.Lock(), 12
    study = Study.objects.create(title="one")
    inside = []

    def work(job, progress):
        with lock:
            ran.append(job.pk)

    def alone(job, progress):
        inside.append(1)
        assert len(inside) == 1, "two exclusive jobs of a study at once"
        inside.pop()

    kind("any", work)
    kind("alone", alone, is_one_per_study=True)
    wanted = [jobs.submit("any", by=None).pk for _ in range(n)]
    exclusive = [jobs.submit("alone", study=study, by=None).pk for _ in range(4)]
    gate = threading.Barrier(4)

    def runner():
        try:
            gate.wait()
            for _ in range(8):
                jobs.run_waiting_jobs()
        finally:
            connection.close()

    threads = [threading.Thread(target=runner) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    jobs.run_waiting_jobs()
    assert sorted(ran) == wanted
    assert set(Job.objects.filter(pk__in=exclusive).values_list("state", flat=True)) == {State.DONE}


def test_work_that_is_not_due_costs_one_look_at_the_cache(monkeypatch):
    ran, names = [], [f"work-{n}" for n in range(9)]
    functions = {name: jobs.PeriodicFunction(name, 60, lambda name=name: ran.append(name)) for name in names}
    monkeypatch.setattr(jobs, "_periodic", functions)
    cache.delete_many([f"heval:every:{name}" for name in names])
    assert jobs.run_due_functions_and_record_heartbeat() == 9
    cache.delete("heval:every:work-4")
    asked = []
    monkeypatch.setattr(cache, "add", lambda key, *value: asked.append(key))
    assert jobs.run_due_functions_and_record_heartbeat() == 0
    assert ran == names and asked == ["heval:every:work-4"]
