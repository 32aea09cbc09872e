"""Back up a whole site into one file, and make a site of such a file again, on either database."""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import IO, Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile
from zlib import error as ZlibError

from django.apps import apps
from django.apps.registry import Apps
from django.conf import settings
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from analysis.data.snapshot import database_snapshot
from annotators.models import Assignment
from annotators.participation.withdrawal import digest_of_code, withdraw_annotator_and_erase_texts
from heval_site.runtime import environment as env
from studies.services.version import version

# The rows of all tables as lines of JSON, written and read without the managers that guard a launched study.


# Who is logged in, and who tried to log in.
LEFT_OUT = ("sessions", "axes")
ROWS_AT_ONCE = 500
Table = type[models.Model]


def tables_of(registry: Apps) -> dict[str, Table]:
    """Return the models whose rows belong to a backup, by label."""
    found = registry.get_models(include_auto_created=True)
    return {
        model._meta.label_lower: model
        for model in found
        if model._meta.managed and not model._meta.proxy and model._meta.app_label not in LEFT_OUT
    }


def columns_of(table: Table) -> list[str]:
    return [field.attname for field in table._meta.local_concrete_fields]


def _lines(table: Table, columns: list[str]) -> Iterator[tuple[bytes, bytes]]:
    """Yield each row as a line of JSON, in the order of the primary key, and the same with sorted keys.

    PostgreSQL stores the keys of a JSON value in an order of its own. What both databases give equally are the sorted ones.
    """
    rows = table._base_manager.order_by("pk").values_list(*columns)
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        values = [_plain(value) for value in row]
        line = _line(values)
        yield line, _line(values, sort_keys=True) if any(isinstance(one, dict | list) for one in values) else line


def _line(values: list[Any], sort_keys: bool = False) -> bytes:
    return json.dumps(values, separators=(",", ":"), sort_keys=sort_keys).encode() + b"\n"


def _plain(value: Any) -> Any:
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes() | memoryview():
            return base64.b64encode(bytes(value)).decode("ascii")
        case _:
            return value


def load(table: Table, columns: list[str], lines: Iterable[bytes]) -> None:
    """Insert rows. Their columns are named, because a migration may have added them in another order."""
    fields = {field.attname: field for field in table._meta.local_concrete_fields}
    for field in fields.values():
        if isinstance(field, models.DateField):
            field.auto_now = field.auto_now_add = False  # the moment is stored already
    read = (json.loads(line) for line in lines)
    while rows := list(islice(read, ROWS_AT_ONCE)):
        table._base_manager.bulk_create(
            table(**{name: fields[name].to_python(value) for name, value in zip(columns, row, strict=True)})
            for row in rows
        )


def digest_of(
    table: Table, columns: list[str], notice: Callable[[bytes], object] = lambda line: None
) -> tuple[int, str]:
    """Return the number of rows and a SHA-256 that is the same on both databases, and pass each line on."""
    n, digest = 0, sha256()
    for line, sorted_line in _lines(table, columns):
        digest.update(sorted_line)
        notice(line)
        n += 1
    return n, digest.hexdigest()


@contextmanager
def emptied(tables: Iterable[Table]) -> Iterator[None]:
    """Empty these tables, and lift the triggers of PostgreSQL while they are filled. Use it inside a transaction."""
    tables = list(tables)
    names = [connection.ops.quote_name(table._meta.db_table) for table in tables]
    is_postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        for name in names if is_postgresql else ():
            cursor.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")
        for name in names:
            cursor.execute(f"DELETE FROM {name}")  # noqa: S608 - a quoted name of our own
        yield
        if is_postgresql:
            # A table whose foreign keys are still to be checked cannot be altered.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for name in names:
                cursor.execute(f"ALTER TABLE {name} ENABLE TRIGGER USER")
        for statement in connection.ops.sequence_reset_sql(no_style(), tables):
            cursor.execute(statement)


# One file with everything of a site: its rows, its files and its keys, with the SHA-256 of each part.
#
# The file is a ZIP. ``rows/APP.MODEL.jsonl`` has the rows of a table, ``files/media`` and ``files/uploads`` have the
# files, ``keys.json`` has the two keys, and ``manifest.json`` says what there must be.


FORMAT = "heval.backup/1"
KEYS = ("SECRET_KEY", "PSEUDONYM_KEY")
CHUNK = 1 << 20
Say = Callable[[str], object]


class BackupRefused(Exception):
    """The backup cannot be made or used. The message says why, and what to do."""


class WrongFile(BackupRefused):
    """The file that was named cannot be written or restored. Another one may be."""


def folders() -> dict[str, Path]:
    """Return the folders of a site whose files belong to a backup."""
    return {"media": settings.MEDIA_ROOT, "uploads": settings.MEDIA_ROOT.parent / "uploads"}


def applied_migrations() -> dict[str, list[str]]:
    """Return the names of the applied migrations of each app."""
    loader = MigrationLoader(connection)
    found: dict[str, list[str]] = {}
    for app, name in sorted(loader.applied_migrations.keys() & loader.disk_migrations.keys()):
        found.setdefault(app, []).append(name)
    return found


