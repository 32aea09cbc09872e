"""Code that all importers share: rows of a table as records, and parsers of common cells."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from studies.stimuli.rows import Row, Rows, TableProblems
from studies.stimuli.texts import TextRefused, clean_name, clean_text

MAX_NUMBER = 32_767
MAX_LISTED_IGNORED = 50


class CellRefused(Exception):
    """A row, or one cell of it, that cannot be imported."""

    def __init__(self, column: str | None, text: str):
        super().__init__(text)
        self.column, self.text = column, text


@dataclass(frozen=True)
class ColumnLayout:
    """The meaning of a row's columns. ``cells`` maps our name of a column to the file's. ``problem`` says why they cannot be read."""

    cells: Mapping[str, str]
    ignored: tuple[str, ...]
    problem: str = ""


class RecordReader:
    """Read the rows of a table as records. Skip a row with a problem, and note the problem."""

    def __init__(self, rows: Rows, problems: TableProblems):
        self.rows, self.problems = rows, problems
        self.count = 0
        self.ignored: dict[str, None] = {}

    def parse_layout(self, columns: tuple[str, ...]) -> ColumnLayout:
        raise NotImplementedError

    def parse_row(self, row: Row, layout: Any) -> Any:
        """Return the row as a record, or None if it has a problem, which is noted."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            self.count += 1
            layout = self.parse_layout(tuple(row.values))
            if layout.problem:
                self.problems.add(row.number, None, layout.problem)
                if self.count == 1:  # the header's fault: all rows below it have it too
                    return
                continue
            if layout.ignored and len(self.ignored) < MAX_LISTED_IGNORED:
                self.ignored |= dict.fromkeys(layout.ignored)
            record = self.parse_row(row, layout)
            if record is not None:
                yield record

    def read_or_add_problem(self, row: Row, read: Callable[[], Any]) -> Any:
        """Return the result of ``read``, or None if it refuses. Then note a problem of the row."""
        try:
            return read()
        except CellRefused as refused:
            self.problems.add(row.number, refused.column, refused.text)
            return None


def parse_text_cell(value: Any, column: str | None, max_length: int | None = None) -> str:
    if value is None:
        return ""
    try:
        return clean_text(value, max_length=max_length)
    except TextRefused as refused:
        raise CellRefused(column, _without_field(refused)) from None


def parse_name_cell(value: Any, column: str | None, max_length: int) -> str:
    """Return a name or key, or '' if the cell is empty. A JSON integer becomes the text of its digits."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    try:
        return clean_name(value, max_length=max_length, field="text")
    except TextRefused as refused:
        raise CellRefused(column, _without_field(refused)) from None


def _without_field(refused: TextRefused) -> str:
    return str(refused).removeprefix("text: ")


def parse_non_negative_integer_cell(value: Any, column: str | None) -> int | None:
    """Return a whole number that the database can store, or None if the cell is empty."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value.strip(), re.ASCII):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_NUMBER:
        raise CellRefused(column, f"must be a whole number from 0 to {MAX_NUMBER:,}, not {value!r:.40}.")
    return value
