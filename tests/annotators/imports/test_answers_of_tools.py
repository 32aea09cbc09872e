"""Files of people's judgements, each made by hand in the form that its tool documents: one file brings the texts and the answers."""

import gzip
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotators.imports import Options, import_answers_and_close_draft
from annotators.models import Response
from studies.imports.tables import Options as TextOptions
from studies.imports.tables import import_stimuli_file
from studies.models import Question, Study
from studies.stimuli.texts import key_from_text
from tests.builders import add_choice, add_marks, add_ranking, add_rating, draft_study, user
from tests.studies.imports import judged
from tests.studies.imports.judged import ANSWERS
from tests.studies.imports.tools import MQM

pytestmark = pytest.mark.django_db


def question(section, key: str, **scale) -> None:
    Question.objects.create(
        section=section, position=section.questions.count() + 1, key=key, text=f"{key}?", scale=scale
    )


def choice(study: Study) -> None:
    add_choice(study, strategy="any", stopping="none", allows_tie=True)


def turns(study: Study) -> None:
    section = add_choice(study, strategy="any", stopping="none", allows_tie=True)
    section.questions.update(key="turn_1")
    question(section, "turn_2", kind="output")
    section.questions.update(help="**Better**: read it.")


def ratings(study: Study) -> None:
    section = add_rating(study, position=1)
    question(section, "fits", kind="choice", options=[{"key": key, "label": key} for key in ("yes", "no")])
    question(section, "why", kind="text")


def criteria(study: Study) -> None:
    section = add_rating(study, position=1)
    section.questions.update(key="coherence")
    question(section, "fluency", kind="likert", labels=["1", "2", "3", "4", "5"])


def score(study: Study) -> None:
    section = add_rating(study, position=1)
    section.questions.update(scale={"kind": "continuous"})


DESIGNS = {
    "Arena": choice,
    "MT-Bench judgements": turns,
    "AlpacaEval annotations": choice,
    "SummEval": criteria,
    "Appraise": score,
    "MQM": add_marks,
}
TEXTS_OF = {"Appraise": ("test.xml", judged.WMT_XML), "Argilla, version 1": ("records.json", judged.ARGILLA)}


def draft(tmp_path, case: str) -> Study:
    study = draft_study(systems=(), prompts=0, consent="", public_title="", contact="", minutes=None)
    name, data = TEXTS_OF.get(case, ANSWERS[case])
    options = TextOptions(creates_systems=True, proposes_columns=True)
    if case == "Potato":  # its file has texts of no system
        data = judged.lines(*({"prompt_key": f"i{n}", "system": "ada", "text": f"A text number {n}."} for n in (1, 2)))
        name = "own.jsonl"
    report = import_stimuli_file(study, written(tmp_path, name, data), by=None, options=options)
    assert report.is_written, list(report.problems)
    DESIGNS.get(case, ratings)(study)
    return study


def written(tmp_path, name: str, data: bytes):
    path = tmp_path / name
    path.write_bytes(data)
    return path


def put(tmp_path, study: Study, name: str, data: bytes, columns=None):
    return import_answers_and_close_draft(study, written(tmp_path, name, data), by=None, options=Options(columns or {}))


def stored(study: Study) -> list[tuple]:
    """Each answer: prompt, question, system judged or chosen, and what was said."""
    rows = Response.objects.filter(assignment__study=study).order_by("pk")
    return sorted(
        (
            row.item.prompt.key,
            row.question.key,
            (row.chosen or row.exposure).output.system.name if row.chosen or row.exposure else "",
            (float(row.value) if row.value is not None else "", row.choice, row.part, row.text),
        )
        for row in rows
    )


def rated(key: str, system: str, **said) -> list[tuple]:
    forms = {
        "overall": lambda n: (float(n), "", "", ""),
        "fits": lambda word: ("", word, "", ""),
        "why": lambda text: ("", "", "", text),
    }
    return [(key, name, system, forms[name](value)) for name, value in said.items()]


