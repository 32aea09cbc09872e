"""The REST interface: who may do what, the resources, and what stays hidden while a study collects."""

import json
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.api.tokens import create_token, revoke_token
from analysis.data.flat.selection import assignment_name
from analysis.models import ApiToken
from annotators.models import Exclusion
from studies.models import AuditEvent, Job, Output, Study, StudyMember, audit
from studies.services import lifecycle
from tests.builders import draft_study, spa_study, user
from tests.players import submitted

from .rest import Api, analysis_of, api_of, body_of, closed_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return user("owner")


# Who may do what

ACTORS = (
    "anonymous", "other", "viewer", "coder", "editor", "owner", "admin", "read token", "token of another study", "expired",
    "revoked",
)  # fmt: skip
OK, SEEN = "ok", "seen"
READ = dict(zip(ACTORS, (401, 404, OK, 403, OK, OK, OK, OK, 404, 401, 401), strict=True))
MEMBER = READ | {"coder": OK}
WRITE = dict(zip(ACTORS, (401, 404, 403, 403, OK, OK, OK, 403, 404, 401, 401), strict=True))
LIST = dict(zip(ACTORS, (401, OK, OK, OK, OK, OK, OK, OK, OK, 401, 401), strict=True))
CREATE = dict(zip(ACTORS, (401, OK, OK, OK, OK, OK, OK, 403, 403, 401, 401), strict=True))
OPEN = dict.fromkeys(ACTORS, OK)

# (method, path, body, who may): {s} a closed study, {d} a draft, {j} a job, {p} a job with a file.
TABLE = (
    ("GET", "schema/", None, OPEN),
    ("GET", "docs/", None, OPEN),
    ("GET", "studies/", None, LIST),
    ("POST", "studies/", {"title": "New"}, CREATE),
    ("GET", "studies/{s}/", None, MEMBER),
    ("PATCH", "studies/{d}/", {"contact": "a@example.org"}, WRITE),
    ("GET", "studies/{s}/design/", None, READ),
    ("GET", "studies/{s}/progress/", None, READ),
    ("GET", "studies/{s}/sample/", None, READ),
    ("GET", "studies/{s}/systems/", None, READ),
    ("POST", "studies/{d}/systems/", {"name": "delta"}, WRITE),
    ("GET", "studies/{s}/prompts/", None, READ),
    ("POST", "studies/{d}/prompts/", {"key": "more"}, WRITE),
    ("GET", "studies/{s}/outputs/", None, READ),
    ("POST", "studies/{d}/outputs/", {"system": "alpha", "prompt": "p000", "sample": 1, "text": "More."}, WRITE),
    ("GET", "studies/{s}/batches/", None, READ),
    ("GET", "studies/{s}/assignments/", None, READ),
    ("GET", "studies/{s}/responses/", None, READ),
    ("GET", "studies/{s}/codings/", None, READ),
    ("GET", "studies/{s}/exclusions/", None, READ),
    ("POST", "studies/{s}/exclusions/", {"assignments": ["{a}"], "reason": "technical"}, WRITE),
    ("POST", "studies/{s}/exclusions/{x}/reverse/", {}, WRITE),
    ("GET", "studies/{s}/pay/", None, READ),
    ("GET", "studies/{s}/payments/", None, READ),
    ("GET", "studies/{s}/payments.csv", None, READ),
    ("GET", "studies/{s}/analyses/", None, READ),
    ("POST", "studies/{s}/analyses/", {}, WRITE),
    ("GET", "studies/{s}/analyses/1/", None, READ),
    ("GET", "studies/{s}/jobs/", None, READ),
    ("GET", "studies/{s}/jobs/{j}/", None, READ),
    ("GET", "studies/{s}/jobs/{p}/file/", None, READ),
    ("POST", "studies/{s}/exports/", {}, WRITE),
    ("GET", "studies/{s}/exports/codings.csv", None, READ),
    ("GET", "studies/{s}/exports/codings.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/codings.jsonl", None, READ),
    ("GET", "studies/{s}/exports/codings.jsonl.sha256", None, READ),
    ("GET", "studies/{s}/exports/items.csv", None, READ),
    ("GET", "studies/{s}/exports/items.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/items.jsonl", None, READ),
    ("GET", "studies/{s}/exports/items.jsonl.sha256", None, READ),
    ("GET", "studies/{s}/exports/responses.csv", None, READ),
    ("GET", "studies/{s}/exports/responses.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/responses.jsonl", None, READ),
    ("GET", "studies/{s}/exports/responses.jsonl.sha256", None, READ),
    ("GET", "studies/{s}/exports/assignments.csv", None, READ),
    ("GET", "studies/{s}/exports/assignments.csv.sha256", None, READ),
    ("GET", "studies/{s}/exports/assignments.jsonl", None, READ),
    ("GET", "studies/{s}/exports/assignments.jsonl.sha256", None, READ),
    ("GET", "studies/{s}/exports/codebook.json", None, READ),
    ("GET", "studies/{s}/exports/codebook.md", None, READ),
    ("GET", "studies/{s}/archive/", None, READ),
)


