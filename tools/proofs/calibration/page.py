"""The page "What you may rely on" and its figure, from the kept numbers."""

import io
import json
import math
from collections import Counter
from typing import Any

from tests import ROOT
from tools.proofs.calibration import claims, prompt_groups, screening, shares, studies

RECORD = ROOT / "tests" / "golden" / "calibration.json"
PAGE = ROOT / "templates" / "docs" / "explanation" / "what-you-may-rely-on.md"
FIGURE = ROOT / "static" / "docs" / "what-you-may-rely-on.svg"

BEGINNING = """# What you may rely on

Every test and interval of a report makes a promise. A test finds a difference that does not exist in at most one study of twenty. An
interval contains the true value in nineteen of twenty. This page says how often heval keeps these promises when the truth is known.

Each row is one simulation with a fixed truth and the function that reports use. The answers are like people's: heaped to fives, with
ceilings, with annotators who differ, and with a few who give most labels. The error after ± is two standard errors of the simulation.

{figure}

Squares are anytime procedures. For triangles the report prints a warning. Lines are two standard errors of the simulation.

"""
FALSE_ALARMS = """## False alarms

The share of studies in which a procedure found a difference although there was no difference. Promised: {nominal}. *Anytime* procedures
are checked after every label or annotator, and may stop at the first alarm. They promise at most this share, and stay below it.

"""
COVERAGE = """## Intervals

The share of studies in which the 95 % interval contained the true value. Promised: .95.

"""
WARNED = """Rows marked with a dagger (†) miss their promise, and the report warns about the reason. `small_n_skew` means that few annotators give
very uneven answers; `ceiling` means that nearly all answers are the same. In these cases read the betting interval or the raw points.

"""
CLAIMS = """## Claims about two systems

A claim such as "x was rated higher than y, for prompts like these" must hold for other people and other prompts. {n_cells} designs were simulated
{studies} times each with the method of the reports: 6 to 60 people, 5 to 100 prompts, all prompts judged by all people or only some, uneven
activity, people and prompts that differ a little or a lot, tastes, choices, five points, 0 to 100 in steps of five, ceilings. The designs cover
every pair of these settings. *Missed* is the share of studies whose 95 % interval misses the truth, which is also the share of false
claims if the truth is "no difference". A design fails if it is above {limit}.

"""
CANDIDATES = """### The methods that were compared

Before, all methods were compared in {studies} other studies of each design, in which a design fails above {limit}.
*Power* is the share of studies that claim a difference after the latent preference was raised by half a standard deviation, averaged
over the designs. Most methods that fail have more power because they claim too much.

"""
GROUPS = """### Prompts that belong to groups

Prompts of one document resemble each other: here the standard deviation is .8 between groups, .3 between the prompts of a group, .3 between people, and 1 of the
noise. Each design was simulated {studies} times without a difference, and analysed over groups, as reports do where the design gives groups, and over
prompts as if they were independent. Shown is the share of false claims. A design fails above {limit}.

"""
# Share of studies with bets below which a design counts as one for t tests.
RARELY = 0.05
WITHOUT_BETS = """
Many failures are in designs in which answers hardly vary or are very uneven, where the reports use bets. The next table has only the {n_cells}
designs in which the reports use bets in less than {per_cent} of 100 studies:

"""
CANDIDATE_NOTES = """
The wild bootstrap imposes the null hypothesis. It draws signs, or six points if there are fewer than 13 clusters, for the way with fewer clusters
(MacKinnon, Nielsen and Webb 2021), and its t has the variance of "two-way CR1, largest". The mixed model has random intercepts of people
and of prompts for the answers about both systems. Its estimate weights people and prompts by their variances, whatever weights the design has.

"""
LIMITS = """## Limits

A simulation is not exact, so a row is accepted up to a limit, which depends on the number of simulated studies. In the first two tables and
the figure, a false alarm may have the rate .07 (an anytime one .05), and an interval must contain the truth in .93, or in .91 with a sample
below 50, plus or less three standard errors. For claims and whole studies, the limit is .06 and two standard errors. For claims by
a margin and claims in the wrong direction it is .025 and two standard errors.

"""
SCREENING = """## People who answer at random

How well [test questions](../how-to/find-inattentive-annotators.md) find people who answer at random. {studies} studies of ratings were drafted, launched and
answered by {people} robots each on the annotators' pages. Between {low} and {high} % of them answered at random. The others knew good texts from
bad ones and made hardly a mistake. Each took several batches with one positive and one negative test question; the numbers of batches are lognormal.

Precision is the share of the flagged who answer at random. Recall is the share of those at random who are flagged. The table has both in per cent,
by the number of counted answers to test questions, beside Table 1 of Khashabi et al. 2022. The paper's inattentive people are easier to
find: they give 0 to 50 % right answers to both types, and these robots 50 %. Careful people make more mistakes than these robots, so expect a lower precision.
`failed_tests` is the simple rule with its default settings.

"""
STUDIES = """## Whole studies

Each row is one design, simulated {studies} times (*studies*). heval imports the file of answers and computes the report. Then its first sentence
and the interval beside it are compared with the truth. The standard deviations are those of people and of prompts, where one answer has 1.
In SPA they are points from 0 to 100, and the people of a batch read the same prompts.

- *Missed*: the 95 % interval does not contain the truth.
- *False claim*: the report claims a difference that does not exist.
- *False equivalence*: the report claims equivalence, although the true difference is just beyond the margin.
- *False claim by a margin*: the report claims that x is not worse, or is better, by more than the margin, although the true
  difference is exactly at the limit of this claim.
- *Wrong direction*: the report claims the opposite of the true difference.

The [limit](#limits) is in parentheses. Bold shares are above it. A failure is a study with at least one of the five. The last two columns say how many failures, and how
many of all studies, had a warning beside the first sentence.

"""
STUDY_COUNTS = {
    "missed": "missed",
    "false_claims": "false claim",
    "false_equivalences": "false equivalence",
    "false_claims_by_margin": "false claim by a margin",
    "wrong_direction": "wrong direction",
}
OTHERS = """## Procedures that do not keep their promise

These procedures are common, or the papers use them. heval computes those of the papers so that you can reproduce their tables. It names
them `paper`, and bases no conclusion on them.

"""
ENDING = """## How to read this

- If a rate is near the promise, you can rely on the number in the report, for data like those of the row.
- This page cannot say whether a study asks the right question, or whether its annotators and prompts are like those that matter.
- Twenty annotators are few. Rows with small n show what this costs.

This page is generated by `python -m tools.proofs.calibration`, which measures everything again with fixed seeds. A test fails if the page differs
from the measurements.
"""