def write_backup(path: Path, say: Say = print) -> dict[str, Any]:
    """Write a backup of one moment, while the site runs, and return its manifest. The file appears when it is whole.

    Raises BackupRefused if the file exists or cannot be written.
    """
    if path.exists():
        raise WrongFile(f"{path} exists already. Choose another name, or delete it.")
    part = path.with_name(f".{path.name}.part")
    try:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            with ZipFile(file, "w", ZIP_DEFLATED) as archive:
                manifest = _write(archive, say)
            file.flush()
            os.fsync(file.fileno())
        part.rename(path)
    except OSError as error:
        raise BackupRefused(
            f"{path} cannot be written: {error.strerror}. Free some space, or choose another folder."
        ) from error
    finally:
        part.unlink(missing_ok=True)
    return manifest


def _write(archive: ZipFile, say: Say) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    with database_snapshot():
        migrations = applied_migrations()
        for label, table in tables_of(apps).items():
            columns, written = columns_of(table), sha256()
            with archive.open(f"rows/{label}.jsonl", "w", force_zip64=True) as member:

                def write(line: bytes, member: IO[bytes] = member, written: Any = written) -> None:
                    member.write(line)
                    written.update(line)

                n, digest = digest_of(table, columns, write)
            tables[label] = {"columns": columns, "rows": n, "rows_sha256": digest, "sha256": written.hexdigest()}
    say(f"{sum(one['rows'] for one in tables.values()):,} rows of {len(tables)} tables are written.")
    # Files come after the rows that name them. One that is deleted meanwhile is named by no row of a later moment.
    files = {}
    for name, path in _files():
        with (
            suppress(FileNotFoundError),
            path.open("rb") as source,
            archive.open(f"files/{name}", "w", force_zip64=True) as member,
        ):
            files[name] = _copy(source, member)
    say(f"{len(files):,} files are written.")
    archive.writestr("keys.json", json.dumps({name: getattr(settings, name) for name in KEYS}))
    manifest = {
        "format": FORMAT,
        "heval": version(),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "migrations": migrations,
        "tables": tables,
        "files": files,
    }
    archive.writestr("manifest.json", json.dumps(manifest, indent=1))
    return manifest


def _files() -> Iterator[tuple[str, Path]]:
    for folder, root in folders().items():
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield f"{folder}/{path.relative_to(root).as_posix()}", path


def _copy(source: IO[bytes], target: IO[bytes] | None) -> str:
    digest = sha256()
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        if target is not None:
            target.write(chunk)
    return digest.hexdigest()


@contextmanager
def opened(path: Path) -> Iterator[tuple[ZipFile, dict[str, Any]]]:
    """Open a backup whose parts are all there and unchanged, and give its manifest.

    Raises BackupRefused for everything else, before anything is restored.
    """
    try:
        archive = ZipFile(path)
    except FileNotFoundError:
        raise WrongFile(f"There is no file {path}. Correct the path.") from None
    except (BadZipFile, OSError) as error:
        raise _damaged(path, error) from error
    with archive:
        try:
            manifest = json.loads(archive.read("manifest.json"))
            if manifest.get("format") != FORMAT:
                raise WrongFile(f"{path} has the format {manifest.get('format')}, and this heval reads {FORMAT}.")
            expected = {f"rows/{label}.jsonl": one["sha256"] for label, one in manifest["tables"].items()}
            expected |= {f"files/{name}": digest for name, digest in manifest["files"].items()}
            for name, digest in expected.items():
                with archive.open(name) as member:
                    if _copy(member, None) != digest:
                        raise _damaged(path, f"{name} has changed")
        except (BadZipFile, ZlibError, EOFError, KeyError, ValueError) as error:
            raise _damaged(path, error) from error
        yield archive, manifest


def _damaged(path: Path, reason: object) -> WrongFile:
    return WrongFile(f"{path} is damaged or cut off: {reason}. Use another copy of this backup.")


def restore_files(archive: ZipFile, names: list[str]) -> None:
    """Write the files into this site's folders. A file that is there already is replaced by one with the same content."""
    roots = folders()
    for name in names:
        folder, _, rest = name.partition("/")
        target = (roots[folder] / rest).resolve()
        if not target.is_relative_to(roots[folder].resolve()):
            raise BackupRefused(f"The file {name} of the backup would be written outside of {roots[folder]}.")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        with archive.open(f"files/{name}") as source, part.open("wb") as copy:
            shutil.copyfileobj(source, copy)
        part.chmod(settings.FILE_UPLOAD_PERMISSIONS)
        part.rename(target)


# Make a site of a backup, in an empty database. Nothing is kept of an attempt that fails.


# The folder that has the packages: a child process finds them there, wherever the command was given.
CODE = Path(__file__).resolve().parents[1]
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
    migrations_here = executor.loader.disk_migrations.items()
    for key, migration in migrations_here:
        if migration.replaces and wanted >= set(migration.replaces):
            wanted = wanted - set(migration.replaces) | {key}
    if not wanted.isdisjoint(name for _, migration in migrations_here for name in migration.replaces):
        raise BackupRefused(
            "The backup is from a version before 0.1.0. Restore it with commit 11713900 of heval, and run this version on that site."
        )
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
            load(tables[label], part["columns"], _lines_of_archive(archive, label))
        for label, part in parts.items():
            if digest_of(tables[label], part["columns"]) != (part["rows"], part["rows_sha256"]):
                raise BackupRefused(f"The restored rows of {label} differ from those of the backup. Nothing was kept.")


def _lines_of_archive(archive: ZipFile, label: str) -> Iterator[bytes]:
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
