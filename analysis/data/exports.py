"""Export formats, which turn cells into bytes: CSV with or without a guard against formulas, and JSON lines."""

import csv
import io
import json
import math
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.models import Max, Q, QuerySet
from django.urls import reverse

from annotators.counting import Use, select
from annotators.models import Assignment, Response
from studies.access import Action, check_draw_is_readable, check_permission_or_404
from studies.models import Job, Study
from studies.services import jobs
from studies.services.lifecycle import ActionRefused, FieldsRefused
from studies.stimuli.rows import escape_formula

from .blinding import check_outcomes_visible
from .codings import CODING_COLUMNS, coding_rows, codings_of
from .flat_rows import (
    ANSWER_COLUMNS,
    ASSIGNMENT_COLUMNS,
    COUNTED_ORIGINS,
    IDENTITY_COLUMNS,
    ITEM_COLUMNS,
    PAGE_COLUMNS,
    RESPONSE_COLUMNS,
    AssignmentRow,
    Column,
    Selection,
    answer_cells,
    assignment_row_chunks,
    compile_sql_for_default_db,
    exposures_of_all_items,
    fetch_raw_rows_from_default_db,
    find_damaged_cells,
    item_output_rows,
    parse_time,
    read_assignment_rows,
    responses_of_assignment_chunk,
    with_shown_outputs,
)
from .frames import ORIGINS
from .snapshot import MAX_SNAPSHOTS, database_snapshot, used_connection

# COPY needs a quote and a delimiter. JSON text never has these control characters, so COPY leaves it unchanged.
_AS_JSON = (
    "COPY (SELECT row_to_json(t) FROM ({sql}) AS t({names})) TO STDOUT (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')"
)
_AS_CSV = "COPY ({sql}) TO STDOUT (FORMAT csv)"


@dataclass(frozen=True, slots=True)
class RowFormat:
    """Functions that turn cells into bytes.

    ``cells`` writes the cells of the assignment or the page, without the brackets of a row. ``copy`` is PostgreSQL's statement
    for the rest of the row. ``encode_answers`` writes the rest in Python.
    """

    is_json: bool
    is_guarded: bool
    cells: Callable[[Sequence[Column], Sequence[Any]], bytes]
    encode_answers: Callable[[Iterable[tuple]], list[bytes]]
    copy: str


_QUOTED = re.compile('[,"\\r\\n]')


def _csv_cell(cell: Any, is_guarded: bool) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "1" if cell else "0"
    if not isinstance(cell, str):
        return str(cell)
    if is_guarded:
        cell = escape_formula(cell)
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell


def _csv_cells(is_guarded: bool):
    def cells_as_csv(columns: Sequence[Column], cells: Sequence[Any]) -> bytes:
        return ",".join([_csv_cell(cell, is_guarded) for cell in cells]).encode()

    return cells_as_csv


class _CsvLines(list):
    """The target of a csv writer, which gets one line per call.

    The writer's line end is \\n\\r, so that it quotes both characters. Only \\n is stored.
    """

    def write(self, line: str) -> None:
        self.append(line[:-1].encode())


def _csv_rest(rows: Iterable[tuple]) -> list[bytes]:
    lines = _CsvLines()
    csv.writer(lines, lineterminator="\n\r").writerows(rows)
    return lines


def compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_cells(columns: Sequence[Column], cells: Sequence[Any]) -> bytes:
    return compact_json(dict(zip([c.name for c in columns], cells, strict=True)))[1:-1].encode()


ANSWER_NAMES = [column.name for column in ANSWER_COLUMNS]


_IS_ERASED = ANSWER_NAMES.index("is_erased")


def _json_rest(rows: Iterable[tuple]) -> list[bytes]:
    return [
        (
            compact_json(dict(zip(ANSWER_NAMES, row, strict=True)) | {"is_erased": bool(row[_IS_ERASED])})[1:] + "\n"
        ).encode()
        for row in rows
    ]


