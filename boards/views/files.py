"""Files of a snapshot: tables as CSV, JSON and LaTeX, figures and badges as SVG."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_safe

from analysis.report.plots import escape_latex
from boards.services.snapshots import public_result
from studies.figures import at, shortened
from studies.stimuli.rows import formula_safe_csv_text

from . import figures, table
from .pages import chosen_systems, history_of
from .stored import Shown, board_response, get_shown, kept

SCORE_COLUMNS = ("estimate", "low", "high", "rank_low", "rank_high", "labels", "annotators", "prompts")
RATING_COLUMNS = ("rating", "rating_low", "rating_high")
# What a JSON file says of each submission.
FACTS = ("name", "team", "url", "is_anchor", "is_human", "is_reference", "is_withdrawn", "received")
PICTURE = "image/svg+xml"


@require_safe
def snapshot_file(request: HttpRequest, slug: str, number: int, file_format: str) -> HttpResponse:
    """Return the table of a snapshot as CSV, JSON or LaTeX (booktabs)."""
    shown = get_shown(request, slug, number)
    match file_format:
        case "csv":
            content, kind = csv_text(shown), "text/csv"
        case "json":
            content, kind = json_text(shown), "application/json"
        case "tex":
            content, kind = latex_text(shown), "text/x-tex"
        case _:
            raise Http404("A snapshot has no file of this kind. Ask for csv, json or tex.")
    filename = f"{shown.board.slug}-{shown.number}.{file_format}"
    return board_response(request, shown.board, content, kind, changed_at=shown.changed_at, filename=filename)


@kept
def csv_text(shown: Shown) -> str:
    """Return one row per system with all stored numbers. Scores are in points, as in the JSON file."""
    keys = [criterion["key"] for criterion in shown.result["criteria"]]
    columns = SCORE_COLUMNS + (RATING_COLUMNS if table.has_ratings(shown.result) else ())
    header = ["submission", "system", "team", "marks", *(f"{key}_{name}" for key in keys for name in columns)]
    lines: list[list[Any]] = [[*header, "cost", "currency", "round", "received"]]
    currencies = {facts["number"]: facts.get("currency") for facts in shown.result["rounds"]}
    for row in shown.rows:
        scores = [row["scores"].get(key, {}).get(name) for key in keys for name in columns]
        cost = [row.get("cost"), currencies.get(row.get("round")), row.get("round"), row["received"]]
        lines.append([row["submission"], row["name"], row["team"], " ".join(table.marks_of(row)), *scores, *cost])
    return formula_safe_csv_text(lines)


@kept
def json_text(shown: Shown) -> str:
    """Return the stored result, so that its hash can be checked, and what may be said of rounds and submissions now."""
    result = public_result(shown.result)
    return json.dumps(
        {
            "board": shown.board.slug,
            "title": shown.board.title,
            "snapshot": shown.number,
            "at": shown.snapshot.at.isoformat(),
            "address": settings.SITE_URL + reverse("board_snapshot", args=[shown.board.slug, shown.number]),
            "result_sha256": shown.snapshot.result_sha256,
            **({} if result == shown.result else {"left_out": ["rounds.study"]}),
            "withdrawn_scored": len(shown.withdrawals),
            "draws": shown.draws,
            "submissions": {str(row["submission"]): {name: row[name] for name in FACTS} for row in shown.rows},
            "result": result,
        },
        default=datetime.isoformat,
        ensure_ascii=False,
        allow_nan=False,
        indent=1,
    )


@kept
def latex_text(shown: Shown) -> str:
    """Return a booktabs table with the distances to the ends of the intervals beside each score."""
    criteria = shown.result["criteria"]
    rating = ["Rating"] if table.has_ratings(shown.result) else []
    head = ["Rank set", "System", *(one["label"].capitalize() for one in criteria), *rating, "Labels", "Annotators"]
    body = []
    for row in shown.rows:
        overall = table.overall_of(shown.result, row)
        name = escape_latex(row["name"])
        cells = [
            escape_latex(table.rank_text(overall)),
            rf"\textbf{{{name}}}" if overall.get("rank_low") == 1 else name,
            *(_latex_score(row["scores"].get(one["key"], {})) for one in criteria),
            *([_latex_rating(overall)] if rating else []),
            *(str(overall.get(key, "--")) for key in ("labels", "annotators")),
        ]
        body.append(" & ".join(cells) + r" \\")
    title = f"{shown.board.title}, snapshot {shown.number} ({shown.snapshot.at.date().isoformat()})"
    notes = [table.population_sentence(shown.result), table.labels_sentence(shown.result)]
    if shown.result.get("is_simulated"):
        notes.insert(0, "Simulated: robots gave the answers.")
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape_latex(title)}}}",
            rf"\label{{tab:{shown.board.slug}}}",
            rf"\begin{{tabular}}{{rl{'r' * (len(head) - 2)}}}",
            r"\toprule",
            " & ".join(escape_latex(text) for text in head) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\par\smallskip\footnotesize {escape_latex(' '.join(notes))}",
            r"\end{table}",
            "",
        ]
    )


def _latex_score(score: Mapping[str, Any]) -> str:
    """Return a score with its interval as exponent and index.

    >>> _latex_score({"estimate": 80.8, "low": 78.6, "high": 82.9})
    '$80.8^{+2.1}_{-2.2}$'
    """
    estimate, low, high = (score.get(name) for name in ("estimate", "low", "high"))
    if estimate is None:
        return "--"
    if low is None or high is None:
        return f"${estimate:.1f}$"
    return f"${estimate:.1f}^{{+{high - estimate:.1f}}}_{{-{estimate - low:.1f}}}$"


def _latex_rating(score: Mapping[str, Any]) -> str:
    """Return a rating in points with its interval.

    >>> _latex_rating({"rating": 1071.6, "rating_low": 1050.2, "rating_high": 1092.0}), _latex_rating({})
    ('$1072^{+20}_{-21}$', '--')
    """
    rating, low, high = (score.get(name) for name in RATING_COLUMNS)
    if rating is None:
        return "--"
    return (
        f"${rating:.0f}$"
        if low is None or high is None
        else f"${rating:.0f}^{{+{high - rating:.0f}}}_{{-{rating - low:.0f}}}$"
    )


@require_safe
def snapshot_figure(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Return the figure of a snapshot with all its systems, as SVG."""
    shown = get_shown(request, slug, number)
    return board_response(request, shown.board, _scores_svg(shown), PICTURE, changed_at=shown.changed_at)


