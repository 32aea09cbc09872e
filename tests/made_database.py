"""The migrated test database, made once: each process of a test run begins with a copy of it. Migrating takes seconds of computing.

A copy is used only while every Python file of the project, the locked packages and Python itself are what they were when it was made.
"""

import fcntl
import hashlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import django
from django.conf import settings
from django.db import connection

from tests.environment import HOME

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".pytest_cache" / "made_database"
# In SQLite: for processes that a test starts with a migrated database of their own.
COPY = HOME / "migrated.sqlite3"
# Two checkouts that share a server keep databases of their own there.
PREFIX = f"heval_made_{hashlib.sha256(str(ROOT).encode()).hexdigest()[:6]}_"


def fingerprint() -> str:
    """Changes whenever the migrated database might."""
    found = hashlib.sha256(f"{sys.version} {django.__version__} {connection.vendor}".encode())
    files = [
        ROOT / "requirements-dev.lock",
        ROOT / "tests" / "settings.py",
        ROOT / "tests" / "environment.py",
        Path(__file__),
    ]
    for app in ("analysis", "annotators", "boards", "heval_site", "studies"):
        files += (ROOT / app).rglob("*.py")
    for file in sorted(files):
        found.update(f"\n{file.relative_to(ROOT)}\n".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def begin_with_a_copy() -> None:
    """Let Django make this process's test database from the one that is kept, and make that first if it does not exist."""
    test = settings.DATABASES["default"]["TEST"]
    name = PREFIX + fingerprint()
    with _alone():
        if connection.vendor == "postgresql":
            if name not in (there := _on_the_server()):
                _drop(there)
                _make(name)
            test["TEMPLATE"] = name
        else:
            kept = KEPT / f"{name}.sqlite3"
            if not kept.exists():
                for old in KEPT.glob(f"{PREFIX}*"):
                    old.unlink()
                _make(str(kept.with_suffix(".part")))
                kept.with_suffix(".part").rename(kept)
            shutil.copyfile(kept, test["NAME"])
            shutil.copyfile(kept, COPY)


@contextmanager
def _alone() -> Iterator[None]:
    """One process at a time makes the database, and the others wait for it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(name: str) -> None:
    """Migrate a new database of this name. It has another name until it is whole, so that half a one is never copied."""
    test, own = settings.DATABASES["default"]["TEST"], settings.DATABASES["default"]["NAME"]
    kept = dict(test)
    is_postgres = connection.vendor == "postgresql"
    try:
        test["NAME"] = f"{name}_part" if is_postgres else name
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        connection.creation.destroy_test_db(own, verbosity=0, keepdb=True)
    finally:
        test.clear()
        test.update(kept)
    if is_postgres:
        with connection._nodb_cursor() as cursor:
            cursor.execute(f'ALTER DATABASE "{name}_part" RENAME TO "{name}"')


def _on_the_server() -> list[str]:
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX])
        return [name for (name,) in cursor.fetchall()]


def _drop(names: list[str]) -> None:
    with connection._nodb_cursor() as cursor:
        for name in names:
            cursor.execute(f'DROP DATABASE "{name}"')
