"""The page of a snapshot's metrics beside people. It shows a stored table and computes nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from analysis.metrics.pages.views import pair_rows, scatter_figure
from analysis.protocols.blocks.cells import GROUP, plural_noun
from analysis.protocols.blocks.populations import groups_sentence
from boards.models import BoardMetricTable
from boards.services.metric_tables import newest_table

from . import table
from .stored import Shown, board_response, get_shown, kept

MEASURES = {
    "pearson": "Pearson",
    "corrected": "Pearson without noise",
    "spearman": "Spearman",
    "kendall": "Kendall",
    "accuracy": "Pairs in the same order",
    "soft_pairwise_accuracy": "Soft pairwise accuracy",
    "segment_tau": "Kendall within prompts",
    "tie_calibrated_accuracy": "Accuracy with ties",
}
# Tables of before 2026-11-27 have no such measures.
NOT_COMPUTED = {"estimate": None, "low": None, "high": None, "is_interval": False, "reason": ""}


@require_safe
def metrics_page(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Show the metrics of a snapshot's systems beside their scores by people."""
    shown = get_shown(request, slug, number)
    stored = newest_table(shown.snapshot)
    if stored is None:
        raise Http404("No metrics were computed for this snapshot.")
    # An unknown metric counts as no choice, so that addresses with nonsense do not fill the memory of pages.
    known = {one["key"] for found in stored.result["tables"] for one in found["metrics"]}
    chosen = next((key for key in request.GET.getlist("metric") if key in known), "")
    return board_response(request, shown.board, _metrics_html(shown, stored, chosen), changed_at=shown.changed_at)


@kept
def _metrics_html(shown: Shown, stored: BoardMetricTable, chosen: str) -> str:
    labels = {criterion["key"]: criterion["label"] for criterion in shown.result["criteria"]}
    # A withdrawn submission asks to be forgotten, so that its row is not shown.
    names = {number: one["name"] for number, one in shown.facts.items() if not one["is_withdrawn"]}
    context = {
        "board": shown.board,
        "snapshot": shown.snapshot,
        "at": stored.at,
        "level": f"{100 * stored.result['level']:g}",
        "measures": MEASURES.values(),
        "tables": [_table_context(one, labels, names, chosen) for one in stored.result["tables"]],
    }
    return render_to_string("boards/metrics.html", context)


def _table_context(
    found: Mapping[str, Any], labels: Mapping[str, str], names: Mapping[int, str], chosen: str
) -> dict[str, Any]:
    rows = [row for row in found["rows"] if row["submission"] in names]
    counts = {one["n"] for row in rows for one in row["metrics"].values() if one["n"]}
    n_prompts = counts.pop() if len(counts) == 1 else None
    sampled = "prompt" if found.get("n_groups") is None else found.get("group_noun", GROUP)
    # Where people chose between two outputs, the paper has no score by people.
    has_paper = any(row["human"]["estimate"] is not None for row in found["paper"])
    drawn = _drawn(found, names, chosen)
    return {
        "key": found["criterion"],
        "label": labels.get(found["criterion"], found["criterion"]),
        "reason": found["reason"],
        "metrics": found["metrics"],
        "has_paper": has_paper,
        "paper": [
            _paper_line(row, found["metrics"], names, has_people=has_paper)
            for row in found["paper"]
            if row["submission"] in names
        ],
        "n_prompts": n_prompts,
        "groups": groups_sentence(found),
        "sampled_one": sampled,
        "sampled": plural_noun(sampled),
        "lines": [_line(row, found["metrics"], names) for row in rows],
        "agreements": [_agreement_line(one, found["metrics"]) for one in found["agreements"]],
        "drawn": drawn,
        "figure": scatter_figure(drawn["systems"]) if drawn else {},
        "pairs": pair_rows(_labelled_pairs(found), MEASURES),
        "reasons": _reasons(rows, found, names),
    }


def _labelled_pairs(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the comparisons of metrics with the names that the other tables show. Tables of before 2026-11-27 have none."""
    labels = {one["key"]: one["label"] for one in found["metrics"]}
    return [
        row | {side: row[side] | {"name": labels[row[side]["metric"]]} for side in ("first", "second")}
        for row in found.get("comparisons", ())
    ]


def _drawn(found: Mapping[str, Any], names: Mapping[int, str], chosen: str) -> dict[str, Any] | None:
    """Return the metric of the figure: the chosen one, or the first that scored two systems. Tables of before 2026-11-27 have none."""
    facts = {one["key"]: one for one in found["metrics"]}
    means = {
        one["metric"]: [row | {"system": names[row["submission"]]} for row in one["rows"] if row["submission"] in names]
        for one in found.get("means", ())
    }
    keys = [key for key, rows in means.items() if len(rows) > 1]
    if not keys:
        return None
    key = chosen if chosen in keys else keys[0]
    own = facts[key]
    systems = sorted(means[key], key=lambda row: -row["people"])
    return {"metric": key, "name": own["label"], "version": own["version"], "systems": systems}


def _paper_line(
    row: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], names: Mapping[int, str], *, has_people: bool
) -> dict[str, Any]:
    cells = [(_number(row["metrics"][one["key"]]), one["key"] in row["bold"]) for one in metrics]
    people = [(table.score_text(row["human"]), "human" in row["bold"])] if has_people else []
    return {"name": names[row["submission"]], "cells": [*people, *cells]}


def _line(row: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], names: Mapping[int, str]) -> dict[str, Any]:
    scores = [row["metrics"][one["key"]] for one in metrics]
    return {
        "name": names[row["submission"]],
        "rank": table.rank_text(row["human"]),
        "human": table.score_text(row["human"]),
        "cells": [{"text": table.score_text(one), "n": one["n"]} for one in scores],
    }


def _agreement_line(one: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    facts = next(metric for metric in metrics if metric["key"] == one["metric"])
    return {
        "key": one["metric"],
        "label": facts["label"],
        "version": facts["version"],
        "cells": [_cell(one.get(name, NOT_COMPUTED)) for name in MEASURES],
    }


def _cell(measure: Mapping[str, Any]) -> dict[str, Any]:
    low, high = measure["low"], measure["high"]
    spread = "" if low is None or high is None else f"{_share(low)} to {_share(high)}"
    return {"text": _share(measure["estimate"]), "range": spread, "is_interval": measure["is_interval"]}


def _share(value: float | None) -> str:
    return table.UNDEFINED if value is None else f"{value:.2f}".replace("-", table.MINUS)


def _number(value: float | None) -> str:
    return table.UNDEFINED if value is None else table.signed(value)


def _reasons(rows: Sequence[Mapping[str, Any]], found: Mapping[str, Any], names: Mapping[int, str]) -> list[str]:
    """Return why numbers and intervals are missing, each reason once."""
    label_of = {one["key"]: one["label"] for one in found["metrics"]}
    reasons = [
        f"{label_of[key]} of {names[row['submission']]}: {score['reason']}"
        for row in rows
        for key, score in row["metrics"].items()
        if score["reason"]
    ]
    reasons += [
        f"Score of {names[row['submission']]}: {row['human']['reason']}" for row in rows if row["human"]["reason"]
    ]
    reasons += [
        f"{label}, {label_of[one['metric']]}: {one[name]['reason']}"
        for one in found["agreements"]
        for name, label in MEASURES.items()
        if name in one and one[name]["reason"]
    ]
    return list(dict.fromkeys(reasons))
