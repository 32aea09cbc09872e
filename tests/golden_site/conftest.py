"""The stored site, upgraded once for all its tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

from .stored import SECRETS, into_sqlite


def heval(*words: str, home: Path, url: str = "", fails: bool = False) -> str:
    """The product's own command, in a process of its own; gives what it said."""
    environment = {"PATH": os.environ["PATH"], "HEVAL_HOME": str(home), **SECRETS}
    if url:
        environment |= {"DATABASE_URL": url, "SITE_URL": "http://127.0.0.1:8000", "ALLOWED_HOSTS": "127.0.0.1"}
    command = [sys.executable, "-m", "heval_site.management.cli", *words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert bool(done.returncode) == fails, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def upgraded(tmp_path_factory) -> Path:
    home = tmp_path_factory.mktemp("upgraded")
    into_sqlite(home / "heval.sqlite3")
    heval("prepare", home=home)
    return home
