"""Files with random damage: they are read or refused with a reason, and nothing else is raised."""

import io
import random

import pytest

from studies.imports.formats import flattened, inspect_log, rows_of_object
from studies.imports.tables.columns import KNOWN_COLUMNS
from studies.imports.tables.mapping import apply_mapping, look_at, propose_mapping
from studies.stimuli.lines import UnreadableFile
from studies.stimuli.rows import TableLimits, read_rows
from tests.studies.imports import own, tools

BASES = {**{case: file[:2] for case, file in tools.FILES.items()}, **own.FILES}
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


def read(name: str, data: bytes) -> tuple[int, int]:
    """(rows, problems) of a file, read and mapped as an import does it."""
    if name.endswith(inspect_log.EXTENSION):
        try:
            return len(inspect_log.objects_of_archive(io.BytesIO(data), 10**7)), 0
        except UnreadableFile as refused:
            assert refused.text
            return 0, 1
    limits = TableLimits(bytes=10**7)
    rows = flattened(read_rows(name, data, columns=KNOWN_COLUMNS, open_object=rows_of_object, limits=limits))
    looks, rows = look_at(rows)
    mapping = propose_mapping(looks) if looks else []
    rows = apply_mapping(rows, mapping) if mapping else rows
    found = list(rows)
    assert all(str(problem) for problem in rows.problems)
    return len(found), rows.problems.count


def check(case: str, seeds: range) -> None:
    name, data = BASES[case]
    read_any = refused = 0
    for seed in seeds:
        n, n_problems = read(name, damaged(data, random.Random(f"{case} {seed}")))
        # Nothing is read and nothing is said: then the rows were lost in silence.
        assert n or n_problems, (case, seed)
        read_any += bool(n)
        refused += bool(n_problems)
    assert read_any and refused, "the damage is too small or too large to show anything"


@pytest.mark.parametrize("case", BASES)
def test_a_damaged_file_is_read_or_refused(case):
    check(case, range(500))


@pytest.mark.slow
@pytest.mark.parametrize("case", BASES)
def test_many_damaged_files_are_read_or_refused(case):
    check(case, range(1_000, 21_000))
