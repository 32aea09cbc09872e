"""The columns of a file of answers, and the parsing of its rows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from studies.imports.tables.cells import (
    CellRefused,
    ColumnLayout,
    RecordReader,
    parse_name_cell,
    parse_non_negative_integer_cell,
    parse_text_cell,
)
from studies.stimuli.rows import Row, Rows, TableProblems

from .study_index import natural_sort_key

COLUMN_ALIASES = {"prompt": "prompt_key", "key": "prompt_key", "pair": "prompt_key"}
COLUMNS = (
    "annotator", "arm", "section", "question", "prompt_key", "system", "sample", "value", "chosen", "choice", "text", "skip_reason",
    "part", "label", "position", "time",
)  # fmt: skip
# The system that was shown under each letter of the screen: shown:A, shown:B, …
SHOWN_COLUMN = re.compile(r"shown:([A-Z]{1,2})")
LABEL_PATTERN = re.compile(r"[A-Z]{1,4}")
ANSWER_COLUMNS = ("value", "chosen", "choice", "text", "skip_reason")
NAME_LIMITS = {"annotator": 200, "arm": 50, "question": 50, "prompt_key": 100, "system": 100, "chosen": 100, "choice": 50, "part": 50, "skip_reason": 50}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row of the file: an answer and what it is about.

    ``shown``: the (letter, system) pairs that the file contains.
    """

    row: int
    annotator: str
    arm: str = ""
    section: int | None = None
    question: str = ""
    prompt: str = ""
    system: str = ""
    sample: int = 0
    value: str = ""
    chosen: str = ""
    choice: str = ""
    text: str = ""
    skip_reason: str = ""
    part: str = ""
    label: str = ""
    position: int | None = None
    time: datetime | None = None
    has_utc_offset: bool = True
    shown: tuple[tuple[str, str], ...] = ()

    @property
    def answered_columns(self) -> tuple[str, ...]:
        """Return the answer columns that are not empty in this row."""
        return tuple(name for name in ANSWER_COLUMNS if getattr(self, name))

    @property
    def canonical_order(self) -> tuple[Any, ...]:
        """Return a sort key for the rows of one annotator. It depends on the row's number only if two rows answer the same."""
        return (
            -1 if self.section is None else self.section,
            self.question,
            natural_sort_key(self.prompt),
            self.prompt,
            sorted(system for _, system in self.shown),
            self.shown,
            self.system,
            self.sample,
            self.chosen,
            self.choice,
            self.part,
            self.row,
        )


@dataclass(frozen=True)
class AnswerLayout(ColumnLayout):
    places: tuple[tuple[str, str], ...] = ()  # letter, column


@lru_cache(maxsize=64)
def _read_layout(columns: tuple[str, ...], mapping: tuple[tuple[str, str], ...]) -> AnswerLayout:
    name_by_column = {column: name for name, column in mapping}
    cells: dict[str, str] = {}
    ignored, problem = [], ""
    for missing in [column for column in name_by_column if column not in columns]:
        problem = problem or f"the file has no column “{missing}”, which is declared as {name_by_column[missing]}."
    for column in columns:
        # A mapped column has only its mapped meaning. If one of heval's names is mapped, a column with that name is
        # ignored.
        own_name = name_by_column.get(column) or COLUMN_ALIASES.get(column, column)
        if column not in name_by_column and own_name in dict(mapping):
            ignored.append(column)
        elif own_name in COLUMNS or SHOWN_COLUMN.fullmatch(own_name):
            if own_name in cells:
                problem = problem or f"the columns “{cells[own_name]}” and “{column}” mean the same."
            cells[own_name] = column
        else:
            ignored.append(column)
    if "annotator" not in cells:
        column_list = ", ".join(columns)
        problem = problem or (
            f"no column annotator; the columns found are: {column_list[:500]}. If one of them names the annotator, write "
            f"under “Column mapping”: annotator = {columns[0][:50] if columns else 'worker'}."
        )
    if not problem and not any(name in cells for name in (*ANSWER_COLUMNS, "label")):
        problem = (
            f"no column holds an answer ({', '.join(ANSWER_COLUMNS)}); the columns found are: {', '.join(columns)[:500]}. If one of them "
            f"does, write under “Column mapping”: value = {columns[-1][:50]}."
        )
    places = sorted((name.partition(":")[2], column) for name, column in cells.items() if SHOWN_COLUMN.fullmatch(name))
    return AnswerLayout(cells, tuple(ignored), problem, tuple(places))


