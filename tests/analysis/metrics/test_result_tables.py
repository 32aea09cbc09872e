"""Results for other tools: what is in each file, read again by other programs and computed by other means."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import combinations

import pandas as pd
import pytest
from django.core.management import CommandError
from django.db.models.functions import Now

from analysis.data.exports import TABLES
from analysis.data.flat_rows import annotator_pseudonym
from analysis.metrics.dataset import script
from analysis.report.build import build_report
from annotators.models import Annotator, Assignment, Response
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import Contrast, Output, Study, StudyMember
from studies.services import jobs, lifecycle
from tests import study_command
from tests.analysis.api.rest import api_of
from tests.builders import (
    add_choice,
    add_marks,
    add_ranking,
    add_rating,
    add_relative,
    add_section,
    add_spa,
    draft_study,
    humanlike_draft,
    launched,
    user,
)
from tests.players import play, submitted

pytestmark = [pytest.mark.django_db]
PEOPLE, SHARING = 8, (0, 1, 2, 3, 4, 5)
WITHDRAWN = 5
JUDGING = {"rating", "relative", "ranking", "marks", "two_choice"}


def collected(study, people=PEOPLE) -> Study:
    """Play a study whose first people agreed to share their preferences, and close it."""
    launched(study)
    played = [play(study, n) for n in range(people)]
    chosen = [played[n].pk for n in SHARING if n < people]
    Assignment.objects.filter(pk__in=chosen).update(shares_preferences=True, consented_at=Now())
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    return Study.objects.get(pk=study.pk)


@pytest.fixture(scope="module")
def stored_study(module_transaction) -> int:
    """All protocols that say which output is better, and chances about systems."""
    draft = draft_study(
        prompts=40,
        target_n=PEOPLE,
        instructions="",
        annotators_per_batch=2,
        asks_to_share_preferences=True,
        licence="cc-by-4.0",
        owner=user("owner"),
    )
    spa = add_spa(draft, position=1, m=2)
    add_rating(draft, position=2, reuses=spa, m=2)
    for position, add in enumerate((add_relative, add_ranking, add_marks, add_choice), 3):
        Contrast.objects.filter(study=draft).delete()
        options = {"stopping": "none", "strategy": "any", "allows_tie": True} if add is add_choice else {}
        add(draft, position=position, m=3, **options)
    return collected(draft).pk


@pytest.fixture
def study(db, stored_study) -> Study:
    return Study.objects.get(pk=stored_study)


def exported(study, table, form, tmp_path, *options) -> bytes:
    return study_command.exported(study, f"{table}.{form}", tmp_path, *options)


def records(data: bytes) -> list[dict]:
    return [json.loads(line) for line in data.decode().splitlines()]


def answers_of(study, tmp_path) -> pd.DataFrame:
    return pd.DataFrame(records(exported(study, "responses", "jsonl", tmp_path))[:-1])


def test_preferences_are_those_of_people_who_agreed(study, tmp_path):
    withdraw_annotator_and_erase_texts(
        Assignment.objects.filter(study=study, shares_preferences=True).order_by("pk")[WITHDRAWN]
    )
    rows = records(exported(study, "preferences", "jsonl", tmp_path))
    ties = records(exported(study, "preference_ties", "jsonl", tmp_path))
    assert {row["protocol"] for row in rows} == JUDGING
    assert list(rows[0])[:3] == ["prompt", "chosen", "rejected"]
    assert len({row["annotator"] for row in rows + ties}) == len(SHARING) - 1
    internal = {annotator_pseudonym(study, one.code) for one in Annotator.objects.all()}
    assert not internal & {row["annotator"] for row in rows}
    texts = {(one.system.name, one.prompt.key): one.text for one in Output.objects.select_related("system", "prompt")}
    for row in rows:
        assert row["chosen"] == texts[row["chosen_system"], row["prompt_key"]] != row["rejected"]
        assert row["rejected"] == texts[row["rejected_system"], row["prompt_key"]]
        assert 0 < row["strength"] <= 1 and 0 < row["agreement"] <= 1
    # Two choices, counted once more from the exported answers and items.
    answers = answers_of(study, tmp_path)
    sharing = Assignment.objects.filter(study=study, shares_preferences=True, withdrawn_at=None)
    people = {annotator_pseudonym(study, code) for code in sharing.values_list("annotator__code", flat=True)}
    choices = answers[(answers["protocol"] == "two_choice") & answers["annotator"].isin(people)]
    chosen = Counter(zip(choices["prompt"], choices["chosen_system"], strict=True))
    del chosen[next((key for key in chosen if key[1] is None), None)]
    expected = {key: n for key, n in chosen.items() if isinstance(key[1], str)}
    own = [row for row in rows if row["protocol"] == "two_choice"]
    assert Counter((row["prompt_key"], row["chosen_system"]) for row in own) == expected and expected
    assert {row["strength"] for row in own} == {1}
    n_ties = (choices["choice"] == "tie").sum()
    assert sum(row["protocol"] == "two_choice" for row in ties) == n_ties > 0
    # Ratings: two ratings of a person for one prompt.
    ratings = answers[(answers["protocol"] == "rating") & answers["annotator"].isin(people) & answers["value"].notna()]
    higher, equal = 0, 0
    for _, same in ratings.groupby(["annotator", "prompt", "question"]):
        for one, other in combinations(same["value"], 2):
            higher, equal = higher + (one != other), equal + (one == other)
    assert sum(row["protocol"] == "rating" for row in rows) == higher > 0
    assert sum(row["protocol"] == "rating" for row in ties) == equal


def test_agreement_is_the_share_of_the_same_choice(study, tmp_path):
    rows = records(exported(study, "preferences", "jsonl", tmp_path))
    groups = defaultdict(list)
    for row in rows:
        pair = tuple(sorted([row["chosen_system"], row["rejected_system"]]))
        groups[row["criterion"], row["protocol"], row["prompt_key"], pair].append(row)
    assert max(len(same) for same in groups.values()) > 1
    for same in groups.values():
        for row in same:
            votes = sum(other["chosen_system"] == row["chosen_system"] for other in same)
            assert row["n"] == len(same) + row["ties"]
            assert row["agreement"] == pytest.approx((votes + row["ties"] / 2) / row["n"])


def test_no_preferences_leave_a_study_that_did_not_ask(study, tmp_path):
    silent = draft_study(owner=study.owner)
    with pytest.raises(CommandError, match="were not asked whether"):
        exported(silent, "preferences", "jsonl", tmp_path)
    answer = api_of(study.owner).post(f"studies/{silent.code}/exports/", {"table": "preferences", "format": "jsonl"})
    assert answer.status_code == 409 and "were not asked whether" in answer.json()["detail"]
    Assignment.objects.filter(study=study).update(shares_preferences=False)
    assert exported(study, "preferences", "jsonl", tmp_path) == b""


def test_scores_are_means_of_answers(study, tmp_path):
    scores = pd.read_csv(io.BytesIO(exported(study, "scores", "csv", tmp_path)))
    answers = answers_of(study, tmp_path)
    ratings = answers[(answers["protocol"] == "rating") & (answers["question"] == "overall") & answers["value"].notna()]
    means = ((ratings["value"] - 1) / 4).groupby([ratings["prompt"], ratings["system"]]).agg(["mean", "size"])
    own = scores.set_index(["prompt", "system"]).reindex(means.index)
    assert len(means) > 10
    assert own["overall_mean"].to_numpy() == pytest.approx(means["mean"].to_numpy())
    assert (own["overall_n"] == means["size"]).all()
    table = json.loads(exported(study, "scores", "table.json", tmp_path))
    assert table["columns"] == list(scores.columns) and len(table["data"]) == len(scores)
    read = pd.read_json(io.StringIO(json.dumps(table)), orient="split")
    assert read["overall_n"].tolist() == scores["overall_n"].tolist()
    parquet = exported(study, "scores", "parquet", tmp_path)
    assert pd.read_parquet(io.BytesIO(parquet))["overall_n"].tolist() == scores["overall_n"].tolist()


def test_inspect_gets_a_file_for_each_system(study, tmp_path):
    scores = pd.read_csv(io.BytesIO(exported(study, "scores", "csv", tmp_path))).set_index(["system", "prompt"])
    with zipfile.ZipFile(io.BytesIO(exported(study, "inspect", "zip", tmp_path))) as archive:
        assert [re.sub(r"^\d+-", "", name) for name in archive.namelist()] == [
            "alpha.jsonl",
            "beta.jsonl",
            "gamma.jsonl",
        ]
        for name in archive.namelist():
            rows = records(archive.read(name))
            assert rows and len({row["id"] for row in rows}) == len(rows)
            for row in rows:
                assert set(row) <= {"system", "id", "epoch", "value", "explanation", "metadata"}
                own = scores.loc[row["system"], row["id"]]
                assert {f"{key}_mean": pytest.approx(own[f"{key}_mean"]) for key in row["value"]} == {
                    f"{key}_mean": value for key, value in row["value"].items()
                }


def test_records_of_every_eval_ever_have_its_required_fields(study, tmp_path):
    rows = records(exported(study, "every_eval_ever", "jsonl", tmp_path))
    required = {
        "schema_version": str, "evaluation_id": str, "model_id": str, "evaluation_name": str, "sample_id": str,
        "interaction_type": str, "input": dict, "answer_attribution": list, "evaluation": dict, "output": dict,
    }  # fmt: skip
    assert rows
    for row in rows:
        assert all(isinstance(row[name], kind) for name, kind in required.items())
        assert set(row) <= {*required, "sample_hash", "metadata"}
        assert isinstance(row["input"]["raw"], str) and row["input"]["reference"] == []
        assert 0 <= row["evaluation"]["score"] <= 1 and row["evaluation"]["is_correct"] is (
            row["evaluation"]["score"] > 0.5
        )
        assert all(isinstance(value, str) for value in row["metadata"].values())
        assert int(row["metadata"]["human_raters.n"]) >= 1


def test_marks_are_a_table_that_heval_reads_as_mqm(study, tmp_path):
    lines = exported(study, "mqm", "tsv", tmp_path).decode().splitlines()
    rows = [dict(zip(lines[0].split("\t"), line.split("\t"), strict=True)) for line in lines[1:]]
    answers = answers_of(study, tmp_path)
    marks = answers[(answers["protocol"] == "marks") & (answers["question"] == "errors") & answers["value"].notna()]
    assert len(rows) == len(marks) > 0
    assert sum(row["severity"] != "No-error" for row in rows) == marks["choice"].notna().sum() > 0
    texts = {(one.system.name, one.prompt.key): one.text for one in Output.objects.select_related("system", "prompt")}
    marked = [row for row in rows if "<v>" in row["target"]]
    assert marked
    for row in rows:
        assert row["target"].replace("<v>", "").replace("</v>", "") == " ".join(
            texts[row["system"], row["seg_id"]].split()
        )


def headlines(study) -> dict[str, float]:
    """Return the estimates of the headline blocks of the report, by comparison."""
    report = build_report(study, {"resamples": 99})
    names = {"spa.pairs", "rating.superiority", "relative.score", "ranking.share", "marks.score", "choice.preference"}
    return {
        estimate["settings"]["contrast"]["key"]: estimate["estimate"]
        for block in report["blocks"]
        if block["name"] in names and block["mode"] == "recommended"
        for estimate in block["estimates"]
    }


def printed(lines: str) -> dict[str, float]:
    return {line.split("\t")[0]: float(line.split("\t")[1]) for line in lines.splitlines()}


def test_each_script_prints_the_headline_of_the_report(study, tmp_path):
    import duckdb

    expected = {key: value for key, value in headlines(study).items() if value is not None}
    assert len(expected) >= 12
    exported(study, "headline", "csv", tmp_path)
    exported(study, "headline", "parquet", tmp_path)
    api = api_of(study.owner)
    for name in ("headline.py", "headline.R", "headline.sql"):
        own = api.get(f"studies/{study.code}/exports/{name}").body
        assert own.count(b"\n") < 40
        (tmp_path / name).write_bytes(own)
        assert study_command.exported(study, name, tmp_path) == own
    for file in ("headline.csv", "headline.parquet"):
        run = [sys.executable, str(tmp_path / "headline.py"), file]
        output = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert printed(output) == {key: pytest.approx(value, abs=1e-6) for key, value in expected.items()}
    sql = (tmp_path / "headline.sql").read_text().replace("headline.csv", str(tmp_path / "headline.csv"))
    rows = duckdb.sql(sql).fetchall()
    assert {row[0]: row[1] for row in rows} == {key: pytest.approx(value, abs=1e-6) for key, value in expected.items()}


@pytest.mark.r
@pytest.mark.parametrize("language", ["C", "C.UTF-8"])
def test_the_script_for_r_prints_the_headline_of_the_report(study, tmp_path, language):
    """It needs no package of R. The names are ones that R reads as missing values, numbers or bytes unless it is told."""
    text = exported(study, "headline", "csv", tmp_path).decode()
    people = sorted({row["annotator"] for row in csv.DictReader(io.StringIO(text))})
    for old, new in [
        ("alpha", "Käse #1: 'x'"),
        ("beta", "NA"),
        (people[0], "007"),
        (people[1], "7"),
        (people[2], "NA"),
    ]:
        text = text.replace(old, new)
    (tmp_path / "headline.csv").write_text(text, encoding="utf-8")
    study_command.exported(study, "headline.R", tmp_path)
    run = ["Rscript", "headline.R"]
    environment = os.environ | {"LC_ALL": language}
    output = subprocess.run(run, cwd=tmp_path, env=environment, check=True, capture_output=True).stdout.decode()
    expected = {
        key.replace("alpha", "Käse #1: 'x'").replace("beta", "NA"): value
        for key, value in headlines(study).items()
        if value is not None
    }
    assert printed(output) == {key: pytest.approx(value, abs=1e-6) for key, value in expected.items()}
    run = [sys.executable, "-c", script("headline.py").decode()]
    again = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True)
    assert sorted(output.splitlines()) == sorted(again.stdout.decode().splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("is_parquet", [True, False])
def test_the_dataset_folder_is_read_by_datasets_and_croissant(study, tmp_path, monkeypatch, is_parquet):
    import datasets
    import mlcroissant as croissant

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if not is_parquet:
        monkeypatch.setattr("analysis.metrics.dataset.is_pyarrow_installed", lambda: False)
    data = exported(study, "dataset", "zip", tmp_path)
    folder = tmp_path / "folder"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(folder)
    names = [path.stem for path in (folder / "data").iterdir()]
    extension = "parquet" if is_parquet else "jsonl"
    assert all((folder / "data" / f"{name}.{extension}").exists() for name in names)
    assert {"headline", "scores", "responses", "prompts", "outputs", "preferences", "preference_ties"} <= set(names)
    n_rows = {}
    for name in names:
        read = datasets.load_dataset(str(folder), name, split="train", cache_dir=str(tmp_path / "cache"))
        assert read.column_names == [column.name for column in TABLES[name].columns_of(study)]
        n_rows[name] = len(read)
    assert n_rows["scores"] == len(exported(study, "scores", "jsonl", tmp_path).splitlines())
    assert n_rows["preferences"] == len(exported(study, "preferences", "jsonl", tmp_path).splitlines())
    assert n_rows["responses"] == len(answers_of(study, tmp_path))
    described = croissant.Dataset(jsonld=folder / "croissant.json")
    assert not described.metadata.ctx.issues.errors
    assert {one.id for one in described.metadata.record_sets} == set(names)
    first = next(iter(described.records("scores")))
    assert first["scores/system"] in (b"alpha", "alpha", b"beta", "beta", b"gamma", "gamma")
    card = (folder / "README.md").read_text()
    assert 'license: "cc-by-4.0"' in card and study.consent in card and f"{len(SHARING)} of them agreed" in card
    assert "Nobody can recall a file" in card
    run = [sys.executable, "scripts/headline.py", f"data/headline.{extension}"]
    output = subprocess.run(run, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert len(printed(output)) == len([value for value in headlines(study).values() if value is not None])


def test_people_who_wrote_or_said_who_wrote_give_no_preferences(tmp_path):
    draft = humanlike_draft(owner=user("owner"), asks_to_share_preferences=True)
    study = collected(draft, people=2)
    with pytest.raises(CommandError, match="No section says which of two outputs"):
        exported(study, "preferences", "jsonl", tmp_path)
    scores = pd.read_csv(io.BytesIO(exported(study, "scores", "csv", tmp_path)))
    assert len(scores) and set(scores.filter(like="_mean").stack()) <= {0, 0.5, 1}
    with pytest.raises(CommandError, match="asks for error marks"):
        exported(study, "mqm", "tsv", tmp_path)


def test_best_and_worst_say_nothing_about_the_others(tmp_path):
    draft = draft_study(
        systems=("alpha", "beta", "gamma", "delta"), owner=user("owner"), asks_to_share_preferences=True
    )
    add_section(draft, "best_worst", m=3)
    launched(draft)
    assignment = submitted(draft, "a", is_consented=True, shares_preferences=True)
    study_command.run("outcomes", draft.code, "--reason", "The test asks.")
    rows = records(exported(draft, "preferences", "jsonl", tmp_path))
    assert Counter(row["strength"] for row in rows) == {1.0: 3, 0.5: 12} and assignment.submitted_at
    assert exported(draft, "preference_ties", "jsonl", tmp_path) == b""


def test_hidden_outcomes_stay_hidden(tmp_path, client):
    draft = draft_study(owner=user("owner"), asks_to_share_preferences=True)
    add_choice(draft, m=3)
    launched(draft)
    submitted(draft, "a", is_consented=True, shares_preferences=True)
    client.force_login(draft.owner)
    for name, table in TABLES.items():
        if not table.has_outcomes or table.is_streamed or table.find_problem(draft):
            continue
        with pytest.raises(CommandError, match="hidden"):
            exported(draft, name, table.formats[0], tmp_path)
        body = {"table": name, "format": table.formats[0]}
        assert api_of(draft.owner).post(f"studies/{draft.code}/exports/", body).status_code == 403
        sent = {"file": f"{name} {table.formats[0]}"}
        assert client.post(f"/admin/studies/study/{draft.pk}/share/file/", sent).status_code == 403
    assert (
        "Not available yet: the study is still collecting."
        in client.get(f"/admin/studies/study/{draft.pk}/share/").content.decode()
    )


def test_a_file_is_made_by_a_job_from_the_page_and_from_rest(study, client, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    client.force_login(study.owner)
    page = client.get(f"/admin/studies/study/{study.pk}/share/").content.decode()
    assert 'value="preferences jsonl"' in page and 'value="dataset zip"' in page
    sent = {"file": "preferences jsonl", "token": "a1"}
    addresses = {client.post(f"/admin/studies/study/{study.pk}/share/file/", sent)["Location"] for _ in range(2)}
    assert len(addresses) == 1
    api = api_of(study.owner)
    started = api.post(f"studies/{study.code}/exports/", {"table": "preferences", "format": "jsonl"})
    assert started.status_code == 202
    jobs.run_waiting_jobs()
    expected = exported(study, "preferences", "jsonl", tmp_path)
    file = f"studies/{study.code}/jobs/{started.json()['code']}/file/"
    assert api.get(file).body == expected != b""
    job_page = client.get(addresses.pop()).content.decode()
    own = re.search(r'href="(/api/v1/[^"]+/file/)"', job_page)[1]
    answer = client.get(own)
    assert b"".join(answer.streaming_content) == expected
    assert answer["Content-Disposition"] == 'attachment; filename="preferences.jsonl"'
    # A file from before a withdrawal is not given away.
    withdraw_annotator_and_erase_texts(Assignment.objects.filter(study=study, shares_preferences=True).first())
    assert api.get(file).status_code == 404 and client.get(own).status_code == 404


def test_impossible_files_are_refused(study, client):
    api = api_of(study.owner)
    for body, words in (
        ({"table": "scores", "format": "tsv"}, "The table scores cannot be written as tsv. Use csv,"),
        ({"table": "scores", "format": "csv", "withdrawn": True}, "never has people who withdrew"),
        ({"table": "nothing"}, "is not a possible value"),
    ):
        answer = api.post(f"studies/{study.code}/exports/", body)
        assert answer.status_code == 400 and words in answer.body.decode()
    client.force_login(study.owner)
    assert client.post(f"/admin/studies/study/{study.pk}/share/file/", {"file": "nothing csv"}).status_code == 404
    answer = client.post(f"/admin/studies/study/{study.pk}/share/file/", {"file": "scores tsv"}, follow=True)
    assert "cannot be written as tsv" in answer.content.decode()


def test_texts_of_others_leave_as_hashes(tmp_path):
    source = "The corpus at https://example.org, CC-BY-NC."
    draft = draft_study(owner=user("owner"), asks_to_share_preferences=True, stimuli_source=source)
    add_choice(draft, m=3, stopping="none", strategy="any", allows_tie=True)
    add_marks(draft, position=2, m=2)
    study = collected(draft, people=2)
    texts = list(Output.objects.filter(system__study=study).values_list("text", flat=True))
    texts += list(study.prompts.values_list("text", flat=True))
    lines = {line for text in texts for line in text.splitlines() if len(line) > 20}
    row = records(exported(study, "preferences", "jsonl", tmp_path))[0]
    output = Output.objects.get(system__study=study, system__name=row["chosen_system"], prompt__key=row["prompt_key"])
    assert row["chosen"] == f"sha256:{sha256(output.text.encode()).hexdigest()}"
    for table, form in (("preferences", "csv"), ("every_eval_ever", "jsonl"), ("mqm", "tsv"), ("dataset", "zip")):
        _nothing_in(lines, exported(study, table, form, tmp_path))
    _nothing_in(lines, exported(study, "archive", "zip", tmp_path))
    for file in ("archive.zip", "dataset.zip"):
        with zipfile.ZipFile(tmp_path / file) as archive:
            assert source in archive.read("README.md").decode()


def _nothing_in(lines, data: bytes) -> None:
    parts = {"": data}
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    for name, part in parts.items():
        found = [line for line in lines if line.encode() in part or json.dumps(line)[1:-1].encode() in part]
        if name.endswith(".parquet"):
            found += [line for line in lines if line in pd.read_parquet(io.BytesIO(part)).to_csv()]
        assert not found, name


def test_csv_for_excel_has_every_cell_in_its_place(study, tmp_path):
    first = Response.objects.filter(assignment__study=study).order_by("pk").first()
    odd = 'a,b;"c"\nd\u00e9'
    for slot, text in (("s9.q1", odd), ("s9.q2", "x" * 40_000), ("s9.q3", "=1+1")):
        Response.objects.create(assignment=first.assignment, question=first.question, slot=slot, text=text)
    data = exported(study, "responses", "excel.csv", tmp_path)
    assert data.startswith(b"\xef\xbb\xbfassignment,")
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    plain = list(csv.DictReader(io.StringIO(exported(study, "responses", "csv", tmp_path).decode(), newline="")))
    shown = {row["slot"]: row["text"] for row in rows if row["slot"].startswith("s9")}
    assert shown == {"s9.q1": odd, "s9.q2": "x" * 32_767, "s9.q3": "'=1+1"}
    assert [row for row in rows if row["slot"] != "s9.q2"] == [row for row in plain if row["slot"] != "s9.q2"]
    read = pd.read_csv(io.BytesIO(data), encoding="utf-8-sig")
    assert list(read.columns) == list(plain[0]) and len(read) == len(plain)
    answer = api_of(study.owner).get(f"studies/{study.code}/exports/responses.excel.csv")
    assert answer.body == data and answer["Content-Disposition"].endswith('.excel.csv"')


# What a spreadsheet could take for a formula, a delimiter, the end of a row, or nothing.
ODD_TEXTS = (
    "Käse, Öl; „groß“\tund é", "zwei\nZeilen", "drei\r\nZeilen\n", "=1+1", "+49", "-1", "@SUM(A1)", "'quoted'", '"', '"a","b"', " blanks ",
    "日本語 😀", "sep=;", "x" * 40_000, "\tTab", "a;b", "1,5", "N/A", "#REF!",
)  # fmt: skip


@pytest.mark.libreoffice
def test_libreoffice_reads_every_cell_of_csv_for_excel(study, tmp_path):
    """A number may be a number there, and a time a date. Everything else is the text of the export.

    The filter has the choices of LibreOffice's window for such a file: commas, quotes, and UTF-8 because of the BOM.
    """
    import python_calamine

    first = Response.objects.filter(assignment__study=study).order_by("pk").first()
    for number, text in enumerate(ODD_TEXTS):
        Response.objects.create(assignment=first.assignment, question=first.question, slot=f"s9.q{number}", text=text)
    rows = list(
        csv.reader(io.StringIO(exported(study, "responses", "excel.csv", tmp_path).decode("utf-8-sig"), newline=""))
    )
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    run = ["soffice", profile, "--headless", "--infilter=CSV:44,34,76,1", "--convert-to", "xlsx", "responses.excel.csv"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    workbook = python_calamine.CalamineWorkbook.from_path(tmp_path / "responses.excel.xlsx")
    read = workbook.get_sheet_by_index(0).to_python(skip_empty_area=False)
    assert len(read) == len(rows) and {len(cells) for cells in read} == {len(rows[0])}
    differing = [
        (number, rows[0][place], own, cell)
        for number, (cells, owns) in enumerate(zip(read, rows, strict=True), 1)
        for place, (cell, own) in enumerate(zip(cells, owns, strict=True))
        if not is_same_cell(cell, own)
    ]
    assert not differing, differing[:10]


def is_same_cell(cell, own: str) -> bool:
    """Whether a cell of a workbook says what the export says."""
    if isinstance(cell, float):
        return own != "" and float(own) == pytest.approx(cell)
    if isinstance(cell, datetime):
        return abs(datetime.fromisoformat(own).replace(tzinfo=None) - cell) < timedelta(milliseconds=1)
    return cell == own.replace("\r\n", "\n")


def test_a_file_with_the_draw_is_given_only_to_those_who_may_read_it(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    draft = draft_study(owner=user("owner"))
    add_choice(draft, m=3)
    launched(draft)
    StudyMember.objects.create(study=draft, user=user("viewer"), role=StudyMember.Role.VIEWER)
    api = api_of(draft.owner)
    started = api.post(f"studies/{draft.code}/exports/", {"table": "items", "format": "csv"})
    assert started.status_code == 202 and jobs.run_waiting_jobs() == 1
    lifecycle.unblind(draft, None, "a look")
    file = f"studies/{draft.code}/jobs/{started.json()['code']}/file/"
    assert api.get(file).body.startswith(b"item,section,")
    assert api_of(user("viewer")).get(file).status_code == 403