@pytest.fixture
def world(owner, settings, tmp_path, monkeypatch):
    """A closed study and a draft with people of every role, and a client for each actor."""
    monkeypatch.setattr("analysis.api.permissions.limit_of", lambda scope: 100_000)
    settings.MEDIA_ROOT = tmp_path
    study, draft, elsewhere = closed_study(owner, 1), draft_study(owner=owner), draft_study(owner=owner)
    analysis_of(study)
    job = Job.objects.create(kind="analyse", study=study)
    made = Job.objects.create(
        kind="export",
        study=study,
        state="done",
        ended_at=timezone.now(),
        arguments={"table": "responses", "origins": ["live"]},
    )
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / f"{made.code}.parquet").write_bytes(b"PAR1")
    first = study.assignments.get()
    excluded = Exclusion.objects.create(assignment=first, reason="technical", by=owner)
    people = {name: user(name) for name in ("other", "viewer", "coder", "editor")}
    for role in ("viewer", "coder", "editor"):
        for each in (study, draft):
            StudyMember.objects.create(study=each, user=people[role], role=role)
    past = timezone.now() - timedelta(seconds=1)
    revoked, raw = create_token(owner, "revoked", scope="write")
    revoke_token(revoked, None)
    actors = {name: api_of(person) for name, person in people.items()} | {
        "anonymous": Api(),
        "owner": api_of(owner),
        "admin": api_of(user("admin", is_superuser=True)),
        "read token": api_of(owner, scope="read"),
        "token of another study": api_of(owner, study=elsewhere),
        "expired": api_of(owner, expires_at=past),
        "revoked": Api(raw),
    }
    return actors, {
        "s": study.code,
        "d": draft.code,
        "j": job.code,
        "p": made.code,
        "x": excluded.pk,
        "a": assignment_name(first.code),
    }


def test_every_method_of_every_path_is_allowed_to_exactly_those_who_should(world):
    actors, names = world
    wrong = []
    for method, path, body, expected in TABLE:
        for actor in ACTORS:
            if body and "assignments" in body:
                body = {**body, "assignments": [names["a"]]}
            answer = actors[actor].send(method, path.format(**names), body)
            body_of(answer)
            wanted = expected[actor]
            # 409: allowed, but this installation or state cannot; 200: was there already.
            fits = answer.status_code in (200, 201, 202, 409) if wanted == OK else answer.status_code == wanted
            if not fits:
                wrong.append((method, path, actor, answer.status_code, wanted))
    assert wrong == []


