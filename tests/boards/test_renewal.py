"""A share of a board's sample is renewed, and scores before and after are linked."""

from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from boards.models import BoardSample
from boards.services import planning, rounds, samples, snapshots
from studies.models import Output
from studies.models.guards import AppendOnlyViolation
from studies.services.lifecycle import ActionRefused
from tests.boards import builders
from tests.builders import user

pytestmark = pytest.mark.django_db

SHARE = Decimal("0.25")
STRENGTHS = builders.STRENGTHS | {"new": 0.5, "last": 0.2}


def submit(board, team, name):
    keys = samples.keys_to_answer(board)
    text = "".join(f'{{"prompt": "{key}", "output": "A {name} about {key}."}}\n' for key in keys)
    from boards.services import submissions

    return submissions.submit_outputs(board, team, name, "outputs.jsonl", text.encode())[0]


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


def test_the_next_round_scores_both_samples_and_later_rounds_only_the_new_one(board):
    first = board.samples.get()
    renewed = samples.renew_sample(board, board.owner, SHARE)
    assert renewed.number == 2 and renewed.seed != first.seed and renewed.by == board.owner
    assert len(renewed.keys) == 8 and len(set(renewed.keys) - set(first.keys)) == 2
    team = board.teams.get()
    submit(board, team, "new")
    plan = planning.plan_round(board)
    # Human and new answer ten prompts, good only the eight of the first sample; two labels, six outputs to a page set.
    assert plan.places == 10 and [one.name for one in plan.anchors] == ["human", "good"]
    both = builders.play_round(board, STRENGTHS, seed=2)
    of = Output.objects.filter(system__study=both.study)
    assert {name: of.filter(system__name=name).count() for name in ("human", "new", "good")} == {
        "human": 10,
        "new": 10,
        "good": 8,
    }
    assert samples.keys_to_answer(board) == renewed.keys
    submit(board, team, "last")
    later = builders.play_round(board, STRENGTHS, seed=3)
    assert set(later.study.prompts.values_list("key", flat=True)) == set(renewed.keys)
    # good does not answer the renewed sample, so it is no anchor of later rounds.
    assert set(later.study.systems.judged().values_list("name", flat=True)) == {"human", "last"}

    result = snapshots.take_snapshot(board, board.owner).result
    equating = result["tables"]["overall"]["equating"]
    assert [(one["round"], one["sample"]) for one in equating["shifts"]] == [(1, 1), (2, 1), (2, 2), (3, 2)]
    assert [(one["sample"], one["systems"], one["status"]) for one in equating["offsets"]] == [(2, 2, "ok")]
    assert len(equating["linked"]) == 1
    assert all(row["scores"]["overall"]["rank_low"] for row in result["rows"])
    assert [(one["number"], one["renewed"], one["first_round"]) for one in result["samples"]] == [(1, 0, 1), (2, 2, 2)]
    assert {one["submission"] for one in result["better"]} == {2, 3, 4, 5}
    # Each label is counted once, though prompts that both samples have link them twice.
    assert result["tables"]["overall"]["labels"] == sum(facts["labels"] for facts in result["rounds"])


@pytest.mark.parametrize(("share", "words"), [("0", "not between"), ("1", "not between"), ("0.8", "only 4 of the template")])
def test_a_share_that_cannot_be_is_refused(board, share, words):
    with pytest.raises(ValidationError, match=words):
        samples.renew_sample(board, board.owner, Decimal(share))
    assert board.samples.count() == 1


def test_a_board_renews_only_between_rounds(board):
    team = board.teams.get()
    builders.submit(board, team, "middle")
    with pytest.raises(ActionRefused, match="Submissions wait"):
        samples.renew_sample(board, board.owner, SHARE)
    opened = rounds.open_round(board, board.owner)
    with pytest.raises(ActionRefused, match="A round is running"):
        samples.renew_sample(board, board.owner, SHARE)
    builders.finish(opened.study)
    made = samples.renew_sample(board, board.owner, SHARE, after=1)
    # A repeated request draws nothing.
    assert samples.renew_sample(board, board.owner, SHARE, after=1) == made
    with pytest.raises(ActionRefused, match="No round has scored"):
        samples.renew_sample(board, board.owner, SHARE)


def test_a_board_of_preferences_is_not_renewed():
    owner = user()
    board = builders.open_board(owner, builders.choice_template(owner), population="subsample", sample_size=8)
    with pytest.raises(ActionRefused, match="exactly these prompts"):
        samples.renew_sample(board, owner, SHARE)


def test_a_sample_never_changes(board):
    sample = BoardSample.objects.get()
    sample.keys = []
    with pytest.raises(AppendOnlyViolation):
        sample.save()
