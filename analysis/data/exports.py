"""Exports: the flat rows as CSV and JSON lines, streamed from one moment of the database in constant memory.

The same data give the same bytes, on either database. CSV guards texts that a spreadsheet would run as formulas (an apostrophe
in front; ``raw`` leaves it out); JSON lines lose nothing and end in a line that counts and hashes what came before it.
"""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any

from django.db import connections
from django.db.models import Q, QuerySet

from annotators.models import Assignment, Response

from .codings import CODING_COLUMNS, coding_rows, codings_of
from .flat_rows.answers import answer_cells, chunk_responses, find_damaged_cells
from .flat_rows.assignment_rows import AssignmentRow, assignment_row_chunks, read_assignment_rows
from .flat_rows.cells import compile_sql, parse_time, raw_rows
from .flat_rows.columns import ASSIGNMENT_COLUMNS, IDENTITY_COLUMNS, PAGE_COLUMNS, RESPONSE_COLUMNS, Column
from .flat_rows.selection import Selection
from .formats import ANSWER_NAMES, CSV, JSONL, RAW_CSV, RowFormat, as_json
from .item_rows import ITEM_COLUMNS, item_exposures, item_rows
from .snapshot import MAX_SNAPSHOTS, snapshot

TABLES: dict[str, tuple[Column, ...]] = {
    "responses": RESPONSE_COLUMNS,
    "assignments": ASSIGNMENT_COLUMNS,
    "codings": CODING_COLUMNS,
    "items": ITEM_COLUMNS,
}
# Which people are asked for: an item is the same whoever answered it.
PERSON_TABLES = frozenset({"responses", "assignments", "codings"})
# What tells of outcomes, and is hidden while a study collects.
OUTCOME_TABLES = frozenset({"responses", "codings"})
LINES_AT_ONCE = 256  # in a block: some tens of kilobytes


def _copied_lines(form: RowFormat, connection, responses: QuerySet) -> Iterator[tuple[Any, Any, bytes]]:
    sql, params = compile_sql(answer_cells(responses, guarded=form.is_guarded, as_numbers=not form.is_json))
    names = ", ".join(["assignment_id", "received_at", *(f'"{name}"' for name in ANSWER_NAMES)])
    # The driver's own cursor: only that takes parameters for COPY.
    with connection.cursor() as cursor, cursor.cursor.copy(form.copy.format(sql=sql, names=names), params) as copy:
        for line in copy:
            yield bytes(line).split(b",", 2)


def _fetched_lines(form: RowFormat, connection, responses: QuerySet) -> Iterator[tuple[Any, Any, bytes]]:
    sql, params = compile_sql(answer_cells(responses, guarded=form.is_guarded))
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        while rows := cursor.fetchmany(5000):
            for row, line in zip(rows, form.encode_answers(row[2:] for row in rows), strict=True):
                yield row[0], row[1], line


def _answer_lines(form: RowFormat, responses: QuerySet) -> Iterator[tuple[Any, Any, bytes]]:
    """(assignment, time, the rest of the row) of each answer in stable order; ``_key`` and ``_time`` read the first two."""
    connection = connections["default"]
    lines = _copied_lines if connection.vendor == "postgresql" else _fetched_lines
    return lines(form, connection, responses)


def _key(cell: Any, form: RowFormat) -> int:
    """The assignment of a row, as the database gave it: a number, or bytes of COPY (in JSON with the name before it)."""
    return cell if isinstance(cell, int) else int(cell.partition(b":")[2] if form.is_json else cell)


def _time(cell: Any, form: RowFormat) -> Any:
    if not isinstance(cell, bytes):
        return parse_time(cell)
    return parse_time((cell.partition(b":")[2].strip(b'"') if form.is_json else cell).decode())


