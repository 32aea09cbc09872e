"""Store an import's images on disk before rows name them, and remove images that no row names."""

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.db.models import Model

from studies.models import Output, Prompt
from studies.stimuli.images import EXTENSION, TEMPORARY_PREFIX, EncodedImage, image_path, store_image

# No import takes so long from its first image to its rows.
ORPHAN_AGE_SECONDS = 86_400

_models_with_images: list[type[Model]] = [Prompt, Output]


def register_model_with_images(model: type[Model]) -> None:
    """Keep the images that rows of this model name in ``media``. Apps above studies call it in ready()."""
    if model not in _models_with_images:
        _models_with_images.append(model)


@contextmanager
def storing_images(names: Collection[str], read_image: Callable[[str], bytes]) -> Iterator[None]:
    """Store the images of these names from ``read_image``. Write the rows that name them inside this context.

    If that fails, remove the newly stored files, except files that another row names by now.
    """
    root = Path(settings.MEDIA_ROOT)
    new: list[str] = []
    try:
        for name in names:
            try:
                os.utime(image_path(root, name))  # a new modification time keeps it from being removed as an orphan
            except FileNotFoundError:
                new.append(name)
                store_image(root, EncodedImage(read_image(name), 0, 0, name))
        yield
    except BaseException:
        _remove_unnamed(root, new)
        raise
    # Another import that failed meanwhile may have removed files that this import also needs.
    for name in names:
        if not image_path(root, name).exists():
            store_image(root, EncodedImage(read_image(name), 0, 0, name))


def _remove_unnamed(root: Path, names: Collection[str]) -> None:
    for name in set(names) - _names_in_use(names):
        image_path(root, name).unlink(missing_ok=True)


def _names_in_use(names: Collection[str]) -> set[str]:
    """Return the names that some row uses."""
    listed = list(names)
    return {
        name
        for model in _models_with_images
        for start in range(0, len(listed), 500)
        for name in model._default_manager.filter(media__in=listed[start : start + 500]).values_list("media", flat=True)
    }


def delete_old_orphaned_images(now: float | None = None) -> int:
    """Remove files that no row names and that were not touched for a day. Return their number.

    They come from killed imports and deleted drafts. If an import names a file while this runs, it finds the file missing after
    writing its rows, and stores it again.
    """
    root = Path(settings.MEDIA_ROOT)
    before = (time.time() if now is None else now) - ORPHAN_AGE_SECONDS
    removed = 0
    old = (path for path in root.glob("??/*") if _is_old(path, before))
    while paths := list(islice(old, 500)):
        used_names = _names_in_use([path.name for path in paths if path.suffix == EXTENSION])
        for path in paths:
            if path.name not in used_names and _is_old(path, before):
                path.unlink(missing_ok=True)
                removed += 1
    return removed


def _is_old(path: Path, before: float) -> bool:
    """Return whether heval wrote the file, completely or in part, and did not touch it since then."""
    is_own = path.suffix == EXTENSION or path.name.startswith(TEMPORARY_PREFIX)
    with suppress(FileNotFoundError):
        return is_own and path.stat().st_mtime < before
    return False
