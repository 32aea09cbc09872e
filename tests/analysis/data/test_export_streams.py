"""A stream sees one moment of the database, and gives back what it held."""

import json
import threading
from decimal import Decimal
from hashlib import sha256

import pytest
from django.db import connections

from analysis.data import exports, flat_rows
from analysis.data.exports import BLOCK_MAKERS
from analysis.data.flat_rows import Selection, answer_cells, fetch_raw_rows_from_default_db
from annotators.models import Response
from tests.analysis.data.exported import ODD, add_text, csv_rows, export, json_rows
from tests.builders import spa_study, user
from tests.players import submitted

pytestmark = pytest.mark.postgres


@pytest.mark.django_db(transaction=True)
def test_a_stream_sees_one_moment_whatever_is_written_meanwhile(monkeypatch):
    monkeypatch.setattr(flat_rows, "ASSIGNMENTS_AT_ONCE", 1)
    monkeypatch.setattr(exports, "LINES_AT_ONCE", 1)
    study = spa_study(user("owner"))
    for n in range(3):
        submitted(study, f"p{n}", comment="x")
    stream = exports.open_export_stream("responses", "jsonl", Selection(study))
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
    assert (len(rows), stream.n_rows, end["rows"]) == (27, 27, 27)
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
        stream = exports.open_export_stream("responses", "csv", Selection(study))
        if read % 2:
            next(stream)
        stream.close()
        stream.close()
        assert connections["default"] is usual
    first, second = (exports.open_export_stream("responses", "csv", Selection(study)) for _ in range(2))
    with pytest.raises(exports.TooManyExports):
        exports.open_export_stream("responses", "csv", Selection(study))
    submitted(study, "q", comment="x")
    assert len(csv_rows(b"".join(first))) == len(csv_rows(b"".join(second))) == 9
    assert len(csv_rows(b"".join(exports.open_export_stream("responses", "csv", Selection(study))))) == 18


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("read", (0, 1))
def test_a_stream_that_nobody_closes_gives_back_what_it_held(read):
    study = spa_study(user("owner"))
    submitted(study, "p", comment="x")
    usual = connections["default"]
    for _ in range(3):
        streams = [
            exports.open_export_stream("responses", "csv", Selection(study)) for _ in range(exports.MAX_SNAPSHOTS)
        ]
        for stream in streams:
            assert len([next(stream) for _ in range(read)]) == read
        # The last reference may fall in any thread.
        dropping = threading.Thread(target=streams.clear)
        del stream
        dropping.start()
        dropping.join()
        assert connections["default"] is usual
    assert len(list(exports.open_export_stream("responses", "csv", Selection(study)))) > 0


@pytest.mark.django_db(transaction=True)
def test_an_error_within_a_stream_gives_its_place_back(monkeypatch):
    study = spa_study(user("owner"))
    submitted(study, "p", comment="x")
    for _ in range(3):
        stream = exports.open_export_stream("responses", "csv", Selection(study))
        monkeypatch.setattr(exports, "_csv_cell", None)
        with pytest.raises(TypeError):
            list(stream)
        monkeypatch.undo()
    assert len(list(exports.open_export_stream("responses", "csv", Selection(study)))) > 0


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
    by_copy = [export("responses", form, Selection(study)) for form in BLOCK_MAKERS]

    def in_python(form, responses):
        for assignment, received, *rest in fetch_raw_rows_from_default_db(
            answer_cells(responses, escape_formulas=form.is_guarded)
        ):
            cells = tuple(exports.json_number_or_text(cell) for cell in rest)
            yield assignment, str(received), form.encode_answers([cells])[0]

    monkeypatch.setattr(exports, "_answer_lines", in_python)
    assert [export("responses", form, Selection(study)) for form in BLOCK_MAKERS] == by_copy
