"""Read a zip with one table and its images, without unpacking anything to disk.

All limits on number, size and names are checked in the archive's directory before a member is opened. Names are only
looked up, never used as paths.
"""

import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePosixPath
from types import TracebackType
from typing import BinaryIO

from .images import MAX_BYTES as MAX_IMAGE_BYTES
from .lines import UnreadableFile
from .rows import CSV_EXTENSIONS, JSON_EXTENSIONS, Rows, TableLimits, TableProblems, read_rows
from .texts import name_key

IMAGE_EXTENSIONS = (".png", ".jpg", ".jpeg", ".webp", ".gif")
TABLE_EXTENSIONS = tuple(extension for extension in CSV_EXTENSIONS + JSON_EXTENSIONS if extension != ".txt")

_LEFT_BY_SYSTEMS = re.compile(r"(?:^|/)(?:__MACOSX/|(?:\.DS_Store|Thumbs\.db|desktop\.ini)$)", re.IGNORECASE)
_END, _LOCATOR_64, _TABLE_ENTRY = b"PK\x05\x06", b"PK\x06\x07", 1024
# Below this size the compression ratio does not matter: the limit on the total size applies.
_RATIO_APPLIES_FROM = 1024 * 1024
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
    struct.error,
)


@dataclass(frozen=True)
class ZipLimits:
    """The limits of one archive, packed and unpacked."""

    members: int = 2_000
    bytes: int = 500 * 1024 * 1024
    ratio: int = 100


class MemberMissing(ValueError):
    """The archive has no usable image of a name in the table. The message says why."""


class Archive:
    """The rows of the archive's table and its images. Use it in `with`, or close it."""

    def __init__(self, rows: Rows, images: Collection[str], file: zipfile.ZipFile | None) -> None:
        self.rows = rows
        self.images = frozenset(images)
        self._file = file
        self._by_key = {name_key(name): name for name in self.images}

    @property
    def problems(self) -> TableProblems:
        """The problems of the archive and of its table, in one list."""
        return self.rows.problems

    @property
    def has_table(self) -> bool:
        return bool(self.rows.columns)

    def image(self, name: str) -> bytes:
        """Return the bytes of an image by its path in the table. Raise MemberMissing."""
        path = unicodedata.normalize("NFC", name.strip().removeprefix("./"))
        member = self._by_key.get(name_key(path))
        if self._file is None or member is None:
            raise MemberMissing(f"the image “{name[:200]}” is not in the archive.")
        if unicodedata.normalize("NFC", member) != path:
            raise MemberMissing(
                f"the image “{name[:200]}” is not in the archive, but “{member}” is: use this name in the table."
            )
        try:
            return self._file.read(member)
        except _DAMAGE as error:
            raise MemberMissing(f"the image “{name[:200]}” is damaged in the archive.") from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> "Archive":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_zip(
    filename: str,
    source: bytes | BinaryIO,
    *,
    known_columns: Collection[str] = (),
    required_columns: Collection[str] = (),
    limits: TableLimits | None = None,
    zip_limits: ZipLimits | None = None,
    needs_table: bool = True,
) -> Archive:
    """Return the table and the images of an archive. Faults are in `problems`; an unsafe archive has no rows.

    `needs_table`: an archive without a table is a fault. Two tables always are.
    """
    zip_limits = zip_limits or ZipLimits()
    problems = TableProblems()
    stream = BytesIO(source) if isinstance(source, bytes | bytearray) else source
    nothing = Rows((), iter(()), problems)
    try:
        file = _opened(filename, stream, zip_limits)
    except UnreadableFile as refused:
        problems.add(None, None, refused.text)
        return Archive(nothing, (), None)
    try:
        tables, images = _members(file, zip_limits, problems)
        if not problems and len(tables) != 1 and (tables or needs_table):
            table_names = ", ".join(tables[:5]) or "none"
            problems.add(
                None,
                None,
                f"The archive must contain exactly one table (CSV or JSON lines). Tables in it: {table_names}.",
            )
        if problems:
            file.close()
            return Archive(nothing, images, None)
        if not tables:
            return Archive(nothing, images, file)
        table = _Member(file, tables[0])
    except _DAMAGE:
        file.close()
        problems.add(None, None, f"“{filename}” is damaged.")
        return Archive(nothing, (), None)
    rows = read_rows(
        tables[0],
        table,
        known_columns=known_columns,
        required_columns=required_columns,
        limits=limits,
        problems=problems,
    )
    return Archive(rows, images, file)


