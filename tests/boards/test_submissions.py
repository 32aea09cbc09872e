"""Submissions: every fault of a file at once, never overwritten, withdrawn and published by their team."""

import json

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection

from boards.access import find_team, replace_team_key, revoke_team
from boards.models import Submission, SubmittedOutput
from boards.services import boards, rounds, submissions
from boards.services.submissions import SubmissionRefused, read_outputs_file, submit_outputs
from studies.models.guards import AppendOnlyViolation
from studies.services.lifecycle import ActionRefused
from tests.boards import builders

pytestmark = pytest.mark.django_db


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def faults(filename, data, keys=("p1", "p2", "p3")):
    with pytest.raises(SubmissionRefused) as refused:
        read_outputs_file(filename, data, list(keys))
    return [(one.row, one.column, one.text) for one in refused.value.problems]


def test_all_faults_of_rows_are_named_at_once():
    found = faults(
        "outputs.jsonl",
        lines(
            {"prompt": "p1", "output": "One."},
            {"prompt": "p1", "output": "Again."},
            {"prompt": "other", "output": "Unknown."},
            {"prompt": "p2", "output": "  "},
            {"prompt": "", "output": "No key."},
            {"prompt": "p2b", "output": "x" * 100_001},
        ),
    )
    rows = {row: (column, text) for row, column, text in found}
    assert rows[2][0] == "prompt" and "already has an output in row 1" in rows[2][1]
    assert "not a prompt of this board" in rows[3][1]
    assert rows[4] == (
        "output",
        "The output is empty. If the system returned nothing, write “yes” in the column “empty”.",
    )
    assert "key of the prompt is empty" in rows[5][1]
    assert "“p2b” is not a prompt" in rows[6][1]
    assert "1 prompt has no output: “p3”" in rows[None][1]


@pytest.mark.parametrize(
    ("filename", "data", "words"),
    [
        ("outputs.pdf", b"%PDF-1.7", "is not a table"),
        ("outputs.jsonl", b"", ""),
        ("outputs.csv", b"prompt,text\np1,One.\n", "no column output"),
        ("outputs.jsonl", b"\xff\xfe\x00", ""),
        ("outputs.jsonl", b"{not json}\n", ""),
        ("outputs.csv", "prompt;output\np1;Grün".encode("latin-1"), ""),
    ],
)
def test_unreadable_files_have_a_reason(filename, data, words):
    found = faults(filename, data)
    assert found and all(text for _, _, text in found)
    assert any(words in text for _, _, text in found)


def test_an_enormous_output_and_an_enormous_file(monkeypatch):
    assert (
        "At most 100,000 are allowed"
        in faults("a.jsonl", lines({"prompt": "p1", "output": "x" * 100_001}), ["p1"])[0][2]
    )
    monkeypatch.setattr(submissions, "MAX_FILE_BYTES", 10)
    assert "larger than" in faults("a.jsonl", lines({"prompt": "p1", "output": "x" * 20}), ["p1"])[0][2]


def test_a_declared_empty_output_is_an_output():
    read = read_outputs_file("a.csv", b"prompt,output,empty\np1,,yes\n", ["p1"])
    assert read.texts == {"p1": ""}
    assert "marked as empty" in faults("a.csv", b"prompt,output,empty\np1,Text,yes\n", ["p1"])[0][2]


def test_a_submission_is_stored_whole_and_never_overwritten():
    board = builders.open_board()
    team, _ = builders.team_of(board)
    first = builders.submit(board, team, "good")
    assert (first.number, first.n_outputs, first.outputs.count()) == (2, 12, 12)
    again, is_new = submit_outputs(board, team, "good", "outputs.jsonl", builders.outputs_file(board, "good"))
    assert again == first and not is_new
    with pytest.raises(ValidationError, match="never overwritten"):
        submit_outputs(board, team, "good", "outputs.jsonl", builders.outputs_file(board, "better"))
    other, _ = builders.team_of(board, "Team B")
    with pytest.raises(ValidationError, match="or one whose name looks like it"):
        submit_outputs(board, other, "good", "outputs.jsonl", builders.outputs_file(board, "good"))
    with pytest.raises(AppendOnlyViolation):
        SubmittedOutput.objects.update(text="changed")
    assert Submission.objects.filter(team__isnull=False).count() == 1


def test_a_repeated_request_finds_the_first_submission():
    board = builders.open_board()
    team, _ = builders.team_of(board)
    first = builders.submit(board, team, "good", request_token="nightly-1")
    second = builders.submit(board, team, "another name", request_token="nightly-1")
    assert second == first


def test_a_refused_file_stores_nothing():
    board = builders.open_board()
    team, _ = builders.team_of(board)
    with pytest.raises(SubmissionRefused):
        submit_outputs(board, team, "bad", "a.jsonl", builders.outputs_file(board, p001=None))
    assert not Submission.objects.filter(name="bad").exists()


def test_a_draft_and_a_closed_board_take_nothing():
    board = builders.open_board()
    team, _ = builders.team_of(board)
    boards.close_board(board, board.owner)
    board.refresh_from_db()
    with pytest.raises(ActionRefused, match="closed"):
        builders.submit(board, team, "late")


def test_a_team_withdraws_and_publishes_once():
    board = builders.open_board()
    team, _ = builders.team_of(board)
    one = builders.submit(board, team, "good", is_anonymous=True)
    assert one.public_name == "Submission 2"
    assert submissions.publish(one) and not submissions.publish(one)
    one.refresh_from_db()
    assert one.public_name == "good"
    assert submissions.withdraw(one, by=None) and not submissions.withdraw(one, by=None)
    one.refresh_from_db()
    assert one.public_name == "Submission 2 (withdrawn)"
    assert not rounds.waiting_submissions(board).exists()


def test_keys_of_teams_are_hashed_replaced_and_revoked():
    board = builders.open_board()
    team, key = builders.team_of(board)
    assert key not in str(team.__dict__)
    assert find_team(key) == team
    assert find_team(key[:-1] + "~") is None and find_team("") is None
    new = replace_team_key(team, board.owner)
    assert find_team(key) is None and find_team(new) == team
    assert revoke_team(team, board.owner) and not revoke_team(team, board.owner)
    assert find_team(new) is None


@pytest.mark.parametrize("columns", [{"n_outputs": 0}, {"sha256": ""}])
def test_the_database_refuses_a_teams_submission_without_outputs(columns):
    board = builders.open_board()
    team, _ = builders.team_of(board)
    one = builders.submit(board, team, "good")
    with pytest.raises(IntegrityError):
        Submission.objects.filter(pk=one.pk).update(**columns)
    connection.needs_rollback = False
