"""The contents of a study and of the file so far, as digests in a temporary database: memory does not grow with them."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from django.db.models import Max, OuterRef, Subquery

from studies.imports.image_storage import storing_images
from studies.imports.preparation import ORIGINAL_KEY
from studies.models import FIRST_TEST_NUMBER, Batch, Output, Placement, Prompt, Study, System
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
from studies.stimuli.texts import name_key

# This many texts are enough to detect a mark that gives a system away.
MAX_PROFILED_TEXTS = 2_000
NO_EXTRAS = ("plain", "", "", "")
CACHE_KILOBYTES = 16_000


class Staging:
    """A temporary database of this process. SQLite keeps it in a file without a name, which ends with the process."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect("", isolation_level=None)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{CACHE_KILOBYTES}"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.execute("BEGIN")

    def table(self, name: str, keys: str, values: str) -> "StagedTable":
        return StagedTable(self.connection, name, keys.split(), values.split())


class StagedTable:
    """Rows by their keys, like a dictionary."""

    def __init__(self, connection: sqlite3.Connection, name: str, keys: list[str], values: list[str]):
        columns, key = ", ".join([*keys, *values]), ", ".join(keys)
        values = values or keys
        connection.execute(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID")
        row = f"INTO {name} VALUES ({', '.join('?' for _ in columns.split())})"
        self._select = f"SELECT {', '.join(values)} FROM {name} WHERE {' AND '.join(f'{one} = ?' for one in keys)}"  # noqa: S608 - names of this module
        self._put, self._add, self._execute = f"REPLACE {row}", f"INSERT OR IGNORE {row}", connection.execute

    def get(self, *key: Any) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._execute(self._select, key).fetchone()
        return found

    def put(self, *row: Any) -> None:
        self._execute(self._put, row)

    def add(self, *row: Any) -> bool:
        """Store a row, unless its key is there. Return whether it is new."""
        return self._execute(self._add, row).rowcount == 1


def text_digest(text: str) -> bytes:
    """Return the digest of a text, or b'' for an empty text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() if text else b""


def output_content_digest(text: str, image_name: str, is_empty: bool) -> bytes:
    """Return the digest of an output's content. The first byte distinguishes a text from an image's name."""
    if is_empty:
        return b"empty"
    return b"i" + text_digest(image_name) if image_name else b"t" + text_digest(text)


class PromptState(NamedTuple):
    """A prompt as known so far: from the study, or from its first row in the file."""

    number: int
    text: bytes
    source: bytes
    domain: str
    language: str
    media: str
    attributes: bytes
    group: str
    row: int | None = None


class OutputState(NamedTuple):
    """An output as known so far. ``row`` is None if the file has not given it yet."""

    content: bytes
    format: str
    alt: str
    language: str
    warning: str
    row: int | None = None


@dataclass
class ExistingStimuli:
    """A study's stimuli and ready-made batches, and what the file adds to them. Prompts and systems have numbers of this import."""

    staging: Staging = field(default_factory=Staging)
    systems: dict[str, int] = field(default_factory=dict)
    profiles: dict[str, SurfaceProfile] = field(default_factory=dict)
    batches: dict[str, bytes] = field(default_factory=dict)
    n_prompts: int = 0

    def __post_init__(self) -> None:
        table = self.staging.table
        self._prompts = table("prompts", "key", "number text source domain language media attributes grp row")
        self._outputs = table("outputs", "prompt system sample", "content format alt language warning row")
        self._names = table("names", "kind folded", "name")
        # Where each content occurs first, and the first prompt with each text.
        self.places = table("places", "content", "system prompt key")
        self.prompt_texts = table("prompt_texts", "digest", "key")

    def prompt(self, key: str) -> PromptState | None:
        found = self._prompts.get(key)
        return PromptState(*found) if found else None

    def keep_prompt(self, key: str, state: PromptState) -> None:
        self._prompts.put(key, *state)

    def new_number(self) -> int:
        self.n_prompts += 1
        return self.n_prompts

    def output(self, prompt: int, system: int, sample: int) -> OutputState | None:
        found = self._outputs.get(prompt, system, sample)
        return OutputState(*found) if found else None

    def keep_output(self, prompt: int, system: int, sample: int, state: OutputState) -> None:
        self._outputs.put(prompt, system, sample, *state)

    def find_sample(self, prompt: int, system: int, content: bytes) -> int:
        """Return the sample with this content, or else the next free number."""
        among = "SELECT max(sample) FROM outputs WHERE prompt = ? AND system = ?"
        with_content = self._one(f"{among} AND content = ?", prompt, system, content)
        last = self._one(among, prompt, system) if with_content is None else None
        return int(with_content if with_content is not None else 0 if last is None else last + 1)

    def find_lookalike(self, kind: str, name: str) -> str:
        """Take the name. Return another name of this kind that looks the same to a person, or '' if there is none."""
        folded = name_key(name)
        if self._names.add(kind, folded, name):
            return ""
        other = str((self._names.get(kind, folded) or ("",))[0])
        return "" if other == name else other

    def has_name(self, kind: str, name: str) -> bool:
        return self._names.get(kind, name_key(name)) is not None

    def sources_with_groups(self) -> Iterator[tuple[bytes, str]]:
        """Return the texts and groups of the study's prompts that have both."""
        found = "SELECT source, grp FROM prompts WHERE source <> x'' AND grp <> '' ORDER BY number DESC"
        return self.staging.connection.execute(found)

    def count_groups(self) -> tuple[int, int]:
        """Return the number of groups, and of prompts in a group."""
        row = self.staging.connection.execute(
            "SELECT count(DISTINCT grp), count(*) FROM prompts WHERE grp <> ''"
        ).fetchone()
        return int(row[0]), int(row[1])

    def prompt_keys(self) -> Iterator[str]:
        return (key for (key,) in self.staging.connection.execute("SELECT key FROM prompts"))

    def missing_outputs(self, most: int) -> tuple[int, list[tuple[str, str]]]:
        """Return how many pairs of prompt and system have no output, and the first of them."""
        n_pairs = self._one("SELECT count(*) FROM (SELECT DISTINCT prompt, system FROM outputs)")
        n = self.n_prompts * len(self.systems) - n_pairs
        table = self.staging.table("systems", "name", "number")
        for name, number in self.systems.items():
            table.put(name, number)
        missing = (
            "SELECT p.key, s.name FROM prompts p CROSS JOIN systems s WHERE NOT EXISTS (SELECT 1 FROM outputs o "
            "WHERE o.prompt = p.number AND o.system = s.number) ORDER BY p.key, s.name LIMIT ?"
        )
        return n, self.staging.connection.execute(missing, [most]).fetchall() if n else []

    def _one(self, sql: str, *values: Any) -> Any:
        return self.staging.connection.execute(sql, values).fetchone()[0]


def last_ids(study: Study) -> dict[str, int]:
    """Return the last ids of a study's stimuli. They grow whenever somebody adds some."""
    last_output = Output.objects.filter(system=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    systems = System.objects.filter(study=study.pk)
    found = systems.annotate(last_output=Subquery(last_output)).aggregate(system=Max("pk"), output=Max("last_output"))
    found["prompt"] = Prompt.objects.filter(study=study.pk).aggregate(n=Max("pk"))["n"]
    found["batch"] = Batch.objects.filter(study=study.pk, number__lt=FIRST_TEST_NUMBER).aggregate(n=Max("pk"))["n"]
    return {name: last or 0 for name, last in found.items()}


def load_existing_stimuli(study: Study, *, with_batches: bool = False) -> ExistingStimuli:
    """Read a study's stimuli as a stream. ``with_batches``: also its ready-made batches."""
    existing = ExistingStimuli()
    system_ids: dict[int, int] = {}
    for pk, name in System.objects.filter(study=study.pk).order_by("name").values_list("pk", "name"):
        system_ids[pk] = existing.systems[name] = len(existing.systems)
        existing.profiles[name] = SurfaceProfile()
        existing.find_lookalike("system", name)
    prompt_keys = Staging().table("prompts", "pk", "number key")
    prompts = (
        Prompt.objects.filter(study=study.pk)
        .order_by("pk")
        .values_list("pk", "key", "text", "source", "domain", "language", "media", "attributes", "group")
    )
    for pk, key, text, source, domain, language, media, attributes, group in prompts.iterator(2000):
        rest = {name: value for name, value in attributes.items() if name != ORIGINAL_KEY}
        attributes_json = json.dumps(rest, sort_keys=True, ensure_ascii=False) if rest else ""
        state = PromptState(
            existing.new_number(),
            text_digest(attributes.get(ORIGINAL_KEY, text)),
            text_digest(source),
            domain,
            language,
            media,
            text_digest(attributes_json),
            group,
        )
        existing.keep_prompt(key, state)
        existing.find_lookalike("prompt", key)
        if group:
            existing.find_lookalike("group", group)
        prompt_keys.put(pk, state.number, key)
    names = list(existing.systems)
    rows = (
        Output.objects.filter(system__study=study.pk)
        .order_by("pk")
        .values_list(
            "system_id",
            "prompt_id",
            "sample",
            "format",
            "text",
            "media",
            "alt",
            "is_empty",
            "original",
            "language",
            "warning",
        )
    )
    for system_id, prompt_id, sample, kind, text, media, alt, is_empty, original, language, warning in rows.iterator(
        2000
    ):
        system, (prompt, key) = system_ids[system_id], prompt_keys.get(prompt_id) or (0, "")
        content = output_content_digest(original or text, media, is_empty)
        existing.keep_output(prompt, system, sample, OutputState(content, kind, alt, language, warning))
        existing.places.add(content, system, prompt, key)
        if text and (profile := existing.profiles[names[system]]).n < MAX_PROFILED_TEXTS:
            profile.add(original or text)
    if with_batches:
        _read_batches(study, existing)
    return existing


def _read_batches(study: Study, existing: ExistingStimuli) -> None:
    lines: dict[str, list] = {}
    rows = (
        Placement.objects.filter(batch__study=study.pk, batch__origin=Batch.Origin.IMPORTED)
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
