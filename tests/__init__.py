"""The tests of heval. Their folders are those of the code; what concerns the whole site is at the top."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
