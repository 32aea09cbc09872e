"""A file beside the database that says which people withdrew, so that a restored backup does not bring their texts back.

It has a line for each assignment, with the moment and the SHA-256 of its random code, and nothing else. It belongs to what an operator
copies to another place, more often than backups are made.
"""

import json
import logging
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256

from django.conf import settings
from django.db import transaction

logger = logging.getLogger("heval.site")


def note_erasure(codes: Iterable[str]) -> None:
    """Append the assignments to the file once the erasure is committed. A full disk must not stop a withdrawal."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    text = "".join(json.dumps({"at": now, "assignment": digest_of_code(code)}) + "\n" for code in codes)

    def append() -> None:
        try:
            handle = os.open(settings.ERASURES_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(handle, "a", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            logger.error(
                "%s cannot be written (%s): an erasure is not noted for restored backups",
                settings.ERASURES_FILE,
                error.strerror,
            )

    if text:
        transaction.on_commit(append)


def digest_of_code(code: str) -> str:
    return sha256(str(code).encode()).hexdigest()
