"""Read tables strictly: CSV and JSON lines (`images.read_zip` reads a zip of either with images).

Every cell of a CSV stays text ("NA", "None", "007"): nothing is guessed, shifted or filled. A fault is refused with its row
and column. Files are streamed: memory grows with the longest record, not with the file.

Rows have the numbers that a spreadsheet shows (the header is row 1, a cell with line breaks is one row). In JSON lines they
are the lines of the file.
"""

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any, Protocol

from . import texts
from .texts import name_key

# Read the lines of an uploaded file: as a stream, decoded strictly. Each error names its line.


_CHUNK = 256 * 1024
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)")
_SIGNATURES = (
    (b"\x1f\x8b", "is compressed with gzip: unpack it first"),
    (b"PK\x03\x04", "is a zip archive or an Excel workbook: save the sheet as CSV (UTF-8), or name the archive .zip"),
    (b"PK\x05\x06", "is an empty zip archive"),
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook: save the sheet as CSV (UTF-8)"),
    (b"SQLite format 3", "is a database"),
    (b"PAR1", "is a Parquet file: convert it to JSON lines"),
    (b"%PDF", "is a PDF"),
)


class UnreadableFile(Exception):
    """The rest of a file cannot be read. `row` is None if records are not counted."""

    def __init__(self, row: int | None, text: str) -> None:
        super().__init__(text)
        self.row, self.text = row, text


class BinaryReader(Protocol):
    """The part of a binary stream that is used here."""

    def read(self, size: int, /) -> bytes: ...


class LineReader:
    """The lines of a file with their original line ends. Only \\n, \\r\\n and \\r end a line.

    `str.splitlines` would also break at U+2028, U+0085 and form feeds, which are characters of a text. A reader of
    records with several lines sets `record_characters` to 0 at the start of each record. It limits how much text an
    unclosed quote can include.
    """

    def __init__(self, stream: BinaryReader, max_bytes: int, max_record_characters: int) -> None:
        self.number = 0
        self.record_characters = 0
        self.has_nul = False
        self._max_bytes = max_bytes
        self._max_characters = max_record_characters
        self._stream = stream
        start = stream.read(_CHUNK)
        self.beginning = start.decode("utf-8-sig", "replace")
        self._decoder, self._encoding = _decoder(start)
        self._lines = self._split(start)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        self.record_characters += len(line)
        if self.record_characters > self._max_characters:
            raise UnreadableFile(
                None,
                f"a row has more than {self._max_characters:,} characters in line {self.number}; "
                "check for a quote that is never closed.",
            )
        return line

    def _split(self, chunk: bytes) -> Iterator[str]:
        pending: list[str] = []
        n_pending = size = 0
        while True:
            size += len(chunk)
            if size > self._max_bytes:
                raise UnreadableFile(None, f"the file has more than {self._max_bytes:,} bytes.")
            text, refused = self._decoded(chunk)
            self.has_nul = self.has_nul or "\0" in text
            if pending and pending[-1].endswith("\r"):
                text, pending, n_pending = "".join(pending) + text, [], 0
            # A \r at the end of a chunk may be the first half of \r\n: wait for the next chunk.
            is_open = bool(chunk) and not refused and text.endswith("\r")
            stop = len(text) - 1 if is_open else len(text)
            end = max(text.rfind("\n", 0, stop), text.rfind("\r", 0, stop)) + 1
            for match in _LINE.finditer(text, 0, end):
                yield "".join(pending) + match.group()
                pending, n_pending = [], 0
            if end < len(text):
                pending.append(text[end:])
                n_pending += len(text) - end
            if refused:
                raise UnreadableFile(None, f"line {self.number + 1}: {refused}")
            if n_pending > self._max_characters:
                raise UnreadableFile(None, f"line {self.number + 1} has more than {self._max_characters:,} characters.")
            if not chunk:
                break
            chunk = self._stream.read(_CHUNK)
        if pending:
            yield "".join(pending)

    def _decoded(self, chunk: bytes) -> tuple[str, str]:
        try:
            return self._decoder.decode(chunk, final=not chunk), ""
        except UnicodeDecodeError as error:
            # Return the text before the bad byte, so that its line can be counted.
            before = error.object[: error.start].decode(error.encoding, "ignore")
            bad = f"byte 0x{error.object[error.start]:02X} is not {self._encoding}"
            return before, f"{bad}{_likely_cause(error.object, error.start)}. Save the file as “CSV UTF-8”."


