"""Stimuli and bundles are imported on pages: looked at first, then written, once, by whom may."""

import html
import json
import os
import re
import time

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.imports.bundle_files import bundle_text
from studies.imports.tables import run
from studies.models import AuditEvent, Job, Output, Study, StudyMember
from studies.services import jobs
from tests.builders import draft_study, launched, spa_draft, user
from tests.studies.admin.imports.uploaded import BAD, GOOD, outputs, upload


def test_look_first_then_confirm(editor, study):
    response = upload(editor, study)
    assert response.status_code == 302 and outputs(study) == 0
    page = editor.get(response.url)
    text = page.content.decode()
    assert "Check, then confirm" in text and "A story." in text and "Import into the study" in text
    assert page["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    done = editor.post(response.url, {"confirm": "1"}, follow=True)
    assert "The whole file was imported" in done.content.decode() and outputs(study) == 2
    assert AuditEvent.objects.get(study=study, verb="import").by == user()
    # Confirmed again, from another tab: the same page, nothing more.
    editor.post(response.url, {"confirm": "1"})
    assert AuditEvent.objects.filter(verb="import").count() == 1


def test_every_problem_is_on_the_page_and_nothing_can_be_confirmed(editor, study):
    address = upload(editor, study, BAD).url
    text = editor.get(address).content.decode()
    assert "the study has no system “zoe”" in text and "Import into the study" not in text
    editor.post(address, {"confirm": "1"})
    assert outputs(study) == 0


def test_the_same_file_again_says_that_nothing_is_new(editor, study):
    editor.post(upload(editor, study).url, {"confirm": "1"})
    text = editor.get(upload(editor, study).url).content.decode()
    assert "Nothing new" in text and "Import into the study" not in text


def test_a_study_that_moved_on_is_looked_at_again(editor, study):
    first, second = upload(editor, study).url, upload(editor, study, GOOD + b"p902,Go.,alpha,x\n").url
    editor.post(first, {"confirm": "1"})
    response = editor.post(second, {"confirm": "1"})
    text = response.content.decode()
    assert response.status_code == 409 and "Check the new report" in text and outputs(study) == 2
    assert editor.post(second, {"confirm": "1"}).status_code == 302 and outputs(study) == 3


def test_the_confirmation_reads_the_bytes_that_were_looked_at(editor, study):
    address = upload(editor, study).url
    kept = run.get_upload(address.rstrip("/").rpartition("/")[2], study.pk)
    kept.path.write_bytes(GOOD.replace(b"A story", b"B story"))
    response = editor.post(address, {"confirm": "1"})
    assert response.status_code == 409 and "no longer exists" in response.content.decode() and outputs(study) == 0


def test_uploads_are_private_and_go(editor, study):
    address = upload(editor, study).url
    files = sorted(run.get_or_create_uploads_folder().iterdir())
    assert [file.stat().st_mode & 0o777 for file in (run.get_or_create_uploads_folder(), *files)] == [
        0o700,
        0o600,
        0o600,
    ]
    editor.post(address, {"confirm": "1"})
    assert [file.suffix for file in run.get_or_create_uploads_folder().iterdir()] == [".json"]
    for file in run.get_or_create_uploads_folder().iterdir():
        os.utime(file, (time.time() - 90_000,) * 2)
    assert run.purge_old_files() == 1 and not list(run.get_or_create_uploads_folder().iterdir())
    assert editor.get(address).status_code == 404


@pytest.mark.parametrize("token", ["0" * 32, "x", "..", "0" * 31, "a" * 200])
def test_an_upload_that_is_not_there_is_not_found(editor, study, token):
    try:
        address = reverse("import_confirm", args=[study.pk, token])
    except Exception:
        address = reverse("import", args=[study.pk]) + f"{token}/"
    # The admin takes an address with ".." for a record that does not exist.
    assert editor.get(address, follow=token == "..").status_code == (200 if token == ".." else 404)


def test_an_upload_of_another_study_is_not_found(editor, study):
    other = draft_study(owner=user(), title="other")
    token = upload(editor, study).url.rstrip("/").rpartition("/")[2]
    assert editor.get(reverse("import_confirm", args=[other.pk, token])).status_code == 404


def test_an_empty_form_or_file_is_said(editor, study):
    response = editor.post(reverse("import", args=[study.pk]), {})
    assert response.status_code == 400 and "Choose a file, or paste rows" in response.content.decode()
    response = upload(editor, study, b"")
    assert response.status_code == 400 and "empty" in response.content.decode()
    assert not list(run.get_or_create_uploads_folder().iterdir())


def test_a_file_that_is_too_large_is_not_kept(editor, study, monkeypatch):
    monkeypatch.setattr(run, "MAX_BYTES", 20)
    response = upload(editor, study)
    assert response.status_code == 400 and "more than 20 bytes" in response.content.decode()
    assert not list(run.get_or_create_uploads_folder().iterdir())


def test_a_launched_study_takes_no_file(client, db):
    study = launched(spa_draft(prompts=12, owner=user()))
    client.force_login(user())
    assert "can no longer change" in client.get(reverse("import", args=[study.pk])).content.decode()
    assert upload(client, study).status_code == 409


def test_markup_in_a_file_is_text_on_the_page(editor, study):
    data = b'prompt_key,prompt_text,system,text\np9,<script>alert(1)</script>,alpha,"<img src=x onerror=y>"\n'
    text = editor.get(upload(editor, study, data, "<b>.csv").url).content.decode()
    assert "<script>" not in text and "<img src=x" not in text and "&lt;script&gt;" in text and "<b>.csv" not in text


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(run, "SMALL_BYTES", 10)


def test_a_large_file_is_read_and_written_by_jobs(editor, study, large):
    address = upload(editor, study).url
    waiting = editor.get(address).content.decode()
    assert 'http-equiv="refresh"' in waiting and "It will start in a moment." in waiting
    assert jobs.run_waiting_jobs() == 1
    assert "Check, then confirm" in editor.get(address).content.decode() and outputs(study) == 0
    editor.post(address, {"confirm": "1"})
    editor.post(address, {"confirm": "1"})
    assert Job.objects.filter(kind="import").count() == 2 and jobs.run_waiting_jobs() == 1
    assert "The whole file was imported" in editor.get(address).content.decode() and outputs(study) == 2
    job = Job.objects.filter(kind="import").first()
    assert job.state == "done" and job.result["is_written"] and job.result["counts"]["outputs"]["new"] == 2


def test_a_writing_job_that_runs_twice_writes_once(editor, study, large):
    address = upload(editor, study).url
    jobs.run_waiting_jobs()
    editor.post(address, {"confirm": "1"})
    job = Job.objects.filter(kind="import").first()
    jobs.run_waiting_jobs()
    Job.objects.filter(pk=job.pk).update(state="waiting", ended_at=None)
    assert jobs.run_waiting_jobs() == 1 and outputs(study) == 2
    assert AuditEvent.objects.filter(verb="import").count() == 1


def test_a_waiting_job_can_be_cancelled(editor, study, large):
    address = upload(editor, study).url
    editor.post(reverse("admin:studies_job_cancel", args=[Job.objects.get(kind="import").code]))
    text = editor.get(address).content.decode()
    assert "cancelled" in text and jobs.run_waiting_jobs() == 0


def test_a_job_that_fails_says_why(editor, study, large):
    address = upload(editor, study).url
    for file in run.get_or_create_uploads_folder().glob("*.data"):
        file.unlink()
    jobs.run_waiting_jobs()
    assert "no longer exists" in editor.get(address).content.decode()


def test_preparation_is_looked_at_before_it_is_done(editor, study):
    editor.post(upload(editor, study, GOOD.replace(b"A story.", b"``Hm'' he said.")).url, {"confirm": "1"})
    address = reverse("import_preparation", args=[study.pk])
    sent = {"is_tokeniser_quotes": "on", "manner": "none", "ends": "whole"}
    page = editor.post(address, sent | {"act": "look"}).content.decode()
    assert "This would change 1 of" in page and "``Hm&#x27;&#x27; he said." in page
    assert not Output.objects.exclude(original="").exists()
    seen = re.search(r'name="seen" value="(\w+)"', page)[1]
    other = editor.post(address, sent | {"act": "prepare", "seen": seen, "is_straight_quotes": "on"})
    assert other.status_code == 409 and not Output.objects.exclude(original="").exists()
    assert "Done: 1 of" in editor.post(address, sent | {"act": "prepare", "seen": seen}).content.decode()
    assert Output.objects.exclude(original="").get().text == '"Hm" he said.'
    study.refresh_from_db()
    assert study.preparation["normalisation"]["tokeniser_quotes"]
    box = r'<input type="checkbox" name="is_tokeniser_quotes"[^>]* checked>'
    assert re.search(box, editor.get(address).content.decode())


def test_a_file_of_priming_texts_leaves_out_outputs_that_copy_it(editor, study):
    story = "one two three four five six seven eight nine ten eleven"
    editor.post(upload(editor, study, GOOD.replace(b"A story.", story.encode())).url, {"confirm": "1"})
    address, n = reverse("import_preparation", args=[study.pk]), Output.objects.count()
    sent = {"manner": "none", "ends": "whole", "copied": "80", "priming": "", "act": "look"}
    file = SimpleUploadedFile("priming.txt", f"Another text.\n---\n{story.upper()}\n---\n".encode())
    page = editor.post(address, sent | {"priming_file": file}).content.decode()
    assert "1 output left out" in page and "copies 100% of a reference text" in page and Output.objects.count() == n
    priming = html.unescape(re.search(r'<textarea name="priming"[^>]*>\s*([^<]*)<', page)[1])
    assert priming.split("\n---\n")[:2] == ["Another text.", story.upper()]
    seen = re.search(r'name="seen" value="(\w+)"', page)[1]
    done = editor.post(address, sent | {"priming": priming, "act": "prepare", "seen": seen})
    assert "(1 output left out) changed" in done.content.decode() and Output.objects.count() == n - 1
    study.refresh_from_db()
    assert study.preparation["output_filters"][0]["references"] == ["Another text.", story.upper()]
    # The stored texts come back.
    assert story.upper() in editor.get(address).content.decode()
    wrong = editor.post(address, sent | {"priming_file": SimpleUploadedFile("p.txt", b"\xff\xfe\x00a")})
    assert wrong.status_code == 400 and "The file is not UTF-8 text. Save it as UTF-8." in wrong.content.decode()


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"manner": "characters"}, "number of characters or words is missing"),
        ({"manner": "longest_of_others"}, "Tick the systems"),
        ({"manner": "longest_of_others", "trimmed": ["zoe"]}, "zoe is not one of"),
        ({"manner": "none", "minimum_words": "9", "maximum_words": "3"}, "is below the minimum"),
        ({"manner": "half"}, "half is not one of"),
        ({"manner": "characters", "limit": "0"}, "greater than or equal to 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(editor, study, sent, said):
    response = editor.post(reverse("import_preparation", args=[study.pk]), {"ends": "whole", "act": "look"} | sent)
    assert response.status_code == 400 and said in response.content.decode()


def test_a_study_is_saved_and_made_again(client, db):
    study = spa_draft(prompts=6, owner=user())
    client.force_login(user())
    response = client.get(reverse("bundle", args=[study.pk]))
    assert response["Content-Disposition"] == f'attachment; filename="{study.code}.bundle.json"'
    assert response.content.decode() == bundle_text(study)
    sent = {"file": SimpleUploadedFile("b.json", response.content)}
    assert client.post(reverse("bundle_upload"), sent).status_code == 302
    again = Study.objects.order_by("pk").last()
    assert again.pk != study.pk and again.members.get().user == user()
    assert client.get(reverse("bundle_upload")).status_code == 200


def test_a_wrong_bundle_is_said_by_path(editor, study):
    value = json.loads(bundle_text(study))
    value["arms"][0]["condition"] = "<b>"
    sent = {"file": SimpleUploadedFile("b.json", json.dumps(value).encode())}
    response = editor.post(reverse("bundle_upload"), sent)
    assert response.status_code == 400 and "arms[0].condition" in response.content.decode()
    assert Study.objects.count() == 1


PAGES = ["import", "import_confirm", "import_preparation", "bundle"]


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (None, [404, 404, 404, 404]),
        # A draft's bundle tells its draw, which only who may change it reads before the study is closed.
        ("viewer", [403, 403, 403, 403]),
        ("coder", [403, 403, 403, 403]),
        ("editor", [200, 200, 200, 200]),
        ("owner", [200, 200, 200, 200]),
    ],
)
def test_roles_decide(editor, client, study, role, expected):
    token = upload(editor, study).url.rstrip("/").rpartition("/")[2]
    other = get_user_model().objects.create_user("other", password="x", is_staff=True)
    if role:
        StudyMember.objects.create(study=study, user=other, role=role)
    client.force_login(other)
    found = [
        client.get(reverse(name, args=[study.pk, *([token] if name == "import_confirm" else [])])).status_code
        for name in PAGES
    ]
    assert found == expected
    if role not in ("editor", "owner"):
        assert upload(client, study).status_code in (403, 404) and outputs(study) == 0
        assert client.post(reverse("import_confirm", args=[study.pk, token]), {"confirm": 1}).status_code in (
            403,
            404,
        )
        assert outputs(study) == 0


def test_who_is_not_logged_in_is_sent_there(client, study):
    for name in ("import", "import_preparation", "bundle"):
        response = client.get(reverse(name, args=[study.pk]))
        assert response.status_code == 302 and "/login/" in response.url
    assert client.get(reverse("bundle_upload")).status_code == 302


def test_a_form_of_another_site_is_refused(study, client):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user())
    assert upload(strict, study).status_code == 403 and not list(run.get_or_create_uploads_folder().iterdir())
