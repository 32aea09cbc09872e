"""Every reader of answers x every dialect x every artefact: a row is stored with its own text, or left out and counted, or refused by name."""

import csv
import io
import itertools
import json

import pytest
from django.db import transaction

from annotators.imports import Options, import_answers_and_close_draft
from annotators.models import Response
from studies.models import Study
from tests.annotators.imports.drafts import choice_draft, rating_draft
from tests.builders import add_survey

pytestmark = pytest.mark.django_db
WORDS = {"key": "why", "text": "Why?", "scale": {"kind": "text"}}
# The layouts of a file: header, rows. Each of three rows has an annotator of its own and a remark that no other row has.
REMARKS = ("“Yes”, she said; no\ttab", 'He said "no"', "= one + one")


def long_rows() -> tuple[list[str], list[list[str]]]:
    header = ["annotator", "question", "prompt_key", "system", "value", "time", "text"]
    rows = [[f"w{n}", "overall", f"p00{n}", "ada", str(n + 2), f"2024-02-0{n + 1}T10:00:00Z", ""] for n in range(3)]
    rows += [[f"w{n}", "why", "", "", "", f"2024-02-0{n + 1}T10:00:00Z", REMARKS[n]] for n in range(3)]
    return header, rows


def wide_rows() -> tuple[list[str], list[list[str]]]:
    header = ["annotator", "overall p000 ada", "overall p001 ada", "why", "time"]
    rows = [[f"w{n}", str(n + 2), str(n + 1), REMARKS[n], f"2024-02-0{n + 1}T10:00:00Z"] for n in range(3)]
    return header, rows


LAYOUTS = {"long": long_rows, "wide": wide_rows}


# Dialects: (header, rows) to (name, bytes)


def _csv(delimiter=",", encoding="utf-8", before="", end="\n", quoting=csv.QUOTE_MINIMAL, name="a.csv"):
    def write(header, rows):
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=quoting)
        writer.writerows([header, *rows])
        return name, (before + buffer.getvalue()).encode(encoding)

    return write


def _lines(header, rows):
    return "a.jsonl", "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows).encode()


def _array(header, rows):
    return "a.json", json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=1).encode()


def _typed(header, rows):
    """JSON with numbers and nulls where a program would write them."""

    def cell(text):
        return None if text == "" else int(text) if text.isascii() and text.isdigit() else text

    return "a.jsonl", "".join(
        json.dumps({k: cell(v) for k, v in zip(header, row, strict=True)}) + "\n" for row in rows
    ).encode()


def _zipped(header, rows):
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("folder/a.csv", _csv()(header, rows)[1])
    return "a.zip", buffer.getvalue()


def _gzipped(header, rows):
    import gzip

    return "a.csv.gz", gzip.compress(_csv()(header, rows)[1])


DIALECTS = {
    "comma": _csv(),
    "semicolon": _csv(";"),
    "tab": _csv("\t", name="a.tsv"),
    "excel": _csv(";", "utf-8-sig", end="\r\n"),
    "utf-16": _csv("\t", "utf-16", name="a.txt"),
    "sep=": _csv(";", before="sep=;\n"),
    "all quoted": _csv(quoting=csv.QUOTE_ALL),
    "old mac": _csv(end="\r"),
    "lines": _lines,
    "array": _array,
    "typed lines": _typed,
    "zip": _zipped,
    "gzip": _gzipped,
}


# Artefacts: what happens to a table on its way. (header, rows) to (header, rows); and what the import says: '' for all rows as they are,
# a finding's kind with the number of rows left out, or the words of a refusal.


def _changed(column: str, row: int, value: str):
    def change(header, rows):
        place = next((n for n, name in enumerate(header) if name == column or name.startswith(f"{column} ")), None)
        rows = [list(each) for each in rows]
        if place is not None:
            rows[row][place] = value
        return header, rows

    return change


def _system_named(name: str):
    def change(header, rows):
        return [column.replace("ada", name) for column in header], [
            [name if cell == "ada" else cell for cell in row] for row in rows
        ]

    return change


def _columns_named(change_name):
    return lambda header, rows: ([change_name(column) for column in header], rows)


def _with_annotators(names):
    def change(header, rows):
        return header, [[names[int(row[0][1])], *row[1:]] for row in rows]

    return change


