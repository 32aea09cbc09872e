"""Files of evaluation tools, each made by hand in the form that the tool documents, become drafts without a word from the user."""

import gzip
import json

import pytest

from studies.imports.tables.columns import Options
from studies.imports.tables.run import import_stimuli_file
from studies.models import Output, Prompt, Study
from tests.studies.imports import datasets, judged, own, tools
from tests.studies.imports.files import zipped
from tests.studies.imports.tools import INSPECT, eval_archive, lines

pytestmark = pytest.mark.django_db
FILES = tools.FILES | judged.TEXTS | datasets.TEXTS


def imported(tmp_path, name: str, data: bytes):
    path = tmp_path / name
    path.write_bytes(data)
    study = Study.objects.create(title="tool")
    return study, import_stimuli_file(
        study, path, by=None, options=Options(creates_systems=True, proposes_columns=True)
    )


@pytest.mark.parametrize("case", FILES)
def test_a_file_of_a_tool_becomes_a_draft(tmp_path, case):
    name, data, expected = FILES[case]
    study, report = imported(tmp_path, name, data)
    assert report.is_written, list(report.problems)
    rows = Output.objects.filter(system__study=study).values_list("system__name", "prompt__key", "sample", "text")
    # A key that is made from a text stands for the number of its prompt.
    numbers = {prompt.key: n for n, prompt in enumerate(study.prompts.order_by("pk"))}
    has_numbers = any(isinstance(key, int) for _, key, _ in expected)
    assert {
        (system, numbers[key] if has_numbers else key, sample): text for system, key, sample, text in rows
    } == expected


@pytest.mark.parametrize("case", judged.PROMPTS)
def test_a_file_without_outputs_brings_only_prompts(tmp_path, case):
    name, data, expected = judged.PROMPTS[case]
    study, report = imported(tmp_path, name, data)
    assert report.is_written and report.has_only_prompts
    assert dict(study.prompts.values_list("key", "text")) == expected


def test_what_a_tool_knows_about_prompts_is_kept(tmp_path):
    study, _ = imported(tmp_path, *FILES["a log of Inspect"][:2])
    assert dict(study.prompts.values_list("key", "text")) == {"1": "Question 1?", "2": "Question 2?"}
    assert set(study.prompts.values_list("domain", flat=True)) == {"facts"}
    study, report = imported(tmp_path, *FILES["MQM"][:2])
    assert set(study.prompts.values_list("source", "group")) == {("Sentence 1.", "talk"), ("Sentence 2.", "talk")}
    assert any("MQM table of WMT" in finding.text for finding in report.findings)
    study, _ = imported(tmp_path, *FILES["chats"][:2])
    assert Prompt.objects.get(study=study, key="c1").text == "User: Hi.\n\nAssistant: Yes?\n\nUser: Say 1."
    questions = lines({"question_id": 81, "category": "writing", "turns": ["Compose.", "Rewrite."]})
    study, report = imported(tmp_path, "question.jsonl", questions)
    assert report.has_only_prompts and study.prompts.get().text == "Turn 1: Compose.\n\nTurn 2: Rewrite."


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (eval_archive()[:-40], "is damaged, or packed in a way"),
        (b"no zip", "is damaged, or packed in a way"),
        (eval_archive(INSPECT | {"samples": []}), "its samples were not stored"),
    ],
)
def test_an_archive_that_is_no_log_is_refused(tmp_path, data, message):
    study, report = imported(tmp_path, "log.eval", data)
    assert message in str(report.problems.first[0]) and not study.prompts.exists()


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_file_that_is_cut_off_writes_nothing_or_whole_rows(tmp_path, case, share):
    name, data, expected = FILES[case]
    study, report = imported(tmp_path, name, data[: int(len(data) * share)])
    if report.is_written:  # tables of lines may end anywhere
        assert name.endswith((".tsv", ".jsonl")) and study.prompts.count() <= len(expected)
    else:
        assert not study.prompts.exists()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "log.json",
            {"eval": {"model": "m"}, "samples": [1]},
            "looks like a log of Inspect, but a part of it has another form",
        ),
        ("state.json", {"adapter_spec": {}, "request_states": [{"result": 7}]}, "looks like a scenario state of HELM"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, name, value, message):
    study, report = imported(tmp_path, name, json.dumps(value).encode())
    assert message in str(report.problems.first[0]) and not study.prompts.exists()


def test_a_row_of_another_form_is_named(tmp_path):
    rows = [{"question_id": 1, "turns": ["Compose."]}, {"question_id": 2, "model_id": "m"}, {"answer": 3}]
    _, report = imported(tmp_path, "question.jsonl", lines(*rows))
    assert any(problem.row == 3 and "has another form" in problem.text for problem in report.problems)


