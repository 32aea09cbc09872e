"""The commands that people type first."""

import io
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.core.management import CommandError, call_command

from heval_site.management import cli
from heval_site.management.commands import demo
from heval_site.runtime import startup, static_files, supervisor
from studies.models import Job
from studies.services import jobs
from tests import ROOT

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def test_help_fits_on_a_screen_and_names_every_command(capsys):
    cli.main(["--help"])
    text = capsys.readouterr().out
    assert len(text.splitlines()) <= 24 and max(map(len, text.splitlines())) <= 80
    for name in cli.COMMANDS:
        assert f"  {name} " in text


def test_a_secret_needs_no_settings_and_is_long(capsys):
    cli.main(["secret"])
    cli.main(["secret"])
    one, two = capsys.readouterr().out.split()
    assert len(one) >= 50 and one != two


def test_the_worker_runs_what_waits_once(monkeypatch):
    jobs.autodiscover_tasks()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))
    jobs.register("any")(lambda job, progress: 1)
    job = jobs.submit("any", by=None)
    out = io.StringIO()
    call_command("worker", "--once", stdout=out)
    assert out.getvalue() == "1 jobs run\n"
    assert Job.objects.get(pk=job.pk).state == Job.State.DONE
    assert jobs.is_runner_alive()


def test_a_worker_of_batches_runs_only_batches_and_no_periodic_work(monkeypatch):
    jobs.autodiscover_tasks()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))
    jobs.register("short")(lambda job, progress: 1)
    jobs.register("long", is_batch=True)(lambda job, progress: 2)
    for work in (jobs.JOBS, jobs.BATCHES, jobs.PERIODIC_WORK):
        cache.delete(jobs.heartbeat_key(work))
    short, long, later = (jobs.submit(kind, by=None) for kind in ("short", "long", "long"))
    out = io.StringIO()
    call_command("worker", "--batches", "--once", stdout=out)
    assert out.getvalue() == "2 jobs run\n"
    states = dict(Job.objects.values_list("pk", "state"))
    assert states == {short.pk: "waiting", long.pk: "done", later.pk: "done"}
    assert jobs.is_recorded(jobs.BATCHES) and jobs.work_without_runner() == [jobs.JOBS, jobs.PERIODIC_WORK]
    jobs.submit("long", by=None)
    out = io.StringIO()
    call_command("worker", "--once", stdout=out)
    assert out.getvalue() == "1 jobs run\n", "it leaves the batch to the other worker"


@pytest.mark.parametrize("options", [[], ["--batches"]])
def test_a_worker_looks_for_the_jobs_of_its_class_until_it_is_asked_to_end(monkeypatch, options):
    from heval_site.management.commands import worker

    asked = []
    monkeypatch.setattr(worker.signal, "signal", lambda *given: None)
    monkeypatch.setattr(worker, "_tick", lambda runner: asked.append(("tick", runner)))

    def run_waiting_jobs(runner):
        asked.append(("jobs", runner))
        if runner == jobs.SHORT_JOBS:
            time.sleep(0.2)  # it is at work when the command is asked to end

    monkeypatch.setattr(jobs, "run_waiting_jobs", run_waiting_jobs)

    def compute_open_part(runner):
        asked.append(("parts", runner))
        jobs.stop_requested.set()

    monkeypatch.setattr(jobs, "compute_open_part", compute_open_part)
    monkeypatch.setattr(jobs, "has_unfinished_jobs", lambda: True)
    try:
        call_command("worker", *options)
    finally:
        jobs.stop_requested.clear()
    runner = jobs.BATCHES if options else jobs.JOBS
    of_short_jobs = set() if options else {("jobs", jobs.SHORT_JOBS)}
    assert set(asked) == {("tick", runner), ("jobs", runner), ("parts", runner)} | of_short_jobs
    assert "heval-short-jobs" not in {one.name for one in threading.enumerate()}, "it would run jobs of later tests"


@pytest.mark.django_db(transaction=True)
def test_a_worker_begins_a_short_job_while_it_runs_another(monkeypatch):
    from heval_site.management.commands import worker

    jobs.autodiscover_tasks()
    monkeypatch.setattr(jobs, "_kinds", dict(jobs._kinds))
    monkeypatch.setattr(worker.signal, "signal", lambda *given: None)
    monkeypatch.setattr(worker, "_tick", lambda runner: None)
    has_begun = threading.Event()

    def report(job, progress):
        jobs.submit("urgent", by=None)
        found = has_begun.wait(20)
        jobs.stop_requested.set()
        return found

    jobs.register("report")(report)
    jobs.register("urgent", is_short=True)(lambda job, progress: has_begun.set())
    try:
        job = jobs.submit("report", by=None)
        call_command("worker")
    finally:
        jobs.stop_requested.clear()
    job.refresh_from_db()
    assert (job.state, job.result) == (Job.State.DONE, True)


