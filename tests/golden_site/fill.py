"""Make the stored site anew: ``python -m tests.golden_site.fill FOLDER [POSTGRES]``. See ``tests/golden/site/README.md``.

FOLDER gets the SQLite file and the folder of media; with the address of a PostgreSQL server the packed forms are made too.
"""

import shutil
import sqlite3
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

from .stored import FOLDER, POSTGRES, SQLITE, at_site, pack, packed_sqlite, scratch

# Tables of other people's applications that heval does not fill.
EMPTY = {"auth.Group", "axes.AccessFailureLog", "axes.AccessAttemptExpiration"}


def fill(folder: Path) -> Path:
    home = at_site()
    from django.apps import apps
    from django.conf import settings
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    settings.ALLOWED_HOSTS.append("eval.example.org")
    Path(settings.MEDIA_ROOT).mkdir()
    from annotators.models import Assignment

    from .rows import ROWS, SITE
    from .studies import STUDIES

    # The orders that are drawn from them decide who answers what.
    seeds = count(1000)
    Assignment._meta.get_field("seed")._get_default = lambda: next(seeds)
    settings.SITE_URL = SITE
    for make in (*STUDIES, *ROWS):
        start = time.perf_counter()
        study = make()
        print(f"{study.title:28} {study.state:9} {time.perf_counter() - start:6.1f} s", flush=True)
    empty = {model._meta.label for model in apps.get_models() if not model._base_manager.exists()}
    assert empty <= EMPTY, empty - EMPTY
    connection.cursor().execute("DELETE FROM heval_cache")
    connection.cursor().execute("VACUUM")
    connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    folder.mkdir(parents=True)
    shutil.copytree(settings.MEDIA_ROOT, folder / "media")
    shutil.move(home / "heval.sqlite3", folder / "heval.sqlite3")
    return folder / "heval.sqlite3"


def dumped(database: Path, server: str) -> str:
    """The same rows in PostgreSQL, as a plain dump."""
    with scratch(server, "golden") as url:
        # A process of its own: Django is set up for SQLite in this one.
        make = (
            "from tests.golden_site.stored import at_site; import sys; at_site(sys.argv[1]); from django.core.management import call_command; "
            "call_command('migrate', verbosity=0); call_command('createcachetable', verbosity=0)"
        )
        subprocess.run([sys.executable, "-c", make, url], check=True)
        _copy(database, url)
        command = ["pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=500", url]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _copy(database: Path, url: str) -> None:
    import psycopg

    def as_postgres(value, kind: str):
        if value is None:
            return None
        if kind == "boolean":
            return bool(value)
        return f"{value}+00" if kind == "timestamp with time zone" else value

    with psycopg.connect(url) as target, sqlite3.connect(database) as source:
        target.execute("SET session_replication_role = replica")  # rows as they are: no trigger, no order
        tables = [name for (name,) in target.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        target.execute(f"TRUNCATE {', '.join(tables)}")
        for table in tables:
            kinds = dict(
                target.execute(
                    "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position",
                    [table],
                )
            )
            names = ", ".join(f'"{name}"' for name in kinds)
            with target.cursor().copy(f'COPY "{table}" ({names}) FROM STDIN') as copy:
                for row in source.execute(f'SELECT {names} FROM "{table}" ORDER BY 1'):
                    copy.write_row([as_postgres(value, kind) for value, kind in zip(row, kinds.values(), strict=True)])
            if "id" in kinds:
                target.execute(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), coalesce(max(id), 1), max(id) IS NOT NULL) FROM {table}"
                )


def main(folder: Path, server: str) -> None:
    database = fill(folder)
    FOLDER.mkdir(exist_ok=True)
    if server:
        text = dumped(database, server)
        (folder / "postgres.sql").write_text(text, encoding="utf-8")
        pack(text, POSTGRES)
        pack(packed_sqlite(database), SQLITE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), "".join(sys.argv[2:]))
