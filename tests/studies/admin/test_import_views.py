import io
import json
import os
import re
import time
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import include, path, reverse

from heval_site.urls import handler400, handler403, handler404, handler500  # noqa: F401 - the site's own error pages
from heval_site.urls import urlpatterns as site_urls
from studies.imports.bundle import bundle_text
from studies.imports.tables import import_job, uploads
from studies.models import AuditEvent, Job, Output, Study, StudyMember
from studies.services import jobs
from tests.accessibility import TAGS, violations
from tests.builders import add_spa, draft_study, launched, spa_draft, user

# The pages under their own addresses, wherever the site puts them.
urlpatterns = [path("studies/", include("studies.admin.urls")), *site_urls]
pytestmark = pytest.mark.urls(__name__)

GOOD = b"prompt_key,prompt_text,system,text\np900,Go.,alpha,A story.\np900,Go.,beta,Another one.\n"
BAD = GOOD + b"p901,Go.,zoe,x\n"


@pytest.fixture
def study(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    return draft_study(owner=user(), prompts=2)


@pytest.fixture
def editor(client, study):
    client.force_login(user())
    return client


def upload(client, study, data=GOOD, name="table.csv", **options):
    return client.post(reverse("import", args=[study.code]), {"file": SimpleUploadedFile(name, data), **options})


def outputs(study) -> int:
    return Output.objects.filter(system__study=study, prompt__key__startswith="p9").count()


def test_look_first_then_confirm(editor, study):
    response = upload(editor, study)
    assert response.status_code == 302 and outputs(study) == 0
    page = editor.get(response.url)
    text = page.content.decode()
    assert "Look, then confirm" in text and "A story." in text and "Write it into the study" in text
    assert page["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    done = editor.post(response.url, {"confirm": "1"}, follow=True)
    assert "All of it was written" in done.content.decode() and outputs(study) == 2
    assert AuditEvent.objects.get(study=study, verb="import").by == user()
    # Confirmed again, from another tab: the same page, nothing more.
    editor.post(response.url, {"confirm": "1"})
    assert AuditEvent.objects.filter(verb="import").count() == 1


def test_every_problem_is_on_the_page_and_nothing_can_be_confirmed(editor, study):
    address = upload(editor, study, BAD).url
    text = editor.get(address).content.decode()
    assert "the study has no system “zoe”" in text and "Write it into the study" not in text
    editor.post(address, {"confirm": "1"})
    assert outputs(study) == 0


def test_the_same_file_again_says_that_nothing_is_new(editor, study):
    editor.post(upload(editor, study).url, {"confirm": "1"})
    text = editor.get(upload(editor, study).url).content.decode()
    assert "Nothing new" in text and "Write it into the study" not in text


def test_a_study_that_moved_on_is_looked_at_again(editor, study):
    first, second = upload(editor, study).url, upload(editor, study, GOOD + b"p902,Go.,alpha,x\n").url
    editor.post(first, {"confirm": "1"})
    response = editor.post(second, {"confirm": "1"})
    text = response.content.decode()
    assert response.status_code == 409 and "Look at what the file would do now" in text and outputs(study) == 2
    assert editor.post(second, {"confirm": "1"}).status_code == 302 and outputs(study) == 3


def test_the_confirmation_reads_the_bytes_that_were_looked_at(editor, study):
    address = upload(editor, study).url
    kept = uploads.kept(address.rstrip("/").rpartition("/")[2], study.pk)
    kept.path.write_bytes(GOOD.replace(b"A story", b"B story"))
    response = editor.post(address, {"confirm": "1"})
    assert response.status_code == 409 and "no longer here" in response.content.decode() and outputs(study) == 0


def test_uploads_are_private_and_go(editor, study):
    address = upload(editor, study).url
    files = sorted(uploads.root().iterdir())
    assert [file.stat().st_mode & 0o777 for file in (uploads.root(), *files)] == [0o700, 0o600, 0o600]
    editor.post(address, {"confirm": "1"})
    assert [file.suffix for file in uploads.root().iterdir()] == [".json"]
    for file in uploads.root().iterdir():
        os.utime(file, (time.time() - 90_000,) * 2)
    assert uploads.purge() == 1 and not list(uploads.root().iterdir())
    assert editor.get(address).status_code == 404


@pytest.mark.parametrize("token", ["0" * 32, "x", "..", "0" * 31, "a" * 200])
def test_an_upload_that_is_not_there_is_not_found(editor, study, token):
    try:
        address = reverse("import_confirm", args=[study.code, token])
    except Exception:
        address = reverse("import", args=[study.code]) + f"{token}/"
    assert editor.get(address).status_code == 404


def test_an_upload_of_another_study_is_not_found(editor, study):
    other = draft_study(owner=user(), title="other")
    token = upload(editor, study).url.rstrip("/").rpartition("/")[2]
    assert editor.get(reverse("import_confirm", args=[other.code, token])).status_code == 404


def test_an_empty_form_or_file_is_said(editor, study):
    response = editor.post(reverse("import", args=[study.code]), {})
    assert response.status_code == 400 and "This field is required" in response.content.decode()
    response = upload(editor, study, b"")
    assert response.status_code == 400 and "empty" in response.content.decode()
    assert not list(uploads.root().iterdir())


def test_a_file_that_is_too_large_is_not_kept(editor, study, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_BYTES", 20)
    response = upload(editor, study)
    assert response.status_code == 400 and "more than 20 bytes" in response.content.decode()
    assert not list(uploads.root().iterdir())


def test_a_launched_study_takes_no_file(client, db):
    study = launched(spa_draft(prompts=12, owner=user()))
    client.force_login(user())
    assert "do not change any more" in client.get(reverse("import", args=[study.code])).content.decode()
    assert upload(client, study).status_code == 409


def test_markup_in_a_file_is_text_on_the_page(editor, study):
    data = b'prompt_key,prompt_text,system,text\np9,<script>alert(1)</script>,alpha,"<img src=x onerror=y>"\n'
    text = editor.get(upload(editor, study, data, "<b>.csv").url).content.decode()
    assert "<script>" not in text and "<img src=x" not in text and "&lt;script&gt;" in text and "<b>.csv" not in text


# Large files


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(import_job, "SMALL_BYTES", 10)


def test_a_large_file_is_read_and_written_by_jobs(editor, study, large):
    address = upload(editor, study).url
    waiting = editor.get(address).content.decode()
    assert 'http-equiv="refresh"' in waiting and "Waiting for its turn" in waiting
    assert jobs.run_waiting() == 1
    assert "Look, then confirm" in editor.get(address).content.decode() and outputs(study) == 0
    editor.post(address, {"confirm": "1"})
    editor.post(address, {"confirm": "1"})
    assert Job.objects.filter(kind="import").count() == 2 and jobs.run_waiting() == 1
    assert "All of it was written" in editor.get(address).content.decode() and outputs(study) == 2
    job = Job.objects.filter(kind="import").first()
    assert job.state == "done" and job.result["is_written"] and job.result["counts"]["outputs"]["new"] == 2


def test_a_writing_job_that_runs_twice_writes_once(editor, study, large):
    address = upload(editor, study).url
    jobs.run_waiting()
    editor.post(address, {"confirm": "1"})
    job = Job.objects.filter(kind="import").first()
    jobs.run_waiting()
    Job.objects.filter(pk=job.pk).update(state="waiting", ended_at=None)
    assert jobs.run_waiting() == 1 and outputs(study) == 2
    assert AuditEvent.objects.filter(verb="import").count() == 1


def test_a_waiting_job_can_be_cancelled(editor, study, large):
    address = upload(editor, study).url
    editor.post(address, {"cancel": "1"})
    text = editor.get(address).content.decode()
    assert "cancelled" in text and jobs.run_waiting() == 0


def test_a_job_that_fails_says_why(editor, study, large):
    address = upload(editor, study).url
    for file in uploads.root().glob("*.data"):
        file.unlink()
    jobs.run_waiting()
    assert "no longer here" in editor.get(address).content.decode()


# Preparation


def test_preparation_is_looked_at_before_it_is_done(editor, study):
    editor.post(upload(editor, study, GOOD.replace(b"A story.", b"``Hm'' he said.")).url, {"confirm": "1"})
    address = reverse("import_preparation", args=[study.code])
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


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"manner": "characters"}, "Say how many"),
        ({"manner": "longest_of_others"}, "Say which systems"),
        ({"manner": "longest_of_others", "trimmed": ["zoe"]}, "zoe is not one of"),
        ({"manner": "none", "minimum_words": "9", "maximum_words": "3"}, "Not below the least"),
        ({"manner": "half"}, "half is not one of"),
        ({"manner": "characters", "limit": "0"}, "greater than or equal to 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(editor, study, sent, said):
    response = editor.post(reverse("import_preparation", args=[study.code]), {"ends": "whole", "act": "look"} | sent)
    assert response.status_code == 400 and said in response.content.decode()


# One file for a study


def test_a_study_is_saved_and_made_again(client, db):
    study = spa_draft(prompts=6, owner=user())
    client.force_login(user())
    response = client.get(reverse("bundle", args=[study.code]))
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


# Who may


PAGES = ["import", "import_confirm", "import_preparation", "bundle"]


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        (None, [404, 404, 404, 404]),
        ("viewer", [403, 403, 403, 200]),
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
        client.get(reverse(name, args=[study.code, *([token] if name == "import_confirm" else [])])).status_code for name in PAGES
    ]  # fmt: skip
    assert found == expected
    if role not in ("editor", "owner"):
        assert upload(client, study).status_code in (403, 404) and outputs(study) == 0
        assert client.post(reverse("import_confirm", args=[study.code, token]), {"confirm": 1}).status_code in (
            403,
            404,
        )
        assert outputs(study) == 0


def test_who_is_not_logged_in_is_sent_there(client, study):
    for name in ("import", "import_preparation", "bundle"):
        response = client.get(reverse(name, args=[study.code]))
        assert response.status_code == 302 and "/login/" in response.url
    assert client.get(reverse("bundle_upload")).status_code == 302


def test_a_form_of_another_site_is_refused(study, client):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user())
    assert upload(strict, study).status_code == 403 and not list(uploads.root().iterdir())


