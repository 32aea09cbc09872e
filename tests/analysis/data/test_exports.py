"""Exports: what is in them, that they are whole, the same every time, of one moment, and safe to open."""

import csv
import io
import json
import threading
from collections import Counter
from decimal import Decimal
from hashlib import sha256

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from analysis.coding.codebook import EXPLANATIONS
from analysis.coding.models import Coding, CodingItem, CodingSample, CodingSeat
from analysis.data import exports
from analysis.data.data_dictionary import codebook_markdown, codebook_of
from analysis.data.exports import BLOCKS, TABLES
from analysis.data.flat import seats
from analysis.data.flat.answers import answers
from analysis.data.flat.cells import raw_rows, written
from analysis.data.flat.selection import Selection, pseudonym
from annotators.models import Annotator, Assignment, PageVisit, Response
from studies.models import Exposure
from studies.models.guards import erasing
from studies.stimuli.spreadsheet import FORMULA_STARTS
from tests.analysis.api.rest import api_of, body_of, close, closed_study, unguarded
from tests.builders import choice_study, draft_study, spa_study, user
from tests.players import submitted

pytestmark = pytest.mark.postgres

HOSTILE = ("=1+1", "+1", "-1", "@x", "\tx", "\rx")


def export(name, form, selection, **options) -> bytes:
    return b"".join(BLOCKS[form](name, selection, **options))


def csv_rows(data: bytes) -> list[dict]:
    return list(csv.DictReader(io.StringIO(data.decode(), newline=""), strict=True))


def json_rows(data: bytes) -> list[dict]:
    return [json.loads(line) for line in data.decode().split("\n")[:-2]]


def add_text(study, text, slot="s9.q9") -> Response:
    """An answer in words that no form let pass."""
    first = Response.objects.filter(assignment__study=study).order_by("pk").first()
    return Response.objects.create(assignment=first.assignment, question=first.question, slot=slot, text=text)


@pytest.fixture
def study(db):
    study = closed_study(user("owner"), 3)
    sample = CodingSample.objects.create(
        study=study, number=1, kind="explanations", rule="union", codebook=EXPLANATIONS.as_json(), per_arm=1, origin="live"
    )  # fmt: skip
    CodingSeat.objects.create(sample=sample, number=1, user=user("coder"))
    written = Response.objects.filter(assignment__study=study).exclude(text="").order_by("pk").first()
    item = CodingItem.objects.create(sample=sample, number=1, assignment=written.assignment, response=written)
    Coding.objects.create(item=item, coder=user("coder"), labels=EXPLANATIONS.keys[0])
    return study


# What is in them


def test_csv_and_json_lines_have_the_same_cells(study):
    for table in TABLES:
        rows = csv_rows(export(table, "csv", Selection(study), **{"raw": True}))
        lines = json_rows(export(table, "jsonl", Selection(study)))
        written = [
            {name: "" if v is None else str(int(v)) if isinstance(v, bool) else str(v) for name, v in line.items()}
            for line in lines
        ]
        assert rows == written
        assert [list(line) for line in lines[:1]] == [[column.name for column in TABLES[table]]]


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
    assert "origin" in body_of(api.get(f"studies/{study.code}/exports/items.csv?origin=live")).decode()


def test_every_stored_answer_comes_back_as_it_was_stored(study):
    rows = json_rows(export("responses", "jsonl", Selection(study)))
    stored = list(Response.objects.order_by("assignment_id", "pk"))
    assert len(rows) == len(stored) == 27
    for row, response in zip(rows, stored, strict=True):
        assert row["slot"] == response.slot
        assert row["value"] == (None if response.value is None else float(response.value))
        assert (row["text"], row["choice"]) == (response.text or None, response.choice or None)
        assert (row["question"], row["label"], row["position"]) == (
            response.question.key, response.label or None, response.position,
        )  # fmt: skip
        assert row["system"] == (response.exposure and response.exposure.output.system.name)
        assert row["batch"] == response.assignment.batch.number
        assert row["annotator"] == pseudonym(study, response.assignment.annotator.code)


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
    with erasing():
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
    assert [exports.count_of("assignments", Selection(study, withdrawn=asked)) for asked in (False, True)] == [2, 3]


def test_a_full_study_has_an_assignment_without_a_batch(study):
    from django.utils import timezone

    Assignment.objects.create(
        study=study, annotator=Annotator.objects.create(pool="p", external_id="late"), origin="live", design=study.designs.get(),
        released_at=timezone.now(), released_reason="full",
    )  # fmt: skip
    rows = json_rows(export("assignments", "jsonl", Selection(study)))
    assert (rows[-1]["batch"], rows[-1]["arm"], rows[-1]["released_reason"]) == (None, None, "full")


