"""``heval submit``: what it sends, what it waits for, and which exit code says what."""

import csv
import io
import json
import shlex
import sys

import httpx
import pytest
from django.core.management import CommandError

from boards.models import Submission
from boards.services import snapshots
from heval_site.management.cli import COMMANDS
from heval_site.management.commands import submit
from tests.boards import builders
from tests.boards.submitting import connected, run_submit
from tests.in_process import through_django
from tests.study_command import connection_stays

pytestmark = pytest.mark.django_db


@pytest.fixture
def board():
    return builders.open_board()


@pytest.fixture
def file(board, tmp_path):
    path = tmp_path / "good.jsonl"
    path.write_bytes(builders.outputs_file(board, "good"))
    return path


@pytest.fixture(autouse=True)
def key(board, monkeypatch):
    _, key = builders.team_of(board)
    monkeypatch.setenv("HEVAL_TOKEN", key)
    return key


def scores(board, **strengths):
    """What happens while the command waits: the round is played, and a snapshot is taken."""

    def sleep(seconds):
        builders.play_round(board, builders.STRENGTHS | strengths)
        snapshots.take_snapshot(board, board.owner)

    return sleep


def test_a_file_is_submitted_under_its_name_with_its_fields(board, file):
    with connected():
        code, printed = run_submit(
            "tales", file, "--url", "https://example.org/", "--anonymous", "--description", "New."
        )
    one = Submission.objects.get(name="good")
    assert (code, printed) == (0, f"Submission {one.number} “good” is stored: 12 outputs.\n")
    assert (one.url, one.is_anonymous, one.description, one.filename) == (
        "https://example.org/",
        True,
        "New.",
        "good.jsonl",
    )


def test_the_same_request_token_stores_nothing_new(board, file):
    with connected():
        for _ in range(2):
            run_submit("tales", file, "--name", "one", "--request-token", "nightly-1")
    assert Submission.objects.filter(team__isnull=False).count() == 1


def test_a_broken_connection_is_tried_again_without_a_second_submission(board, file):
    asked = []

    def send(request):
        asked.append(request.headers["Idempotency-Key"])
        answer = through_django(request)
        if len(asked) == 1:
            raise httpx.ReadTimeout("late", request=request)
        return httpx.Response(503) if len(asked) == 2 else answer

    slept = []
    with connected(sleep=slept.append, send=send):
        assert run_submit("tales", file)[0] == 0
    assert len(set(asked)) == 1 and slept == [2.0, 4.0]
    assert Submission.objects.filter(team__isnull=False).count() == 1


def test_the_errors_of_rows_are_printed(board, file):
    file.write_bytes(builders.outputs_file(board, "good", p000=None, p001=" "))
    with connected(), pytest.raises(CommandError) as refused:
        run_submit("tales", file)
    lines = str(refused.value).splitlines()
    assert lines[0].endswith("(status 400)")
    assert "  1 prompt has no output: “p000”. Add one for each." in lines
    assert any(line.startswith("  row 1, output: The output is empty.") for line in lines)


def test_columns_with_other_names_are_mapped(board, tmp_path):
    """The refusal has the options that map what only contents show."""
    path = tmp_path / "good.csv"
    rows = [json.loads(line) for line in builders.outputs_file(board, "good").splitlines()]
    cells = [["Aufgabe", "Antwort"], *([row["prompt"], row["output"]] for row in rows)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(cells)
    with connected(), pytest.raises(CommandError, match="no column output"):
        run_submit("tales", path, "--map", "prompt_key=Aufgabe")
    with connected(), pytest.raises(CommandError) as refused:
        run_submit("tales", path, "--map", "text=Antwort")
    roles = shlex.split(str(refused.value).partition("add: ")[2])
    with connected():
        code, printed = run_submit("tales", path, "--map", "text=Antwort", *roles)
    assert code == 0 and "12 outputs" in printed
    assert Submission.objects.get(name="good").outputs.count() == 12


def test_waiting_ends_with_the_score(board, file):
    with connected(sleep=scores(board)):
        code, printed = run_submit("tales", file, "--wait")
    assert code == 0
    assert "It waits for the next round." in printed
    assert "Snapshot 1: overall score " in printed and "(24 labels, 8 annotators, 12 prompts)" in printed


def test_waiting_goes_on_while_the_site_is_away(board, file):
    answers = []

    def send(request):
        answers.append(request.method)
        return httpx.Response(502) if request.method == "GET" and len(answers) < 8 else through_django(request)

    slept = []

    def sleep(seconds):
        slept.append(seconds)
        if seconds == 60:
            scores(board)(seconds)

    with connected(sleep=sleep, send=send):
        code, printed = run_submit("tales", file, "--wait")
    assert code == 0 and "answered 502. Try again later. Waiting goes on." in printed and "overall score" in printed
    assert slept == [2.0, 4.0, 8.0, 60, 2.0, 4.0]


def test_waiting_ends_at_its_limit_and_after_a_withdrawal(board, file):
    with connected(), pytest.raises(CommandError, match="has no score yet") as refused:
        run_submit("tales", file, "--wait", "--timeout", "0.001", "--poll-every", "60")
    assert refused.value.returncode == 12

    def withdraw(seconds):
        from boards.services.submissions import withdraw as act

        act(Submission.objects.get(name="second"), by=None)

    with connected(sleep=withdraw), pytest.raises(CommandError, match="was withdrawn"):
        run_submit("tales", file, "--wait", "--name", "second")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strengths", "options", "code", "words"),
    [
        ({"good": -4.0}, (), 10, "Regression: the whole interval shows a loss of more than 0 points."),
        ({"good": 1.4}, ("--max-loss", "60"), 0, "No regression: the whole interval excludes"),
        ({"good": 1.4}, ("--max-loss", "1"), 0, "Undecided: a loss of more than 1 points is neither"),
        ({"good": 1.4}, ("--max-loss", "1", "--strict"), 11, "Undecided"),
    ],
)
def test_the_exit_code_says_what_the_interval_shows(board, file, strengths, options, code, words):
    builders.submit(board, builders.team_of(board, "Team B")[0], "weak")
    play = scores(board, **strengths)
    play(0)
    with connected(sleep=play):
        found, printed = run_submit("tales", file, "--wait", "--baseline", "human", *options)
    assert (found, words in printed) == (code, True), printed
    assert "Baseline: submission 1 “human”, overall score." in printed
    assert "the intervals of all pairs of the 3 systems hold at once" in printed


