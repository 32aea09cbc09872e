"""One file with everything of a site: its rows, its files and its keys, with the SHA-256 of each part.

The file is a ZIP. ``rows/APP.MODEL.jsonl`` has the rows of a table, ``files/media`` and ``files/uploads`` have the files, ``keys.json`` has
the two keys, and ``manifest.json`` says what there must be.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile
from zlib import error as ZlibError

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from analysis.data.snapshot import database_snapshot
from studies.services.version import version

from .rows import columns_of, digest_of, tables_of

FORMAT = "heval.backup/1"
KEYS = ("SECRET_KEY", "PSEUDONYM_KEY")
CHUNK = 1 << 20
Say = Callable[[str], object]


class BackupRefused(Exception):
    """The backup cannot be made or used. The message says why, and what to do."""


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
        raise BackupRefused(f"{path} exists already. Choose another name, or delete it.")
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
        raise BackupRefused(f"There is no file {path}.") from None
    except (BadZipFile, OSError) as error:
        raise _damaged(path, error) from error
    with archive:
        try:
            manifest = json.loads(archive.read("manifest.json"))
            if manifest.get("format") != FORMAT:
                raise BackupRefused(f"{path} has the format {manifest.get('format')}, and this heval reads {FORMAT}.")
            expected = {f"rows/{label}.jsonl": one["sha256"] for label, one in manifest["tables"].items()}
            expected |= {f"files/{name}": digest for name, digest in manifest["files"].items()}
            for name, digest in expected.items():
                with archive.open(name) as member:
                    if _copy(member, None) != digest:
                        raise _damaged(path, f"{name} has changed")
        except (BadZipFile, ZlibError, EOFError, KeyError, ValueError) as error:
            raise _damaged(path, error) from error
        yield archive, manifest


def _damaged(path: Path, reason: object) -> BackupRefused:
    return BackupRefused(f"{path} is damaged or cut off: {reason}. Use another copy of this backup.")


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
