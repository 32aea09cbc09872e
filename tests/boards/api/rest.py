"""A client of the REST interface of boards, and a board with one closed round."""

import json

from boards.models import Board
from boards.services import snapshots
from tests.analysis.api.rest import Api
from tests.boards import builders


def api_of_team(board: Board, name="Team A") -> Api:
    """A client with the key of a new team; ``team`` is its row."""
    team, key = builders.team_of(board, name)
    api = Api(key)
    api.team = team
    return api


def outputs(board: Board, word="tale", **changed: str | None) -> list[dict]:
    return [json.loads(line) for line in builders.outputs_file(board, word, **changed).splitlines()]


def body(board: Board, name="good", **fields) -> dict:
    return {"name": name, "outputs": outputs(board, name)} | fields


def scored_board(**columns):
    """A board with a reference, a good and a weak submission that one round has scored. The client is of their team."""
    board = builders.open_board(**columns)
    api = api_of_team(board)
    for name in ("weak", "good"):
        builders.submit(board, api.team, name)
    builders.play_round(board)
    snapshots.take_snapshot(board, board.owner)
    return board, api


def errors_of(answer) -> list[tuple]:
    return [(one["row"], one["field"], one["message"]) for one in answer.json()["errors"]]
