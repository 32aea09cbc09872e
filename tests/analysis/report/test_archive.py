"""The archive: everything of a study in one zip, the same every time."""

import io
import json
import subprocess
import zipfile
from hashlib import sha256

import pytest

from analysis.data.exports import BLOCK_MAKERS
from analysis.data.flat_rows import Selection, assignment_pseudonym
from analysis.report.archive import archive_blocks
from analysis.report.archive_rows import row_members
from annotators.models import Assignment
from studies.models import Study
from tests.analysis.api.rest import analysis_of, api_of, body_of, closed_study, unguarded
from tests.analysis.report.archived import analysed
from tests.builders import draft_study, user
from tests.study_command import exported

pytestmark = pytest.mark.postgres


@pytest.fixture
def study(db):
    study = closed_study(user("owner"), 2)
    analysis_of(study, origins=["live"])
    return study


def archive_of(study) -> bytes:
    return b"".join(archive_blocks(study))


def test_it_holds_design_data_results_figures_codebook_and_readme(study):
    archive = zipfile.ZipFile(io.BytesIO(archive_of(study)))
    assert archive.testzip() is None
    assert archive.namelist() == [
        "design.json", "design-versions/1.json", "codebook.json", "codebook.md", "stimuli/prompts.jsonl", "stimuli/outputs.jsonl",
        "responses.jsonl", "responses.csv", "assignments.jsonl", "assignments.csv", "items.jsonl", "items.csv",
        "headline.csv", "headline.R", "notebook.ipynb",
        *(name for name, _ in row_members(study, ["live"])), "analyses/1.json", "analyses/1/forest.svg", "analyses/1/forest.pdf", "README.md",
    ]  # fmt: skip
    assert archive.read("design.json").decode() == study.designs.get().canonical
    assert archive.read("responses.csv") == b"".join(BLOCK_MAKERS["csv"]("responses", Selection(study)))
    assert archive.read("responses.jsonl") == b"".join(BLOCK_MAKERS["jsonl"]("responses", Selection(study)))
    assert json.loads(archive.read("analyses/1.json"))["result"] == study.analyses.get().result
    assert archive.read("analyses/1/forest.pdf") == b"%PDF"
    assert len(archive.read("stimuli/outputs.jsonl").splitlines()) == 36


def test_the_readme_has_the_hash_of_every_other_file_and_the_version_of_the_code(study):
    archive = zipfile.ZipFile(io.BytesIO(archive_of(study)))
    readme = archive.read("README.md").decode()
    for name in archive.namelist()[:-1]:
        data = archive.read(name)
        assert f"| {name} | {len(data)} | {sha256(data).hexdigest()} |" in readme
    assert study.designs.get().sha256 in readme
    assert "Made by" in readme and "+src." in readme


def test_two_archives_of_one_study_have_the_same_bytes(study, tmp_path):
    first = archive_of(study)
    assert archive_of(study) == first
    assert body_of(api_of(study.owner).get(f"studies/{study.code}/exports/archive.zip")) == first
    assert exported(study, "archive.zip", tmp_path) == first


def test_it_holds_the_answers_that_its_analyses_were_made_from(study):
    robot = Assignment.objects.order_by("pk").first()
    Assignment.objects.filter(pk=robot.pk).update(origin="robot")
    without = zipfile.ZipFile(io.BytesIO(archive_of(study)))
    analysis_of(study, origins=["robot"])
    archive = zipfile.ZipFile(io.BytesIO(archive_of(study)))
    for table in ("responses.csv", "assignments.csv"):
        assert b",robot," in archive.read(table) and b",robot," not in without.read(table)
        assert b",live," in archive.read(table)
    assert "Origins live, robot and imported" in archive.read("README.md").decode()
    assert "Origins live and imported" in without.read("README.md").decode()


def test_another_answer_makes_another_archive(study):
    before = archive_of(study)
    Assignment.objects.filter(pk=Assignment.objects.first().pk).update(is_late=False, trust="keyed")
    assert archive_of(study) != before


def test_it_names_nobody_and_leaves_out_who_withdrew(study):
    gone = Assignment.objects.order_by("pk").first()
    Assignment.objects.filter(pk=gone.pk).update(withdrawn_at=gone.submitted_at)
    archive = zipfile.ZipFile(io.BytesIO(archive_of(study)))
    everything = b"".join(archive.read(name) for name in archive.namelist()).decode("utf-8", "replace")
    for assignment in Assignment.objects.select_related("annotator"):
        assert assignment.code not in everything
        assert assignment.annotator.external_id not in everything
    assert len(archive.read("responses.jsonl").splitlines()) == 10
    assert len(archive.read("assignments.jsonl").splitlines()) == 2
    assert assignment_pseudonym(gone.code).encode() not in archive.read("assignments.csv")


def test_a_design_that_was_changed_behind_the_guards_is_said_in_the_readme(study):
    with unguarded() as cursor:
        cursor.execute("UPDATE studies_study SET consent = 'other' WHERE id = %s", [study.pk])
    readme = zipfile.ZipFile(io.BytesIO(archive_of(study))).read("README.md").decode()
    assert "Warning: The design in the database" in readme


def test_a_figure_with_a_hostile_name_stays_in_its_folder(study):
    from analysis.models import AnalysisRun, Figure

    Figure.objects.create(run=AnalysisRun.objects.get(), name="../../etc/passwd", svg="<svg/>", pdf=b"x")
    names = zipfile.ZipFile(io.BytesIO(archive_of(study))).namelist()
    assert "analyses/1/------etc-passwd.svg" in names
    assert not any(".." in name for name in names)


def test_the_notebook_computes_the_headline_again(db, tmp_path, monkeypatch):
    study = analysed(user("researcher"), rules=[("incoherent", {"tau": 1.1})])
    with zipfile.ZipFile(io.BytesIO(archive_of(study))) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    cells = json.loads((tmp_path / "notebook.ipynb").read_text())["cells"]
    names = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    headline = names["headline"]
    assert len(cells) == 2 and sum(len(cell["source"]) for cell in cells) <= 16 and len(headline) >= 4
    assert headline.again.to_numpy() == pytest.approx(headline.report.to_numpy(), abs=1e-9)


@pytest.mark.r
def test_r_computes_the_headline_again(db, tmp_path):
    with zipfile.ZipFile(io.BytesIO(archive_of(analysed(user("researcher"))))) as archive:
        archive.extractall(tmp_path)
    printed = subprocess.run(["Rscript", "headline.R"], cwd=tmp_path, capture_output=True, text=True, check=True)
    said = {line.split("\t")[0]: float(line.split("\t")[1]) for line in printed.stdout.splitlines()}
    (block,) = (
        one
        for one in json.loads((tmp_path / "analyses/1.json").read_text())["result"]["blocks"]
        if one["name"] == "spa.pairs" and one["mode"] == "recommended"
    )
    for estimate in block["estimates"]:
        assert said[estimate["settings"]["contrast"]["key"]] == pytest.approx(estimate["estimate"], abs=1e-6)


def test_a_draft_has_an_archive_without_answers(db):
    study = draft_study(owner=user("owner"))
    archive = zipfile.ZipFile(io.BytesIO(archive_of(study)))
    assert len(archive.read("responses.csv").splitlines()) == 1
    assert json.loads(archive.read("design.json"))["study"]["title"] == Study.objects.get().title
