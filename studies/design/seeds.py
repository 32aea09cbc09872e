"""Random generators that a seed and a purpose determine."""

import hashlib
from random import Random


def seeded_random(seed: int, *purpose: object) -> Random:
    """Return a separate generator for each purpose. The same seed and purpose always give the same numbers."""
    digest = hashlib.sha256("|".join(map(str, (seed, *purpose))).encode()).digest()
    return Random(int.from_bytes(digest))
