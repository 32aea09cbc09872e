"""Files of evaluation tools, each made by hand in the form that the tool documents, become drafts without a word from the user."""

import json

import pytest

from studies.imports.tables.columns import Options
from studies.imports.tables.run import import_stimuli_file
from studies.models import Output, Prompt, Study
from tests.studies.imports.tools import INSPECT, INSPECT_OUTPUTS, eval_archive

pytestmark = pytest.mark.django_db


def lines(*rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


HELM = {
    "adapter_spec": {"model": "org/model-7b", "method": "generation"},
    "request_states": [
        {
            "instance": {"id": f"id{n}", "input": {"text": f"Question {n}?"}, "split": "test", "references": []},
            "train_trial_index": 0,
            "request": {"prompt": f"Examples. Question {n}?", "model": "org/model-7b"},
            "result": {"success": True, "completions": [{"text": f"Answer {n}.", "tokens": []}]},
        }
        for n in (1, 2)
    ],
}
MQM_HEAD = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity\n"
MQM = MQM_HEAD + "".join(
    f"{system}\ttalk\t1\t{segment}\t{rater}\tSentence {segment}.\t{start}Satz <v>{segment}</v> von {system}.\tStyle\tMinor\n"
    for segment, start in ((1, ""), (2, '"'))
    for system in ("A", "B")
    for rater in ("r1", "r2")
)

# Name of the file, its bytes, and the outputs by system, key and number.
FILES = {
    "a log of Inspect": ("log.json", json.dumps(INSPECT, indent=2).encode(), INSPECT_OUTPUTS),
    "an archive of Inspect": ("log.eval", eval_archive(), INSPECT_OUTPUTS),
    "HELM": ("scenario_state.json", json.dumps(HELM, indent=1).encode(), {("org/model-7b", f"id{n}", 0): f"Answer {n}." for n in (1, 2)}),
    "lm-eval, with lists": (
        "samples_facts_2026.jsonl",
        lines(*(
            {"doc_id": n, "doc": {"q": n}, "target": " yes", "arguments": [[f"Q: {n}?\nA:", {"until": ["\n"]}]], "resps": [[f"Answer number {n} is this."]], "exact_match": 0.0}
            for n in range(3)
        )),
        {("output", str(n), 0): f"Answer number {n} is this." for n in range(3)} | {("reference", str(n), 0): "yes" for n in range(3)},
    ),
    "lm-eval, with objects": (
        "samples_facts_2026.jsonl",
        lines(*(
            {"doc_id": n, "target": "4", "arguments": {"gen_args_0": {"arg_0": f"Q: {n}?", "arg_1": {}}}, "resps": [["Four, of course."]], "filtered_resps": ["4"]}
            for n in range(3)
        )),
        {("output", str(n), 0): "Four, of course." for n in range(3)} | {("reference", str(n), 0): "4" for n in range(3)},
    ),
    "MT-Bench": (
        "model.jsonl",
        lines({"question_id": 81, "answer_id": "x", "model_id": "m", "choices": [{"index": 0, "turns": ["First.", "Second."]}], "tstamp": 1.5}),
        {("m", "81", 0): "Turn 1: First.\n\nTurn 2: Second."},
    ),
    "MQM": (
        "mqm.tsv",
        MQM.encode(),
        {(s, f"talk:{n}", 0): f"{quote}Satz {n} von {s}." for n, quote in ((1, ""), (2, '"')) for s in ("A", "B")},
    ),
    "AlpacaEval": (
        "outputs.json",
        json.dumps([{"instruction": f"Say {n}.", "output": f"It is {n}.", "generator": "one", "dataset": "d"} for n in range(3)]).encode(),
        {("one", n, 0): f"It is {n}." for n in range(3)},
    ),
    "preferences": (
        "dpo.jsonl",
        lines(*(
            {"prompt": f"Say {n}.", "chosen": [{"role": "user", "content": f"Say {n}."}, {"role": "assistant", "content": f"A good answer to {n}."}],
             "rejected": [{"role": "user", "content": f"Say {n}."}, {"role": "assistant", "content": f"A bad answer to {n}."}]}
            for n in range(3)
        )),
        {("chosen", n, 0): f"A good answer to {n}." for n in range(3)} | {("rejected", n, 0): f"A bad answer to {n}." for n in range(3)},
    ),
    "chats": (
        "chats.jsonl",
        lines(*(
            {"id": f"c{n}", "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"},
                                         {"role": "user", "content": f"Say {n}."}, {"role": "assistant", "content": f"An answer to {n}, as you wish."}]}
            for n in range(3)
        )),
        {("output", f"c{n}", 0): f"An answer to {n}, as you wish." for n in range(3)},
    ),
}  # fmt: skip


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
