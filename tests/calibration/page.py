"""The page "What you may rely on" and its figure, from the kept numbers."""

import io
import json
import math
from collections import Counter
from typing import Any

from tests import ROOT

RECORD = ROOT / "tests" / "golden" / "calibration.json"
PAGE = ROOT / "templates" / "docs" / "explanation" / "what-you-may-rely-on.md"
FIGURE = ROOT / "static" / "docs" / "what-you-may-rely-on.svg"

BEGINNING = """# What you may rely on

Every test and interval of a report promises something: that a difference where there is none is announced in one study of twenty, or
that the interval holds the true value in nineteen of twenty. This page says how often the promises were kept when the truth was known.

Each row is one simulation: answers as people give them (heaped to fives, ceilings, annotators who differ, a few who give most labels),
a truth that is fixed, and the same function that reports use. The error after ± is that of the simulation itself, two standard errors.

{figure}

Squares are anytime procedures, triangles rows of which the report warns, lines two standard errors of the simulation.

"""
FALSE_ALARMS = """## False alarms

The share of studies without any difference in which one was announced. Promised: {nominal}. *Anytime* procedures are looked at after
every label or annotator, and may stop at the first alarm; they promise at most as much, and stay below it.

"""
COVERAGE = """## Intervals

The share of studies in which the 95 % interval held the true value. Promised: .95.

"""
WARNED = """Rows marked with a dagger (†) miss their promise for a reason that the report knows and warns of: `small_n_skew` where few annotators
give very uneven answers, `ceiling` where nearly all answers are the same. Read the betting interval or the raw points there.

"""
OTHERS = """## What does not keep its promise

Procedures that are common, or that the papers use. heval computes those of the papers so that their tables can be reproduced, names
them `paper`, and rests no conclusion on them.

"""
ENDING = """## How to read this

- A rate near the promise means that the number in the report means what it says, for data like those of the row.
- Nothing here says that a study asks the right question, that its annotators are like the people it speaks of, or that its prompts
  are like those that matter.
- Twenty annotators are few: rows with small n are here so that you see what they cost.

This page is written by the code: `python -m tests.calibration` measures all of it anew, with fixed seeds, and a test fails when the page
does not say what was measured.
"""


def rows() -> list[dict[str, Any]]:
    return json.loads(RECORD.read_text())["rows"]


def holds(row: dict[str, Any]) -> bool:
    """Whether a promise was kept, as far as the simulation can tell."""
    slack = 3 * math.sqrt(row["nominal"] * (1 - row["nominal"]) / row["answered"])
    if row["promise"] == "rejects":
        return row["rate"] <= (row["nominal"] if row["is_anytime"] else 0.07) + slack
    return row["rate"] >= (0.93 if row["n"] >= 50 else 0.91) - slack


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _table(found: list[dict[str, Any]], promises: bool = False) -> str:
    lines = [
        "| | what | data | n | " + ("promised | " if promises else "") + "measured |",
        "|---|---|---|--:|" + ("--:|" if promises else "") + "--:|",
    ]
    group = ""
    for row in found:
        mark = " †" if row["warned"] else ""
        anytime = " (anytime)" if row["is_anytime"] else ""
        promised = f" {_share(row['nominal'])} |" if promises else ""
        lines.append(
            f"| {row['group'] if row['group'] != group else ''} | {row['procedure']}{anytime} | {row['world']} | {row['n']} |{promised} "
            f"{_share(row['rate'])} ± {_share(2 * row['error'])}{mark} |"
        )
        group = row["group"]
    return "\n".join(lines) + "\n\n"


def text() -> str:
    found = rows()
    ours = [row for row in found if row["is_ours"]]
    alarms = [row for row in ours if row["promise"] == "rejects"]
    intervals = [row for row in ours if row["promise"] == "covers"]
    figure = (
        f"![How often each promise was kept; the numbers are in the tables below.](../../../static/docs/{FIGURE.name})"
    )
    return (
        BEGINNING.format(figure=figure)
        + FALSE_ALARMS.format(nominal=".05")
        + _table(alarms)
        + COVERAGE
        + _table(intervals)
        + WARNED
        + OTHERS
        + _table([row for row in found if not row["is_ours"]], promises=True)
        + ENDING
    )


def drawing() -> str:
    """Dots with their simulation error, false alarms at the left, coverage at the right; the promise is a line."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "heval"
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib.figure import Figure

    found = [row for row in rows() if row["is_ours"]]
    panels = [[row for row in found if row["promise"] == promise] for promise in ("rejects", "covers")]
    figure = Figure(figsize=(11, 0.24 * max(map(len, panels)) + 1.2), layout="constrained")
    for axes, panel, limits, title in zip(
        figure.subplots(1, 2),
        panels,
        ((0, 0.15), (0.8, 1.0)),
        ("False alarms (promised: .05)", "Coverage (promised: .95)"),
        strict=True,
    ):
        axes.axvline(panel[0]["nominal"], color="#999999", linewidth=1)
        for place, row in enumerate(panel):
            height = len(panel) - place
            shape = "s" if row["is_anytime"] else "^" if row["warned"] else "o"
            if row["rate"] > limits[1]:
                axes.text(
                    limits[1], height, f"{_share(row['rate'])} →", ha="right", va="center", fontsize=7, color="#1f4e79"
                )
                continue
            axes.errorbar(
                row["rate"],
                height,
                xerr=2 * row["error"],
                fmt=shape,
                color="#1f4e79",
                markersize=4,
                linewidth=1,
                clip_on=False,
            )
        said = Counter((row["procedure"], row["n"]) for row in panel)
        labels = [
            f"{row['procedure']}, n = {row['n']}"
            + (f" ({row['world']})" if said[row["procedure"], row["n"]] > 1 else "")
            for row in panel
        ]
        axes.set_yticks(range(len(panel), 0, -1), labels, fontsize=7)
        axes.set_xlim(*limits)
        axes.set_title(title, fontsize=10)
        axes.tick_params(axis="x", labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def write() -> None:
    PAGE.write_text(text(), encoding="utf-8")
    FIGURE.write_text(drawing(), encoding="utf-8")