def test_an_export_names_no_annotator_and_gives_nobody_a_way_in(study):
    data = b"".join(export(t, f, Selection(study)) for t in TABLES for f in ("csv", "jsonl")).decode()
    for assignment in Assignment.objects.select_related("annotator"):
        for secret in (
            assignment.code,
            assignment.annotator.external_id,
            str(assignment.annotator.code),
            assignment.annotator.code.hex,
        ):
            assert secret not in data


# Whole, and the same every time


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
    for table in TABLES:
        for form in BLOCKS:
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


# Safe to open


@pytest.mark.parametrize(
    "text", [*HOSTILE, "=cmd|' /C calc'!A0", '=HYPERLINK("http://x")', "-2+3", "@SUM(1)", "\r\n=1"]
)
def test_no_text_in_a_csv_begins_like_a_formula(study, text):
    add_text(study, text)
    row = csv_rows(export("responses", "csv", Selection(study)))
    cell = next(r["text"] for r in row if r["slot"] == "s9.q9")
    assert cell == f"'{text}"
    raw = csv_rows(export("responses", "csv", Selection(study), raw=True))
    assert next(r["text"] for r in raw if r["slot"] == "s9.q9") == text
    assert (
        next(r["text"] for r in json_rows(export("responses", "jsonl", Selection(study))) if r["slot"] == "s9.q9")
        == text
    )


def test_names_of_systems_arms_prompts_and_labels_are_guarded_too_and_numbers_stay_numbers(db):
    owner = user("owner")
    study = spa_study(owner, systems=("=alpha", "+beta", "-gamma"))
    submitted(study, "a")
    close(study)
    rows = csv_rows(export("responses", "csv", Selection(study)))
    text_columns = [column.name for column in TABLES["responses"] if column.type == "text"]
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


ODD = (
    "a,b", 'a"b', "a\nb", "a\r\nb", "a\rb", '"', ",", "\n", "\r", " x ", "NULL", "\\.", "\\N", "'", "\u2028", "\ufeff", "\u202e", "e\u0301",
    "😀", "\x01\x02", "\x7f", "<script>", "${7*7}", "x" * 100_000, "٣", "\\", "\\n", "\t",
)  # fmt: skip


def test_odd_texts_come_back_as_they_are_in_both_forms(study):
    for n, text in enumerate(ODD):
        add_text(study, text, f"odd{n}")
    raw = {r["slot"]: r["text"] for r in csv_rows(export("responses", "csv", Selection(study), raw=True))}
    lines = {r["slot"]: r["text"] for r in json_rows(export("responses", "jsonl", Selection(study)))}
    for n, text in enumerate(ODD):
        assert raw[f"odd{n}"] == text
        assert lines[f"odd{n}"] == text


# Poison rows


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
        assert api.get(f"studies/{study.code}/archive/").status_code == 200


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
    for path in ("responses/", "assignments/", "exports/responses.csv", "exports/assignments.csv", "archive/"):
        assert api.get(f"studies/{study.code}/{path}").status_code == 200, path


def test_a_scale_that_cannot_be_read_is_named_in_the_codebook(study):
    with unguarded() as cursor:
        cursor.execute("UPDATE studies_question SET scale = %s WHERE key = 'overall'", ['{"kind": "nonsense"}'])
    scales = {q["question"]: q["scale"] for q in codebook_of(study)["questions"]}
    assert "cannot be read" in scales["overall"]["problem"]
    assert "cannot be read" in codebook_markdown(study)


# One moment


@pytest.mark.django_db(transaction=True)
def test_a_stream_sees_one_moment_whatever_is_written_meanwhile(monkeypatch):
    monkeypatch.setattr(seats, "ASSIGNMENTS_AT_ONCE", 1)
    monkeypatch.setattr(exports, "LINES_AT_ONCE", 1)
    study = spa_study(user("owner"))
    for n in range(3):
        submitted(study, f"p{n}", comment="x")
    stream = exports.stream("responses", "jsonl", Selection(study))
    blocks = [next(stream)]
    usual = connections["default"]
    # Between two blocks this thread writes as if there were no stream, and so does another.
    submitted(study, "between", comment="x")
    thread = threading.Thread(target=lambda: (submitted(study, "other", comment="x"), connections.close_all()))
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    blocks += list(stream)
    assert connections["default"] is usual
    data = b"".join(blocks)
    rows, end = json_rows(data), json.loads(data.split(b"\n")[-2])
    assert (len(rows), stream.prepared, end["rows"]) == (27, 27, 27)
    assert end["sha256"] == sha256(data[: data.rindex(b'{"_end"')]).hexdigest()
    # All answers of an assignment, or none.
    per_assignment = {row["assignment"]: 0 for row in rows}
    for row in rows:
        per_assignment[row["assignment"]] += 1
    assert set(per_assignment.values()) == {9} and len(per_assignment) == 3
    assert Response.objects.count() == 45