def test_every_published_path_stands_in_the_table_and_knows_no_other_method(world):
    actors, names = world
    published = json.loads(Api().get("schema/").content)["paths"]
    declared = {(method.upper(), path) for path, methods in published.items() for method in methods}
    in_table = {
        (method, "/api/v1/" + re.sub(r"\{[sd]\}", "{code}", path).replace("{j}", "{job}").replace("{p}", "{job}").replace("/1/", "/{number}/").replace("{x}", "{number}"))
        for method, path, _, _ in TABLE
        if path not in ("schema/", "docs/")
    }  # fmt: skip
    assert declared == in_table
    assert len(published) > 20
    methods = {
        path: {m for m, p, _, _ in TABLE if p.replace("{d}", "{s}") == path.replace("{d}", "{s}")}
        for _, path, _, _ in TABLE
    }
    for path, known in methods.items():
        for method in {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - known:
            answer = actors["owner"].send(method, path.format(**names), {})
            assert answer.status_code == 405, (method, path)


def test_every_published_answer_has_its_errors(world):
    published = json.loads(Api().get("schema/").content)["paths"]
    for path, methods in published.items():
        for method, operation in methods.items():
            wanted = {"400", "401", "403", "404", "429"} | (set() if method == "get" else {"409", "413"})
            assert wanted <= set(operation["responses"]), (method, path)


def test_a_session_may_read_and_writes_only_with_its_csrf_token(owner):
    study = draft_study(owner=owner)
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    api = Api(client=client)
    assert api.get(f"studies/{study.code}/").status_code == 200
    refused = api.post(f"studies/{study.code}/systems/", {"name": "delta"})
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    client.cookies["csrftoken"] = secret = "a" * 32
    assert api.post(f"studies/{study.code}/systems/", {"name": "delta"}, **{"X-CSRFToken": secret}).status_code == 201


# Hidden while it collects

OUTCOMES = (
    "responses/", "exports/responses.csv", "exports/responses.jsonl", "exports/responses.csv.sha256", "archive/", "analyses/1/",
)  # fmt: skip


def test_outcomes_are_hidden_while_a_study_collects_and_shown_when_it_is_unblinded_or_closed(owner):
    study = spa_study(owner)
    submitted(study, "a")
    analysis_of(study)
    api = api_of(owner)

    def seen():
        return [api.get(f"studies/{study.code}/{path}").status_code for path in OUTCOMES]

    assert seen() == [403] * len(OUTCOMES)
    assert "still collects" in api.get(f"studies/{study.code}/responses/").json()["detail"]
    assert api.post(f"studies/{study.code}/exports/", {}).status_code == 403
    assert "result" not in api.get(f"studies/{study.code}/analyses/").json()["results"][0]
    for path in ("assignments/", "progress/", "exports/assignments.csv", "responses/?origin=test,robot"):
        assert api.get(f"studies/{study.code}/{path}").status_code == 200, path
    assert api.get(f"studies/{study.code}/responses/?origin=robot,live").status_code == 403
    lifecycle.pause(study, by=None)
    assert seen() == [403] * len(OUTCOMES)
    lifecycle.unblind(study, None, "a look")
    assert seen() == [200] * len(OUTCOMES)


def test_a_file_that_was_made_before_is_hidden_too(owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    study = spa_study(owner)
    arguments = {"table": "responses", "origins": ["live"]}
    made = Job.objects.create(kind="export", study=study, state="done", ended_at=timezone.now(), arguments=arguments)
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / f"{made.code}.parquet").write_bytes(b"PAR1")
    address = f"studies/{study.code}/jobs/{made.code}/file/"
    assert api_of(owner).get(address).status_code == 403
    lifecycle.unblind(study, None, "a look")
    assert body_of(api_of(owner).get(address)) == b"PAR1"


def test_a_coder_is_told_of_a_study_what_annotators_read(owner):
    study = draft_study(owner=owner, exclusion_group="replications", preparation={"steps": ["cut alpha"]})
    secrets = ("secret hypothesis", "replications", "cut alpha")
    for role, tells in (("viewer", True), ("coder", False)):
        StudyMember.objects.create(study=study, user=user(role), role=role)
        for path in ("studies/", f"studies/{study.code}/"):
            text = body_of(api_of(user(role)).get(path)).decode()
            assert "Reading short stories" in text
            assert [word in text for word in secrets] == [tells] * len(secrets), (role, path)


def test_a_closing_study_hides_its_outcomes_and_a_closed_one_shows_them(owner):
    study = spa_study(owner)
    lifecycle.close(study, by=None)
    api = api_of(owner)
    assert api.get(f"studies/{study.code}/responses/").status_code == 403
    lifecycle.finish(study, by=None)
    assert api.get(f"studies/{study.code}/responses/").status_code == 200


# Resources


def test_a_study_is_created_as_a_draft_with_its_owner_and_an_arm(owner):
    api = api_of(owner)
    code = "6b1c2a9e-7f5d-4a53-9d54-0a3a7a0c9f11"
    answer = api.post(
        "studies/", {"code": code, "title": "Stories", "public_title": "Reading", "target_n": 20, "reward": "2.50"}
    )
    assert answer.status_code == 201, answer.content
    assert answer.json()["state"] == "draft"
    study = Study.objects.get(code=code)
    assert (study.owner, study.members.get().role, study.arms.get().name) == (owner, "owner", "all")
    assert audit.events_of(study).filter(verb="create", by=owner).exists()
    assert api.post("studies/", {"code": code, "title": "Stories"}).status_code == 409
    assert Study.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "\u200b"}, "title"),
        ({"title": ["a"]}, "title"),
        ({"title": 5}, "title"),
        ({"target_n": "20"}, "target_n"),
        ({"target_n": True}, "target_n"),
        ({"target_n": 2.5}, "target_n"),
        ({"target_n": -1}, "target_n"),
        ({"target_n": 10**30}, "target_n"),
        ({"reward": "NaN"}, "reward"),
        ({"reward": "1,50"}, "reward"),
        ({"reward": -1}, "reward"),
        ({"reward": [1]}, "reward"),
        ({"coverage": "other"}, "coverage"),
        ({"coverage": {}}, "coverage"),
        ({"replaces_excluded": "yes"}, "replaces_excluded"),
        ({"withdrawal_until": "tomorrow"}, "withdrawal_until"),
        ({"seed": 2**63}, "seed"),
        ({"state": "launched"}, None),
        ({"owner": "somebody"}, None),
        ({"nothing": 1}, "nothing"),
        ({"target_n": 9, "target_cap": 3}, None),
        ({"batches_per_annotator": 0}, "batches_per_annotator"),
        ({"public_title": "a\u0007b"}, "public_title"),
        ({"public_title": None}, "public_title"),
        ({"code": "6b1c2a9e-7f5d-4a53-9d54-0a3a7a0c9f11"}, "code"),
        ([], None),
        ("text", None),
        (5, None),
    ],
)
def test_a_bad_field_of_a_study_is_named_and_nothing_is_stored(owner, change, field):
    study = draft_study(owner=owner)
    before = Study.objects.filter(pk=study.pk).values().get()
    answer = api_of(owner).patch(f"studies/{study.code}/", change)
    is_read_only = change in ({"state": "launched"}, {"owner": "somebody"})
    assert answer.status_code == (200 if is_read_only else 400), answer.content
    if field:
        assert field in [error["field"] for error in answer.json()["errors"]]
    assert Study.objects.filter(pk=study.pk).values().get() == before


