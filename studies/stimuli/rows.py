"""Read tables strictly: CSV, TSV, JSON, workbooks and Parquet, also packed (`images.read_zip` reads a zip of a table with images).

What a file is, its content says; the name decides only where the content leaves it open. Every cell of a CSV stays text ("NA",
"None", "007"): nothing is guessed, shifted or filled. A fault is refused with its row and column. Text files are streamed: memory
grows with the longest record, not with the file.

Rows have the numbers that a spreadsheet shows (the header is row 1, a cell with line breaks is one row). In JSON lines they
are the lines of the file, in other JSON the numbers of the objects.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from . import texts
from .columns import SEEN_ROWS, Columns, renamed_note
from .containers import PARQUET_EXTENSION, WORKBOOK_EXTENSIONS, numbered, unpack
from .dialects import csv_options, find_delimiter, look_ahead
from .lines import BinaryReader, LineReader, UnreadableFile
from .numbers import is_whole_number
from .texts import name_key

MAX_LISTED_PROBLEMS = 100
CSV_EXTENSIONS = (".csv", ".tsv", ".txt")
LINES_EXTENSIONS = (".jsonl", ".ndjson")
JSON_EXTENSIONS = (*LINES_EXTENSIONS, ".json")
PACKED_EXTENSIONS = (".gz", ".zip")
EXTENSIONS = (*CSV_EXTENSIONS, *JSON_EXTENSIONS, *WORKBOOK_EXTENSIONS, PARQUET_EXTENSION, *PACKED_EXTENSIONS)
# For the field of a form in which a person chooses a table.
ACCEPTED = ",".join(EXTENSIONS)
# A JSON object with a list inside is read at once.
MOST_WRAPPED_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class TableLimits:
    """The limits of one file. Exceeding one is a problem that names the limit."""

    bytes: int = 500 * 1024 * 1024
    rows: int = 5_000_000
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
    sheets: tuple[str, ...] = ()  # of a workbook, if a person must choose one

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


class Row(NamedTuple):
    """One record: texts by column, or JSON values in JSON lines."""

    number: int
    values: Mapping[str, Any]


@dataclass
class Rows:
    """A table that is being read. Rows with a problem are skipped. `problems` is complete after the last row."""

    columns: tuple[str, ...]
    rows: Iterator[Row]
    problems: TableProblems
    is_json: bool = False
    # How the file was read, where a reader could have read it in another way, and what was left out.
    notes: list[str] = field(default_factory=list)
    # What a survey program says below the header about each column.
    labels: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Row]:
        return self.rows


# Returns the rows of a JSON file that is one object, or None.
ObjectReader = Callable[[Mapping[str, Any]], list[dict[str, Any]] | None]


def read_rows(
    filename: str,
    source: bytes | BinaryReader,
    *,
    columns: Columns | None = None,
    limits: TableLimits | None = None,
    problems: TableProblems | None = None,
    may_be_empty: bool = False,
    open_object: ObjectReader | None = None,
    sheet: str = "",
) -> Rows:
    """Return the table of a file. Faults of the file never raise: they are in `problems`.

    A table without a required column of `columns` has no rows; a JSON object without one is a problem of its row. `may_be_empty`: a
    table without rows is no problem, such as the export of a panel before anybody came.
    `open_object`: returns the rows of a JSON file that is one object of a known form, or None. `sheet`: that of a workbook with several.
    """
    problems = TableProblems() if problems is None else problems
    limits = limits or TableLimits()
    header = _Header(columns or Columns(), limits, problems, may_be_empty)
    try:
        if _extension(filename) not in EXTENSIONS:
            raise UnreadableFile(
                None, f"“{filename}” is not a table. Use one of these file types: {', '.join(EXTENSIONS)}."
            )
        stream = BytesIO(source) if isinstance(source, bytes | bytearray) else source
        inner, content = unpack(filename, stream, limits.bytes, sheet)
        if isinstance(content, list):
            return _records_below(header, numbered(content), [])
        if isinstance(content, Iterator):
            return rows_of_objects(enumerate(content, 1), header.columns, limits, problems)
        lines = LineReader(content, limits.bytes, limits.row_characters)
        if _is_json(_extension(inner), lines.beginning):
            is_lines = _extension(inner) in LINES_EXTENSIONS
            objects = _json_objects(lines, header.columns, limits, open_object, is_lines=is_lines)
            return rows_of_objects(objects, header.columns, limits, problems, lines.beginning)
        return _csv_rows(lines, header, "\t" if _extension(inner) == ".tsv" else "")
    except UnreadableFile as end:
        problems.add(end.row, None, end.text)
        problems.sheets = getattr(end, "sheets", ())
        return Rows((), iter(()), problems)


def text_of_table(filename: str, data: bytes, max_bytes: int) -> str:
    """Return the text of a small table in any file that `read_rows` reads, a workbook as CSV. Raise UnreadableFile.

    It is for readers that also take what a person pastes.
    """
    _, content = unpack(filename, BytesIO(data), max_bytes)
    if isinstance(content, list):
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(content)
        return buffer.getvalue()
    if isinstance(content, Iterator):
        return "".join(f"{json.dumps(record)}\n" for record in content)
    return "".join(LineReader(content, max_bytes, max_bytes))


def _extension(filename: str) -> str:
    return PurePosixPath(filename.replace("\\", "/")).suffix.lower()


def _is_json(extension: str, beginning: str) -> bool:
    """Return whether a file holds JSON. No header of a CSV begins like an object or a list of objects."""
    return extension in JSON_EXTENSIONS or bool(_JSON_START.match(beginning))


_JSON_START = re.compile(r'\s*(?:\[\s*)?\{\s*"')


# CSV


@dataclass(frozen=True)
class _Header:
    """What the header of a table must have, and where its faults go."""

    columns: Columns
    limits: TableLimits
    problems: TableProblems
    may_be_empty: bool = False


def _csv_rows(lines: LineReader, header: _Header, delimiter: str) -> Rows:
    # The csv module's limit applies to the whole process, so only raise it. Our own limit is checked separately.
    csv.field_size_limit(max(csv.field_size_limit(), header.limits.row_characters + 1))
    head = _head(lines)
    # Excel writes the delimiter above the header, and shows no row for this line.
    if head and (named := re.fullmatch(r"\ufeff?\"?sep=(.)\"?\r?\n?", head[0], re.IGNORECASE)):
        delimiter, head = named[1], _head(lines)
    ahead, rest = look_ahead(lines)
    delimiter = delimiter or find_delimiter("".join(head), ahead)
    options, note = csv_options(delimiter, head, ahead)
    reader = csv.reader(chain(head, rest), strict=True, **options)
    notes = [note] if note else []
    return _records_below(header, _records(reader, lines), notes, lines)


def _records_below(
    header: _Header, records: Iterator[tuple[int, list[str]]], notes: list[str], lines: LineReader | None = None
) -> Rows:
    """Return the table of the records, of which the first one is the header."""
    problems = header.problems
    first = next(records, None)
    if first is None:
        raise UnreadableFile(None, "The file has only blank lines.")
    following = list(islice(records, SEEN_ROWS if header.columns.contents else 2))
    _check_is_header(first, following)
    before = problems.count
    columns = _columns(first[1], header.columns, header.limits, problems, first[0])
    renamed = header.columns.recognise(columns, [dict(zip(columns, cells, strict=False)) for _, cells in following])
    columns = tuple(renamed.get(column, column) for column in columns)
    if refusal := header.columns.problem_of(columns, renamed):
        problems.add(first[0], None, refusal)
        return Rows((), iter(()), problems, notes=notes)
    if renamed:
        notes.append(renamed_note(renamed))
    missing = [name for name in header.columns.required if name not in columns]
    if missing:
        column_names = ", ".join(name for name in columns if name) or "none"
        problems.add(first[0], None, f"no column {' or '.join(missing)}; the columns found are: {column_names[:500]}.")
    if problems.count > before:
        return Rows((), iter(()), problems, notes=notes)
    # The exports of one survey program have the questions in row 2, and its own ids in row 3.
    labels: dict[str, str] = {}
    if len(following) > 1 and _IMPORT_ID.match("".join(following[1][1])):
        notes.append("Rows 2 and 3 name the questions of a survey, and were left out.")
        labels = dict(zip(columns, following[0][1], strict=False))
        following = following[2:]
    checked = _checked_records(chain(following, records), first[1], columns, lines, header)
    if not all(columns):
        notes.append("A column without a name has only row numbers or is empty. It was left out.")
        checked = (Row(row.number, {name: cell for name, cell in row.values.items() if name}) for row in checked)
    return Rows(tuple(filter(None, columns)), checked, problems, notes=notes, labels=labels)


_IMPORT_ID = re.compile(r'\s*\{"ImportId":')


def _check_is_header(first: tuple[int, list[str]], following: Sequence[tuple[int, list[str]]]) -> None:
    """Refuse a title above the header: a row of one cell above rows of several."""
    filled = [cell for cell in first[1] if cell.strip()]
    if len(filled) == 1 and following and len(following[0][1]) > 1 and any(map(str.strip, following[0][1][1:])):
        raise UnreadableFile(
            first[0],
            f"has one cell, “{filled[0].strip()[:40]}”, and row {following[0][0]} has {len(following[0][1])}. "
            "Remove the lines above the header, or put texts that contain the delimiter in quotes.",
        )


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


def _is_nameless(cell: str) -> bool:
    """Return whether a column has no name of its own: pandas writes the numbers of rows in one, and names it when it reads it again."""
    return not name_key(cell) or bool(_UNNAMED.fullmatch(cell.strip()))


_UNNAMED = re.compile(r"Unnamed: ?[0-9]+(?:_level_[0-9]+)?")


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
    cells: list[str], known: Columns, limits: TableLimits, problems: TableProblems, row: int
) -> tuple[str, ...]:
    if len(cells) > limits.columns:
        raise UnreadableFile(row, f"the header has {len(cells):,} columns. At most {limits.columns:,} are allowed.")
    columns: list[str] = []
    places: dict[str, int] = {}
    for number, (cell, name) in enumerate(zip(cells, known.resolve(tuple(cells)), strict=True), 1):
        if _is_nameless(cell):
            columns.append("")
            continue
        if "\0" in cell:
            problems.add(row, None, f"the name of column {number} contains a NUL character.")
        elif (place := places.setdefault(name_key(name), number)) != number:
            problems.add(
                row,
                cell.strip(),
                f"columns {place} and {number} have the same name or mean the same. Rename one of them.",
            )
        columns.append(name if "\0" not in cell else "")
    return tuple(columns)


def _checked_records(
    records: Iterator[tuple[int, list[str]]],
    written: list[str],
    columns: tuple[str, ...],
    lines: LineReader | None,
    header: _Header,
) -> Iterator[Row]:
    limits, problems = header.limits, header.problems
    nameless = [place for place, name in enumerate(columns) if not name]
    read = 0
    try:
        for number, cells in records:
            read += 1
            if read > limits.rows:
                raise UnreadableFile(number, f"the file has more than {limits.rows:,} rows.")
            has_nul = lines is None or lines.has_nul
            if len(cells) != len(columns):
                problems.add(number, None, _ragged(len(cells), len(columns)))
            elif len(cells) > 1 and cells == written:
                problems.add(number, None, "repeats the header. Remove this row.")
            elif named := [place for place in nameless if not _may_be_nameless(cells[place], place)]:
                found = cells[named[0]].strip()[:40]
                problems.add(
                    number,
                    None,
                    f"column {named[0] + 1} has no name in the header, and “{found}” in this row. Name the column, or remove an extra delimiter.",
                )
            elif _cells_are_sound(cells, number, columns, has_nul, limits, problems):
                yield Row(number, dict(zip(columns, cells, strict=True)))
    except UnreadableFile as end:
        problems.add(end.row, None, end.text)
    else:
        if not read and not header.may_be_empty:
            problems.add(None, None, "The file has no row below the header.")


def _may_be_nameless(cell: str, place: int) -> bool:
    return not cell.strip() or (place == 0 and bool(re.fullmatch(r"[0-9]+", cell, re.ASCII)))


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


# JSON


class _BadLine(ValueError):
    """A line that is not a valid row. The message says why."""


def rows_of_objects(
    objects: Iterator[tuple[int, str | dict[str, Any]]],
    columns: Columns,
    limits: TableLimits,
    problems: TableProblems,
    beginning: str = "",
) -> Rows:
    """Return the table of objects, each with its row. ``beginning`` is that of their file."""
    if is_bundle(beginning):
        raise UnreadableFile(
            None,
            "This is a bundle of a whole study. Choose “New study from a bundle” on the studies page, or run: heval import new FILE",
        )
    rows = _json_records(objects, columns, limits, problems)
    first = list(islice(rows, SEEN_ROWS if columns.contents else 1))
    if not first:
        return Rows((), iter(()), problems)
    rows = chain(first, rows)
    renamed = columns.recognise(tuple(first[0].values), [row.values for row in first])
    if renamed:
        rows = (Row(row.number, {renamed.get(name, name): value for name, value in row.values.items()}) for row in rows)
    names = tuple(renamed.get(name, name) for name in first[0].values)
    if refusal := columns.problem_of({*names, *chain(*(row.values for row in first))}, renamed):
        problems.add(None, None, refusal)
        return Rows((), iter(()), problems, is_json=True)
    checked = _with_required(rows, columns.required, problems)
    return Rows(names, checked, problems, is_json=True, notes=[renamed_note(renamed)] if renamed else [])


def _with_required(rows: Iterator[Row], required: Collection[str], problems: TableProblems) -> Iterator[Row]:
    for row in rows:
        missing = [name for name in required if name not in row.values]
        for name in missing:
            problems.add(row.number, name, "is missing.")
        if not missing:
            yield row


def _json_objects(
    lines: LineReader,
    columns: Columns,
    limits: TableLimits,
    open_object: ObjectReader | None,
    *,
    is_lines: bool,
) -> Iterator[tuple[int, str | dict[str, Any]]]:
    """Return the objects of a file, each as its text or its value, with its row. ``is_lines``: an object on one line is a row."""
    start = lines.beginning.lstrip()
    if start.startswith("["):
        return enumerate(json_elements(lines.chunks(), limits.row_characters, is_list=True), 1)
    first_line = start.partition("\n")[0].strip()
    if start.startswith("{") and (not _is_object(first_line) or (start.strip() == first_line and not is_lines)):
        return _unwrapped(lines, columns, limits, open_object)
    return _lines_with_content(lines)


def _is_object(line: str) -> bool:
    try:
        return isinstance(texts.loads(line), dict)
    except texts.BadJson as fault:
        # An object with a fault in it is a line all the same; the fault is a problem of its row.
        return not fault.is_cut_off


def _lines_with_content(lines: LineReader) -> Iterator[tuple[int, str | dict[str, Any]]]:
    for line in lines:
        lines.record_characters = 0
        if not line.isspace():
            # Programs that write a list by hand leave a comma after each object.
            yield lines.number, line.rstrip().removesuffix(",") if line.rstrip().endswith("},") else line


def _unwrapped(
    lines: LineReader, columns: Columns, limits: TableLimits, open_object: ObjectReader | None
) -> Iterator[tuple[int, str | dict[str, Any]]]:
    """Return the objects of a file whose objects have several lines; or those of the only list of objects inside of the only object."""
    elements = json_elements(lines.chunks(), MOST_WRAPPED_BYTES, is_list=False)
    first, second = next(elements, None), next(elements, None)
    if first is None:
        return
    if second is None:
        if open_object and (known := open_object(_leniently(first))) is not None:
            yield from enumerate(known, 1)
            return
        try:
            value = texts.loads(first)
        except texts.BadJson:
            value = {}
        if (rows := rows_by_columns(value, columns.knows)) is not None:
            yield from enumerate(rows, 1)
            return
        lists = {
            key: inner
            for key, inner in value.items()
            if isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner)
        }
        if lists and not any(columns.knows(key) for key in value):
            if len(lists) > 1:
                found = ", ".join(f"“{key[:40]}”" for key in list(lists)[:5])
                raise UnreadableFile(
                    None, f"The file has several lists of objects: {found}. Send a file for each of them."
                )
            yield from enumerate(next(iter(lists.values())), 1)
            return
    for number, text in enumerate((text for text in chain([first, second], elements) if text is not None), 1):
        if len(text) > limits.row_characters:
            raise UnreadableFile(
                number, f"has more than {limits.row_characters:,} characters. Shorten it, or split it."
            )
        yield number, text


def rows_by_columns(
    value: Mapping[str, Any], is_column: Callable[[str], bool] = lambda name: False
) -> list[dict[str, Any]] | None:
    """Return the rows of an object that pandas or another program wrote by columns or by keys, or None if it is not one.

    ``is_column``: whether a name is that of a column, and not the key of a prompt.

    >>> rows_by_columns({"a": ["x", "y"], "b": [1, 2]})
    [{'a': 'x', 'b': 1}, {'a': 'y', 'b': 2}]
    >>> rows_by_columns({"a": {"0": "x", "1": "y"}, "b": {"0": 1, "1": 2}}) == rows_by_columns({"a": ["x", "y"], "b": [1, 2]})
    True
    >>> rows_by_columns({"p1": {"prompt": "Why?"}, "p2": {"prompt": "How?"}})
    [{'id': 'p1', 'prompt': 'Why?'}, {'id': 'p2', 'prompt': 'How?'}]
    """
    parts = list(value.values())
    if set(value) >= {"columns", "data"} and isinstance(value["data"], list) and isinstance(value["columns"], list):
        return [dict(zip(value["columns"], row, strict=False)) for row in value["data"] if isinstance(row, list)]
    if len(parts) > 1 and all(isinstance(part, list) for part in parts):
        is_table = len({len(part) for part in parts}) == 1 and not any(isinstance(one, dict) for one in chain(*parts))
        return [dict(zip(value, row, strict=True)) for row in zip(*parts, strict=True)] if is_table else None
    if len(parts) < 2 or not all(isinstance(part, dict) and part for part in parts):
        return None
    if all(key.isdecimal() for part in parts for key in part):
        keys = dict.fromkeys(key for part in parts for key in part)
        return [{column: part[key] for column, part in value.items() if key in part} for key in keys]
    return None if any(map(is_column, value)) else [{"id": key, **part} for key, part in value.items()]


def _leniently(text: str) -> Mapping[str, Any]:
    """Return an object of a known tool as it is. What is taken from it, is checked like any other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:(?P<closed>")|\\?\Z)|[\[\]{}]', re.DOTALL)


def json_elements(chunks: Iterable[str], most: int, *, is_list: bool) -> Iterator[str]:
    """Return the text of each element of a list, or of each value if the file has several, without reading the whole file.

    Only brackets and strings are looked at: what is inside of an element is checked by its parser. Raise UnreadableFile if
    the file ends inside of an element, or an element has more than ``most`` characters.
    """
    outer = 1 if is_list else 0
    buffer, position, begin, depth, n, is_closed = "", 0, -1, 0, 0, False
    waiting, kept = "", 0

    def check_between(text: str, mark: str) -> None:
        found = text.strip()
        if is_closed:
            raise UnreadableFile(None, f"The file has “{mark[:40]}” after its last row. Remove it.")
        if found == ("," if is_list and n and mark not in "]}" else ""):
            return
        if found in ("", ","):
            raise UnreadableFile(
                n + 1, f"a comma before this row is missing, or one too many is after row {n}. Correct it."
            )
        raise UnreadableFile(n + 1, f"is not an object, but “{found.strip(' ,')[:40]}”. Write each row as an object.")

    for chunk in chain(chunks, [""]):
        waiting += chunk
        rest = len(buffer) - kept
        # A value that is not complete is searched again from its start. That waits until it has doubled, or a long one would take hours.
        if chunk and len(waiting) < rest and (begin < 0 or rest + len(waiting) <= most):
            continue
        buffer, waiting, position, begin = buffer[kept:] + waiting, "", position - kept, begin if begin < 0 else 0
        while token := _TOKEN.search(buffer, position):
            mark = token[0]
            if mark[0] == '"' and token["closed"] is None:
                break
            if begin < 0 and not (is_list and depth == 0):
                check_between(buffer[position : token.start()], mark)
            if mark in ("{", "["):
                depth += 1
                if depth == outer + 1:
                    begin = token.start()
            elif mark in ("}", "]"):
                depth -= 1
                if depth == outer and begin >= 0:
                    n += 1
                    yield buffer[begin : token.end()]
                    begin = -1
                elif depth < outer:
                    is_closed = True
            elif depth == outer:
                raise UnreadableFile(n + 1, f"is the text {mark[:40]}, not an object. Write each row as an object.")
            position = token.end()
        kept = position if begin < 0 else begin
        if begin >= 0 and len(buffer) - begin > most:
            raise UnreadableFile(n + 1, f"has more than {most:,} characters; check for a bracket that is never closed.")
    if begin >= 0 or (is_list and not is_closed):
        raise UnreadableFile(n + 1, "the file ends inside of this row. It may be cut off: send it again.")
    if buffer[position:].strip():
        raise UnreadableFile(None, f"The file has “{buffer[position:].strip()[:40]}” after its last row. Remove it.")


def _json_records(
    objects: Iterator[tuple[int, str | dict[str, Any]]],
    columns: Columns,
    limits: TableLimits,
    problems: TableProblems,
) -> Iterator[Row]:
    read = 0
    try:
        for number, found in objects:
            read += 1
            if read > limits.rows:
                raise UnreadableFile(number, f"the file has more than {limits.rows:,} rows.")
            try:
                values = _json_values(found, columns, limits)
            except _BadLine as error:
                problems.add(number, None, str(error))
                continue
            if values.get("_end") is True and is_whole_number(values.get("rows")):
                _check_end(values["rows"], read - 1, objects, number, problems)
                return
            if _values_are_sound(values, number, limits, problems):
                yield Row(number, values)
    except UnreadableFile as end:
        problems.add(end.row, None, end.text)
    else:
        if not read:
            problems.add(None, None, "The file has only blank lines, or no object.")


def _check_end(counted: int, n: int, following: Iterator[Any], number: int, problems: TableProblems) -> None:
    """Compare the last line of a file that heval exported with the rows above it."""
    if counted != n:
        problems.add(
            number, None, f"counts {counted:,} rows, and {n:,} are above it: the file is not whole. Export it again."
        )
    if next(following, None) is not None:
        problems.add(number, None, "ends the export, and rows follow it. Send each export as a file of its own.")


# The beginning of a bundle's JSON. No row of a table contains it: quotes in a text would be escaped.
_BUNDLE_START = re.compile(r'\s*\{\s*(?:"schema"\s*:\s*"heval\.bundle/|"arms"\s*:\s*\[)')
_BUNDLE_SCHEMA = re.compile(r'"schema"\s*:\s*"heval\.bundle/')


def is_bundle(text_start: str) -> bool:
    """Return whether a file with this beginning is a study's bundle, on one line or several."""
    return bool(_BUNDLE_START.match(text_start)) or (
        text_start.lstrip().startswith("{") and bool(_BUNDLE_SCHEMA.search(text_start))
    )


def _json_values(found: str | dict[str, Any], columns: Columns, limits: TableLimits) -> dict[str, Any]:
    try:
        value = texts.loads(found) if isinstance(found, str) else found
    except texts.BadJson as error:
        raise _BadLine(str(error)) from None
    if not isinstance(value, dict):
        raise _BadLine("is not an object such as {“prompt”: ..., “text”: ...}.")
    if len(value) > limits.columns:
        raise _BadLine(f"has {len(value):,} keys. At most {limits.columns:,} are allowed.")
    return _named(value, columns)


def _named(value: dict[str, Any], columns: Columns) -> dict[str, Any]:
    values: dict[str, Any] = {}
    seen: dict[str, str] = {}
    for (key, content), name in zip(value.items(), columns.resolve(tuple(value)), strict=True):
        folded = name_key(name)
        if not folded:
            raise _BadLine("has a key without a name.")
        if folded in seen:
            raise _BadLine(
                f"has the keys “{seen[folded]}” and “{key}”, which differ only in case or blanks, or mean the same."
            )
        seen[folded] = key
        values[name] = content
    return values


def _values_are_sound(values: Mapping[str, Any], number: int, limits: TableLimits, problems: TableProblems) -> bool:
    before = problems.count
    for name, value in values.items():
        if isinstance(value, str) and len(value) > limits.cell_characters:
            problems.add(
                number, name, f"has {len(value):,} characters. At most {limits.cell_characters:,} are allowed."
            )
    return problems.count == before


# CSV that is safe to open in a spreadsheet: a text that would run as a formula gets an apostrophe before it.
#
# Only files for people are protected in this way. heval removes apostrophes only from its own exports, because in other files
# they may be intended. Numbers stay numbers, also negative ones.


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def escape_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def unescape_formula(cell: Any) -> Any:
    """Return a cell without the apostrophe of ``escape_formula``. Only for files that are known to be heval's own."""
    is_escaped = isinstance(cell, str) and cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS)
    return cell[1:] if is_escaped else cell


def formula_safe_csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as one protected CSV text. None becomes an empty cell."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([escape_formula(cell) for cell in row] for row in rows)
    return buffer.getvalue()
