"""The resources of the REST interface: studies, outputs, systems, assignments, answers, exclusions."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotators.models import Exclusion
from studies.models import AuditEvent, Output, Study, audit
from tests.builders import draft_study, spa_study

from .rest import api_of, closed_study

pytestmark = pytest.mark.django_db


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
        ({"state": "launched"}, "state"),
        ({"owner": "somebody"}, "owner"),
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
    assert answer.status_code == 400, answer.content
    if field:
        assert field in [error["field"] for error in answer.json()["errors"]]
    assert Study.objects.filter(pk=study.pk).values().get() == before


def test_a_draft_is_changed_once_and_a_stale_change_is_refused(owner):
    study, api = draft_study(owner=owner), api_of(owner)
    revision = api.get(f"studies/{study.code}/").json()["revision"]
    first = api.patch(f"studies/{study.code}/", {"contact": "a@example.org", "revision": revision})
    assert (first.status_code, first.json()["contact"]) == (200, "a@example.org")
    assert first.json()["revision"] == revision + 1
    assert api.patch(f"studies/{study.code}/", {"contact": "b@example.org", "revision": revision}).status_code == 409
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
    assert answer.json()["errors"] == [
        {"row": 8, "field": "system", "message": "This row repeats row 1. Remove one of the two."}
    ]
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
    assert [rows[pk]["is_active"] for pk in (kept.pk, taken_back.pk)] == [True, False]
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
    for body in (
        {},
        {"assignments": names},
        {"assignments": names, "reason": "dull"},
        {"assignments": [], "reason": "technical"},
        {"assignments": "x", "reason": "technical"},
        {"assignments": names, "reason": "technical", "reopen": "yes"},
    ):
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
    assert [row["is_active"] for row in api.get(path).json()["results"]] == [False, False]
    elsewhere = closed_study(owner, 1)
    assert api.post(f"studies/{elsewhere.code}/exclusions/{number}/reverse/", {}).status_code == 404
    foreign = api.post(f"studies/{elsewhere.code}/exclusions/", {"assignments": names[:1], "reason": "technical"})
    assert foreign.status_code == 400