CHOSEN = ("", "", "", "")
TIED = ("", "tie", "", "")
EXPECTED = {
    "Arena": [(f"{n:032x}", "better", system, said) for n, system, said in ((0, "koala", CHOSEN), (1, "alpaca", CHOSEN), (2, "", TIED), (3, "", TIED))],
    "MT-Bench judgements": [
        ("81", "turn_1", "", TIED), ("81", "turn_1", "gpt-4", CHOSEN), ("81", "turn_2", "gpt-4", CHOSEN), ("81", "turn_2", "vicuna", CHOSEN),
    ],
    "Label Studio": [
        row for n, system in ((1, "ada"), (2, "bo")) for person in (1, 2)
        for row in rated(key_from_text("Say it."), system, overall=n + person, fits="yes", why="Short.\nGood.")
    ],
    "Argilla": [row for n in (1, 2) for row in rated(key_from_text(f"Say {n}."), "ada", overall=2 + n, fits="yes")],
    "Argilla, version 1": rated(key_from_text("Say 1."), "ada", overall=3),
    "Potato": [row for n in (1, 2) for _ in range(2) for row in rated(f"i{n}", "ada", overall=4, fits="yes", why="It reads well.")],
    "SummEval": [
        (f"dm-test-{n}", name, model, (float(value), "", "", ""))
        for n in (1, 2) for model in ("M0", "M1") for place in (3, 4, 5) for name, value in (("coherence", 2 + n), ("fluency", place))
    ],
    "Appraise": [("talk:1", "overall", "A", (80.0, "", "", "")), ("talk:1", "overall", "B", (60.0, "", "", "")), ("talk:2", "overall", "A", (90.0, "", "", ""))],
    "MQM": [
        (f"talk:{n}", "errors", system, (1.0, "style", f"1:{start}-{start + 1}", ""))
        for n, start in ((1, 5), (2, 6)) for system in ("A", "B") for _ in range(2)
    ],
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_one_file_brings_texts_and_answers(tmp_path, case):
    study = draft(tmp_path, case)
    report = put(tmp_path, study, *ANSWERS[case])
    assert report.is_written, list(report.problems)
    if case == "AlpacaEval annotations":
        said = sorted((system, values) for _, _, system, values in stored(study))
        assert said == [("", TIED), ("one", CHOSEN), ("two", CHOSEN)]
    else:
        assert stored(study) == sorted(EXPECTED[case])
    again = put(tmp_path, Study.objects.get(pk=study.pk), *ANSWERS[case])
    assert not again.has_changes and again.is_sound


def renamed(data: bytes) -> bytes:
    """The file without the column that says what was answered."""
    for old in (
        b'"winner"',
        b'"preference"',
        b'"annotations"',
        b'"responses"',
        b'"label_annotations"',
        b'"expert_annotations"',
        b"severity",
    ):
        data = data.replace(old, old.replace(b"a", b"xx").replace(b"e", b"yy"))
    return data.replace(b",TGT,", b",XYZ,")


# Each gives the name of the file and its bytes, with some damage.
DAMAGE = {
    "cut in the middle": lambda name, data: (name, data[: len(data) * 2 // 3]),
    "in another encoding": lambda name, data: (name, data.replace(b"a", "é".encode("cp1252"), 1)),
    "in UTF-16 without a mark": lambda name, data: (name, data.decode().encode("utf-16-le")),
    "another column": lambda name, data: (name, renamed(data)),
    "twice in one file": lambda name, data: (name, data + data),
    "nested too deeply": lambda name, data: (
        name,
        data.replace(b":", b":" + b"[" * 100_000, 1) if name.endswith("l") else b"[" * 100_000,
    ),
    "a bomb": lambda name, data: (f"{name}.gz", gzip.compress(data[:40] + b" " * 9_000_000)),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("case", ANSWERS)
def test_a_damaged_file_of_answers_stores_nothing_or_whole_rows(tmp_path, case, damage):
    study = draft(tmp_path, case)
    name, data = DAMAGE[damage](*ANSWERS[case])
    report = put(tmp_path, study, name, data)
    if report.is_written:
        # Lines may end anywhere, marks and votes say the same twice.
        assert damage in ("cut in the middle", "in another encoding") and report.counts["answers"].new <= len(
            EXPECTED.get(case, "...")
        ), damage
    else:
        first = str(report.problems.first[0])
        assert report.problems and first.endswith((".", "?")) and len(first.split()) < 45, first
        assert not Response.objects.filter(assignment__study=study).exists() and Study.objects.get(pk=study.pk).is_draft


def changed(data: bytes, **values) -> bytes:
    """The first line with other values; None removes one."""
    first, _, rest = data.partition(b"\n")
    row = {name: value for name, value in (json.loads(first) | values).items() if value is not None}
    return json.dumps(row).encode() + b"\n" + rest


MODEL_JUDGE = judged.lines(
    {
        "question_id": 81,
        "model": "m",
        "judge": ["gpt-4", "single-v1"],
        "judgment": "Good.",
        "score": 9,
        "turn": 1,
        "tstamp": 1.0,
    }
)
REFUSED = [
    ("Arena", "v.jsonl", changed(judged.ARENA, judge=None), "no column annotator"),
    ("Arena", "v.jsonl", judged.ARENA.replace(b'"winner": "tie"', b'"winner": "maybe"'), "must be model_a, model_b, tie or both_bad"),
    ("MT-Bench judgements", "v.jsonl", MODEL_JUDGE, "judgements of MT-Bench by a language model"),
    ("AlpacaEval annotations", "a.json", judged.ALPACA.replace(b"2.0", b"1.23"), "is the probability of a language model"),
    ("AlpacaEval annotations", "a.json", judged.ALPACA.replace(b'"generator_1": "one"', b'"generator_1": ""', 1), "names no system"),
    ("Label Studio", "a.json", judged.LABEL_STUDIO.replace(b'"type": "choices"', b'"type": "brush"', 1), "of the type “brush”"),
    ("Label Studio", "a.json", judged.LABEL_STUDIO_SPANS, "no section of error marks"),
    ("Label Studio", "a.json", judged.LABEL_STUDIO.replace(b'"completed_by": 2', b'"completed_by": null', 1), "must not be empty"),
    ("Argilla", "a.json", judged.ARGILLA.replace(b'"value": 3', b'"value": [{"value": "a", "place": 1}]', 1), "neither ranks nor spans"),
    ("Potato", "a.jsonl", changed(judged.POTATO, user_id=None), "does not say who annotated"),
    ("Potato", "a.jsonl", changed(judged.POTATO, span_annotations=[{"start": 1, "end": 2, "name": "x"}]), "no section of error marks"),
    ("Potato", "a.jsonl", changed(judged.POTATO, span_annotations=[{"start": 1, "end": 2, "tag": "x"}]), "a span without start, end and label"),
    ("Potato", "a.jsonl", judged.DOCCANO, "which does not say who gave a label"),
    ("MQM", "a.tsv", MQM.replace("Minor", "Grave").encode(), "must be minor, major, critical"),
    ("SummEval", "a.jsonl", judged.EVERY_EVAL, "texts, and no answers of people"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "name", "data", "message"), REFUSED)
def test_what_a_tool_does_not_tell_is_refused_with_the_reason(tmp_path, case, name, data, message):
    study = draft(tmp_path, case)
    report = put(tmp_path, study, name, data)
    assert any(message in str(problem) for problem in report.problems), list(report.problems)
    assert Study.objects.get(pk=study.pk).is_draft


def test_another_column_can_name_the_annotator(tmp_path):
    study = draft(tmp_path, "Arena")
    data = b"".join(changed(line, judge=None, session="s1") for line in judged.ARENA.splitlines())
    report = put(tmp_path, study, "votes.jsonl", data, {"annotator": "session"})
    assert report.is_written and report.counts["annotators"].new == 1, list(report.problems)


def test_what_is_left_out_is_counted(tmp_path):
    report = put(tmp_path, draft(tmp_path, "SummEval"), *ANSWERS["SummEval"])
    said = " ".join(finding.text for finding in report.findings)
    assert "Ratings of the crowd were left out" in said and "40 parts of the file were left out" in said


def test_a_page_takes_the_file_of_a_tool(tmp_path, client):
    study = draft(tmp_path, "Label Studio")
    client.force_login(user(is_superuser=True))
    name, data = ANSWERS["Label Studio"]
    page = reverse("import_answers", args=[study.pk])
    response = client.post(page, {"file": SimpleUploadedFile(name, data)}, follow=True)
    assert "tasks of Label Studio" in response.content.decode() and response.status_code == 200


STYLE = ("p1", "errors", "ada", (1.0, "style", "2:7-8", ""))
NOTHING = ("p1", "errors", "ada", (0.0, "", "", ""))
SPANS = {
    case: [("p1", "errors", "ada", (5.0, "accuracy", "1:0-3", ""))] if case.startswith("Label Studio") else []
    for case in judged.MARKED
    if "spans" in case
}


def marked_draft(tmp_path) -> Study:
    study = draft_study(systems=(), prompts=0, consent="", public_title="", contact="", minutes=None)
    texts = judged.lines({"prompt_key": "p1", "system": "ada", "text": judged.TALE})
    options = TextOptions(creates_systems=True)
    assert import_stimuli_file(study, written(tmp_path, "t.jsonl", texts), by=None, options=options).is_written
    add_marks(study)
    return study


@pytest.mark.parametrize("tool", SPANS)
def test_spans_are_error_marks(tmp_path, tool):
    """Characters are counted as heval counts them, and a person who marked nothing found no error."""
    study = marked_draft(tmp_path)
    report = put(tmp_path, study, *judged.MARKED[tool])
    assert report.is_written, list(report.problems)
    assert stored(study) == sorted([STYLE, NOTHING, *SPANS[tool]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (judged.LABEL_STUDIO_SPANS.replace(b'"Minor"', b'"Style"'), "which is not one severity"),
        (judged.LABEL_STUDIO_SPANS.replace(b'"Minor"', b'"Major/Minor"'), "which is not one severity"),
        (judged.LABEL_STUDIO_SPANS.replace(b'"start": 18', b'"start": 16'), "that is not in the output"),
        (judged.LABEL_STUDIO_SPANS.replace(b"Accuracy/", b"Beauty/"), "must be an error category"),
    ],
)
def test_a_span_that_is_no_error_mark_is_refused(tmp_path, data, message):
    study = marked_draft(tmp_path)
    report = put(tmp_path, study, "a.json", data)
    assert any(message in str(problem) for problem in report.problems), list(report.problems)
    assert not stored(study)


@pytest.mark.parametrize("tool", [case for case in judged.MARKED if "ranks" in case])
def test_a_ranking_has_places(tmp_path, tool):
    study = draft_study(systems=(), prompts=0, consent="", public_title="", contact="", minutes=None)
    # A ranking of Argilla names fields. That they are outputs, a person says.
    roles = (
        ()
        if tool.startswith("Label Studio")
        else ("prompt_key=prompt_key", "prompt_text=prompt", "output:ada=ada", "output:bo=bo")
    )
    options = TextOptions(creates_systems=True, proposes_columns=not roles, columns=roles)
    path = written(tmp_path, *judged.MARKED[tool])
    report = import_stimuli_file(study, path, by=None, options=options)
    assert report.is_written, list(report.problems)
    section = add_ranking(study)
    section.questions.update(key="place")
    report = put(tmp_path, study, *judged.MARKED[tool])
    assert report.is_written, list(report.problems)
    assert [row[2:] for row in stored(study)] == [("ada", (2.0, "", "", "2")), ("bo", (1.0, "", "", "1"))]
