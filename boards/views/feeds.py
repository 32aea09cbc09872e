"""Feeds of a board's snapshots."""

from typing import Any

from django.contrib.syndication.views import Feed
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed

from boards.access import get_visible_board
from boards.models import Board, BoardSnapshot

from . import sentences
from .responses import finish
from .stored import Shown, find_shown, kept, newest_snapshots

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
    return [
        (one, f"{sentences.labels_sentence(one.result)} {sentences.population_sentence(one.result)}")
        for one in snapshots
    ]


class AtomSnapshotFeed(SnapshotFeed):
    """The snapshots of a board as Atom, newest first."""

    feed_type = Atom1Feed

    def subtitle(self, board: Board) -> str:
        return self.description(board)
