"""Stored snapshots as pages show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any

from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import http_date

from boards.access import get_visible_board
from boards.models import Board, BoardSnapshot
from boards.services.snapshots import public_draws, public_facts, scored_withdrawals

# Answers of a board's public addresses: who may keep them, when they are unchanged, and who may frame them.


# Short, because a team may withdraw at any time, and its name must then disappear from everywhere.
MAX_AGE = 60
POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "


def board_response(
    request: HttpRequest,
    board: Board,
    content: str,
    content_type: str = "text/html",
    *,
    changed_at: datetime,
    filename: str = "",
    is_framable: bool = False,
) -> HttpResponse:
    """Return the content, or 304 if the client has it. Results of private boards are never stored by a shared cache."""
    response = HttpResponse(content, content_type=f"{content_type}; charset=utf-8")
    if filename:
        response["Content-Disposition"] = f'attachment; filename="{filename}"'
    return finish(request, board, response, changed_at=changed_at, is_framable=is_framable)


def finish(
    request: HttpRequest, board: Board, response: HttpResponse, *, changed_at: datetime, is_framable: bool = False
) -> HttpResponse:
    """Add the headers that all answers of a board have, and answer 304 if the client has the content."""
    etag = f'"{sha256(response.content).hexdigest()[:32]}"'
    response["ETag"] = etag
    response["Last-Modified"] = http_date(changed_at.timestamp())
    response["Cache-Control"] = f"public, max-age={MAX_AGE}" if board.is_public else "private, no-cache"
    unchanged = get_conditional_response(
        request, etag=etag, last_modified=int(changed_at.timestamp()), response=response
    )
    found = unchanged or response
    # A browser takes the headers of a 304 for the page that it kept, so that they must be the same.
    found["Content-Security-Policy"] = POLICY + ("*" if is_framable else "'none'")
    found.xframe_options_exempt = is_framable
    return found


# For functions of a ``Shown``: a process keeps what they return. A page of 200 systems has about 100 KB.
kept = lru_cache(maxsize=32)


@dataclass(frozen=True)
class Shown:
    """A snapshot of a board with the names that everybody may see now. ``newest``: the number of the newest snapshot.

    Two of them are equal if their pages are. So a page is rendered once, and again only after something on it has changed (``kept``).
    """

    board: Board = field(compare=False)
    snapshot: BoardSnapshot = field(compare=False)
    newest: int = field(compare=False)
    facts: Mapping[int, Mapping[str, Any]] = field(compare=False)
    draws: Sequence[Mapping[str, Any]] = field(compare=False)
    withdrawals: Sequence[datetime] = field(compare=False)
    state: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        board, snapshot = self.board, self.snapshot
        shown = (
            board.pk,
            board.slug,
            board.title,
            board.description,
            board.visibility,
            board.state,
            board.shows_examples,
        )
        facts = (self.newest, repr(self.facts), repr(self.draws), len(self.withdrawals), self.metrics_at)
        stored = (snapshot.pk, snapshot.number, snapshot.at, snapshot.result_sha256, *facts)
        object.__setattr__(self, "state", shown + stored)

    @property
    def number(self) -> int:
        return self.snapshot.number

    @property
    def result(self) -> Mapping[str, Any]:
        return self.snapshot.result

    @property
    def metrics_at(self) -> datetime | None:
        return self.snapshot.metrics_at  # type: ignore[attr-defined]  # annotated by newest_snapshots

    @cached_property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows with names, from the best score to the worst."""
        return [row | self.facts[row["submission"]] for row in self.result["rows"]]

    @cached_property
    def changed_at(self) -> datetime:
        """Return when something last changed that the pages of the snapshot say. What they do not say, such as a new submission, is left out."""
        numbers = _numbers_in(self.snapshot.pk, self.snapshot.result_sha256)
        shown = [self.facts[number]["changed_at"] for number in numbers]
        times = [self.snapshot.at, *self.withdrawals, *change_times(self.draws), *shown, self.metrics_at]
        return max(time for time in times if time)


@lru_cache(maxsize=256)
def _numbers_in(snapshot: int, result_sha256: str) -> frozenset[int]:
    """Return the submissions in a snapshot, which never change. A process reads the large result once."""
    rows = BoardSnapshot.objects.values_list("result", flat=True).get(pk=snapshot)["rows"]
    return frozenset(row["submission"] for row in rows)


def change_times(draws: Sequence[Mapping[str, Any]]) -> list[datetime]:
    """Return when each round was launched or, later, closed."""
    return [one["closed_at"] or one["launched_at"] for one in draws]


def newest_snapshots(board: Board):
    """Return the snapshots of a board, newest first, without their results, which are large.

    ``metrics_at``: when metrics were last computed for the snapshot, or None.
    """
    return board.snapshots.defer("result").annotate(metrics_at=Max("metric_tables__at")).order_by("-number")


def find_shown(board: Board, number: int | None = None) -> Shown | None:
    """Return the snapshot with a number, or the newest one. None if there is none."""
    newest = newest_snapshots(board).first()
    if newest is None:
        return None
    snapshot = newest if number in (None, newest.number) else newest_snapshots(board).filter(number=number).first()
    if snapshot is None:
        return None
    return Shown(board, snapshot, newest.number, public_facts(board), public_draws(board), scored_withdrawals(board))


def get_shown(request: HttpRequest, slug: str, number: int | None = None) -> Shown:
    """Return the snapshot of a board that the user may see. Raise Http404."""
    shown = find_shown(get_visible_board(request.user, slug), number)
    if shown is None:
        raise Http404("This snapshot does not exist.")
    return shown