def _answer_written(value: str):
    """The answer of the first row, which is 2, in another way."""

    def change(header, rows):
        place = header.index("value") if "value" in header else 1
        return header, [[*rows[0][:place], value, *rows[0][place + 1 :]], *rows[1:]]

    return change


def _time_written(value: str):
    def change(header, rows):
        place = header.index("time")
        return header, [[*row[:place], value, *row[place + 1 :]] for row in rows]

    return change


FULL_WIDTH = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔｕｖｗｘｙｚ")
ARTEFACTS = {
    "nothing": (lambda header, rows: (header, rows), ""),
    "system in capitals": (_system_named("ADA"), ""),
    "system in full width": (_system_named("ａｄａ"), ""),
    "system with blanks": (_system_named(" ada "), ""),
    "columns in capitals": (_columns_named(str.upper), ""),
    "columns with blanks": (_columns_named(lambda name: f" {name} "), ""),
    "columns in full width": (_columns_named(lambda name: name.translate(FULL_WIDTH)), ""),
    "1.0": (_answer_written("2.0"), ""),
    "word of the scale": (_answer_written("Bad"), ""),
    "point and word": (_answer_written("2 - bad"), ""),
    "4_0": (_answer_written("2_0"), "is not a number. Write it with the digits 0 to 9"),
    "full-width digit": (_answer_written("２"), "is not a number. Write it with the digits 0 to 9"),
    "decimal comma": (_answer_written("2,0"), "Write a decimal point: 2.0."),
    "true as a rating": (_answer_written("true"), "must be a number, not true. Write 1."),
    "beyond the scale": (_answer_written("9"), "is not a valid answer"),
    "nan as annotator": (_with_annotators(["nan", "w1", "w2"]), "“nan” is a word for a missing value"),
    "None as annotator": (_with_annotators(["None", "w1", "w2"]), "“None” is a word for a missing value"),
    "placeholder as annotator": (_with_annotators(["[%MID%]", "%%ID%%", "{{PROLIFIC_PID}}"]), "is a placeholder that was not filled in"),
    "ids shortened by Excel": (_with_annotators(["1.23457E+18", "1.23458E+18", "w2"]), "finding: shortened_ids"),
    "ids that look alike": (_with_annotators(["W1", "w1", "ｗ1"]), "finding: alike_people"),
    "composed and decomposed ids": (_with_annotators(["Zo\u00eb", "Zoe\u0308x", "zo\u00eb"]), "finding: alike_people"),
    "header in the middle": (lambda header, rows: (header, [*rows[:2], header, *rows[2:]]), "repeats the header"),
    "title line": (lambda header, rows: (["Results of May"], [header, *rows]), "Remove the lines above the header"),
    "blank rows": (lambda header, rows: (header, [*rows[:1], [""] * len(header), *rows[1:]]), ""),
    "numbers of rows": (lambda header, rows: (["", *header], [[str(n), *row] for n, row in enumerate(rows)]), ""),
    "label rows": (
        lambda header, rows: (header, [[f"Label of {name}" for name in header], [json.dumps({"ImportId": name}) for name in header], *rows]), "",
    ),
    "times without offset": (_time_written("2024-02-28 10:11:12"), "finding: no_offset"),
    "times of MTurk": (_time_written("Wed Feb 28 10:11:12 PST 2024"), ""),
    "times of Google Forms": (_time_written("2024/02/28 10:11:12 AM GMT+1"), ""),
    "times of nobody": (_time_written("28.2.24"), "must be a time such as"),
    "empty time": (_time_written(""), "finding: no_times"),
    "an extra column": (lambda header, rows: ([*header, "note"], [[*row, "x"] for row in rows]), "finding: ignored_columns"),
    "unknown prompt": (
        lambda header, rows: ([name.replace("p001", "p00x") for name in header], [[cell.replace("p001", "p00x") for cell in row] for row in rows]),
        "p00x",
    ),
}  # fmt: skip
# What JSON and workbooks cannot have.
ONLY_TABLES = {"header in the middle", "title line", "blank rows", "numbers of rows", "label rows"}
JSONS = {"lines", "array", "typed lines"}
CELLS = [
    (layout, dialect, artefact)
    for layout, dialect, artefact in itertools.product(LAYOUTS, DIALECTS, ARTEFACTS)
    if not (artefact in ONLY_TABLES and dialect in JSONS)
]


