"""A share of a board's sample is renewed, and scores before and after are linked."""

from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from boards.models import BoardSample
from boards.services import rounds, snapshots
from boards.views import table
from studies.models import Output
from studies.models.guards import AppendOnlyViolation
from studies.services.lifecycle import ActionRefused
from tests.analysis.api.rest import api_of
from tests.boards import builders
from tests.builders import user

pytestmark = pytest.mark.django_db

SHARE = Decimal("0.25")
STRENGTHS = builders.STRENGTHS | {"new": 0.5, "last": 0.2}


@pytest.fixture
def board():
    """A board with eight of twelve prompts, whose first round is closed. ``good`` is an anchor."""
    board = builders.open_board(sample_size=8, anchor_share="0.60")
    team, _ = builders.team_of(board)
    good = builders.submit(board, team, "good")
    builders.submit(board, team, "weak")
    builders.play_round(board)
    rounds.choose_anchor(good, board.owner, is_anchor=True)
    return board


@pytest.mark.slow
def test_the_next_round_scores_both_samples_and_later_rounds_only_the_new_one(board):
    first = board.samples.get()
    renewed = rounds.renew_sample(board, board.owner, SHARE)
    assert renewed.number == 2 and renewed.seed != first.seed and renewed.by == board.owner
    assert len(renewed.keys) == 8 and len(set(renewed.keys) - set(first.keys)) == 2
    team = board.teams.get()
    builders.submit(board, team, "new")
    plan = rounds.plan_round(board)
    # Human and new answer ten prompts with two labels each. Good answers only the first sample.
    assert plan.places == 7 and [one.name for one in plan.anchors] == ["human"]
    both = builders.play_round(board, STRENGTHS, seed=2)
    assert Output.objects.filter(system__study=both.study).count() == 20
    assert rounds.keys_to_answer(board) == renewed.keys
    builders.submit(board, team, "last")
    later = builders.play_round(board, STRENGTHS, seed=3)
    assert set(later.study.prompts.values_list("key", flat=True)) == set(renewed.keys)
    assert set(later.study.systems.judged().values_list("name", flat=True)) == {"human", "last"}

    result = snapshots.take_snapshot(board, board.owner).result
    equating = result["tables"]["overall"]["equating"]
    assert [(one["round"], one["sample"]) for one in equating["shifts"]] == [(1, 1), (2, 1), (2, 2), (3, 2)]
    assert [(one["sample"], one["systems"], one["status"]) for one in equating["offsets"]] == [(2, 2, "ok")]
    assert len(equating["linked"]) == 1
    assert all(row["scores"]["overall"]["rank_low"] for row in result["rows"])
    assert [(one["number"], one["renewed"], one["first_round"]) for one in result["samples"]] == [(1, 0, 1), (2, 2, 2)]
    assert {one["submission"] for one in result["better"]} == {2, 3, 4, 5}
    first_text, second_text = table.sample_sentences(result)
    assert f"seed {first.seed}" in first_text and f"2 of them new, drawn with seed {renewed.seed}" in second_text
    assert any("ample 2 gives the same systems" in text for text in table.check_sentences(result))
    # Each label is counted once, though prompts that both samples have link them twice.
    assert result["tables"]["overall"]["labels"] == sum(facts["labels"] for facts in result["rounds"])


@pytest.mark.parametrize(
    ("share", "words"), [("0", "not between"), ("1", "not between"), ("0.8", "only 4 of the template")]
)
def test_a_share_that_cannot_be_is_refused(board, share, words):
    with pytest.raises(ValidationError, match=words):
        rounds.renew_sample(board, board.owner, Decimal(share))
    assert board.samples.count() == 1


def test_a_board_renews_only_between_rounds(board):
    team = board.teams.get()
    builders.submit(board, team, "middle")
    with pytest.raises(ActionRefused, match="Submissions wait"):
        rounds.renew_sample(board, board.owner, SHARE)
    opened = rounds.open_round(board, board.owner)
    with pytest.raises(ActionRefused, match="A round is running"):
        rounds.renew_sample(board, board.owner, SHARE)
    builders.finish(opened.study)
    made = rounds.renew_sample(board, board.owner, SHARE, after=1)
    # A repeated request draws nothing.
    assert rounds.renew_sample(board, board.owner, SHARE, after=1) == made
    with pytest.raises(ActionRefused, match="No round has scored"):
        rounds.renew_sample(board, board.owner, SHARE)


def test_a_sample_of_all_prompts_is_not_renewed_and_the_page_offers_nothing(client):
    board = builders.open_board()
    builders.submit(board, builders.team_of(board)[0], "good")
    builders.play_round(board)
    with pytest.raises(ActionRefused, match="none can be renewed"):
        rounds.renew_sample(board, board.owner, SHARE)
    client.force_login(board.owner)
    page = client.get(f"/boards/{board.slug}/manage/").content.decode()
    assert "none can be renewed" in page and "Renew the sample" not in page
    # No round can be cancelled, so there is no column for it.
    assert '<th scope="col">Act</th>' not in page


def test_a_board_of_preferences_is_not_renewed():
    owner = user()
    board = builders.open_board(owner, builders.choice_template(owner), population="subsample", sample_size=8)
    with pytest.raises(ActionRefused, match="exactly these prompts"):
        rounds.renew_sample(board, owner, SHARE)


def test_a_sample_never_changes(board):
    sample = BoardSample.objects.get()
    sample.keys = []
    with pytest.raises(AppendOnlyViolation):
        sample.save()


def test_a_program_renews_the_sample_and_a_repeated_request_draws_nothing(board):
    api, address = api_of(board.owner), "boards/tales/renew/"
    for share in ("0.8", "0", "1.5", "many"):
        refused = api.post(address, {"share": share, "after": 1})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "share"), share
    assert board.samples.count() == 1
    made = api.post(address, {"share": "0.25", "after": 1})
    assert made.status_code == 201 and api.post(address, {"share": "0.25", "after": 1}).json() == made.json()
    sample = board.samples.get(number=2)
    assert made.json().items() >= {"number": 2, "prompts": 8, "seed": sample.seed, "share": "0.25"}.items()
    again = api.post(address, {"share": "0.25", "after": 2})
    assert again.status_code == 409 and "No round has scored the current sample yet" in again.json()["detail"]
    # Submissions now answer both samples.
    assert len(api.get("boards/tales/prompts/").json()["results"]) == 10


def test_an_owner_renews_from_the_page_and_sees_the_reason_of_a_refusal(board, client):
    client.force_login(board.owner)
    address = f"/boards/{board.slug}/manage/sample/renew/"
    for share, words in (("1", "not between 0 and 1"), ("0.8", "only 4 of the template")):
        page = client.post(address, {"share": share, "after": 1}, follow=True)
        assert words in page.content.decode() and board.samples.count() == 1
    client.post(address, {"share": "0.25", "after": 1})
    assert board.samples.count() == 2
    assert "No round has scored the current sample yet" in client.get(f"/boards/{board.slug}/manage/").content.decode()
