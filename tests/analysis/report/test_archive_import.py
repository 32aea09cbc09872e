"""A closed study moves to another site by its archive, and its analyses give the same numbers there."""

import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from analysis.data.exports import BLOCK_MAKERS
from analysis.data.flat_rows import Selection
from analysis.models import AnalysisRun
from analysis.report.archive_import import import_archive
from analysis.report.archive_rows import ArchiveRefused
from analysis.report.rerun import Comparison
from annotators.models import Annotator, Assignment
from studies.design.serialization import frozen_design_mismatch_text
from studies.language.catalogues import version_of
from studies.models import Job, Output, Study
from studies.services.jobs import run_waiting_jobs
from tests.analysis.api.rest import closed_study
from tests.analysis.report.archived import analysed, archive_file, hide, rewritten
from tests.analysis.report.reported import closed
from tests.builders import exposures_draft, launched, spa_study, user
from tests.players import submitted
from tests.pseudo_language import pseudo_text

pytestmark = pytest.mark.postgres


@pytest.fixture
def file(db, tmp_path):
    study = closed_study(user("owner"))
    path = archive_file(study, tmp_path / "archive.zip")
    hide(study)
    return path


def test_the_study_arrives_whole_and_its_analysis_has_the_same_numbers(db, tmp_path):
    study = analysed(user("owner"))
    path = archive_file(study, tmp_path / "archive.zip")
    code = study.code
    tables = {
        name: b"".join(BLOCK_MAKERS["csv"](name, Selection(study))) for name in ("responses", "assignments", "items")
    }
    hide(study)
    owner = user("elsewhere")
    again = import_archive(path, owner)
    assert (
        again.code == code and again.state == "closed" and again.owner == owner and again.closed_at == study.closed_at
    )
    assert not frozen_design_mismatch_text(again)
    assert {one: b"".join(BLOCK_MAKERS["csv"](one, Selection(again))) for one in tables} == tables
    run_waiting_jobs()
    old, new = (AnalysisRun.objects.get(study=one).result for one in (study, again))
    comparison = Comparison()
    comparison.compare({**old, "notices": []}, {**new, "notices": []})
    assert comparison.differences == [] and comparison.n_values > 5000
    assert [one for one in new["notices"] if one not in old["notices"]] == [
        {"code": "archive", "severity": "info", "text": new["notices"][0]["text"]}
    ]
    event = again.audit_events.get(verb="import archive")
    assert event.by == owner and event.data["code"] == str(code)
    # Its own archive says so too.
    with zipfile.ZipFile(archive_file(again, path)) as archive:
        assert b'"import archive"' in archive.read("rows/studies.auditevent.jsonl")


def test_the_same_archive_twice_is_refused_by_name_unless_a_copy_is_wanted(file):
    owner = user("elsewhere")
    first = import_archive(file, owner)
    people, n = Annotator.objects.count(), Assignment.objects.count()
    with pytest.raises(ArchiveRefused, match=f"This site has the study “{first.title.split()[0]}"):
        import_archive(file, owner)
    copy = import_archive(file, owner, is_copy=True)
    assert copy.code != first.code and Assignment.objects.count() == n + first.assignments.count()
    # They are the same people.
    assert Annotator.objects.count() == people
    assert set(copy.assignments.values_list("annotator")) == set(first.assignments.values_list("annotator"))
    assert not set(copy.assignments.values_list("code")) & set(first.assignments.values_list("code"))


WORDS = "rows/studies.translation.jsonl"


def with_words(path, change):
    """Write other values into the row of the translation: language, version and text."""

    def changed(name, data):
        if name != WORDS:
            return data
        number, *values = json.loads(data)
        return json.dumps([number, *change(*values)]).encode() + b"\n"

    return rewritten(path, changed)


def test_the_words_of_its_pages_come_too(file):
    again = import_archive(file, user("elsewhere"))
    assert again.translation.language == "en" and again.translation.by is None
    assert not frozen_design_mismatch_text(again)


def test_words_that_were_brought_are_those_of_the_person_who_imports(file):
    text = pseudo_text()
    path = with_words(file, lambda language, version, english: ("el", version_of(text), text))
    owner = user("elsewhere")
    words = import_archive(path, owner).translation
    assert (words.language, words.text, words.by) == ("el", text, owner)


