"""Export flat rows as CSV and JSON lines, streamed from one snapshot of the database in constant memory.

The same data give the same bytes on both databases. CSV puts an apostrophe before texts that a spreadsheet would run as
formulas, unless ``raw``. JSON lines are unchanged and end with a line that has the number of rows and the hash of all lines.
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
from .flat_rows.answers import answer_cells, find_damaged_cells, responses_of_assignment_chunk
from .flat_rows.assignment_rows import AssignmentRow, assignment_row_chunks, read_assignment_rows
from .flat_rows.cells import compile_sql_for_default_db, fetch_raw_rows_from_default_db, parse_time
from .flat_rows.columns import ASSIGNMENT_COLUMNS, IDENTITY_COLUMNS, PAGE_COLUMNS, RESPONSE_COLUMNS, Column
from .flat_rows.selection import Selection
from .formats import ANSWER_NAMES, CSV, JSONL, RAW_CSV, RowFormat, compact_json
from .item_rows import ITEM_COLUMNS, exposures_of_all_items, item_output_rows
from .snapshot import MAX_SNAPSHOTS, database_snapshot

TABLES: dict[str, tuple[Column, ...]] = {
    "responses": RESPONSE_COLUMNS,
    "assignments": ASSIGNMENT_COLUMNS,
    "codings": CODING_COLUMNS,
    "items": ITEM_COLUMNS,
}
# Tables that can be filtered by origin. Items do not depend on annotators.
PERSON_TABLES = frozenset({"responses", "assignments", "codings"})
# Tables with outcomes, which are hidden while a study is collecting.
OUTCOME_TABLES = frozenset({"responses", "codings"})
LINES_AT_ONCE = 256  # a block has some tens of kilobytes


def _copied_lines(form: RowFormat, connection, responses: QuerySet) -> Iterator[tuple[Any, Any, bytes]]:
    sql, params = compile_sql_for_default_db(
        answer_cells(responses, escape_formulas=form.is_guarded, booleans_as_numbers=not form.is_json)
    )
    names = ", ".join(["assignment_id", "received_at", *(f'"{name}"' for name in ANSWER_NAMES)])
    # Only the driver's cursor accepts parameters for COPY.
    with connection.cursor() as cursor, cursor.cursor.copy(form.copy.format(sql=sql, names=names), params) as copy:
        for line in copy:
            assignment, at, rest = bytes(line).split(b",", 2)
            yield assignment, at, rest


def _fetched_lines(form: RowFormat, connection, responses: QuerySet) -> Iterator[tuple[Any, Any, bytes]]:
    sql, params = compile_sql_for_default_db(answer_cells(responses, escape_formulas=form.is_guarded))
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        while rows := cursor.fetchmany(5000):
            for row, line in zip(rows, form.encode_answers(row[2:] for row in rows), strict=True):
                yield row[0], row[1], line


def _answer_lines(form: RowFormat, responses: QuerySet) -> Iterator[tuple[Any, Any, bytes]]:
    """Return (assignment, time, rest of the row) of each answer in stable order. Read the first two by ``_key`` and ``_time``."""
    connection = connections["default"]
    lines = _copied_lines if connection.vendor == "postgresql" else _fetched_lines
    return lines(form, connection, responses)


def _key(cell: Any, form: RowFormat) -> int:
    """Return the assignment id of a row. The cell is a number, or bytes of COPY (in JSON with the name before it)."""
    return cell if isinstance(cell, int) else int(cell.partition(b":")[2] if form.is_json else cell)


def _time(cell: Any, form: RowFormat) -> Any:
    if not isinstance(cell, bytes):
        return parse_time(cell)
    return parse_time((cell.partition(b":")[2].strip(b'"') if form.is_json else cell).decode())


def response_lines(row_format: RowFormat, selection: Selection) -> Iterator[bytes]:
    """Yield every answer of the selection as a line."""
    opening = b"{" if row_format.is_json else b""
    for chunk in assignment_row_chunks(selection):
        by_pk: dict[int, AssignmentRow] = {row.pk: row for row in chunk}
        current = time = None
        identity = page = b""
        for assignment, received, rest in _answer_lines(row_format, responses_of_assignment_chunk(selection, chunk)):
            if assignment != current:
                current, page, row = assignment, b"", by_pk[_key(assignment, row_format)]
                identity = opening + row_format.cells(IDENTITY_COLUMNS, row.identity) + b","
            if received != time or not page:
                time = received
                page = identity + row_format.cells(PAGE_COLUMNS, row.page_cells_at(_time(received, row_format))) + b","
            yield page + rest


def assignment_rows(selection: Selection) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of every assignment in the order of ``ASSIGNMENT_COLUMNS``."""
    for chunk in assignment_row_chunks(selection):
        for row in chunk:
            yield (*row.identity, *row.times)


