"""What a table can be packed in: gzip, a zip with one table, Parquet, and workbooks of spreadsheets, whose cells become text."""

import io
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from decimal import Decimal
from gzip import BadGzipFile, GzipFile
from math import isnan
from pathlib import PurePosixPath
from typing import Any

from .lines import BinaryReader, SeveralSheets, UnreadableFile

GZIP, ZIP, OLD_WORKBOOK, PARQUET = b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"PAR1"
PARQUET_EXTENSION = ".parquet"
# So many rows of Parquet are in memory at once.
PARQUET_BATCH = 64
WORKBOOK_EXTENSIONS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
# What programs write beside the file that was meant.
LEFT_BY_SYSTEMS = re.compile(r"(?:^|/)(?:__MACOSX/|(?:\.DS_Store|Thumbs\.db|desktop\.ini)$)", re.IGNORECASE)
# Larger whole numbers are not exact in a workbook, so they keep the form that the spreadsheet gives them.
EXACT = 10**15
DAMAGE = (BadGzipFile, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


class Stream:
    """A stream of which the beginning was read. Damage of the container becomes a problem of the table."""

    def __init__(self, start: bytes, rest: BinaryReader, filename: str) -> None:
        self._start, self._rest, self._filename = start, rest, filename

    def read(self, size: int, /) -> bytes:
        begun, self._start = self._start[:size], self._start[size:]
        if len(begun) == size:
            return begun
        try:
            return begun + self._rest.read(size - len(begun))
        except DAMAGE as error:
            raise UnreadableFile(None, f"“{self._filename}” is damaged, or cut off. Send it again.") from error


Content = BinaryReader | list[list[str]] | Iterator[dict[str, Any]]


def unpack(filename: str, stream: BinaryReader, max_bytes: int, sheet: str = "") -> tuple[str, Content]:
    """Return the name and stream of the table in a file, the rows of a workbook's sheet, or the records of Parquet.

    Other files are returned as they are.
    """
    start = stream.read(8)
    whole = Stream(start, stream, filename)
    if start.startswith(GZIP):
        inner = filename[: -len(".gz")] if filename.lower().endswith(".gz") else filename
        return inner, Stream(b"", GzipFile(fileobj=_Readable(whole)), filename)
    if start.startswith(PARQUET) or filename.lower().endswith(PARQUET_EXTENSION):
        return filename, _parquet_records(filename, whole, max_bytes)
    if start.startswith(OLD_WORKBOOK):
        return filename, _sheet(filename, _whole(whole, filename, max_bytes), sheet)
    if not start.startswith(ZIP):
        return filename, whole
    data = _whole(whole, filename, max_bytes)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except DAMAGE as error:
        raise UnreadableFile(
            None, f"“{filename}” is not a zip archive or workbook, or is cut off. Send it again."
        ) from error
    names = [
        info.filename
        for info in archive.infolist()
        if not info.filename.endswith("/") and not LEFT_BY_SYSTEMS.search(info.filename)
    ]
    if sum(info.file_size for info in archive.infolist()) > max_bytes:
        raise UnreadableFile(None, f"“{filename}” has more than {max_bytes:,} bytes when unpacked. Split the table.")
    if any(name in ("[Content_Types].xml", "content.xml") for name in names):
        return filename, _sheet(filename, data, sheet)
    if len(names) != 1:
        raise UnreadableFile(
            None, f"“{filename}” contains {len(names):,} files. Send an archive with one table, or the table itself."
        )
    try:
        inner, member = PurePosixPath(names[0]).name, Stream(b"", archive.open(names[0]), filename)
        is_parquet = inner.lower().endswith(PARQUET_EXTENSION)
        return inner, _parquet_records(inner, member, max_bytes) if is_parquet else member
    except DAMAGE as error:
        raise UnreadableFile(
            None, f"“{filename}” is encrypted, or packed in an uncommon way. Unpack it first."
        ) from error


class _Readable(io.RawIOBase):
    """A stream as the gzip module wants it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def read(self, size: int = -1, /) -> bytes:
        return self._stream.read(size if size >= 0 else io.DEFAULT_BUFFER_SIZE)


def _whole(stream: Stream, filename: str, max_bytes: int) -> bytes:
    parts, size = [], 0
    while part := stream.read(1 << 20):
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            raise UnreadableFile(None, f"“{filename}” has more than {max_bytes:,} bytes. Split the table.")
    return b"".join(parts)


def _parquet_records(filename: str, stream: Stream, max_bytes: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file, some at a time. Texts, numbers and truth values stay; times and decimals become texts."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise UnreadableFile(
            None,
            f"“{filename}” is a Parquet file, which needs the package pyarrow. Install pyarrow in heval's environment, or send JSON lines.",
        ) from error
    too_large = f"“{filename}” has more than {max_bytes:,} bytes, or more when it is unpacked. Split the Parquet file."
    n = size = 0
    with tempfile.TemporaryFile() as copy:
        while part := stream.read(1 << 20):
            if copy.tell() + len(part) > max_bytes:
                raise UnreadableFile(None, too_large)
            copy.write(part)
        try:
            table = ParquetFile(copy, pre_buffer=False)
            groups = (table.metadata.row_group(number) for number in range(table.metadata.num_row_groups))
            if sum(group.total_byte_size for group in groups) > max_bytes:
                raise UnreadableFile(None, too_large)
            for batch in table.iter_batches(PARQUET_BATCH, use_threads=False):
                size += batch.nbytes
                if size > max_bytes:
                    raise UnreadableFile(n, too_large)
                for record in batch.to_pylist():
                    n += 1
                    yield {name: _json_value(value, name, n) for name, value in record.items()}
        except (ArrowException, OSError, ValueError, KeyError) as error:
            raise UnreadableFile(
                None, f"“{filename}” is damaged or cut off, or no Parquet file that heval can read. Send it again."
            ) from error


def _json_value(value: Any, column: str, row: int) -> Any:
    if isinstance(value, dict):
        return {name: _json_value(inner, column, row) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(inner, column, row) for inner in value]
    if isinstance(value, float):
        return None if isnan(value) else value  # a missing number of pandas
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        raise UnreadableFile(row, f"column “{column}” has bytes, such as an image or sound. Send the table without it.")
    return value


def _sheet(filename: str, data: bytes, chosen: str) -> list[list[str]]:
    """Return the cells of the chosen sheet, or of the only one with content, as the spreadsheet numbers its rows."""
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = {name: workbook.get_sheet_by_name(name) for name in workbook.sheet_names}
        filled = {name: rows for name, sheet in sheets.items() if any(map(any, rows := _rows(sheet)))}
    except (CalamineError, *DAMAGE, ValueError) as error:
        raise UnreadableFile(
            None, f"“{filename}” is a workbook that cannot be read ({error}). Save the sheet as CSV (UTF-8)."
        ) from error
    if not filled:
        raise UnreadableFile(None, f"“{filename}” has no sheet with content. Choose another file.")
    named = ", ".join(f"“{name}”" for name in list(filled)[:5])
    if chosen and chosen not in filled:
        raise SeveralSheets(f"“{filename}” has no sheet “{chosen[:100]}” with content. Choose {named}.", tuple(filled))
    if len(filled) > 1 and not chosen:
        raise SeveralSheets(
            f"“{filename}” has several sheets with content: {named}. Choose one, or save it as a file of its own.",
            tuple(filled),
        )
    return filled[chosen] if chosen else next(iter(filled.values()))


def _rows(sheet: Any) -> list[list[str]]:
    return [[cell_text(value) for value in row] for row in sheet.to_python(skip_empty_area=False)]


def cell_text(value: Any) -> str:
    """Return a cell of a workbook as the text that a CSV would have: whole numbers without a decimal point, times in ISO 8601.

    >>> cell_text(3.0), cell_text(0.5), cell_text(True), cell_text(date(2026, 1, 2))
    ('3', '0.5', 'true', '2026-01-02')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < EXACT else repr(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def numbered(rows: list[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Return the rows that have a cell with content, with their numbers. Cells beyond the last one of the header are cut if blank."""
    width = 0
    for number, cells in enumerate(rows, 1):
        if not any(cell.strip() for cell in cells):
            continue
        width = width or max(place for place, cell in enumerate(cells, 1) if cell.strip())
        kept = cells[:width] if not any(cell.strip() for cell in cells[width:]) else cells
        yield number, kept + [""] * (width - len(kept))
