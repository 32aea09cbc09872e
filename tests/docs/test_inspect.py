"""Inspect itself, in an environment of its own: heval reads its log, and it reads the scores of people. It has eighty packages, so it runs at night."""

import shutil
import subprocess
import sys

import pytest

from analysis.api.tokens import create_token
from heval_site.management.client import http
from tests.builders import user
from tests.conftest import skip_or_fail
from tests.docs.pages import FENCE, PAGES
from tests.docs.reader import Reader
from tests.docs.samples import write_samples
from tests.in_process import the_world_goes_on

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ASK, WAIT, FETCH, SCORE = (
    code
    for language, _, code in FENCE.findall(PAGES["how-to/score-a-log-with-people"].text)[:4]
    if language == "python"
)
MAKE_LOG = """
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.solver import solver


@solver
def answers():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("mockllm/model", f"An answer to {state.input_text}")
        return state

    return solve


samples = [Sample(id=n, input=f"Question {n}?", target="yes") for n in range(8)]
(log,) = eval(Task(dataset=samples, solver=answers()), model="mockllm/model", log_dir="logs", log_format="json", display="none")
assert log.status == "success", log.error
"""


def test_inspect_scores_its_log_with_people(live_server, settings, monkeypatch, tmp_path):
    settings.SITE_URL = live_server.url
    monkeypatch.setattr(http, "sleep", the_world_goes_on)
    write_samples(tmp_path)
    reader = Reader(tmp_path, live_server.url, create_token(user("ada"), "harness", scope="write")[1], monkeypatch)
    subprocess.run([sys.executable, "-m", "venv", "inspect"], check=True)
    install = ["inspect/bin/pip", "install", "--quiet", "--disable-pip-version-check", "inspect-ai==0.3.285"]
    if subprocess.run(install).returncode:
        skip_or_fail("inspect-ai cannot be installed")
    subprocess.run(["inspect/bin/python", "-c", MAKE_LOG], check=True)
    (log,) = (tmp_path / "logs").glob("*.json")
    shutil.copy(log, tmp_path / "log.json")
    for code in (ASK, WAIT, FETCH):
        reader.python(code)
    scored = subprocess.run(["inspect/bin/python", "-c", SCORE], check=True, capture_output=True, text=True)
    assert 0 <= float(scored.stdout) <= 1
