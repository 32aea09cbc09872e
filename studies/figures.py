"""Figures that templates draw as SVG: where values lie, round ticks, and the frame around the marks.

Nothing is computed here but places. ``templates/figures/frame.svg`` draws a frame; the marks inside it are each figure's own.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tick:
    at: str
    text: str


def at(value: float) -> str:
    """Return a place in the figure as text, which no language setting changes."""
    return f"{value:.1f}"


def path_of(points: Sequence[tuple[float, float]]) -> str:
    """Return the points of a line, as the attribute ``points`` of SVG has them."""
    return " ".join(f"{at(x)},{at(y)}" for x, y in points)


def shortened(name: str, longest: int) -> str:
    """Return a name that fits.

    >>> shortened("a very long name of a system", 12)
    'a very long…'
    """
    return name if len(name) <= longest else name[: longest - 1].rstrip() + "…"


def nice_ticks(low: float, high: float, n: int = 5, least_step: float = 0.0) -> list[float]:
    """Return about ``n`` round numbers from at most ``low`` to at least ``high``.

    >>> nice_ticks(12.3, 81.0)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    >>> nice_ticks(50, 50)
    [49.0, 49.5, 50.0, 50.5, 51.0]
    >>> nice_ticks(0, 2, least_step=1)
    [0.0, 1.0, 2.0]
    """
    if high - low < 1e-9:
        low, high = low - 1, high + 1
    rough = max((high - low) / n, least_step)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


class Axis:
    """Values along a line of the figure, from a round tick below the least to a round tick above the greatest.

    ``least_step``: ticks are at least so far apart; 1 for an axis of people or labels. There are about ``n`` ticks.
    """

    def __init__(self, values: Sequence[float], start: float, end: float, least_step: float = 0.0, n: int = 5):
        self.values = nice_ticks(min(values), max(values), n, least_step)
        self.start, self.end = start, end

    def place(self, value: float) -> float:
        low, high = self.values[0], self.values[-1]
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    @property
    def ticks(self) -> list[Tick]:
        texts = (f"{round(value, 6):g}".replace("-", "−") for value in self.values)
        return [Tick(at(self.place(value)), text) for value, text in zip(self.values, texts, strict=True)]


class CountsAxis:
    """Counts on a logarithmic scale, from the least to the greatest, with ticks at 1, 2 and 5 times the powers of ten."""

    def __init__(self, counts: Sequence[float], start: float, end: float):
        self.low = math.log10(max(1, min(counts)))
        self.high = max(math.log10(max(counts)), self.low + 0.3)
        self.start, self.end = start, end

    def place(self, count: float) -> float:
        share = (math.log10(max(1, count)) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[Tick]:
        low, high = 10**self.low, 10**self.high
        counts = [step * 10**power for power in range(10) for step in (1, 2, 5) if low <= step * 10**power <= high]
        # If these are many, the powers of ten are enough.
        shown = counts if len(counts) <= 7 else [count for count in counts if str(count).startswith("1")]
        return [Tick(at(self.place(count)), f"{count:,}") for count in shown]


@dataclass(frozen=True, slots=True)
class RangeBar:
    """A row of a figure: a name, a range, and a mark in it. ``templates/figures/ranges.svg`` draws these rows."""

    name: str
    y: str
    low: str
    median: str
    high: str


@dataclass(frozen=True, slots=True)
class Frame:
    """The box around the marks of a figure, with the ticks and the names of its axes.

    The grid has a line for each tick upwards, and with ``has_columns`` for each tick across. The name of the axis across
    is below its middle.
    """

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    across: Sequence[Tick] = ()
    upwards: Sequence[Tick] = ()
    across_label: str = ""
    upwards_label: str = ""
    has_columns: bool = False

    @property
    def ticks_end(self) -> str:
        return at(self.left - 8)

    @property
    def tick_baseline(self) -> str:
        return at(self.bottom + 18)

    @property
    def label_baseline(self) -> str:
        return at(self.bottom + 38)

    @property
    def middle_across(self) -> str:
        return at((self.left + self.right) / 2)

    @property
    def middle_upwards(self) -> str:
        return at((self.top + self.bottom) / 2)