def _line_encoder(columns: Sequence[Column], rows_of: Callable[[Selection], Iterable[Sequence[Any]]]):
    """Return a function that turns the rows of a table into lines."""

    def lines(form: RowFormat, selection: Selection) -> Iterator[bytes]:
        opening, end = (b"{", b"}\n") if form.is_json else (b"", b"\n")
        for cells in rows_of(selection):
            yield opening + form.cells(columns, cells) + end

    return lines


LINE_ENCODERS = {
    "responses": response_lines,
    "assignments": _line_encoder(ASSIGNMENT_COLUMNS, assignment_rows),
    "codings": _line_encoder(CODING_COLUMNS, coding_rows),
    "items": _line_encoder(ITEM_COLUMNS, item_output_rows),
}


def count_rows(table: str, selection: Selection) -> int:
    """Return the number of rows of an export."""
    rows = {
        "responses": selection.responses,
        "assignments": selection.assignments,
        "codings": codings_of(selection),
        "items": exposures_of_all_items(selection),
    }
    return rows[table].count()


@dataclass(slots=True)
class ExportDigest:
    """The number of rows and bytes written so far, and their hash."""

    rows: int = 0
    size: int = 0
    digest: Any = field(default_factory=sha256)
    is_hashed: bool = True

    @property
    def sha256(self) -> str:
        return self.digest.hexdigest()

    def digest_lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines in blocks, counted and hashed."""
        lines = iter(lines)
        while chunk := list(islice(lines, LINES_AT_ONCE)):
            self.rows += len(chunk)
            yield self.count_and_hash(b"".join(chunk))

    def count_and_hash(self, block: bytes) -> bytes:
        if self.is_hashed:
            self.digest.update(block)
        self.size += len(block)
        return block


def csv_blocks(
    table: str, selection: Selection, *, raw: bool = False, tally: ExportDigest | None = None
) -> Iterator[bytes]:
    """Yield a table as CSV in UTF-8, with a header and \\n line ends. Missing values are empty."""
    tally = tally or ExportDigest(is_hashed=False)
    yield tally.count_and_hash((",".join(column.name for column in TABLES[table]) + "\n").encode())
    yield from tally.digest_lines(LINE_ENCODERS[table](RAW_CSV if raw else CSV, selection))


def jsonl_blocks_with_summary_line(
    table: str, selection: Selection, *, tally: ExportDigest | None = None
) -> Iterator[bytes]:
    """Yield a table as JSON lines. The last line has the number of rows, the hash of all bytes before, and damaged cells."""
    tally = tally or ExportDigest()
    yield from tally.digest_lines(LINE_ENCODERS[table](JSONL, selection))
    n, problems = find_damaged_cells(selection) if table == "responses" else (0, [])
    end = {"_end": True, "rows": tally.rows, "sha256": tally.sha256, "n_problems": n, "problems": problems}
    yield tally.count_and_hash((compact_json(end) + "\n").encode())


BLOCK_MAKERS: dict[str, Callable[..., Iterator[bytes]]] = {"csv": csv_blocks, "jsonl": jsonl_blocks_with_summary_line}


# Streaming


class TooManyExports(Exception):
    """Other exports are running in this process."""


_export_slots = threading.BoundedSemaphore(MAX_SNAPSHOTS)


class ExportStream:
    """A stream of blocks from a snapshot that lasts as long as the stream.

    Between two blocks, the thread uses its usual connection. Other code of the thread, such as saving a session, must not see
    the snapshot, and its writes must not be refused. Raises TooManyExports at once instead of blocking a thread that
    annotators need. ``count`` is called inside the snapshot, and its result is stored in ``n_rows``.
    """

    def __init__(self, blocks: Callable[[], Iterator[bytes]], count: Callable[[], Any] = lambda: None):
        if not _export_slots.acquire(blocking=False):
            raise TooManyExports
        self._stack = ExitStack()
        self._stack.callback(_export_slots.release)
        usual = connections["default"]
        try:
            self._stack.enter_context(database_snapshot())
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
        """End the snapshot, even if the stream was not read to the end."""
        with self._reading():
            if blocks := getattr(self, "_blocks", None):
                blocks.close()
            self._stack.close()

    def __del__(self) -> None:
        # If a middleware fails and answers something else, the server does not close the stream.
        if hasattr(self, "_reader"):
            self.close()


def open_export_stream(table: str, file_format: str, selection: Selection, *, raw: bool = False) -> ExportStream:
    """Return a table as a stream, with its number of rows in ``n_rows``."""
    options = {"raw": raw} if file_format == "csv" else {}
    return ExportStream(
        lambda: BLOCK_MAKERS[file_format](table, selection, **options), lambda: count_rows(table, selection)
    )


def hash_and_count_export(table: str, file_format: str, selection: Selection, *, raw: bool = False) -> tuple[str, int]:
    """Return the current hash of an export and its number of rows."""
    tally = ExportDigest()
    options = {"raw": raw} if file_format == "csv" else {}
    for _ in ExportStream(lambda: BLOCK_MAKERS[file_format](table, selection, tally=tally, **options)):
        pass
    return tally.sha256, tally.rows


# Pages of rows, for lists


def page_of_assignments(assignments: QuerySet, study, after_pk: int, size: int) -> list[tuple[int, dict[str, Any]]]:
    """Return (key, row) of the next assignments after this key."""
    ids = list(assignments.filter(pk__gt=after_pk).order_by("pk").values_list("pk", flat=True)[:size])
    names = [column.name for column in ASSIGNMENT_COLUMNS]
    rows = read_assignment_rows(study, assignments.model.objects.filter(pk__in=ids))
    return [(row.pk, dict(zip(names, (*row.identity, *row.times), strict=True))) for row in rows]


def page_of_responses(
    responses: QuerySet, study, after_key: tuple[int, int], size: int
) -> list[tuple[tuple[int, int], dict]]:
    """Return (key, row) of the next answers after this key, in the order of the exports."""
    keys = list(_after(responses, *after_key).order_by("assignment_id", "pk").values_list("assignment_id", "pk")[:size])
    rows = fetch_raw_rows_from_default_db(
        answer_cells(Response.objects.filter(pk__in=[pk for _, pk in keys]), escape_formulas=False)
    )
    assignments_by_pk = {row.pk: row for row in read_assignment_rows(study, _assignments(keys))}
    names = [column.name for column in RESPONSE_COLUMNS]
    page = []
    for key, (assignment, received, *rest) in zip(keys, rows, strict=True):
        row = assignments_by_pk[assignment]
        cells = (
            *row.identity,
            *row.page_cells_at(parse_time(received)),
            *map(json_number_or_text, rest[:-1]),
            bool(rest[-1]),
        )
        page.append((key, dict(zip(names, cells, strict=True))))
    return page


def _after(responses: QuerySet, assignment: int, pk: int) -> QuerySet:
    # The second condition implies the first, which is added so that the database uses the index.
    return responses.filter(assignment_id__gte=assignment).filter(
        Q(assignment_id__gt=assignment) | Q(assignment_id=assignment, pk__gt=pk)
    )


def _assignments(keys: Sequence[tuple[int, int]]) -> QuerySet:
    return Assignment.objects.filter(pk__in={assignment for assignment, _ in keys})


def json_number_or_text(cell: Any) -> Any:
    """Return a cell as a JSON value. PostgreSQL gives decimals, which JSON does not have."""
    if cell is None or isinstance(cell, str | int):
        return cell
    number = float(cell)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number
