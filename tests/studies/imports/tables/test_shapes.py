"""A table in either shape and either format is read, written, and found to be the same again."""

import json

import pytest

from studies.imports.tables.result import ImportReport
from studies.models import AuditEvent, Output, Study
from tests.studies.imports.files import (
    LONG,
    lines,
    long,
    rows_of,
    sound,
    table,
    texts,
)


@pytest.mark.parametrize("name", ["long.csv", "long.jsonl", "wide.csv", "wide.jsonl", "objects.jsonl"])
def test_either_shape_in_either_format_gives_the_same_rows(study, put, name):
    wide = [
        {
            "prompt_key": key,
            "prompt_text": f"Prompt {key}",
            "outputs": {row["system"]: row["text"] for row in LONG if row["prompt_key"] == key},
        }
        for key in ("p1", "p2")
    ]
    data = {
        "long.csv": table(LONG),
        "long.jsonl": lines(LONG),
        "wide.jsonl": lines(wide),
        "wide.csv": table(
            [
                {k: v for k, v in row.items() if k != "outputs"} | {f"output:{s}": t for s, t in row["outputs"].items()}
                for row in wide
            ]
        ),
        "objects.jsonl": lines(
            [row | {"outputs": {s: {"text": t, "format": "plain"} for s, t in row["outputs"].items()}} for row in wide]
        ),
    }[name]
    report = sound(put(data, name))
    assert report.is_written and report.rows == (4 if name.startswith("long") else 2)
    assert texts(study) == {
        ("ada", "p1", 0): "One.",
        ("bo", "p1", 0): "Two.",
        ("ada", "p2", 0): "Three.",
        ("bo", "p2", 0): "Four.",
    }
    assert list(study.prompts.values_list("key", "text")) == [("p1", "Prompt p1"), ("p2", "Prompt p2")]


def test_every_column_is_stored(study, put):
    row = {
        "prompt_key": "p1", "prompt_text": "Continue.", "source": "A document.", "domain": "news", "language": "pt-BR",
        "attributes": {"length": 3}, "system": "ada", "sample": 2, "text": "**Bold**", "format": "markdown", "output_language": "de",
    }  # fmt: skip
    sound(put(lines([row, {"prompt_key": "p1", "system": "bo", "text": "ok"}]), "a.jsonl"))
    prompt = study.prompts.get()
    assert (prompt.text, prompt.source, prompt.domain, prompt.language) == ("Continue.", "A document.", "news", "pt-BR")
    assert prompt.attributes == {"length": 3}
    output = Output.objects.get(system__name="ada")
    assert (output.sample, output.format, output.language, output.text) == (2, "markdown", "de", "**Bold**")


def test_attributes_stand_in_csv_as_columns_of_their_own(study, put):
    sound(put(b"key,prompt,attribute:topic,attribute:year\np1,Go.,sea,1867\np2,Go.,,\n"))
    assert dict(study.prompts.values_list("key", "attributes")) == {"p1": {"topic": "sea", "year": "1867"}, "p2": {}}


def test_texts_are_stored_as_they_stand(study, put):
    odd = ["NA", "None", "null", "0", "False", "007", "&amp; &hellip;", "=1+1", "<<light> </p>", "ú" * 789, "  two  ", "a\u2028b", "\u202eright", "e\u0301 é", "👩‍👩‍👧", "H軍は…", "{{ x }}", "“a” ``b''", "a\tb\n\nc"]  # fmt: skip
    sound(put(table([long(f"p{n:02}", "ada", text) for n, text in enumerate(odd)])))
    assert [texts(study)["ada", f"p{n:02}", 0] for n in range(len(odd))] == odd


def test_a_dry_run_writes_nothing_and_says_what_would_be(study, put):
    before = rows_of(study)
    report = sound(put(table(LONG), is_dry_run=True))
    assert (report.counts["prompts"].new, report.counts["outputs"].new, report.counts["systems"].same) == (2, 4, 2)
    assert report.has_changes and not report.is_written
    assert rows_of(study) == before and not AuditEvent.objects.exists()
    assert report.first[0] == {
        "row": 2,
        "batch": None,
        "prompt": "p1",
        "prompt_text": "Prompt p1",
        "outputs": [["ada", "One."]],
    }


def test_a_report_survives_json(study, put):
    report = put(table([*LONG, long("p3", "ada", "One."), long("p3", "zoe", "x")]), is_dry_run=True)
    stored = json.loads(json.dumps(report.as_json()))
    assert ImportReport.from_json(stored).as_json() == stored
    assert ImportReport.from_json(stored).outcome() == report.outcome()


def test_the_same_file_twice_changes_nothing(study, put):
    sound(put(table(LONG)))
    before, events, version = rows_of(study), AuditEvent.objects.count(), Study.objects.get().version
    report = sound(put(table(LONG)))
    assert not report.is_written and not report.has_changes
    assert (report.counts["outputs"].same, report.counts["outputs"].new) == (4, 0)
    assert (rows_of(study), AuditEvent.objects.count(), Study.objects.get().version) == (before, events, version)
    assert "imported_before" in {finding.kind for finding in report.findings}


def test_an_import_is_in_the_audit_log(study, put):
    put(table(LONG))
    event = AuditEvent.objects.get(study=study)
    assert event.verb == "import" and event.data["counts"]["outputs"]["new"] == 4 and len(event.data["sha256"]) == 64
    assert Study.objects.get().version == 1
