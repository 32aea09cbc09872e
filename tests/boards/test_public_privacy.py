"""What public pages and files of boards never say: hidden names, running rounds, private boards."""

from datetime import timedelta

import pytest
from django.utils import timezone

from boards.models import Board, Submission
from boards.services import rounds, snapshots, submissions
from studies.models import Study
from tests.boards import builders, stored
from tests.builders import user

pytestmark = pytest.mark.django_db
ADDRESSES = (
    "", "?sort=name", "?sort=-team", "1/", "2/", "history/", "examples/", "examples/?prompt=2", "embed/", "2/embed/", "rss/", "atom/",
    "2/scores.csv", "2/scores.json", "2/scores.tex", "2/figure.svg", "history/figure.svg", "badge/1.svg", "badge/2.svg",
    "badge/3.svg", "badge/4.svg",
)  # fmt: skip


def everything(client, board: Board) -> dict[str, str]:
    """All that a board shows, by address."""
    texts = {}
    for path in ADDRESSES:
        response = client.get(f"/boards/{board.slug}/{path}")
        assert response.status_code == 200, path
        texts[path] = response.content.decode()
    texts["list"] = client.get("/boards/").content.decode()
    return texts


def places_of(words: str, texts: dict[str, str]) -> list[str]:
    return [path for path, text in texts.items() if words in text]


def test_the_name_of_an_anonymous_submission_is_nowhere_until_it_is_published(client):
    board = stored.published_board(shows_examples=True)
    texts = everything(client, board)
    for words in ("hidden giant", "example.org/hidden"):
        assert not places_of(words, texts)
    assert "Submission 3" in texts[""]
    # Its team has other submissions, but only their rows name it.
    assert texts["2/scores.csv"].count("The makers") == 2
    assert submissions.publish(board.submissions.get(number=3))
    assert {"", "2/scores.json", "2/figure.svg", "history/"} <= set(
        places_of("hidden giant", everything(client, board))
    )


def test_the_name_of_a_withdrawn_submission_disappears_from_every_snapshot(client):
    board = stored.published_board(shows_examples=True)
    before = everything(client, board)
    assert {"", "2/", "2/scores.csv", "examples/"} <= set(places_of("weak", before))
    assert submissions.withdraw(board.submissions.get(number=4), by=None)
    after = everything(client, board)
    for words in ("weak", "example.org/weak"):
        assert not places_of(words, after)
    assert "Submission 4 (withdrawn)" in after["2/"]
    assert "withdrawn" in after["badge/4.svg"]
    assert "20.0" not in after["badge/4.svg"]


def test_an_anonymous_submission_that_is_withdrawn_stays_unnamed(client):
    board = stored.published_board(shows_examples=True)
    submissions.withdraw(board.submissions.get(number=3), by=None)
    assert not places_of("hidden giant", everything(client, board))


def test_a_client_that_has_the_page_learns_of_a_withdrawal(client):
    board = stored.published_board()
    first = client.get("/boards/tales/2/")
    later = timezone.now() + timedelta(seconds=5)
    Submission.objects.filter(board=board, number=4).update(withdrawn_at=later)
    for header, value in (("If-None-Match", first["ETag"]), ("If-Modified-Since", first["Last-Modified"])):
        assert client.get("/boards/tales/2/", headers={header: value}).status_code == 200


def test_nothing_is_said_of_a_round_that_is_not_closed(client):
    board = builders.open_board(shows_examples=True)
    team, _ = builders.team_of(board)
    builders.submit(board, team, "good")
    builders.play_round(board)
    snapshots.take_snapshot(board, board.owner)
    paths = ("", "1/", "history/", "embed/", "rss/", "1/scores.json", "1/scores.csv", "badge/1.svg")

    def said():
        return {path: builders.without_draws(client.get(f"/boards/tales/{path}").content) for path in paths}

    before = said()
    assert b"A good about" in client.get("/boards/tales/examples/").content
    builders.submit(board, team, "middle")
    running = rounds.open_round(board, board.owner)
    assert running.study.state in Study.COLLECTING_STATES
    assert said() == before
    draw = client.get("/boards/tales/1/scores.json").json()["draws"][1]
    assert set(draw) == {"round", "launched_at", "closed_at", "commitment", "nonce", "seed"}
    assert (draw["closed_at"], draw["nonce"], draw["seed"]) == (None, None, None)
    assert client.get("/boards/tales/badge/3.svg").status_code == 404
    # An annotator of the round could otherwise find out which system wrote a text.
    examples = client.get("/boards/tales/examples/").content.decode()
    assert "A good about" not in examples
    assert "Examples are hidden until the round has closed" in examples


def test_examples_are_shown_only_if_the_owner_shows_them(client):
    board = stored.published_board()
    assert client.get("/boards/tales/examples/").status_code == 404
    assert "/examples/" not in client.get("/boards/tales/").content.decode()
    Board.objects.filter(pk=board.pk).update(shows_examples=True)
    for asked in ("", "?prompt=1", "?prompt=0", "?prompt=99999999999", "?prompt=x"):
        text = client.get(f"/boards/tales/examples/{asked}").content.decode()
        assert "Prompt 1" in text
        assert "A good about" in text
    assert "Prompt 2" in client.get("/boards/tales/examples/?prompt=2").content.decode()


