"""Static files with a hash in their names, compressed, which browsers keep for ever. ``heval up`` collects them into its home."""

import hashlib
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

STAMP = "collected.txt"


class CollectedFilesStorage(CompressedManifestStaticFilesStorage):
    """A file that was not collected keeps its own name, by which it is served from its source folder."""

    def create_compressor(self, **options: Any) -> Compressor:
        # Brotli saves a tenth more and takes most of ten seconds, at each first start.
        return Compressor(**options | {"use_brotli": False})

    def stored_name(self, name: str) -> str:
        return str(self.hashed_files.get(self.hash_key(self.clean_name(name)), name))


def collect_changed_static_files() -> None:
    """Collect the static files, unless this was done since they last changed."""
    files = sorted(
        (name, storage.size(name), str(storage.get_modified_time(name)))
        for finder in get_finders()
        for name, storage in finder.list(ignore_patterns=[])
    )
    state = hashlib.sha256(repr(files).encode()).hexdigest()
    stamp = settings.STATIC_ROOT / STAMP
    if stamp.exists() and stamp.read_text() == state:
        return
    stamp.unlink(missing_ok=True)  # written again when all is there
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(state)