def test_a_draft_is_changed_once_and_a_stale_change_is_refused(owner):
    study, api = draft_study(owner=owner), api_of(owner)
    version = api.get(f"studies/{study.code}/").json()["version"]
    first = api.patch(f"studies/{study.code}/", {"contact": "a@example.org", "version": version})
    assert (first.status_code, first.json()["contact"], first.json()["version"]) == (200, "a@example.org", version + 1)
    assert api.patch(f"studies/{study.code}/", {"contact": "b@example.org", "version": version}).status_code == 409
    assert audit.events_of(study).get(verb="edit").data == {"draft": study.pk, "columns": ["contact"]}


def test_a_launched_study_keeps_its_design_over_rest_too(owner):
    study, api = spa_study(owner), api_of(owner)
    assert api.patch(f"studies/{study.code}/", {"consent": "Other words."}).status_code == 409
    assert api.patch(f"studies/{study.code}/", {"title": "Other"}).status_code == 409
    assert api.post(f"studies/{study.code}/systems/", {"name": "late"}).status_code == 409


def outputs_of(n, system="alpha", sample=3):
    return [{"system": system, "prompt": f"p{i:03}", "sample": sample, "text": f"Text {i}"} for i in range(n)]


def test_outputs_are_stored_all_at_once_and_sending_them_again_changes_nothing(owner):
    study, api = draft_study(owner=owner, prompts=30), api_of(owner)
    path = f"studies/{study.code}/outputs/"
    first = api.post(path, outputs_of(30))
    assert (first.status_code, first.json()) == (201, {"created": 30, "unchanged": 0})
    again = api.post(path, outputs_of(30))
    assert (again.status_code, again.json()) == (200, {"created": 0, "unchanged": 30})
    assert Output.objects.filter(sample=3).count() == 30
    assert AuditEvent.objects.filter(study=study, verb="add outputs").count() == 1


def test_one_bad_output_refuses_all_and_every_bad_row_is_named(owner):
    study, api = draft_study(owner=owner), api_of(owner)
    rows = outputs_of(8)
    rows[1]["system"], rows[3]["prompt"] = "nobody", "nothing"
    answer = api.post(f"studies/{study.code}/outputs/", rows)
    assert answer.status_code == 400
    assert [(e["row"], e["field"]) for e in answer.json()["errors"]] == [(2, "system"), (4, "prompt")]
    rows = outputs_of(8)
    rows[0]["text"], rows[2]["sample"], rows[5] = "", -1, "no object"
    answer = api.post(f"studies/{study.code}/outputs/", rows)
    assert [(e["row"], e["field"]) for e in answer.json()["errors"]] == [(1, "text"), (3, "sample"), (6, None)]
    rows = outputs_of(8)
    rows[7] = rows[0]
    answer = api.post(f"studies/{study.code}/outputs/", rows)
    assert answer.json()["errors"] == [{"row": 8, "field": "system", "message": "The same as in row 1."}]
    assert not Output.objects.filter(sample=3).exists()


