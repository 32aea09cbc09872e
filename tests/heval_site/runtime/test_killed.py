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

@jobs.register("long")
def long(job, progress):
    for n in range(12):
        progress(n, 12)
        time.sleep(0.25)
    return {"attempts": job.attempts}

exec(sys.argv[1])
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


def runner(environment) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", RUNNER, "call_command('worker')"], cwd=ROOT, env=environment)


def found_jobs(environment) -> list[dict]:
    """Read beside Django: what another process committed."""
    with closing(sqlite3.connect(Path(environment["HEVAL_HOME"]) / "heval.sqlite3")) as connection:
        rows = connection.execute("SELECT state, result, attempts FROM studies_job ORDER BY id").fetchall()
    return [
        {"state": state, "result": json.loads(result or "null"), "attempts": attempts}
        for state, result, attempts in rows
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
