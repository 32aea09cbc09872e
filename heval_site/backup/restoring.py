"""Make a site of a backup, in an empty database. Nothing is kept of an attempt that fails."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from django.apps import apps
from django.apps.registry import Apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from annotators.models import Assignment
from annotators.participation.erasures import digest_of_code
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from heval_site.runtime import environment as env

from .archive import KEYS, BackupRefused, Say, opened, restore_files
from .rows import digest_of, emptied, load, tables_of

# The folder that has the packages: a child process finds them there, wherever the command was given.
CODE = Path(__file__).resolve().parents[2]
# Every site that was used has one of these.
SIGNS_OF_USE = ("auth.user", "studies.study", "boards.board")


def restore(path: Path, erasures: list[Path], say: Say = print) -> dict[str, Any]:
    """Restore a backup into the empty database of this site, and return its manifest.

    The rows are read back and compared with the backup before they are kept. People who withdrew after the backup are erased
    again: ``erasures`` are the files that say who. Raises BackupRefused with the reason.
    """
    with opened(path) as (archive, manifest):
        say("The backup is whole.")
        keys = json.loads(archive.read("keys.json"))
        _refuse_used_database()
        _compare_keys(keys)
        registry = _migrated_as(manifest["migrations"])
        _load(archive, manifest["tables"], registry)
        say(
            f"{sum(one['rows'] for one in manifest['tables'].values()):,} rows are restored, and equal those of the backup."
        )
        restore_files(archive, list(manifest["files"]))
        say(f"{len(manifest['files']):,} files are restored.")
        if _has_own_keys():
            _store_keys(keys)
    call_command("migrate", interactive=False, verbosity=0)
    call_command("createcachetable", verbosity=0)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    if n := _erase_again(erasures):
        say(f"The texts of {n} assignments are erased again, because these people withdrew after the backup.")
    return manifest


def restore_elsewhere(path: Path, environment: Mapping[str, str], erasures: Sequence[Path] = ()) -> str:
    """Restore in a process with the settings of another site, and return what it said. Raises BackupRefused with its reason."""
    command = [sys.executable, "-m", "heval_site.management.cli", "restore", str(path.resolve())]
    for one in erasures:
        command += ["--erasures", str(one.resolve())]
    done = subprocess.run(  # noqa: S603 - this interpreter, our own module, and files that were named to us
        command, env=environment, cwd=CODE, capture_output=True, text=True
    )
    if done.returncode:
        raise BackupRefused(done.stderr.strip().removeprefix("CommandError: ").removeprefix("heval: "))
    return done.stdout.strip()


def _refuse_used_database() -> None:
    tables = tables_of(apps)
    there = set(connection.introspection.table_names())
    for label in SIGNS_OF_USE:
        table = tables[label]
        if table._meta.db_table in there and table._base_manager.exists():
            where = settings.HEVAL_HOME if settings.EMBEDDED else "DATABASE_URL"
            raise BackupRefused(
                f"The database of {where} is in use: it has rows of “{table._meta.verbose_name}”. Restore into a new one: "
                "set HEVAL_HOME to an empty folder, or DATABASE_URL to an empty database."
            )


def _compare_keys(keys: dict[str, str]) -> None:
    """A new home takes the keys of the backup. Where the environment has keys, it must have the one that knows annotators."""
    if not _has_own_keys() and keys["PSEUDONYM_KEY"] != settings.PSEUDONYM_KEY:
        raise BackupRefused(
            "PSEUDONYM_KEY is not the one of the backup. Set it to the value in the backup: unzip -p FILE keys.json"
        )


def _has_own_keys() -> bool:
    """Return whether this site's keys are files in its home."""
    return settings.EMBEDDED and not any(env.text(name) for name in KEYS)


def _store_keys(keys: dict[str, str]) -> None:
    for name in KEYS:
        path = settings.HEVAL_HOME / name.lower()
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(keys[name], encoding="utf-8")


def _migrated_as(migrations: dict[str, list[str]]) -> Apps:
    """Migrate an empty database as far as the backup's was, and return the models of that time."""
    executor = MigrationExecutor(connection)
    wanted = {(app, name) for app, names in migrations.items() for name in names}
    if unknown := sorted(wanted - executor.loader.disk_migrations.keys()):
        raise BackupRefused(
            f"The backup was made by a newer heval, which has the migration {'.'.join(unknown[0])}. Install that version, and restore again."
        )
    if newer := sorted(executor.loader.applied_migrations.keys() & executor.loader.disk_migrations.keys() - wanted):
        raise BackupRefused(
            f"The backup is older than the tables of this database, which have {'.'.join(newer[0])}. Restore it into a database without tables."
        )
    graph = executor.loader.graph
    last = [
        node
        for node in wanted
        if not any(child.key in wanted for child in graph.node_map[node].children if child.key[0] == node[0])
    ]
    executor.migrate(last)
    executor.loader.build_graph()
    return executor.loader.project_state(last).apps


def _load(archive: ZipFile, parts: dict[str, Any], registry: Apps) -> None:
    tables = tables_of(registry)
    if missing := sorted(parts.keys() ^ tables.keys()):
        raise BackupRefused(
            f"The backup and this heval differ in the table {missing[0]}. Install the version that made it."
        )
    with transaction.atomic(), emptied(tables.values()):
        for label, part in parts.items():
            load(tables[label], part["columns"], _lines(archive, label))
        for label, part in parts.items():
            if digest_of(tables[label], part["columns"]) != (part["rows"], part["rows_sha256"]):
                raise BackupRefused(f"The restored rows of {label} differ from those of the backup. Nothing was kept.")


def _lines(archive: ZipFile, label: str) -> Iterator[bytes]:
    with archive.open(f"rows/{label}.jsonl") as member:
        yield from member


def _erase_again(files: list[Path]) -> int:
    """Withdraw the people whom the files name and who take part in this database. Return the number of assignments."""
    named = {json.loads(line)["assignment"] for path in files for line in path.read_text("ascii").splitlines() if line}
    n = 0
    for assignment in Assignment.objects.select_related("study") if named else ():
        if digest_of_code(assignment.code) in named:
            with transaction.atomic():
                n += withdraw_annotator_and_erase_texts(assignment)
    return n
