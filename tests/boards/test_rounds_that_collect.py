"""A round has results when its study is closed, and in no state before: neither in rows, nor in snapshots, nor in tables of metrics."""

from random import Random

import pytest

from annotators.participation.simulate import record_simulated_answers
from boards.models import BoardSnapshot
from boards.services import metric_tables, rounds, snapshots
from studies.models import Study
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused
from tests.analysis.api.rest import unguarded
from tests.boards import builders

pytestmark = pytest.mark.django_db
State = Study.State
STRENGTHS = builders.STRENGTHS | {"new": 0.5}
# The states in which a launched study may have answers without being closed. The database keeps them from the others.
COLLECTING = (*Study.RUNNING, State.CLOSING)


def set_state(study, state):
    with unguarded() as cursor:
        cursor.execute("UPDATE studies_study SET state = %s WHERE id = %s", [state, study.pk])


def add_round_in(state, board):
    """The next round of a board with all its answers. Its study is in a state before closed."""
    one = rounds.open_round(board, board.owner)
    names = one.study.systems.judged().values_list("name", flat=True)
    record_simulated_answers(one.study, one.study.target_n, {name: STRENGTHS[name] for name in names}, Random(2))
    set_state(one.study, state)
    return one


@pytest.mark.parametrize("state", COLLECTING)
def test_a_first_round_that_collects_has_no_results(state):
    board = builders.open_board()
    builders.submit(board, builders.team_of(board)[0], "good")
    add_round_in(state, board)
    assert not snapshots.closed_rounds(board).exists()
    for take in (snapshots.take_snapshot, snapshots.request_snapshot, snapshots.read_board_rows):
        with pytest.raises(ActionRefused, match="No round is closed yet"):
            take(*(board, board.owner)[: 1 if take is snapshots.read_board_rows else 2])
    assert snapshots.submit_due_snapshots() == 0 and not BoardSnapshot.objects.exists()


@pytest.mark.parametrize("state", COLLECTING)
def test_a_further_round_that_collects_changes_no_results(state):
    board = builders.open_board()
    team, _ = builders.team_of(board)
    builders.submit(board, team, "good")
    builders.play_round(board)
    before = snapshots.take_snapshot(board, board.owner)
    builders.submit(board, team, "new")
    second = add_round_in(state, board)
    assert second.number == 2 and set(snapshots.read_board_rows(board)["round"]) == {1}
    assert [one["number"] for one in before.result["rounds"]] == [1]
    assert snapshots.take_snapshot(board, board.owner) == before
    assert snapshots.submit_due_snapshots() == 0 and board.snapshots.count() == 1
    assert metric_tables.rounds_of_snapshot(before) == [board.rounds.get(number=1)]


def test_a_round_has_results_from_the_moment_it_is_closed():
    board = builders.open_board()
    builders.submit(board, builders.team_of(board)[0], "good")
    one = add_round_in(State.CLOSING, board)
    lifecycle.end_grace_period(one.study, None)
    assert [row["number"] for row in snapshots.take_snapshot(board, board.owner).result["rounds"]] == [1]