def test_an_output_that_is_there_with_another_text_is_a_conflict(owner):
    study, api = draft_study(owner=owner), api_of(owner)
    path = f"studies/{study.code}/outputs/"
    api.post(path, outputs_of(2))
    rows = outputs_of(3)
    rows[1]["text"] = "Another"
    answer = api.post(path, rows)
    assert answer.status_code == 409
    assert [(e["row"], "text" in e["message"]) for e in answer.json()["errors"]] == [(2, True)]
    assert Output.objects.filter(sample=3).count() == 2


@pytest.mark.parametrize("body", [[], {}, None, "x", 1, [[]], [None], [1], [{"x": 1}] * 1001])
def test_a_bulk_of_no_rows_or_too_many_or_no_objects_is_refused(owner, body):
    study = draft_study(owner=owner)
    answer = api_of(owner).post(f"studies/{study.code}/outputs/", body if body is not None else b"null")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


def test_a_thousand_outputs_are_stored_in_as_many_queries_as_ten(owner):
    study, api = draft_study(owner=owner, prompts=1000), api_of(owner)
    counts = []
    for n, sample in ((10, 1), (10, 2), (1000, 3)):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert api.post(f"studies/{study.code}/outputs/", outputs_of(n, sample=sample)).status_code == 201
        counts.append(len([q for q in queries if 'INSERT INTO "studies_output"' not in q["sql"]]))
    assert counts[2] == counts[1]


def test_names_of_systems_that_a_person_would_not_tell_apart_are_refused(owner):
    study, api = draft_study(owner=owner), api_of(owner)
    answer = api.post(f"studies/{study.code}/systems/", [{"name": "delta"}, {"name": "ALPHA"}])
    assert (answer.status_code, answer.json()["errors"][0]["row"]) == (400, 2)
    assert study.systems.count() == 3


def test_the_design_is_served_as_it_was_hashed(owner):
    from hashlib import sha256

    study, api = spa_study(owner), api_of(owner)
    got = api.get(f"studies/{study.code}/design/").json()
    assert got["version"] == 1
    assert sha256(got["canonical"].encode()).hexdigest() == got["sha256"] == study.designs.get().sha256
    assert api.get(f"studies/{study.code}/design/?version=2").status_code == 404
    draft = draft_study(owner=owner)
    assert api.get(f"studies/{draft.code}/design/").json()["version"] is None


def test_assignments_show_a_pseudonym_that_differs_between_studies_and_never_an_identity(owner):
    first, second = closed_study(owner, 1), closed_study(owner, 1)
    api = api_of(owner)
    rows = [api.get(f"studies/{study.code}/assignments/").json()["results"][0] for study in (first, second)]
    names = {row["annotator"] for row in rows}
    assert len(names) == 2
    assert all(re.fullmatch("[0-9a-f]{16}", name) for name in names)
    everything = json.dumps(rows)
    for assignment in first.assignments.select_related("annotator"):
        for secret in (
            assignment.code,
            assignment.annotator.external_id,
            str(assignment.annotator.code),
            str(assignment.seed),
        ):
            assert secret not in everything


def test_a_response_says_what_it_is_about(owner):
    study, api = closed_study(owner, 1), api_of(owner)
    rows = api.get(f"studies/{study.code}/responses/").json()["results"]
    directed = next(row for row in rows if row["question"] == "beta-alpha")
    assert (directed["x"], directed["y"], directed["protocol"], directed["arm"]) == ("beta", "alpha", "spa", "all")
    assert directed["item"] is None and directed["system"] is None
    assert isinstance(directed["value"], int)
    rated = next(row for row in rows if row["question"] == "overall")
    assert rated["system"] in ("alpha", "beta", "gamma") and rated["item"].startswith("s2.")
    assert rated["shown_at"] <= rated["received_at"]
    assert {row["page"] for row in rows} >= {"s1", "s2.ask", "s3.p1", "s4"}


