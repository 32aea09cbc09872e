"""Long polling: who may wait, for how long, and what ends it."""

import json
import time
from threading import Thread
from uuid import uuid4

import pytest
from django.utils import timezone

from analysis.api import waiting
from heval_site.management.client import operations
from studies.models import Job, Study
from studies.services import lifecycle
from tests.builders import spa_study, user
from tests.in_process import site_of, through_django
from tests.players import submitted

from .rest import api_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return spa_study(user("olga"))


@pytest.fixture
def api(study):
    return api_of(study.owner)


@pytest.fixture
def looks(monkeypatch):
    """Called instead of a sleep between two looks: what happens meanwhile."""
    happens = []
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: happens.pop(0)() if happens else None)
    return happens


def progress(api, study, known="", wait="?wait=30"):
    headers = {"If-None-Match": known} if known else {}
    return api.get(f"studies/{study.code}/progress/{wait}", **headers)


def test_an_answer_waits_until_a_count_or_the_state_changes(api, study, looks):
    first = progress(api, study)
    assert first.status_code == 200, "nothing is known yet, so there is nothing to wait for"
    looks += [lambda: None, lambda: submitted(study, "somebody"), lambda: pytest.fail("it has changed")]
    second = progress(api, study, first["ETag"])
    assert (second.status_code, json.loads(second.content)["counted"]) == (200, 1)
    looks[:] = [lambda: lifecycle.pause(Study.objects.get(pk=study.pk), None)]
    third = progress(api, study, second["ETag"])
    assert (third.status_code, json.loads(third.content)["state"]) == (200, "paused")
    assert third["ETag"] != second["ETag"] != first["ETag"]


def test_without_a_change_it_answers_304_after_the_time(api, study):
    tag = progress(api, study)["ETag"]
    began = time.monotonic()
    answer = progress(api, study, tag, "?wait=1")
    assert (answer.status_code, answer.content, answer["ETag"]) == (304, b"", tag)
    assert 1 <= time.monotonic() - began < 10
    assert progress(api, study, tag, "").status_code == 304
    assert progress(api, study, f'"other", {tag}', "").status_code == 304
    assert api.get(f"studies/{study.code}/progress/?wait=31").status_code == 400


def test_one_request_waits_for_each_token_and_two_in_each_process(api, study, looks):
    tag = progress(api, study)["ETag"]
    seen = []

    def others():
        seen.append(progress(api, study, tag))  # of the same token
        with waiting._place(type("Request", (), {"META": {}, "auth": None, "user": user("other")})()) as has_place:
            assert has_place
            seen.append(progress(api_of(study.owner), study, tag))  # of another one
        submitted(study, "somebody")

    looks.append(others)
    assert progress(api, study, tag).status_code == 200
    assert [(one.status_code, one["Retry-After"]) for one in seen] == [(304, "15")] * 2
    # Both places are free again.
    assert waiting._places._value == 2
    assert progress(api, study, tag).status_code == 200


def test_a_server_that_stops_lets_waiting_requests_go(api, study, looks, monkeypatch):
    tag = progress(api, study)["ETag"]
    monkeypatch.setattr(waiting, "is_stopping", lambda: True)
    looks.append(lambda: pytest.fail("it waits"))
    assert progress(api, study, tag).status_code == 304


@pytest.mark.django_db(transaction=True)
def test_a_waiting_request_holds_no_connection(study, monkeypatch):
    api, held = api_of(study.owner), []
    tag = progress(api, study)["ETag"]
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: held.append(waiting.connection.connection))

    def ask():
        progress(api, study, tag, "?wait=1")
        waiting.connection.close()

    request = Thread(target=ask)
    request.start()
    request.join(20)
    assert held and set(held) == {None}


def test_an_answer_waits_until_a_job_does_something_else_or_ends(api, study, looks):
    job = Job.objects.create(kind="analyse", study=study)
    at = f"studies/{study.code}/jobs/{job.code}/"

    def changed(**values):
        looks[:] = [lambda: None, lambda: Job.objects.update(**values), lambda: pytest.fail("it has changed")]
        return api.get(f"{at}?wait=30", **{"If-None-Match": tag})

    tag = api.get(f"{at}?wait=30")["ETag"]
    assert api.get(at, **{"If-None-Match": tag}).status_code == 304
    answer = changed(doing="Read answers")
    assert (answer.status_code, answer.json()["doing"]) == (200, "Read answers")
    tag = answer["ETag"]
    answer = changed(state="cancelled", ended_at=timezone.now())
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    looks.clear()
    assert api.get(f"studies/{study.code}/jobs/{uuid4()}/?wait=1", **{"If-None-Match": tag}).status_code == 404


@pytest.mark.parametrize("short", [0, 60])
def test_the_client_lets_the_site_hold_its_requests_for_a_job(study, monkeypatch, short):
    """``short``: how fast an answer must be to come from a site that did not hold the request."""
    monkeypatch.setattr(operations, "SHORT_SECONDS", short)
    monkeypatch.setattr(waiting.time, "sleep", lambda seconds: None)
    job, pauses, queries = Job.objects.create(kind="analyse", study=study), [], []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 4:
            Job.objects.update(state="done", ended_at=timezone.now())

    def send(request):
        queries.append(request.url.params["wait"])
        return through_django(request)

    monkeypatch.setattr(operations, "HOLD_SECONDS", 1)
    site = site_of(study.owner, sleep=sleep, send=send)
    asked = {"code": str(job.code), "kind": job.kind, "state": "waiting", "doing": ""}
    assert site.run(operations.finish_job(str(study.code), asked))["state"] == "done"
    assert pauses == ([0, 0, 0.5, 1] if short else [0, 0, 0, 0]) and queries == ["1"] * 4


@pytest.mark.parametrize(("short", "pause"), [(0, 0), (60, 7)])
def test_the_client_pauses_only_after_requests_that_the_site_did_not_hold(study, looks, monkeypatch, short, pause):
    monkeypatch.setattr(operations, "SHORT_SECONDS", short)
    people, pauses = iter(range(9)), []
    looks += [lambda: submitted(study, f"person {next(people)}")] * study.target_n
    site = site_of(study.owner, sleep=pauses.append)
    assert site.study(str(study.code)).wait("target", timeout=600, poll=7)["counted"] == study.target_n
    assert pauses == [0] + [pause] * (study.target_n - 1)
