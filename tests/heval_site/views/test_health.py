"""Monitoring learns the truth and no secret; the doctor says what to do."""

import io
import json
import threading
from datetime import timedelta
from types import SimpleNamespace
from unittest.mock import Mock

import psycopg
import pytest
from django.conf import settings as settings_of_django
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage
from django.core.cache import cache
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone

from heval_site.runtime import doctor
from heval_site.views import health
from studies.models import Job
from studies.services import jobs
from tests.read_only import read_only_database

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def record_heartbeats():
    for work in (jobs.JOBS, jobs.PERIODIC_WORK):
        jobs.record_runner_heartbeat(work)


def test_healthz_asks_nothing_of_the_database(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert client.get("/healthz").content == b"ok\n"


def test_ready_where_all_is_well(client):
    record_heartbeats()
    response = client.get("/readyz")
    assert (response.status_code, response.json()["ready"]) == (200, True)


def refuse(*args):
    raise OperationalError("postgres://heval:hunter2@db/heval refused")


def forgets():
    return SimpleNamespace(set=lambda *_: None, get=lambda *_: None, delete=lambda *_: None, get_many=cache.get_many)


def test_two_checks_at_once_do_not_spoil_each_other(monkeypatch):
    def let_another_check_in(*values):
        monkeypatch.undo()
        cache.set(*values)
        assert doctor.cache_problem() == ""

    checked = SimpleNamespace(set=let_another_check_in, get=cache.get, delete=cache.delete)
    monkeypatch.setattr(doctor, "cache", checked)
    assert doctor.cache_problem() == ""


def no_css(tmp_path):
    """Files that were never collected."""
    return ManifestStaticFilesStorage(location=tmp_path)


# What fails, how, and words of the problem.
BROKEN = {
    "database": (lambda patch, tmp_path: patch.setattr(doctor.connection, "cursor", refuse), "heval doctor"),
    "migrations": (lambda patch, tmp_path: patch.setattr(health, "is_migrated", lambda: False), "heval prepare"),
    "cache": (lambda patch, tmp_path: patch.setattr(doctor, "cache", forgets()), "stores nothing"),
    "static files": (
        lambda patch, tmp_path: patch.setattr(doctor, "staticfiles_storage", no_css(tmp_path)),
        "collectstatic",
    ),
    "runner": (lambda patch, tmp_path: cache.delete(jobs.heartbeat_key(jobs.JOBS)), "No process has run jobs for 90 s"),
    "runner ": (
        lambda patch, tmp_path: cache.delete(jobs.heartbeat_key(jobs.PERIODIC_WORK)),
        "No process has run periodic work for 90 s",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_fails_is_named_in_words(client, monkeypatch, settings, tmp_path, name):
    settings.HAS_COLLECTED_STATIC = name == "static files"
    record_heartbeats()
    monkeypatch.setattr(health, "_was_prepared", False)
    breaks, words = BROKEN[name]
    breaks(monkeypatch, tmp_path)
    response = client.get("/readyz")
    found = response.json()
    assert response.status_code == 503 and not found["ready"]
    assert found["checks"][name.strip()] == "failed" and words in found["problems"][name.strip()]
    assert name == "database" or [check for check, state in found["checks"].items() if state == "failed"] == [
        name.strip()
    ]
    assert b"hunter2" not in response.content


def test_every_check_can_fail():
    assert {name.strip() for name in BROKEN} == {"database", *health.CHECKS}


def test_a_check_is_cheap(client, django_assert_max_num_queries):
    record_heartbeats()
    client.get("/readyz")
    with django_assert_max_num_queries(10):
        assert client.get("/readyz").status_code == 200


def test_a_worker_with_a_long_job_lives(monkeypatch):
    """It does not look for jobs meanwhile, so its heartbeat is renewed with its lease."""
    record_heartbeats()
    cache.delete(jobs.heartbeat_key(jobs.JOBS))
    assert jobs.work_without_runner() == [jobs.JOBS]
    monkeypatch.setattr(jobs, "RENEW_SECONDS", 0.02)
    held, renewed, works = SimpleNamespace(renew_lease=lambda: True), threading.Event(), []
    record = jobs.record_runner_heartbeat
    monkeypatch.setattr(jobs, "record_runner_heartbeat", lambda work: works.append(work) or renewed.set())
    with jobs.lease_renewal(held, jobs.JOBS):
        assert renewed.wait(5)
    record(works[0])
    assert jobs.work_without_runner() == []


def test_a_long_batch_of_another_process_hides_no_missing_worker():
    jobs.record_runner_heartbeat(jobs.BATCHES)
    jobs.record_runner_heartbeat(jobs.PERIODIC_WORK)
    cache.delete(jobs.heartbeat_key(jobs.JOBS))
    job = jobs.submit("calibrate", by=None)
    Job.objects.filter(pk=job.pk).update(
        state=Job.State.RUNNING, holder="one", leased_until=timezone.now() + timedelta(seconds=30)
    )
    assert jobs.work_without_runner() == [jobs.JOBS]
    jobs.record_runner_heartbeat(jobs.JOBS)
    cache.delete(jobs.heartbeat_key(jobs.BATCHES))
    assert jobs.is_runner_alive(), "who runs jobs also runs batches"


@pytest.mark.django_db(transaction=True)
def test_a_read_only_database_is_not_ready_and_the_doctor_says_so(client):
    record_heartbeats()
    with read_only_database():
        found = client.get("/readyz").json()
        code, _, checks = examined()
    assert "read-only" in found["problems"]["database"]
    assert code == 1 and "read-only" in checks["database"]["message"]


def examined(capsys=None):
    out = io.StringIO()
    code = 0
    try:
        call_command("doctor", "--json", stdout=out)
    except SystemExit as end:
        code = end.code
    found = json.loads(out.getvalue())
    return code, found["ok"], {check["name"]: check for check in found["checks"]}


@pytest.fixture
def well(settings):
    settings.MEDIA_ROOT.mkdir(parents=True, exist_ok=True)
    record_heartbeats()


def test_the_doctor_is_content_where_all_is_well(well, monkeypatch, settings):
    settings.EMBEDDED = True  # a deployment over http, as the tests are on PostgreSQL, would not please it
    # Tests run without fsync, which the doctor would rightly not bear; that check has its own test.
    monkeypatch.setitem(doctor._checks, "durability", lambda: doctor.CheckFinding(doctor.OK, ""))
    code, is_ok, checks = examined()
    failed = {name: check["message"] for name, check in checks.items() if check["status"] == "failed"}
    assert (code, is_ok, failed) == (0, True, {})


def broken_cache(patch):
    patch.setattr(doctor, "cache", forgets())


AILMENTS = {
    "runner": lambda patch: cache.delete(jobs.heartbeat_key(jobs.JOBS)),
    "cache": broken_cache,
    "migrations": lambda patch: patch.setattr(doctor, "is_migrated", lambda: False),
    "disk": lambda patch: patch.setattr(doctor.shutil, "disk_usage", lambda _: SimpleNamespace(free=5)),
    "clock": lambda patch: patch.setattr(doctor, "CLOCK_TOLERANCE_SECONDS", -1),
}


@pytest.mark.parametrize("name", AILMENTS)
def test_the_doctor_finds_an_ailment_and_names_a_remedy(well, monkeypatch, name):
    AILMENTS[name](monkeypatch)
    code, is_ok, checks = examined()
    assert code == 1 and not is_ok
    assert checks[name]["status"] == "failed" and len(checks[name]["fix"]) > 10


@pytest.mark.parametrize(
    "folder, file, status, fix",
    [
        (0o700, 0o600, "ok", ""),
        (0o755, 0o600, "failed", "chmod 700 '{home}'"),
        (0o701, 0o600, "failed", "chmod 700 '{home}'"),
        (0o750, 0o600, "warning", "chmod 700 '{home}'"),
        (0o700, 0o640, "failed", "chmod 600 '{home}/pseudonym_key'"),
        (0o755, 0o644, "failed", "chmod 700 '{home}'; chmod 600 '{home}/pseudonym_key'"),
    ],
)
def test_the_doctor_tells_whom_an_older_home_lets_in(well, settings, tmp_path, folder, file, status, fix):
    home = tmp_path / "my home"
    home.mkdir()
    for name in ("secret_key", "pseudonym_key"):
        (home / name).write_text("x")
        (home / name).chmod(0o600)
    (home / "pseudonym_key").chmod(file)
    home.chmod(folder)
    settings.EMBEDDED, settings.HEVAL_HOME = True, home
    found = examined()[2]["secrets"]
    assert found["status"] == status
    assert found["fix"] == (f"Run: {fix.format(home=home)}" if fix else "")
    # Where the database and the keys are the deployment's, nothing lies there.
    settings.EMBEDDED = False
    assert examined()[2]["secrets"]["status"] == "ok"


def test_the_doctor_finds_a_setting_that_is_wrong(well, settings):
    settings.SITE_URL, settings.ALLOWED_HOSTS = "https://eval.example.org", ["localhost"]
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    settings.MEDIA_ROOT = settings.MEDIA_ROOT / "nowhere"
    settings.USE_TZ = False
    code, _, checks = examined()
    assert code == 1
    for name in ("site address", "broker", "media", "time zone"):
        assert checks[name]["status"] == "failed" and checks[name]["fix"], name


def test_the_doctor_finds_a_database_that_may_lose_answers(well):
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL synchronous_commit = off")
    # On SQLite the tests themselves run with synchronous = OFF.
    assert examined()[2]["durability"]["status"] == "failed"


def test_the_doctor_goes_on_where_the_database_cannot_be_asked(well, monkeypatch):
    def refuse(*args):
        raise OperationalError("connection refused")

    monkeypatch.setattr(doctor.connection, "cursor", refuse)
    code, _, checks = examined()
    assert code == 1 and checks["database"]["fix"]
    assert checks["migrations"]["status"] == "skipped" and checks["static files"]["status"] == "ok"


def test_the_doctor_prints_a_line_a_check_for_people(well, monkeypatch):
    monkeypatch.setitem(
        doctor._checks, "durability", lambda: doctor.CheckFinding(doctor.FAILED, "fsync = off", "Set fsync = on.")
    )
    out = io.StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("doctor", stdout=out)
    assert end.value.code == 1
    assert "FAIL durability: fsync = off\n     Set fsync = on.\n" in out.getvalue()


REASONS = {
    "password": ("PASSWORD", "wrong and secret", "password authentication failed"),
    "port": ("PORT", "1", "Connection refused"),
    "database": ("NAME", "nowhere", 'database "nowhere" does not exist'),
    "role": ("USER", "nobody_here", 'role "nobody_here" does not exist'),
    "host": ("HOST", "no-such-host.invalid", "resolve host"),
}


@pytest.mark.only_on("postgresql")
@pytest.mark.parametrize("name", REASONS)
def test_the_doctor_gives_the_servers_own_reason(monkeypatch, name):
    column, value, words = REASONS[name]
    if name == "password":
        # The server of the tests trusts everybody: this is what another one says.
        message = "connection failed: FATAL: password authentication failed for user x: wrong and secret"
        monkeypatch.setattr(psycopg, "connect", Mock(side_effect=psycopg.OperationalError(message)))
    monkeypatch.setitem(connection.settings_dict, column, value)
    monkeypatch.setitem(settings_of_django.DATABASES["default"], column, value)
    found = next(result for result in doctor.run_all_checks() if result.name == "database")
    assert found.status == "failed" and words in found.message and found.fix
    assert "secret" not in found.message


def test_the_doctor_names_a_misspelt_variable(well, monkeypatch):
    monkeypatch.setenv("SITE_URl", "https://eval.example.org")
    found = examined()[2]["variables"]
    assert (found["status"], found["message"]) == ("warning", "SITE_URl: did you mean SITE_URL?")
