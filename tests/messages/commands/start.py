"""The lines of the environment and of the start."""

import os
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from django.db.migrations.loader import MigrationLoader
from django.test import override_settings

from heval_site.runtime import home, pseudonym_key, startup, supervisor
from tests.messages.commands.scenarios import KEY, command, environment, said
from tests.messages.lines import Shown, only_informs

EMBEDDED = {"DATABASE_URL": ""}


@contextmanager
def a_home():
    with (
        tempfile.TemporaryDirectory() as folder,
        override_settings(EMBEDDED=True, LISTEN="127.0.0.1", HEVAL_HOME=Path(folder)),
    ):
        yield Path(folder)


def served_twice():
    with a_home() as folder, supervisor.try_lock_home(folder):
        return said(startup.lock_home_and_check_port_or_exit)


def taken_port():
    with a_home(), socket.create_server(("127.0.0.1", 0)) as other, override_settings(PORT=other.getsockname()[1]):
        return said(startup.lock_home_and_check_port_or_exit)


@contextmanager
def too_old():
    """A database before version 0.1.0."""
    loader = MigrationLoader(None)
    loader.applied_migrations = {("studies", "0001_a_study_has_a_design"): None}
    with (
        mock.patch.object(startup, "MigrationLoader", lambda connection: loader),
        mock.patch.object(startup, "connection", SimpleNamespace(vendor="sqlite", close=lambda: None)),
    ):
        yield


def prepared():
    with too_old(), a_home() as folder, override_settings(MEDIA_ROOT=folder / "media"):
        return command("prepare")()


def checked():
    with too_old():
        return [Shown(found.msg) for found in startup.check_schema_age(None, ["default"])]


def not_stored():
    with mock.patch.object(home, "_create_secret", side_effect=PermissionError(13, "Permission denied")), a_home():
        return said(lambda: home.get_or_create_site_secret("no_such_secret"))


def lost_key():
    with a_home() as folder, mock.patch.dict(os.environ, {"HEVAL_HOME": str(folder)}):
        (folder / home.DATABASE_NAME).touch()
        return said(lambda: home.get_or_create_site_secret("pseudonym_key"))


def with_another_key():
    pseudonym_key.store_or_compare_key()
    with override_settings(PSEUDONYM_KEY="another" * 10):
        return said(pseudonym_key.refuse_wrong_key)


def supervised(code=3):
    """Children that end at once."""

    class Dead(supervisor.ChildProcess):
        def start(self):
            self.process = SimpleNamespace(
                is_alive=lambda: False, exitcode=code, terminate=lambda: None, join=lambda *_: None
            )

    with mock.patch.object(supervisor, "POLL_SECONDS", 0.01), mock.patch.object(supervisor.signal, "signal"):
        return said(lambda: supervisor.supervise([Dead("The web server", lambda: None)]))


def deaf():
    child = supervisor.ChildProcess("The web server", lambda: None)
    child.process = SimpleNamespace(is_alive=lambda: True, pid=2**22 + 1, terminate=lambda: None, join=lambda *_: None)
    with mock.patch.object(supervisor, "GRACE_SECONDS", 0):
        return said(lambda: supervisor._terminate_children([child]))


COMMANDS = {
    "DEBUG must not be true": environment(DEBUG="true"),
    "PSEUDONYM_KEY must not be the SECRET_KEY": environment(PSEUDONYM_KEY=KEY),
    "ALLOWED_HOSTS must list": environment(ALLOWED_HOSTS="*"),
    "DATABASE_URL must name": environment(DATABASE_URL="postgres://heval:secret@db/"),
    "and …_FILE are both": environment(SECRET_KEY_FILE="/nowhere"),
    "…_FILE: … cannot be read": environment(SECRET_KEY="", SECRET_KEY_FILE="{home}/a file"),
    "is now …. Rename": environment(TRUSTED_PROXIES="1"),
    "must be true": environment(DEBUG="enabled"),
    "must be a whole": environment(PORT="http"),
    "must be an IP": environment(LISTEN="eval.example.org"),
    "must be …, not ….": environment(LOG_FORMAT="xml"),
    "is not set": environment(SECRET_KEY=""),
    "must have at least … random": environment(SECRET_KEY="short"),
    "must be the address": environment(SITE_URL="eval"),
    "must begin with https": environment(SITE_URL="http://eval.example.org"),
    "must name origins": environment(EXTERNAL_QUESTION_SITES="tasks"),
    "must name networks": environment(WEBHOOK_NETWORKS="intranet"),
    "must be …, or a stand-in": environment(PROLIFIC_API="https://other.example.org"),
    "must begin with … and be a complete": environment(REDIS_URL="memcached://cache"),
    "HEVAL_HOME: the folder": environment(**EMBEDDED, HEVAL_HOME="{home}/a file/home"),
    "HEVAL_HOME: … cannot be stored": not_stored,
    "HEVAL_HOME: … is missing": lost_key,
    "PSEUDONYM_KEY is not the key": with_another_key,
    "migrate_and_create_cache_and_media_folder: This database is from a version": prepared,
    "check_schema_age: This database is from a version": checked,
    "Another `heval up": served_twice,
    "Port … of … is not available": taken_port,
    "ended … times": supervised,
    "ended with exit": only_informs(supervised),
    "did not end": only_informs(deaf),
}
