"""The lines of the environment and of the start."""

import os
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from django.test import override_settings

from heval_site.runtime import home, pseudonym_key, startup, supervisor
from tests.messages.commands.scenarios import KEY, RUNTIME, command, environment, said
from tests.messages.lines import NOTHING, Shown

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
    with (
        mock.patch.object(startup, "is_schema_too_old", lambda: True),
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


SECRET = "Generate one: heval secret"
LINES = {
    "heval_site/settings:": [
        ("DEBUG must not be true if DATABASE_URL is set", "must not be true", environment(DEBUG="true")),
        (
            "PSEUDONYM_KEY must not be the SECRET_KEY",
            "Generate another one: heval secret",
            environment(PSEUDONYM_KEY=KEY),
        ),
        ("ALLOWED_HOSTS must list the host names", "without *", environment(ALLOWED_HOSTS="*")),
        (
            "DATABASE_URL must name a database",
            "postgres://user:password@host:5432/name",
            environment(DATABASE_URL="postgres://heval:secret@db/"),
        ),
    ],
    f"{RUNTIME}:text": [
        ("SECRET_KEY and SECRET_KEY_FILE are both set", "Remove one of them", environment(SECRET_KEY_FILE="/nowhere")),
        (
            "a file cannot be read (not UTF-8)",
            "Correct the path or the file",
            environment(SECRET_KEY="", SECRET_KEY_FILE="{home}/a file"),
        ),
    ],
    f"{RUNTIME}:refuse_old_names": [
        (
            "TRUSTED_PROXIES is now TRUSTED_PROXY_COUNT",
            "Rename it where you set it",
            environment(TRUSTED_PROXIES="1"),
        ),
    ],
    f"{RUNTIME}:boolean": [
        ("DEBUG must be true or false, not 'enabled'", "must be true or false", environment(DEBUG="enabled"))
    ],
    f"{RUNTIME}:integer": [
        ("PORT must be a whole number", "from 1 to 65535, not 'http'", environment(PORT="http")),
    ],
    f"{RUNTIME}:network_address": [
        ("LISTEN must be an IP address", "such as 127.0.0.1 or 0.0.0.0", environment(LISTEN="eval.example.org")),
    ],
    f"{RUNTIME}:choice": [
        ("LOG_FORMAT must be plain or json, not 'xml'", "must be plain or json", environment(LOG_FORMAT="xml")),
    ],
    f"{RUNTIME}:required_secret": [
        ("SECRET_KEY is not set", SECRET, environment(SECRET_KEY="")),
        ("SECRET_KEY must have at least 50 random characters", SECRET, environment(SECRET_KEY="short")),
    ],
    f"{RUNTIME}:site_origin": [
        (
            "SITE_URL must be the address that annotators use",
            "for example https://eval.example.org",
            environment(SITE_URL="eval"),
        ),
        (
            "not 'http://eval.example.org': annotators' links are credentials",
            "SITE_URL must begin with https://",
            environment(SITE_URL="http://eval.example.org"),
        ),
    ],
    f"{RUNTIME}:origins": [
        (
            "EXTERNAL_QUESTION_SITES must name origins",
            "such as https://tasks.example.org",
            environment(EXTERNAL_QUESTION_SITES="tasks"),
        ),
    ],
    f"{RUNTIME}:official_or_local_stand_in_origin": [
        (
            "PROLIFIC_API must be https://api.prolific.com",
            "or a stand-in on this machine, for example",
            environment(PROLIFIC_API="https://other.example.org"),
        ),
    ],
    f"{RUNTIME}:url": [
        (
            "REDIS_URL must begin with redis://",
            "and be a complete address",
            environment(REDIS_URL="memcached://cache"),
        ),
    ],
    f"{RUNTIME}:home_folder": [
        (
            "home cannot be created (Not a directory)",
            "Name another folder",
            environment(**EMBEDDED, HEVAL_HOME="{home}/a file/home"),
        ),
    ],
    f"{RUNTIME}:get_or_create_site_secret": [
        ("no_such_secret cannot be stored (Permission denied)", "Make the folder writable", not_stored),
        ("pseudonym_key is missing beside its database", "Restore it from your backup", lost_key),
    ],
    f"{RUNTIME}:refuse_wrong_key": [
        ("PSEUDONYM_KEY is not the key of this database", "Restore it from your backup", with_another_key),
    ],
    f"{RUNTIME}:migrate_and_create_cache_and_media_folder": [
        ("This database is from a version before 0.1.0", "run “heval prepare” there", prepared),
    ],
    f"{RUNTIME}:check_schema_age": [
        ("This database is from a version before 0.1.0", "run “heval prepare” there", checked),
    ],
    f"{RUNTIME}:lock_home_and_check_port_or_exit": [
        ("Another `heval up` already serves", "End it first, or set HEVAL_HOME and PORT", served_twice),
        ("of 127.0.0.1 is not available: Address already in use", "Set another PORT", taken_port),
    ],
    f"{RUNTIME}:supervise": [
        ("The web server ended 5 times within a minute", "The lines above say why", supervised),
        ("The web server ended with exit code 3; restarting it", NOTHING, supervised),
    ],
    f"{RUNTIME}:_terminate_children": [
        ("The web server did not end in time and was killed", NOTHING, deaf),
    ],
}
