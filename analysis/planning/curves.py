"""Curves of power and interval width against people, prompts and money, as places for a template that draws SVG."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.metrics.pages.axes import Axis, at
from analysis.stats.planning.closed_forms import components, plan_of_components
from analysis.stats.planning.inputs import MOST_ANSWERS, MOST_PEOPLE, MOST_PROMPTS, StudySize
from analysis.stats.planning.sizes import plan_budget

from .advice import money_text, percent, points_text, scale_of
from .inputs import PlanInputs

FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
# Farther along, the curve of prompts is flat.
MOST_TIMES_PROMPTS = 12
WIDTH, HEIGHT = 320, 210
LEFT, RIGHT, TOP, BOTTOM = 48, 306, 14, 168


@dataclass(frozen=True, slots=True)
class Point:
    """A size on a curve, and where the curve shows it."""

    x: float
    size: StudySize
    power: float
    half_width: float
    total: float


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    points: tuple[Point, ...]


def design_curves(inputs: PlanInputs, currency: str) -> list[dict[str, Any]]:
    """Return the curves against people, prompts and money, each with its two figures and the rows of its table."""
    size = inputs.size
    people = _line("", [_with_people(size, factor) for factor in FACTORS], inputs, lambda point: point.size.people)
    found = [
        _curve("people", "More people, the same prompts", "people", [people], inputs, currency),
    ]
    if size.kind != "chance":
        prompts = _line("", _prompt_sizes(size), inputs, lambda point: point.size.prompts)
        found.append(
            _curve(
                "prompts",
                "More prompts, the same people and answers: fewer labels for each prompt",
                "prompts",
                [prompts],
                inputs,
                currency,
            )
        )
    lines = [_line("people", [_with_people(size, factor) for factor in FACTORS], inputs, lambda point: point.total)]
    if size.kind != "chance":
        both = [_with_both(size, factor) for factor in FACTORS]
        lines.append(_line("people and prompts", both, inputs, lambda point: point.total))
    title = "More money, for people alone" + (" or for people and prompts together" if len(lines) > 1 else "")
    found.append(_curve("money", title, currency, lines, inputs, currency))
    return found


def _line(label: str, sizes: Sequence[StudySize | None], inputs: PlanInputs, x_of: Any) -> Line:
    parts = components(inputs.size, inputs.target, inputs.variation)
    points = {}
    for size in (inputs.size, *sizes):
        if size is None:
            continue
        quick = plan_of_components(parts, size, inputs.target)
        total = plan_budget(size, inputs.pace, inputs.prices).total
        point = Point(0, size, quick.power, quick.half_width, total)
        points[size] = replace(point, x=float(x_of(point)))
    return Line(label, tuple(sorted(points.values(), key=lambda point: (point.x, point.size.people))))


def _with_people(size: StudySize, factor: float) -> StudySize | None:
    """Return the size with other people, or None if they do not see all prompts."""
    people = max(6, round(size.people * factor))
    if people > MOST_PEOPLE or not size.prompts <= people * size.prompts_each <= MOST_ANSWERS:
        return None
    return replace(size, people=people)


def _with_both(size: StudySize, factor: float) -> StudySize | None:
    people = max(6, round(size.people * factor))
    prompts = max(size.prompts_each, round(size.prompts * people / size.people))
    if people > MOST_PEOPLE or not prompts <= min(MOST_PROMPTS, people * size.prompts_each) <= MOST_ANSWERS:
        return None
    return replace(size, people=people, prompts=prompts)


def _prompt_sizes(size: StudySize) -> list[StudySize]:
    low = size.prompts_each
    high = min(MOST_PROMPTS, size.answers, max(MOST_TIMES_PROMPTS * size.prompts, low))
    numbers = {round(low * (high / low) ** (k / 9)) for k in range(10)}
    return [replace(size, prompts=n) for n in sorted(numbers)]


def _curve(key: str, title: str, unit: str, lines: Sequence[Line], inputs: PlanInputs, currency: str) -> dict[str, Any]:
    scale, width_unit, _ = scale_of(inputs.size.protocol)
    return {
        "key": key,
        "title": title,
        "unit": unit,
        "has_lines": len(lines) > 1,
        "panels": [
            _panel(
                f"{key}-power", "Power, %", unit, lines, inputs.size, "power", 100, [0, 100], inputs.target.wanted * 100
            ),
            _panel(f"{key}-width", f"Interval, ± {width_unit}", unit, lines, inputs.size, "half_width", scale, [0]),
        ],
        "rows": [_row(line.label, point, inputs, currency) for line in lines for point in line.points],
    }


def _row(label: str, point: Point, inputs: PlanInputs, currency: str) -> dict[str, Any]:
    return {
        "label": label,
        "is_planned": point.size == inputs.size,
        "people": point.size.people,
        "prompts": point.size.prompts,
        "labels": f"{point.size.labels_per_prompt:.3g}",
        "money": money_text(point.total, currency),
        "power": percent(point.power),
        "width": f"± {points_text(point.half_width, inputs.size.protocol)}",
    }


def _panel(
    key: str,
    label: str,
    unit: str,
    lines: Sequence[Line],
    planned: StudySize,
    name: str,
    scale: float,
    shown: list[float],
    wanted: float | None = None,
) -> dict[str, Any]:
    xs = [point.x for line in lines for point in line.points]
    ys = [scale * getattr(point, name) for line in lines for point in line.points]
    across, upwards = Axis([0.0, *xs], LEFT, RIGHT), Axis([*shown, *ys], BOTTOM, TOP)
    places = [
        [(across.place(point.x), upwards.place(scale * getattr(point, name))) for point in line.points]
        for line in lines
    ]
    # The names of two lines stay apart: above the higher end, below the lower one.
    highest = min(own[-1][1] for own in places)
    drawn = [
        {
            "number": number,
            "points": " ".join(f"{at(x)},{at(y)}" for x, y in own),
            "label": line.label if len(lines) > 1 else "",
            "label_x": at(own[-1][0]),
            "label_y": at(own[-1][1] + (-7 if own[-1][1] == highest else 17)),
        }
        for number, (line, own) in enumerate(zip(lines, places, strict=True))
    ]
    here = next(point for point in lines[0].points if point.size == planned)
    return {
        "key": key,
        "label": label,
        "unit": unit,
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "bottom": BOTTOM,
        "ticks_end": LEFT - 6,
        "tick_baseline": BOTTOM + 16,
        "axis_baseline": BOTTOM + 36,
        "across": across.ticks,
        "upwards": [{"at": tick.at, "baseline": at(float(tick.at) + 4), "text": tick.text} for tick in upwards.ticks],
        "lines": drawn,
        "wanted": None if wanted is None else at(upwards.place(wanted)),
        "x": at(across.place(here.x)),
        "y": at(upwards.place(scale * getattr(here, name))),
        "text": f"{label} against {unit}: {scale * getattr(here, name):.1f} at {here.x:,.0f} {unit}, the current design",
    }
