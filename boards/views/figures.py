"""Figures of boards as places and texts, for templates that draw SVG. Nothing is computed but where a line lies."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from studies.figures import Axis, Frame, Tick, at, nice_ticks, shortened

from .table import marks_of, overall_of, rank_text, score_text

WIDTH = 860
ROW = 26
TOP = 34
NAMES_END, SCORES_START, SCORES_END, RANKS_START, RANKS_END = 236, 252, 590, 640, 840
LONGEST_NAME = 30
# About the width of a letter.
LETTER = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """A system in the figure: its dot and interval in the left panel, its rank set in the right one. '' is not drawn."""

    name: str
    text: str
    y: str
    baseline: str
    may_be_first: bool
    is_reference: bool
    dot: str
    low: str
    high: str
    rank_low: str
    rank_width: str
    rank_y: str


def scores_figure(result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], shown: int | None = None) -> dict:
    """Return the figure of overall scores and rank sets. ``shown``: draw only the first systems. Empty without a score."""
    scored = [row for row in rows if overall_of(result, row).get("estimate") is not None]
    drawn = scored[:shown]
    values = [
        value
        for row in drawn
        for name in ("estimate", "low", "high")
        if (value := overall_of(result, row).get(name)) is not None
    ]
    if not values:
        return {}
    axis = Axis(values, SCORES_START, SCORES_END)
    last_rank = max((overall_of(result, row).get("rank_high") or 1 for row in drawn), default=1)
    step = (RANKS_END - RANKS_START) / last_rank
    marks = [_mark(result, row, place, axis, step) for place, row in enumerate(drawn)]
    bottom = TOP + ROW * len(marks) + 6
    # The figure begins where the longest name does, so that a phone shows more of the scores.
    left = max(0, NAMES_END - LETTER * max(len(mark.name) for mark in marks) - 4)
    return {
        "left": left,
        "frame": Frame(
            WIDTH - left,
            bottom + 44,
            SCORES_START,
            SCORES_END,
            TOP,
            bottom,
            axis.ticks,
            across_label=result["criteria"][0]["label"],
            has_columns=True,
        ),
        "marks": marks,
        "rank_ticks": [Tick(at(RANKS_START + (rank - 0.5) * step), str(rank)) for rank in _ranks(last_rank)],
        "names_end": NAMES_END,
        "ranks_middle": at((RANKS_START + RANKS_END) / 2),
        "ranks_start": RANKS_START,
        "ranks_end": RANKS_END,
        "n_drawn": len(drawn),
        "n_scored": len(scored),
    }


def _ranks(last: int) -> list[int]:
    """Return the ranks that the axis names: all if they fit."""
    if last <= 12:
        return list(range(1, last + 1))
    return [1, *(int(tick) for tick in nice_ticks(1, last) if 1 < tick <= last)]


def _mark(result: Mapping[str, Any], row: Mapping[str, Any], place: int, axis: Axis, step: float) -> Mark:
    overall = overall_of(result, row)
    y = TOP + ROW * place + ROW / 2

    def x(name: str) -> str:
        value = overall.get(name)
        return "" if value is None else at(axis.place(value))

    has_interval = bool(x("low") and x("high"))
    low, high = overall.get("rank_low") or 0, overall.get("rank_high") or 0
    return Mark(
        name=shortened(row["name"], LONGEST_NAME),
        text=f"{row['name']}: {score_text(overall)}, rank {rank_text(overall)}",
        y=at(y),
        baseline=at(y + 4.5),
        may_be_first=low == 1,
        is_reference="human" in marks_of(row) or "reference" in marks_of(row),
        dot=x("estimate"),
        low=x("low") if has_interval else "",
        high=x("high") if has_interval else "",
        rank_low=at(RANKS_START + (low - 1) * step) if high else "",
        rank_width=at(max((high - low + 1) * step - 1, 2)) if high else "",
        rank_y=at(y - 6),
    )


HISTORY_START, HISTORY_END, HISTORY_TOP, HISTORY_BOTTOM = 48, 600, 14, 334
NAME_GAP = 17.0


def history_figure(series: Sequence[Mapping[str, Any]], numbers: Sequence[int], renewed: Sequence[int] = ()) -> dict:
    """Return the figure of scores over snapshots. ``series``: name, ``may_be_first``, and a score or None per snapshot.

    ``renewed``: the places of the first snapshots with a renewed sample.
    """
    values = [
        value
        for one in series
        for score in one["scores"]
        if score is not None
        for value in (score["estimate"], score["low"], score["high"])
        if value is not None
    ]
    if not values:
        return {}
    axis = Axis(values, HISTORY_BOTTOM, HISTORY_TOP)
    width = (HISTORY_END - HISTORY_START) / len(numbers)
    places = [HISTORY_START + width * (place + 0.5) for place in range(len(numbers))]
    lines = []
    for nth, one in enumerate(series):
        # Systems lie a little apart, so that their intervals do not cover one another.
        aside = (nth - (len(series) - 1) / 2) * min(4.0, width / (len(series) + 2))
        dots = [
            {
                "x": at(x + aside),
                "y": at(axis.place(score["estimate"])),
                "low": "" if score["low"] is None else at(axis.place(score["low"])),
                "high": "" if score["high"] is None else at(axis.place(score["high"])),
            }
            for x, score in zip(places, one["scores"], strict=True)
            if score is not None and score["estimate"] is not None
        ]
        if dots:
            lines.append(
                {
                    "name": shortened(one["name"], LONGEST_NAME),
                    "may_be_first": one["may_be_first"],
                    "dots": dots,
                    "path": " ".join(f"{dot['x']},{dot['y']}" for dot in dots),
                    "end": dots[-1],
                }
            )
    _place_names(lines)
    return {
        "frame": Frame(
            WIDTH,
            HISTORY_BOTTOM + 48,
            HISTORY_START,
            HISTORY_END,
            HISTORY_TOP,
            HISTORY_BOTTOM,
            [Tick(at(x), str(number)) for x, number in zip(places, numbers, strict=True)],
            axis.ticks,
            "Snapshot",
        ),
        "lines": lines,
        "renewals": [at(places[place] - width / 2) for place in renewed],
        "names_start": HISTORY_END + 24,
    }


def _place_names(lines: Sequence[dict[str, Any]]) -> None:
    """Give each line the height of its name: beside its last dot, but never over another name."""
    y = -math.inf
    for line in sorted(lines, key=lambda line: float(line["end"]["y"])):
        y = max(float(line["end"]["y"]), y + NAME_GAP)
        line["name_y"] = y
    overflow = y - HISTORY_BOTTOM
    for line in sorted(lines, key=lambda line: -line["name_y"]) if overflow > 0 else []:
        line["name_y"] = min(
            line["name_y"], HISTORY_BOTTOM - NAME_GAP * sum(o["name_y"] > line["name_y"] for o in lines)
        )
    for line in lines:
        line["name_baseline"] = at(line["name_y"] + 4.5)
        line["name_y"] = at(line["name_y"])
