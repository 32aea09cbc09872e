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
import tempfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

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
