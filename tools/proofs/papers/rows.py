"""One number of a paper beside ours, and when the two agree."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from tests import ROOT

# The real labels lie beside the project and are no part of it.
SHARED = ROOT.parent / "shared" / "data"
# The half-width of a 99 % interval in standard errors: the level of the intervals that the papers print.
Z_99 = 2.5758


@dataclass(frozen=True, slots=True)
class Row:
    """`published` is "" where the paper prints no such number; `agrees` is None where there is nothing to agree with.

    `ours` is what the page shows, `values` the numbers behind it.
    """

    place: str
    what: str
    published: str
    ours: str
    how: str
    agrees: bool | None
    note: str = ""
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are computed together. `make` takes the folder of the real labels if `needs_labels`."""

    paper: str
    name: str
    make: Callable[..., list[Row]]
    needs_labels: bool = False
    is_simulated: bool = False


def seeded(name: str) -> np.random.Generator:
    """A row has its own seed, so that adding one changes no other."""
    return np.random.default_rng(int(sha256(name.encode()).hexdigest()[:12], 16))


def decimals(value: float, digits: int = 3) -> str:
    """Without the leading zero, as the papers print shares and p-values."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.removeprefix("-").startswith("0.") else text


def rounds_to(value: float, printed: float, digits: int) -> bool:
    """Whether a number printed with so many decimals can be this one."""
    return abs(value - printed) <= 0.5 * 10**-digits + 1e-9


def within(value: float, error: float, printed: float, printed_error: float, digits: int = 0) -> bool:
    """Whether two simulated means differ by no more than chance (99 %) and the rounding of the printed one allow."""
    return abs(value - printed) <= Z_99 * math.hypot(error, printed_error) + 0.5 * 10**-digits + 1e-9