JSONL = RowFormat(True, False, _json_cells, _json_rest, _AS_JSON)
CSV = RowFormat(False, True, _csv_cells(True), _csv_rest, _AS_CSV)
RAW_CSV = RowFormat(False, False, _csv_cells(False), _csv_rest, _AS_CSV)


# Write Parquet files, with the optional package pyarrow. It imports numpy, so only jobs and commands write these
# files.


NOT_INSTALLED = "Parquet needs an optional package. Install it in heval's environment: pip install 'pyarrow>=22'"
ROWS_AT_ONCE = 20_000
FILE_LIFETIME_SECONDS = 7 * 24 * 3600


class ParquetNotInstalled(Exception):
    """The optional package is not installed. The message says how to install it."""


def is_pyarrow_installed() -> bool:
    return find_spec("pyarrow") is not None


def write_parquet(table: str, selection: Selection, path, progress=lambda done, total, doing="": None) -> int:
    """Write a table to a file and return its number of rows."""
    columns, rows = TABLES[table].columns_of(selection.study), TABLES[table].rows(selection)
    return _write_parquet_rows(columns, rows, count_rows(table, selection), path, progress)


def _write_parquet_rows(
    columns: Sequence[Column],
    cells_of_rows: Iterable[Sequence[Any]],
    total: int,
    path,
    progress=lambda done, total, doing="": None,
) -> int:
    if not is_pyarrow_installed():
        raise ParquetNotInstalled(NOT_INSTALLED)
    import pyarrow as pa
    from pyarrow import parquet as pq

    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([pa.field(c.name, types[c.type], metadata={"description": c.meaning}) for c in columns])
    done, rows = 0, iter(cells_of_rows)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while chunk := list(islice(rows, ROWS_AT_ONCE)):
            cells = zip(*chunk, strict=True)
            arrays = [
                pa.array(_cells(column.type, values), field.type)
                for column, values, field in zip(columns, cells, schema, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            done += len(chunk)
            progress(done, total, "Writing rows")
    return done


def _cells(kind: str, values: tuple) -> list[Any]:
    if kind == "time":
        return [parse_time(value) for value in values]
    if kind == "number":
        return [None if value is None else float(value) for value in values]
    return [bool(value) for value in values] if kind == "boolean" else list(values)


def _responses(selection: Selection) -> Iterator[tuple]:
    for chunk in assignment_row_chunks(selection):
        by_pk = {row.pk: row for row in chunk}
        sql, params = compile_sql_for_default_db(
            answer_cells(responses_of_assignment_chunk(selection, chunk), escape_formulas=False)
        )
        current: tuple = ()
        start: tuple = ()
        known: dict[int | None, str | None] = {}
        with connections["default"].cursor() as cursor:
            cursor.execute(sql, params)
            while fetched := cursor.fetchmany(5000):
                for assignment, received, *rest in with_shown_outputs(fetched, known):
                    if (assignment, received) != current:
                        current, row = (assignment, received), by_pk[assignment]
                        start = (*row.identity, *row.page_cells_at(parse_time(received)))
                    yield (*start, *rest)


# Files of export jobs


def ensure_export_folder() -> Path:
    path = Path(settings.MEDIA_ROOT) / "exports"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def export_file_path(job: Job) -> Path | None:
    """Return the file of a finished job, or None if it was deleted."""
    path = ensure_export_folder() / f"{job.code}.{job.arguments.get('format', 'parquet')}"
    return path if path.is_file() and not has_lost_people(job) else None


def has_lost_people(job: Job) -> bool:
    """Return whether somebody withdrew after a file was asked for that must not have the rows of people who withdrew."""
    if job.arguments.get("withdrawn"):
        return False
    withdrawn = select(Use.WITHDRAWN, Assignment.objects.filter(study=job.study_id))
    newest = withdrawn.aggregate(newest=Max("withdrawn_at"))["newest"]
    return newest is not None and newest >= job.created_at


def write_export_file_and_delete_old_files(job: Job, progress: jobs.ProgressReporter) -> dict[str, Any]:
    """Write the file of an export job."""
    arguments = job.arguments
    selection = Selection(job.study, tuple(arguments["origins"]), arguments.get("withdrawn", False))
    table, file_format = arguments["table"], arguments["format"]
    with new_export_file(job, file_format) as temporary:
        progress(0, 0, "Reading")
        rows = write_export_file(table, file_format, selection, temporary, progress)
    url = reverse("api-job-file", args=[job.study.code, job.code])
    return {"rows": rows, "table": table, "format": file_format, "url": url}


@contextmanager
def new_export_file(job: Job, file_format: str) -> Iterator[str]:
    """Give a temporary name, and move the file in one step, so that a repeated job never finds half a file. Old files are deleted."""
    _clear_old()
    handle, temporary = tempfile.mkstemp(dir=ensure_export_folder(), suffix=".part")
    os.close(handle)
    try:
        yield temporary
        os.replace(temporary, ensure_export_folder() / f"{job.code}.{file_format}")
    finally:
        Path(temporary).unlink(missing_ok=True)


def _clear_old() -> None:
    oldest = time.time() - FILE_LIFETIME_SECONDS
    for path in ensure_export_folder().iterdir():
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)


# Export flat rows as CSV and JSON lines, streamed from one snapshot of the database in constant memory.
#
# The same data give the same bytes on both databases. CSV puts an apostrophe before texts that a spreadsheet would
# run as formulas, unless ``raw``. JSON lines are unchanged and end with a line that has the number of rows and the
# hash of all lines.


TABLE_FORMATS = ("csv", "excel.csv", "jsonl", "parquet")


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be exported. Its rows are streamed if ``is_streamed``, and written by jobs and commands otherwise.

    ``about``: what a row is, and the order of the rows. ``is_about_people``: origins can be chosen. ``has_outcomes``: hidden while
    a study collects. ``lines``: yields the lines, faster than by ``rows``. ``find_problem``: why a study has no such table, or ''.
    ``origins``: whose answers are read if nothing was chosen. ``shows_draw``: hidden while the draw is secret. ``makers``: of formats
    that only this table has.
    """

    columns: Sequence[Column] | Callable[[Study], Sequence[Column]]
    rows: Callable[[Selection], Iterable[Sequence[Any]]]
    about: str
    count: Callable[[Selection], int] = lambda selection: 0
    is_streamed: bool = False
    is_about_people: bool = True
    has_outcomes: bool = False
    shows_draw: bool = False
    lines: Callable[[RowFormat, Selection], Iterator[bytes]] | None = None
    find_problem: Callable[[Study], str] = lambda study: ""
    origins: Callable[[Study], Sequence[str]] = lambda study: COUNTED_ORIGINS
    formats: tuple[str, ...] = TABLE_FORMATS
    makers: "Mapping[str, BlockMaker]" = field(default_factory=dict)

    def maker(self, file_format: str) -> "BlockMaker":
        return self.makers.get(file_format) or BLOCK_MAKERS[file_format]

    def columns_of(self, study: Study) -> Sequence[Column]:
        return self.columns(study) if callable(self.columns) else self.columns


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
    known: dict[int | None, str | None] = {}
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        while fetched := cursor.fetchmany(5000):
            rows = with_shown_outputs(fetched, known)
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


def encode_lines(table: str, form: RowFormat, selection: Selection) -> Iterator[bytes]:
    """Yield the rows of a table as lines."""
    declared = TABLES[table]
    if declared.lines is not None:
        yield from declared.lines(form, selection)
        return
    yield from _row_lines(form, declared.columns_of(selection.study), declared.rows(selection))


def _row_lines(form: RowFormat, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    opening, end = (b"{", b"}\n") if form.is_json else (b"", b"\n")
    for cells in rows:
        yield opening + form.cells(columns, cells) + end


TABLES: dict[str, Table] = {
    "responses": Table(
        RESPONSE_COLUMNS,
        _responses,
        "One row per judgement. Sorted by assignment, then in the order in which answers were stored.",
        lambda selection: selection.responses.count(),
        is_streamed=True,
        has_outcomes=True,
        lines=response_lines,
    ),
    "assignments": Table(
        ASSIGNMENT_COLUMNS,
        assignment_rows,
        "One row per annotator with a batch, even without answers. Sorted by time of claim.",
        lambda selection: selection.assignments.count(),
        is_streamed=True,
    ),
    "codings": Table(
        CODING_COLUMNS,
        coding_rows,
        "One row per coding of an explanation or of an annotator's work. Sorted by sample, item, coder and revision.",
        lambda selection: codings_of(selection).count(),
        is_streamed=True,
        has_outcomes=True,
    ),
    "items": Table(
        ITEM_COLUMNS,
        item_output_rows,
        "One row per output of an item. It shows which two outputs a pairwise answer is about. Sorted by section, item and system.",
        lambda selection: exposures_of_all_items(selection).count(),
        is_streamed=True,
        is_about_people=False,
        shows_draw=True,  # the numbers of items follow the order in which batches were drawn
    ),
}


def count_rows(table: str, selection: Selection) -> int:
    """Return the number of rows of a table, or 0 if only writing them counts them."""
    return TABLES[table].count(selection)


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
    form = RAW_CSV if raw else CSV
    columns = TABLES[table].columns_of(selection.study)
    yield tally.count_and_hash(form.cells(columns, [column.name for column in columns]) + b"\n")
    yield from tally.digest_lines(encode_lines(table, form, selection))


MAX_EXCEL_CELL = 32_767  # characters; Excel would write the rest into other cells


def excel_blocks(table: str, selection: Selection, *, tally: ExportDigest | None = None) -> Iterator[bytes]:
    """Yield a table as the CSV that Excel reads: with a BOM, with its line ends, and without cells that are too long for it."""
    tally = tally or ExportDigest(is_hashed=False)
    names = ",".join(column.name for column in TABLES[table].columns_of(selection.study))
    yield tally.count_and_hash(f"\ufeff{names}\r\n".encode())
    yield from tally.digest_lines(map(_excel_line, encode_lines(table, CSV, selection)))


def _excel_line(line: bytes) -> bytes:
    if len(line) <= MAX_EXCEL_CELL:
        return line[:-1] + b"\r\n"
    cells = next(csv.reader(io.StringIO(line.decode(), newline=""), strict=True))
    return ",".join(_csv_cell(cell[:MAX_EXCEL_CELL], False) for cell in cells).encode() + b"\r\n"


def jsonl_blocks_with_summary_line(
    table: str, selection: Selection, *, tally: ExportDigest | None = None
) -> Iterator[bytes]:
    """Yield a table as JSON lines. The last line has the number of rows, the hash of all bytes before, and damaged cells.

    Other programs read the tables that are not streamed, so these have no such line.
    """
    tally = tally or ExportDigest()
    yield from tally.digest_lines(encode_lines(table, JSONL, selection))
    if not TABLES[table].is_streamed:
        return
    n, problems = find_damaged_cells(selection) if table == "responses" else (0, [])
    end = {"_end": True, "rows": tally.rows, "sha256": tally.sha256, "n_problems": n, "problems": problems}
    yield tally.count_and_hash((compact_json(end) + "\n").encode())


BlockMaker = Callable[..., Iterator[bytes]]
BLOCK_MAKERS: dict[str, BlockMaker] = {
    "csv": csv_blocks,
    "excel.csv": excel_blocks,
    "jsonl": jsonl_blocks_with_summary_line,
}


def write_export_file(
    table: str, file_format: str, selection: Selection, path, progress=lambda done, total, doing="": None
) -> int:
    """Write a table to a file in a format of the table, from one snapshot, and return its number of rows."""
    writer = connections["default"]

    def report(done: int, total: int, doing: str = "") -> None:
        with used_connection(writer):
            progress(done, total, doing)

    with database_snapshot():
        if file_format == "parquet":
            return write_parquet(table, selection, path, report)
        tally = ExportDigest(is_hashed=False)
        with open(path, "wb") as file:
            for block in TABLES[table].maker(file_format)(table, selection, tally=tally):
                file.write(block)
    return tally.rows


def write_rows(file_format: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]], path) -> int:
    """Write rows that belong to no table of one study, as csv, jsonl or parquet, and return their number."""
    if file_format == "parquet":
        return _write_parquet_rows(columns, rows, 0, path)
    form, tally = JSONL if file_format == "jsonl" else CSV, ExportDigest(is_hashed=False)
    with open(path, "wb") as file:
        if not form.is_json:
            file.write(form.cells(columns, [column.name for column in columns]) + b"\n")
        for block in tally.digest_lines(_row_lines(form, columns, rows)):
            file.write(block)
    return tally.rows


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

    def _reading(self):
        return used_connection(self._reader)

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
    responses = Response.objects.filter(pk__in=[pk for _, pk in keys])
    rows = with_shown_outputs(fetch_raw_rows_from_default_db(answer_cells(responses, escape_formulas=False)), {})
    assignments_by_pk = {row.pk: row for row in read_assignment_rows(study, _assignments(keys))}
    names = [column.name for column in RESPONSE_COLUMNS]
    page = []
    for key, (assignment, received, *rest) in zip(keys, rows, strict=True):
        row = assignments_by_pk[assignment]
        cells = (*row.identity, *row.page_cells_at(parse_time(received)), *map(json_number_or_text, rest))
        page.append((key, dict(zip(names, cells, strict=True)) | {"is_erased": bool(rest[_IS_ERASED])}))
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


# Check and start exports: select the rows, check permissions and blinding, and submit the job of a file.


class BadOrigins(FieldsRefused):
    """An origin is unknown."""


def build_permitted_selection(
    table: str, study: Study, origins: Sequence[str] = (), include_withdrawn: bool = False, *, by
) -> Selection:
    """Return the selection of rows for a table. Raises PermissionDenied if the table has hidden outcomes."""
    check_permission_or_404(by, Action.EXPORT, study)
    origins = tuple(origins or TABLES[table].origins(study))
    if TABLES[table].has_outcomes:
        check_outcomes_visible(study, origins)
    if TABLES[table].shows_draw:
        check_draw_is_readable(by, study)
    return Selection(study, origins, include_withdrawn)


def refuse_impossible_export(study: Study, table: str, file_format: str, include_withdrawn: bool = False) -> None:
    """Raise FieldsRefused or ActionRefused if a study has no such table, or the table no such format."""
    declared = TABLES[table]
    if file_format not in declared.formats:
        raise FieldsRefused(
            {"format": f"The table {table} cannot be written as {file_format}. Use {', '.join(declared.formats)}."}
        )
    if include_withdrawn and not declared.is_streamed:
        raise FieldsRefused(
            {"withdrawn": f"The table {table} never has people who withdrew. Leave this parameter out."}
        )
    if problem := declared.find_problem(study):
        raise ActionRefused(problem)
    if file_format == "parquet" and not is_pyarrow_installed():
        raise ActionRefused(NOT_INSTALLED)


def request_export(
    study: Study,
    *,
    by,
    table: str,
    format: str,
    origins: Sequence[str] = (),
    withdrawn: bool = False,
    request_token: str | None = None,
) -> Job:
    """Submit the job that writes a table to a file. Idempotent per ``request_token``.

    Raises BadOrigins, FieldsRefused, PermissionDenied and ActionRefused.
    """
    check_permission_or_404(by, Action.ANALYSE, study)
    if unknown := sorted(set(origins) - set(ORIGINS)):
        raise BadOrigins({"origins": f"{unknown[0][:20]!r} is not an origin. Use {', '.join(ORIGINS)}."})
    chosen = build_permitted_selection(table, study, origins, withdrawn, by=by)
    refuse_impossible_export(study, table, format, withdrawn)
    return jobs.submit(
        "export",
        study=study,
        by=by,
        request_token=request_token,
        table=table,
        format=format,
        origins=list(chosen.origins),
        withdrawn=chosen.withdrawn,
    )