def _decoder(start: bytes) -> tuple[codecs.IncrementalDecoder, str]:
    if not start:
        raise UnreadableFile(None, "The file is empty.")
    for signature, meaning in _SIGNATURES:
        if start.startswith(signature):
            raise UnreadableFile(None, f"The file {meaning}.")
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise UnreadableFile(None, "The file is UTF-32. Save it as “CSV UTF-8”.")
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.getincrementaldecoder("utf-16")("strict"), "UTF-16"
    sample = start[:4096]
    if sample.count(0) * 4 > len(sample):
        raise UnreadableFile(
            None, "The file looks like UTF-16 without a byte order mark, or is not a text. Save it as “CSV UTF-8”."
        )
    return codecs.getincrementaldecoder("utf-8-sig")("strict"), "UTF-8"


def _likely_cause(data: bytes, at: int) -> str:
    following = data[at + 1] if at + 1 < len(data) else 0
    if data[at] == 0xED and following >= 0xA0:
        return ", it begins half of a surrogate pair (CESU-8)"
    if data[at] in (0xC0, 0xC1) or (data[at] == 0xE0 and 0x80 <= following < 0xA0):
        return ", it begins an overlong character"
    return ", the file may be Windows-1252, Latin-1 or Shift-JIS"


MAX_LISTED_PROBLEMS = 100
CSV_EXTENSIONS = (".csv", ".tsv", ".txt")
JSON_EXTENSIONS = (".jsonl", ".ndjson", ".json")
DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True)
class TableLimits:
    """The limits of one file. Exceeding one is a problem that names the limit."""

    bytes: int = 500 * 1024 * 1024
    rows: int = 2_000_000
    columns: int = 200
    cell_characters: int = 1_000_000
    row_characters: int = 8_000_000


@dataclass(frozen=True)
class TableProblem:
    """A problem in a row and a column. None means the whole file or the whole row."""

    row: int | None
    column: str | None
    text: str

    def __str__(self) -> str:
        where = [f"row {self.row}"] if self.row is not None else []
        where += [f"column “{self.column}”"] if self.column is not None else []
        return f"{', '.join(where)}: {self.text}" if where else self.text


@dataclass
class TableProblems:
    """The first problems and the number of all. An importer adds its own problems to the reader's."""

    first: list[TableProblem] = field(default_factory=list)
    count: int = 0

    def add(self, row: int | None, column: str | None, text: str) -> None:
        """Count a problem, and store it if the list is not full."""
        self.count += 1
        if len(self.first) < MAX_LISTED_PROBLEMS:
            self.first.append(TableProblem(row, column, text))

    def sort_by_row(self) -> None:
        """Sort the stored problems by row. Problems of the whole file come first."""
        self.first.sort(key=lambda problem: -1 if problem.row is None else problem.row)

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[TableProblem]:
        return iter(self.first)

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True)
class Row:
    """One record: texts by column, or JSON values in JSON lines."""

    number: int
    values: Mapping[str, Any]


@dataclass
class Rows:
    """A table that is being read. Rows with a problem are skipped. `problems` is complete after the last row."""

    columns: tuple[str, ...]
    rows: Iterator[Row]
    problems: TableProblems

    def __iter__(self) -> Iterator[Row]:
        return self.rows


def read_rows(
    filename: str,
    source: bytes | BinaryReader,
    *,
    known_columns: Collection[str] = (),
    required_columns: Collection[str] = (),
    limits: TableLimits | None = None,
    problems: TableProblems | None = None,
) -> Rows:
    """Return the table of a CSV or JSON-lines file. Faults of the file never raise: they are in `problems`.

    Headers that differ from a `known_columns` or `required_columns` name only in case or blanks count as that name. A CSV without a
    required column has no rows; a JSON line without one is a problem of its row.
    """
    problems = TableProblems() if problems is None else problems
    limits = limits or TableLimits()
    names = {name_key(name): name for name in (*known_columns, *required_columns)}
    extension = PurePosixPath(filename.replace("\\", "/")).suffix.lower()
    try:
        if extension not in CSV_EXTENSIONS + JSON_EXTENSIONS:
            accepted = ", ".join(CSV_EXTENSIONS + JSON_EXTENSIONS)
            raise UnreadableFile(None, f"“{filename}” is not a table. Use one of these file types: {accepted}.")
        stream = BytesIO(source) if isinstance(source, bytes | bytearray) else source
        lines = LineReader(stream, limits.bytes, limits.row_characters)
        if extension in CSV_EXTENSIONS:
            return _csv_rows(lines, names, required_columns, limits, problems, "\t" if extension == ".tsv" else None)
        return _json_rows(lines, names, required_columns, limits, problems)
    except UnreadableFile as end:
        problems.add(end.row, None, end.text)
        return Rows((), iter(()), problems)


# CSV


