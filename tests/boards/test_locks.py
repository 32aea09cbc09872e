"""A function that decides by a board's rows locks the board before it writes rows of the board or a job.

Only PostgreSQL shows what a missing lock does, so this test reads the statements, on every database.
"""

import ast
import re
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models import QuerySet

from boards import access
from boards.models import Board
from boards.services import boards, images, metric_tables, rounds, snapshots, submissions
from tests import ROOT
from tests.boards import builders
from tests.builders import user

pytestmark = pytest.mark.django_db

# Functions that write rows of a board without a lock, with the reason.
WITHOUT_A_LOCK = {
    "create_team": "a new row, whose name a constraint keeps unique",
    "replace_team_key": "one row, whose last value holds",
    "revoke_team": "one row, which only ends",
    "create_board": "the board is new",
    "create_board_from_bundle": "the board is new",
    "draw_first_sample": "its callers hold the lock",
    "_add_entries": "its caller holds the lock",
    "launch_round": "the study's own lock; the note is one conditional statement",
    "_note_launch": "one conditional statement",
    "cancel_round": "one conditional statement",
    "choose_anchor": "one conditional statement",
    "compute_metrics_of_submission": "one column of a row, which nothing else writes",
    "delete_rules_about_test_questions": "the study's own lock; with these rules, the board cannot have been opened",
}
WRITES = (".create(", ".save(", "bulk_create(", ".update(", ".delete(", "transaction.atomic")


def with_submissions(*names, **columns):
    board = builders.open_board(**columns)
    team, _ = builders.team_of(board)
    return board, team, [builders.submit(board, team, name) for name in names]


def closed_round():
    board, _, _ = with_submissions("good", "middle")
    builders.play_round(board)
    return board


def change_board():
    board = builders.open_board()
    return lambda: boards.change_board(board, board.owner, {"title": "Fables"})


def replace_members():
    board = builders.open_board()
    roles = [(board.owner_id, "owner"), (user("colleague").pk, "viewer")]
    return lambda: access.replace_members(board, board.owner, roles)


def open_board():
    owner = user()
    template = builders.rating_template(owner)
    board = boards.create_board(Board(slug="tales", title="Tales", template=template, seed=5), owner)
    return lambda: boards.open_board(board, owner)


def close_board():
    board = builders.open_board()
    return lambda: boards.close_board(board, board.owner)


def send_images():
    board = builders.open_image_board()
    team, _ = builders.team_of(board)
    return lambda: images.submit_images(board, team, "good", "a.zip", [builders.images_zip(board)])


def send_outputs():
    board, team, _ = with_submissions()
    return lambda: builders.submit(board, team, "good")


def withdraw():
    board, team, [one] = with_submissions("good")
    return lambda: submissions.withdraw(one, board.owner)


def publish():
    board = builders.open_board()
    team, _ = builders.team_of(board)
    one = builders.submit(board, team, "good", is_anonymous=True)
    return lambda: submissions.publish(one)


def create_round():
    board, _, _ = with_submissions("good", "middle")
    return lambda: rounds.create_round(board, board.owner)


def take_snapshot():
    board = closed_round()
    return lambda: snapshots.take_snapshot(board, board.owner)


def compute_metric_table():
    board = closed_round()
    snapshots.take_snapshot(board, board.owner)
    return lambda: metric_tables.compute_metric_table(board, board.owner, ["bleu"], resamples=49)


def renew_sample():
    board = builders.open_board(sample_size=8)
    builders.submit(board, builders.team_of(board)[0], "good")
    builders.play_round(board)
    return lambda: rounds.renew_sample(board, board.owner, Decimal("0.50"))


# The function that takes the lock to a case that calls it.
CASES = {
    "replace_members": replace_members,
    "change_board": change_board,
    "open_board": open_board,
    "close_board": close_board,
    "_find_or_submit_job": send_images,
    "compute_metric_table": compute_metric_table,
    "create_round": create_round,
    "renew_sample": renew_sample,
    "take_snapshot": take_snapshot,
    "store_submission": send_outputs,
    "withdraw": withdraw,
    "publish": publish,
}


def test_each_function_that_writes_is_known():
    found = [
        function.name
        for file in [ROOT / "boards/access.py", *(ROOT / "boards/services").glob("*.py")]
        for function in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(function, ast.FunctionDef) and any(word in ast.unparse(function) for word in WRITES)
    ]
    assert sorted(found) == sorted([*CASES, *WITHOUT_A_LOCK])


@pytest.mark.parametrize("name", CASES)
def test_the_board_is_locked_before_its_rows_are_written(name, monkeypatch):
    call = CASES[name]()
    events = []
    select_for_update = QuerySet.select_for_update

    def lock(self, **options):
        events.append(f"lock {self.model.__name__}")
        return select_for_update(self, **options)

    def note(execute, sql, *arguments):
        if re.match(r'(INSERT INTO|UPDATE|DELETE FROM) "(boards_|studies_job")', sql):
            events.append(f"write {sql[:60]}")
        return execute(sql, *arguments)

    monkeypatch.setattr(QuerySet, "select_for_update", lock)
    with connection.execute_wrapper(note):
        call()
    writes = [place for place, event in enumerate(events) if event.startswith("write")]
    assert writes and "lock Board" in events[: writes[0]], events
