"""The tables and figures of the Genie paper, from the labels of a board.

Reference: Genie (Khashabi et al. 2022), Tables 2, 3 and 6, Figures 2 and 3, Appendix C.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from analysis.metrics.scoring import scored_sections
from studies.figures import Axis, Frame, at
from studies.protocols import REGISTRY

from . import table
from .stored import Shown, board_response, get_shown, kept

LEFT, RIGHT, TOP, ROW = 240, 730, 16, 22
WIDTH = 780
AGGREGATE_NAMES = {"mean": "mean", "majority": "majority vote"}


@require_safe
def paper_page(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Show the paper's tables and figures for one snapshot of a board of scores."""
    shown = get_shown(request, slug, number)
    return board_response(request, shown.board, _paper_html(shown), changed_at=shown.changed_at)


@kept
def _paper_html(shown: Shown) -> str:
    result = shown.result
    names = {row["submission"]: row["name"] for row in shown.rows}
    labels = {criterion["key"]: criterion["label"] for criterion in result["criteria"]}
    studies = [one for one in result.get("paper", ()) if one["submission"] in names]
    experts = [one for one in result.get("experts", ()) if one["submission"] in names]
    context = {
        "board": shown.board,
        "snapshot": shown.snapshot,
        "has_metrics": shown.metrics_at is not None,
        "is_preferences": result["kind"] == "preferences",
        "criteria": result["criteria"],
        # Snapshots of before 2026-11-30 have no sizes.
        "datasets": result.get("datasets", ()),
        "tasks": ", ".join(
            dict.fromkeys(REGISTRY[one.protocol].label for one in scored_sections(shown.board.template))
        ),
        "lines": _score_lines(result, shown.rows),
        "days": _day_lines(studies, names, labels),
        "day_figure": _day_figure(studies, names, labels, experts),
        "experts": [
            one
            | {"name": names[one["submission"]], "criterion": labels.get(one["criterion"], one["criterion"])}
            | {"score": table.score_text(one), "crowd": _number(one["crowd"])}
            for one in experts
        ],
        "spreads": spread_lines(studies, labels),
        "double": result.get("double_labels"),
        "calendar": _calendar_tables(result.get("days", {})),
        "costs": _cost_lines(result.get("precision", ()), names),
        "currency": next((one["currency"] for one in result["rounds"]), ""),
    }
    context["spread_figure"] = _spread_figure(context["spreads"])
    return render_to_string("boards/paper.html", context)