class AnswerReader(RecordReader):
    def __init__(self, rows: Rows, columns: Mapping[str, str], problems: TableProblems):
        super().__init__(rows, problems)
        self.mapping = tuple(sorted(columns.items()))

    def parse_layout(self, columns: tuple[str, ...]) -> AnswerLayout:
        return _read_layout(columns, self.mapping)

    def parse_row(self, row: Row, layout: AnswerLayout) -> AnswerRow | None:
        return self.read_or_add_problem(row, lambda: _parse_row(row, layout))


def _parse_row(row: Row, layout: AnswerLayout) -> AnswerRow:
    values, cells = row.values, layout.cells

    def cell(name: str) -> tuple[Any, str]:
        column = cells.get(name)
        return (values.get(column) if column else None), column or name

    names = {name: parse_name_cell(*cell(name), limit) for name, limit in NAME_LIMITS.items()}
    if not names["annotator"]:
        raise CellRefused(cells["annotator"], "must not be empty.")
    time, has_offset = _parse_time(*cell("time"))
    label = parse_name_cell(*cell("label"), 8)
    if label and not LABEL_PATTERN.fullmatch(label):
        raise CellRefused(cells["label"], f"must be a letter such as A or B, not “{label}”.")
    shown_systems = tuple(
        (letter, system)
        for letter, column in layout.places
        if (system := parse_name_cell(values.get(column), column, 100))
    )
    if len({system for _, system in shown_systems}) < len(shown_systems):
        raise CellRefused(layout.places[0][1], "the same system is in two of the shown: columns.")
    prompt = names.pop("prompt_key")
    return AnswerRow(
        row.number,
        prompt=prompt,
        section=parse_non_negative_integer_cell(*cell("section")),
        sample=parse_non_negative_integer_cell(*cell("sample")) or 0,
        value=_parse_value(*cell("value")),
        text=parse_text_cell(*cell("text")).strip(),
        label=label,
        position=parse_non_negative_integer_cell(*cell("position")),
        time=time,
        has_utc_offset=has_offset,
        shown=shown_systems,
        **names,
    )


def _parse_value(value: Any, column: str) -> str:
    """Return a number as a page would send it: 4.0 from a spreadsheet is 4."""
    if value is None or value == "":
        return ""
    written = str(value).strip() if not isinstance(value, bool) else ""
    try:
        number = Decimal(written)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or not written.isascii() or len(written) > 40 or abs(number) > 10**9:
        raise CellRefused(column, f"must be a number, not {value!r:.40}.")
    return str(int(number)) if number == number.to_integral_value() else str(number)


def _parse_time(value: Any, column: str) -> tuple[datetime | None, bool]:
    """Return the time in UTC, and whether the file gave its UTC offset."""
    if value is None or value == "":
        return None, True
    try:
        parsed = datetime.fromisoformat(value.strip()) if isinstance(value, str) and len(value) < 50 else None
        in_utc = parsed and (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        parsed = None
    if parsed is None or in_utc is None or in_utc.year < 1970:
        raise CellRefused(column, f"must be a time such as 2026-11-21T10:00:00Z, not {value!r:.40}.")
    if in_utc > datetime.now(UTC):
        raise CellRefused(column, f"must not be in the future: {value!r:.40}.")
    return in_utc, parsed.tzinfo is not None
