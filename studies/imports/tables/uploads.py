"""Uploaded files between the dry run and the confirmation: the same bytes for both, private, and deleted after a day.

Each file has a random name. A small JSON file beside it holds its user, its study and its report.
"""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings

from studies.services.lifecycle import ActionRefused
from studies.stimuli.rows import TableLimits

MAX_BYTES = TableLimits().bytes
RETENTION_SECONDS = 24 * 60 * 60

_TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass
class Upload:
    """A stored file and its record."""

    token: str
    study: int
    user: int
    filename: str
    size: int
    sha256: str
    options: dict[str, Any] = field(default_factory=dict)
    job: str = ""  # the code of the job that reads it or did so last
    is_confirmed: bool = False
    report: dict[str, Any] | None = None
    fault: str = ""
    kind: str = "stimuli"  # what the file holds (import_job.register)

    @property
    def path(self) -> Path:
        return path_of_file(self.token)

    def save(self) -> None:
        """Replace the record in one step, so that readers never see a part of it."""
        new = get_or_create_uploads_folder() / f".{self.token}.{secrets.token_hex(4)}"
        new.write_text(json.dumps(asdict(self)), encoding="utf-8")
        os.chmod(new, 0o600)
        os.replace(new, _record(self.token))

    def delete_file(self) -> None:
        """Delete the file, but keep its record and report."""
        self.path.unlink(missing_ok=True)

    def is_intact(self) -> bool:
        """Return whether the file still exists with the same bytes."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False


def get_or_create_uploads_folder() -> Path:
    """Return the folder of uploads. It is beside the media folder and never served."""
    path = Path(getattr(settings, "UPLOADS_ROOT", None) or Path(settings.MEDIA_ROOT).parent / "uploads")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _record(token: str) -> Path:
    return get_or_create_uploads_folder() / f"{token}.json"


def store_upload(
    chunks: Iterable[bytes],
    filename: str,
    *,
    study_id: int,
    user_id: int,
    options: dict[str, Any],
    kind: str = "stimuli",
) -> Upload:
    """Store a file while it arrives. Raise ActionRefused if it is empty or too large; then nothing remains."""
    file = store_file(chunks)
    name = PurePosixPath(filename.replace("\\", "/")).name
    name = "".join(c for c in name if c.isprintable())[:200] or "file"
    upload = Upload(file.token, study_id, user_id, name, file.size, file.sha256, options, kind=kind)
    upload.save()
    return upload


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the folder of uploads. It has no record of its own."""

    token: str
    size: int
    sha256: str

    @property
    def path(self) -> Path:
        return path_of_file(self.token)


def path_of_file(token: str) -> Path:
    return get_or_create_uploads_folder() / f"{token}.data"


def store_file(chunks: Iterable[bytes]) -> StoredFile:
    """Store a file while it arrives. Raise ActionRefused if it is empty or too large; then nothing remains."""
    token, size, digest = secrets.token_hex(16), 0, hashlib.sha256()
    path = path_of_file(token)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for chunk in chunks:
                size += len(chunk)
                if size > MAX_BYTES:
                    raise ActionRefused(
                        f"The file has more than {MAX_BYTES:,} bytes, the maximum. Split it into smaller files."
                    )
                digest.update(chunk)
                file.write(chunk)
        if not size:
            raise ActionRefused("The file is empty.")
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return StoredFile(token, size, digest.hexdigest())


def get_upload(token: str, study_id: int | None) -> Upload | None:
    """Return the study's upload with this token, or None if the study has no such upload."""
    if not _TOKEN.fullmatch(token):
        return None
    try:
        upload = Upload(**json.loads(_record(token).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return upload if upload.study == study_id else None


def purge_old_files(older_than_seconds: float = RETENTION_SECONDS) -> int:
    """Remove files older than a day. Return their number."""
    before, n = time.time() - older_than_seconds, 0
    for path in get_or_create_uploads_folder().iterdir():
        with suppress(FileNotFoundError):  # another process purges too
            if path.stat().st_mtime < before:
                path.unlink()
                n += 1
    return n