# The command


def run(*arguments) -> str:
    out = io.StringIO()
    call_command("import_study", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def table(tmp_path) -> Path:
    file = tmp_path / "fables.csv"
    file.write_bytes(GOOD)
    return file


def test_the_command_looks_and_writes(study, table):
    assert "Nothing was written." in run(str(study.code), str(table), "--dry-run") and outputs(study) == 0
    assert "Written into" in run(str(study.code), str(table)) and outputs(study) == 2
    assert "nothing was written" in run(str(study.code), str(table))


def test_the_command_makes_a_new_study_only_if_something_is_in_it(db, table):
    with pytest.raises(SystemExit):
        run("new", str(table))
    assert "Nothing was written" in run("new", str(table), "--creates-systems", "--dry-run")
    assert not Study.objects.exists()
    user("ada")
    result = json.loads(run("new", str(table), "--creates-systems", "--json", "--owner", "ada"))
    study = Study.objects.get()
    assert (result["study"], result["is_written"], study.title) == (str(study.code), True, "fables")
    assert study.owner.username == "ada" and study.arms.get().name == "all"


def test_the_command_reads_ready_made_batches(study, tmp_path):
    add_spa(study, m=1)
    file = tmp_path / "b.jsonl"
    file.write_text(
        json.dumps({"batch": "r1", "prompt_key": "p9", "prompt_text": "P", "outputs": {"alpha": "x", "beta": ""}})
    )
    with pytest.raises(SystemExit):
        run(str(study.code), str(file), "--batches")
    run(str(study.code), str(file), "--batches", "--allows-empty")
    assert study.batches.get().key == "r1"


def test_the_command_reads_a_bundle(db, tmp_path):
    file = tmp_path / "study.json"
    file.write_text(bundle_text(spa_draft(prompts=6)))
    assert "Nothing was written" in run("new", str(file), "--dry-run") and Study.objects.count() == 1
    assert "is a new draft" in run("new", str(file)) and Study.objects.count() == 2
    file.write_text('{\n "schema": "heval.bundle/2"}')
    with pytest.raises(CommandError, match="schema: must be"):
        run("new", str(file))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x", "{table}"], "no study x"),
        (["new", "nowhere.csv"], "no file"),
        (["new", "{table}", "--owner", "nobody"], "no user"),
    ],
)
def test_the_command_says_what_it_cannot_find(db, table, arguments, said):
    with pytest.raises(CommandError, match=said):
        run(*(each.format(table=table) for each in arguments))