def rows() -> list[dict[str, Any]]:
    return json.loads(RECORD.read_text())["rows"]


def limit(row: dict[str, Any], n: int) -> float:
    """Return the largest accepted rate of a row with n simulated studies, or the smallest if it is a coverage."""
    slack = 3 * math.sqrt(row["nominal"] * (1 - row["nominal"]) / n)
    if row["promise"] == "rejects":
        return (row["nominal"] if row["is_anytime"] else 0.07) + slack
    return (0.93 if row["n"] >= 50 else 0.91) - slack


def holds(row: dict[str, Any]) -> bool:
    """Whether a promise was kept, as far as the simulation can tell."""
    most = limit(row, row["answered"])
    return row["rate"] <= most if row["promise"] == "rejects" else row["rate"] >= most


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.2f}"


def _claims_section() -> str:
    record = claims.stored_record()
    rows = [row for row in record["reports"] if row["studies"]]
    shares = {row["name"]: row["missed"] / row["studies"] for row in rows}
    counts = sorted({row["simulated"] for row in rows})
    total = sum(row["studies"] for row in rows)
    missed, bets = (_share(sum(row[key] for row in rows) / total) for key in ("missed", "bets"))
    beyond = claims.broken_cells(rows)
    said = f"Above it: {'; '.join(beyond)}." if beyond else "No design is above it."
    if any("missed_at_first" in row for row in rows):
        said += " One above it at first, as a few are by chance, was simulated again, three times as often."
    lines = [
        CLAIMS.format(
            n_cells=len(rows),
            studies=" or ".join(f"{n:,}" for n in counts),
            limit=" or ".join(_share(claims.limit(n)) for n in counts),
        )
        + f"{said} Over all {total:,} studies the interval missed the truth in {missed}. In {bets} of them the answers were too uneven or",
        "too uniform for a t test, and the report used bets. The designs in which it missed most often:",
        "",
        "| design | studies | missed |",
        "|---|--:|--:|",
    ]
    for row in sorted(rows, key=lambda row: -shares[row["name"]])[:5]:
        lines.append(f"| {row['name']} | {row['studies']:,} | {_share(shares[row['name']])} |")
    return "\n".join(lines) + "\n\n`python -m tools.proofs.calibration.claims reports` measures this again.\n\n"


def _candidates_section() -> str:
    record = claims.stored_record()
    rows = [row for row in record["candidates"] if row["studies"]]
    (studies,) = {row["simulated"] for row in rows}
    bets = {row["name"]: row["bets"] / row["studies"] for row in record["reports"] if row["studies"]}
    rarely = [row for row in rows if bets[row["name"]] < RARELY]
    again = "`python -m tools.proofs.calibration.claims candidates` measures this again.\n\n"
    introduction = CANDIDATES.format(studies=studies, limit=_share(claims.limit(studies)))
    without = WITHOUT_BETS.format(n_cells=len(rarely), per_cent=f"{100 * RARELY:.0f}")
    return introduction + _candidates_table(rows) + without + _candidates_table(rarely) + CANDIDATE_NOTES + again


def _candidates_table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| method | designs that fail | missed, worst design | missed, mean | power, mean |",
        "|---|--:|--:|--:|--:|",
    ]
    for method in claims.METHODS:
        missed = [row["missed"][method] for row in rows]
        failed = sum(row["missed"][method] > claims.limit(row["studies"]) for row in rows)
        power = sum(row["power"][method] for row in rows) / len(rows)
        name = f"**{method}** (reports)" if method == claims.USED else method
        lines.append(
            f"| {name} | {failed} of {len(rows)} | {_share(max(missed))} | {_share(sum(missed) / len(rows))} | {_share(power)} |"
        )
    return "\n".join(lines) + "\n"


