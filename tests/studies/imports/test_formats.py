"""Files of evaluation tools, each made by hand in the form that the tool documents, become drafts without a word from the user."""

import json

import pytest

from studies.imports.tables.columns import Options
from studies.imports.tables.run import import_stimuli_file
from studies.models import Output, Prompt, Study
from tests.studies.imports.tools import FILES, INSPECT, eval_archive, lines

pytestmark = pytest.mark.django_db


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
