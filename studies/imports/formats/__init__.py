"""Files of tools, each read by one class or module: it recognises its format by content, and gives flat rows.

A format has ``NAME``. ``is_file`` and ``rows_of_file`` are for a file that is one JSON object; ``is_row`` and ``rows_of_row`` are for a
row of a table or of JSON lines; ``answers_of_row`` gives the answers of people that a row holds. Flat rows have heval's names of
columns where the meaning is certain, and the tool's names elsewhere, so that a person can say what they are. Both functions of a
format give a prompt the same key, so that one file can bring texts and answers.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from studies.stimuli.lines import RowRefused, UnreadableFile
from studies.stimuli.rows import Row, Rows, TableProblems

from . import inspect_log
from .argilla import Argilla
from .conversations import AlpacaAnnotations, Chats, MtBench, Votes
from .doccano import Doccano
from .harnesses import EveryEvalEver, EveryEvalEverSummary, Helm, LmEval
from .label_studio import LabelStudio
from .potato import Potato
from .published import Appraise, Mqm, SummEval, WmtXml

# Gives a file of Appraise the header that it lacks.
headed = Appraise.headed

# What a reader meets where a part has another form than the tool documents.
OTHER_FORM = (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError)
FILE_FORMATS: tuple[Any, ...] = (inspect_log, Helm, EveryEvalEverSummary)
ROW_FORMATS: tuple[Any, ...] = (
    LmEval, MtBench, Mqm, Votes, AlpacaAnnotations, LabelStudio, Argilla, Potato, SummEval, EveryEvalEver, Appraise, Doccano, Chats,
)  # fmt: skip


def rows_of_object(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of a file that is one JSON object, or None if no tool is known to write it."""
    for tool in FILE_FORMATS:
        if tool.is_file(value):
            try:
                return list(tool.rows_of_file(value))
            except OTHER_FORM as error:
                raise UnreadableFile(
                    None, f"The file looks like {tool.NAME}, but a part of it has another form. Export it again."
                ) from error
    return None


def objects_of_file(filename: str, stream: BinaryIO, max_bytes: int) -> list[dict[str, Any]] | None:
    """Return the rows of a file that is no table, or None if no tool is known to write it. Raise UnreadableFile if it is damaged."""
    if PurePosixPath(filename).suffix.lower() == inspect_log.EXTENSION:
        return inspect_log.objects_of_archive(stream, max_bytes)
    start = stream.read(4096).removeprefix(b"\xef\xbb\xbf")
    stream.seek(0)
    return WmtXml.objects(stream, max_bytes) if WmtXml.START.match(start) else None


def flattened(rows: Rows) -> Rows:
    """Return the texts in rows of a known tool as flat rows, and all other rows as they are. A note names the tool."""
    tool, rows = _recognised(rows)
    return rows if tool is None else _read_as(tool, tool.rows_of_row, rows, {})


def flattened_answers(rows: Rows, questions: Mapping[str, str], mapping: Mapping[str, str]) -> Rows:
    """Return the answers in rows of a known tool as flat rows, and all other rows as they are.

    ``questions``: the kind of scale of each question of the study. ``mapping``: heval's names of columns with the file's; the
    columns that it names stay in the rows.
    """
    tool, rows = _recognised(rows)
    if tool is None:
        return rows
    if not hasattr(tool, "answers_of_row"):
        rows.problems.add(
            None, None, f"The file holds {tool.NAME}: texts, and no answers of people. Choose another file."
        )
        return Rows((), iter(()), rows.problems)
    return _read_as(tool, tool.answers_of_row, rows, {"questions": questions, "mapped": mapping})


def _recognised(rows: Rows) -> tuple[Any, Rows]:
    first = next(rows.rows, None)
    if first is None:
        return None, rows
    again = replace(rows, rows=chain([first], rows.rows))
    return next((one for one in ROW_FORMATS if one.is_row(first.values)), None), again


# Returns the flat rows of a row. The second argument keeps what the reader must know of the rows before.
RowReader = Callable[[Mapping[str, Any], dict[str, Any]], Iterator[dict[str, Any]]]


def _read_as(tool: Any, read: RowReader, rows: Rows, state: dict[str, Any]) -> Rows:
    notes = [*rows.notes, f"The file was read as {tool.NAME}."]
    flat = _flat(rows.rows, read, rows.problems, {"left_out": 0, "mapped": {}} | state, notes)
    first = next(flat, None)
    columns = tuple(first.values) if first else ()
    return Rows(columns, chain([first], flat) if first else flat, rows.problems, rows.is_json, notes)


def _flat(
    rows: Iterator[Row], read: RowReader, problems: TableProblems, state: dict[str, Any], notes: list[str]
) -> Iterator[Row]:
    n = 0
    mapped = state["mapped"]
    try:
        for row in rows:
            more = {name: row.values[name] for name in mapped.values() if name in row.values}
            try:
                flat = list(read(row.values, state))
            except RowRefused as refused:
                problems.add(row.number, refused.column, refused.text)
                continue
            except OTHER_FORM:
                problems.add(row.number, None, "has another form than the rows before. Export the file again.")
                continue
            for values in flat:
                n += 1
                yield Row(row.number, {name: cell for name, cell in values.items() if name not in mapped} | more)
    except UnreadableFile as refused:
        problems.add(refused.row, None, refused.text)
    if state["left_out"]:
        notes.append(f"{state['left_out']:,} parts of the file were left out.")
    if not (n or problems):
        problems.add(None, None, "The file has nothing of what heval reads from this tool. Choose another file.")
