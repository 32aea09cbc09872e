"""The lines of ``heval submit``."""

import os
import tempfile
from pathlib import Path
from unittest import mock

import httpx

from boards.models import Submission
from boards.services import submissions
from tests.boards import builders
from tests.boards.submitting import connected, run_submit, through_django
from tests.messages.commands.scenarios import said
from tests.messages.lines import Shown

MANAGEMENT = "heval_site/management"


def submitting(*options, token=None, name="good.jsonl", sleep=lambda seconds: None, send=through_django):
    """What the command says. ``token`` replaces the key of the team; {folder} is the folder of the file."""

    def scenario() -> list[Shown]:
        board = builders.open_board()
        _, key = builders.team_of(board)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "good.jsonl").write_bytes(builders.outputs_file(board, "good"))
            filled = [option.format(folder=folder) for option in options]
            environment = {"HEVAL_TOKEN": key if token is None else token}
            with mock.patch.dict(os.environ, environment), connected(sleep=sleep, send=send):
                return said(lambda: run_submit("tales", Path(folder) / name, *filled))

    return scenario


def answering(status, content=b""):
    return lambda request: httpx.Response(status, content=content)


def unreachable(request):
    raise httpx.ConnectError("refused", request=request)


def withdrawing(seconds):
    submissions.withdraw(Submission.objects.get(name="good"), by=None)


CHECK = b'{"check": "1", "state": "running", "submission": null, "errors": []}'

LINES = {
    f"{MANAGEMENT}:__post_init__": [
        ("--site eval is not a web address", "Enter one", submitting("--site", "eval")),
        ("is not encrypted", "Use https", submitting("--site", "http://eval.example.org")),
    ],
    f"{MANAGEMENT}:submit": [("nothing.jsonl cannot be read", "Name another file", submitting(name="nothing.jsonl"))],
    f"{MANAGEMENT}:_send_once": [
        ("cannot be reached (ConnectError)", "Check --site and the network", submitting(send=unreachable)),
        ("answered 503", "Try again later", submitting(send=answering(503))),
        ("answered 200 without JSON", "Check that --site", submitting(send=answering(200, b"<html>"))),
    ],
    f"{MANAGEMENT}:handle": [
        ("--baseline compares scores", "Add --wait", submitting("--baseline", "human")),
        ("compare with a baseline", "Add --baseline", submitting("--strict")),
        ("not between 0 and 100 points", "Correct it", submitting("--wait", "--baseline", "1", "--max-loss", "101")),
        ("must be greater than 0", "Correct them", submitting("--wait", "--timeout", "0")),
    ],
    f"{MANAGEMENT}:_wait_for_check": [
        (
            "The check has not ended yet",
            "Run the same command again",
            submitting("--timeout", "0.0000001", send=answering(202, CHECK)),
        ),
    ],
    f"{MANAGEMENT}:_wait_for_score": [
        ("was withdrawn", "Submit it again", submitting("--wait", sleep=withdrawing)),
        ("has no score yet", "Run the same command again", submitting("--wait", "--timeout", "0.001")),
    ],
    f"{MANAGEMENT}:read_token": [
        ("nothing cannot be read", "Correct --token-file", submitting("--token-file", "{folder}/nothing")),
        ("There is no token", "Set HEVAL_TOKEN", submitting(token="")),
        ("characters that no token has", "Copy it again", submitting(token="heval team")),
    ],
    f"{MANAGEMENT}:_find_submission": [
        ("no submission “nobody”", "Correct --baseline", submitting("--wait", "--baseline", "nobody")),
    ],
}
