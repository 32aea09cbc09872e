"""How a text file separates and quotes its cells: found out from the file, because programs do it in many ways."""

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from .lines import LineReader, UnreadableFile
from .numbers import is_number

DELIMITERS = (",", ";", "\t", "|")
# The characters of a file that decide how its quotes are meant. Files that people make are shorter.
LOOKAHEAD = 8_000_000


def find_delimiter(head: str, below: Sequence[str] = ()) -> str:
    """Return the delimiter that occurs most in the header outside quotes. A tie goes to the first one of `DELIMITERS`.

    A header without any may be a title: then the lines below it decide, if they have one in equal number.
    """
    if not any(mark in head for mark in DELIMITERS):
        counts = {mark: {_outside_of_quotes(line).count(mark) for line in below[:2]} for mark in DELIMITERS}
        return next((mark for mark, found in counts.items() if len(found) == 1 and min(found) > 1), DELIMITERS[0])
    return max(DELIMITERS, key=_outside_of_quotes(head).count)


def _outside_of_quotes(text: str) -> str:
    return re.sub(r'"[^"]*+"', "", text)


def look_ahead(lines: LineReader) -> tuple[list[str], Iterator[str]]:
    """Return the next lines, so many that they show how the file uses quotes, and an iterator of these and all others."""
    found: list[str] = []
    size, end = 0, None
    try:
        for line in lines:
            lines.record_characters = 0
            found.append(line)
            size += len(line)
            if size > min(LOOKAHEAD, lines.max_characters):
                break
    except UnreadableFile as refused:
        end = refused
    return found, chain(found, _raised(end), lines)


def _raised(end: UnreadableFile | None) -> Iterator[str]:
    if end is not None:
        raise end
    yield from ()


def csv_options(delimiter: str, head: Sequence[str], ahead: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return the options of `csv.reader` for a file, and a note if it is not written in the usual way."""
    options: dict[str, Any] = {"delimiter": delimiter, "quotechar": '"', "doublequote": True}
    # Some people write a blank after each comma, which would hide a quote after it.
    options["skipinitialspace"] = _n(head, delimiter) == _n(head, f"{delimiter} ") > 0
    if delimiter == "\t" and not are_cells_quoted([*head, *ahead]):
        note = "Quotes in this tab-separated file do not enclose cells. They were read as characters of the text."
        return options | {"quoting": csv.QUOTE_NONE}, note
    escaped = options | {"doublequote": False, "escapechar": "\\"}
    if any('\\"' in line for line in ahead) and not _reads(ahead, options) and _reads(ahead, escaped):
        return escaped, "Quotes inside of cells have a backslash before them. It was left out."
    return options, ""


def _n(head: Sequence[str], text: str) -> int:
    return sum(line.count(text) for line in head)


def _reads(lines: Sequence[str], options: dict[str, Any]) -> bool:
    """Return whether all records of the lines have the same number of cells. The last one may be cut off by the end of the look."""
    widths = set()
    try:
        for cells in csv.reader(lines, strict=True, **options):
            widths.add(len(cells))
    except csv.Error as error:
        return "unexpected end of data" in str(error) and sum(map(len, lines)) > LOOKAHEAD and len(widths) == 1
    return len(widths - {0}) == 1


_WHOLE_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def are_cells_quoted(lines: Sequence[str]) -> bool:
    """Return whether quotes in a tab-separated file enclose cells, or are characters of the texts.

    Spreadsheets quote a cell only if it contains a tab, a quote or a line break, and some programs quote every text. Corpora are
    written without any quoting, so that a text may begin with a quote. If each line has all cells as it is, quotes enclose cells only
    if each quoted cell needs its quotes, or if all texts have them.
    """
    cells = [line.rstrip("\r\n").split("\t") for line in lines if line.strip()]
    begun = [cell for row in cells for cell in row if cell.startswith('"')]
    if not begun:
        return True
    if any(len(row) != len(cells[0]) for row in cells):
        # A cell in quotes may have line breaks and tabs: then the quoted reading alone has the same number of cells everywhere.
        try:
            widths = {len(row) for row in csv.reader(lines, delimiter="\t", strict=True) if any(map(str.strip, row))}
        except csv.Error:
            return False
        return len(widths) == 1
    if not all(_WHOLE_QUOTED.fullmatch(cell) for cell in begun):
        return False
    if all('""' in cell[1:-1] for cell in begun):
        return True
    return all(cell.startswith('"') or not cell.strip() or is_number(cell) for row in cells for cell in row)