def renamed(data: bytes) -> bytes:
    """The file without the column that holds the outputs."""
    for old in (
        b'"conversation_a"',
        b'"output_1"',
        b'"data"',
        b'"fields"',
        b'"decoded"',
        b'"output"',
        b"<seg",
        b'"resps"',
        b'"choices"',
    ):
        data = data.replace(old, old[:-2] + b"xx" + old[-1:])
    return data


# Each gives the name of the file and its bytes, with some damage.
DAMAGE = {
    "in another encoding": lambda name, data: (name, data.replace(b"a", "é".encode("cp1252"), 1)),
    "in UTF-16 without a mark": lambda name, data: (name, data.decode().encode("utf-16-le")),
    "twice in one file": lambda name, data: (name, data + data),
    "another column": lambda name, data: (name, renamed(data)),
    "entities that grow": lambda name, data: (name, data.replace(b"<dataset", b'<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<dataset', 1)),
    "a bomb": lambda name, data: (f"{name}.gz", gzip.compress(data[:40] + b" " * 9_000_000)),
}  # fmt: skip
TEXT_FILES = {case: file for case, file in FILES.items() if not file[0].endswith((".eval", ".parquet", ".zip"))}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("case", TEXT_FILES)
def test_a_damaged_file_writes_nothing_or_whole_rows(tmp_path, case, damage):
    name, data, expected = TEXT_FILES[case]
    damaged = DAMAGE[damage](name, data)
    study, report = imported(tmp_path, *damaged)
    n = Output.objects.filter(system__study=study).count()
    if report.is_written:
        # Equal texts without a key of their own are different prompts. A file without a tool's column is none of the tool's.
        times = 2 if case in ("preferences", "chats") and damage == "twice in one file" else 1
        assert n == len(expected) * times or damage == "another column", damage
    else:
        first = str(report.problems.first[0])
        assert n == 0 and not study.prompts.exists() and len(first.split()) < 45, first


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("votes.jsonl", lines({"model_a": "a", "model_b": "b", "winner": "tie", "judge": "x"}), "The votes have no texts"),
        (
            "votes.jsonl",
            judged.MT_JUDGED + lines(json.loads(judged.MT_JUDGED.splitlines()[0]) | {"conversation_a": judged.talk("Compose.", "Other.")}),
            "has another text for this prompt in an earlier row",
        ),
        ("scores.csv", judged.APPRAISE, "holds scores of Appraise and no texts"),
        ("e.json", json.dumps({"schema_version": "0.3.0", "evaluation_id": "x", "evaluation_results": []}, indent=1).encode(), "has scores and no outputs"),
        (
            "e.jsonl",
            judged.EVERY_EVAL + judged.EVERY_EVAL.replace(b"facts/org/m/1", b"facts/org/m/2"),
            "two evaluations of “org/m” with sample s1",
        ),
        ("w.xml", judged.WMT_XML.replace(b' system="A"', b""), "has a translation without the name of its system"),
        ("w.xml", judged.WMT_XML.replace(b"<dataset", b'<!DOCTYPE d [<!ENTITY a "aaaa">]>\n<dataset'), "declares entities"),
        ("w.xml", b"<dataset/>", "has no segment"),
        ("w.xml", b"<other/>", "is not a table"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_name(tmp_path, name, data, message):
    study, report = imported(tmp_path, name, data)
    assert message in " | ".join(map(str, report.problems)) and not study.prompts.exists(), list(report.problems)


def test_a_packed_file_of_a_tool_is_read_too(tmp_path):
    study, report = imported(tmp_path, "arena.zip", zipped({"arena.jsonl": judged.ARENA}))
    assert report.is_written and study.systems.count() == 2


def test_votes_of_one_text_column_a_side_are_read(tmp_path):
    """The form of the competition's table: turns are lists that are written as JSON."""
    rows = [
        {"id": n, "model_a": "a", "model_b": "b", "prompt": json.dumps([f"Say {n}."]), "response_a": json.dumps([f"A {n}."]),
         "response_b": json.dumps([f"B {n}."]), "winner_model_a": 0, "winner_model_b": 1, "winner_tie": 0}
        for n in (1, 2)
    ]  # fmt: skip
    study, report = imported(
        tmp_path, "train.csv", own.csv_of([list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)], ";")
    )
    assert report.is_written, list(report.problems)
    assert set(study.prompts.values_list("key", "text")) == {("1", "Say 1."), ("2", "Say 2.")}
