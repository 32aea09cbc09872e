"""Export formats, which turn cells into bytes: CSV with or without a guard against formulas, and JSON lines."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from studies.stimuli.spreadsheet import escape_formula

from .flat_rows.columns import ANSWER_COLUMNS, Column

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


def _json_rest(rows: Iterable[tuple]) -> list[bytes]:
    return [
        (compact_json(dict(zip(ANSWER_NAMES, (*row[:-1], bool(row[-1])), strict=True)))[1:] + "\n").encode()
        for row in rows
    ]


JSONL = RowFormat(True, False, _json_cells, _json_rest, _AS_JSON)
CSV = RowFormat(False, True, _csv_cells(True), _csv_rest, _AS_CSV)
RAW_CSV = RowFormat(False, False, _csv_cells(False), _csv_rest, _AS_CSV)
