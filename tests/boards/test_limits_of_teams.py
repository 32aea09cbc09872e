"""One team cannot take a board: limits for each team, and turns between teams."""

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management.base import CommandError
from django.utils import timezone

from boards.models import Board, Submission
from boards.services import boards, rounds, submissions
from tests.analysis.api.rest import Api
from tests.boards import builders
from tests.boards.api.rest import body
from tests.boards.submitting import connected, run_submit

pytestmark = pytest.mark.django_db
# Each limit: its setting, the status of a refusal, and what changes until the team may send again.
LIMITS = {
    "max_waiting_per_team": (409, lambda one: submissions.withdraw(one, by=None)),
    "max_daily_per_team": (
        429,
        lambda one: Submission.objects.filter(pk=one.pk).update(received_at=timezone.now() - boards.DAY),
    ),
    "max_megabytes_per_team": (409, lambda one: Submission.objects.filter(pk=one.pk).update(n_bytes=0)),
}


def test_every_setting_for_teams_is_a_limit_that_is_tested():
    assert {field.name for field in Board._meta.fields if field.name.endswith("_per_team")} == set(LIMITS)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("by", ["rest", "page"])
def test_a_team_over_a_limit_is_refused_and_others_are_not(name, by, client):
    board = builders.open_board(**{name: 1})
    team, key = builders.team_of(board)
    first = builders.submit(board, team, "first")
    if name == "max_megabytes_per_team":
        Submission.objects.filter(pk=first.pk).update(n_bytes=2**20)

    def send(key, name):
        if by == "rest":
            return Api(key).post(f"boards/{board.slug}/submissions/", body(board, name))
        file = SimpleUploadedFile("a.jsonl", builders.outputs_file(board, name))
        return client.post(f"/boards/{board.slug}/team/{key}/", {"name": name, "file": file})

    status, free = LIMITS[name]
    refused = send(key, "second")
    assert refused.status_code == status and "this team" in refused.content.decode().lower()
    assert (status == 429) is (0 < int(refused.get("Retry-After", 0)) <= 86_401)
    # The same file again is no other submission.
    again = submissions.submit_outputs(board, team, "first", "o.jsonl", builders.outputs_file(board, "first"))
    assert again == (first, False)
    assert send(builders.team_of(board, "Others")[1], "theirs").status_code in (201, 302)
    free(first)
    assert send(key, "second").status_code in (201, 302)
    assert Submission.objects.filter(team=team).count() == 2


def names(board):
    return [one.name for one in rounds.plan_round(board).submissions]


@pytest.mark.slow
def test_teams_take_turns_and_a_team_keeps_its_order():
    board = builders.open_board(max_submissions_per_round=4)
    greedy, honest, late = (builders.team_of(board, name)[0] for name in ("Greedy", "Honest", "Late"))
    for number in range(5):
        builders.submit(board, greedy, f"greedy {number}")
    builders.submit(board, honest, "honest")
    builders.submit(board, late, "late")
    assert names(board) == ["greedy 0", "honest", "late", "greedy 1"]
    builders.play_round(board, dict.fromkeys((*names(board), "human"), 0.0))
    builders.submit(board, late, "late again")
    # Nobody has waited for longer than the others since the last round, so the oldest is first.
    assert names(board) == ["greedy 2", "late again", "greedy 3", "greedy 4"]


@pytest.mark.slow
def test_a_round_too_small_for_all_teams_reaches_every_team():
    board = builders.open_board(max_submissions_per_round=2)
    teams = [builders.team_of(board, f"Team {number}")[0] for number in range(4)]
    for team in teams:
        for number in range(2):
            builders.submit(board, team, f"{team.name}, {number}")
    taken = []
    for _ in range(4):
        taken.append(names(board))
        rounds.create_round(board, board.owner)
    assert taken == [[f"Team {a}, {n}", f"Team {b}, {n}"] for n in (0, 1) for a, b in ((0, 1), (2, 3))]


def test_a_day_is_any_24_hours(monkeypatch, tmp_path):
    board = builders.open_board(max_daily_per_team=2)
    team, key = builders.team_of(board)
    for name, hours in (("a", 25), ("b", 23), ("c", 1)):
        one = builders.submit(board, team, name)
        Submission.objects.filter(pk=one.pk).update(received_at=timezone.now() - timedelta(hours=hours))
    with pytest.raises(boards.TooManyToday) as refused:
        builders.submit(board, team, "d")
    monkeypatch.setenv("HEVAL_TOKEN", key)
    (tmp_path / "d.jsonl").write_bytes(builders.outputs_file(board, "d"))
    slept = []
    with connected(sleep=slept.append), pytest.raises(CommandError, match="Send the next one after"):
        run_submit(board.slug, tmp_path / "d.jsonl")
    assert not slept
    assert 3500 <= refused.value.retry_after <= 3601
