"""A filled database that older code wrote is upgraded without loss, and has then the same schema as a new one."""

import re
import shutil
import sqlite3
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection

from tests.conftest import skip_or_fail

from .conftest import heval
from .stored import Rows, in_postgres, in_sqlite, into_postgres, into_sqlite, scratch

# One worker makes each of the databases; two would make both of them twice.
pytestmark = pytest.mark.xdist_group("upgrade")
# What Django itself writes down while it migrates.
DJANGOS = {"django_migrations", "django_content_type", "auth_permission"}
# Tables whose rows a later migration changes, and columns (table, column) that one gave up, with the reason.
CHANGED: dict[str, str] = {
    "annotators_panelorder": "orders to Mechanical Turk are cancelled or unclear",
    "annotators_panelsecret": "keys of Amazon accounts are deleted",
}
GONE: dict[tuple[str, str], str] = {}
# Values that a later migration gave another name.
RENAMED = {("studies_job", "kind"): {"panel": "panel_sync"}}


def people_of_open_links_are_not_named(before: Rows, row: dict) -> dict:
    columns, links = before["annotators_recruitment"]
    channels = {link[columns.index("id")]: link[columns.index("channel")] for link in links}
    is_open = channels.get(row["recruitment_id"]) == "open_link"
    return row | ({"trust": "none"} if is_open and row["trust"] == "claimed" else {})


# Values that a later migration corrected.
CORRECTED = {"annotators_assignment": people_of_open_links_are_not_named}


def is_kept(before: Rows, after: Rows) -> None:
    """Every row of every table, in every column that is still there."""
    assert sum(len(rows) for _, rows in before.values()) > 20_000
    for table in before.keys() - DJANGOS - CHANGED.keys():
        columns, rows = before[table]
        assert table in after, table
        known, there = after[table]
        if table == "studies_auditevent":  # the preparation records the site's key
            there = [row for row in there if row[known.index("verb")] != "set pseudonym key"]
            assert len(there) == len(after[table][1]) - 1
        assert {(table, column) for column in columns if column not in known} <= GONE.keys()
        kept = [column for column in columns if column in known]

        def of(names, rows, kept=kept):
            places = [names.index(column) for column in kept]
            return sorted(repr([row[place] for place in places]) for row in rows)

        for (_, column), names in ((where, names) for where, names in RENAMED.items() if where[0] == table):
            place = columns.index(column)
            rows = [(*row[:place], names.get(row[place], row[place]), *row[place + 1 :]) for row in rows]
        if correct := CORRECTED.get(table):
            rows = [tuple(correct(before, dict(zip(columns, row, strict=True))).values()) for row in rows]
        assert of(columns, rows) == of(known, there), table


# SQLite


def made_in_sqlite(database: Path) -> dict[str, tuple]:
    """How tables and indexes are made. A column that was altered is moved to the end, so order says nothing."""
    with sqlite3.connect(database) as connection:
        made = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    found = {}
    for name, sql in made:
        head, _, body = sql.partition("(")
        parts, depth, part = [], 0, ""
        for sign in body:
            depth += {"(": 1, ")": -1}.get(sign, 0)
            if depth < 0 or (sign == "," and not depth):
                parts.append(part.strip())
                part = ""
            else:
                part += sign
        found[name] = (head, sorted([*parts, part]))
    return found


@pytest.mark.slow
def test_sqlite_keeps_every_row(upgraded, tmp_path):
    into_sqlite(tmp_path / "before.sqlite3")
    is_kept(in_sqlite(tmp_path / "before.sqlite3"), in_sqlite(upgraded / "heval.sqlite3"))
    heval("migrate", "--check", home=upgraded)


@pytest.mark.slow
def test_the_messages_of_a_panel_are_kept_under_their_new_name(upgraded, tmp_path):
    into_sqlite(tmp_path / "before.sqlite3")
    found = []
    for database, column in ((tmp_path / "before.sqlite3", "words"), (upgraded / "heval.sqlite3", "panel_message")):
        with sqlite3.connect(database) as connection:
            found.append(connection.execute(f"SELECT id, {column} FROM annotators_panelorder ORDER BY id").fetchall())
    assert found[0] == found[1] and any(message for _, message in found[0])


def test_sqlite_is_made_like_a_new_one(upgraded, migrated_sqlite):
    assert made_in_sqlite(upgraded / "heval.sqlite3") == made_in_sqlite(migrated_sqlite)


@pytest.mark.slow
def test_a_database_that_is_too_old_is_refused_and_left_as_it_is(tmp_path):
    database = tmp_path / "heval.sqlite3"
    into_sqlite(database)
    for words, where in (
        ("prepare", "app = 'annotators' AND name LIKE '0013%'"),
        ("migrate", "app = 'studies' AND name > '0004'"),
        ("prepare", "app = 'analysis' AND name LIKE '0004%'"),
    ):
        with sqlite3.connect(database) as connection:
            assert connection.execute(f"DELETE FROM django_migrations WHERE {where}").rowcount
        before = in_sqlite(database)
        assert "from a version before 0.1.0" in heval(words, home=tmp_path, fails=True)
        assert in_sqlite(database) == before


@pytest.mark.slow
def test_a_new_database_whose_making_was_interrupted_is_finished(tmp_path, migrated_sqlite):
    heval("migrate", "studies", "0001", home=tmp_path)
    heval("migrate", "annotators", "0002", home=tmp_path)
    heval("prepare", home=tmp_path)
    assert made_in_sqlite(tmp_path / "heval.sqlite3") == made_in_sqlite(migrated_sqlite)


# PostgreSQL


def made_in_postgres(url: str) -> str:
    if not shutil.which("pg_dump"):
        skip_or_fail("pg_dump is not installed")
    command = ["pg_dump", "--schema-only", "--no-owner", "--no-privileges", url]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return "\n".join(line for line in said.splitlines() if not line.startswith(("\\", "--")))


def restored(made: str, server: str, name: str) -> str:
    """Dumped once more from a database that the dump made: PostgreSQL writes a list in a constraint otherwise after that."""
    import psycopg

    with scratch(server, name) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(made)
        # It was made before an appeal's rejection could be nobody's. Where ``rejected_by`` is null both say yes.
        return re.sub(
            r"(answered_by_id = rejected_by_id.*) AND \(rejected_by_id IS NOT NULL\)", r"\1", made_in_postgres(url)
        )


@pytest.mark.only_on("postgresql")
@pytest.mark.postgres
@pytest.mark.django_db
def test_postgresql_keeps_every_row_and_is_made_like_a_new_one(tmp_path, postgres_url):
    import psycopg

    # This process's test database was migrated as a new one.
    new = urlsplit(postgres_url)._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
    with scratch(postgres_url, "upgraded") as old:
        into_postgres(old)
        before = in_postgres(old)
        heval("prepare", home=tmp_path, url=old)
        heval("migrate", "--check", home=tmp_path, url=old)
        is_kept(before, in_postgres(old))
        assert restored(made_in_postgres(old), postgres_url, "a") == restored(made_in_postgres(new), postgres_url, "b")
        with psycopg.connect(old) as upgraded:
            with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="annotators_response is append-only"):
                upgraded.execute("UPDATE annotators_response SET value = 1")
            upgraded.rollback()
            with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="a launched study's studies_arm"):
                upgraded.execute("UPDATE studies_arm SET name = name || 'x'")
            upgraded.rollback()
            with pytest.raises(psycopg.errors.CheckViolation):
                upgraded.execute("UPDATE studies_batch SET claimed = wanted + 1")
