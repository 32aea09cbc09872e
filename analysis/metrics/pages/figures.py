"""The figure of people beside a metric, as places for a template that draws SVG."""

from collections.abc import Mapping, Sequence
from typing import Any

from .axes import Axis, at

WIDTH, HEIGHT = 560, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 440, 16, 320
# Names of more systems would cover one another; the table has them.
MAX_NAMED = 25
LONGEST_NAME = 18


def scatter_figure(systems: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figure of the systems' mean scores: the metric's across, the people's upwards. Empty without two systems."""
    if len(systems) < 2:
        return {}
    across = Axis([one["metric"] for one in systems], LEFT, RIGHT)
    upwards = Axis([one["people"] for one in systems], BOTTOM, TOP)
    dots = [
        {
            "text": f"{one['system']}: metric {one['metric']:.3f}, people {one['people']:.3f}",
            "name": _shortened(one["system"]) if len(systems) <= MAX_NAMED else "",
            "x": at(across.place(one["metric"])),
            "y": at(upwards.place(one["people"])),
            "name_x": at(across.place(one["metric"]) + 8),
            "name_y": at(upwards.place(one["people"]) + 4),
        }
        for one in systems
    ]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": RIGHT,
        "top": TOP,
        "bottom": BOTTOM,
        "tick_baseline": BOTTOM + 18,
        "axis_baseline": BOTTOM + 42,
        "ticks_end": LEFT - 8,
        "middle_x": at((LEFT + RIGHT) / 2),
        "middle_y": at((TOP + BOTTOM) / 2),
        "across": across.ticks,
        "upwards": [{"at": tick.at, "baseline": at(float(tick.at) + 4), "text": tick.text} for tick in upwards.ticks],
        "dots": dots,
    }


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1].rstrip() + "…"
