"""Public pages of boards. They show stored snapshots, compute nothing, set no cookie and need no script."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.contrib.syndication.views import Feed
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.views.decorators.http import require_safe

from boards.access import boards_of, get_visible_board
from boards.models import Board, BoardRound, BoardSnapshot, SubmittedOutput
from boards.services.snapshots import public_draws
from studies.design.draw import seeded_random
from studies.models import Output, Study
from studies.stimuli.images import MEDIA_TYPE, ImageRefused, image_path
from studies.stimuli.markdown import render_markdown

from . import figures, table
from .stored import (
    MAX_AGE,
    POLICY,
    Shown,
    board_response,
    change_times,
    find_shown,
    finish,
    get_shown,
    kept,
    newest_snapshots,
)

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
        "checks": table.check_sentences(shown.result),
        "reasons": table.reasons(shown.result),
        "samples": table.sample_sentences(shown.result),
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
        "population": table.population_sentence(shown.result),
        "labels": table.labels_sentence(shown.result),
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


# Example outputs: a few prompts with the outputs of all published systems, if the owner shows them.


SHOWN_PROMPTS = 5


@require_safe
def examples_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the outputs of all published systems for one of a few prompts, if the board shows examples."""
    shown = _get_shown_with_examples(request, slug)
    keys = example_keys(shown)
    asked = request.GET.get("prompt", "")
    number = int(asked) if asked.isdecimal() and 1 <= int(asked[:4]) <= len(keys) else 1
    is_collecting = _is_collecting(shown)
    context: dict[str, Any] = {
        "board": shown.board,
        "numbers": range(1, len(keys) + 1),
        "number": number,
        "is_collecting": is_collecting,
    }
    if not is_collecting:
        context |= _outputs(shown, keys[number - 1])
    html = render_to_string("boards/examples.html", context)
    return board_response(request, shown.board, html, changed_at=shown.changed_at)


@require_safe
def example_image(request: HttpRequest, slug: str, prompt: int, submission: int = 0) -> HttpResponse:
    """Return the image of an example, or of its prompt. Only what the page of examples shows now has an address."""
    shown = _get_shown_with_examples(request, slug)
    keys = example_keys(shown)
    if _is_collecting(shown) or not 1 <= prompt <= len(keys):
        raise Http404("This image does not exist.")
    media = _media(shown, keys[prompt - 1], submission)
    try:
        data = image_path(settings.MEDIA_ROOT, media or "").read_bytes()
    except (ImageRefused, OSError):
        raise Http404("This image does not exist.") from None
    return finish(request, shown.board, HttpResponse(data, content_type=MEDIA_TYPE), changed_at=shown.changed_at)


def _media(shown: Shown, key: str, submission: int) -> str | None:
    """Return the name of a stored image. ``submission``: 0 for the prompt's own image. A hidden submission has none."""
    prompts = shown.board.template.prompts.filter(key=key)
    if not submission:
        return prompts.values_list("media", flat=True).first()
    row = next((row for row in shown.rows if row["submission"] == submission and row["is_named"]), None)
    if row is None:
        return None
    if row["is_reference"]:
        own = Output.objects.filter(system__study=shown.board.template_id, prompt__in=prompts, sample=0)
        return own.filter(system__name=row["name"]).values_list("media", flat=True).first()
    sent = SubmittedOutput.objects.filter(submission__board=shown.board, submission__number=submission, prompt_key=key)
    return sent.values_list("media", flat=True).first()


def _get_shown_with_examples(request: HttpRequest, slug: str) -> Shown:
    shown = get_shown(request, slug)
    if not shown.board.shows_examples:
        raise Http404("This board shows no example outputs.")
    return shown


def _is_collecting(shown: Shown) -> bool:
    return BoardRound.objects.filter(board=shown.board, study__state__in=Study.COLLECTING_STATES).exists()


def example_keys(shown: Shown) -> list[str]:
    """Return the prompts that are shown: the same ones on each visit, drawn with the board's seed."""
    samples = [set(keys) for keys in shown.board.samples.values_list("keys", flat=True)]
    # All systems answered the prompts of all samples. After many renewals there may be none.
    keys = sorted(set.intersection(*samples) or samples[-1])
    return seeded_random(shown.board.seed, "board", "examples").sample(keys, min(SHOWN_PROMPTS, len(keys)))


def _outputs(shown: Shown, key: str) -> dict[str, Any]:
    """Return the prompt and the outputs of the systems of the snapshot that have a name."""
    board = shown.board
    prompt = board.template.prompts.get(key=key)
    named = [row for row in shown.rows if row["is_named"]]
    submitted = SubmittedOutput.objects.filter(submission__board=board, prompt_key=key)
    sent = {n: (text, bool(media)) for n, text, media in submitted.values_list("submission__number", "text", "media")}
    own = Output.objects.filter(system__study=board.template_id, prompt=prompt, sample=0)
    by_name = {name: (text, bool(media)) for name, text, media in own.values_list("system__name", "text", "media")}
    outputs = []
    for row in named:
        found, key_of_row = (by_name, row["name"]) if row["is_reference"] else (sent, row["submission"])
        text, is_image = found.get(key_of_row, ("", False))
        outputs.append({"name": row["name"], "number": row["submission"], "text": text, "is_image": is_image})
    return {"prompt": prompt, "outputs": outputs}


# Feeds of a board's snapshots.


SHOWN_SNAPSHOTS = 10


class SnapshotFeed(Feed):
    """The snapshots of a board as RSS, newest first. No name of a system is in it: a reader keeps what it has read."""

    def __call__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        board = get_visible_board(request.user, kwargs["slug"])
        newest = newest_snapshots(board).first()
        changed_at = newest.at if newest else board.opened_at or board.created_at
        return finish(request, board, super().__call__(request, found=board), changed_at=changed_at)

    def get_object(self, request: HttpRequest, found: Board) -> Board:
        return found

    def title(self, board: Board) -> str:
        return f"{board.title}: snapshots"

    def link(self, board: Board) -> str:
        return reverse("board", args=[board.slug])

    def description(self, board: Board) -> str:
        return f"Results of the leaderboard “{board.title}”, as they are computed."

    def items(self, board: Board) -> list[tuple[BoardSnapshot, str]]:
        shown = find_shown(board)
        return _snapshots_and_words(shown) if shown else []

    def item_title(self, item: tuple[BoardSnapshot, str]) -> str:
        return f"Snapshot {item[0].number}"

    def item_description(self, item: tuple[BoardSnapshot, str]) -> str:
        return item[1]

    def item_link(self, item: tuple[BoardSnapshot, str]) -> str:
        # The board is known by the list from which the snapshot comes.
        return reverse("board_snapshot", args=[item[0].board.slug, item[0].number])

    def item_pubdate(self, item: tuple[BoardSnapshot, str]):
        return item[0].at


@kept
def _snapshots_and_words(shown: Shown) -> list[tuple[BoardSnapshot, str]]:
    snapshots = shown.board.snapshots.order_by("-number")[:SHOWN_SNAPSHOTS]
    return [(one, f"{table.labels_sentence(one.result)} {table.population_sentence(one.result)}") for one in snapshots]


class AtomSnapshotFeed(SnapshotFeed):
    """The snapshots of a board as Atom, newest first."""

    feed_type = Atom1Feed

    def subtitle(self, board: Board) -> str:
        return self.description(board)