def _score_lines(result: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the paper's score of each system and criterion, with heval's beside the overall one."""
    lines = []
    for row in rows:
        overall = table.overall_of(result, row)
        paper = overall.get("paper", {})
        lines.append(
            {
                "name": row["name"],
                "scores": [
                    table.score_text(row["scores"].get(criterion["key"], {}).get("paper", {}))
                    for criterion in result["criteria"]
                ],
                "recommended": table.score_text(overall),
                "labels": paper.get("n", 0),
                "worst_case": _number(paper.get("worst_case_se"), 2),
            }
        )
    return lines


def _number(value: float | None, digits: int = 1) -> str:
    return table.UNDEFINED if value is None else f"{value:.{digits}f}"


def _day_lines(
    studies: Sequence[Mapping[str, Any]], names: Mapping[int, str], labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the rows of the paper's Figure 2: the score of a system in a round, by scale and aggregation."""
    return [
        {
            "name": names[one["submission"]],
            "criterion": labels.get(one["criterion"], one["criterion"]),
            "aggregate": AGGREGATE_NAMES[one["aggregate"]],
            "round": one["round"],
            "day": one["day"] or "",
            "score": _number(one["score"]),
            "unilabel": f"{_number(one['score'])} ± {_number(one['sd_unilabel'])}",
            "multilabel": f"{_number(one['score'])} ± {_number(one['sd_multilabel'])}",
            "outputs": one["outputs"],
            "labels": one["labels_per_output"],
        }
        for one in studies
    ]


def _day_figure(
    studies: Sequence[Mapping[str, Any]],
    names: Mapping[int, str],
    labels: Mapping[str, str],
    experts: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return Figure 2 for the system that was scored with several labels in most rounds: one row for each round and aggregation.

    Across the rows of a criterion, a line shows the score by experts.
    """
    if not studies:
        return {}
    rounds_of: dict[int, set[int]] = {}
    for one in studies:
        rounds_of.setdefault(one["submission"], set()).add(one["round"])
    system = max(rounds_of, key=lambda number: (len(rounds_of[number]), -number))
    own = sorted(
        (one for one in studies if one["submission"] == system),
        key=lambda one: (one["criterion"], one["aggregate"], one["round"]),
    )
    spreads = ("sd_multilabel", "sd_unilabel")
    ends = [one["score"] + sign * one[spread] for one in own for spread in spreads for sign in (-1, 1)]
    by_experts = {one["criterion"]: one["estimate"] for one in experts if one["submission"] == system}
    ends += by_experts.values()
    axis = Axis(ends, LEFT, RIGHT)
    marks = []
    for place, one in enumerate(own):
        y = TOP + ROW * place + ROW / 2
        marks.append(
            {
                "text": f"{labels.get(one['criterion'], one['criterion'])}, {AGGREGATE_NAMES[one['aggregate']]}, round {one['round']}",
                "y": at(y),
                "baseline": at(y + 4),
                "dot": at(axis.place(one["score"])),
                "wide_low": at(axis.place(one["score"] - one["sd_multilabel"])),
                "wide_high": at(axis.place(one["score"] + one["sd_multilabel"])),
                "low": at(axis.place(one["score"] - one["sd_unilabel"])),
                "high": at(axis.place(one["score"] + one["sd_unilabel"])),
            }
        )
    lines = []
    for criterion, score in by_experts.items():
        places = [place for place, one in enumerate(own) if one["criterion"] == criterion]
        if places:
            high, low = (at(TOP + ROW * place) for place in (places[0], places[-1] + 1))
            lines.append({"x": at(axis.place(score)), "high": high, "low": low})
    return {
        "frame": _frame(axis, len(marks), "Score, 0 to 100"),
        "marks": marks,
        "experts": lines,
        "names_end": LEFT - 10,
        "name": names[system],
    }


def spread_lines(studies: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rows of the paper's Figure 3: the spread of scores by scale, aggregation and labels per output.

    The spread is the root of the mean square over systems and rounds.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in studies:
        groups.setdefault((one["criterion"], one["aggregate"]), []).append(one)
    lines = []
    for (criterion, aggregate), members in sorted(groups.items()):
        spread = {
            kind: math.sqrt(sum(one[f"sd_{kind}"] ** 2 for one in members) / len(members))
            for kind in ("unilabel", "multilabel")
        }
        lines.append(
            {
                "criterion": labels.get(criterion, criterion),
                "aggregate": AGGREGATE_NAMES[aggregate],
                "n": len(members),
                "unilabel": spread["unilabel"],
                "multilabel": spread["multilabel"],
                "unilabel_text": _number(spread["unilabel"], 2),
                "multilabel_text": _number(spread["multilabel"], 2),
            }
        )
    return lines


def _spread_figure(lines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if not lines:
        return {}
    axis = Axis([0, *(line[kind] for line in lines for kind in ("unilabel", "multilabel"))], LEFT, RIGHT)
    marks = []
    for place, line in enumerate(lines):
        y = TOP + 2 * ROW * place
        marks.append(
            {
                "text": f"{line['criterion']}, {line['aggregate']}",
                "baseline": at(y + ROW + 2),
                "first_y": at(y + 4),
                "second_y": at(y + ROW),
                "first_width": at(axis.place(line["unilabel"]) - LEFT),
                "second_width": at(axis.place(line["multilabel"]) - LEFT),
            }
        )
    return {
        "frame": _frame(axis, 2 * len(lines), "Standard deviation of the score, in points"),
        "marks": marks,
        "names_end": LEFT - 10,
    }


def _frame(axis: Axis, n_rows: int, label: str) -> Frame:
    bottom = TOP + ROW * n_rows + 4
    return Frame(WIDTH, bottom + 44, LEFT, RIGHT, TOP, bottom, axis.ticks, across_label=label, has_columns=True)


def _cost_lines(precision: Sequence[Mapping[str, Any]], names: Mapping[int, str]) -> list[dict[str, Any]]:
    """Return what labels cost and bring: the largest worst case of all systems, and the range of what was measured."""
    curves = [one for one in precision if one["submission"] in names]
    if not curves:
        return []
    lines = []
    for place, n in enumerate(curves[0]["labels"]):
        measured = [one["measured_se"][place] for one in curves if one["measured_se"][place] is not None]
        lines.append(
            {
                "labels": n,
                "cost": _number(curves[0]["costs"][place], 2),
                "bound": _number(50 / math.sqrt(n), 2),
                "worst_case": _number(max(one["worst_case_se"][place] for one in curves), 2),
                "measured": f"{_number(min(measured), 2)} to {_number(max(measured), 2)}"
                if measured
                else table.UNDEFINED,
            }
        )
    return lines


def _calendar_tables(days: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tables of days and weekdays: how answers about the same systems differ from those of the first one."""
    tables = []
    for kind, title in (("weekday", "Weekday"), ("day", "Day")):
        if kind not in days:
            continue
        found = days[kind]
        p = found["pvalue"]
        tables.append(
            {
                "title": title,
                "joint": f"joint test: p = {p:.3f}" if p is not None else f"no test: {found['reason']}",
                "n": found["n"],
                "lines": [
                    {
                        "name": one["name"].lstrip("0123456789 ") if kind == "weekday" else one["name"],
                        "effect": table.UNDEFINED if one["estimate"] is None else table.signed(one["estimate"]),
                        "interval": table.UNDEFINED
                        if one["low"] is None
                        else f"{table.signed(one['low'])} to {table.signed(one['high'])}",
                    }
                    for one in found["effects"]
                ],
            }
        )
    return tables
