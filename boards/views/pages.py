"""Public pages of boards. They show stored snapshots, compute nothing, set no cookie and need no script."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from boards.access import boards_of, get_visible_board
from boards.models import Board
from boards.services.snapshots import public_draws
from studies.stimuli.markdown import render_markdown

from . import figures, sentences, table
from .responses import MAX_AGE, POLICY, board_response
from .stored import Shown, change_times, find_shown, get_shown, kept

FIGURE_ROWS = 30
HISTORY_SNAPSHOTS = 24
HISTORY_LINES = 8


@require_safe
def board_list_page(request: HttpRequest) -> HttpResponse:
    """List the public boards and, for a researcher who is logged in, their own."""
    public = Board.objects.filter(visibility=Board.Visibility.PUBLIC).exclude(state=Board.State.DRAFT)
    own = boards_of(request.user).exclude(pk__in=public.values("pk"))
    context = {"title": "Leaderboards", "public": public.order_by("title"), "own": own.order_by("title")}
    response = HttpResponse(render_to_string("boards/list.html", context))
    # The page differs between readers: Django adds that it varies by the session's cookie.
    response["Cache-Control"] = "private, no-cache" if request.user.is_authenticated else f"public, max-age={MAX_AGE}"
    response["Content-Security-Policy"] = POLICY + "'none'"
    return response


@require_safe
def board_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the newest results of a board: a figure, then the table of systems."""
    visible = get_visible_board(request.user, slug)
    shown = find_shown(visible)
    if shown is None:
        draws = public_draws(visible)
        context = {"board": visible, "description": _description(visible), "draws": draws}
        changed_at = max([visible.opened_at or visible.created_at, *change_times(draws)])
        return board_response(request, visible, render_to_string("boards/board.html", context), changed_at=changed_at)
    return _results_page(request, shown)


@require_safe
def snapshot_page(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Show one snapshot of a board. Its address is permanent."""
    return _results_page(request, get_shown(request, slug, number))


def _description(board: Board) -> str:
    return render_markdown(board.description) if board.description else ""


def _results_page(request: HttpRequest, shown: Shown) -> HttpResponse:
    asked = request.GET.get("sort", "")
    order = asked if asked in _orders(shown) else table.DEFAULT_ORDER
    return board_response(request, shown.board, _results_html(shown, order), changed_at=shown.changed_at)


@kept
def _orders(shown: Shown) -> frozenset[str]:
    return table.known_orders(shown.result)


@kept
def _results_html(shown: Shown, order: str) -> str:
    context = _results_context(shown, order) | {
        "description": _description(shown.board),
        "site": settings.SITE_URL,
        "figure": figures.scores_figure(shown.result, shown.rows, FIGURE_ROWS),
        "checks": sentences.check_sentences(shown.result),
        "reasons": sentences.reasons(shown.result),
        "samples": sentences.sample_sentences(shown.result),
        "draws": shown.draws,
        "withdrawn": len(shown.withdrawals),
        "has_metrics": shown.metrics_at is not None,
        "categories": table.categories(shown.result, shown.facts),
    }
    return render_to_string("boards/board.html", context)


def _results_context(shown: Shown, order: str) -> dict[str, Any]:
    """Return what the table of a snapshot needs."""
    return {
        "board": shown.board,
        "snapshot": shown.snapshot,
        "is_newest": shown.number == shown.newest,
        "result": shown.result,
        "population": sentences.population_sentence(shown.result),
        "labels": sentences.labels_sentence(shown.result),
        "level": f"{100 * shown.result.get('level', 0.95):g}",
        "lines": table.as_lines(shown.result, table.sort_rows(shown.result, shown.rows, order)),
        "heads": table.heads(shown.result, order),
    }


@require_safe
def embedded_table(request: HttpRequest, slug: str, number: int | None = None) -> HttpResponse:
    """Show the table alone, for other sites to frame."""
    shown = get_shown(request, slug, number)
    # A private board is framed by nobody: its reader's session must not be used by another site.
    is_framable = shown.board.is_public
    return board_response(
        request, shown.board, _embedded_html(shown), changed_at=shown.changed_at, is_framable=is_framable
    )


@kept
def _embedded_html(shown: Shown) -> str:
    context = _results_context(shown, table.DEFAULT_ORDER) | {"is_embedded": True}
    return render_to_string("boards/embed.html", context)


def history_of(shown: Shown, chosen: Sequence[int] = ()) -> dict[str, Any]:
    """Return the scores of the systems of the newest snapshot over the last snapshots, oldest first.

    ``chosen``: the submissions that the figure draws; without any, the best ones.
    """
    snapshots = list(shown.board.snapshots.order_by("-number")[:HISTORY_SNAPSHOTS])[::-1]
    overall: list[Mapping[int, Mapping[str, Any]]] = [
        {row["submission"]: table.overall_of(snapshot.result, row) for row in snapshot.result["rows"]}
        for snapshot in snapshots
    ]
    sizes = [len(snapshot.result.get("samples", ())) for snapshot in snapshots]
    renewed = [place for place, (before, after) in enumerate(zip(sizes, sizes[1:], strict=False), 1) if after > before]
    series = []
    for row in shown.rows:
        scores = [by_number.get(row["submission"]) for by_number in overall]
        series.append(
            {
                "number": row["submission"],
                "name": row["name"],
                "may_be_first": table.overall_of(shown.result, row).get("rank_low") == 1,
                "scores": scores,
                "texts": [
                    f"{table.score_text(score)} ({table.rank_text(score)})" if score else table.UNDEFINED
                    for score in scores
                ],
            }
        )
    numbers = [snapshot.number for snapshot in snapshots]
    drawn = [one for one in series if one["number"] in chosen] or series
    return {
        "snapshots": snapshots,
        "series": series,
        "chosen": chosen,
        "drawn": [one["number"] for one in drawn[:HISTORY_LINES]],
        "most": HISTORY_LINES,
        "figure": figures.history_figure(drawn[:HISTORY_LINES], numbers, renewed),
        "renewed": [numbers[place] for place in renewed],
    }


@require_safe
def history_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the score and the rank set of each system over the snapshots of a board."""
    shown = get_shown(request, slug)
    html = _history_html(shown, chosen_systems(request, shown))
    return board_response(request, shown.board, html, changed_at=shown.changed_at)


def chosen_systems(request: HttpRequest, shown: Shown) -> tuple[int, ...]:
    """Return the submissions that a reader chose for the figure of the history. Numbers that the snapshot lacks are left out."""
    asked = set(request.GET.getlist("system"))
    return tuple(row["submission"] for row in shown.rows if str(row["submission"]) in asked)


@kept
def _history_html(shown: Shown, chosen: tuple[int, ...]) -> str:
    context = {"board": shown.board, "shown": shown, "label": shown.result["criteria"][0]["label"]}
    return render_to_string("boards/history.html", context | history_of(shown, chosen))
