"""Seeds for random numbers: a function of the analysis and its data only.

The same study, analysis, settings and data give the same bits on every machine. A change of any of them gives an
independent stream.
"""

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from analysis.stats.results import json_safe

LINES_AT_ONCE = 10_000


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


def unordered_rows_sha256(rows: Iterable[Sequence[object]]) -> str:
    """Return a hash of the rows used by an analysis; their order does not matter.

    It is the SHA-256 of the sorted lines of their CSV, in hexadecimal digits.

    >>> unordered_rows_sha256([("a", 1), ("b", 2)]) == unordered_rows_sha256([("b", 2), ("a", 1)])
    True
    """
    lines: list[str] = []
    csv.writer(_Lines(lines.append), lineterminator="\n").writerows(rows)
    lines.sort()
    digest = hashlib.sha256()
    for start in range(0, len(lines), LINES_AT_ONCE):
        digest.update("".join(lines[start : start + LINES_AT_ONCE]).encode())
    return digest.hexdigest()


class _Lines(NamedTuple):
    """A file for ``csv.writer``, which writes each row by one call."""

    write: Callable[[str], object]
