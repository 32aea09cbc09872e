"""HEVAL_HOME: where an embedded heval keeps its database, media and secrets."""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def home_folder(create: bool = True) -> Path:
    """$HEVAL_HOME, else the user's data folder; made when absent, readable by its owner alone."""
    named = os.environ.get("HEVAL_HOME", "").strip()
    data = Path(os.environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser())
    path = Path(named).expanduser() if named else data / "heval"
    if create:
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ImproperlyConfigured(f"HEVAL_HOME: the folder {path} cannot be made ({error.strerror}).") from error
    return path.resolve()


def site_secret(name: str) -> str:
    """The secret of this home, generated at its first use.

    Two processes that start at once agree on one: it is written whole under another name, and the link that gives it its own
    fails for the second.
    """
    path = home_folder() / name
    try:
        if not path.exists():
            _create_secret(path)
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"HEVAL_HOME: {path} cannot be kept ({error.strerror}).") from error


def _create_secret(path: Path) -> None:
    handle, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # readable by its owner alone
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(secrets.token_urlsafe(60))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(written, path)
    finally:
        os.unlink(written)
