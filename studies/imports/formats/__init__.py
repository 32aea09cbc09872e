"""Files of evaluation tools, each read by one module: it recognises its format by content, and gives flat rows.

A module has ``NAME``, and one or both of two pairs of functions. ``is_file`` and ``rows_of_file`` are for a file that is one JSON object;
``is_row`` and ``rows_of_row`` are for a row of a table or of JSON lines. Flat rows have heval's names of columns where the meaning is
certain, and the tool's names elsewhere, so that a person can say what they are.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from studies.stimuli.lines import UnreadableFile
from studies.stimuli.rows import Row, Rows, TableProblems

from . import chat, helm, inspect_log, lm_eval, mqm, mt_bench

# What a module meets where a part has another form than the tool documents.
OTHER_FORM = (AttributeError, IndexError, KeyError, TypeError, ValueError)
FILE_FORMATS = (inspect_log, helm)
ROW_FORMATS = (lm_eval, mt_bench, mqm, chat)


def rows_of_object(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of a file that is one JSON object, or None if no tool is known to write it."""
    for module in FILE_FORMATS:
        if module.is_file(value):
            try:
                return list(module.rows_of_file(value))
            except OTHER_FORM as error:
                raise UnreadableFile(
                    None, f"The file looks like {module.NAME}, but a part of it has another form. Export it again."
                ) from error
    return None


def flattened(rows: Rows) -> Rows:
    """Return rows of a known tool as flat rows, and all others as they are. A note names the tool."""
    first = next(rows.rows, None)
    if first is None:
        return rows
    again = chain([first], rows.rows)
    module = next((one for one in ROW_FORMATS if one.is_row(first.values)), None)
    if module is None:
        return Rows(rows.columns, again, rows.problems, rows.is_json, rows.notes)
    flat = _flat(again, module, rows.problems)
    first = next(flat, None)
    notes = [*rows.notes, f"The file was read as {module.NAME}."]
    columns = tuple(first.values) if first else ()
    return Rows(columns, chain([first], flat) if first else flat, rows.problems, rows.is_json, notes)


def _flat(rows: Iterator[Row], module: Any, problems: TableProblems) -> Iterator[Row]:
    state: dict[str, Any] = {}
    for row in rows:
        try:
            flat = list(module.rows_of_row(row.values, state))
        except OTHER_FORM:
            problems.add(row.number, None, "has another form than the rows before. Export the file again.")
            continue
        for values in flat:
            yield Row(row.number, values)