@pytest.mark.django_db(transaction=True)
def test_a_stream_that_is_left_gives_its_place_and_connection_back():
    study = spa_study(user("owner"))
    submitted(study, "p", comment="x")
    usual = connections["default"]
    for read in range(4):
        stream = exports.stream("responses", "csv", Selection(study))
        if read % 2:
            next(stream)
        stream.close()
        stream.close()
        assert connections["default"] is usual
    first, second = (exports.stream("responses", "csv", Selection(study)) for _ in range(2))
    with pytest.raises(exports.TooMany):
        exports.stream("responses", "csv", Selection(study))
    submitted(study, "q", comment="x")
    assert len(csv_rows(b"".join(first))) == len(csv_rows(b"".join(second))) == 9
    assert len(csv_rows(b"".join(exports.stream("responses", "csv", Selection(study))))) == 18


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("read", (0, 1))
def test_a_stream_that_nobody_closes_gives_back_what_it_held(read):
    study = spa_study(user("owner"))
    submitted(study, "p", comment="x")
    usual = connections["default"]
    for _ in range(3):
        streams = [exports.stream("responses", "csv", Selection(study)) for _ in range(exports.AT_ONCE)]
        for stream in streams:
            assert len([next(stream) for _ in range(read)]) == read
        # The last reference may fall in any thread.
        dropping = threading.Thread(target=streams.clear)
        del stream
        dropping.start()
        dropping.join()
        assert connections["default"] is usual
    assert len(list(exports.stream("responses", "csv", Selection(study)))) > 0


@pytest.mark.django_db(transaction=True)
def test_an_error_within_a_stream_gives_its_place_back(monkeypatch):
    study = spa_study(user("owner"))
    submitted(study, "p", comment="x")
    for _ in range(3):
        stream = exports.stream("responses", "csv", Selection(study))
        monkeypatch.setattr(exports, "_csv_cell", None)
        with pytest.raises(TypeError):
            list(stream)
        monkeypatch.undo()
    assert len(list(exports.stream("responses", "csv", Selection(study)))) > 0


@pytest.mark.only_on("postgresql")  # SQLite has no COPY
@pytest.mark.django_db(transaction=True)
def test_copy_gives_the_bytes_that_python_would_write(monkeypatch):
    study = spa_study(user("owner"), systems=("=alpha", '"beta"', "gam,ma"))
    for n in range(3):
        submitted(study, f"p{n}", comment='=1, "x"\r\n ü\u2028😀')
    for n, text in enumerate(ODD):
        add_text(study, text, f"odd{n}")
    first = Response.objects.filter(assignment__study=study).order_by("pk").first()
    for n, value in enumerate(["0", "-1", "72.5", "0.0001", "9999999999.9999", "100"]):
        Response.objects.create(
            assignment=first.assignment, question=first.question, slot=f"x{n}", value=Decimal(value)
        )
    by_copy = [export("responses", form, Selection(study)) for form in BLOCKS]

    def in_python(form, responses):
        for assignment, received, *rest in raw_rows(answers(responses, guarded=form.is_guarded)):
            cells = tuple(exports.plain(cell) for cell in rest)
            yield assignment, str(received), form.rest([cells])[0]

    monkeypatch.setattr(exports, "_answer_lines", in_python)
    assert [export("responses", form, Selection(study)) for form in BLOCKS] == by_copy


# Codebook, Parquet and the command


def test_the_codebook_explains_every_column_question_system_and_arm(study):
    book = codebook_of(study)
    for name, columns in TABLES.items():
        assert [c["name"] for c in book["tables"][name]] == [c.name for c in columns]
        assert all(c["meaning"].endswith(".") and c["type"] for c in book["tables"][name])
    overall = next(q for q in book["questions"] if q["question"] == "overall")
    assert overall["scale"]["points"] == {"1": "very bad", "2": "bad", "3": "middling", "4": "good", "5": "very good"}
    assert (overall["scale"]["minimum"], overall["scale"]["maximum"]) == (1, 5)
    assert [s["name"] for s in book["systems"]] == ["alpha", "beta", "gamma"]
    assert [a["name"] for a in book["arms"]] == ["all"]
    text = codebook_markdown(study)
    assert all(f"| {c.name} |" in text for columns in TABLES.values() for c in columns)
    json.dumps(book, allow_nan=False)


