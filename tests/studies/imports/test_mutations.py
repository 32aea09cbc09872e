"""Files with random damage: they are read or refused with a reason, and nothing else is raised."""

import csv
import io
import itertools
import json
import random
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from studies.imports.formats import flattened_answers, headed
from studies.imports.tables.columns import KNOWN_COLUMNS
from studies.imports.tables.mapping import apply_mapping, look_at, propose_mapping
from studies.imports.tables.run import open_file
from studies.stimuli.rows import TableLimits, read_rows
from tests.studies.imports import datasets, judged, own, tools

ANSWERS = judged.ANSWERS | judged.MARKED
# The kinds of scale of the questions that the files answer.
KINDS = {"better": "output", "fits": "choice", "place": "number", "errors": "marks"}
BASES = tools.FILES | judged.TEXTS | datasets.TEXTS | judged.PROMPTS | judged.MARKED | own.FILES
PIECES = [
    b'"',
    b"\n",
    b"\r",
    b"\t",
    b",",
    b";",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"NaN",
    b"1e999",
    b"sep=;\n",
    "\u2028".encode(),
]


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes after one to four edits: something is cut, doubled, moved or put in."""
    for _ in range(chance.randint(1, 4)):
        a, b = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        match chance.randrange(5):
            case 0:
                data = data[:a]
            case 1:
                data = data[:a] + data[b:]
            case 2:
                data = data[:b] + data[a:b] + data[b:]
            case 3:
                data = data[:a] + chance.choice(PIECES) + data[a:]
            case _:
                data = data[:a] + bytes([chance.randrange(256)]) + data[a + 1 :]
        if not data:
            break
    return data


def read_texts(path: Path) -> tuple[int, int]:
    """(rows, problems) of a file, read and mapped as an import of texts does it."""
    with ExitStack() as stack:
        rows = open_file(path, path.name, "", stack)[1]
        looks, rows = look_at(rows)
        mapping = propose_mapping(looks) if looks else []
        rows = apply_mapping(rows, mapping) if mapping else rows
        found = list(rows)
        assert all(str(problem) for problem in rows.problems)
        return len(found), rows.problems.count


def read_answers(path: Path) -> tuple[int, int]:
    """(rows, problems) of a file, read as an import of answers does it."""
    with path.open("rb") as file:
        rows = flattened_answers(read_rows(path.name, headed(file)), KINDS, {})
        found = list(rows)
        assert all(str(problem) for problem in rows.problems)
        return len(found), rows.problems.count


def all_objects(text: str) -> list[list]:
    """The values of each object of a text, of those inside of others too."""
    found, decoder = [], json.JSONDecoder()
    for place in (place for place, mark in enumerate(text) if mark == "{"):
        with suppress(ValueError):
            found.append(list(decoder.raw_decode(text, place)[0].values()))
    return found


def plain_readings(data: bytes) -> list[dict[int, list]]:
    """The cells of each row, by number, as Python's csv module reads the file: in each dialect that a reader may choose."""
    text = data.decode("utf-8-sig", "replace")
    lines = list(io.StringIO(text, newline=""))
    readings = []
    ways = (
        {"quoting": csv.QUOTE_MINIMAL},
        {"quoting": csv.QUOTE_NONE},
        {"skipinitialspace": True},
        {"doublequote": False, "escapechar": "\\"},
    )
    for skipped, mark, way in itertools.product((0, 1), ",;\t|", ways):
        rows, reader = {}, csv.reader(lines[skipped:], delimiter=mark, **way)
        try:
            for number, cells in enumerate(reader, 1):
                rows[number] = cells
        except csv.Error:
            pass  # what is above the fault is read
        readings.append(rows)
    return readings


def is_within(cells: list, all_cells: list) -> bool:
    """Whether the cells are some of a row's cells, in their order. A column without a name is left out."""
    rest = iter(all_cells)
    return all(any(cell == other for other in rest) for cell in cells)


def check_contents(name: str, data: bytes) -> int:
    """Each row that is read has its own cells, and keeps them under heval's names of columns. Returns the number of rows."""
    found = read_rows(name, data, columns=KNOWN_COLUMNS, limits=TableLimits(bytes=10**7))
    rows = list(found)
    readings = [] if found.is_json else plain_readings(data)
    objects = all_objects(data.decode("utf-8-sig", "replace")) if found.is_json else []
    for row in rows:
        if found.is_json:
            assert list(row.values.values()) in objects, (row.number, dict(row.values))
            continue
        readings = [one for one in readings if is_within(list(row.values.values()), one.get(row.number, []))]
        assert readings, (row.number, dict(row.values))
    looks, again = look_at(read_rows(name, data, columns=KNOWN_COLUMNS, limits=TableLimits(bytes=10**7)))
    if looks and (mapping := propose_mapping(looks)):
        own = {row.number: list(row.values.values()) for row in rows}
        for row in apply_mapping(again, mapping):
            values = [value for column, value in row.values.items() if column != "prompt_key"]
            assert is_within(values, own[row.number]), (row.number, mapping)
    return len(rows)


def check(case: str, base, read, folder: Path, seeds: range) -> None:
    name, data = base[:2]
    path = folder / name
    read_any = refused = compared = 0
    for seed in seeds:
        changed = damaged(data, random.Random(f"{case} {seed}"))
        path.write_bytes(changed)
        if name.endswith((".csv", ".tsv", ".jsonl")):
            compared += check_contents(name, changed)
        n, n_problems = read(path)
        # Nothing is read and nothing is said: then the rows were lost in silence.
        assert n or n_problems, (case, seed)
        read_any += bool(n)
        refused += bool(n_problems)
    assert read_any and refused, "the damage is too small or too large to show anything"
    assert compared or not name.endswith((".csv", ".tsv", ".jsonl"))


@pytest.mark.parametrize("case", BASES)
def test_a_damaged_file_is_read_or_refused(tmp_path, case):
    check(case, BASES[case], read_texts, tmp_path, range(500))


@pytest.mark.parametrize("case", ANSWERS)
def test_a_damaged_file_of_answers_is_read_or_refused(tmp_path, case):
    check(case, ANSWERS[case], read_answers, tmp_path, range(500))


@pytest.mark.slow
@pytest.mark.parametrize("case", BASES)
def test_many_damaged_files_are_read_or_refused(tmp_path, case):
    check(case, BASES[case], read_texts, tmp_path, range(1_000, 21_000))


@pytest.mark.slow
@pytest.mark.parametrize("case", ANSWERS)
def test_many_damaged_files_of_answers_are_read_or_refused(tmp_path, case):
    check(case, ANSWERS[case], read_answers, tmp_path, range(1_000, 21_000))