class _Member:
    """A member as a stream. Damage becomes a problem of the table instead of an exception of the zip module."""

    def __init__(self, file: zipfile.ZipFile, name: str) -> None:
        self._stream = file.open(name)
        self._name = name

    def read(self, size: int) -> bytes:
        try:
            return self._stream.read(size)
        except _DAMAGE as error:
            raise UnreadableFile(None, f"“{self._name}” is damaged in the archive.") from error


def _opened(filename: str, stream: BinaryIO, limits: ZipLimits) -> zipfile.ZipFile:
    _check_directory(filename, stream, limits)
    try:
        return zipfile.ZipFile(stream)
    except _DAMAGE as error:
        raise UnreadableFile(None, f"“{filename}” is not a zip archive, or is cut off.") from error


def _check_directory(filename: str, stream: BinaryIO, limits: ZipLimits) -> None:
    """Check the number of members and the size of the directory before the zip module reads each entry."""
    size = stream.seek(0, 2)
    if size > limits.bytes:
        raise UnreadableFile(None, f"“{filename}” has {size:,} bytes. At most {limits.bytes:,} are allowed.")
    stream.seek(max(0, size - 22 - 65_535 - 20))
    tail = stream.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < 22:
        raise UnreadableFile(None, f"“{filename}” is not a zip archive, or is cut off.")
    # A 64-bit directory makes these fields meaningless. No archive within the limits needs one.
    if _LOCATOR_64 in tail[max(0, at - 20) : at]:
        raise UnreadableFile(
            None, f"“{filename}” uses the 64-bit zip format, which an archive of this size does not need."
        )
    members, directory = struct.unpack_from("<HI", tail, at + 10)
    if members > limits.members or directory > limits.members * _TABLE_ENTRY:
        raise UnreadableFile(None, f"“{filename}” has {members:,} members. At most {limits.members:,} are allowed.")


def _members(file: zipfile.ZipFile, limits: ZipLimits, problems: TableProblems) -> tuple[list[str], list[str]]:
    """Return the names of the tables and of the images. Everything else in the archive is a problem."""
    tables: list[str] = []
    images: list[str] = []
    seen: dict[str, str] = {}
    infos = [info for info in file.infolist() if not info.is_dir() and not _LEFT_BY_SYSTEMS.search(info.filename)]
    total = sum(info.file_size for info in infos)
    if len(file.infolist()) > limits.members:
        problems.add(
            None, None, f"The archive has {len(file.infolist()):,} members. At most {limits.members:,} are allowed."
        )
    if total > limits.bytes:
        problems.add(
            None, None, f"The archive has {total:,} bytes when unpacked. At most {limits.bytes:,} are allowed."
        )
    for info in infos:
        name = info.orig_filename
        fault = _fault(info, limits)
        key = name_key(name)
        if key in seen:
            fault = fault or f"has the same name as “{seen[key]}”, except for case or composition"
        seen.setdefault(key, name)
        suffix = PurePosixPath(name).suffix.lower()
        if fault:
            problems.add(None, None, f"“{_printable_name(name)}” in the archive {fault}.")
        elif suffix in TABLE_EXTENSIONS:
            tables.append(name)
        elif suffix in IMAGE_EXTENSIONS:
            images.append(name)
        else:
            problems.add(
                None, None, f"“{_printable_name(name)}” in the archive is neither a table nor a PNG, JPEG, WebP or GIF."
            )
    return tables, images


def _fault(info: zipfile.ZipInfo, limits: ZipLimits) -> str:
    name = info.orig_filename
    parts = name.split("/")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if not name.isprintable() or len(name) > 500:
        return "has a name with invisible characters, or one that is too long"
    if "\\" in name or re.match(r"[A-Za-z]:", name) or not {"", ".", ".."}.isdisjoint(parts):
        return "has a path that leads out of the archive or is not simple: use names such as images/p01.png"
    if kind and not stat.S_ISREG(kind):
        return "is a link or a device, not a file" if not stat.S_ISLNK(kind) else "is a symbolic link, not a file"
    if info.flag_bits & 0x1:
        return "is encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is packed in an uncommon way: use ordinary (deflate) compression"
    if info.file_size > _RATIO_APPLIES_FROM and info.file_size > limits.ratio * info.compress_size:
        return f"grows more than {limits.ratio}-fold when unpacked"
    if PurePosixPath(name).suffix.lower() in IMAGE_EXTENSIONS and info.file_size > MAX_IMAGE_BYTES:
        return f"has {info.file_size:,} bytes; at most {MAX_IMAGE_BYTES:,} are allowed for an image"
    return ""


def _printable_name(name: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in name[:200])