def test_a_baseline_is_named_by_its_number_too_and_must_exist_before_anything_is_sent(board, file):
    with connected(), pytest.raises(CommandError, match="no submission “nobody” that you can see"):
        run_submit("tales", file, "--wait", "--baseline", "nobody")
    assert not Submission.objects.filter(team__isnull=False).exists()
    with connected(sleep=scores(board, good=-4.0)):
        first = run_submit("tales", file, "--wait")
        second = run_submit("tales", file, "--wait", "--baseline", "1")
    assert first[0] == 0 and second[0] == 10


def test_a_baseline_without_an_interval_is_undecided(board, file):
    with connected(sleep=scores(board)):
        run_submit("tales", file, "--wait")
        code, printed = run_submit("tales", file, "--wait", "--baseline", "good", "--strict")
    assert (code, "Undecided: there is no interval, because a submission has no baseline in itself." in printed) == (
        11,
        True,
    )


def test_the_three_verdicts_meet_at_the_limit():
    assert submit.judge(-2.0, 5.0, 2.0)[0] == 0
    assert submit.judge(-4.0, -2.0, 2.0)[0] == 11
    assert submit.judge(-4.0, -2.01, 2.0)[0] == 10
    assert submit.judge(0.0, 0.0, 0.0)[0] == 0


def test_a_token_is_read_from_a_file_and_is_no_argument(board, file, tmp_path, key, monkeypatch):
    monkeypatch.delenv("HEVAL_TOKEN")
    with connected(), pytest.raises(CommandError, match="There is no token. Set HEVAL_TOKEN"):
        run_submit("tales", file)
    secret = tmp_path / "token"
    secret.write_text(key + "\n")
    with connected():
        assert run_submit("tales", file, "--token-file", secret)[0] == 0
    options = submit.Command().create_parser("heval", "submit")._option_string_actions
    assert "--token" not in options and "submit" in COMMANDS


def test_wrong_use_and_a_refusal_have_codes_of_their_own(board, file, monkeypatch):
    for options in (["--strict"], ["--wait", "--baseline", "nobody"], ["--timeout", "0"]):
        with connected(), pytest.raises(CommandError) as refused:
            run_submit("tales", file, *options)
        assert refused.value.returncode == 2, options
    with connected(), pytest.raises(CommandError) as refused:
        run_submit("nothing", file)
    assert refused.value.returncode == 1
    assert not Submission.objects.filter(team__isnull=False).exists()


def test_outputs_come_from_the_standard_input_and_are_answered_as_json(board, file, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    with connected(), pytest.raises(CommandError, match="Add --name"):
        run_submit("tales", "-")
    with connected():
        code, printed = run_submit("tales", "-", "--name", "piped", "--json")
    shown = json.loads(printed)
    assert (code, shown["submission"]["name"], shown["comparison"]) == (0, "piped", None)


def test_on_the_server_the_owner_of_the_board_submits_for_a_team(board, file):
    team = board.teams.get()
    with connection_stays():
        assert run_submit("tales", file, "--team", team.name, site="")[0] == 0
    assert Submission.objects.get(name="good").team == team


def test_the_rating_of_a_bradley_terry_board_is_printed():
    score = {"estimate": 60.0, "low": 55.0, "high": 65.0, "rating": 1070.4, "rating_low": 1035.0, "rating_high": 1107.5}
    counts = {"labels": 9, "annotators": 3, "prompts": 5, "rank_low": 1, "rank_high": 2}
    line = submit._score_line({"snapshot": 4, "overall": "overall", "scores": {"overall": score | counts}})
    expected = "Snapshot 4: overall score 1070.4 rating points, interval 1035.0 to 1107.5, rank 1 to 2"
    assert line == f"{expected} (9 labels, 3 annotators, 5 prompts)."