@pytest.mark.parametrize("hidden", [{"visibility": "members"}, {"state": "draft", "opened_at": None}])
def test_strangers_find_no_private_board_at_any_address(client, hidden):
    board = stored.published_board(shows_examples=True)
    Board.objects.filter(pk=board.pk).update(**hidden)
    missing = client.get("/boards/nothing/")
    assert missing.status_code == 404
    strangers = [None, user("a stranger")]
    for stranger in strangers:
        if stranger:
            client.force_login(stranger)
        for path in ADDRESSES:
            response = client.get(f"/boards/tales/{path}")
            assert response.status_code == 404, path
            assert response.content == missing.content, path
        assert "Tales" not in client.get("/boards/").content.decode()


def test_members_see_a_private_board_which_nobody_may_frame_or_keep(client):
    board = stored.published_board(visibility="members", shows_examples=True)
    client.force_login(builders.add_member(board, "a viewer", "viewer").user)
    for path in ADDRESSES:
        response = client.get(f"/boards/tales/{path}")
        assert response.status_code == 200, path
        assert response["Cache-Control"] == "private, no-cache", path
        assert "Cookie" in response["Vary"], path
        assert "frame-ancestors 'none'" in response["Content-Security-Policy"], path
        assert response["X-Frame-Options"] == "DENY", path


def test_a_submission_that_no_round_has_scored_is_nowhere(client):
    board = builders.open_board(shows_examples=True)
    team, _ = builders.team_of(board)
    builders.submit(board, team, "good")
    assert client.get("/boards/tales/examples/").status_code == 404
    assert "good" not in client.get("/boards/tales/").content.decode()


# What nobody but members and its team may learn of, with the time at which it happens.
HIDDEN_EVENTS = {
    "a submission arrives": lambda board, time: Submission.objects.filter(board=board, number=5).update(
        received_at=time
    ),
    "it is withdrawn": lambda board, time: Submission.objects.filter(board=board, number=5).update(withdrawn_at=time),
    "another is published before it is scored": lambda board, time: Submission.objects.filter(
        board=board, number=6
    ).update(published_at=time, is_anonymous=False),
    "a team is made": lambda board, time: board.teams.update(created_at=time),
    "a round is made and not launched": lambda board, time: rounds.create_round(board, None),
    "it is cancelled": lambda board, time: rounds.cancel_round(
        board.rounds.get(launched_at=None, cancelled_at=None), None
    ),
}


def test_no_header_or_page_moves_with_what_is_hidden(client):
    board = stored.published_board(shows_examples=True)
    builders.submit(board, board.teams.get(), "middle")
    builders.submit(board, board.teams.get(), "veiled", is_anonymous=True)

    def seen():
        found = {path: client.get(f"/boards/{board.slug}/{path}") for path in ADDRESSES}
        return {path: (one.headers.get("Last-Modified"), one["ETag"], one.content) for path, one in found.items()}

    before = seen()
    for name, happen in HIDDEN_EVENTS.items():
        happen(board, timezone.now() + timedelta(days=1))
        assert seen() == before, name


def test_files_say_of_rounds_what_rest_says_to_the_same_reader(client):
    board = builders.open_board()
    builders.submit(board, builders.team_of(board)[0], "good")
    builders.play_round(board)
    snapshots.take_snapshot(board, board.owner)
    file = client.get("/boards/tales/1/scores.json").json()
    by_rest = client.get("/api/v1/boards/tales/snapshots/1/").json()["result"]
    assert {name: value for name, value in file["result"].items() if name != "rows"} == by_rest
    text = client.get("/boards/tales/1/scores.json").content.decode()
    assert str(board.rounds.get().study.code) not in text and "left_out" not in file


def test_a_team_that_withdraws_a_scored_submission_leaves_a_count(client):
    board = builders.open_board()
    team, _ = builders.team_of(board)
    first, second = builders.submit(board, team, "good"), builders.submit(board, team, "weak")
    builders.play_round(board)
    snapshots.take_snapshot(board, board.owner)
    waiting, running = builders.submit(board, team, "waits"), builders.submit(board, team, "middle")
    rounds.open_round(board, board.owner)
    counts = []
    # Neither of the last two had a score when it was withdrawn.
    for one in (first, second, waiting, running):
        submissions.withdraw(one, by=None)
        counts.append(client.get("/boards/tales/1/scores.json").json()["withdrawn_scored"])
        assert client.get("/api/v1/boards/tales/snapshots/1/").json()["withdrawn_scored"] == counts[-1]
    assert counts == [1, 2, 2, 2]
    assert "2 scored submissions withdrawn." in client.get("/boards/tales/").content.decode()