def test_the_table_is_large():
    assert len(CELLS) == 2 * (13 * len(ARTEFACTS) - 3 * len(ONLY_TABLES)) > 800


@pytest.fixture
def study():
    made = rating_draft(prompts=6)
    add_survey(made, position=2, questions=[WORDS])
    return made


def cell_is_right(study: Study, tmp_path, layout: str, dialect: str, artefact: str) -> None:
    change, said = ARTEFACTS[artefact]
    header, rows = LAYOUTS[layout]()
    name, data = DIALECTS[dialect](*change(header, rows))
    path = tmp_path / name
    path.write_bytes(data)
    study = Study.objects.get(pk=study.pk)
    report = import_answers_and_close_draft(study, path, by=None, options=Options(proposes_columns=True))
    words = " | ".join(str(problem) for problem in report.problems)
    kinds = {finding.kind: finding for finding in report.findings}
    if said and not said.startswith("finding: "):
        if layout == "wide" and artefact == "unknown prompt":
            assert any("p00x" in one for one in kinds["ignored_columns"].examples), (words, kinds)
            return
        assert said in words and not report.is_written and not Response.objects.exists(), (
            dialect,
            artefact,
            words,
            kinds,
        )
        return
    assert report.is_written, (words, layout, dialect, artefact)
    assert (
        said.removeprefix("finding: ") in kinds
        if said
        else not {"shortened_ids", "alike_people", "no_offset"} & kinds.keys()
    )
    # Nothing is lost, and each answer is the one of its own row.
    n_answers = 6 if layout == "long" else 9
    assert report.counts["answers"].new == n_answers == Response.objects.filter(assignment__study=study).count()
    assert report.rows == len(rows) and kinds.get("empty_cells") is None
    people: dict[int, tuple] = {}
    for one in Response.objects.filter(assignment__study=study).select_related("item__prompt"):
        key = one.item.prompt.key if one.item else "why"
        people.setdefault(one.assignment_id, {})[key] = one.text or int(one.value)
    if layout == "long":
        wanted = [{f"p00{n}": n + 2, "why": REMARKS[n]} for n in range(3)]
    else:
        wanted = [{"p000": n + 2, "p001": n + 1, "why": REMARKS[n]} for n in range(3)]
    assert sorted(people.values(), key=str) == sorted(wanted, key=str)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_artefact_in_each_dialect(study, tmp_path, layout, dialect):
    for artefact in [artefact for *where, artefact in CELLS if where == [layout, dialect]]:
        with transaction.atomic():
            cell_is_right(study, tmp_path, layout, dialect, artefact)
            transaction.set_rollback(True)


@pytest.mark.parametrize("artefact", ARTEFACTS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_artefact_in_the_commonest_dialect(study, tmp_path, layout, artefact):
    cell_is_right(study, tmp_path, layout, "comma", artefact)


@pytest.mark.parametrize("winner_first", [True, False])
@pytest.mark.parametrize("written", ["{name}", "{letter}", "model_{small}", "{side}"])
def test_winners_are_the_same_wherever_they_stand(tmp_path, written, winner_first):
    """A file that lists the winner first has the same winners; a judge that always says “first” is no fault of the file."""
    study = choice_draft()
    rows = []
    for n in range(3):
        winner, other = ("ada", "Curie") if n != 1 else ("Curie", "ada")
        shown = (winner, other) if winner_first else (other, winner)
        letter = "A" if winner_first else "B"
        side = "left" if winner_first else "right"
        rows.append(
            f"w{n},p00{n},{shown[0]},{shown[1]},"
            + written.format(name=winner, letter=letter, small=letter.lower(), side=side)
        )
    path = tmp_path / "a.csv"
    path.write_text("annotator,prompt_key,model_a,model_b,winner\n" + "\n".join(rows))
    report = import_answers_and_close_draft(study, path, by=None)
    assert report.is_written, [str(problem) for problem in report.problems]
    said = Response.objects.filter(assignment__study=study).order_by("item__prompt__key")
    assert list(said.values_list("chosen__output__system__name", "label")) == [
        (name, "A" if winner_first else "B") for name in ("ada", "Curie", "ada")
    ]
