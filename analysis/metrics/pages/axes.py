"""Axes of figures that templates draw as SVG. Nothing is computed but where a value lies."""

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


def nice_ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Return about ``n`` round numbers from at most ``low`` to at least ``high``.

    >>> nice_ticks(12.3, 81.0)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    >>> nice_ticks(50, 50)
    [49.0, 49.5, 50.0, 50.5, 51.0]
    """
    if high - low < 1e-9:
        low, high = low - 1, high + 1
    rough = (high - low) / n
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def _tick_text(value: float) -> str:
    return f"{value:g}".replace("-", "−")


class Axis:
    """Values along a line of the figure."""

    def __init__(self, values: Sequence[float], start: float, end: float):
        self.values = nice_ticks(min(values), max(values))
        self.start, self.end = start, end

    def place(self, value: float) -> float:
        low, high = self.values[0], self.values[-1]
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    @property
    def ticks(self) -> list[Tick]:
        return [Tick(at(self.place(value)), _tick_text(round(value, 6))) for value in self.values]
