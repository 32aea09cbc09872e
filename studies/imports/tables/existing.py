"""The contents of a study as digests, to find changed contents in studies of any size."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from studies.imports.image_storage import storing_images
from studies.imports.preparation import ORIGINAL_KEY
from studies.models import Batch, Output, Placement, Study
from studies.stimuli.images import (
    Archive,
    ImageRefused,
    MemberMissing,
    count_declared_pixels,
    encode_image,
    image_path,
    store_image,
)
from studies.stimuli.surface import SurfaceProfile

# This many texts are enough to detect a mark that gives a system away.
MAX_PROFILED_TEXTS = 2_000

OutputKey = tuple[int, int, int]  # index of the system, index of the prompt, sample
NO_EXTRAS = ("plain", "", "")


def text_digest(text: str) -> bytes:
    """Return the digest of a text, or b'' for an empty text."""
    return blake2b(text.encode(), digest_size=16).digest() if text else b""


def output_content_digest(text: str, image_name: str, is_empty: bool) -> bytes:
    """Return the digest of an output's content. The first byte distinguishes a text from an image's name."""
    if is_empty:
        return b"empty"
    return b"i" + text_digest(image_name) if image_name else b"t" + text_digest(text)


@dataclass(slots=True)
class PromptState:
    """A prompt as known so far: from the study, or from its first row in the file."""

    index: int
    text: bytes
    source: bytes
    domain: str
    language: str
    media: str
    attributes: bytes
    group: str
    row: int | None = None
    is_new: bool = False
    is_changed: bool = False


@dataclass
class ExistingStimuli:
    """A study's stimuli and ready-made batches."""

    systems: dict[str, int] = field(default_factory=dict)
    prompts: dict[str, PromptState] = field(default_factory=dict)
    outputs: dict[OutputKey, bytes] = field(default_factory=dict)
    extras: dict[OutputKey, tuple[str, str, str]] = field(default_factory=dict)
    next_sample: dict[tuple[int, int], int] = field(default_factory=dict)
    profiles: dict[str, SurfaceProfile] = field(default_factory=dict)
    batches: dict[str, bytes] = field(default_factory=dict)
    fingerprint: str = ""


def load_existing_stimuli(study: Study, *, with_profiles: bool = True) -> ExistingStimuli:
    """Read a study's stimuli and ready-made batches as a stream. The fingerprint covers all of them."""
    existing = ExistingStimuli()
    digest = blake2b(digest_size=16)
    system_ids: dict[int, int] = {}
    prompt_ids: dict[int, int] = {}
    for pk, name in study.systems.order_by("name").values_list("pk", "name"):
        system_ids[pk] = existing.systems[name] = len(existing.systems)
        digest.update(repr((pk, name)).encode())
    prompts = study.prompts.order_by("pk").values_list(
        "pk", "key", "text", "source", "domain", "language", "media", "attributes", "group"
    )
    for pk, key, text, source, domain, language, media, attributes, group in prompts.iterator(2000):
        rest = {name: value for name, value in attributes.items() if name != ORIGINAL_KEY}
        attributes_json = json.dumps(rest, sort_keys=True, ensure_ascii=False) if rest else ""
        state = PromptState(
            len(existing.prompts),
            text_digest(attributes.get(ORIGINAL_KEY, text)),
            text_digest(source),
            domain,
            language,
            media,
            text_digest(attributes_json),
            group,
        )
        prompt_ids[pk] = state.index
        existing.prompts[key] = state
        digest.update(repr((pk, key, state)).encode())
    _read_outputs(study, existing, system_ids, prompt_ids, digest, with_profiles)
    _read_batches(study, existing, digest)
    existing.fingerprint = digest.hexdigest()
    return existing


def _read_outputs(study, existing: ExistingStimuli, system_ids, prompt_ids, digest, with_profiles: bool) -> None:
    profiles = {system_ids[pk]: SurfaceProfile() for pk in system_ids}
    rows = Output.objects.filter(system__study=study).order_by("pk").values_list(
        "system_id", "prompt_id", "sample", "format", "text", "media", "alt", "is_empty", "original", "language"
    )  # fmt: skip
    for system, prompt, sample, kind, text, media, alt, is_empty, original, language in rows.iterator(2000):
        s, p = system_ids[system], prompt_ids[prompt]
        key = (s, p, sample)
        existing.outputs[key] = content = output_content_digest(original or text, media, is_empty)
        extras = (kind, alt, language)
        if extras != NO_EXTRAS:
            existing.extras[key] = extras
        existing.next_sample[s, p] = max(existing.next_sample.get((s, p), 0), sample + 1)
        digest.update(repr((key, content, extras)).encode())
        if with_profiles and text and profiles[s].n < MAX_PROFILED_TEXTS:
            profiles[s].add(original or text)
    existing.profiles = {name: profiles[index] for name, index in existing.systems.items()}


def _read_batches(study, existing: ExistingStimuli, digest) -> None:
    lines: dict[str, list] = {}
    rows = (
        Placement.objects.filter(batch__study=study, batch__origin=Batch.Origin.IMPORTED)
        .order_by("batch__number", "number", "item__exposures__output__system__name", "item__exposures__output__sample")
        .values_list(
            "batch__key",
            "batch__arm__name",
            "number",
            "item__section__position",
            "item__prompt__key",
            "item__exposures__output__system__name",
            "item__exposures__output__sample",
        )
    )
    for key, *line in rows.iterator(2000):
        lines.setdefault(key, []).append(line)
    existing.batches = {key: batch_digest(rows) for key, rows in lines.items()}
    digest.update(repr(sorted(existing.batches.items())).encode())


def batch_digest(lines: list) -> bytes:
    """Return the digest of a batch's lines: [arm, place, section, prompt, system, sample]. Python sorts them: collations differ."""
    return blake2b(json.dumps(sorted(lines)).encode(), digest_size=16).digest()


# The images that a table names, each decoded once. A dry run refuses bad images with their row; an import stores
# them.


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
        return sorted(self._archive.images - {self._archive.member_of(name) for name in self._names})

    @contextmanager
    def storing_used_images(self) -> Iterator[None]:
        """Store the images for annotators. Write the rows that name them inside this context."""
        folder = Path(self._temporary_folder.name) if self._temporary_folder else Path()
        with storing_images(sorted(set(self._names.values())), lambda name: image_path(folder, name).read_bytes()):
            yield
