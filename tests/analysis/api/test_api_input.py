"""Bad input to the REST interface: it ends in a clear refusal, never in an error of ours."""

import base64
import json

import pytest
from django.conf import settings as django_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studies.models import Study
from studies.stimuli import texts
from tests.builders import draft_study, user

from .rest import api_of, body_of, closed_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft():
    study = draft_study(owner=user())
    study.api = api_of(study.owner)
    return study


def prompt(**columns) -> bytes:
    return json.dumps({"key": "new", **columns}).encode()


BODIES = {
    "empty": b"",
    "blank": b" \n",
    "null": b"null",
    "number": b"1",
    "not JSON": b"{'key': 1}",
    "trailing comma": b'{"key": "a",}',
    "trailing words": b'{"key": "a"} x',
    "NaN": b'{"key": "a", "attributes": {"a": NaN}}',
    "Infinity": b'{"key": "a", "attributes": {"a": -Infinity}}',
    "1e400": b'{"key": "a", "attributes": {"a": 1e400}}',
    "5,000 digits": b'{"key": "a", "attributes": {"a": ' + b"9" * 5000 + b"}}",
    "a key twice": b'{"key": "a", "key": "b"}',
    "a key twice, deep": b'{"key": "a", "attributes": {"a": 1, "a": 2}}',
    "depth 33": b'{"key": "a", "attributes": ' + b'{"a":' * 32 + b"1" + b"}" * 33,
    "depth 100,000": b"[" * 100_000,
    "depth 100,000, closed": b"[" * 100_000 + b"]" * 100_000,
    "lone surrogate": b'{"key": "a", "text": "\\ud800"}',
    "lone surrogate in a key": b'{"key": "a", "attributes": {"\\udfff": 1}}',
    "raw surrogate": b'{"key": "a", "text": "\xed\xa0\x80"}',
    "NUL": b'{"key": "a", "text": "\\u0000"}',
    "NUL in a key": b'{"key": "a", "attributes": {"\\u0000": 1}}',
    "byte order mark": b'\xef\xbb\xbf{"key": "a"}',
    "UTF-16": '{"key": "a"}'.encode("utf-16"),
    "Latin-1": '{"key": "ä"}'.encode("latin-1"),
    "control character": prompt(text="a\u0007"),
    "key blank": prompt(key=" "),
    "key zero width": prompt(key="\u200b"),
    "key bidi": prompt(key="a\u202eb"),
    "key 101 characters": prompt(key="x" * 101),
    "key is a list": prompt(key=["a"]),
    "text is null": prompt(text=None),
    "text too long": prompt(text="x" * 1_000_001),
    "attributes a list": prompt(attributes=[1]),
    "unknown field": prompt(owner__password="x"),
    "study given": prompt(study="x"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_bad_body_is_refused_with_a_reason_and_nothing_is_stored(draft, body):
    before = draft.prompts.count()
    answer = draft.api.post(f"studies/{draft.code}/prompts/", body)
    assert answer.status_code == 400, answer.content[:300]
    said = answer.json()
    assert answer["Content-Type"] == "application/problem+json"
    assert said["detail"] and said["status"] == 400
    assert draft.prompts.count() == before


def test_a_name_of_the_schema_with_a_null_byte_or_a_thirty_second_level_is_what_it_says(draft):
    deepest = {"key": "deep", "attributes": json.loads('{"a":' * 30 + "1" + "}" * 30)}
    assert draft.api.post(f"studies/{draft.code}/prompts/", deepest).status_code == 201


TYPES = {
    "none": ("", 415),
    "odd": ("application/octet-stream", 415),
    "form": ("application/x-www-form-urlencoded", 415),
    "multipart": ("multipart/form-data; boundary=x", 415),
    "nonsense": ("\u00e9/;;=", 415),
    "utf-7": ("application/json; charset=utf-7", 400),
    "utf-16": ("application/json; charset=utf-16", 400),
    "utf-8": ("application/json; charset=UTF-8", 201),
    "capitals": ("Application/JSON", 201),
}


@pytest.mark.parametrize(("content_type", "code"), TYPES.values(), ids=TYPES.keys())
def test_a_body_of_another_type_is_refused(draft, content_type, code):
    address = f"/api/v1/studies/{draft.code}/prompts/"
    answer = draft.api.client.generic(
        "POST", address, data=prompt(), content_type=content_type, headers=draft.api.headers
    )
    assert answer.status_code == code, answer.content


def test_a_compressed_body_is_refused(draft):
    import gzip

    answer = draft.api.post(f"studies/{draft.code}/prompts/", gzip.compress(prompt()), **{"Content-Encoding": "gzip"})
    assert answer.status_code == 415


def test_a_body_of_33_megabytes_is_refused_before_it_is_read(draft, monkeypatch):
    body = prompt(text="x" * (33 * 1024 * 1024))
    assert draft.api.post(f"studies/{draft.code}/prompts/", body).status_code == 413
    monkeypatch.setattr(django_settings, "DATA_UPLOAD_MAX_MEMORY_SIZE", 100)
    assert draft.api.post(f"studies/{draft.code}/prompts/", prompt(text="x" * 200)).status_code == 413
    assert draft.api.post(f"studies/{draft.code}/prompts/", prompt()).status_code == 201


QUERIES = (
    "cursor=", "cursor=x", "cursor=%00", "cursor=WzFd&cursor=WzFd", "cursor=W10%3D", "cursor=" + "A" * 5000, "page=1", "page=-1", "page_size=0",
    "page_size=-1", "page_size=1001", "page_size=1e9", "page_size=abc", "page_size=", "page_size=%D9%A3", "page_size=1.0",
    "page_size=" + "9" * 5000, "page_size=1&page_size=2", "ordering=study__owner__password", "order_by=pk", "format=api", "format=json",
    "study__owner__password=x", "study__owner__password__startswith=p", "assignment__annotator__external_id=x", "id__in=a", "id=1",
    "origin=live", "origins=", "origins=mars", "origins=live,", "origins=live;test", "withdrawn=2", "withdrawn=", "section=-1", "section=x", "question=",
    "question=%00", "question=a%07b", "question=" + "x" * 201, "question=%ED%A0%80%00", "batch=99999999999", "arm=%0D%0ASet-Cookie:x",
    "%00=1", "=1", "a=1&b=2",
)  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_a_bad_parameter_is_refused_and_named(draft, query):
    answer = draft.api.get(f"studies/{draft.code}/responses/?{query}")
    assert answer.status_code == 400, answer.content[:300]
    assert answer.json()["errors"][0]["message"] and "stored" not in answer.json()["detail"], "who reads stores nothing"


def test_a_parameter_that_is_none_is_refused_on_every_path(draft):
    for path in (
        "",
        "systems/",
        "prompts/",
        "outputs/",
        "batches/",
        "assignments/",
        "exclusions/",
        "analyses/",
        "jobs/",
        "design/",
        "progress/",
        "exports/archive.zip",
        "exports/responses.csv",
        "exports/assignments.jsonl",
        "exports/codebook.json",
    ):
        answer = draft.api.get(f"studies/{draft.code}/{path}?study__owner__password=x")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "study__owner__password"), path
    assert draft.api.get("studies/?owner__password=x").status_code == 400


@pytest.mark.parametrize("key", [[0], [1, 2, 3], ["1", 2], [1.0, 2], [-1, 0], [2**63, 0], [True, 0], {"a": 1}, None, 5])
def test_a_cursor_made_by_hand_is_refused(draft, key):
    made = base64.urlsafe_b64encode(json.dumps(key).encode()).decode()
    assert draft.api.get(f"studies/{draft.code}/responses/?cursor={made}").status_code == 400


def test_the_largest_cursor_gives_an_empty_page(draft):
    made = base64.urlsafe_b64encode(json.dumps([2**63 - 1, 2**63 - 1]).encode()).decode()
    assert draft.api.get(f"studies/{draft.code}/responses/?cursor={made}").json()["results"] == []


ADDRESSES = (
    "nothing/", "studies", "studies/x/", "studies/%00/", "studies/99999999999999999999/", "studies/_5F/", "studies/{code}", "studies/{code}//",
    "studies/{code}/secrets/", "studies/{code}/exports/responses.xlsx", "studies/{code}/exports/../archive", "studies/{code}/analyses/x/",
    "studies/{code}/analyses/99999999999999999999/", "studies/{code}/analyses/-1/", "studies/{code}/jobs/x/", "studies/{code}/responses.json",
    "studies/00000000-0000-0000-0000-000000000000/", "studies/{CODE}x/", "x" * 8000,
)  # fmt: skip


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_none_is_not_there(draft, address):
    answer = draft.api.get(address.format(code=draft.code, CODE=str(draft.code).upper()))
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    "accept", ["text/html", "application/xml", "*/*;q=0", "", "\u00e9", "text/csv", "application/json; indent=9999999"]
)
def test_answers_are_json_whatever_is_accepted(draft, accept):
    answer = draft.api.get(f"studies/{draft.code}/", Accept=accept)
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert len(answer.content) < 10_000