# In a browser


WIDTHS = [1280, 375]


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
def test_the_pages_can_be_used_by_everybody(live_server, browser, settings, tmp_path, width):
    settings.MEDIA_ROOT = tmp_path / "media"
    study = draft_study(owner=user(), prompts=2)
    context = browser.new_context(viewport={"width": width, "height": 900}, java_script_enabled=True)
    page = context.new_page()
    _log_in(page, live_server)
    shots = os.environ.get("HEVAL_SHOTS")

    def look_at(name):
        if shots:
            page.screenshot(path=f"{shots}/{name}-{width}.png", full_page=True)
        found = violations(page, *TAGS, "best-practice")
        assert not found, f"{name}: {found}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is wider than the screen"

    page.goto(f"{live_server.url}{reverse('import', args=[study.code])}")
    look_at("import")
    rows = [f"p{n},Prompt {n},{system},{'``so``' if system == 'beta' else 'So'} it went {n}.\n" for n in range(30) for system in ("alpha", "beta")]  # fmt: skip
    head = "prompt_key,prompt_text,system,text,note\n"
    for name, data in (
        ("report", head + "".join(row.replace("\n", ",\n") for row in rows)),
        ("problems", BAD.decode() + "p9\n,,,\n"),
    ):
        page.goto(f"{live_server.url}{reverse('import', args=[study.code])}")
        page.set_input_files(
            "input[type=file]", {"name": "stories.csv", "mimeType": "text/csv", "buffer": data.encode()}
        )
        page.get_by_role("button", name="Look at the file").click()
        page.wait_for_url("**/import/*/")
        look_at(name)
        if name == "report":
            for summary in page.locator("summary").all():
                summary.click()
            look_at("report-open")
            page.get_by_role("button", name="Write it into the study").click()
            page.get_by_text("All of it was written").wait_for()
            look_at("written")
    page.goto(f"{live_server.url}{reverse('import_preparation', args=[study.code])}")
    page.get_by_label("Tokeniser quotes become quotes").check()
    page.get_by_role("button", name="See what it changes").click()
    page.get_by_text("This would change").wait_for()
    look_at("preparation")
    page.goto(f"{live_server.url}{reverse('bundle_upload')}")
    look_at("bundle")
    context.close()


def _log_in(page, live_server):
    page.goto(f"{live_server.url}/admin/login/")
    page.fill("#id_username", user().username)
    page.fill("#id_password", "a password")
    page.locator("[type=submit]").click()
    page.wait_for_url("**/admin/")