def _limits_section() -> str:
    measured = sorted({row["runs"] for row in rows()})
    record = claims.stored_record()
    simulated = {row["simulated"] for step in claims.STEPS for row in record[step]}
    simulated |= {row["studies"] for row in studies.stored_rows()}
    lines = [
        "| simulated studies | false alarm | anytime | interval, n of 50 or more | interval, smaller n |",
        "|--:|--:|--:|--:|--:|",
    ]
    kinds: list[dict[str, Any]] = [
        {"promise": "rejects", "nominal": 0.05, "is_anytime": False},
        {"promise": "rejects", "nominal": 0.05, "is_anytime": True},
        {"promise": "covers", "nominal": 0.95, "n": 50},
        {"promise": "covers", "nominal": 0.95, "n": 49},
    ]
    lines += [f"| {n:,} | {' | '.join(_share(limit(kind, n)) for kind in kinds)} |" for n in measured]
    lines += ["", "| simulated studies | missed, false claim | by a margin, wrong direction |", "|--:|--:|--:|"]
    lines += [f"| {n:,} | {_share(claims.limit(n))} | {_share(claims.limit(n, 0.025))} |" for n in sorted(simulated)]
    return LIMITS + "\n".join(lines) + "\n\n"


def _studies_section() -> str:
    rows = studies.stored_rows()
    counts = sorted({row["studies"] for row in rows})
    lines = [
        f"| design | studies | {' | '.join(STUDY_COUNTS.values())} | failures with a warning | studies with a warning |",
        f"|---|{'--:|' * (len(STUDY_COUNTS) + 3)}",
    ]
    for row in rows:
        shares = " | ".join(_share_and_limit(row, name) for name in STUDY_COUNTS)
        warned = f"{row['failures_with_warning']} of {row['failures']} | {_share(row['with_warning'] / row['studies'])}"
        lines.append(f"| {row['name']} | {row['studies']} | {shares} | {warned} |")
    beyond = [row["name"] for row in rows if studies.broken_limits(row)]
    said = f"Above a limit: {'; '.join(beyond)}." if beyond else "No design is above a limit."
    again = f"`python -m tools.proofs.calibration.studies --studies {counts[-1]}` measures this again."
    introduction = STUDIES.format(studies=" or ".join(map(str, counts)))
    total = sum(row["studies"] for row in rows)
    missed = _share(sum(row["missed"] for row in rows) / total)
    overall = f"Over all {total:,} studies the interval missed the truth in {missed}."
    return introduction + "\n".join(lines) + f"\n\n{said} {overall}\n{again}\n\n"


def _groups_section() -> str:
    rows = prompt_groups.stored_rows()
    if not rows:
        return ""
    counts = sorted({row["studies"] for row in rows})
    lines = ["| design | over groups | over prompts |", "|---|--:|--:|"]
    for row in rows:
        over = (_share(row["false_claims"][name] / row["studies"]) for name in ("groups", "prompts"))
        lines.append(f"| {row['name']} | {' | '.join(over)} |")
    beyond = prompt_groups.broken_cells(rows)
    said = f"Above the limit: {'; '.join(beyond)}." if beyond else "No design is above the limit."
    again = f"`python -m tools.proofs.calibration.prompt_groups --studies {counts[-1]}` measures this again."
    limit = _share(claims.limit(counts[0]))
    introduction = GROUPS.format(studies=" or ".join(f"{n:,}" for n in counts), limit=limit)
    return introduction + "\n".join(lines) + f"\n\n{said}\n{again}\n\n"


def _screening_section() -> str:
    record = screening.stored_record()
    by_bucket = [row for row in record["rows"] if row["model"] == screening.DEFAULT]
    sizes = "; ".join(f"{row['bucket']}: {row['people']} people, {row['noisy']} of them at random" for row in by_bucket)
    low, high = (f"{100 * share:.0f}" for share in screening.NOISY)
    introduction = SCREENING.format(studies=record["studies"], people=screening.PEOPLE, low=low, high=high)
    again = f"`python -m tools.proofs.calibration.screening --studies {record['studies']}` measures this again."
    return introduction + "\n".join(screening.table(record["rows"])) + f"\n\nCounted answers: {sizes}.\n{again}\n\n"


def _share_and_limit(row: dict[str, Any], name: str) -> str:
    if row.get(name) is None:
        return ""
    share = _share(row[name] / row["studies"])
    bold = "**" if name in studies.broken_limits(row) else ""
    return f"{bold}{share}{bold} ({_share(studies.limits(row)[name])})"


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
        + _claims_section()
        + _candidates_section()
        + shares.section()
        + _groups_section()
        + _studies_section()
        + _screening_section()
        + OTHERS
        + _table([row for row in found if not row["is_ours"]], promises=True)
        + _limits_section()
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
