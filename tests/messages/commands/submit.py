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

COMMANDS = {
    "--site … is not a web": submitting("--site", "eval"),
    "--site … is not encrypted": submitting("--site", "http://eval.example.org"),
    "cannot be read: …. Name": submitting(name="nothing.jsonl"),
    "cannot be reached": submitting(send=unreachable),
    "answered …. Try": submitting(send=answering(503)),
    "answered … without": submitting(send=answering(200, b"<html>")),
    "--baseline compares scores": submitting("--baseline", "human"),
    "--max-loss and --strict": submitting("--strict"),
    "--max-loss is not between": submitting("--wait", "--baseline", "1", "--max-loss", "101"),
    "--timeout and --poll-every": submitting("--wait", "--timeout", "0"),
    "The check has not ended": submitting("--timeout", "0.0000001", send=answering(202, CHECK)),
    "The submission was withdrawn": submitting("--wait", sleep=withdrawing),
    "Submission … has no score": submitting("--wait", "--timeout", "0.001"),
    "cannot be read as text": submitting("--token-file", "{folder}/nothing"),
    "There is no token": submitting(token=""),
    "The token has characters": submitting(token="heval team"),
    "The board has no submission": submitting("--wait", "--baseline", "nobody"),
}
