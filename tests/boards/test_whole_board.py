"""A board from its template to a snapshot, with robots."""

import pytest

from boards.services import snapshots
from studies.models import Output
from tests.boards import builders

pytestmark = pytest.mark.django_db


def test_a_board_scores_submissions_and_ranks_them():
    board = builders.open_board()
    team, _ = builders.team_of(board)
    for name in ("weak", "good"):
        builders.submit(board, team, name)
    one = builders.play_round(board)
    assert one.study.target_n == 3 * 12 * 2 / 6
    assert Output.objects.filter(system__study=one.study).count() == 36
    snapshot = snapshots.take_snapshot(board, board.owner)
    rows = snapshots.display_rows(snapshot)
    assert [row["name"] for row in rows] == ["human", "good", "weak"]
    scores = [row["scores"]["overall"] for row in rows]
    assert scores[0]["estimate"] > scores[1]["estimate"] > scores[2]["estimate"]
    assert scores[2]["rank_low"] == 3
    assert all(score["low"] <= score["estimate"] <= score["high"] for score in scores)
    assert scores[0]["labels"] == 24
    assert snapshot.n_labels == 72
    # Nothing new: the same snapshot.
    assert snapshots.take_snapshot(board, board.owner).pk == snapshot.pk
