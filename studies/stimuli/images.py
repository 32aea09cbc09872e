"""Prepare images for annotators: decode them, encode them again and name them by their content.

Every image becomes an RGB WebP of quality 90. All systems of all studies have the same format and quality, so the type,
the compression and the file size do not reveal the system. At quality 90 no difference is visible at the displayed
sizes, and a page of sixteen images of 1024 pixels has a few megabytes. Lossless files would be much larger.

Only pixels are kept: no metadata, no profile (colours are converted to sRGB first), no second frame and no transparency.
Transparent images get a white background, because they must look the same in the light and the dark theme. Equal input
gives equal bytes with the same version of libwebp.
"""

import hashlib
import os
import re
import stat
import struct
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from .columns import Columns
from .containers import LEFT_BY_SYSTEMS, PARQUET_EXTENSION, WORKBOOK_EXTENSIONS
from .lines import UnreadableFile
from .rows import CSV_EXTENSIONS, JSON_EXTENSIONS, Rows, TableLimits, TableProblems, read_rows
from .texts import name_key

if TYPE_CHECKING:
    from PIL.Image import Image


MAX_BYTES = 20 * 1024 * 1024
MAX_PIXELS = 4096 * 4096
MAX_SIDE = 16_383  # the limit of the WebP format
EXTENSION = ".webp"
TEMPORARY_PREFIX = ".new-"  # the name of an unfinished file begins with this
MEDIA_TYPE = "image/webp"
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")

_QUALITY, _METHOD = 90, 4
_NAME = re.compile(r"[0-9a-f]{64}\.webp")
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


class ImageRefused(ValueError):
    """The image is not accepted. The message gives the reason in plain words."""


@dataclass(frozen=True)
class EncodedImage:
    """An image that is ready to be stored and served. `notes` lists what the conversion removed."""

    data: bytes
    width: int
    height: int
    name: str
    notes: tuple[str, ...] = ()


def encode_image(data: bytes) -> EncodedImage:
    """Return the image in this module's format. Raise ImageRefused."""
    _check_signature(data)
    # Decoders raise nearly any error for hostile bytes (OSError, SyntaxError, struct.error, IndexError ...).
    # All of them mean that the image is unreadable.
    try:
        pixels, notes = _pixels(data)
        encoded = BytesIO()
        pixels.save(encoded, "WEBP", quality=_QUALITY, method=_METHOD)
    except ImageRefused:
        raise
    except Exception as error:
        raise ImageRefused("The image is damaged or cut off and cannot be read. Export it again.") from error
    result = encoded.getvalue()
    name = hashlib.sha256(result).hexdigest() + EXTENSION
    return EncodedImage(result, pixels.width, pixels.height, name, notes)


def count_declared_pixels(data: bytes) -> int:
    """Return how many pixels the header of an image declares, without decoding any; 0 if it cannot be read."""
    from PIL import Image

    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            return image.width * image.height
    except Exception:  # decoders raise nearly any error
        return 0


