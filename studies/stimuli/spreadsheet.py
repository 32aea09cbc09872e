"""CSV that is safe to open in a spreadsheet: a text that would run as a formula gets an apostrophe before it.

Only files for people are protected in this way. heval does not remove apostrophes when it reads files, because in other files
they may be intended. Numbers stay numbers, also negative ones.
"""

import csv
import io
from collections.abc import Iterable
from typing import Any

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def escape_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell


def formula_safe_csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as one protected CSV text. None becomes an empty cell."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([escape_formula(cell) for cell in row] for row in rows)
    return buffer.getvalue()