def test_parquet_has_the_cells_of_the_json_lines(study, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for table in TABLES:
        path = tmp_path / f"{table}.parquet"
        call_command("export", str(study.code), format="parquet", table=table, output=str(path), stderr=io.StringIO())
        read = parquet.read_table(path)
        rows = json_rows(export(table, "jsonl", Selection(study)))
        assert read.num_rows == len(rows)
        for name in read.column_names:
            cells = read[name].to_pylist()
            if next(c.type for c in TABLES[table] if c.name == name) == "time":
                cells = [written(cell) for cell in cells]
                assert [c and c[:19] for c in cells] == [r[name] and r[name][:19] for r in rows]
            else:
                assert cells == [row[name] for row in rows], name


def test_without_pyarrow_the_message_says_how_to_get_it(study, monkeypatch, tmp_path):
    monkeypatch.setattr("analysis.data.parquet.find_spec", lambda name: None)
    with pytest.raises(CommandError, match="pip install .pyarrow"):
        call_command("export", str(study.code), format="parquet", output=str(tmp_path / "x.parquet"))
    answer = api_of(study.owner).post(f"studies/{study.code}/exports/", {})
    assert answer.status_code == 409 and "pyarrow" in answer.json()["detail"]
    assert list(tmp_path.iterdir()) == []


def test_a_parquet_export_is_made_by_a_job_and_fetched(study, settings, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    from studies.services import jobs

    settings.MEDIA_ROOT = tmp_path
    api = api_of(study.owner)
    started = api.post(f"studies/{study.code}/exports/", {"table": "responses"})
    assert started.status_code == 202, started.content
    path = f"studies/{study.code}/jobs/{started.json()['code']}/"
    assert api.get(f"{path}file/").status_code == 404
    assert jobs.run_waiting() == 1
    done = api.get(path).json()
    assert (done["state"], done["result"]["rows"]) == ("done", 27)
    data = body_of(api.get(f"{path}file/"))
    assert parquet.read_table(io.BytesIO(data)).num_rows == 27
    assert [p.suffix for p in (tmp_path / "exports").iterdir()] == [".parquet"]


def test_the_command_writes_what_rest_sends(study, tmp_path):
    api = api_of(study.owner)
    for form in ("csv", "jsonl"):
        path = tmp_path / f"r.{form}"
        call_command("export", str(study.code)[:8], format=form, output=str(path), stderr=io.StringIO())
        assert path.read_bytes() == body_of(api.get(f"studies/{study.code}/exports/responses.{form}"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r.csv", "r.jsonl"]


def test_the_command_says_what_is_wrong(study, tmp_path):
    for arguments, options, message in (
        (["nonsense"], {}, "no study nonsense"),
        (["0" * 32], {}, "no study"),
        ([str(study.code)], {"origin": "mars"}, "mars"),
        ([str(study.code)], {"output": str(tmp_path / "no" / "x.csv")}, "cannot be written"),
        ([str(study.code)], {"format": "parquet"}, "--output"),
    ):
        with pytest.raises(CommandError, match=message):
            call_command("export", *arguments, **options)


def test_the_command_hides_outcomes_while_a_study_collects(db, tmp_path):
    study = spa_study(user("owner"))
    submitted(study, "p", comment="x")
    path = str(tmp_path / "x")
    for form in ("csv", "jsonl", "archive", "parquet"):
        with pytest.raises(CommandError, match="still collects"):
            call_command("export", str(study.code), format=form, output=path)
    quiet = {"stderr": io.StringIO()}
    call_command("export", str(study.code), table="assignments", output=path, **quiet)
    call_command("export", str(study.code), format="codebook", output=path, **quiet)
    call_command("export", str(study.code), unblind=True, output=path, **quiet)


def test_the_codebook_says_what_is_planted(db):
    study = draft_study()
    study.systems.filter(name="beta").update(reference="maximal", is_human=True)
    assert "- beta (human, maximal reference)\n" in codebook_markdown(study)
    assert [s["reference"] for s in codebook_of(study)["systems"]] == ["", "maximal", ""]
