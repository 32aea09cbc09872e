"""Faults of the study, the clock, the disk and the broker cost nobody an answer or a place."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.db.models import F, QuerySet
from django.dispatch import Signal

from annotators import tasks
from annotators.models import Assignment, PageVisit, Response
from annotators.places import assign
from studies import signals
from studies.models import Batch, Job, Study
from studies.services import lifecycle
from tests.bad_input.annotators.assignments import at_questions, finished, fresh, words_of
from tests.builders import panel, spa_study
from tests.players import claimed, open_page, submitted

pytestmark = pytest.mark.postgres


def test_a_pause_lets_those_inside_finish_and_turns_others_away_in_words(study, client):
    door, (inside, _, _) = panel(study), at_questions(study)
    lifecycle.pause(study, by=None)
    for response in (client.get(f"/e/{door.key}/?who=new"), client.post(f"/e/{door.key}/?who=new", {"agree": "1"})):
        assert "paused" in words_of(response)
    assert finished(inside).submitted_at and not fresh(inside).is_late
    assert Assignment.objects.count() == 1


def test_after_the_grace_period_work_is_kept_as_late_and_the_code_is_given(study, client):
    in_time, late = (at_questions(study, person)[0] for person in ("in time", "late"))
    lifecycle.start_closing(study, by=None)
    assert tasks.end_due_grace_periods_and_release_places() == 0
    assert not finished(in_time).is_late
    hours = timedelta(hours=3)
    QuerySet(Study).filter(pk=study.pk).update(launched_at=F("launched_at") - hours, closing_at=F("closing_at") - hours)
    assert tasks.end_due_grace_periods_and_release_places() == 1
    late = finished(late)
    assert late.submitted_at and late.is_late and late.released_reason == "expired"
    assert Response.objects.filter(assignment=late).count() == 8
    assert "marked as late" in words_of(client.get(f"/p/{late.code}/done/"))
    assert assign.find_miscounted_batches() == [] and Batch.objects.filter(study=study, claimed=1).count() == 1


JUMPS = [timedelta(hours=1), timedelta(hours=-1), timedelta(days=3), timedelta(days=-3)]


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_a_clock_that_jumps_loses_no_answer_and_makes_no_negative_time(study, client, jump):
    """Every time that is stored lies where it would lie had the clock jumped since."""
    assignment, address, good = at_questions(study)
    for model, columns in (
        (PageVisit, ["shown_at", "recorded_at"]),
        (Assignment, ["claimed_at", "started_at", "reserved_until"]),
        (Study, ["launched_at"]),
    ):
        QuerySet(model).update(**{column: F(column) - jump for column in columns})
    assert client.post(address, good).status_code == 302
    assignment = finished(assignment)
    assert assignment.submitted_at >= assignment.started_at and not assignment.is_late
    assert all(visit.recorded_at >= visit.shown_at for visit in PageVisit.objects.filter(assignment=assignment))
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    study.refresh_from_db()
    assert study.launched_at <= study.closing_at <= study.closed_at


def test_a_clock_that_ran_ahead_while_places_were_swept_costs_nobody_the_place(study):
    people = [at_questions(study, person)[0] for person in "abc"]
    Assignment.objects.update(reserved_until=F("reserved_until") - timedelta(days=3))
    assert assign.release_expired_places() == 3
    assert not any(finished(assignment).is_late for assignment in people)
    assert assign.find_miscounted_batches() == [] and Batch.objects.filter(study=study, claimed=1).count() == 3


@pytest.fixture
def crowd(db):
    """Twelve people inside, all of whose places have run out."""
    study = spa_study(target_n=60, prompts=8)
    for number in range(12):
        claimed(study, f"w{number}")
    run_out(Assignment.objects.all())
    yield study
    cache.delete(assign.CLOCK_DOUBT_CACHE_KEY)


def run_out(assignments):
    assignments.update(reserved_until=F("reserved_until") - timedelta(days=3))


def first_look_was_before(seconds):
    cache.set(assign.CLOCK_DOUBT_CACHE_KEY, cache.get(assign.CLOCK_DOUBT_CACHE_KEY) - seconds)


def test_places_that_run_out_all_together_wait_for_a_second_look(crowd, caplog):
    assert assign.release_expired_places() == 0 and "12 of 12 places expired together" in caplog.text
    first_look_was_before(assign.CLOCK_RECHECK_SECONDS - 60)
    assert assign.release_expired_places() == 0
    first_look_was_before(61)
    assert assign.release_expired_places() == 12 and assign.find_miscounted_batches() == []


def test_a_clock_that_is_set_back_before_the_second_look_costs_nobody_a_place(crowd):
    assert assign.release_expired_places() == 0
    Assignment.objects.update(reserved_until=F("reserved_until") + timedelta(days=3))
    assert assign.release_expired_places() == 0 and cache.get(assign.CLOCK_DOUBT_CACHE_KEY) is None
    run_out(Assignment.objects.all())
    assert assign.release_expired_places() == 0


@pytest.mark.parametrize("seconds", [-7 * 24 * 3600, assign.CLOCK_DOUBT_SECONDS + 1])
def test_a_first_look_of_another_time_is_none(crowd, seconds):
    assert assign.release_expired_places() == 0
    first_look_was_before(seconds)
    assert assign.release_expired_places() == 0 and assign.release_expired_places() == 0


@pytest.mark.slow
def test_a_small_share_of_many_and_places_of_a_closed_study_go_at_once(crowd):
    Assignment.objects.update(reserved_until=F("reserved_until") + timedelta(days=3))
    for number in range(12, 60):
        claimed(crowd, f"w{number}")
    run_out(Assignment.objects.filter(pk__in=list(Assignment.objects.values_list("pk", flat=True)[:11])))
    assert assign.release_expired_places() == 11
    run_out(Assignment.objects.all())
    assert assign.release_expired_places() == 0
    lifecycle.start_closing(crowd, by=None)
    lifecycle.end_grace_period(crowd, by=None)
    assert assign.release_expired_places() == 49


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_on("sqlite")  # the size of its file can be limited
def test_a_full_disk_is_reported_and_leaves_nothing_half_written(client):
    assignment = submitted(spa_study(target_n=1), "w", until="s4")
    open_page(assignment)
    address, words = f"/p/{assignment.code}/s4/", {"s4.q1": "😀" * 2000}
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA max_page_count")
        (allowed,) = cursor.fetchone()
        # What is free within the file would still take the answer.
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA max_page_count = 1")  # SQLite makes of it the size that the file has
        try:
            response = client.post(address, words)
        finally:
            cursor.execute(f"PRAGMA max_page_count = {allowed}")
    assert response.status_code == 503 and "not saved yet" in words_of(response) and response["Retry-After"]
    assert fresh(assignment).submitted_at is None
    assert PageVisit.objects.get(assignment=assignment, key="s4").recorded_at is None
    assert not Response.objects.filter(assignment=assignment, slot="s4.q1").exists()
    assert client.post(address, words).status_code == 302
    assert fresh(assignment).submitted_at and Response.objects.get(slot="s4.q1").text == words["s4.q1"]


def test_no_annotator_ever_waits_for_a_broker(study, client, monkeypatch, django_capture_on_commit_callbacks):
    def broken(**kwargs):
        raise AssertionError("the broker was asked")

    monkeypatch.setattr(signals, "jobs_waiting", Signal())
    signals.jobs_waiting.connect(broken)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(f"/e/{panel(study).key}/?who=a", {"agree": "1"})
        assignment = finished(Assignment.objects.get())
        client.get(f"/p/{assignment.code}/done/")
        client.post(f"/p/{assignment.code}/withdraw/", {"leave": "1"})
    assert fresh(assignment).withdrawn_at and not Job.objects.exists()
