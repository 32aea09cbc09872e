"""The figure of a plan: width of the interval against the number of human answers, with and without judges."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 170, 16, 52
STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class PlanFigure:
    """Lines as lists of points in the units of the picture, ticks, and the ends of the lines for their labels."""

    people: str
    judges: str
    people_end: tuple[float, float]
    judges_end: tuple[float, float]
    across: list[Tick]
    up: list[Tick]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def plan_figure(curve: Mapping[str, Any]) -> PlanFigure | None:
    """Return the figure of a stored curve: points of (width, answers of people alone, answers with judges). Answers are on a log scale."""
    rows = sorted(curve.get("points", ()), key=lambda row: -row[0])
    if len(rows) < 2:
        return None
    widths = [row[0] for row in rows]
    counts = [count for row in rows for count in row[1:]]
    low, high = math.log10(max(1, min(counts))), math.log10(max(counts))
    high = max(high, low + 0.3)

    def x(width: float) -> float:
        return round(LEFT + (widths[0] - width) / (widths[0] - widths[-1]) * (WIDTH - RIGHT - LEFT), 1)

    def y(count: float) -> float:
        share = (math.log10(max(1, count)) - low) / (high - low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP), 1)

    def line(place: int) -> tuple[str, tuple[float, float]]:
        points = [(x(row[0]), y(row[place])) for row in rows]
        return " ".join(f"{across},{up}" for across, up in points), points[-1]

    people, people_end = line(1)
    judges, judges_end = line(2)
    if abs(people_end[1] - judges_end[1]) < 16:
        judges_end = (judges_end[0], people_end[1] + 16)
    return PlanFigure(
        people,
        judges,
        people_end,
        judges_end,
        [Tick(x(width), f"{100 * width:.1f}") for width in widths[:: max(1, len(widths) // 4)]],
        [Tick(y(count), f"{count:,}") for count in _round_counts(10**low, 10**high)],
    )


def _round_counts(low: float, high: float) -> list[int]:
    """Return 1, 2 and 5 times the powers of ten between two counts; only the powers of ten if these are many."""
    found = [step * 10**power for power in range(10) for step in STEPS if low <= step * 10**power <= high]
    return found if len(found) <= 7 else [count for count in found if str(count).startswith("1")]
