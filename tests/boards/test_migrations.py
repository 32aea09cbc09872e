"""Boards that exist keep their prompts when samples get versions."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from boards.models import Board, BoardRound
from boards.services import rounds
from tests import builders

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = ("boards", "0004_submitted_outputs_are_of_their_boards_kind")


@pytest.fixture
def old_models():
    """The models before the samples, and their tables. The newest tables are there again after the test."""
    executor = MigrationExecutor(connection)
    executor.migrate([BEFORE])
    yield executor.loader.project_state([BEFORE]).apps.get_model
    call_command("migrate", "boards", verbosity=0)


@pytest.mark.slow
def test_the_prompts_of_a_board_become_its_first_sample_and_those_of_its_rounds(old_models):
    owner = builders.user()
    template, study = (builders.draft_study(owner=owner, prompts=3) for _ in range(2))
    board_model = old_models("boards", "Board")
    columns = {"template_id": template.pk, "owner_id": owner.pk, "seed": 5}
    opened_at = timezone.now()
    opened = board_model.objects.create(
        slug="old",
        title="Old",
        state="open",
        opened_at=opened_at,
        design_sha256="0",
        sample_keys=["p000", "p002"],
        **columns,
    )
    board_model.objects.create(slug="draft", title="Draft", **columns)
    old_models("boards", "BoardRound").objects.create(
        board=opened, number=1, study_id=study.pk, expected_cost=1, launched_at=opened_at
    )
    call_command("migrate", "boards", verbosity=0)
    board, draft = Board.objects.get(slug="old"), Board.objects.get(slug="draft")
    sample = board.samples.get()
    assert (sample.number, sample.keys, sample.seed, sample.share) == (1, ["p000", "p002"], 5, None)
    assert (sample.at, sample.by) == (opened_at, owner)
    assert BoardRound.objects.get().sample == sample
    assert rounds.keys_to_answer(board) == ["p000", "p002"] and not draft.samples.exists()
