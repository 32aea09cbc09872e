"""The database refuses what a board must never be: each constraint is broken once."""

from copy import deepcopy
from datetime import timedelta

import pytest
from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from boards.models import (
    Board,
    BoardMember,
    BoardRound,
    BoardSample,
    BoardSnapshot,
    RoundEntry,
    Submission,
    SubmittedOutput,
    Team,
)
from boards.services import boards, rounds
from studies.models import System
from tests.boards import builders

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def changed(model, row, **columns):
    return model, {"pk": row.pk}, columns


def other_study(w):
    return builders.rating_template(w["board"].owner)


CASES = {
    "board_state_agrees_with_its_times": lambda w: changed(Board, w["board"], opened_at=None),
    "board_takes_texts_or_images": lambda w: (Board, {"slug": "draft"}, {"output_kind": "sound"}),
    "board_open_has_a_design": lambda w: changed(Board, w["board"], design_sha256=""),
    "board_pays_nothing_below_zero": lambda w: changed(Board, w["board"], budget_per_month=-1),
    "board_shares_are_shares": lambda w: changed(Board, w["board"], anchor_share=0.95),
    "board_member_once": lambda w: BoardMember(board=w["board"], user=w["board"].owner, role="viewer"),
    "team_name_once_per_board": lambda w: Team(board=w["board"], name=w["team"].name, key_hash="other"),
    "team_has_a_name_and_a_hash": lambda w: Team(board=w["board"], name="", key_hash="other"),
    "submission_number_once_per_board": lambda w: Submission(board=w["board"], number=1, name="other"),
    "submission_shown_names_look_different": lambda w: Submission(board=w["board"], number=9, name="G0OD"),
    "submission_name_once_per_team": lambda w: Submission(
        board=w["board"], number=9, name="good", team=w["team"], n_outputs=1, sha256="s", is_anonymous=True
    ),
    "submission_request_once_per_team": lambda w: Submission(
        board=w["board"], number=9, name="other", team=w["team"], n_outputs=1, sha256="s", request_token="first"
    ),
    "submission_has_a_name": lambda w: Submission(board=w["board"], number=9, name=""),
    "submission_of_a_team_has_outputs": lambda w: Submission(
        board=w["board"], number=9, name="other", team=w["team"], n_outputs=0, sha256="s"
    ),
    "submitted_output_once_per_prompt": lambda w: SubmittedOutput(
        submission=w["submission"], prompt_key=w["board"].sample_keys[0], text="again"
    ),
    "submitted_output_is_text_or_image_or_empty": lambda w: SubmittedOutput(
        submission=w["submission"], prompt_key="p", text=""
    ),
    "round_number_once_per_board": lambda w: BoardRound(
        board=w["board"], number=1, study=other_study(w), sample=w["round"].sample, expected_cost=0
    ),
    "round_costs_nothing_below_zero": lambda w: BoardRound(
        board=w["board"], number=2, study=other_study(w), sample=w["round"].sample, expected_cost=-1
    ),
    "round_is_launched_or_cancelled": lambda w: changed(
        BoardRound, w["round"], launched_at=timezone.now(), cancelled_at=timezone.now() + timedelta(1)
    ),
    "round_entry_once": lambda w: RoundEntry(
        round=w["round"],
        submission=w["submission"],
        system=System.objects.get(study=w["board"].template),
        is_new=False,
    ),
    "round_entry_has_its_own_system": lambda w: RoundEntry(
        round=w["round"],
        submission=builders.submit(w["board"], w["team"], "third"),
        system=w["round"].entries.first().system,
        is_new=False,
    ),
    "sample_number_once_per_board": lambda w: BoardSample(board=w["board"], number=1, keys=[], seed=9),
    "sample_seed_once_per_board": lambda w: BoardSample(
        board=w["board"], number=2, keys=[], seed=w["board"].seed, share="0.25"
    ),
    "sample_renews_a_share_of_an_earlier_one": lambda w: BoardSample(
        board=w["board"], number=2, keys=[], seed=9, share=1
    ),
    "snapshot_number_once_per_board": lambda w: BoardSnapshot(
        board=w["board"], number=1, result={}, result_sha256="s", n_labels=0
    ),
}


@pytest.fixture
def world(stored_world, db) -> dict:
    """Rows of its own, so that no test sees what another did to them."""
    return deepcopy(stored_world)


@pytest.fixture(scope="module")
def stored_world(module_transaction) -> dict:
    board = builders.open_board()
    boards.create_board(Board(slug="draft", title="Draft", template=board.template), board.owner)
    team, _ = builders.team_of(board)
    submission = builders.submit(board, team, "good", request_token="first")
    one = rounds.create_round(board, board.owner)
    BoardSnapshot.objects.create(board=board, number=1, result={}, result_sha256="s", n_labels=0)
    return {"board": board, "team": team, "submission": submission, "round": one}


def violates(name, error) -> bool:
    """SQLite names the columns of a broken unique constraint, not the constraint."""
    constraint = next(
        one for m in apps.get_app_config("boards").get_models() for one in m._meta.constraints if one.name == name
    )
    columns, message = getattr(constraint, "fields", ()), str(error)
    return name in message or (bool(columns) and "UNIQUE" in message and all(f".{one}" in message for one in columns))


@pytest.mark.parametrize("name", CASES)
def test_the_database_refuses(name, world):
    case = CASES[name](world)
    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        if isinstance(case, tuple):
            model, where, columns = case
            models.QuerySet(model).filter(**where).update(**columns)
        else:
            models.Model.save_base(case, force_insert=True)
    assert violates(name, refused.value), refused.value


def other_boards_sample(w) -> BoardRound:
    """A round of the world's board with the sample of another board."""
    other = builders.open_board(w["board"].owner, slug="other").samples.get()
    return BoardRound(board=w["board"], number=2, study=other_study(w), sample=other, expected_cost=0)


def test_a_round_has_a_sample_of_its_own_board(world):
    with pytest.raises(ValidationError, match="The sample belongs to another board"):
        other_boards_sample(world).full_clean()


@pytest.mark.only_on("postgresql")
def test_postgresql_refuses_a_round_with_the_sample_of_another_board(world):
    other = other_boards_sample(world)
    with pytest.raises(IntegrityError, match="belongs to another board"), transaction.atomic():
        other.save()
    with pytest.raises(IntegrityError, match="belongs to another board"), transaction.atomic():
        BoardRound.objects.filter(pk=world["round"].pk).update(sample=other.sample)


def test_every_constraint_is_tried():
    declared = {one.name for model in apps.get_app_config("boards").get_models() for one in model._meta.constraints}
    assert declared == set(CASES)
