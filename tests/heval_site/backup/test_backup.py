"""A backup of the stored site becomes the same site again, on either database, or nothing happens at all."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from django.db.migrations.loader import MigrationLoader

from heval_site.backup import BackupRefused, columns_of, opened, tables_of
from tests import ROOT
from tests.golden_site.conftest import heval, upgraded
from tests.golden_site.stored import SECRETS, in_postgres, in_sqlite, scratch

__all__ = ["upgraded"]
# The worker that has upgraded the site: see tests/golden_site/test_upgrade.py.
pytestmark = pytest.mark.xdist_group("upgrade")
NOT_IN_A_BACKUP = ("django_session", "axes_", "heval_cache", "django_migrations", "sqlite_")
IMAGE = "ab/" + "0" * 64 + ".webp"


@pytest.fixture(scope="module")
def site(upgraded, tmp_path_factory) -> Path:
    """A home with rows in every table, and two files."""
    home = tmp_path_factory.mktemp("site")
    shutil.copy(upgraded / "heval.sqlite3", home)
    for name in (f"media/{IMAGE}", "uploads/answers.csv"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(name.encode())
    return home


@pytest.fixture(scope="module")
def backup(site) -> Path:
    heval("backup", str(site / "backup.zip"), home=site)
    return site / "backup.zip"


def cell(value):
    """A value without the zeros at the end of a moment: SQLite's own clock writes three digits, and Django six or none."""
    is_moment = isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+", value)
    return value.rstrip("0").rstrip(".") if is_moment else value


def rows(tables):
    """The rows of all tables that belong to a backup, whatever the order of their columns."""
    found = {}
    for name, (columns, values) in tables.items():
        if not name.startswith(NOT_IN_A_BACKUP):
            order = sorted(range(len(columns)), key=columns.__getitem__)
            found[name] = sorted(repr([cell(row[place]) for place in order]) for row in values)
    return found


def restored(backup: Path, home: Path, environment: dict[str, str] | None = None):
    """Restore without keys in the environment."""
    command = [sys.executable, "-m", "heval_site.management.cli", "restore", str(backup)]
    given = {"PATH": "/usr/bin:/bin", "HEVAL_HOME": str(home), **(environment or {})}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True)


def changed(backup: Path, to: Path, parts: dict[str, bytes]) -> Path:
    """A copy in which these parts have another content."""
    with zipfile.ZipFile(backup) as before, zipfile.ZipFile(to, "w") as after:
        for name in before.namelist():
            after.writestr(name, parts.get(name, before.read(name)))
    return to


def manifest_of(backup: Path) -> dict:
    with zipfile.ZipFile(backup) as archive:
        return json.loads(archive.read("manifest.json"))


def with_rows(manifest: dict, label: str, stored: list[list]) -> dict[str, bytes]:
    """The part of a backup with other rows of a table. The manifest says so."""
    data = b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in stored)
    ordered = b"".join(json.dumps(row, separators=(",", ":"), sort_keys=True).encode() + b"\n" for row in stored)
    manifest["tables"][label] |= {"sha256": sha256(data).hexdigest(), "rows_sha256": sha256(ordered).hexdigest()}
    return {f"rows/{label}.jsonl": data}


def rows_of(backup: Path, label: str) -> list[list]:
    with zipfile.ZipFile(backup) as archive:
        return [json.loads(line) for line in archive.read(f"rows/{label}.jsonl").splitlines()]


@pytest.mark.slow
def test_a_restored_home_is_the_same_site(site, backup, tmp_path):
    assert backup.stat().st_mode & 0o777 == 0o600
    assert "exists already" in heval("backup", str(backup), home=site, fails=True)
    done = restored(backup, tmp_path)
    assert done.returncode == 0 and "equal those of the backup" in done.stdout, done.stderr
    before = in_sqlite(site / "heval.sqlite3")
    assert sum(len(values) for _, values in before.values()) > 20_000
    assert rows(in_sqlite(tmp_path / "heval.sqlite3")) == rows(before)
    assert (tmp_path / "media" / IMAGE).read_bytes() == f"media/{IMAGE}".encode()
    assert (tmp_path / "uploads" / "answers.csv").exists()
    for name in ("SECRET_KEY", "PSEUDONYM_KEY"):
        key = tmp_path / name.lower()
        assert key.read_text() == SECRETS[name] and key.stat().st_mode & 0o777 == 0o600
    # A site that is used is never overwritten, and its keys stay.
    again = restored(backup, tmp_path)
    assert again.returncode == 1 and "is in use" in again.stderr and "empty folder" in again.stderr
    other = restored(backup, tmp_path / "other", {**SECRETS, "PSEUDONYM_KEY": "another key " * 6})
    assert other.returncode == 1 and "PSEUDONYM_KEY is not the one of the backup" in other.stderr


