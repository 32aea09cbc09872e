"""Two at once on one board: each ends in one valid state, and the one that lost gets a clear message. On PostgreSQL, too."""

import time

import pytest

from boards.models import BoardRound, Submission
from boards.services import rounds, submissions
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
    """Let the other threads run after ``name`` has read what it decides by."""
    read = getattr(module, name)

    def slow(*given, **options):
        found = read(*given, **options)
        time.sleep(0.15)
        return found

    monkeypatch.setattr(module, name, slow)


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
