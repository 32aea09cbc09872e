"""Seeds for random numbers: a function of the analysis and its data only.

The same study, analysis, settings and data give the same bits on every machine. A change of any of them gives an
independent stream.
"""

import csv
import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import chain

import numpy as np

from analysis.stats.arrays import IntArray
from analysis.stats.results import json_safe

LINES_AT_ONCE = 10_000
# Neighbouring columns become one if they have at most so many pairs of values, of so many characters: each pair is a text.
MOST_MERGED, LONGEST_MERGED = 50_000, 200


def canonical_json(value: object) -> str:
    """Return JSON with sorted keys, no spaces and no NaN: equal values give equal strings.

    The value is anything that `results.json_safe` converts.

    >>> canonical_json({"b": 1, "a": [0.5, None]})
    '{"a":[0.5,null],"b":1}'
    """
    return json.dumps(json_safe(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def seed_hex(*parts: object) -> str:
    """Return the seed of an analysis as text, for the report.

    The parts are the study, the analysis, its settings, the hash of the data, and so on. The text has 32 hexadecimal
    digits: the first 16 bytes of the SHA-256 of the parts as one canonical JSON list. Different lists cannot collide by
    separators.

    >>> seed_hex("study", "spa.pair", {"tau": 1.1})
    'f5d00b964a807c9a7fd4f8289b07dc21'
    """
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()[:32]


def seed_sequence(*parts: object) -> np.random.SeedSequence:
    """Return the numpy seed of the parts, with their `seed_hex` as its entropy.

    >>> seed_sequence("study").entropy == int(seed_hex("study"), 16)
    True
    """
    return np.random.SeedSequence(int(seed_hex(*parts), 16))


def seeded_generator(*parts: object) -> np.random.Generator:
    """Return a new random generator that depends only on the parts, which are as in `seed_hex`.

    >>> bool(seeded_generator("a", 1).random() == seeded_generator("a", 1).random())
    True
    >>> bool(seeded_generator("a", 1).random() == seeded_generator("a", 2).random())
    False
    """
    return np.random.default_rng(seed_sequence(*parts))


def unordered_rows_sha256(header: Sequence[str], columns: Iterable[tuple[IntArray, Sequence[object]]]) -> str:
    """Return a hash of the rows used by an analysis; their order does not matter.

    It is the SHA-256 of the sorted lines of their CSV with the header, in hexadecimal digits. A column is the number of each row's
    value, and the values. There are several columns.

    >>> numbers, header = np.arange(2), ["name", "n"]
    >>> one = unordered_rows_sha256(header, [(numbers, "ab"), (numbers, [1, 2])])
    >>> one == unordered_rows_sha256(header, [(numbers, "ba"), (numbers, [2, 1])])
    True
    """
    first = _csv_line(header)
    # No cell with its comma is the beginning of another one, so lines are sorted as their cells are, column by column.
    merged: list[tuple[IntArray, list[str]]] = [(np.zeros(0, dtype=np.int64), [""])]
    for place, (numbers, values) in enumerate(columns, 1):
        end = "\n" if place == len(header) else ","
        cells = [_csv_line((value, ""))[:-2] + end for value in values]
        texts = sorted(set(cells))
        rank = {text: number for number, text in enumerate(texts)}
        codes = np.array([rank[cell] for cell in cells], dtype=np.int64)[numbers]
        if place == 1:
            merged = [(codes, texts)]
        elif len(merged[-1][1]) * len(texts) <= MOST_MERGED and len(max(texts, key=len, default="")) <= LONGEST_MERGED:
            before, beginnings = merged.pop()
            merged.append((before * len(texts) + codes, [start + text for start in beginnings for text in texts]))
        else:
            merged.append((codes, texts))
    order = np.lexsort([codes for codes, _ in reversed(merged)])
    parts = [(codes, np.array(texts, dtype=object)) for codes, texts in merged]

    def lines(rows: IntArray) -> str:
        return "".join(chain.from_iterable(zip(*(texts[codes[rows]].tolist() for codes, texts in parts), strict=True)))

    digest = hashlib.sha256()
    place = bisect_left(range(len(order)), first, key=lambda row: lines(order[row : row + 1]))
    for rows, after in ((order[:place], first), (order[place:], "")):
        for start in range(0, len(rows), LINES_AT_ONCE):
            digest.update(lines(rows[start : start + LINES_AT_ONCE]).encode())
        digest.update(after.encode())
    return digest.hexdigest()


def _csv_line(cells: Sequence[object]) -> str:
    file = StringIO()
    csv.writer(file, lineterminator="\n").writerow(cells)
    return file.getvalue()
