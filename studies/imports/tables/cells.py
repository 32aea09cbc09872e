"""What importers share: rows of a table as records, and the cells that mean the same in every file."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from studies.stimuli.rows import Row, Rows, TableProblems
from studies.stimuli.texts import TextRefused, clean_name, clean_text

MAX_NUMBER = 32_767
MAX_LISTED_IGNORED = 50


class CellRefused(Exception):
    """A row, or one cell of it, that cannot be taken."""

    def __init__(self, column: str | None, text: str):
        super().__init__(text)
        self.column, self.text = column, text


@dataclass(frozen=True)
class ColumnLayout:
    """Which column of a row holds what. ``cells``: our name of a column and the file's; ``problem``: why the columns cannot be read."""

    cells: Mapping[str, str]
    ignored: tuple[str, ...]
    problem: str = ""


class RecordReader:
    """The rows of a table as records; a row with a problem is left out and its problem noted."""

    def __init__(self, rows: Rows, problems: TableProblems):
        self.rows, self.problems = rows, problems
        self.count = 0
        self.ignored: dict[str, None] = {}

    def layout(self, columns: tuple[str, ...]) -> ColumnLayout:
        raise NotImplementedError

    def record(self, row: Row, layout: Any) -> Any:
        """The row as a record; None where a problem was noted."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            self.count += 1
            layout = self.layout(tuple(row.values))
            if layout.problem:
                self.problems.add(row.number, None, layout.problem)
                if self.count == 1:  # a header: the rows below it have the same fault
                    return
                continue
            if layout.ignored and len(self.ignored) < MAX_LISTED_IGNORED:
                self.ignored |= dict.fromkeys(layout.ignored)
            record = self.record(row, layout)
            if record is not None:
                yield record

    def read_or_note(self, row: Row, read: Callable[[], Any]) -> Any:
        """What ``read`` gives; None where it refuses, which is noted as a problem of the row."""
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
    """A name or key; '' where there is none. An integer of JSON is the name that its digits make."""
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


def parse_number_cell(value: Any, column: str | None) -> int | None:
    """A whole number that the database can keep; None where there is none."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value.strip(), re.ASCII):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_NUMBER:
        raise CellRefused(column, f"must be a whole number from 0 to {MAX_NUMBER:,}, not {value!r:.40}.")
    return value
