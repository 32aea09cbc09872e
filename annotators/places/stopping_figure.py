"""The figure of a study's stopping rule: evidence after each unit and threshold, without the direction of the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from studies.models import Job, Study

WIDTH, HEIGHT = 420, 200
LEFT, RIGHT, TOP, BOTTOM = 44, 10, 16, 40
AXIS_LABELS = {
    "anytime": "Evidence (e-process, powers of ten)",
    "first": "Distance from one half, in widths of Hoeffding's bound",
}


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class StoppingFigure:
    """The figure of one comparison in pixels, with its texts."""

    name: str
    axis_label: str
    unit: str
    n: int
    now: float | None
    threshold: float
    is_decided: bool
    remaining: Mapping[str, Any] | None
    path: str
    line: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    width, height, left, right, top, bottom = WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM


def latest_stopping_figures(study: Study) -> tuple[Job | None, list[StoppingFigure]]:
    """Return the last finished check of the study's stopping rule and its figures; (None, []) before the first check."""
    job = study.jobs.filter(kind="stopping_check", state=Job.State.DONE).order_by("-pk").first()
    return job, [_figure(result) for result in (job.result or {}).get("looks", [])] if job else []


def _figure(result: Mapping[str, Any]) -> StoppingFigure:
    points = result["points"]
    high = max([result["threshold"] * 1.15, *(value for _, value in points)])
    low = min([0.0, *(value for _, value in points)])
    last = max(1, result["n"])

    def across(n: float) -> float:
        return round(LEFT + (WIDTH - RIGHT - LEFT) * n / last, 1)

    def down(value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low), 1)

    start = [(0, 0.0), *points] if points else []
    step = _step(high - low)
    return StoppingFigure(
        name=result["name"],
        axis_label=AXIS_LABELS.get(result["rule"], ""),
        unit=result["unit"],
        n=result["n"],
        now=points[-1][1] if points else None,
        threshold=result["threshold"],
        is_decided=result["is_decided"],
        remaining=result["remaining"],
        path=" ".join(f"{across(n)},{down(value)}" for n, value in start),
        line=down(result["threshold"]),
        x_ticks=tuple(Tick(across(n), f"{n:g}") for n in _ticks(0, last, max(1.0, _step(last)))),
        y_ticks=tuple(Tick(down(value), f"{value:g}") for value in _ticks(low, high, step)),
    )


def _step(span: float) -> float:
    """Return a round step that divides the span into about four parts."""
    size = 10.0 ** (len(str(int(span))) - 1) if span >= 1 else 0.1
    return next((size * times for times in (0.2, 0.5, 1, 2) if span / (size * times) <= 5), size * 5)


def _ticks(low: float, high: float, step: float) -> list[float]:
    first = int(low / step) if low >= 0 else -int(-low / step)
    return [round(n * step, 4) for n in range(first, int(high / step) + 1)]