def store_image(root: Path, image: EncodedImage) -> Path:
    """Write the image below `root` and return its path. Atomic: readers see the complete file or no file. Idempotent."""
    path = image_path(root, image.name)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=TEMPORARY_PREFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(image.data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def image_path(root: Path, name: str) -> Path:
    """Return the path of this image below `root`. Raise ImageRefused for a name that `encode_image` cannot have made."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ImageRefused("This is not the name of a stored image.")
    return Path(root) / name[:2] / name


def _check_signature(data: bytes) -> None:
    if not data:
        raise ImageRefused("The image is empty (0 bytes). Export it again.")
    if len(data) > MAX_BYTES:
        raise ImageRefused(f"The image has {len(data):,} bytes. At most {MAX_BYTES:,} are allowed. Make it smaller.")
    if data.startswith(_MAGIC) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        return
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in start:
        raise ImageRefused("An SVG image can contain a program, so it is not accepted. Export it as PNG.")
    if start.startswith(b"<"):
        raise ImageRefused("This is a web page or XML, not an image. Choose an image.")
    raise ImageRefused("This is not an image of a known kind. Use PNG, JPEG, WebP or GIF.")


def _pixels(data: bytes) -> "tuple[Image, tuple[str, ...]]":
    from PIL import Image, ImageOps

    try:
        image = Image.open(BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageRefused(f"The image has more than the {MAX_PIXELS:,} pixels allowed. Make it smaller.") from error
    with image:
        # This reads only the header and decodes no pixel.
        if image.width * image.height > MAX_PIXELS or max(image.size) > MAX_SIDE:
            raise ImageRefused(
                f"The image has {image.width:,} x {image.height:,} pixels; "
                f"{MAX_PIXELS:,} in all and {MAX_SIDE:,} a side are allowed. Make it smaller."
            )
        notes = ["only the first of its frames is shown"] if getattr(image, "n_frames", 1) > 1 else []
        image.seek(0)
        image.load()
        is_turned = image.getexif().get(0x0112, 1) not in (0, 1)
        upright = (ImageOps.exif_transpose(image) or image) if is_turned else image
        if is_turned:
            notes.append("turned as its camera says")
        flat, was_transparent = _flat(_in_srgb(upright))
        if was_transparent:
            notes.append("its transparent parts are white")
        # Encoders would write this metadata even if it is not passed to them.
        flat.info = {}
        return flat, tuple(notes)


def _in_srgb(image: "Image") -> "Image":
    profile = image.info.get("icc_profile")
    if not profile or image.mode not in {"RGB", "RGBA", "CMYK", "L"}:
        return image
    from PIL import ImageCms

    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    try:
        source, target = ImageCms.ImageCmsProfile(BytesIO(profile)), ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(image, source, target, outputMode=mode) or image
    except (ImageCms.PyCMSError, OSError, ValueError):
        # Browsers also ignore a broken or unknown profile and show the pixel values unchanged.
        return image


def _flat(image: "Image") -> "tuple[Image, bool]":
    from PIL import Image

    if image.mode.startswith("I"):
        # For 16 bits per channel Pillow's conversion clips at 255 instead of scaling.
        return image.convert("I").point(lambda value: value * (1 / 257) + 0.5).convert("L").convert("RGB"), False
    if image.mode not in {"RGBA", "LA", "PA", "La", "RGBa"} and "transparency" not in image.info:
        return (image if image.mode == "RGB" else image.convert("RGB")), False
    visible = image if image.mode == "RGBA" else image.convert("RGBA")
    alpha = visible.getchannel("A")
    if alpha.getextrema()[0] == 255:
        return visible.convert("RGB"), False
    white = Image.new("RGB", visible.size, "white")
    white.paste(visible, mask=alpha)
    return white, True


# Read a zip with one table and its images, without unpacking anything to disk.
#
# All limits on number, size and names are checked in the archive's directory before a member is opened. Names are
# only looked up, never used as paths.


IMAGE_EXTENSIONS = (".png", ".jpg", ".jpeg", ".webp", ".gif")
TABLE_EXTENSIONS = (
    *(one for one in CSV_EXTENSIONS + JSON_EXTENSIONS if one != ".txt"),
    *WORKBOOK_EXTENSIONS,
    PARQUET_EXTENSION,
    ".gz",
)

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

    def __init__(self, rows: Rows, images: Collection[str], file: zipfile.ZipFile | None, folder: str = "") -> None:
        self.rows = rows
        self._folder = folder
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

    def member_of(self, name: str) -> str:
        """Return the image that a path in the table means. Raise MemberMissing."""
        path = unicodedata.normalize("NFC", name.strip().removeprefix("./"))
        member = self._by_key.get(name_key(path))
        if member is None and self._folder:
            # A folder that was packed whole: its table names images as they lie beside it.
            path = self._folder + path
            member = self._by_key.get(name_key(path))
        if self._file is None or member is None:
            raise MemberMissing(f"the image “{name[:200]}” is not in the archive.")
        if unicodedata.normalize("NFC", member) != path:
            raise MemberMissing(
                f"the image “{name[:200]}” is not in the archive, but “{member}” is: use this name in the table."
            )
        return member

    def image(self, name: str) -> bytes:
        """Return the bytes of an image by its path in the table. Raise MemberMissing."""
        member = self.member_of(name)
        try:
            return self._file.read(member) if self._file is not None else b""
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
    columns: Columns | None = None,
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
                f"The archive must contain exactly one table (CSV, JSON or a workbook). Tables in it: {table_names}.",
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
        columns=columns,
        limits=limits,
        problems=problems,
    )
    return Archive(rows, images, file, folder=tables[0].rpartition("/")[0] + "/" if "/" in tables[0] else "")


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
    infos = [
        info
        for info in file.infolist()
        if not info.filename.endswith("/") and not LEFT_BY_SYSTEMS.search(info.filename)
    ]
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
    if PurePosixPath(name).suffix.lower() in IMAGE_EXTENSIONS and info.file_size > MAX_BYTES:
        return f"has {info.file_size:,} bytes; at most {MAX_BYTES:,} are allowed for an image"
    return ""


def _printable_name(name: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in name[:200])
