"""HEVAL_HOME: the folder where an embedded heval stores its database, media and secrets."""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

DATABASE_NAME = "heval.sqlite3"


def home_folder(create: bool = True) -> Path:
    """Return $HEVAL_HOME, or the user's data folder; create it if missing, readable only by its owner."""
    configured = os.environ.get("HEVAL_HOME", "").strip()
    data = Path(os.environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser())
    path = Path(configured).expanduser() if configured else data / "heval"
    if create:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ImproperlyConfigured(
                f"HEVAL_HOME: the folder {path} cannot be created ({error.strerror}). Name another folder."
            ) from error
    return path.resolve()


def get_or_create_site_secret(name: str) -> str:
    """Return this home's secret; generate it at first use.

    Two processes that start at once agree on one secret. Each writes it under another name first. Linking it to its own
    name then fails for the second process.
    """
    path = home_folder() / name
    try:
        if not path.exists():
            if name == "pseudonym_key" and (path.parent / DATABASE_NAME).exists():
                raise ImproperlyConfigured(
                    f"HEVAL_HOME: {path} is missing beside its database. Restore it from your backup, or read “A lost key” "
                    "in how-to/deploy."
                )
            _create_secret(path)
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"HEVAL_HOME: {path} cannot be stored ({error.strerror}). Make the folder writable."
        ) from error


def _create_secret(path: Path) -> None:
    handle, temporary_path = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # readable only by its owner
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(secrets.token_urlsafe(60))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(temporary_path, path)
    finally:
        os.unlink(temporary_path)
