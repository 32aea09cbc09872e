"""Seeds for random numbers: a function of the analysis and its data only.

The same study, analysis, settings and data give the same bits on every machine. A change of any of them gives an
independent stream.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Sequence

import numpy as np

from analysis.stats.results import json_safe


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no spaces and no NaN: equal values give equal strings.

    >>> canonical_json({"b": 1, "a": [0.5, None]})
    '{"a":[0.5,null],"b":1}'
    """
    return json.dumps(json_safe(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def seed_hex(*parts: object) -> str:
    """Return the seed of (study, analysis, settings, data hash, ...) as 32 hexadecimal digits, for the report.

    It is the first 16 bytes of the SHA-256 of the parts as one canonical JSON list, so different lists cannot collide
    by separators.

    >>> seed_hex("study", "spa.pair", {"tau": 1.1})
    'f5d00b964a807c9a7fd4f8289b07dc21'
    """
    return hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()[:32]


def seed_sequence(*parts: object) -> np.random.SeedSequence:
    """The numpy seed of the parts; see `seed_hex`.

    >>> seed_sequence("study").entropy == int(seed_hex("study"), 16)
    True
    """
    return np.random.SeedSequence(int(seed_hex(*parts), 16))


def seeded_generator(*parts: object) -> np.random.Generator:
    """Return a random generator that depends only on the parts.

    >>> bool(seeded_generator("a", 1).random() == seeded_generator("a", 1).random())
    True
    >>> bool(seeded_generator("a", 1).random() == seeded_generator("a", 2).random())
    False
    """
    return np.random.default_rng(seed_sequence(*parts))


def spawn_generators(parent: np.random.SeedSequence, n: int) -> list[np.random.Generator]:
    """Return `n` independent generators in a fixed order: child k does not depend on `n`.

    >>> first, second = spawn_generators(seed_sequence("study"), 2)
    >>> bool(first.random() == spawn_generators(seed_sequence("study"), 5)[0].random())
    True
    """
    # A SeedSequence counts its children, so spawning from a copy keeps this a pure function.
    fresh = np.random.SeedSequence(parent.entropy, spawn_key=parent.spawn_key, pool_size=parent.pool_size)
    return [np.random.default_rng(child) for child in fresh.spawn(n)]


def rows_sha256(rows: Iterable[Sequence[object]]) -> str:
    """Return the SHA-256 of the sorted CSV of the rows used by an analysis; their order does not matter.

    >>> rows_sha256([("a", 1), ("b", 2)]) == rows_sha256([("b", 2), ("a", 1)])
    True
    """
    lines = []
    for row in rows:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerow(row)
        lines.append(buffer.getvalue())
    digest = hashlib.sha256()
    for line in sorted(lines):
        digest.update(line.encode())
    return digest.hexdigest()
