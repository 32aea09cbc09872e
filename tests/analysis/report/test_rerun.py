"""An archive holds all that its analyses were computed from: they are computed again from it alone."""

import json
import zipfile
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from analysis.report.archive_import import import_archive
from analysis.report.archive_rows import MANIFEST, ArchiveRefused, opened_archive
from analysis.report.build import version_and_source_hash
from analysis.report.rerun import SHOWN_DIFFERENCES, Comparison, rerun_archive
from analysis.report.runs import run_analysis
from annotators.models import Annotator, Assignment, Exclusion
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from heval_site.management.commands.rerun import result_lines
from studies.models import Study
from tests.analysis.api.rest import analysis_of, closed_study, unguarded
from tests.analysis.report.archived import analysed, archive_file, hide, rewritten
from tests.analysis.report.reported import QUICK
from tests.builders import user

pytestmark = pytest.mark.postgres


@pytest.fixture
def study(db):
    return analysed(user("owner"))


@pytest.fixture
def file(study, tmp_path):
    path = archive_file(study, tmp_path / "archive.zip")
    hide(study)
    return path


def rerun(path):
    return rerun_archive(path, user("elsewhere"))


def test_a_fresh_archive_gives_every_number_again(study, file):
    result = rerun(file)
    (run,) = result["analyses"]
    assert result["is_equal"] and run["is_same_version"] and run["differences"] == []
    assert run["n_values"] > 5000 and run["n_rounded"] == run["missing_people"] == 0
    again = Study.objects.latest("pk")
    assert again.pk != study.pk and str(again.code) == result["study"]["code"]
    assert list(result_lines(result))[1] == f"Analysis 1 of {run['at'][:10]}: all {run['n_values']:,} values are equal."


@pytest.mark.slow
def test_a_changed_answer_and_another_version_are_said(file):
    def change(name, data):
        if name == "rows/annotators.response.jsonl":
            return data.replace(b'"35.0000"', b'"99.0000"', 1)
        return data.replace(b'"code_version": "0', b'"code_version": "older 0') if name == "analyses/1.json" else data

    result = rerun(rewritten(file, change))
    (run,) = result["analyses"]
    assert not result["is_equal"] and run["n_differences"] > SHOWN_DIFFERENCES == len(run["differences"])
    lines = list(result_lines(result))
    assert lines[0].startswith("This is heval 0") and "older 0" in lines[0]
    assert lines[2] == f"Analysis 1 of {run['at'][:10]}: {run['n_differences']:,} of {run['n_values']:,} values differ."
    assert lines[-1] == f"  and {run['n_differences'] - SHOWN_DIFFERENCES:,} more"


def test_a_difference_in_a_table_has_its_table_row_and_column():
    stored = {"tables": [{"name": "means", "rows": [{"mean": 1}, {"mean": 0.125}]}], "n": {"kept": 3}}
    comparison = Comparison()
    comparison.compare(stored, {"tables": [{"name": "means", "rows": [{"mean": 1}, {"mean": 0.25}]}], "n": {"kept": 4}})
    assert comparison.differences == [
        {"place": "table means, row 2, column mean", "stored": 0.125, "computed": 0.25},
        {"place": "n.kept", "stored": 3, "computed": 4},
    ]


def test_rounding_is_said_and_another_type_is_a_difference():
    comparison = Comparison()
    comparison.compare({"a": 0.1, "b": True, "c": [1, 2]}, {"a": 0.1 * (1 + 1e-12), "b": 1, "c": [1]})
    assert (comparison.n_values, comparison.n_rounded, comparison.n_different) == (4, 1, 2)
    assert [one["place"] for one in comparison.differences] == ["b", "c.2"]


def everything_in(path) -> str:
    with zipfile.ZipFile(path) as archive:
        return b"".join(map(archive.read, archive.namelist())).decode("utf-8", "replace")


@pytest.mark.slow
def test_what_happened_since_an_analysis_is_said(study, tmp_path):
    gone, out = Assignment.objects.filter(study=study).order_by("pk")[3:5]
    own_times = {
        name: gone.submitted_at + timedelta(seconds=n, microseconds=n)
        for n, name in enumerate(("started_at", "submitted_at"), 7)
    }
    Assignment.objects.filter(pk=gone.pk).update(claimed_at=own_times["started_at"], **own_times)
    gone.refresh_from_db()
    withdraw_annotator_and_erase_texts(gone)
    excluded = Exclusion.objects.create(assignment=out, reason="cheated", note="a private note", by=study.owner)
    run_analysis(study, QUICK, by=None)
    path = archive_file(study, tmp_path / "archive.zip")
    hide(study)
    result = rerun(path)
    old, new = result["analyses"]
    assert not old["is_equal"] and old["missing_people"] == old["later"]["exclusions"] == 1
    assert new["is_equal"] and new["missing_people"] == new["later"]["exclusions"] == 0
    lines = list(result_lines(result))
    assert "  1 person is missing: withdrawn since this analysis." in lines
    assert "  1 decisions to exclude somebody, or to take that back, are later." in lines
    text = everything_in(path)
    assert not [name for name, time in own_times.items() if time.isoformat()[:19] in text]
    assert "cheated" in text and excluded.note not in text


def edited(label, edit):
    def change(name, data):
        return edit(data) if name == label else data

    return change


