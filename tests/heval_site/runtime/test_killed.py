"""Processes that are killed or asked to end: no job is lost, no request that is being answered is dropped."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.slow

# A runner that knows one more kind, with leases short enough to be waited for.
RUNNER = """
import os, sys, time
os.environ["DJANGO_SETTINGS_MODULE"] = "heval_site.settings"
import django
django.setup()
from django.core.management import call_command
from studies.services import jobs
jobs.autodiscover_tasks()
jobs.LEASE_SECONDS, jobs.RENEW_SECONDS = 3, 0.5
for periodic in list(jobs._periodic.values()):
    jobs._periodic[periodic.name] = jobs.PeriodicFunction(periodic.name, 1, periodic.function)
from heval_site.management.commands import worker
worker.TICK_SECONDS = 0.3
from analysis.metrics import computed
computed.SECONDS_OF_A_PART = 0  # each output is a part

@jobs.register("long")
def long(job, progress):
    for n in range(12):
        progress(n, 12)
        time.sleep(0.25)
    return {"attempts": job.attempts}

exec(sys.argv[1])
"""
# A study with long texts, and a request for two metrics, the second of them slow.
STUDY = """
import random
from studies.models import Output
from tests.boards.builders import rating_template
from tests.builders import user
study, draw = rating_template(user("ada"), prompts=10, systems=("human", "good", "poor")), random.Random(1)
for output in Output.objects.filter(system__study=study).order_by("prompt__key", "system"):
    Output.objects.filter(pk=output.pk).update(text=" ".join(draw.choices("the old house was green and blue".split(), k=100)))
computed.request_metrics(study, study.owner, ["chrf", "ter"])
"""
# A site with one view that takes its time, under the configuration that is shipped.
SLOW_SITE = """
import time
from heval_site.wsgi import application
from heval_site import urls
from django.http import HttpResponse
from django.urls import path
def slow(request):
    time.sleep(2)
    return HttpResponse("answered")
urls.urlpatterns.insert(0, path("slow/", slow))
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A home with its tables, made once."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "heval_site.settings"}
    for name in ("DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL"):
        environment.pop(name, None)
    environment["HEVAL_HOME"] = str(tmp_path_factory.mktemp("prepared") / "home")
    subprocess.run(
        [sys.executable, "-m", "heval_site.management.cli", "prepare"],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
    )
    return environment


@pytest.fixture
def environment(prepared, tmp_path):
    shutil.copytree(prepared["HEVAL_HOME"], tmp_path / "home")
    return prepared | {"HEVAL_HOME": str(tmp_path / "home")}


def submit(environment, n: int) -> None:
    code = f"[jobs.submit('long', by=None) for _ in range({n})]"
    subprocess.run([sys.executable, "-c", RUNNER, code], cwd=ROOT, env=environment, check=True, capture_output=True)


def runner(environment, *options: str) -> subprocess.Popen:
    call = f"call_command{('worker', *options)}"
    return subprocess.Popen([sys.executable, "-c", RUNNER, call], cwd=ROOT, env=environment)


def rows(environment, sql: str) -> list[tuple]:
    """Read beside Django: what another process committed."""
    with closing(sqlite3.connect(Path(environment["HEVAL_HOME"]) / "heval.sqlite3")) as connection:
        return connection.execute(sql).fetchall()


def found_jobs(environment) -> list[dict]:
    found = rows(environment, "SELECT state, result, attempts FROM studies_job ORDER BY id")
    return [
        {"state": state, "result": json.loads(result or "null"), "attempts": attempts}
        for state, result, attempts in found
    ]


def read_until(environment, condition, seconds=90):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = found_jobs(environment)
        if condition(found):
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def test_jobs_of_a_killed_runner_are_run_again_by_the_next(environment):
    submit(environment, 2)
    first = runner(environment)
    read_until(environment, lambda found: found[0]["state"] == "running")
    first.kill()
    first.wait()
    second = runner(environment)
    try:
        found = read_until(environment, lambda found: all(job["state"] == "done" for job in found))
    finally:
        second.terminate()
        assert second.wait(30) == 0
    assert sorted(job["result"]["attempts"] for job in found) == [1, 2]


@pytest.mark.parametrize("options", [(), ("--batches",)])
def test_metrics_of_a_killed_runner_go_on_and_equal_those_of_one_that_lives(environment, tmp_path, options):
    alive = environment | {"HEVAL_HOME": str(tmp_path / "alive")}
    shutil.copytree(environment["HEVAL_HOME"], alive["HEVAL_HOME"])
    for home in (environment, alive):
        subprocess.run([sys.executable, "-c", RUNNER, STUDY], cwd=ROOT, env=home, check=True, capture_output=True)
    stored = "SELECT number, result FROM studies_jobpart WHERE is_done ORDER BY number"
    scores = """SELECT metric.name, system.name, prompt.key, score.value FROM analysis_metricscore score
        JOIN analysis_metric metric ON metric.id = metric_id JOIN studies_output output ON output.id = output_id
        JOIN studies_system system ON system.id = system_id JOIN studies_prompt prompt ON prompt.id = prompt_id ORDER BY 1, 2, 3"""
    first = runner(environment, *options)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(rows(environment, stored)) < 3:
        time.sleep(0.02)
    first.kill()
    first.wait()
    before, (killed,) = rows(environment, stored), found_jobs(environment)
    assert len(before) >= 3 and killed["state"] == "running", "it was killed between two of its parts"
    # Another process lets the job wait again.
    second, sweeper = runner(environment, *options), runner(environment) if options else None
    try:
        (job,) = read_until(environment, lambda found: found[0]["state"] not in ("running", "waiting"))
    finally:
        for process in filter(None, (second, sweeper)):
            process.terminate()
            assert process.wait(30) == 0
    assert (job["state"], job["attempts"]) == ("done", 2)
    once = [sys.executable, "-c", RUNNER, "call_command('worker', '--once')"]
    subprocess.run(once, cwd=ROOT, env=alive, check=True, capture_output=True)
    assert found_jobs(alive)[0]["attempts"] == 1
    found = rows(environment, scores)
    assert len(found) == 2 * 2 * 10 and found == rows(alive, scores)


def test_a_runner_that_is_asked_to_end_puts_its_job_back_at_once(environment):
    submit(environment, 1)
    process = runner(environment)
    read_until(environment, lambda found: found[0]["state"] == "running")
    process.terminate()
    assert process.wait(30) == 0
    assert found_jobs(environment) == [{"state": "waiting", "result": None, "attempts": 0}]


def test_a_request_that_is_being_answered_is_answered_when_the_server_ends(environment, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (tmp_path / "slow_site.py").write_text(SLOW_SITE)
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "-c", "python:heval_site.server", "--pythonpath", str(tmp_path), "slow_site:application"],
        cwd=ROOT, env=environment | {"PORT": str(port)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    answers = []

    def ask():
        answers.append(urllib.request.urlopen(f"http://127.0.0.1:{port}/slow/", timeout=20).read())

    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2)
                break
            except OSError:
                time.sleep(0.1)
        askers = [threading.Thread(target=ask) for _ in range(6)]
        for asker in askers:
            asker.start()
        time.sleep(0.7)
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    for asker in askers:
        asker.join()
    assert code == 0 and answers == [b"answered"] * 6
