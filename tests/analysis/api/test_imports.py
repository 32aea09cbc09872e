"""A file over REST goes through the same importer as on the admin's page: all or nothing, at once or by a job."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.imports.tables import run, writing
from studies.models import AuditEvent, Job, Study
from studies.services import jobs
from tests.annotators.imports.drafts import QUALTRICS, RATED, rating_draft, stored
from tests.boards.builders import png, zipped
from tests.builders import draft_study, spa_study
from tests.studies.stimuli.workbooks import workbook

from .rest import api_of

pytestmark = pytest.mark.django_db

TABLE = b"prompt_key,prompt_text,prompt_image,system,text\nq1,Describe it.,i/one.png,delta,A red square.\n"
IMAGES = {"stimuli.csv": TABLE, "i/one.png": png(1)}
NEW = {"creates_systems": True}


@pytest.fixture
def draft(owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.MEDIA_ROOT.mkdir()
    return draft_study(owner=owner)


def send(study: Study, data: bytes, name="stimuli.zip", where="imports/", **options):
    api = api_of(study.owner)
    sent = {"file": SimpleUploadedFile(name, data), "settings": json.dumps(options)}
    return api, api.client.post(f"/api/v1/studies/{study.code}/{where}", sent, headers=api.headers)


def kept_files():
    return list(run.get_or_create_uploads_folder().glob("*.data"))


def test_a_zip_brings_prompts_with_their_images_and_a_repeated_one_changes_nothing(draft):
    _, first = send(draft, zipped(IMAGES), **NEW)
    assert first.status_code == 201, first.content
    body = first.json()
    assert (body["state"], body["is_written"], body["rows"], body["errors"]) == ("done", True, 1, [])
    assert {kind: count["new"] for kind, count in body["counts"].items()} == {
        "systems": 1,
        "prompts": 1,
        "outputs": 1,
        "batches": 0,
    }
    assert draft.prompts.get(key="q1").media.endswith(".webp")
    _, second = send(draft, zipped(IMAGES), **NEW)
    assert (second.status_code, second.json()["counts"]["prompts"]["same"]) == (200, 1)
    assert not kept_files()


def test_all_faults_have_their_row_and_nothing_is_stored(draft):
    table = TABLE + b"q2,Describe it.,i/gone.png,delta,A tree.\nq3,,,omega,A house.\n"
    _, refused = send(draft, zipped(IMAGES | {"stimuli.csv": table}))
    found = refused.json()["errors"]
    assert refused.status_code == 400
    assert {2, 3, 4} <= {error["row"] for error in found}, found
    assert any("i/gone.png" in error["message"] for error in found)
    assert not draft.prompts.filter(key__startswith="q").exists() and not kept_files()


def test_a_dry_run_reports_and_writes_nothing(draft):
    _, looked = send(draft, zipped(IMAGES), is_dry_run=True, **NEW)
    assert (looked.status_code, looked.json()["is_written"]) == (200, False)
    assert looked.json()["counts"]["prompts"]["new"] == 1
    assert not draft.prompts.filter(key="q1").exists() and not kept_files()


def test_a_large_file_is_read_by_a_job_whose_report_can_be_polled(draft, monkeypatch):
    monkeypatch.setattr(run, "SMALL_BYTES", 0)
    api, accepted = send(draft, zipped(IMAGES), **NEW)
    path = f"studies/{draft.code}/imports/{accepted.json()['id']}/"
    assert (accepted.status_code, api.get(path).json()["state"]) == (202, Job.State.WAITING)
    jobs.run_waiting_jobs()
    report = api.get(path).json()
    assert (report["state"], report["is_written"], report["errors"]) == ("done", True, [])
    _, wrong = send(draft, zipped(IMAGES | {"more.exe": b"x"}), **NEW)
    jobs.run_waiting_jobs()
    report = api.get(f"studies/{draft.code}/imports/{wrong.json()['id']}/").json()
    assert not report["is_written"] and "neither a table nor" in report["errors"][0]["message"]
    assert api.get(f"studies/{draft.code}/imports/{'0' * 32}/").status_code == 404


def test_a_study_that_was_launched_takes_no_file(owner, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "SMALL_BYTES", 0)
    settings.MEDIA_ROOT = tmp_path / "media"
    study = spa_study(owner)
    _, refused = send(study, TABLE, "stimuli.csv")
    assert refused.status_code == 409 and not kept_files()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"replace": True}, "replace"),
        ({"is_dry_run": "yes"}, "is_dry_run"),
        ({"max_pairs": -1}, "max_pairs"),
        ({"makes_pairs": True, "makes_batches": True}, "makes_pairs"),
    ],
)
def test_a_wrong_setting_is_named(draft, options, field):
    _, refused = send(draft, TABLE, "stimuli.csv", **options)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, field)


WIDE = b"question,ada,bo\nWhat is the capital of France?,Paris is the capital of it.,It is a city called Lyon.\n"
ROLES = ["prompt_text=question", "output:ada=ada", "output:bo=bo"]


def test_columns_with_other_names_are_mapped_over_rest(draft):
    _, refused = send(draft, WIDE, "own.csv", **NEW)
    assert refused.status_code == 400 and "no column prompt_key" in refused.content.decode()
    _, looked = send(draft, WIDE, "own.csv", is_dry_run=True, proposes_columns=True, **NEW)
    assert looked.json()["columns"] == ROLES
    assert [text for _, text in looked.json()["samples"]["bo"]] == ["It is a city called Lyon."]
    _, wrong = send(draft, WIDE, "own.csv", columns=["question"], **NEW)
    assert wrong.status_code == 400 and "maps no column" in wrong.content.decode()
    _, done = send(draft, WIDE, "own.csv", columns=looked.json()["columns"], human_systems=["bo"], **NEW)
    assert done.status_code == 201 and done.json()["counts"]["outputs"]["new"] == 2
    humans = draft.systems.filter(name__in=["ada", "bo"]).values_list("name", "is_human")
    assert dict(humans) == {"ada": False, "bo": True}


def test_a_sheet_is_named_over_rest(draft):
    data = workbook({"Notes": [["Made in May"]], "Data": [row.split(",") for row in WIDE.decode().split("\n") if row]})
    _, refused = send(draft, data, "own.xlsx", columns=ROLES, **NEW)
    assert refused.status_code == 400 and "Choose one" in refused.content.decode()
    _, done = send(draft, data, "own.xlsx", columns=ROLES, sheet="Data", **NEW)
    assert done.status_code == 201


# Answers given elsewhere

OWN = b"who,about,candidate,points given\nann,p000,ada,4\nann,p000,curie,2\nbob,p001,ada,5\n"
OWN_ROLES = ["annotator=who", "prompt_key=about", "system=candidate", "value=points given"]


def send_answers(study: Study, data: bytes, name="own.csv", **options):
    return send(study, data, name, "imports/answers/", **options)[1]


def test_answers_are_looked_at_mapped_and_stored_over_rest(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    study = rating_draft()
    refused = send_answers(study, OWN)
    assert refused.status_code == 400 and "no column annotator" in refused.content.decode()
    looked = send_answers(study, OWN, is_dry_run=True, proposes_columns=True)
    assert looked.status_code == 200 and looked.json()["columns"] == OWN_ROLES and not stored(study)
    assert looked.json()["counts"]["annotators"]["new"] == 2
    done = send_answers(study, OWN, columns=OWN_ROLES)
    assert done.status_code == 201 and done.json()["is_written"], done.content
    assert stored(study) == RATED and Study.objects.get(pk=study.pk).state == Study.State.CLOSED
    assert AuditEvent.objects.get(study=study, verb="import answers").by == study.owner
    again = send_answers(study, OWN, columns=OWN_ROLES)
    assert (again.status_code, again.json()["counts"]["answers"]["same"]) == (200, 3)
    assert not kept_files()


def test_one_row_for_each_person_comes_over_rest(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    study = rating_draft()
    done = send_answers(
        study, QUALTRICS.format(label="“Write the tale number 1.” as told by ada").encode(), proposes_columns=True
    )
    assert done.status_code == 201 and "value:overall@p001@ada=Q2" in done.json()["columns"]
    assert ("p001", "ada", "overall", 3) in stored(study)


def test_a_large_file_of_answers_is_read_by_a_job(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "SMALL_BYTES", 0)
    settings.MEDIA_ROOT = tmp_path / "media"
    study = rating_draft()
    accepted = send_answers(study, OWN, columns=OWN_ROLES)
    path = f"studies/{study.code}/imports/{accepted.json()['id']}/"
    assert accepted.status_code == 202 and not stored(study)
    jobs.run_waiting_jobs()
    report = api_of(study.owner).get(path).json()
    assert (report["state"], report["is_written"]) == ("done", True) and stored(study) == RATED


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["annotator"]}, "has no role or no column"),
        ({"columns": ["nobody=who"]}, "heval has no column"),
        ({"columns": {"annotator": "who"}}, "not a JSON list"),
        ({"creates_systems": True}, "creates_systems"),
    ],
)
def test_a_wrong_setting_of_answers_is_named(settings, tmp_path, options, message):
    settings.MEDIA_ROOT = tmp_path / "media"
    refused = send_answers(rating_draft(), OWN, **options)
    assert refused.status_code == 400 and message in refused.content.decode() and not kept_files()


def test_a_study_that_collects_takes_no_file_of_answers(owner, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    refused = send_answers(spa_study(owner), OWN)
    assert refused.status_code == 409 and "Clone it" in refused.content.decode() and not kept_files()


def test_a_sheet_of_answers_is_named_over_rest_and_chosen_on_the_page(settings, tmp_path, client):
    settings.MEDIA_ROOT = tmp_path / "media"
    rows = [row.split(",") for row in OWN.decode().splitlines()]
    data = workbook({"Notes": [["Made in May"]], "Data": rows})
    study = rating_draft()
    refused = send_answers(study, data, "own.xlsx", columns=OWN_ROLES)
    assert refused.status_code == 400 and "Choose one" in refused.content.decode()
    client.force_login(study.owner)
    sent = client.post(reverse("import_answers", args=[study.pk]), {"file": SimpleUploadedFile("own.xlsx", data)})
    page = client.post(sent.url, {"sheet": "Data"}, follow=True).content.decode()
    assert "Check, then confirm" in page
    roles = {"role": [role.partition("=")[0] for role in OWN_ROLES], "columns": "1"}
    assert "Check, then confirm" in client.post(sent.url, roles, follow=True).content.decode()
    client.post(sent.url, {"confirm": "1"})
    assert stored(study) == RATED
    other = rating_draft()
    assert send_answers(other, data, "own.xlsx", columns=OWN_ROLES, sheet="Data").status_code == 201


def test_a_running_import_shows_its_rows_and_is_cancelled(draft, monkeypatch, settings, tmp_path):
    settings.UPLOADS_ROOT = tmp_path / "uploads"
    monkeypatch.setattr(run, "SMALL_BYTES", 0)
    monkeypatch.setattr(writing, "CHUNK", 2)
    rows = "".join(f"q{n},Describe {n}.,alpha,A square {n}.\n" for n in range(9))
    api, sent = send(draft, f"prompt_key,prompt_text,system,text\n{rows}".encode(), "t.csv")
    assert sent.status_code == 202
    job, seen = f"/api/v1/studies/{draft.code}/jobs/{sent.json()['job']}/", []

    def look(seconds):
        seen.append(api.client.get(job, headers=api.headers).json())
        if len(seen) == 4:
            answer = api.client.post(f"{job}cancel/", headers=api.headers)
            assert (answer.status_code, answer.json()["state"]) == (200, "running")

    monkeypatch.setattr(writing, "let_others_write", look)
    assert jobs.run_waiting_jobs() == 1
    assert [(step["done"], step["total"]) for step in seen[:4]] == [(0, 18), (0, 18), (2, 18), (4, 18)]
    assert api.client.get(job, headers=api.headers).json()["state"] == "cancelled"
    assert not draft.prompts.filter(key__startswith="q").exists()
    again = api.client.post(f"{job}cancel/", headers=api.headers)
    assert again.status_code == 409 and "has already ended" in again.content.decode()
