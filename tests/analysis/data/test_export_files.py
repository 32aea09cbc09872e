"""The codebook, Parquet files and the command that exports."""

import io
import json

import pytest

from analysis.data.export_codebook import build_export_codebook, build_export_codebook_markdown
from analysis.data.exports import request_export
from analysis.data.flat_rows import Selection, format_time
from studies.services import jobs
from tests.analysis.api.rest import api_of, body_of
from tests.analysis.data.exported import STORED, export, json_rows
from tests.builders import draft_study, spa_study, user
from tests.players import submitted
from tests.study_command import exported, refusal

pytestmark = pytest.mark.postgres


def test_the_codebook_explains_every_column_question_system_and_arm(study):
    book = build_export_codebook(study)
    for name, columns in STORED.items():
        assert [c["name"] for c in book["tables"][name]] == [c.name for c in columns]
        assert all(c["meaning"].endswith(".") and c["type"] for c in book["tables"][name])
    overall = next(q for q in book["questions"] if q["question"] == "overall")
    assert overall["scale"]["points"] == {"1": "very bad", "2": "bad", "3": "middling", "4": "good", "5": "very good"}
    assert (overall["scale"]["minimum"], overall["scale"]["maximum"]) == (1, 5)
    assert [s["name"] for s in book["systems"]] == ["alpha", "beta", "gamma"]
    assert [a["name"] for a in book["arms"]] == ["all"]
    text = build_export_codebook_markdown(study)
    assert all(f"| {c.name} |" in text for columns in STORED.values() for c in columns)
    json.dumps(book, allow_nan=False)


def test_parquet_has_the_cells_of_the_json_lines(study, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    parquet = pytest.importorskip("pyarrow.parquet")
    for table in STORED:
        read = parquet.read_table(io.BytesIO(exported(study, f"{table}.parquet", tmp_path)))
        rows = json_rows(export(table, "jsonl", Selection(study)))
        assert read.num_rows == len(rows)
        for name in read.column_names:
            cells = read[name].to_pylist()
            if next(c.type for c in STORED[table] if c.name == name) == "time":
                cells = [format_time(cell) for cell in cells]
                assert [c and c[:19] for c in cells] == [r[name] and r[name][:19] for r in rows]
            else:
                assert cells == [row[name] for row in rows], name


def test_without_pyarrow_the_message_says_how_to_get_it(study, monkeypatch, tmp_path):
    monkeypatch.setattr("analysis.data.exports.find_spec", lambda name: None)
    assert "pip install 'pyarrow" in refusal("export", study.code, "responses.parquet")[1]
    answer = api_of(study.owner).post(f"studies/{study.code}/exports/", {})
    assert answer.status_code == 409 and "pyarrow" in answer.json()["detail"]
    assert list(tmp_path.iterdir()) == []


def test_a_parquet_export_is_made_by_a_job_and_fetched(study, settings, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    settings.MEDIA_ROOT = tmp_path
    api = api_of(study.owner)
    started = api.post(f"studies/{study.code}/exports/", {"table": "responses"})
    assert started.status_code == 202, started.content
    path = f"studies/{study.code}/jobs/{started.json()['code']}/"
    assert api.get(f"{path}file/").status_code == 404
    assert jobs.run_waiting_jobs() == 1
    done = api.get(path).json()
    assert (done["state"], done["result"]["rows"]) == ("done", 27)
    data = body_of(api.get(f"{path}file/"))
    assert parquet.read_table(io.BytesIO(data)).num_rows == 27
    assert [p.suffix for p in (tmp_path / "exports").iterdir()] == [".parquet"]


def test_the_command_writes_what_rest_sends(study, tmp_path):
    api = api_of(study.owner)
    for form in ("csv", "jsonl"):
        sent = body_of(api.get(f"studies/{study.code}/exports/responses.{form}"))
        assert exported(study, f"responses.{form}", tmp_path) == sent
    assert sorted(p.name for p in tmp_path.iterdir()) == ["responses.csv", "responses.jsonl"]


def test_the_command_says_what_is_wrong(study, tmp_path):
    for arguments, message in (
        (["nonsense", "responses.csv"], "no study nonsense"),
        (["0" * 32, "responses.csv"], "no study"),
        ([study.code, "responses.csv", "--origins", "mars"], "origins: "),
        ([study.code, "nothing.csv"], "responses"),
        ([study.code, "../x"], "There is no export ../x"),
        ([study.code, "responses.csv", "--output", tmp_path / "no" / "x.csv"], "cannot be written"),
    ):
        assert message in refusal("export", *arguments)[1]


def test_the_command_hides_outcomes_while_a_study_collects(db, tmp_path):
    study = spa_study(user("owner"))
    submitted(study, "p", comment="x")
    for file in ("responses.csv", "responses.jsonl", "archive.zip", "responses.parquet"):
        assert "collect" in refusal("export", study.code, file)[1], file
    for file in ("assignments.csv", "codebook.md"):
        assert exported(study, file, tmp_path)


def test_the_codebook_says_what_is_planted(db):
    study = draft_study()
    study.systems.filter(name="beta").update(reference="maximal", is_human=True)
    assert "- beta (human, maximal reference)\n" in build_export_codebook_markdown(study)
    assert [s["reference"] for s in build_export_codebook(study)["systems"]] == ["", "maximal", ""]


@pytest.mark.django_db(transaction=True)
def test_a_job_writes_its_progress_while_it_reads_one_moment(settings, tmp_path):
    """Without a test's transaction, what is read is read-only, and progress is written by another connection."""
    settings.MEDIA_ROOT = tmp_path
    study = spa_study(user("olga"))
    submitted(study, "a")
    job = request_export(study, by=study.owner, table="assignments", format="parquet", origins=("live",))
    jobs.run_waiting_jobs()
    job.refresh_from_db()
    assert (job.state, job.error, job.doing) == ("done", "", "Writing rows")
