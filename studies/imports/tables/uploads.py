"""Uploaded files between the dry run and the confirmation: the same bytes for both, private, and gone within a day.

Each lies under a random name beside a small JSON file that says whose it is, for which study, and what was found in it.
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
    """A kept file and what is known of it."""

    token: str
    study: int
    user: int
    filename: str
    size: int
    sha256: str
    options: dict[str, Any] = field(default_factory=dict)
    job: str = ""  # the code of the job that reads it, or last did
    is_confirmed: bool = False
    report: dict[str, Any] | None = None
    fault: str = ""
    kind: str = "stimuli"  # what the file holds (import_job.register)

    @property
    def path(self) -> Path:
        return root() / f"{self.token}.data"

    def save(self) -> None:
        """Written in one step: whoever reads it sees the whole."""
        new = root() / f".{self.token}.{secrets.token_hex(4)}"
        new.write_text(json.dumps(asdict(self)), encoding="utf-8")
        os.chmod(new, 0o600)
        os.replace(new, _record(self.token))

    def drop_file(self) -> None:
        """The bytes are no longer needed; what was found in them may still be looked at."""
        self.path.unlink(missing_ok=True)

    def is_intact(self) -> bool:
        """Whether the bytes are still there and still those that were looked at."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False


def root() -> Path:
    """The folder of uploads, beside the media and never served."""
    path = Path(getattr(settings, "UPLOADS_ROOT", None) or Path(settings.MEDIA_ROOT).parent / "uploads")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _record(token: str) -> Path:
    return root() / f"{token}.json"


def store_upload(
    chunks: Iterable[bytes], filename: str, *, study: int, user: int, options: dict[str, Any], kind: str = "stimuli"
) -> Upload:
    """Keep a file as it comes in. NotNow where it is empty or too large; then nothing stays."""
    token = secrets.token_hex(16)
    name = PurePosixPath(filename.replace("\\", "/")).name
    upload = Upload(
        token, study, user, "".join(c for c in name if c.isprintable())[:200] or "file", 0, "", options, kind=kind
    )
    digest = hashlib.sha256()
    try:
        with os.fdopen(os.open(upload.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for chunk in chunks:
                upload.size += len(chunk)
                if upload.size > MAX_BYTES:
                    raise ActionRefused(f"The file has more than {MAX_BYTES:,} bytes.")
                digest.update(chunk)
                file.write(chunk)
        if not upload.size:
            raise ActionRefused("The file is empty.")
    except BaseException:
        upload.drop_file()
        raise
    upload.sha256 = digest.hexdigest()
    upload.save()
    return upload


def get_upload(token: str, study: int) -> Upload | None:
    """The upload of this name, where it is of this study and not gone yet."""
    if not _TOKEN.fullmatch(token):
        return None
    try:
        upload = Upload(**json.loads(_record(token).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return upload if upload.study == study else None


def purge(older_than_seconds: float = RETENTION_SECONDS) -> int:
    """Remove what is older than a day. Gives the number of files."""
    before, n = time.time() - older_than_seconds, 0
    for path in root().iterdir():
        with suppress(FileNotFoundError):  # another process purges too
            if path.stat().st_mtime < before:
                path.unlink()
                n += 1
    return n
