"""Lists of the REST interface are paged, and requests are counted and started once."""

import json

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from analysis.api import urls as api_urls
from analysis.models import ApiToken
from studies.models import Prompt
from tests.builders import draft_study

from .rest import analysis_of, api_of, body_of, closed_study

pytestmark = pytest.mark.django_db


def walked(api, path):
    rows, pages = [], 0
    while path:
        answer = api.get(path).json()
        rows += answer["results"]
        path = answer["next"] and answer["next"][answer["next"].index("/api/") :]
        pages += 1
    return rows, pages


@pytest.mark.parametrize("size", [1, 7, 9, 10, 1000])
def test_pages_of_responses_hold_every_row_once_in_the_order_of_the_export(owner, size):
    study, api = closed_study(owner, 2), api_of(owner)
    rows, pages = walked(api, f"studies/{study.code}/responses/?page_size={size}")
    exported = body_of(api.get(f"studies/{study.code}/exports/responses.jsonl")).decode().splitlines()[:-1]
    assert rows == [json.loads(line) for line in exported]
    assert pages == -(-len(rows) // size)


def test_a_page_keeps_its_filters_in_its_next_address(owner):
    study, api = closed_study(owner, 2), api_of(owner)
    rows, pages = walked(api, f"studies/{study.code}/responses/?page_size=2&system=beta")
    assert pages == 1 and len(rows) == 2 and {row["system"] for row in rows} == {"beta"}
    rows, pages = walked(api, f"studies/{study.code}/prompts/?page_size=5")
    assert [row["key"] for row in rows] == [f"p{n:03}" for n in range(12)]


def test_lists_take_as_many_queries_for_many_rows_as_for_few(owner):
    study, api = closed_study(owner, 6), api_of(owner)
    for path in (
        "batches",
        "assignments",
        "responses",
        "outputs",
        "prompts",
        "systems",
        "exclusions",
        "analyses",
        "jobs",
    ):
        if path == "analyses":
            for _ in range(4):
                analysis_of(study)
        counts = []
        # The first answers of a person are about no item, so they need no query for items.
        for size in (1, 8, 24):
            with CaptureQueriesContext(connection) as queries:
                assert api.get(f"studies/{study.code}/{path}/?page_size={size}").status_code == 200
            counts.append(len(queries))
        assert counts[2] <= counts[1], path


def test_starting_an_analysis_twice_with_one_key_gives_one_job(owner, monkeypatch):
    from studies.services import jobs

    assert "analyse" in jobs.kinds(), "the tasks are imported before one of them is replaced"
    monkeypatch.setitem(jobs._kinds, "analyse", jobs.JobKind("analyse", lambda job, progress: {}, False, ()))
    study, api = closed_study(owner, 1), api_of(owner)
    path = f"studies/{study.code}/analyses/"
    first, second = (api.post(path, {}, **{"Idempotency-Key": "k1"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["code"] == second.json()["code"]
    assert api.post(path, {}).json()["code"] != first.json()["code"]
    assert api.get(f"studies/{study.code}/jobs/{first.json()['code']}/").json()["state"] == "waiting"
    assert api.post(path, {"origins": ["mars"]}).status_code == 400


@pytest.mark.usefixtures("in_one_minute")
def test_a_token_that_asks_too_often_reads_when_to_come_back(owner, settings):
    from rest_framework.settings import api_settings

    study = draft_study(owner=owner)
    api, other = api_of(owner), api_of(owner)
    rates = dict(api_settings.DEFAULT_THROTTLE_RATES)
    try:
        api_settings.DEFAULT_THROTTLE_RATES["api"] = "3/min"
        codes = [api.get(f"studies/{study.code}/").status_code for _ in range(9)]
        late = api.get(f"studies/{study.code}/")
        assert codes == [200] * 3 + [429] * 6
        assert late.status_code == 429 and 1 <= int(late["Retry-After"]) <= 60
        assert other.get(f"studies/{study.code}/").status_code == 200
    finally:
        api_settings.DEFAULT_THROTTLE_RATES.update(rates)
    assert ApiToken.objects.count() == 2


# By address: the parameters that filter a list.
FILTERS = {
    "studies/": {"state"},
    "prompts/": {"domain"},
    "outputs/": {"system", "prompt"},
    "batches/": {"arm"},
    "assignments/": {"arm", "batch"},
    "responses/": {"section", "question", "system", "prompt", "arm", "batch"},
    "codings/": {"sample"},
}
# What the study does not have, where it cannot be a word.
NOTHING = {"batch": 999, "section": 99, "sample": 9}


def test_every_filter_keeps_the_rows_that_have_the_value(owner):
    study, api = closed_study(owner, 2), api_of(owner)
    QuerySet(Prompt).filter(study=study, key="p003").update(domain="news")
    tested = 0
    for address, names in FILTERS.items():
        path = address if address == "studies/" else f"studies/{study.code}/{address}"
        rows = api.get(path).json()["results"]
        for name in names:
            refused = api.get(f"{path}?{name}={NOTHING.get(name, 'nothing')}")
            assert refused.status_code == 400 and refused.json()["errors"][0]["field"] == name, (address, name)
            for value in {row[name] for row in rows} - {None, ""}:
                kept = api.get(f"{path}?{name}={value}").json()["results"]
                assert kept == [row for row in rows if row[name] == value], (address, name, value)
                tested += 1
    assert tested > 30


def test_every_declared_filter_is_among_them():
    declared = {}
    for pattern in api_urls.urlpatterns:
        names = {one.name for one in getattr(pattern.callback.view_class, "parameters", ()) if one.lookup}
        if names:
            declared[str(pattern.pattern).removeprefix(api_urls.study)] = names
    assert declared == FILTERS
