"""Images on the disk: none that no row names stays for ever, and none that a row names goes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies.imports import image_storage
from studies.imports.image_storage import ORPHAN_AGE_SECONDS, delete_old_orphaned_images, storing_images
from studies.models import Output, Prompt
from studies.stimuli.images import EncodedImage, image_path, store_image
from tests.builders import draft_study

pytestmark = pytest.mark.django_db
NAMES = [f"{letter * 64}.webp" for letter in "abcd"]


@pytest.fixture
def root(settings, tmp_path) -> Path:
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


def stored(root: Path, name: str, age: float = 0) -> Path:
    path = store_image(root, EncodedImage(b"an image", 1, 1, name))
    os.utime(path, (time.time() - age,) * 2)
    return path


def named(name: str) -> None:
    """An output of some study has this image."""
    study = draft_study(systems=("x",), prompts=1)
    Output.objects.filter(system__study=study).update(text="", media=name)


def test_what_no_row_names_is_removed_after_a_day(root):
    old, young, ours = (
        stored(root, NAMES[0], ORPHAN_AGE_SECONDS + 5),
        stored(root, NAMES[1]),
        stored(root, NAMES[2], 1e6),
    )
    named(NAMES[2])
    prompts = stored(root, NAMES[3], 1e6)
    Prompt.objects.update(media=NAMES[3])
    begun, foreign = root / "ab" / ".new-1", root / "ab" / "notes.txt"
    for path in (begun, foreign):
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (0, 0))
    assert delete_old_orphaned_images() == 2
    assert not old.exists() and not begun.exists()
    assert young.exists() and ours.exists() and prompts.exists() and foreign.exists()


def test_what_an_import_finds_there_is_young_again(root):
    path = stored(root, NAMES[0], 1e6)
    with storing_images([NAMES[0]], lambda name: b"an image"):
        assert delete_old_orphaned_images() == 0 and path.exists()


def test_what_is_removed_while_an_import_writes_its_rows_is_stored_again(root, monkeypatch):
    path = stored(root, NAMES[0], 1e6)
    monkeypatch.setattr(image_storage.os, "utime", lambda path: path.stat())  # looked at just before it was touched
    with storing_images([NAMES[0]], lambda name: b"an image"):
        assert delete_old_orphaned_images() == 1 and not path.exists()
        named(NAMES[0])
    assert path.read_bytes() == b"an image" and delete_old_orphaned_images() == 0


def test_a_killed_import_leaves_files_that_are_found(root):
    """The process ends as by SIGKILL between the image and its row."""
    code = (
        "import os, sys; from pathlib import Path; from studies.stimuli.images import EncodedImage, store_image;"
        "store_image(Path(sys.argv[1]), EncodedImage(b'an image', 1, 1, sys.argv[2])); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(root), NAMES[0]], check=False)
    assert done.returncode == -9 and image_path(root, NAMES[0]).exists()
    assert delete_old_orphaned_images() == 0 and delete_old_orphaned_images(time.time() + ORPHAN_AGE_SECONDS + 1) == 1
    assert not image_path(root, NAMES[0]).exists()
