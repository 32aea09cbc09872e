"""CSV that is safe to open in a spreadsheet: a text that would run as a formula gets an apostrophe in front.

Only files that people open are guarded. Nothing that heval reads takes the apostrophe away: a file that comes from somewhere
else may mean it. Numbers stay numbers, also negative ones.
"""

import csv
import io
from collections.abc import Iterable
from typing import Any

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def escape_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as one guarded CSV file; None is an empty cell."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([escape_formula(cell) for cell in row] for row in rows)
    return buffer.getvalue()
