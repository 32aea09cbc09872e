"""The lines of the client, most of them by ``heval submit``."""

import os
import tempfile
from pathlib import Path
from unittest import mock

import httpx

from heval_site.management.client import Study
from tests import builders as builders_of_studies
from tests.boards import builders
from tests.boards.submitting import connected, run_submit
from tests.in_process import site_of
from tests.messages.commands.scenarios import said
from tests.messages.lines import Shown


def submitting(send):
    """What the command says when ``send`` answers it."""

    def scenario() -> list[Shown]:
        board = builders.open_board()
        _, key = builders.team_of(board)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "good.jsonl").write_bytes(builders.outputs_file(board, "good"))
            with mock.patch.dict(os.environ, {"HEVAL_TOKEN": key}), connected(send=send):
                return said(lambda: run_submit("tales", Path(folder) / "good.jsonl"))

    return scenario


def answering(status, content=b""):
    return lambda request: httpx.Response(status, content=content)


def failing(error):
    def send(request):
        raise error("", request=request)

    return send


def answers_in_part():
    study = builders_of_studies.spa_study(builders_of_studies.user())
    site = site_of(study.owner, send=answering(200, b'{"system": "alpha"}\n'))
    return said(lambda: Study(site, study.code).answers())


COMMANDS = {
    "it gave no answer in time": submitting(send=failing(httpx.ReadTimeout)),
    "no connection": submitting(send=failing(httpx.ConnectError)),
    "answered …. Try": submitting(send=answering(503)),
    "The answers arrived only": answers_in_part,
}
