"""A database knows the key that prepared it: with another one nothing starts, and no command makes a new one for it."""

import os
import shutil
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import OperationalError

from heval_site import server
from heval_site.management.cli import COMMANDS
from heval_site.runtime import doctor, pseudonym_key, startup
from studies.models import AuditEvent
from tests import ROOT

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
ANOTHER = "another key that is long enough for this purpose 0123456789"


def worker():
    call_command("worker", "--once")


# What starts a process that serves or prepares.
STARTS = {
    "prepare": lambda: pseudonym_key.store_or_compare_key(),
    "up --no-migrate": pseudonym_key.refuse_wrong_key_at_start,
    "worker": worker,
    "web server": server.refuse_wrong_key,
}


@pytest.fixture(autouse=True)
def kept_connection(monkeypatch):
    """A test's transaction lives in its connection."""
    monkeypatch.setattr(startup, "close_connections_before_fork", lambda: None)


def events() -> int:
    return AuditEvent.objects.filter(verb=pseudonym_key.VERB).count()


@pytest.mark.parametrize("name", STARTS)
def test_nothing_starts_with_another_key(settings, name):
    pseudonym_key.store_or_compare_key()
    pseudonym_key.store_or_compare_key()
    assert events() == 1
    STARTS[name]()
    settings.PSEUDONYM_KEY = ANOTHER
    with pytest.raises(ImproperlyConfigured, match="is not the key of this database"):
        STARTS[name]()
    assert events() == 1
    assert doctor._checks["pseudonym key"]().status == doctor.FAILED


def test_a_new_key_is_accepted_on_purpose_and_on_record(settings):
    pseudonym_key.store_or_compare_key()
    settings.PSEUDONYM_KEY = ANOTHER
    pseudonym_key.store_or_compare_key(accept_new=True)
    pseudonym_key.store_or_compare_key(accept_new=True)
    assert events() == 2 and not pseudonym_key.has_wrong_key()
    assert ANOTHER not in str(list(AuditEvent.objects.values_list("data", flat=True)))


@pytest.mark.parametrize("name", ["up --no-migrate", "worker", "web server"])
def test_a_database_that_is_not_prepared_or_away_stops_no_start(monkeypatch, settings, name):
    STARTS[name]()

    def away():
        raise OperationalError("the connection was refused")

    monkeypatch.setattr(pseudonym_key, "_stored_digest", away)
    STARTS[name]()


def test_prepare_compares(monkeypatch):
    asked = []
    monkeypatch.setattr(pseudonym_key, "store_or_compare_key", asked.append)
    monkeypatch.setattr(startup.connection, "close", lambda: None)
    call_command("prepare", "--accept-new-pseudonym-key", verbosity=0)
    call_command("prepare", verbosity=0)
    assert asked == [True, False]


def test_no_command_makes_a_key_for_a_database_that_is_there(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name not in ("SECRET_KEY", "PSEUDONYM_KEY")}
    environment |= {"HEVAL_HOME": str(tmp_path), "DJANGO_SETTINGS_MODULE": "heval_site.settings", "DATABASE_URL": ""}
    (tmp_path / "heval.sqlite3").touch()
    for command in ("doctor", "prepare", "up", "worker"):
        assert command in COMMANDS
        done = subprocess.run(
            [sys.executable, "-m", "heval_site.management.cli", command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1 and "pseudonym_key is missing" in done.stderr, (command, done)
    assert not (tmp_path / "pseudonym_key").exists()
    shutil.rmtree(tmp_path)
