"""The images that a table names, each decoded once. A dry run refuses bad images with their row; an import stores them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from studies.imports.image_storage import storing_images
from studies.stimuli.archives import Archive, MemberMissing
from studies.stimuli.images import ImageRefused, count_declared_pixels, encode_image, image_path, store_image


class ImportedImages:
    """Map the image names of a table to the names of stored images. Use it in `with` if the images are to be stored."""

    def __init__(self, archive: Archive | None, *, stores: bool):
        self._archive = archive
        self._names: dict[str, str] = {}
        self._faults: dict[str, str] = {}
        self._temporary_folder = TemporaryDirectory(prefix="heval-images-") if stores else None
        self.notes: list[str] = []
        self.n_pixels = 0
        self.used: set[str] = set()

    def __enter__(self) -> "ImportedImages":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._temporary_folder is not None:
            self._temporary_folder.cleanup()

    def stored_name(self, member: str) -> str:
        """Return the image's name in the storage. Raise ImageRefused if it is not accepted."""
        if member in self._faults:
            raise ImageRefused(self._faults[member])
        if member not in self._names:
            self._names[member] = self._encoded(member)
        return self._names[member]

    def _encoded(self, member: str) -> str:
        try:
            if self._archive is None:
                raise ImageRefused(
                    f"the image “{member[:200]}” has no file: import a zip with the table and its images."
                )
            data = self._archive.image(member)
            self.n_pixels += count_declared_pixels(data)  # a damaged image costs as much as a good one
            image = encode_image(data)
        except (ImageRefused, MemberMissing) as error:
            self._faults[member] = f"“{member[:200]}”: {error}" if member not in str(error) else str(error)
            raise ImageRefused(self._faults[member]) from None
        if image.notes:
            self.notes.append(f"{member}: {', '.join(image.notes)}")
        if self._temporary_folder is not None:
            store_image(Path(self._temporary_folder.name), image)
        return image.name

    def unused_image_names(self) -> list[str]:
        """Return the images of the archive that no row names."""
        if self._archive is None:
            return []
        used_members = {member.strip().removeprefix("./") for member in self._names}
        return sorted(self._archive.images - used_members)

    @contextmanager
    def storing_used_images(self) -> Iterator[None]:
        """Store the images for annotators. Write the rows that name them inside this context."""
        folder = Path(self._temporary_folder.name) if self._temporary_folder else Path()
        with storing_images(sorted(set(self._names.values())), lambda name: image_path(folder, name).read_bytes()):
            yield
