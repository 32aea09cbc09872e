"""Outputs as one table to be uploaded: from files, rows or data frames, of one system or of several."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from .calls import WrongUse

# A file, the content of one, rows, or a data frame.
Table: TypeAlias = str | Path | bytes | Sequence[Mapping[str, Any]] | Any
Outputs: TypeAlias = Table | Mapping[str, Table]


def read_file(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise WrongUse(f"{path} cannot be read: {error.strerror}. Name another file.") from None


def read_json_file(path: str | Path) -> Any:
    return parse_json(read_file(path), str(path))


def parse_json(content: bytes, name: str) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise WrongUse(f"{name} is not JSON: {error}. Correct it.") from None


def as_upload(outputs: Outputs) -> tuple[str, bytes]:
    """Return the name and the content of the table. ``outputs``: a table, or one for each system by its name. Raise WrongUse."""
    if isinstance(outputs, Mapping):
        rows = [{**row, "system": name} for name, table in outputs.items() for row in _rows(table, name)]
        return "outputs.jsonl", _as_json_lines(rows)
    if isinstance(outputs, bytes):
        return f"outputs.{'jsonl' if _is_json(outputs) else 'csv'}", outputs
    if isinstance(outputs, str | Path):
        return Path(outputs).name, read_file(outputs)
    return "outputs.jsonl", _as_json_lines(_rows(outputs, "outputs"))


def _as_json_lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    try:
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    except TypeError as error:
        raise WrongUse(f"A row has a value that JSON cannot hold: {error}. Convert it to a text or a number.") from None


def _is_json(content: bytes) -> bool:
    return content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def _rows(table: Table, name: str) -> Sequence[Mapping[str, Any]]:
    if isinstance(table, str | Path):
        return _rows_of_file(read_file(table), str(table))
    if isinstance(table, bytes):
        return _rows_of_file(table, name)
    if hasattr(table, "to_dicts"):  # polars
        return list(table.to_dicts())
    if hasattr(table, "to_json"):  # pandas, whose missing values become null
        return list(json.loads(table.to_json(orient="records")))
    rows = list(table)
    if wrong := [n for n, row in enumerate(rows, 1) if not isinstance(row, Mapping)]:
        raise WrongUse(f"{name}, row {wrong[0]}: this is not a dict. Give each output with its prompt.")
    return rows


def _rows_of_file(content: bytes, name: str) -> list[Mapping[str, Any]]:
    if content[:4] == b"PK\x03\x04":
        raise WrongUse(f"{name} is a zip or a workbook, which has the outputs of all systems. Give it alone.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise WrongUse(f"{name} is not UTF-8. Save it as UTF-8.") from None
    found: Iterable[Mapping[str, Any]] = (
        _json_rows(text, name) if _is_json(content) else csv.DictReader(io.StringIO(text))
    )
    if not (rows := list(found)):
        raise WrongUse(f"{name} has no rows. Give JSON lines or a CSV file with a prompt and an output in each row.")
    return rows


def _json_rows(text: str, name: str) -> Iterator[Mapping[str, Any]]:
    is_list = text.lstrip().startswith("[")
    for n, part in enumerate([text] if is_list else text.split("\n"), 1):
        if not part.strip():
            continue
        try:
            found = json.loads(part)
        except ValueError as error:
            raise WrongUse(f"{name}, line {n}: this is not JSON: {error}. Correct it.") from None
        for row in found if is_list else [found]:
            if not isinstance(row, dict):
                raise WrongUse(f"{name}, line {n}: this is not an object. Give each output with its prompt.")
            yield row
