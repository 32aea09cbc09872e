"""Images of an import on the disk: there before a row names them, and gone again where no row came to name them."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from .media import EncodedImage, path_of, store
from .models import Output, Prompt


@contextmanager
def kept(names: Collection[str], read: Callable[[str], bytes]) -> Iterator[None]:
    """Store the images of these names, as `read` gives them, and write the rows that name them inside, transaction and all.

    Where that fails, the files that were stored here are removed, except those that a row of somebody else names by now.
    """
    root = Path(settings.MEDIA_ROOT)
    new: list[str] = []
    try:
        for name in names:
            if not path_of(root, name).exists():
                new.append(name)
                store(root, EncodedImage(read(name), 0, 0, name))
        yield
    except BaseException:
        _remove_unnamed(root, new)
        raise
    # Another import that failed meanwhile may have removed what it had stored and this one had found.
    for name in names:
        if not path_of(root, name).exists():
            store(root, EncodedImage(read(name), 0, 0, name))


def _remove_unnamed(root: Path, names: list[str]) -> None:
    named: set[str] = set()
    for model in (Prompt, Output):
        for start in range(0, len(names), 500):
            rows = model.objects.filter(media__in=names[start : start + 500])
            named.update(rows.values_list("media", flat=True))
    for name in set(names) - named:
        path_of(root, name).unlink(missing_ok=True)
