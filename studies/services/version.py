"""The version of heval."""

import tomllib
from functools import lru_cache
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@lru_cache(maxsize=1)
def version() -> str:
    """Return the version. A checkout, and an image made from one, have no installed package: read pyproject.toml there."""
    if (ROOT / "manage.py").exists():
        return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return metadata.version("heval")
