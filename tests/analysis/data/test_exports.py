"""What is in exports, and that they are whole and the same every time."""

import json
from collections import Counter
from decimal import Decimal
from hashlib import sha256

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis.data import exports
from analysis.data import flat_rows as seats
from analysis.data.exports import BLOCK_MAKERS
from analysis.data.flat_rows import Selection, annotator_pseudonym
from annotators.models import Annotator, Assignment, PageVisit, Response
from studies.models import Exposure
from studies.models.guards import allowing_erasure
from tests.analysis.api.rest import api_of, body_of, closed_study
from tests.analysis.data.exported import STORED, csv_rows, export, json_rows
from tests.builders import choice_study, user

pytestmark = pytest.mark.postgres


def test_csv_and_json_lines_have_the_same_cells(study):
    for table in STORED:
        rows = csv_rows(export(table, "csv", Selection(study), **{"raw": True}))
        lines = json_rows(export(table, "jsonl", Selection(study)))
        written = [
            {name: "" if v is None else str(int(v)) if isinstance(v, bool) else str(v) for name, v in line.items()}
            for line in lines
        ]
        assert rows == written
        assert [list(line) for line in lines[:1]] == [[column.name for column in STORED[table]]]


@pytest.mark.django_db
def test_each_item_tells_the_outputs_that_it_shows():
    study = choice_study(systems=("alpha", "beta", "gamma"), m=3, by=user("owner"))
    rows = json_rows(export("items", "jsonl", Selection(study)))
    shown = Exposure.objects.filter(item__study=study).select_related("item__section", "item__prompt", "output__system")
    assert len(rows) == shown.count() >= 12
    assert {(row["item"], row["system"], row["prompt"], row["sample"]) for row in rows} == {
        (
            f"s{one.item.section.position}.{one.item.number}",
            one.output.system.name,
            one.item.prompt.key,
            one.output.sample,
        )
        for one in shown
    }
    assert Counter(Counter(row["item"] for row in rows).values()).keys() == {2}
    assert {(row["item_kind"], row["is_human"], row["retired_in"]) for row in rows} == {("live", False, None)}
    # People are no matter: to ask for some of them is a mistake.
    api = api_of(study.owner)
    assert api.get(f"studies/{study.code}/exports/items.csv?raw=1").status_code == 200
    assert "origins" in body_of(api.get(f"studies/{study.code}/exports/items.csv?origins=live")).decode()


def test_every_stored_answer_comes_back_as_it_was_stored(study):
    rows = json_rows(export("responses", "jsonl", Selection(study)))
    stored = list(Response.objects.order_by("assignment_id", "pk"))
    assert len(rows) == len(stored) == 27
    for row, response in zip(rows, stored, strict=True):
        assert row["slot"] == response.slot
        assert row["value"] == (None if response.value is None else float(response.value))
        assert (row["text"], row["choice"]) == (response.text or None, response.choice or None)
        assert (row["question"], row["label"], row["position"]) == (
            response.question.key,
            response.label or None,
            response.position,
        )
        assert row["system"] == (response.exposure and response.exposure.output.system.name)
        assert row["batch"] == response.assignment.batch.number
        assert row["annotator"] == annotator_pseudonym(study, response.assignment.annotator.code)


def test_a_decimal_is_written_with_the_digits_it_has(study):
    first = Response.objects.filter(assignment__study=study).order_by("pk").first()
    values = ["0", "-1", "72.5", "0.0001", "9999999999.9999", "100", "1E+2"]
    for n, value in enumerate(values):
        Response.objects.create(
            assignment=first.assignment, question=first.question, slot=f"x{n}", value=Decimal(value)
        )
    cells = {row["slot"]: row["value"] for row in csv_rows(export("responses", "csv", Selection(study)))}
    assert [cells[f"x{n}"] for n in range(7)] == ["0", "-1", "72.5", "0.0001", "9999999999.9999", "100", "100"]


def test_the_page_of_an_answer_is_the_one_that_was_recorded_with_it(study):
    for row in json_rows(export("responses", "jsonl", Selection(study))):
        expected = {"survey": {"s1", "s4"}, "spa": {"s2.ask"}, "rating": {"s3.p1"}}[row["protocol"]]
        assert row["page"] in expected
    PageVisit.objects.filter(key="s3.p1").update(layout="stacked", active_seconds=7)
    rated = [row for row in json_rows(export("responses", "jsonl", Selection(study))) if row["protocol"] == "rating"]
    assert {(row["layout"], row["active_seconds"]) for row in rated} == {("stacked", 7)}


def test_only_the_origins_asked_for_are_in_it(study):
    one, two = Assignment.objects.order_by("pk").values_list("pk", flat=True)[:2]
    Assignment.objects.filter(pk=one).update(origin="robot")
    Assignment.objects.filter(pk=two).update(origin="imported")
    counts = {
        origins: len(json_rows(export("responses", "jsonl", Selection(study, origins))))
        for origins in (("live",), ("live", "imported"), ("robot",), ("test",))
    }
    assert list(counts.values()) == [9, 18, 9, 0]
    assert len(json_rows(export("responses", "jsonl", Selection(study)))) == 18