def test_exclusions_tell_whether_they_stand(owner):
    study, api = closed_study(owner, 2), api_of(owner)
    first, second = study.assignments.order_by("pk")
    kept = Exclusion.objects.create(assignment=first, reason="copied_text", by=owner)
    taken_back = Exclusion.objects.create(assignment=second, reason="too_fast", by=owner)
    Exclusion.objects.create(assignment=second, reason="too_fast", by=owner, reverses=taken_back)
    rows = {row["number"]: row for row in api.get(f"studies/{study.code}/exclusions/").json()["results"]}
    assert [rows[pk]["is_standing"] for pk in (kept.pk, taken_back.pk)] == [True, False]
    assert len(rows) == 3
    reasons = [row["exclusion"] for row in api.get(f"studies/{study.code}/assignments/").json()["results"]]
    assert reasons == ["copied_text", None]


def test_people_are_left_out_and_taken_back_over_rest(owner):
    study, api = closed_study(owner, 2), api_of(owner)
    path = f"studies/{study.code}/exclusions/"
    names = [row["assignment"] for row in api.get(f"studies/{study.code}/assignments/").json()["results"]]
    bad = api.post(path, {"assignments": [names[0], "f" * 16], "reason": "technical"})
    assert (bad.status_code, bad.json()["errors"][0]["row"], bad.json()["errors"][0]["field"]) == (
        400,
        2,
        "assignments",
    )
    for body in ({}, {"assignments": names}, {"assignments": names, "reason": "dull"}, {"assignments": [], "reason": "technical"},
                 {"assignments": "x", "reason": "technical"}, {"assignments": names, "reason": "technical", "reopen": "yes"}):  # fmt: skip
        assert api.post(path, body).status_code == 400, body
    assert (
        api.post(path, {"assignments": names, "reason": "other"}).status_code == 409
    )  # says nothing of what other means
    assert (
        api.post(path, {"assignments": names, "reason": "technical", "reopen": True}).status_code == 409
    )  # closed: no place opens
    assert not Exclusion.objects.exists()
    made = api.post(path, {"assignments": names[:1], "reason": "technical"})
    assert (made.status_code, made.json()["created"][0]["assignment"]) == (201, names[0])
    assert api.post(path, {"assignments": names[:1], "reason": "technical"}).json() == {"created": []}
    number = made.json()["created"][0]["number"]
    assert api.post(f"{path}{number}/reverse/", {}).status_code == 201
    assert api.post(f"{path}{number}/reverse/", {}).status_code == 409
    assert [row["is_standing"] for row in api.get(path).json()["results"]] == [False, False]
    elsewhere = closed_study(owner, 1)
    assert api.post(f"studies/{elsewhere.code}/exclusions/{number}/reverse/", {}).status_code == 404
    foreign = api.post(f"studies/{elsewhere.code}/exclusions/", {"assignments": names[:1], "reason": "technical"})
    assert foreign.status_code == 400


# Lists


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
        for size in (1, 2, 6):
            with CaptureQueriesContext(connection) as queries:
                assert api.get(f"studies/{study.code}/{path}/?page_size={size}").status_code == 200
            counts.append(len(queries))
        assert counts[2] <= counts[1], path


def test_starting_an_analysis_twice_with_one_key_gives_one_job(owner, monkeypatch):
    from studies.services import jobs

    monkeypatch.setitem(jobs.registry._kinds, "analyse", jobs.Kind("analyse", lambda job, progress: {}, False, ()))
    study, api = closed_study(owner, 1), api_of(owner)
    path = f"studies/{study.code}/analyses/"
    first, second = (api.post(path, {}, **{"Idempotency-Key": "k1"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["code"] == second.json()["code"]
    assert api.post(path, {}).json()["code"] != first.json()["code"]
    assert api.get(f"studies/{study.code}/jobs/{first.json()['code']}/").json()["state"] == "waiting"
    assert api.post(path, {"origins": ["mars"]}).status_code == 400


def test_a_token_that_asks_too_often_is_told_when_to_come_back(owner, settings):
    from rest_framework.settings import api_settings

    study = draft_study(owner=owner)
    api, other = api_of(owner), api_of(owner)
    rates = dict(api_settings.DEFAULT_THROTTLE_RATES)
    try:
        api_settings.DEFAULT_THROTTLE_RATES["api"] = "3/min"
        codes = [api.get(f"studies/{study.code}/").status_code for _ in range(9)]
        late = api.get(f"studies/{study.code}/")
        # A minute may end in between; then one more window begins.
        assert codes.count(429) >= 3 and codes[:3] == [200] * 3
        assert late.status_code in (200, 429)
        assert other.get(f"studies/{study.code}/").status_code == 200
    finally:
        api_settings.DEFAULT_THROTTLE_RATES.update(rates)
    assert ApiToken.objects.count() == 2