def test_head_reads_and_range_and_conditions_change_nothing(draft):
    address = f"studies/{draft.code}/exports/assignments.csv"
    head = draft.api.send("HEAD", address)
    assert (head.status_code, head["X-Heval-Rows"], body_of(head)) == (200, "0", b"")
    answer = draft.api.get(address, Range="bytes=0-3", **{"If-None-Match": "*"})
    assert answer.status_code == 200
    assert body_of(answer).startswith(b"assignment,")
    # Neither holds a place among those that may read at once.
    assert all(draft.api.send("HEAD", address).status_code == 200 for _ in range(5))


def test_an_unhandled_study_is_not_distinguished_from_a_foreign_one(draft):
    foreign = closed_study(user("somebody"), 1)
    unknown = "00000000-0000-4000-8000-000000000000"
    assert Study.objects.filter(code=unknown).count() == 0
    answers = {draft.api.get(f"studies/{code}/responses/").content for code in (foreign.code, unknown)}
    assert len(answers) == 1


names = st.sampled_from(
    ["key", "text", "system", "prompt", "name", "sample", "is_empty", "attributes", "title", "reward", "target_n", "note", "origins"]
) | st.text(max_size=5)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
    | st.sampled_from(["alpha", "p000", "p001", "٣", "1e5", "\u200b", "=1", "x" * 300, 10**40]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=8,
)  # fmt: skip
rows = st.dictionaries(names, values, max_size=6) | values


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.lists(rows, max_size=3) | rows)
def test_no_body_whatsoever_makes_an_error_of_ours(draft, body):
    sent = json.dumps(body)
    if len(sent) < 5000:
        for method, path in (
            ("POST", "systems/"),
            ("POST", "prompts/"),
            ("POST", "outputs/"),
            ("PATCH", ""),
            ("POST", "exclusions/"),
            ("POST", "analyses/"),
            ("POST", "exports/"),
        ):
            answer = draft.api.send(method, f"studies/{draft.code}/{path}", sent.encode())
            assert answer.status_code in (200, 201, 202, 400, 409, 429), (path, sent)


# The parser by itself


@pytest.mark.parametrize(
    "body", [value for name, value in BODIES.items() if name.startswith(("depth", "lone", "NUL", "a key", "NaN"))]
)
def test_strict_json_refuses(body):
    with pytest.raises(texts.BadJson):
        texts.loads(body)


def test_strict_json_reads_what_is_json():
    value = {"a": [1, -2.5, True, None, "ü\u202e😀"], "": {}}
    assert texts.loads(json.dumps(value).encode()) == value
    assert texts.loads(json.dumps(value, ensure_ascii=False).encode()) == value
