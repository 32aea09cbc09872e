"""Error marks that were given elsewhere: a row for each mark, as exports write them, under the rules of the page."""

import csv
import io
import random

import pytest

from analysis.data.exports import csv_blocks
from analysis.data.flat_rows import Selection
from analysis.report.build import build_report
from annotators.imports import Options, import_answers_and_close_draft
from annotators.models import Assignment, Response
from annotators.pages.record import full_page_state, record_page_answers
from studies.models import Output, Study
from studies.protocols.marks import ErrorMarkField, NoErrorsField
from studies.services import lifecycle
from tests.builders import add_marks, draft_study, launched
from tests.players import claimed, form, open_page

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

HEAD = "annotator,question,prompt_key,system,value,choice,part\n"
# Sentence 1 has 9 characters, sentence 2 has 13.
TEXT = "It rains.\nNobody works."


def marks_draft(**settings) -> Study:
    study = draft_study(systems=("alpha", "beta"), prompts=4, consent="", contact="")
    add_marks(study, m=2, **settings)
    Output.objects.filter(system__study=study).update(text=TEXT)
    return study


def imported(study, tmp_path, text, **more):
    path = tmp_path / "marks.csv"
    path.write_text(text, encoding="utf-8")
    return import_answers_and_close_draft(Study.objects.get(pk=study.pk), path, by=None, **more)


def words(report) -> str:
    return " | ".join(str(problem) for problem in report.problems)


def stored(study):
    rows = Response.objects.filter(assignment__study=study, question__key="errors").order_by("pk")
    return [(r.exposure.output.system.name, r.slot.rpartition(".")[2], r.value, r.choice, r.part) for r in rows]


GOOD = HEAD + (
    "w,errors,p001,alpha,5,accuracy,2:0-6\n"
    "w,errors,p001,alpha,1,style,0\n"
    "w,errors,p001,alpha,1,accuracy,2:0-6\n"  # the same words with another severity are another mark
    "w,errors,p001,alpha,1,style,2:3-13\n"  # marks may overlap
    "w,score,p001,alpha,60,,\n"
    "w,errors,p001,beta,0,,\n"
    "w,score,p001,beta,100,,\n"
)


def test_each_mark_is_a_row(tmp_path):
    study = marks_draft()
    report = imported(study, tmp_path, GOOD)
    assert report.is_written, words(report)
    assert stored(study) == [
        ("alpha", "p1", 5, "accuracy", "2:0-6"),
        ("alpha", "p2", 1, "accuracy", "2:0-6"),
        ("alpha", "p3", 1, "style", "0"),
        ("alpha", "p4", 1, "style", "2:3-13"),
        ("beta", "p0", 0, "", ""),
    ]
    report = build_report(Study.objects.get(pk=study.pk), {"resamples": 99})
    found = {
        estimate["settings"]["system"]: estimate["estimate"]
        for block in report["blocks"]
        for estimate in block["estimates"]
        if estimate["estimand"] == "mean penalty of an output"
    }
    assert found == {"alpha": 8, "beta": 0}


def test_marks_need_no_score(tmp_path):
    study = marks_draft()
    assert imported(study, tmp_path, HEAD + "w,errors,p001,alpha,5,style,1\n").is_written
    assert stored(study) == [("alpha", "p1", 5, "style", "1")]


def test_a_score_needs_the_marks_of_its_output(tmp_path):
    study = marks_draft()
    rows = "w,score,p001,alpha,60,,\nw,errors,p001,beta,0,,\nw,score,p001,beta,100,,\n"
    report = imported(study, tmp_path, HEAD + rows)
    assert (
        words(report)
        == "row 2, column “question”: “score” also needs rows of “errors” about this output. Add them; 0 is no error."
    )
    refused = imported(study, tmp_path, HEAD + rows + "w,errors,p001,alpha,3,style,1\n")
    assert "row 5, column “value”" in words(refused) and refused.problems.count == 1
    # A page whose errors are optional could store the score alone.
    study.sections.get().questions.filter(key="errors").update(required=False)
    assert imported(study, tmp_path, HEAD + rows).is_written


@pytest.mark.parametrize(
    ("row", "column", "cause"),
    [
        (",style,1", "value", "must be the weight of a severity level, 1 (minor), 5 (major); or 0 for no error."),
        ("3,style,1", "value", "must be the weight of a severity level, 1 (minor), 5 (major); or 0 for no error."),
        ("-5,style,1", "value", "must be the weight of a severity level"),
        ("5,,1", "choice", "must be an error category: one of accuracy, fluency"),
        ("5,spelling,1", "choice", "must be an error category: one of accuracy, fluency"),
        ("5,style,", "part", "must be a sentence such as 2, characters in it such as 2:0-5, or 0 for none."),
        ("5,style,first", "part", "must be a sentence such as 2"),
        ("5,style,2:0", "part", "must be a sentence such as 2"),
        ("5,style,3", "part", "must be at most 2: the output has no sentence 3."),
        ("5,style,0:1-2", "part", "has characters, but 0 is no sentence."),
        ("5,style,1:0-10", "part", "has characters outside sentence 1. Give a range within 0-9, or only the sentence."),
        ("5,style,1:4-4", "part", "has characters outside sentence 1."),
        ("0,style,", "choice", "must be empty: the value 0 marks nothing."),
        ("0,,1", "part", "must be empty: the value 0 marks nothing."),
    ],
)
def test_a_mark_that_no_page_could_store_is_refused(tmp_path, row, column, cause):
    study = marks_draft()
    report = imported(study, tmp_path, HEAD + "w,errors,p002,beta,5,style,1\nw,errors,p001,alpha," + row + "\n")
    assert f"row 3, column “{column}”: {cause}" in words(report) and report.problems.count == 1
    assert not report.is_written and Study.objects.get(pk=study.pk).is_draft and not Response.objects.exists()