def response_lines(row_format: RowFormat, selection: Selection) -> Iterator[bytes]:
    """Every answer of the selection as a line."""
    opening = b"{" if row_format.is_json else b""
    for some in assignment_row_chunks(selection):
        by_pk: dict[int, AssignmentRow] = {seat.pk: seat for seat in some}
        now = time = None
        who = page = b""
        for assignment, received, rest in _answer_lines(row_format, chunk_responses(selection, some)):
            if assignment != now:
                now, page, seat = assignment, b"", by_pk[_key(assignment, row_format)]
                who = opening + row_format.cells(IDENTITY_COLUMNS, seat.who) + b","
            if received != time or not page:
                time = received
                page = who + row_format.cells(PAGE_COLUMNS, seat.page_cells_at(_time(received, row_format))) + b","
            yield page + rest


def assignment_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    """Every assignment of the selection: cells in the order of ASSIGNMENTS."""
    for some in assignment_row_chunks(selection):
        for seat in some:
            yield (*seat.who, *seat.times)


def _lines_of(columns: Sequence[Column], rows_of: Callable[[Selection], Iterable[Sequence[Any]]]):
    """How a table whose rows are made in Python becomes lines."""

    def lines(form: RowFormat, selection: Selection) -> Iterator[bytes]:
        opening, end = (b"{", b"}\n") if form.is_json else (b"", b"\n")
        for cells in rows_of(selection):
            yield opening + form.cells(columns, cells) + end

    return lines


LINE_ENCODERS = {
    "responses": response_lines,
    "assignments": _lines_of(ASSIGNMENT_COLUMNS, assignment_rows),
    "codings": _lines_of(CODING_COLUMNS, coding_rows),
    "items": _lines_of(ITEM_COLUMNS, item_rows),
}


def count_of(table: str, selection: Selection) -> int:
    """How many rows an export has."""
    rows = {
        "responses": selection.responses,
        "assignments": selection.assignments,
        "codings": codings_of(selection),
        "items": item_exposures(selection),
    }
    return rows[table].count()


@dataclass(slots=True)
class ExportDigest:
    """What went out so far: rows, bytes, and their hash."""

    rows: int = 0
    size: int = 0
    digest: Any = field(default_factory=sha256)
    is_hashed: bool = True

    @property
    def sha256(self) -> str:
        return self.digest.hexdigest()

    def join_blocks(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines in blocks, counted and hashed."""
        lines = iter(lines)
        while some := list(islice(lines, LINES_AT_ONCE)):
            self.rows += len(some)
            yield self.take(b"".join(some))

    def take(self, block: bytes) -> bytes:
        if self.is_hashed:
            self.digest.update(block)
        self.size += len(block)
        return block


def csv_blocks(
    table: str, selection: Selection, *, raw: bool = False, tally: ExportDigest | None = None
) -> Iterator[bytes]:
    """A table as CSV: UTF-8, a header, \\n at the end of lines, empty for what is not there."""
    tally = tally or ExportDigest(is_hashed=False)
    yield tally.take((",".join(column.name for column in TABLES[table]) + "\n").encode())
    yield from tally.join_blocks(LINE_ENCODERS[table](RAW_CSV if raw else CSV, selection))


def jsonl_blocks(table: str, selection: Selection, *, tally: ExportDigest | None = None) -> Iterator[bytes]:
    """A table as JSON lines. The last line tells that it is the end: rows, the hash of all bytes before, damaged cells."""
    tally = tally or ExportDigest()
    yield from tally.join_blocks(LINE_ENCODERS[table](JSONL, selection))
    n, problems = find_damaged_cells(selection) if table == "responses" else (0, [])
    end = {"_end": True, "rows": tally.rows, "sha256": tally.sha256, "n_problems": n, "problems": problems}
    yield tally.take((as_json(end) + "\n").encode())


BLOCK_MAKERS = {"csv": csv_blocks, "jsonl": jsonl_blocks}


# Streaming


class TooManyExports(Exception):
    """Other exports are running in this process."""


_export_slots = threading.BoundedSemaphore(MAX_SNAPSHOTS)


class ExportStream:
    """Blocks made within a snapshot that lasts as long as the stream.

    Between two blocks the thread's connection is the usual one: what runs there (a session being saved, another request of the
    same thread) must neither see the snapshot nor be refused writing. Raises TooMany at once rather than let a thread wait that
    annotators need. ``prepare`` is called within the snapshot and its result kept in ``prepared``.
    """

    def __init__(self, blocks: Callable[[], Iterator[bytes]], count: Callable[[], Any] = lambda: None):
        if not _export_slots.acquire(blocking=False):
            raise TooManyExports
        self._stack = ExitStack()
        self._stack.callback(_export_slots.release)
        usual = connections["default"]
        try:
            self._stack.enter_context(snapshot())
            self._reader = connections["default"]
            self.n_rows = count()
            self._blocks = blocks()
        except BaseException:
            self._stack.close()
            raise
        finally:
            connections["default"] = usual

    @contextmanager
    def _reading(self):
        usual = connections["default"]
        connections["default"] = self._reader
        try:
            yield
        finally:
            connections["default"] = usual

    def __iter__(self):
        return self

    def __next__(self) -> bytes:
        try:
            with self._reading():
                return next(self._blocks)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the snapshot, however far the stream was read."""
        with self._reading():
            if blocks := getattr(self, "_blocks", None):
                blocks.close()
            self._stack.close()

    def __del__(self) -> None:
        # What comes between the view and the server may fail and answer something else: nobody closes the stream then.
        if hasattr(self, "_reader"):
            self.close()