def test_who_withdrew_is_left_out_and_when_asked_for_has_no_name(study):
    gone = Assignment.objects.order_by("pk").first()
    Assignment.objects.filter(pk=gone.pk).update(withdrawn_at=gone.submitted_at)
    with allowing_erasure():
        Response.objects.filter(assignment=gone).update(text="", value=None, choice="", erased_at=gone.submitted_at)
    assert len(json_rows(export("responses", "jsonl", Selection(study)))) == 18
    rows = json_rows(export("responses", "jsonl", Selection(study, withdrawn=True)))
    withdrawn = [row for row in rows if row["is_withdrawn"]]
    assert len(rows) == 27 and len(withdrawn) == 9
    assert {row["annotator"] for row in withdrawn} == {None}
    assert {(row["is_erased"], row["value"], row["text"], row["choice"]) for row in withdrawn} == {
        (True, None, None, None)
    }
    seats = json_rows(export("assignments", "jsonl", Selection(study, withdrawn=True)))
    assert [row["annotator"] is None for row in seats] == [True, False, False]
    # Who answered, as what they answered.
    stayed = json_rows(export("assignments", "jsonl", Selection(study)))
    assert stayed == [row for row in seats if not row["is_withdrawn"]] and len(stayed) == 2
    assert [exports.count_rows("assignments", Selection(study, withdrawn=asked)) for asked in (False, True)] == [2, 3]


def test_a_full_study_has_an_assignment_without_a_batch(study):
    from django.utils import timezone

    Assignment.objects.create(
        study=study,
        annotator=Annotator.objects.create(pool="p", external_id="late"),
        origin="live",
        design=study.designs.get(),
        released_at=timezone.now(),
        released_reason="full",
    )
    rows = json_rows(export("assignments", "jsonl", Selection(study)))
    assert (rows[-1]["batch"], rows[-1]["arm"], rows[-1]["released_reason"]) == (None, None, "full")


def test_an_export_names_no_annotator_and_gives_nobody_a_way_in(study):
    data = b"".join(export(t, f, Selection(study)) for t in STORED for f in ("csv", "jsonl")).decode()
    for assignment in Assignment.objects.select_related("annotator"):
        for secret in (
            assignment.code,
            assignment.annotator.external_id,
            str(assignment.annotator.code),
            assignment.annotator.code.hex,
        ):
            assert secret not in data


def test_the_last_line_counts_and_hashes_what_came_before(study):
    data = export("responses", "jsonl", Selection(study))
    body, end = data[: data.rindex(b'{"_end"')], json.loads(data.split(b"\n")[-2])
    assert end == {"_end": True, "rows": 27, "sha256": sha256(body).hexdigest(), "n_problems": 0, "problems": []}
    cut = body[: len(body) // 2]
    assert b'"_end"' not in cut


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_csv_says_its_rows_before_and_its_hash_beside(study, form):
    api = api_of(study.owner)
    answer = api.get(f"studies/{study.code}/exports/responses.{form}")
    beside = api.get(f"studies/{study.code}/exports/responses.{form}.sha256").json()
    assert beside == {"sha256": sha256(body_of(answer)).hexdigest(), "rows": 27}
    assert answer["X-Heval-Rows"] == "27"
    assert 'attachment; filename="responses-' in answer["Content-Disposition"]
    # A download that was cut has fewer rows than were announced.
    assert len(csv_rows(body_of(answer)[:2000] + b"\n")) < 27 if form == "csv" else True


def test_two_exports_have_the_same_bytes(study):
    for table in STORED:
        for form in BLOCK_MAKERS:
            assert export(table, form, Selection(study)) == export(table, form, Selection(study))


def test_rows_cross_the_borders_between_chunks_unharmed(study, monkeypatch):
    whole = export("responses", "csv", Selection(study)), export("assignments", "jsonl", Selection(study))
    monkeypatch.setattr(seats, "ASSIGNMENTS_AT_ONCE", 2)
    monkeypatch.setattr(exports, "LINES_AT_ONCE", 2)
    assert (export("responses", "csv", Selection(study)), export("assignments", "jsonl", Selection(study))) == whole


def test_an_export_takes_as_many_queries_for_many_people_as_for_few(study):
    counts = []
    for each in (study, closed_study(user("other"), 1)):
        with CaptureQueriesContext(connection) as queries:
            export("responses", "csv", Selection(each))
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 6


@pytest.mark.only_on("sqlite")  # PostgreSQL writes the lines itself
def test_the_outputs_of_an_item_are_looked_up_once_for_many_answers(study):
    with CaptureQueriesContext(connection) as queries:
        rows = csv_rows(export("responses", "csv", Selection(study)))
    lookups = [query["sql"] for query in queries if "json_quote" in query["sql"]]
    assert len(lookups) == 1 and "annotators_response" not in lookups[0]
    assert all(bool(row["shown_outputs"]) == bool(row["item"]) for row in rows) and any(row["item"] for row in rows)