def broken_backups(backup: Path, folder: Path):
    """Each backup that cannot be used, with a part of the reason."""
    whole = backup.read_bytes()
    for name, data in (("cut", whole[: len(whole) // 2]), ("empty", b""), ("text", b"no backup")):
        (folder / name).write_bytes(data)
        yield folder / name, "is damaged or cut off"
    place = whole.index(b"rows/studies.study.jsonl") + 200
    (folder / "bit").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    yield folder / "bit", "is damaged or cut off"
    yield changed(backup, folder / "row", {"rows/studies.study.jsonl": b"[]\n"}), "rows/studies.study.jsonl has changed"
    other = json.dumps(manifest_of(backup) | {"format": "heval.backup/9"}).encode()
    yield changed(backup, folder / "format", {"manifest.json": other}), "has the format heval.backup/9"
    yield folder / "missing", "There is no file"


def test_a_backup_that_is_not_whole_is_refused_before_anything_is_restored(backup, tmp_path):
    n = 0
    for path, reason in broken_backups(backup, tmp_path):
        with pytest.raises(BackupRefused, match=re.escape(reason)), opened(path):
            pytest.fail(f"{path.name} was opened")
        n += 1
    assert n == 7
    said = heval("restore", str(tmp_path / "cut"), home=tmp_path / "home", fails=True)
    assert "Use another copy of this backup." in said and "Traceback" not in said


@pytest.mark.slow
def test_a_newer_backup_is_refused(backup, tmp_path):
    manifest = manifest_of(backup)
    manifest["migrations"]["studies"].append("9999_tomorrow")
    newer = changed(backup, tmp_path / "newer.zip", {"manifest.json": json.dumps(manifest).encode()})
    said = heval("restore", str(newer), home=tmp_path, fails=True)
    assert "made by a newer heval, which has the migration studies.9999_tomorrow" in said


@pytest.mark.slow
def test_the_reports_of_a_restored_site_are_the_same_to_the_byte(backup, tmp_path):
    heval("restore", str(backup), home=tmp_path)
    command = [sys.executable, "-m", "tests.golden_site.hashes", str(tmp_path / "heval.sqlite3"), "--tolerance", "1e-9"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_rows_that_a_database_does_not_give_back_are_noticed(backup, tmp_path):
    """A backup that is whole, but has a text where a number belongs."""
    stored, manifest = rows_of(backup, "studies.system"), manifest_of(backup)
    place = manifest["tables"]["studies.system"]["columns"].index("study_id")
    stored[0][place] = str(stored[0][place])
    parts = with_rows(manifest, "studies.system", stored) | {"manifest.json": json.dumps(manifest).encode()}
    odd = changed(backup, tmp_path / "odd.zip", parts)
    said = heval("restore", str(odd), home=tmp_path / "home", fails=True)
    assert "The restored rows of studies.system differ" in said
    with sqlite3.connect(tmp_path / "home" / "heval.sqlite3") as connection:
        assert connection.execute("SELECT count(*) FROM studies_study").fetchone() == (0,)
    heval("restore", str(backup), home=tmp_path / "home")  # the home can still be used


def older_backup(backup: Path, to: Path, last: tuple[str, str]) -> Path:
    """The backup that a version without this migration, and those that need it, would have made."""
    loader, manifest = MigrationLoader(None), manifest_of(backup)
    gone = set(loader.graph.backwards_plan(last))
    assert last in gone
    manifest["migrations"] = {
        app: [name for name in names if (app, name) not in gone] for app, names in manifest["migrations"].items()
    }
    kept = [(app, name) for app, names in manifest["migrations"].items() for name in names]
    tables = tables_of(loader.project_state(kept).apps)
    parts, n_tables = {}, len(manifest["tables"])
    for label, part in list(manifest["tables"].items()):
        if label not in tables:
            del manifest["tables"][label]
            continue
        places = [place for place, name in enumerate(part["columns"]) if name in columns_of(tables[label])]
        stored = [[row[place] for place in places] for row in rows_of(backup, label)]
        part["columns"] = [part["columns"][place] for place in places]
        parts |= with_rows(manifest, label, stored)
    assert len(manifest["tables"]) < n_tables
    return changed(backup, to, parts | {"manifest.json": json.dumps(manifest).encode()})


@pytest.mark.slow
def test_an_older_backup_is_restored_and_migrated(backup, tmp_path):
    older = older_backup(backup, tmp_path / "older.zip", ("boards", "0001_boards_teams_and_rounds"))
    heval("restore", str(older), home=tmp_path / "home")
    heval("migrate", "--check", home=tmp_path / "home")
    with sqlite3.connect(tmp_path / "home" / "heval.sqlite3") as connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            for table in ("annotators_assignment", "boards_board")
        ]
    assert counts == [(len(rows_of(backup, "annotators.assignment")),), (0,)] and counts[0][0]
    # A database that has the newer tables already cannot take it.
    heval("prepare", home=tmp_path / "prepared")
    said = heval("restore", str(older), home=tmp_path / "prepared", fails=True)
    assert "older than the tables of this database" in said


@pytest.mark.slow
def test_a_backup_of_the_last_commit_before_the_first_migrations_is_restored_and_no_older_one(backup, tmp_path):
    manifest = manifest_of(backup)
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        if migration.replaces:
            manifest["migrations"][app].remove(name)
            manifest["migrations"][app] += [old for _, old in migration.replaces]
    of_then = changed(backup, tmp_path / "then.zip", {"manifest.json": json.dumps(manifest).encode()})
    heval("restore", str(of_then), home=tmp_path / "home")
    heval("migrate", "--check", home=tmp_path / "home")
    manifest["migrations"]["annotators"].remove("0013_annotators_may_agree_that_preferences_are_given_away")
    older = changed(backup, tmp_path / "older.zip", {"manifest.json": json.dumps(manifest).encode()})
    said = heval("restore", str(older), home=tmp_path / "other", fails=True)
    assert "Restore it with commit 11713900" in said


@pytest.mark.slow
def test_verify_touches_nothing(site, backup):
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert "This backup can be restored." in heval("restore", "--verify", str(backup), home=site)
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before
    said = heval("restore", "--verify", str(site / "heval.sqlite3"), home=site, fails=True)
    assert "is damaged or cut off" in said


@pytest.mark.slow
def test_a_move_waits_for_the_end_of_the_site(site):
    import fcntl

    with (site / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = heval("move", "postgres://nobody@127.0.0.1:1/x", home=site, fails=True)
    assert "heval up is running. End it first" in said


@pytest.mark.slow
@pytest.mark.only_on("postgresql")
@pytest.mark.postgres
@pytest.mark.django_db
def test_a_site_moves_to_postgresql_and_from_there_to_another_server(site, backup, postgres_url, tmp_path):
    import psycopg

    with scratch(postgres_url, "moved") as moved, scratch(postgres_url, "restored") as restored_url:
        before = in_sqlite(site / "heval.sqlite3")
        assert "Set DATABASE_URL" in heval("move", moved, home=site)
        assert in_sqlite(site / "heval.sqlite3") == before
        heval("backup", str(tmp_path / "backup.zip"), home=tmp_path, url=moved)
        heval("restore", str(tmp_path / "backup.zip"), home=tmp_path / "other", url=restored_url)
        assert rows(in_postgres(restored_url)) == rows(in_postgres(moved))
        found = [
            {label: part["rows_sha256"] for label, part in manifest_of(path)["tables"].items()}
            for path in (backup, tmp_path / "backup.zip")
        ]
        assert found[0] == found[1]
        with psycopg.connect(restored_url, autocommit=True) as connection:
            with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
                connection.execute("UPDATE annotators_response SET value = 1")
            # New rows get new keys.
            (last,) = connection.execute("SELECT max(id) FROM studies_auditevent").fetchone()
            sequence = "SELECT nextval(pg_get_serial_sequence('studies_auditevent', 'id'))"
            assert connection.execute(sequence).fetchone() == (last + 1,)