def stream(table: str, file_format: str, selection: Selection, *, raw: bool = False) -> ExportStream:
    """A table as a stream; ``prepared`` is its number of rows."""
    options = {"raw": raw} if file_format == "csv" else {}
    return ExportStream(
        lambda: BLOCK_MAKERS[file_format](table, selection, **options), lambda: count_of(table, selection)
    )


def hash_export(table: str, file_format: str, selection: Selection, *, raw: bool = False) -> tuple[str, int]:
    """The hash of the whole export and its number of rows, as of now."""
    tally = ExportDigest()
    options = {"raw": raw} if file_format == "csv" else {}
    for _ in ExportStream(lambda: BLOCK_MAKERS[file_format](table, selection, tally=tally, **options)):
        pass
    return tally.sha256, tally.rows


# A page of rows, for lists


def page_of_assignments(assignments: QuerySet, study, after: int, size: int) -> list[tuple[int, dict[str, Any]]]:
    """The next assignments after this key: (key, row)."""
    ids = list(assignments.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:size])
    names = [column.name for column in ASSIGNMENT_COLUMNS]
    found = read_assignment_rows(study, assignments.model.objects.filter(pk__in=ids))
    return [(seat.pk, dict(zip(names, (*seat.who, *seat.times), strict=True))) for seat in found]


def page_of_responses(
    responses: QuerySet, study, after: tuple[int, int], size: int
) -> list[tuple[tuple[int, int], dict]]:
    """The next answers after this key, in the order of the exports: (key, row)."""
    keys = list(_after(responses, *after).order_by("assignment_id", "pk").values_list("assignment_id", "pk")[:size])
    rows = raw_rows(answer_cells(Response.objects.filter(pk__in=[pk for _, pk in keys]), guarded=False))
    seats_here = {seat.pk: seat for seat in read_assignment_rows(study, _assignments(keys))}
    names = [column.name for column in RESPONSE_COLUMNS]
    page = []
    for key, (assignment, received, *rest) in zip(keys, rows, strict=True):
        seat = seats_here[assignment]
        cells = (*seat.who, *seat.page_cells_at(parse_time(received)), *map(json_cell, rest[:-1]), bool(rest[-1]))
        page.append((key, dict(zip(names, cells, strict=True))))
    return page


def _after(responses: QuerySet, assignment: int, pk: int) -> QuerySet:
    # The first condition is implied by the second; it is there for the index.
    return responses.filter(assignment_id__gte=assignment).filter(
        Q(assignment_id__gt=assignment) | Q(assignment_id=assignment, pk__gt=pk)
    )


def _assignments(keys: Sequence[tuple[int, int]]) -> QuerySet:
    return Assignment.objects.filter(pk__in={assignment for assignment, _ in keys})


def json_cell(cell: Any) -> Any:
    """A cell as JSON has it: PostgreSQL gives decimals."""
    if cell is None or isinstance(cell, str | int):
        return cell
    number = float(cell)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