def test_the_site_has_a_web_server_and_a_process_for_each_class_of_jobs(monkeypatch):
    called, children = [], []
    monkeypatch.setattr(supervisor, "supervise", lambda given: children.extend(given) or 0)
    monkeypatch.setattr(startup, "call_command", lambda *name, **options: called.append((*name, options)))
    monkeypatch.setattr(startup, "_run_gunicorn", lambda: called.append("web"))
    monkeypatch.setattr(startup, "close_connections_before_fork", lambda: None)
    # The storage of this process would know the names of collected files, and the pages of later tests show them.
    monkeypatch.setattr(static_files, "collect_changed_static_files", lambda: called.append("files"))
    monkeypatch.setenv("HEVAL_ANNOUNCE", "")
    cache.delete(jobs.heartbeat_key(jobs.BATCHES))
    with pytest.raises(SystemExit, match="0"):
        startup.serve(None)
    for child in children:
        child.run()
    assert called == ["files", "web", ("worker", {}), ("worker", {"batches": True})]
    assert [child.is_essential for child in children] == [True, False, False]
    assert jobs.is_recorded(jobs.BATCHES), "the job runner leaves batches to the other from the start"


def test_up_refuses_where_migrations_wait_and_may_not_be_applied(monkeypatch):
    from heval_site.management.commands import up

    monkeypatch.setattr(up, "is_migrated", lambda: False)
    monkeypatch.setattr(up, "lock_home_and_check_port_or_exit", lambda: None)
    monkeypatch.setattr(up, "serve", lambda lock: pytest.fail("served"))
    with pytest.raises(CommandError, match="heval prepare"):
        call_command("up", "--no-migrate")


@pytest.mark.django_db
def test_a_site_without_an_account_says_how_to_make_the_first(monkeypatch, client):
    from heval_site.management.commands import up

    announced = []
    monkeypatch.setattr(up, "lock_home_and_check_port_or_exit", lambda: None)
    monkeypatch.setattr(up, "in_child_process", lambda work: "")
    monkeypatch.setattr(up, "serve", lambda lock, announcement: announced.append(announcement))
    for has_account in (False, True):
        call_command("up")
        assert ("heval createsuperuser" in announced[-1]) is not has_account
        page = client.get("/admin/login/").content.decode()
        assert ("heval createsuperuser" in page) is not has_account
        get_user_model().objects.get_or_create(username="first")
    assert announced[-1] == "", "the server's own words"


IN_CHILD = """
import os, django
django.setup()
from heval_site.runtime.startup import in_child_process
here = os.getpid()
print(in_child_process(lambda: "ä elsewhere" if os.getpid() != here else "here"), flush=True)
in_child_process(lambda: open("/no/such/folder") and "")
print("not reached")
"""


def test_what_a_new_site_needs_is_made_in_a_process_of_its_own():
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "tests.settings", "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run([sys.executable, "-c", IN_CHILD], cwd=ROOT, env=environment, capture_output=True)
    assert run.stdout.decode() == "ä elsewhere\n" and run.returncode == 1
    assert run.stderr.decode().count("FileNotFoundError") == 1


def test_what_is_prepared_is_known_to_be():
    assert startup.is_migrated()


def test_the_demo_makes_an_administrator_once_and_tells_the_password_once():
    user, password = demo.get_admin_or_create_with_password()
    assert user.check_password(password) and user.is_superuser and len(password) >= 12
    assert demo.get_admin_or_create_with_password() == (user, "")


def test_the_way_to_a_new_password_can_be_typed_as_it_is_printed():
    """A checkout has no command called heval."""
    assert demo.CHANGE_PASSWORD_COMMAND.startswith(f"HEVAL_HOME={settings.HEVAL_HOME} ")
    run = subprocess.run(
        ["/bin/sh", "-c", f"{demo.CHANGE_PASSWORD_COMMAND} --help"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0 and "changepassword" in run.stdout, run.stderr


@pytest.mark.parametrize("command", ["up", "demo"])
def test_a_port_that_is_taken_is_reported_before_anything_is_made(command, settings, tmp_path, monkeypatch, capsys):
    """Once the demo made its administrator first, and nobody ever saw the password."""
    monkeypatch.setattr(
        f"heval_site.management.commands.{command}.in_child_process", lambda work: pytest.fail("prepared")
    )
    settings.EMBEDDED, settings.LISTEN, settings.HEVAL_HOME = True, "127.0.0.1", tmp_path
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings.PORT = other.getsockname()[1]
        with pytest.raises(SystemExit, match="1"):
            call_command(command)
    said = capsys.readouterr().err
    assert f"Port {settings.PORT} of 127.0.0.1 is not available: Address already in use. Set another PORT" in said
    assert f"PORT={settings.PORT + 1}" in said
    startup.lock_home_and_check_port_or_exit().close()  # it is free now, and so is the home