@pytest.mark.parametrize(
    ("text", "has_version", "said"),
    [
        (pseudo_text(), False, "the version is not that of the text"),
        ("no catalogue", True, "not a PO file"),
        ('msgid "A"\nmsgstr "<script>"\n', True, "“A”: the placeholders"),
    ],
)
def test_words_that_no_site_has_kept_are_refused(file, text, has_version, said):
    path = with_words(file, lambda language, version, _: ("el", version_of(text) if has_version else version, text))
    with pytest.raises(ArchiveRefused, match=said):
        import_archive(path, user("elsewhere"))
    assert Study.objects.count() == 1


def test_an_archive_from_before_there_were_translations_is_read(file):
    def older(name, data):
        if name == WORDS:
            return None
        if name == "rows/manifest.json":
            manifest = json.loads(data)
            del manifest["tables"]["studies.translation"]
            older.place = manifest["tables"]["studies.study"].index("translation")
            manifest["tables"]["studies.study"].pop(older.place)
            return json.dumps(manifest).encode()
        if name == "rows/studies.study.jsonl":
            row = json.loads(data)
            row.pop(older.place)
            return json.dumps(row).encode() + b"\n"
        return data

    again = import_archive(rewritten(file, older), user("elsewhere"))
    assert again.translation is None and again.state == "closed"


def test_a_study_that_still_collects_is_refused(db, tmp_path):
    study = spa_study(user("owner"))
    submitted(study, "somebody")
    path = archive_file(study, tmp_path / "archive.zip")
    hide(study)
    with pytest.raises(ArchiveRefused, match="was not closed when the archive was made"):
        import_archive(path, user("elsewhere"))


def test_images_come_too_and_a_missing_one_is_said(db, tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path / "here"
    owner = user("owner")
    study = closed(launched(exposures_draft(settings.MEDIA_ROOT, levels=(1,), owner=owner, target_n=1), owner))
    path = archive_file(study, tmp_path / "archive.zip")
    hide(study)
    names = set(Output.objects.filter(system__study=study).exclude(media="").values_list("media", flat=True))
    settings.MEDIA_ROOT = tmp_path / "elsewhere"
    import_archive(path, user("elsewhere"))
    assert names and {one.name for one in settings.MEDIA_ROOT.rglob("*.webp")} == names
    settings.MEDIA_ROOT = tmp_path / "third"

    def spoil(name, data):
        return data[:-9] if name.startswith("stimuli/images/") else data

    with pytest.raises(ArchiveRefused, match="is not an image as heval stores it"):
        import_archive(rewritten(path, spoil), owner, is_copy=True)
    with pytest.raises(ArchiveRefused, match="The archive lacks the image"):
        import_archive(rewritten(path, lambda name, data: None if "/images/" in name else data), owner, is_copy=True)
    assert not [one for one in settings.MEDIA_ROOT.rglob("*.webp") if one.is_file()]
    assert Study.objects.count() == 2


def test_the_command_imports_an_archive(file, capsys):
    user("elsewhere")
    call_command("import_study", "new", str(file), "--owner", "elsewhere", "--dry-run")
    assert "is a whole study. Nothing was stored." in capsys.readouterr().out
    assert Study.objects.count() == 1 and not Job.objects.filter(kind="analyse").exists()
    call_command("import_study", "new", str(file), "--owner", "elsewhere", "--json")
    assert json.loads(capsys.readouterr().out)["study"] == str(Study.objects.latest("pk").code)
    with pytest.raises(CommandError, match="Import it as a copy"):
        call_command("import_study", "new", str(file), "--owner", "elsewhere")
    call_command("import_study", "new", str(file), "--owner", "elsewhere", "--copy")
    assert "is imported, closed as it was" in capsys.readouterr().out


def test_the_page_imports_an_archive_and_says_what_is_wrong(file, client):
    client.force_login(user("elsewhere"))
    address = reverse("archive_upload")
    assert b"Import the study" in client.get(address).content
    for data, said in ((b"no zip", "damaged or cut off"), (b"", "empty")):
        answer = client.post(address, {"file": SimpleUploadedFile("a.zip", data)})
        assert answer.status_code == 400 and said in answer.content.decode()
    for extra, status in (({}, 302), ({}, 400), ({"is_copy": "on"}, 302)):
        answer = client.post(address, {"file": io.BytesIO(file.read_bytes()), **extra})
        assert answer.status_code == status, answer.content.decode()[-2000:]
    assert Study.objects.filter(owner__username="elsewhere", state="closed").count() == 2
    assert client.get(answer["Location"]).status_code == 200
