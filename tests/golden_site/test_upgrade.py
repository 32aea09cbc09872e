"""A filled database of commit 11713900 is taken as it is, with the schema of a new one. An older one is refused, with the way to upgrade it."""

import re
import shutil
import sqlite3
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from heval_site.runtime.startup import LAST_OF_BE16BDA, explain_too_old_database
from tests.conftest import skip_or_fail

from .compared import OURS, is_kept, made_in_postgres, made_in_sqlite
from .conftest import heval
from .stored import in_postgres, in_sqlite, into_postgres, into_sqlite, scratch

# One worker makes each of the databases; two would make both of them twice.
pytestmark = pytest.mark.xdist_group("upgrade")
FIRST = "Run “heval prepare” with commit be16bda, then with commit 11713900 of heval, then with this version."
LATER = "Run “heval prepare” with commit 11713900 of heval, then with this version."


# The names of applied migrations say which steps come first.


@pytest.fixture(scope="module")
def loader() -> MigrationLoader:
    return MigrationLoader(None)


def replaced(loader: MigrationLoader, *apps: str) -> list[tuple[str, str]]:
    """What commit 11713900 records of these apps, from the first to the last."""
    names = sorted(name for one in loader.disk_migrations.values() for name in one.replaces if name[0] in apps)
    return [(app, LAST_OF_BE16BDA[app]) for app in apps if app in LAST_OF_BE16BDA] + names


def test_the_migrations_of_11713900_are_all_replaced_once(loader):
    names = [name for one in loader.disk_migrations.values() for name in one.replaces]
    counts = {app: sum(name[0] == app for name in names) for app in OURS}
    assert counts == {"studies": 29, "annotators": 13, "analysis": 11, "boards": 13} and len(set(names)) == 66


@pytest.mark.parametrize("app", OURS)
def test_a_database_with_a_part_of_them_is_recognised(loader, app):
    """Also if only the first or all but the last were applied, or another app has all of its own."""
    names = replaced(loader, app)
    for n in (1, 2, len(names) - 1):
        loader.applied_migrations = dict.fromkeys(names[:n])
        assert LATER in explain_too_old_database(loader), n
    others = replaced(loader, *(one for one in OURS if one != app))
    loader.applied_migrations = dict.fromkeys([*others, *names[:-1]])
    assert LATER in explain_too_old_database(loader)


@pytest.mark.parametrize("apps", [(), ("auth",), ("studies",), ("studies", "annotators"), OURS])
def test_whole_apps_are_taken(loader, apps):
    """A new database whose making was interrupted between two apps is finished."""
    loader.applied_migrations = dict.fromkeys([("auth", "0001_initial"), *replaced(loader, *apps)])
    assert explain_too_old_database(loader) == ""


def test_the_steps_from_be16bda_and_from_before_it(loader):
    of_be16bda = [("studies", "0001_a_study_has_a_design"), *LAST_OF_BE16BDA.items()]
    loader.applied_migrations = dict.fromkeys(of_be16bda)
    assert LATER in explain_too_old_database(loader)
    for missing in LAST_OF_BE16BDA:
        older = [name for name in of_be16bda if name != (missing, LAST_OF_BE16BDA[missing])]
        loader.applied_migrations = dict.fromkeys([*older, (missing, "0001_as_it_was")])
        assert FIRST in explain_too_old_database(loader)


# SQLite


def test_sqlite_keeps_every_row(upgraded, tmp_path):
    into_sqlite(tmp_path / "before.sqlite3")
    before = in_sqlite(tmp_path / "before.sqlite3")
    assert sum(len(rows) for _, rows in before.values()) > 20_000
    is_kept(before, in_sqlite(upgraded / "heval.sqlite3"))
    heval("migrate", "--check", home=upgraded)


def test_sqlite_is_made_like_a_new_one(upgraded, migrated_sqlite):
    assert made_in_sqlite(upgraded / "heval.sqlite3") == made_in_sqlite(migrated_sqlite)


@pytest.mark.slow
def test_a_database_that_is_too_old_is_refused_and_left_as_it_is(tmp_path):
    database = tmp_path / "heval.sqlite3"
    into_sqlite(database)
    for where, step in (
        ("app = 'boards' AND name LIKE '0013%'", LATER),
        ("app = 'studies' AND name > '0010'", LATER),
        ("app = 'annotators' AND name LIKE '0013%'", FIRST),
    ):
        with sqlite3.connect(database) as connection:
            assert connection.execute(f"DELETE FROM django_migrations WHERE {where}").rowcount
        before = in_sqlite(database)
        for command in ("prepare", "migrate", "up"):
            assert step in heval(command, home=tmp_path, fails=True), command
        assert "heval prepare" in heval("up", "--no-migrate", home=tmp_path, fails=True)
        assert in_sqlite(database) == before


@pytest.mark.slow
def test_a_new_database_whose_making_was_interrupted_is_finished(tmp_path, migrated_sqlite):
    heval("migrate", "studies", "0001", home=tmp_path)
    heval("migrate", "annotators", "0001", home=tmp_path)
    heval("prepare", home=tmp_path)
    assert made_in_sqlite(tmp_path / "heval.sqlite3") == made_in_sqlite(migrated_sqlite)


# PostgreSQL


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

    if not shutil.which("pg_dump"):
        skip_or_fail("pg_dump is not installed")
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