def _csv_rows(
    lines: LineReader,
    names: Mapping[str, str],
    required: Collection[str],
    limits: TableLimits,
    problems: TableProblems,
    delimiter: str | None,
) -> Rows:
    # The csv module's limit applies to the whole process, so only raise it. Our own limit is checked separately.
    csv.field_size_limit(max(csv.field_size_limit(), limits.row_characters + 1))
    head = _head(lines)
    reader = csv.reader(
        _chained(head, lines), delimiter=delimiter or _delimiter(head), strict=True, doublequote=True, quotechar='"'
    )
    records = _records(reader, lines)
    first = next(records, None)
    if first is None:
        raise UnreadableFile(None, "The file has only blank lines.")
    before = problems.count
    columns = _columns(first[1], names, limits, problems, first[0])
    missing = [name for name in required if name not in columns]
    if missing:
        column_names = ", ".join(name for name in columns if name) or "none"
        problems.add(first[0], None, f"no column {' or '.join(missing)}; the columns found are: {column_names[:500]}.")
    if problems.count > before:
        return Rows((), iter(()), problems)
    return Rows(columns, _checked_records(records, columns, lines, limits, problems), problems)


def _head(lines: LineReader) -> list[str]:
    """Return the lines of the header: more than one if a quoted name contains a line break."""
    head: list[str] = []
    quotes = 0
    for line in lines:
        head.append(line)
        quotes += line.count('"')
        if line.strip() and quotes % 2 == 0:
            break
    return head


def _delimiter(head: list[str]) -> str:
    """Return the delimiter that occurs most in the header outside quotes. A tie goes to comma, then semicolon."""
    outside = re.sub(r'"[^"]*+"', "", "".join(head))
    return max(DELIMITERS, key=outside.count)


def _chained(head: Iterable[str], rest: Iterable[str]) -> Iterator[str]:
    yield from head
    yield from rest


def _records(reader: Any, lines: LineReader) -> Iterator[tuple[int, list[str]]]:
    number = 0
    while True:
        number += 1
        lines.record_characters = 0
        began = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UnreadableFile(number, f"{_csv_error(str(error))} (the row begins in line {began}).") from error
        except UnreadableFile as end:
            end.row = end.row if end.row is not None else number
            raise
        # Spreadsheets write rows that contain only delimiters below their table.
        if any(cell.strip() for cell in cells):
            yield number, cells


def _csv_error(message: str) -> str:
    if "unexpected end of data" in message:
        return "a quote is opened and never closed"
    if "expected after" in message:
        return "a quote in a cell is not doubled, or text follows a closing quote"
    if "field larger" in message:
        return "a cell is too long; check for a quote that is never closed"
    return message


def _columns(
    cells: list[str], names: Mapping[str, str], limits: TableLimits, problems: TableProblems, row: int
) -> tuple[str, ...]:
    if len(cells) > limits.columns:
        raise UnreadableFile(row, f"the header has {len(cells):,} columns. At most {limits.columns:,} are allowed.")
    columns: list[str] = []
    places: dict[str, int] = {}
    for number, cell in enumerate(cells, 1):
        key = name_key(cell)
        if not key:
            problems.add(row, None, f"column {number} has no name. Add it, or remove an extra delimiter.")
        elif "\0" in cell:
            problems.add(row, None, f"the name of column {number} contains a NUL character.")
        elif key in places:
            problems.add(
                row, cell.strip(), f"columns {places[key]} and {number} have the same name. Rename one of them."
            )
        places.setdefault(key, number)
        columns.append(names.get(key, cell.strip()) if key and "\0" not in cell else "")
    return tuple(columns)


def _checked_records(
    records: Iterator[tuple[int, list[str]]],
    columns: tuple[str, ...],
    lines: LineReader,
    limits: TableLimits,
    problems: TableProblems,
) -> Iterator[Row]:
    read = 0
    try:
        for number, cells in records:
            read += 1
            if read > limits.rows:
                raise UnreadableFile(number, f"the file has more than {limits.rows:,} rows.")
            if len(cells) != len(columns):
                problems.add(number, None, _ragged(len(cells), len(columns)))
            elif _cells_are_sound(cells, number, columns, lines.has_nul, limits, problems):
                yield Row(number, dict(zip(columns, cells, strict=True)))
    except UnreadableFile as end:
        problems.add(end.row, None, end.text)
    else:
        if not read:
            problems.add(None, None, "The file has no row below the header.")


def _ragged(n_cells: int, expected: int) -> str:
    return f"has {n_cells} cell{'' if n_cells == 1 else 's'}, the header has {expected}" + (
        "; put a text that contains the delimiter in quotes." if n_cells > expected else "."
    )