FAULTS = {
    "the zip lacks a table": (lambda name, data: None if name == "rows/studies.item.jsonl" else data, "The archive lacks rows/studies.item.jsonl."),
    "an archive of before": (lambda name, data: None if name.startswith("rows/") else data, "before archives had the rows"),
    "another zip": (lambda name, data: None if name == "design.json" else data, "This zip is no archive of a study."),
    "a newer format": (edited(MANIFEST, lambda data: data.replace(b"archive/1", b"archive/2")), "does not know the format 'heval.archive/2'"),
    "a newer column": (edited(MANIFEST, lambda data: data.replace(b'"is_late"', b'"is_early"')), "the column annotators.assignment.is_early"),
    "a newer table": (edited(MANIFEST, lambda data: data.replace(b'"studies.job"', b'"studies.toil"')), "the table studies.toil"),
    "a row that is no list": (edited("rows/studies.item.jsonl", lambda data: data + b"{}\n"), "not a list of"),
    "a row that is no JSON": (edited("rows/studies.item.jsonl", lambda data: data + b"[\n"), "rows/studies.item.jsonl, row"),
    "a row of nothing": (edited("rows/annotators.response.jsonl", lambda data: data.replace(b"[", b"[1000000,", 1).replace(b",", b"x", 0)), "not a list of"),
    "a wrong reference": (edited("rows/studies.system.jsonl", lambda data: b""), "is no row of the archive"),
    "a wrong time": (edited("rows/annotators.assignment.jsonl", lambda data: data.replace(b"+00:00", b"", 1)), "is not accepted"),
    "a wrong choice": (edited("rows/studies.section.jsonl", lambda data: data.replace(b'"spa"', b'"spam"', 1)), "does not know protocol “spam”"),
    "a wrong scale": (edited("rows/studies.question.jsonl", lambda data: data.replace(b'"percent"', b'"per"', 1)), "rows/studies.question.jsonl, row"),
    "a row twice": (edited("rows/studies.prompt.jsonl", lambda data: data + data), "id is missing or occurs twice"),
    "two studies": (edited("rows/studies.study.jsonl", lambda data: data + data), "not exactly one study"),
    "an analysis without data": (edited("analyses/1.json", lambda data: data.replace(b'"data"', b'"dater"')), "analyses/1.json is no analysis"),
}  # fmt: skip


@pytest.fixture
def plain(db, tmp_path):
    """An archive that is quickly made: its analysis has no numbers."""
    study = closed_study(user("owner"))
    analysis_of(study)
    path = archive_file(study, tmp_path / "plain.zip")
    hide(study)
    return rewritten(path, edited("analyses/1.json", lambda data: data.replace(b'"estimate": 0.5', b'"data": {}')))


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_archive_is_refused_in_one_sentence_and_leaves_nothing(plain, name):
    change, said = FAULTS[name]
    before = [model.objects.count() for model in (Study, Annotator, Assignment)]
    with pytest.raises(ArchiveRefused) as refused:
        import_archive(rewritten(plain, change), user("elsewhere"))
    assert said in str(refused.value)
    assert [model.objects.count() for model in (Study, Annotator, Assignment)] == before


def test_a_cut_or_damaged_zip_is_refused(plain, tmp_path):
    data = plain.read_bytes()
    for number, broken in enumerate((data[:-100], b"no zip", data.replace(b"PK\x01\x02", b"PK\x09\x09"))):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(broken)
        with pytest.raises(ArchiveRefused, match="damaged or cut off"):
            rerun_archive(path, user(f"someone {number}"))
    with zipfile.ZipFile(plain) as archive:
        at = archive.getinfo("rows/annotators.response.jsonl").header_offset + 300
    path.write_bytes(data[:at] + bytes(50) + data[at + 50 :])
    with pytest.raises(ArchiveRefused, match="damaged or cut off"):
        rerun_archive(path, user("someone"))
    assert Study.objects.count() == 1


def test_a_zip_that_unpacks_to_too_much_is_refused_unread(tmp_path):
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.md", bytes(1 << 20))
    with (
        pytest.raises(ArchiveRefused, match="more than 1,000,000 bytes when unpacked"),
        opened_archive(bomb, 1_000_000),
    ):
        pass


def test_hashes_in_place_of_texts_are_said(db, tmp_path):
    study = closed_study(user("owner"))
    with unguarded() as cursor:
        cursor.execute("UPDATE studies_study SET stimuli_source = 'elsewhere' WHERE id = %s", [study.pk])
    path = archive_file(study, tmp_path / "archive.zip")
    hide(study)
    with pytest.raises(ArchiveRefused, match="hashes in place of prompts and outputs"):
        rerun(path)
    assert [name for name in zipfile.ZipFile(path).namelist() if name.startswith("rows/")] == [MANIFEST]


@pytest.mark.slow
def test_the_command_says_by_its_code_whether_numbers_differ(study, tmp_path, capsys):
    path = archive_file(study, tmp_path / "archive.zip")
    before = Study.objects.count()
    call_command("rerun", str(path))
    assert "values are equal." in capsys.readouterr().out
    version = version_and_source_hash().encode()
    older = rewritten(path, edited("analyses/1.json", lambda data: data.replace(version, b"an older one")))
    call_command("rerun", str(older))
    said = capsys.readouterr().out
    assert "the archive has analyses of an older one." in said and "values are equal." in said
    changed = rewritten(path, edited("analyses/1.json", lambda data: data.replace(b'"kept": 12', b'"kept": 11', 1)))
    with pytest.raises(SystemExit) as ended:
        call_command("rerun", str(changed), "--json")
    result = json.loads(capsys.readouterr().out)
    assert ended.value.code == 10 and result["analyses"][0]["n_differences"] == 1
    path.write_bytes(b"nothing")
    for file, code in ((path, 1), (tmp_path / "no.zip", 2)):
        with pytest.raises(CommandError) as refused:
            call_command("rerun", str(file))
        assert refused.value.returncode == code
    assert Study.objects.count() == before
