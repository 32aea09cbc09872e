"""What a table can be packed in: gzip, a zip with one table, and workbooks of spreadsheets, whose cells become text."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime, time
from gzip import BadGzipFile, GzipFile
from pathlib import PurePosixPath
from typing import Any

from .lines import BinaryReader, SeveralSheets, UnreadableFile

GZIP, ZIP, OLD_WORKBOOK = b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
WORKBOOK_EXTENSIONS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
# What programs write beside the file that was meant.
LEFT_BY_SYSTEMS = re.compile(r"(?:^|/)(?:__MACOSX/|(?:\.DS_Store|Thumbs\.db|desktop\.ini)$)", re.IGNORECASE)
# Larger whole numbers are not exact in a workbook, so they keep the form that the spreadsheet gives them.
EXACT = 10**15
_DAMAGE = (BadGzipFile, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


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
        except _DAMAGE as error:
            raise UnreadableFile(None, f"“{self._filename}” is damaged, or cut off. Send it again.") from error


def unpack(
    filename: str, stream: BinaryReader, max_bytes: int, sheet: str = ""
) -> tuple[str, BinaryReader | list[list[str]]]:
    """Return the name and stream of the table in a file, or the rows of a workbook's sheet. Other files are returned as they are."""
    start = stream.read(8)
    whole = Stream(start, stream, filename)
    if start.startswith(GZIP):
        inner = filename[: -len(".gz")] if filename.lower().endswith(".gz") else filename
        return inner, Stream(b"", GzipFile(fileobj=_Readable(whole)), filename)
    if start.startswith(OLD_WORKBOOK):
        return filename, _sheet(filename, _whole(whole, filename, max_bytes), sheet)
    if not start.startswith(ZIP):
        return filename, whole
    data = _whole(whole, filename, max_bytes)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except _DAMAGE as error:
        raise UnreadableFile(
            None, f"“{filename}” is not a zip archive or workbook, or is cut off. Send it again."
        ) from error
    names = [
        info.filename for info in archive.infolist() if not info.is_dir() and not LEFT_BY_SYSTEMS.search(info.filename)
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
        return PurePosixPath(names[0]).name, Stream(b"", archive.open(names[0]), filename)
    except _DAMAGE as error:
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


def _sheet(filename: str, data: bytes, chosen: str) -> list[list[str]]:
    """Return the cells of the chosen sheet, or of the only one with content, as the spreadsheet numbers its rows."""
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = {name: workbook.get_sheet_by_name(name) for name in workbook.sheet_names}
        filled = {name: rows for name, sheet in sheets.items() if any(map(any, rows := _rows(sheet)))}
    except (CalamineError, *_DAMAGE, ValueError) as error:
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
