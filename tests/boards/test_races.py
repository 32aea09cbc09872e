"""Two at once on one board: each ends in one valid state, and the one that lost gets a clear message. On PostgreSQL, too."""

import time
from threading import Event

import pytest
from django.db import connection

from boards.models import Board, BoardRound, RoundEntry, Submission
from boards.services import boards, rounds, submissions
from studies.models import Study
from studies.services.lifecycle import ActionRefused
from tests.boards import builders
from tests.races import all_at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]


def outcomes(*works):
    """Run all works at once. Return what each returned, or the text of its refusal."""

    def run(work):
        try:
            return work()
        except ActionRefused as refused:
            return str(refused)

    return all_at_once(run, works, len(works))


def pause_after(monkeypatch, module, name):
    """Let the other threads run after ``name`` has read what it decides by. Return the event of this moment."""
    read, has_read = getattr(module, name), Event()

    def slow(*given, **options):
        found = read(*given, **options)
        has_read.set()
        time.sleep(0.15)
        return found

    monkeypatch.setattr(module, name, slow)
    return has_read


def after(event, work):
    """Return the work, which begins right after an event of another thread."""

    def run():
        connection.ensure_connection()
        assert event.wait(30)
        return work()

    return run


def board_with(*names, **columns):
    board = builders.open_board(**columns)
    team, _ = builders.team_of(board)
    for name in names:
        builders.submit(board, team, name)
    return board, team


def test_two_submissions_of_a_team_at_once_have_numbers_of_their_own(monkeypatch):
    pause_after(monkeypatch, submissions, "next_submission_number")
    board, team = board_with()
    outcomes(*(lambda name=name: builders.submit(board, team, name) for name in ("good", "weak", "middle")))
    assert list(Submission.objects.filter(team=team).order_by("number").values_list("number", flat=True)) == [2, 3, 4]


def test_a_file_that_is_sent_twice_at_once_is_one_submission(monkeypatch):
    pause_after(monkeypatch, submissions, "next_submission_number")
    board, team = board_with()
    sent = outcomes(*(lambda: builders.submit(board, team, "good", request_token="once") for _ in range(3)))
    assert len({one.pk for one in sent}) == 1 and Submission.objects.filter(team=team).count() == 1


def test_two_rounds_that_open_at_once_do_not_share_a_submission_or_a_budget(monkeypatch):
    pause_after(monkeypatch, rounds, "plan_round")
    board, _ = board_with("good", "weak", max_submissions_per_round=1, budget_per_month=12)
    made = outcomes(*(lambda: rounds.create_round(board, board.owner) for _ in range(2)))
    refusals = [one for one in made if isinstance(one, str)]
    assert len(refusals) == 1 and "this month's budget" in refusals[0]
    assert [one.entries.filter(is_new=True).count() for one in BoardRound.objects.filter(board=board)] == [1]


def test_a_submission_that_is_withdrawn_while_a_round_opens_is_in_it_in_whole(monkeypatch):
    planned = pause_after(monkeypatch, rounds, "plan_round")
    board, _ = board_with("good", "weak")
    good = Submission.objects.get(name="good")
    made, withdrawn = outcomes(
        lambda: rounds.create_round(board, board.owner), after(planned, lambda: submissions.withdraw(good, by=None))
    )
    good.refresh_from_db()
    assert withdrawn is True and good.withdrawn_at
    # The round had read its submissions before the withdrawal, which then waited: it is in the round with all its outputs.
    entries = RoundEntry.objects.filter(round=made, submission__team__isnull=False).select_related(
        "submission", "system"
    )
    assert {entry.submission.name for entry in entries} == {"good", "weak"} and made.planned_at < good.withdrawn_at
    assert [entry.system.outputs.count() for entry in entries] == [12, 12]
    assert rounds.launch_round(made, board.owner).launched_at


def test_an_anchor_that_is_withdrawn_while_it_is_chosen_is_no_anchor():
    board, _ = board_with("good")
    good, same = Submission.objects.get(name="good"), Submission.objects.get(name="good")
    outcomes(lambda: rounds.choose_anchor(good, board.owner, True), lambda: submissions.withdraw(same, by=None))
    good.refresh_from_db()
    assert good.withdrawn_at and not good.is_anchor


@pytest.mark.parametrize("paused", ["plan_round", "create_round"])
def test_a_board_that_closes_while_a_round_opens_has_a_whole_round_or_a_cancelled_one(monkeypatch, paused):
    reached = pause_after(monkeypatch, rounds, paused)
    board, _ = board_with("good")
    opened, closed = outcomes(
        lambda: rounds.open_round(board, board.owner), after(reached, lambda: boards.close_board(board, board.owner))
    )
    assert closed.state == Board.State.CLOSED
    one = BoardRound.objects.select_related("study").get(board=board)
    if paused == "create_round" or isinstance(opened, str):
        # The round was made and not launched: it is cancelled, and its study is put away.
        assert "was cancelled before it opened" in opened
        assert one.cancelled_at and one.study.archived_at and not one.launched_at and not one.problem
    else:
        assert one.launched_at and one.study.state == Study.State.LAUNCHED and one.study.batches.exists()
