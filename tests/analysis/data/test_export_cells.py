"""Cells of exports are safe to open, and a damaged one stops nothing."""

import csv
import io
import json

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from analysis.data import exports
from analysis.data.export_codebook import build_export_codebook, build_export_codebook_markdown
from analysis.data.flat_rows import Selection
from annotators.models import Response
from studies.stimuli.rows import FORMULA_STARTS
from tests.analysis.api.rest import api_of, body_of, close, unguarded
from tests.analysis.data.exported import HOSTILE, ODD, STORED, add_text, csv_rows, export, json_rows
from tests.builders import spa_study, user
from tests.players import submitted

pytestmark = pytest.mark.postgres


def test_no_text_in_a_csv_begins_like_a_formula(study):
    texts = [*HOSTILE, "=cmd|' /C calc'!A0", '=HYPERLINK("http://x")', "-2+3", "@SUM(1)", "\r\n=1"]
    for n, text in enumerate(texts):
        add_text(study, text, f"hostile{n}")
    cells, raw = (
        {row["slot"]: row["text"] for row in csv_rows(export("responses", "csv", Selection(study), raw=is_raw))}
        for is_raw in (False, True)
    )
    lines = {row["slot"]: row["text"] for row in json_rows(export("responses", "jsonl", Selection(study)))}
    for n, text in enumerate(texts):
        assert (cells[f"hostile{n}"], raw[f"hostile{n}"], lines[f"hostile{n}"]) == (f"'{text}", text, text)


def test_names_of_systems_arms_prompts_and_labels_are_guarded_too_and_numbers_stay_numbers(db):
    owner = user("owner")
    study = spa_study(owner, systems=("=alpha", "+beta", "-gamma"))
    submitted(study, "a")
    close(study)
    rows = csv_rows(export("responses", "csv", Selection(study)))
    text_columns = [column.name for column in STORED["responses"] if column.type == "text"]
    for row in rows:
        for name in text_columns:
            assert not row[name].startswith(FORMULA_STARTS), name
    assert {row["system"] for row in rows if row["system"]} == {"'=alpha", "'+beta", "'-gamma"}
    add_text(study, "x")
    first = Response.objects.filter(assignment__study=study).order_by("pk").first()
    Response.objects.create(assignment=first.assignment, question=first.question, slot="neg", value=-5)
    assert (
        next(r["value"] for r in csv_rows(export("responses", "csv", Selection(study))) if r["slot"] == "neg") == "-5"
    )


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.text(alphabet=st.characters(exclude_categories=["Cs"]))))
def test_any_cell_written_by_us_is_read_back(cell):
    for is_guarded in (True, False):
        line = exports._csv_cell(cell, is_guarded) + ",end\n"
        read = next(csv.reader(io.StringIO(line, newline=""), strict=True))[0]
        expected = "" if cell is None else str(int(cell)) if isinstance(cell, bool) else str(cell)
        if is_guarded and isinstance(cell, str) and cell.startswith(FORMULA_STARTS):
            expected = f"'{expected}"
        assert read == expected


def test_odd_texts_come_back_as_they_are_in_both_forms(study):
    for n, text in enumerate(ODD):
        add_text(study, text, f"odd{n}")
    raw = {r["slot"]: r["text"] for r in csv_rows(export("responses", "csv", Selection(study), raw=True))}
    lines = {r["slot"]: r["text"] for r in json_rows(export("responses", "jsonl", Selection(study)))}
    for n, text in enumerate(ODD):
        assert raw[f"odd{n}"] == text
        assert lines[f"odd{n}"] == text


def poison(pk, column, value):
    with unguarded() as cursor:
        cursor.execute(f"UPDATE annotators_response SET {column} = %s WHERE id = %s", [value, pk])


POISON = {
    "sqlite": [("value", float("inf")), ("value", "abc"), ("value", b"\xff\xfe"), ("value", 1e308), ("value", "NaN")],
    "postgresql": [("value", "NaN")],
}


def test_a_value_that_is_no_number_is_left_empty_and_reported(study):
    api = api_of(study.owner)
    target = Response.objects.filter(assignment__study=study, value__isnull=False).order_by("pk").first()
    for column, value in POISON[connection.vendor]:
        poison(target.pk, column, value)
        data = export("responses", "jsonl", Selection(study))
        end = json.loads(data.split(b"\n")[-2])
        assert (end["rows"], end["n_problems"]) == (27, 1), value
        assert (end["problems"][0]["slot"], end["problems"][0]["column"]) == (target.slot, "value")
        assert json_rows(data)[1]["value"] is None
        assert csv_rows(export("responses", "csv", Selection(study)))[1]["value"] == ""
        listed = api.get(f"studies/{study.code}/responses/").json()
        assert (len(listed["results"]), listed["n_problems"]) == (27, 1)
        assert api.get(f"studies/{study.code}/exports/archive.zip").status_code == 200


@pytest.mark.only_on("sqlite")  # PostgreSQL refuses to store these
def test_a_text_that_is_not_utf8_or_a_time_that_is_none_stops_nothing(study):
    api = api_of(study.owner)
    first, second = Response.objects.filter(assignment__study=study).order_by("pk")[:2]
    with connection.cursor() as cursor:
        cursor.execute("UPDATE annotators_response SET text = CAST(x'41EDA08042' AS TEXT) WHERE id = %s", [first.pk])
        cursor.execute("UPDATE annotators_response SET received_at = 'yesterday' WHERE id = %s", [second.pk])
        cursor.execute(
            "UPDATE annotators_pagevisit SET shown_at = '0 never', active_seconds = 'x' WHERE assignment_id = %s",
            [first.assignment_id],
        )
    rows = json_rows(body_of(api.get(f"studies/{study.code}/exports/responses.jsonl")))
    assert rows[0]["text"].startswith("A\ufffd") and rows[0]["text"].endswith("B")
    assert (rows[1]["received_at"], rows[1]["shown_at"]) == (None, None)
    for path in (
        "responses/",
        "assignments/",
        "exports/responses.csv",
        "exports/assignments.csv",
        "exports/archive.zip",
    ):
        assert api.get(f"studies/{study.code}/{path}").status_code == 200, path


def test_a_scale_that_cannot_be_read_is_named_in_the_codebook(study):
    with unguarded() as cursor:
        cursor.execute("UPDATE studies_question SET scale = %s WHERE key = 'overall'", ['{"kind": "nonsense"}'])
    scales = {q["question"]: q["scale"] for q in build_export_codebook(study)["questions"]}
    assert "cannot be read" in scales["overall"]["problem"]
    assert "cannot be read" in build_export_codebook_markdown(study)
