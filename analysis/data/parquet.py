"""Write Parquet files, with the optional package pyarrow. It imports numpy, so only jobs and commands write these files."""

import os
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from studies.models import Job
from studies.services import jobs

from .codings import coding_rows
from .exports import TABLES, assignment_rows, count_rows
from .flat_rows.answers import answer_cells, responses_of_assignment_chunk
from .flat_rows.assignment_rows import assignment_row_chunks
from .flat_rows.cells import compile_sql_for_default_db, parse_time
from .flat_rows.selection import Selection
from .item_rows import item_output_rows
from .snapshot import database_snapshot

NOT_INSTALLED = "Parquet needs an optional package. Install it in heval's environment: pip install 'pyarrow>=22'"
ROWS_AT_ONCE = 20_000
FILE_LIFETIME_SECONDS = 7 * 24 * 3600


class ParquetNotInstalled(Exception):
    """The optional package is not installed. The message says how to install it."""


def is_pyarrow_installed() -> bool:
    return find_spec("pyarrow") is not None


def write_parquet(table: str, selection: Selection, path, progress=lambda done, total, doing="": None) -> int:
    """Write a table to a file and return its number of rows. Must be called inside a snapshot."""
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
    columns = TABLES[table]
    schema = pa.schema([pa.field(c.name, types[c.type], metadata={"description": c.meaning}) for c in columns])
    total, done = count_rows(table, selection), 0
    rows = {"responses": _responses, "assignments": assignment_rows, "codings": coding_rows, "items": item_output_rows}[
        table
    ](selection)
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
        with connections["default"].cursor() as cursor:
            cursor.execute(sql, params)
            while fetched := cursor.fetchmany(5000):
                for assignment, received, *rest in fetched:
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
    path = ensure_export_folder() / f"{job.code}.parquet"
    return path if path.is_file() else None


def write_export_file_and_delete_old_files(job: Job, progress: jobs.ProgressReporter) -> dict[str, Any]:
    """Write the file to a temporary name, then move it in one step, so that a repeated job never finds half a file."""
    _clear_old()
    arguments = job.arguments
    selection = Selection(job.study, tuple(arguments["origins"]), arguments.get("withdrawn", False))
    handle, temporary = tempfile.mkstemp(dir=ensure_export_folder(), suffix=".part")
    os.close(handle)
    try:
        progress(0, 0, "Reading")
        with database_snapshot():
            rows = write_parquet(arguments["table"], selection, temporary)
        os.replace(temporary, ensure_export_folder() / f"{job.code}.parquet")
    finally:
        Path(temporary).unlink(missing_ok=True)
    return {"rows": rows, "table": arguments["table"], "format": "parquet"}


def _clear_old() -> None:
    oldest = time.time() - FILE_LIFETIME_SECONDS
    for path in ensure_export_folder().iterdir():
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)
