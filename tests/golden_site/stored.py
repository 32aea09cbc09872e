"""The stored site: packed for the repository, and unpacked into a SQLite file or a PostgreSQL database as it was when it was stored."""

import atexit
import lzma
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests import ROOT

# The columns and rows of each table.
Rows = dict[str, tuple[list[str], list[tuple]]]
FOLDER = ROOT / "tests" / "golden" / "site"
SQLITE, POSTGRES = FOLDER / "sqlite.sql.xz", FOLDER / "postgres.sql.xz"
SECRETS = {
    "SECRET_KEY": "secret-key-of-the-golden-site-" + "0123456789" * 4,
    "PSEUDONYM_KEY": "pseudonym-key-of-the-golden-site-" + "0123456789" * 4,
}


def pack(text: str, path: Path) -> None:
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def unpacked(path: Path) -> str:
    return lzma.decompress(path.read_bytes()).decode()


def packed_sqlite(database: Path) -> str:
    with sqlite3.connect(database) as connection:
        return "\n".join(connection.iterdump())


def into_sqlite(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.executescript(unpacked(SQLITE))


def into_postgres(url: str) -> None:
    import psycopg

    # Lines that begin with a backslash are for psql alone.
    text = "\n".join(line for line in unpacked(POSTGRES).splitlines() if not line.startswith("\\"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text)


@contextmanager
def scratch(server: str, name: str) -> Iterator[str]:
    """The address of a new, empty database on a PostgreSQL server, which is dropped afterwards."""
    import psycopg

    name = f"heval_{name}_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def at_site(url: str = "") -> Path:
    """Set Django up for the stored site: in a home of its own, or in the PostgreSQL database at ``url``. Gives the home, which goes with
    the process.

    Nothing of ours may have been imported before, ``tests.environment`` excepted.
    """
    os.environ |= {"HEVAL_TEST_ON": "postgres" if url else "", "HEVAL_TEST_DATABASE_URL": url}
    import tests.environment  # noqa: F401 - clears what this machine has set, so that the keys below hold

    home = Path(tempfile.mkdtemp(prefix="heval-golden-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ |= SECRETS | {"HEVAL_HOME": str(home), "DJANGO_SETTINGS_MODULE": "tests.settings"}
    import django

    django.setup()
    return home


def in_sqlite(database: Path) -> Rows:
    with sqlite3.connect(database) as connection:
        found = {}
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        ):
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            found[table] = ([column[0] for column in cursor.description], cursor.fetchall())
        return found


def in_postgres(url: str) -> Rows:
    import psycopg

    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        found = {}
        for (table,) in tables:
            cursor = connection.execute(f'SELECT * FROM "{table}"')
            found[table] = ([column.name for column in cursor.description], cursor.fetchall())
        return found
