"""A board as one file, and its members, over REST."""

import pytest

from boards.models import Board
from tests.analysis.api.rest import api_of
from tests.boards import builders
from tests.builders import user

from .rest import errors_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def board():
    return builders.open_board()


def test_a_board_leaves_as_a_file_and_returns_as_a_draft_with_its_template(board):
    api = api_of(board.owner)
    bundle = api.get("boards/tales/bundle/").json()
    made = api.post("boards/new/?slug=copy", bundle)
    assert (made.status_code, made.json()["slug"], made.json()["state"]) == (201, "copy", "draft"), made.body
    copy = Board.objects.get(slug="copy")
    assert copy.template != board.template and copy.seed == board.seed
    assert copy.template.prompts.count() == board.template.prompts.count()
    assert api.post("boards/copy/open/", {}).status_code == 200


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "another"}, "not a bundle of a board"),
        ({"board": {"slug": "x", "colour": 1}}, "“colour” is not a setting"),
        ({"template": None}, "“template” is missing"),
    ],
)
def test_a_wrong_file_makes_nothing(board, change, words):
    api = api_of(board.owner)
    refused = api.post("boards/new/?slug=copy", api.get("boards/tales/bundle/").json() | change)
    assert refused.status_code == 400 and any(words in error[2] for error in errors_of(refused))
    assert Board.objects.count() == 1


def test_an_owner_says_who_the_members_are(board):
    api = api_of(board.owner)
    owner = {"user": board.owner.username, "role": "owner"}
    user("vera")
    sent = {"members": [owner, {"user": "vera", "role": "viewer"}]}
    stored = api.send("PUT", "boards/tales/members/", sent)
    assert stored.status_code == 200 and stored.json() == sent == api.get("boards/tales/members/").json()
    for members, words in (
        ([owner, {"user": "nobody", "role": "viewer"}], "not a researcher of this site"),
        ([owner | {"role": "king"}], "“king” is not a possible value"),
        ([owner | {"role": "viewer"}], "at least one owner"),
        ([owner, owner], "listed twice"),
        ([], "at least one owner"),
    ):
        refused = api.send("PUT", "boards/tales/members/", {"members": members})
        assert refused.status_code == 400 and words in str(errors_of(refused)), (members, refused.body)
    assert api.get("boards/tales/members/").json() == sent