def _cells_are_sound(
    cells: list[str], number: int, columns: tuple[str, ...], has_nul: bool, limits: TableLimits, problems: TableProblems
) -> bool:
    is_sound = True
    for column, cell in zip(columns, cells, strict=True):
        if len(cell) > limits.cell_characters:
            problems.add(
                number, column, f"has {len(cell):,} characters. At most {limits.cell_characters:,} are allowed."
            )
            is_sound = False
        elif has_nul and "\0" in cell:
            problems.add(number, column, "contains a NUL character.")
            is_sound = False
    return is_sound


# JSON lines


class _BadLine(ValueError):
    """A line that is not a valid row. The message says why."""


def _json_rows(
    lines: LineReader, names: Mapping[str, str], required: Collection[str], limits: TableLimits, problems: TableProblems
) -> Rows:
    if is_bundle(lines.beginning):
        raise UnreadableFile(
            None,
            "This is a bundle of a whole study. Choose “New study from a file” on the studies page, or run: heval import new FILE",
        )
    rows = _json_records(lines, names, required, limits, problems)
    first = next(rows, None)
    if first is None:
        return Rows((), iter(()), problems)
    return Rows(tuple(first.values), _chained_rows(first, rows), problems)


def _chained_rows(first: Row, rest: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rest


def _json_records(
    lines: LineReader, names: Mapping[str, str], required: Collection[str], limits: TableLimits, problems: TableProblems
) -> Iterator[Row]:
    read = 0
    try:
        for line in lines:
            lines.record_characters = 0
            if line.isspace():
                continue
            read += 1
            if read > limits.rows:
                raise UnreadableFile(lines.number, f"the file has more than {limits.rows:,} rows.")
            if read == 1:
                _check_is_lines(line, lines.number)
            try:
                values = _json_values(line, names, limits)
            except _BadLine as error:
                problems.add(lines.number, None, str(error))
                continue
            if _values_are_sound(values, lines.number, required, limits, problems):
                yield Row(lines.number, values)
    except UnreadableFile as end:
        problems.add(end.row, None, end.text)
    else:
        if not read:
            problems.add(None, None, "The file has only blank lines.")


# The beginning of a bundle's JSON. No row of a table contains it: quotes in a text would be escaped.
_BUNDLE_START = re.compile(r'\s*\{\s*(?:"schema"\s*:\s*"heval\.bundle/|"arms"\s*:\s*\[)')
_BUNDLE_SCHEMA = re.compile(r'"schema"\s*:\s*"heval\.bundle/')


def is_bundle(text_start: str) -> bool:
    """Return whether a file with this beginning is a study's bundle, on one line or several."""
    return bool(_BUNDLE_START.match(text_start)) or (
        text_start.lstrip().startswith("{") and bool(_BUNDLE_SCHEMA.search(text_start))
    )


def _check_is_lines(line: str, number: int) -> None:
    start = line.strip()
    if start.startswith("["):
        raise UnreadableFile(
            number, "this is a JSON array; write one object per line instead, for example with: jq -c '.[]' file.json"
        )
    if start == "{":
        raise UnreadableFile(number, "an object has several lines; write one object per line, for example with jq -c.")


def _json_values(line: str, names: Mapping[str, str], limits: TableLimits) -> dict[str, Any]:
    try:
        value = texts.loads(line)
    except texts.BadJson as error:
        raise _BadLine(str(error)) from None
    if not isinstance(value, dict):
        raise _BadLine("is not an object such as {“prompt”: ..., “text”: ...}.")
    if len(value) > limits.columns:
        raise _BadLine(f"has {len(value):,} keys. At most {limits.columns:,} are allowed.")
    return _named(value, names)


def _named(value: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    seen: dict[str, str] = {}
    for key, content in value.items():
        folded = name_key(key)
        if not folded:
            raise _BadLine("has a key without a name.")
        if folded in seen:
            raise _BadLine(f"has the keys “{seen[folded]}” and “{key}”, which differ only in case or blanks.")
        seen[folded] = key
        values[names.get(folded, key.strip())] = content
    return values


def _values_are_sound(
    values: Mapping[str, Any], number: int, required: Collection[str], limits: TableLimits, problems: TableProblems
) -> bool:
    before = problems.count
    for name in required:
        if name not in values:
            problems.add(number, name, "is missing.")
    for name, value in values.items():
        if isinstance(value, str) and len(value) > limits.cell_characters:
            problems.add(
                number, name, f"has {len(value):,} characters. At most {limits.cell_characters:,} are allowed."
            )
    return problems.count == before


# CSV that is safe to open in a spreadsheet: a text that would run as a formula gets an apostrophe before it.
#
# Only files for people are protected in this way. heval does not remove apostrophes when it reads files, because in
# other files they may be intended. Numbers stay numbers, also negative ones.


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def escape_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def formula_safe_csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as one protected CSV text. None becomes an empty cell."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([escape_formula(cell) for cell in row] for row in rows)
    return buffer.getvalue()
