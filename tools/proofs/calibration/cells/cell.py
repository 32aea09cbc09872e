"""A cell: a promise, a world in which its truth is known, and whether one run kept it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

REJECTS, COVERS = "rejects", "covers"
ALPHA = 0.05


@dataclass(frozen=True)
class Cell:
    """``run(rng)``: whether a true null was rejected, or a true value covered; None where no answer was given.

    ``is_ours`` is False for a procedure that is shown for what it does wrong.
    """

    group: str
    promise: str
    procedure: str
    world: str
    n: int
    run: Callable[[np.random.Generator], bool | None]
    runs: int = 2000
    nominal: float = ALPHA
    is_ours: bool = True
    is_anytime: bool = False
    # Where a small n is known to miss what is promised, and the report warns of it.
    warned: str = ""

    @property
    def name(self) -> str:
        return f"{self.group}: {self.procedure}, {self.world}, n = {self.n}"


def rejected(estimate) -> bool | None:
    return None if estimate.pvalue is None else estimate.pvalue < ALPHA


def covered(estimate, truth) -> bool | None:
    interval = getattr(estimate, "interval", estimate)
    return None if interval is None else interval.low <= truth <= interval.high
