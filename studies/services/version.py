"""Which heval this is."""

import tomllib
from functools import lru_cache
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@lru_cache(maxsize=1)
def version() -> str:
    """In a checkout, and in the image made of one, what pyproject.toml says: no package is installed there."""
    if (ROOT / "manage.py").exists():
        return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return metadata.version("heval")
