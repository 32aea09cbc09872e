"""What a file of old answers may hold: each case ends in words that name the row and the column, and nothing is written."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotators.imports import Options, import_answers_and_close_draft
from annotators.models import Assignment, Response
from studies.imports.tables import run
from studies.models import Arm, Job, Output
from studies.stimuli.texts import SettingsRefused
from tests.builders import COMMENT, SCREENING, add_choice, add_rating, add_survey, draft_study, user

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

GOOD = {
    "annotator": "w1",
    "question": "better",
    "prompt_key": "p000",
    "shown:A": "alpha",
    "shown:B": "beta",
    "chosen": "beta",
}
RATED = {"annotator": "w1", "question": "overall", "prompt_key": "p000", "system": "alpha", "value": 3}
# What differs from the good row, and the words of the refusal.
CASES = [
    ({"annotator": ""}, "column “annotator”: must not be empty"),
    ({"annotator": None}, "column “annotator”: must not be empty"),
    ({"annotator": ["w1"]}, "column “annotator”"),
    ({"annotator": "w\u202e1"}, "invisible character"),
    ({"annotator": "w" * 201}, "200 are allowed"),
    (
        {"question": "bettter"},
        "column “question”: the study does not ask “bettter”; its questions are better, overall, fluent, comment",
    ),
    ({"question": ""}, "column “question”: matches several questions: better in section 1"),
    ({"section": 9}, "column “section”: the study has no section 9"),
    ({"section": 2}, "column “question”: the study does not ask “better”"),
    ({"section": "first"}, "column “section”: must be a whole number"),
    ({"section": 10**9}, "column “section”: must be a whole number"),
    ({"prompt_key": "p9"}, "column “prompt_key”: the study has no prompt “p9”"),
    ({"prompt_key": ""}, "column “prompt_key”: must name the prompt"),
    ({"shown:A": "zoe"}, "column “shown:A”: the study has no system “zoe”; it has alpha, beta"),
    ({"shown:A": "beta"}, "column “shown:A”: the same system is in two of the shown: columns"),
    ({"shown:B": ""}, "column “prompt_key”: section 1 shows 2 outputs at a time, but the row has 1"),
    ({"prompt_key": "p003"}, "“beta” has no output for “p003”"),
    ({"sample": 4}, "column “sample”: “alpha” has no sample 4"),
    ({"system": "alpha"}, "column “system”: must be empty: “better” is asked about all outputs together"),
    ({"chosen": "zoe"}, "column “chosen”: the study has no system “zoe”"),
    ({"chosen": ""}, "column “chosen”: is empty. Give the answer or a skip_reason"),
    ({"chosen": "", "choice": "tie"}, "column “choice”: “tie” is not a valid answer to “better”"),
    ({"chosen": "beta", "value": 1}, "column “value”: must be empty: answers to “better” belong in the column chosen"),
    ({"chosen": "", "label": "C"}, "column “label”: no output was shown under “C”"),
    ({"label": "A"}, "column “label”: is A, but the shown: columns give the letter B"),
    ({"label": "a<b"}, "column “label”: must be a letter such as A or B, not “a<b”"),
    ({"skip_reason": "tired"}, "column “skip_reason”: “tired”"),
    ({"position": -1}, "column “position”: must be a whole number"),
    ({"position": True}, "column “position”: must be a whole number"),
    ({"time": "yesterday"}, "column “time”: must be a time such as"),
    ({"time": 1621266764}, "column “time”: must be a time such as"),
    ({"time": "9999-12-31T23:59:59-23:00"}, "column “time”"),
    ({"time": "2999-01-01"}, "column “time”: must not be in the future"),
    ({"time": "0001-01-01T00:00:00+14:00"}, "column “time”"),
    ({"arm": "nobody's"}, "column “arm”: the study has no arm “nobody's”; the arms are all"),
    (RATED | {"value": 6}, "column “value”: “6” is not a valid answer to “overall”: Please choose one of the points"),
    (RATED | {"value": 2.5}, "column “value”: “2.5” is not a valid answer"),
    (RATED | {"value": "NaN"}, "column “value”: “NaN” is not a number"),
    (RATED | {"value": "1e400"}, "column “value”"),
    (RATED | {"value": "٣"}, "column “value”: “٣” is not a number. Write it with the digits 0 to 9"),
    (RATED | {"value": "0_4"}, "column “value”: “0_4” is not a number"),
    (RATED | {"value": "3,5"}, "column “value”: “3,5” is not a number. Write a decimal point: 3.5."),
    (RATED | {"annotator": "nan"}, "column “annotator”: “nan” is a word for a missing value"),
    (RATED | {"value": [3]}, "column “value”: “[3]” is not a number"),
    (RATED | {"value": True}, "column “value”: must be a number, not true. Write 1."),
    (RATED | {"value": ""}, "column “value”: is empty"),
    (RATED | {"system": ""}, "column “system”: must not be empty: “overall” is asked about each output"),
    ({"question": "fluent", "choice": "perhaps"}, "column “prompt_key”: must be empty: section 3 shows no texts"),
    (
        {"annotator": "w1", "question": "fluent", "choice": "perhaps"},
        "column “choice”: “perhaps” is not a valid answer to “fluent”",
    ),
    ({"annotator": "w1", "question": "comment", "text": "x\x00y"}, "contains a NUL character"),
    ({"annotator": "w1", "question": "comment", "text": "x" * 2001}, "at most 2000 characters"),
    ({"annotator": "w1", "question": "comment", "text": {"a": 1}}, "column “text”"),
]


@pytest.fixture
def study():
    made = draft_study(systems=("alpha", "beta"), prompts=4, owner=user())
    add_choice(made, position=1)
    add_rating(made, position=2)
    add_survey(made, position=3, questions=[SCREENING, COMMENT])
    Output.objects.get(system__name="beta", prompt__key="p003").delete()
    return made


def read(study, tmp_path, text: str, name="answers.jsonl", **options):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    report = import_answers_and_close_draft(study, path, by=None, **options)
    assert not Assignment.objects.exists() and not Response.objects.exists() and not Job.objects.exists()
    study.refresh_from_db()
    assert study.is_draft
    return " | ".join(str(problem) for problem in report.problems)


@pytest.mark.parametrize(("differing", "message"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_a_row_that_cannot_be_taken_is_named(study, tmp_path, differing, message):
    row = differing if set(differing) >= {"annotator", "question"} else GOOD | differing
    fine = {"annotator": "w0", "question": "fluent", "choice": "yes"}
    said = read(study, tmp_path, f"{json.dumps(fine)}\n{json.dumps(row)}\n")
    assert said.startswith("row 2") and message in said


def test_two_rows_that_contradict_each_other_are_named(study, tmp_path):
    other = GOOD | {"chosen": "alpha"}
    said = read(study, tmp_path, f"{json.dumps(GOOD)}\n{json.dumps(other)}\n")
    assert said == "row 1: answers the same question as row 2."
    turned = GOOD | {"shown:A": "beta", "shown:B": "alpha"}
    assert "differs from row 1" in read(study, tmp_path, f"{json.dumps(GOOD)}\n{json.dumps(turned)}\n")


def test_arms_must_be_said_where_there_are_several(study, tmp_path):
    Arm.objects.create(study=study, name="second")
    assert "must name the arm of “w1”; the arms are all, second" in read(study, tmp_path, json.dumps(GOOD))
    rows = [GOOD | {"arm": "all"}, GOOD | {"arm": "second", "prompt_key": "p001"}]
    assert "into several arms: all, second" in read(study, tmp_path, "\n".join(map(json.dumps, rows)))


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "a.csv", "The file is empty"),
        ("annotator,value\n", "a.csv", "The file has no row below the header"),
        ("who,value\nw1,3\n", "a.csv", "no column annotator; the columns found are: who, value"),
        ("annotator,prompt_key\nw1,p000\n", "a.csv", "no column holds an answer"),
        ("annotator,prompt,pair,value\nw1,p000,p000,3\n", "a.csv", "the columns “prompt” and “pair” mean the same"),
        ("annotator,value\nw1,3,4\n", "a.csv", "row 2"),
        ('{"annotator": "w1"\n', "a.jsonl", "row 1"),
        ("[1]\n", "a.jsonl", "row 1"),
        (b"annotator,value\nw\xff,3\n", "a.csv", "UTF-8"),
        ("annotator,value\n", "a.docx", "is not a table"),
        (b"PK\x03\x04", "a.zip", "is not a zip archive"),
        (b"PK\x03\x04", "a.xlsx", "is not a zip archive or workbook"),
    ],
)
def test_a_file_that_is_no_table_of_answers_is_refused(study, tmp_path, text, name, message):
    assert message in read(study, tmp_path, text, name)


def test_a_column_that_is_not_there_is_named(study, tmp_path):
    options = Options({"annotator": "worker"})
    said = read(study, tmp_path, "annotator,value\nw1,3\n", "a.csv", options=options)
    assert "the file has no column “worker”, which is declared as annotator" in said


@pytest.mark.parametrize(
    "columns",
    [
        ["annotator"],
        ["annotator="],
        ["=worker"],
        ["worker=annotator"],
        ["annotator=a", "annotator=b"],
        ["annotator=a", "value=a"],
        ["annotator=a", "value=A"],
        ["shown:a=x"],
        ["value:@p=x"],
        ["annotator=" + "x" * 201],
    ],
)
def test_a_mapping_that_is_none_is_refused(columns):
    with pytest.raises(SettingsRefused):
        Options.from_texts(columns)


@pytest.mark.parametrize(
    "stored", [None, [], {"columns": []}, {"columns": {"annotator": 3}}, {"left_out": "a"}, {"other": {}}]
)
def test_options_that_are_none_are_refused(stored):
    with pytest.raises(SettingsRefused):
        Options.from_json(stored)


def test_problems_are_shown_and_nothing_can_be_confirmed(study, client, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    client.force_login(user())
    file = SimpleUploadedFile("a.jsonl", json.dumps(GOOD | {"chosen": "<b>zoe</b>"}).encode())
    address = client.post(reverse("import_answers", args=[study.pk]), {"file": file}).url
    page = client.get(address).content.decode()
    assert "has no system “&lt;b&gt;zoe&lt;/b&gt;”" in page and "Write the answers" not in page
    assert client.post(address, {"confirm": "1"}).status_code == 302 and not Response.objects.exists()
    upload = run.get_upload(address.rstrip("/").rpartition("/")[2], study.pk)
    assert run.importer_of(upload).page == "import_answers"
