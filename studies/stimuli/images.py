"""Images as annotators get them: decoded, encoded anew, named by their content.

Every image becomes an RGB WebP of quality 90, whatever it was: one format and one quality for all systems of all
studies, so that neither type, nor compression, nor file size class tells who made it; at 90 differences are not
visible at the sizes shown and a page of sixteen images of 1024 pixels stays a few megabytes, which lossless files do
not. Nothing but pixels survives: no metadata, no profile (colours are brought to sRGB first), no second frame, no
transparency (laid on white: a page has a light and a dark theme, a stimulus must look the same in both). Equal input
gives equal bytes under one version of libwebp.
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
MAX_SIDE = 16_383  # of the WebP format
EXTENSION = ".webp"
TEMPORARY_PREFIX = ".new-"  # how the name of a file begins that is still being written
MEDIA_TYPE = "image/webp"
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")

_QUALITY, _METHOD = 90, 4
_NAME = re.compile(r"[0-9a-f]{64}\.webp")
_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a")


class ImageRefused(ValueError):
    """An image that is not accepted; the message says why, to a person."""


@dataclass(frozen=True)
class EncodedImage:
    """An image ready to be stored and served; `notes` say what was lost on the way."""

    data: bytes
    width: int
    height: int
    name: str
    notes: tuple[str, ...] = ()


def encode_image(data: bytes) -> EncodedImage:
    """The image in the one format of this module, or ImageRefused."""
    _check_signature(data)
    # Decoders of hostile bytes raise nearly anything (OSError, SyntaxError, struct.error, IndexError ...); all of it
    # means the same.
    try:
        pixels, notes = _pixels(data)
        encoded = BytesIO()
        pixels.save(encoded, "WEBP", quality=_QUALITY, method=_METHOD)
    except ImageRefused:
        raise
    except Exception as error:
        raise ImageRefused("The image is damaged or cut off and cannot be read.") from error
    result = encoded.getvalue()
    name = hashlib.sha256(result).hexdigest() + EXTENSION
    return EncodedImage(result, pixels.width, pixels.height, name, notes)


def store_image(root: Path, image: EncodedImage) -> Path:
    """The image's path below `root`, written in one step: readers see the whole file or none; again changes nothing."""
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
    """Where the image of this name lies below `root`; ImageRefused for what `encode_image` cannot have named."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ImageRefused("This is not the name of a stored image.")
    return Path(root) / name[:2] / name


def _check_signature(data: bytes) -> None:
    if not data:
        raise ImageRefused("The image is empty (0 bytes).")
    if len(data) > MAX_BYTES:
        raise ImageRefused(f"The image has {len(data):,} bytes, {MAX_BYTES:,} are allowed.")
    if data.startswith(_MAGIC) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP"):
        return
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in start:
        raise ImageRefused("SVG is a program as much as an image and is not accepted: export it as PNG.")
    if start.startswith(b"<"):
        raise ImageRefused("This is a web page or XML, not an image.")
    raise ImageRefused("This is not an image of a known kind: PNG, JPEG, WebP and GIF are accepted.")


def _pixels(data: bytes) -> "tuple[Image, tuple[str, ...]]":
    from PIL import Image, ImageOps

    try:
        image = Image.open(BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageRefused(f"The image has more than the {MAX_PIXELS:,} pixels allowed.") from error
    with image:
        # From the header alone, before a pixel is decoded.
        if image.width * image.height > MAX_PIXELS or max(image.size) > MAX_SIDE:
            raise ImageRefused(
                f"The image has {image.width:,} x {image.height:,} pixels; "
                f"{MAX_PIXELS:,} in all and {MAX_SIDE:,} a side are allowed."
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
        # Encoders look here for metadata that nobody passed to them.
        flat.info = {}
        return flat, tuple(notes)


def _in_srgb(image: "Image") -> "Image":
    profile = image.info.get("icc_profile")
    if not profile or image.mode not in {"RGB", "RGBA", "CMYK", "L"}:
        return image
    from PIL import ImageCms

    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    try:
        given, wanted = ImageCms.ImageCmsProfile(BytesIO(profile)), ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(image, given, wanted, outputMode=mode) or image
    except (ImageCms.PyCMSError, OSError, ValueError):
        # A broken or foreign profile: browsers ignore it as well and show the numbers as they are.
        return image


def _flat(image: "Image") -> "tuple[Image, bool]":
    from PIL import Image

    if image.mode.startswith("I"):
        # 16 bits a channel: Pillow's own conversion clips at 255 instead of scaling.
        return image.convert("I").point(lambda value: value * (1 / 257) + 0.5).convert("L").convert("RGB"), False
    if image.mode not in {"RGBA", "LA", "PA", "La", "RGBa"} and "transparency" not in image.info:
        return (image if image.mode == "RGB" else image.convert("RGB")), False
    seen = image if image.mode == "RGBA" else image.convert("RGBA")
    alpha = seen.getchannel("A")
    if alpha.getextrema()[0] == 255:
        return seen.convert("RGB"), False
    white = Image.new("RGB", seen.size, "white")
    white.paste(seen, mask=alpha)
    return white, True