@kept
def _scores_svg(shown: Shown) -> str:
    return _svg(shown, "_scores.svg", figures.scores_figure(shown.result, shown.rows))


@require_safe
def history_picture(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the figure of scores over snapshots, as SVG."""
    shown = get_shown(request, slug)
    svg = _history_svg(shown, chosen_systems(request, shown))
    return board_response(request, shown.board, svg, PICTURE, changed_at=shown.changed_at)


@kept
def _history_svg(shown: Shown, chosen: tuple[int, ...]) -> str:
    return _svg(shown, "_history.svg", history_of(shown, chosen)["figure"])


def _svg(shown: Shown, name: str, figure: Mapping[str, Any]) -> str:
    if not figure:
        raise Http404("This snapshot has no score to draw.")
    return render_to_string(f"boards/{name}", {"board": shown.board, "is_file": True, "figure": figure})


@require_safe
def badge(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Return a badge with the newest rank set and score of a submission. Its address is permanent."""
    shown = get_shown(request, slug)
    if number not in shown.facts:
        raise Http404("This submission does not exist.")
    return board_response(request, shown.board, _badge_svg(shown, number), PICTURE, changed_at=shown.changed_at)


@kept
def _badge_svg(shown: Shown, number: int) -> str:
    row = next((row for row in shown.rows if row["submission"] == number), None)
    if row is None:
        raise Http404("The newest snapshot does not have this submission.")
    overall = table.overall_of(shown.result, row)
    value = f"rank {table.rank_text(overall)}, {table.score_text(overall)}"
    if row["is_withdrawn"]:
        value = "withdrawn"
    elif shown.result.get("is_simulated"):
        value += " (simulated)"
    label = shortened(shown.board.title, figures.LONGEST_NAME)
    # About the width of the letters of a sans-serif font at 11 pixels.
    widths = [12 + 6.3 * len(text) for text in (label, value)]
    context = {
        "label": label,
        "value": value,
        "text": f"{shown.board.title}: {value}",
        "width": at(sum(widths)),
        "label_width": at(widths[0]),
        "label_middle": at(widths[0] / 2),
        "value_middle": at(widths[0] + widths[1] / 2),
    }
    return render_to_string("boards/badge.svg", context)
