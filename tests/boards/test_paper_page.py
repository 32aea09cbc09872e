"""The paper's tables and figures on a page, from the labels of a board."""

import pytest

from boards.services import snapshots
from boards.views.paper import spread_lines
from tests.boards import builders

pytestmark = pytest.mark.django_db


def test_the_page_shows_scores_spread_and_cost(client):
    board = builders.open_board()
    team, _ = builders.team_of(board)
    builders.submit(board, team, "good", is_anonymous=True)
    builders.play_round(board)
    snapshot = snapshots.take_snapshot(board, board.owner)
    text = client.get(f"/boards/tales/{snapshot.number}/paper/").content.decode()
    assert "Submission 2" in text and ">good<" not in text
    paper = snapshot.result["rows"][0]["scores"]["overall"]["paper"]
    assert f"{paper['estimate']:.1f} +{paper['high'] - paper['estimate']:.1f}" in text
    for words in ("Figure 2", "Figure 3", "majority vote", "24 of 24 outputs", "Bound of the SE"):
        assert words in text
    # Appendix C: 50 / sqrt(300) and 50 / sqrt(800).
    assert "2.89" in text and "1.77" in text
    assert "/paper/" in client.get("/boards/tales/").content.decode()


def test_a_private_board_shows_it_to_nobody(client):
    board = builders.open_board(visibility="members")
    builders.submit(board, builders.team_of(board)[0], "good")
    builders.play_round(board)
    snapshots.take_snapshot(board, board.owner)
    assert client.get("/boards/tales/1/paper/").status_code == 404


def test_the_spread_is_pooled_over_systems_and_rounds():
    study = {"criterion": "overall", "aggregate": "mean", "sd_multilabel": 4.0}
    lines = spread_lines([study | {"sd_unilabel": 1.0}, study | {"sd_unilabel": 7.0}], {"overall": "overall"})
    assert [(line["n"], line["unilabel_text"], line["multilabel_text"]) for line in lines] == [(2, "5.00", "4.00")]