@pytest.mark.parametrize(
    ("rows", "refused", "cause"),
    [
        (("5,style,1", "5,style,1"), "row 3:", "is the same mark as row 2. Remove one of them."),
        (("5,style,1:0-2", "5,style,1:00-02"), "row 3:", "is the same mark as row 2."),
        (("0,,", "5,style,1"), "row 3, column “value”:", "marks an output in which row 2 marks nothing."),
        (("5,style,1", "0,,"), "row 2, column “value”:", "marks an output in which row 3 marks nothing."),
        (("0,,", "0,,"), "row 3, column “value”:", "0 marks nothing, but row 2 is about the same output."),
        (
            ("5,style,1", "1,style,1", "1,style,2"),
            "row 4, column “question”:",
            "is one mark too many: “errors” takes 2 for an output. Keep the worst ones.",
        ),
    ],
)
def test_the_marks_of_an_output_must_agree(tmp_path, rows, refused, cause):
    study = marks_draft(max_marks=2)
    report = imported(study, tmp_path, HEAD + "".join(f"w,errors,p001,alpha,{row}\n" for row in rows))
    assert f"{refused} {cause}" in words(report) and report.problems.count == 1
    assert not report.is_written and not Response.objects.exists()


def test_other_columns_must_be_empty(tmp_path):
    study = marks_draft()
    head = "annotator,question,prompt_key,system,value,choice,part,text,skip_reason\n"
    comment = imported(study, tmp_path, head + "w,errors,p001,alpha,5,style,1,Clumsy,\n")
    assert "row 2, column “text”: must be empty: answers to “errors” belong in the columns value, choice" in words(
        comment
    )
    skipped = imported(study, tmp_path, head + "w,errors,p001,alpha,,,,,cannot\n")
    assert "row 2, column “skip_reason”: must be empty" in words(skipped)
    score = imported(study, tmp_path, head + "w,score,p001,alpha,50,,1,,\n")
    assert "row 2, column “part”: must be empty: answers to “score” are about no part of an output." in words(score)


def test_stored_marks_are_never_added_to(tmp_path):
    study = marks_draft()
    assert imported(study, tmp_path, GOOD).is_written
    assert not imported(study, tmp_path, GOOD).has_changes
    for row in ("w,errors,p001,alpha,5,task,1\n", "w,errors,p001,beta,5,task,1\n", "w,errors,p001,alpha,0,,\n"):
        report = imported(study, tmp_path, HEAD + row)
        assert "another answer of “w” to this is already stored" in words(report) and not report.is_written, row
    assert imported(study, tmp_path, HEAD + "w,errors,p002,alpha,5,task,1\n").is_written


def exported(study):
    text = b"".join(csv_blocks("responses", Selection(Study.objects.get(pk=study.pk)))).decode()
    return text, list(csv.DictReader(io.StringIO(text)))


def marked(study, n):
    """Somebody who marks words, sentences and whole texts, leaves rows empty, and finds no error in some outputs."""
    assignment, rng = claimed(study, f"person {n}"), random.Random(n)
    while (key := full_page_state(assignment).next_key) is not None:
        _, _, asks = open_page(assignment, key)
        sent = {slot: "70" for slot, ask in asks.items() if ask.field.kind == "number"}
        marks = [slot for slot, ask in asks.items() if isinstance(ask.field, ErrorMarkField) and rng.random() < 0.4]
        for number, slot in enumerate(marks):
            place = {"where": rng.choice("012"), "words": rng.choice(["", f"{number}-5"])}
            kind = {"category": rng.choice(["style", "accuracy"]), "severity": rng.choice(["minor", "major"])}
            sent |= {f"{slot}.{name}": value for name, value in (place | kind).items()}
        if not marks:
            sent |= {slot: "1" for slot, ask in asks.items() if isinstance(ask.field, NoErrorsField)}
        if record_page_answers(assignment, key, form(**sent)).sent is not None:
            continue  # the same mark twice
        assignment = Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def test_an_export_is_imported_as_it_is(tmp_path):
    study = draft_study(systems=("alpha", "beta"), prompts=4, instructions="")
    add_marks(study, m=2, max_marks=4)
    Output.objects.filter(system__study=study).update(text=TEXT)
    study = launched(study)
    for n in range(4):
        marked(study, n)
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    text, given = exported(study)
    marks = [row for row in given if row["question"] == "errors"]
    assert {":" in row["part"] for row in marks if row["part"]} == {True, False} and {"0", "1", "5"} == {
        row["value"] for row in marks
    }
    there = marks_draft(max_marks=4)
    report = imported(there, tmp_path, text, options=Options({"time": "received_at"}))
    assert report.is_written, words(report)
    kept = (
        "section",
        "question",
        "prompt",
        "system",
        "sample",
        "label",
        "position",
        "value",
        "choice",
        "part",
        "received_at",
    )

    def answers(rows):
        people = dict.fromkeys(row["annotator"] for row in rows)
        by_person = [
            sorted(tuple(row[name] for name in kept) for row in rows if row["annotator"] == one) for one in people
        ]
        return sorted(by_person)

    text_again, given_again = exported(there)
    assert answers(given_again) == answers(given)
