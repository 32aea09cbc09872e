"""What happens to a request that is sent again: with an Idempotency-Key, after a change of somebody else, or with words nobody knows."""

from datetime import timedelta

import pytest
from django.utils import timezone

from analysis.api import repeats
from analysis.models import IdempotentRequest, ReportLink
from analysis.report.runs import run_analysis
from studies.models import Job, Study
from studies.services import jobs
from tests.builders import draft_study, user

from .rest import api_of, closed_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga():
    return user("olga")


@pytest.fixture
def api(olga):
    return api_of(olga)


def sent(api, path, body, key="monday"):
    return api.send("POST", path, body, **{"Idempotency-Key": key})


def test_the_same_request_is_done_once_and_gets_the_first_answer(api, olga):
    first, again = (sent(api, "studies/", {"title": "A", "minutes": 5}) for _ in range(2))
    assert first.status_code == again.status_code == 201 and first.json() == again.json()
    assert again["Idempotency-Replayed"] == "true" and "Idempotency-Replayed" not in first
    # The order of names says nothing.
    assert sent(api, "studies/", {"minutes": 5, "title": "A"}).json() == first.json()
    assert Study.objects.count() == 1
    other = sent(api, "studies/", {"title": "B"})
    assert other.status_code == 422 and "another body" in other.json()["detail"] and Study.objects.count() == 1
    # Another key, another token and another address are other requests.
    assert sent(api, "studies/", {"title": "B"}, "tuesday").json()["title"] == "B"
    assert sent(api_of(olga), "studies/", {"title": "C"}).json()["title"] == "C"
    assert sent(api, f"studies/{first.json()['code']}/systems/", {"name": "new"}).status_code == 201


def test_a_refused_request_leaves_its_key_free(api):
    assert sent(api, "studies/", {"title": ""}).status_code == 400
    assert sent(api, "studies/", {"title": "A"}).status_code == 201


def test_a_repeated_job_is_the_job_as_it_is_now(api, olga):
    at = f"studies/{closed_study(olga, 1).code}/analyses/"
    first, again = (sent(api, at, {"resamples": 99}) for _ in range(2))
    assert first.status_code == again.status_code == 202 and first.json()["code"] == again.json()["code"]
    assert sent(api, at, {"resamples": 199}).status_code == 422 and Job.objects.filter(kind="analyse").count() == 1
    jobs.run_waiting_jobs()
    assert sent(api, at, {"resamples": 99}).json()["state"] == "done"


def test_a_secret_is_never_shown_twice_nor_stored(api, olga):
    study = closed_study(olga, 1)
    run_analysis(study, {"resamples": 99}, by=olga)
    at = f"studies/{study.code}/report-links/"
    first, again = (sent(api, at, {"analysis": 1}) for _ in range(2))
    link = ReportLink.objects.get()
    assert first.status_code == 201 and again.status_code == 409 and f"link {link.pk}" in again.json()["detail"]
    row = IdempotentRequest.objects.get()
    assert row.answer is None and row.made


def test_the_first_request_is_waited_for_but_not_for_ever(api, olga, monkeypatch):
    sent(api, "studies/", {"title": "A"})
    IdempotentRequest.objects.update(status=None, answer=None)
    early = sent(api, "studies/", {"title": "A"})
    assert early.status_code == 409 and early["Retry-After"] == "1" and Study.objects.count() == 1
    # The process died five minutes ago.
    IdempotentRequest.objects.update(created_at=timezone.now() - repeats.LONGEST_ANSWER - timedelta(seconds=1))
    assert sent(api, "studies/", {"title": "A"}).status_code == 201 and Study.objects.count() == 2


def test_a_key_lives_for_a_day(api):
    sent(api, "studies/", {"title": "A"})
    IdempotentRequest.objects.update(created_at=timezone.now() - timedelta(hours=23))
    assert repeats.delete_old_requests() == 0
    assert sent(api, "studies/", {"title": "B"}).status_code == 422
    IdempotentRequest.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert sent(api, "studies/", {"title": "B"}).status_code == 201
    IdempotentRequest.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert repeats.delete_old_requests() == 1


@pytest.mark.parametrize("key", ["x" * 201, "a\tb"])
def test_a_bad_key_is_named(api, key):
    refused = sent(api, "studies/", {"title": "A"}, key)
    assert refused.status_code == 400 and refused.json()["errors"][0]["field"] == "Idempotency-Key"


def test_an_answer_is_not_repeated_to_who_may_no_longer_ask(api, olga):
    study = draft_study(owner=olga)
    at = f"studies/{study.code}/systems/"
    assert sent(api, at, {"name": "new"}).status_code == 201
    study.members.all().delete()
    assert sent(api, at, {"name": "new"}).status_code == 404


def test_a_change_names_the_revision_that_it_is_about(api, olga):
    study = draft_study(owner=olga)
    at = f"studies/{study.code}/"
    read = api.get(at)
    assert read["ETag"] == f'"{read.json()["revision"]}"'
    changed = api.send("PATCH", at, {"minutes": 7}, **{"If-Match": read["ETag"]})
    assert changed.status_code == 200 and changed["ETag"] != read["ETag"]
    for method, path, body in (("PATCH", at, {"minutes": 8}), ("POST", f"{at}texts/", {}), ("DELETE", at, None)):
        late = api.send(method, path, body, **{"If-Match": read["ETag"]})
        assert late.status_code == 412 and "revision" in late.json()["detail"], method
    assert api.send("PATCH", at, {"minutes": 8}, **{"If-Match": "*"}).json()["minutes"] == 8


def test_a_field_that_heval_sets_is_refused_unless_it_is_sent_as_stored(api, olga):
    at = f"studies/{draft_study(owner=olga).code}/"
    refused = api.patch(at, {"state": "launched"})
    assert refused.status_code == 400 and refused.json()["errors"][0]["field"] == "state"
    assert api.post("studies/", {"title": "A", "state": "launched"}).status_code == 400
    whole = api.get(at).json()
    assert api.patch(at, whole | {"minutes": 9}).json()["minutes"] == 9


@pytest.mark.parametrize(
    "query",
    [
        "responses/?section=99",
        "responses/?system=none",
        "responses/?arm=none",
        "responses/?question=none",
        "outputs/?system=none",
        "prompts/?domain=none",
        "codings/?sample=9",
        "assignments/?batch=99",
    ],
)
def test_a_filter_by_a_name_that_the_study_does_not_have_is_refused(api, olga, query):
    study = closed_study(olga, 1)
    refused = api.get(f"studies/{study.code}/{query}")
    assert refused.status_code == 400 and "The study has no" in refused.json()["errors"][0]["message"]


def test_a_state_that_does_not_exist_is_refused(api):
    assert api.get("studies/?state=AAA").status_code == 400 and api.get("studies/?state=draft").status_code == 200


def test_every_answer_says_how_many_requests_are_left(api):
    first, second = api.get("studies/"), api.get("studies/")
    assert int(first["RateLimit-Remaining"]) - int(second["RateLimit-Remaining"]) == 1
    assert (
        int(first["RateLimit-Limit"]) > int(first["RateLimit-Remaining"]) and 0 <= int(first["RateLimit-Reset"]) <= 60
    )
