"""The images that a table names, each decoded once: refused with its row in a dry run, kept when it is written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from studies.imports.image_storage import storing_images
from studies.stimuli.archives import Archive, MemberMissing
from studies.stimuli.images import ImageRefused, encode_image, path_of, store


class ImportedImages:
    """Names of stored images by the names that a table gives. Use it in `with` where they are to be kept."""

    def __init__(self, archive: Archive | None, *, stores: bool):
        self._archive = archive
        self._names: dict[str, str] = {}
        self._faults: dict[str, str] = {}
        self._waiting = TemporaryDirectory(prefix="heval-images-") if stores else None
        self.notes: list[str] = []
        self.used: set[str] = set()

    def __enter__(self) -> "ImportedImages":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._waiting is not None:
            self._waiting.cleanup()

    def stored_name(self, member: str) -> str:
        """What the image will be called, or ImageRefused."""
        if member in self._faults:
            raise ImageRefused(self._faults[member])
        if member not in self._names:
            self._names[member] = self._encoded(member)
        return self._names[member]

    def _encoded(self, member: str) -> str:
        try:
            if self._archive is None:
                raise ImageRefused(
                    f"the image “{member[:200]}” comes with no file: import a zip of the table and its images."
                )
            image = encode_image(self._archive.image(member))
        except (ImageRefused, MemberMissing) as error:
            self._faults[member] = f"“{member[:200]}”: {error}" if member not in str(error) else str(error)
            raise ImageRefused(self._faults[member]) from None
        if image.notes:
            self.notes.append(f"{member}: {', '.join(image.notes)}")
        if self._waiting is not None:
            store(Path(self._waiting.name), image)
        return image.name

    def unused(self) -> list[str]:
        """Images of the archive that no row names."""
        if self._archive is None:
            return []
        named = {member.strip().removeprefix("./") for member in self._names}
        return sorted(self._archive.images - named)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Bring the images to where annotators get them, for the rows that are written inside."""
        waiting = Path(self._waiting.name) if self._waiting else Path()
        with storing_images(sorted(set(self._names.values())), lambda name: path_of(waiting, name).read_bytes()):
            yield
