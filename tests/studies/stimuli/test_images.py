import hashlib
import os
import stat
import time
from io import BytesIO

import pytest
from PIL import Image, ImageCms, PngImagePlugin

from studies.stimuli import images
from studies.stimuli.images import MAX_BYTES, EncodedImage, ImageRefused, encode_image, image_path, store_image
from tests import ROOT
from tests.studies.stimuli.png import png_with_size

CANARY = b"CANARYqkzxwvjtyhmnbrpl"
IMAGES = ROOT.parent / "shared" / "data" / "dalle_images"


def picture(mode="RGB", size=(40, 30), colour=None):
    image = Image.new(mode, size, colour if colour is not None else 0)
    if mode in {"RGB", "RGBA"} and colour is None:
        image.putdata(
            [(x * 6 % 256, y * 8 % 256, 90, 255)[: len(mode)] for y in range(size[1]) for x in range(size[0])]
        )
    return image


def saved(image, kind, **options):
    stream = BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def opened(encoded):
    return Image.open(BytesIO(encoded.data))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_every_accepted_kind_becomes_one_format(kind):
    encoded = encode_image(saved(picture(), kind))
    assert (encoded.width, encoded.height) == (40, 30)
    assert encoded.name == hashlib.sha256(encoded.data).hexdigest() + ".webp"
    assert encoded.notes == ()
    with opened(encoded) as image:
        assert (image.format, image.mode, image.size) == ("WEBP", "RGB", (40, 30))


def test_equal_input_gives_equal_bytes():
    data = saved(picture(), "PNG")
    assert encode_image(data) == encode_image(data)
    assert encode_image(data).name != encode_image(saved(picture(size=(41, 30)), "PNG")).name


def test_colours_survive_well():
    with opened(encode_image(saved(Image.new("RGB", (64, 64), (200, 30, 60)), "PNG"))) as image:
        assert all(abs(a - b) <= 3 for a, b in zip(image.getpixel((32, 32)), (200, 30, 60), strict=True))


@pytest.mark.parametrize(
    ("mode", "colour", "kind", "expected"),
    [
        ("CMYK", (0, 255, 255, 0), "JPEG", (255, 0, 0)),
        ("L", 128, "PNG", (128, 128, 128)),
        ("1", 1, "PNG", (255, 255, 255)),
        ("I;16", 0x8080, "PNG", (128, 128, 128)),
        ("I;16", 0xFFFF, "PNG", (255, 255, 255)),
        ("LA", (0, 255), "PNG", (0, 0, 0)),
        ("RGBA", (0, 0, 0, 0), "PNG", (255, 255, 255)),
        ("RGBA", (0, 0, 0, 128), "WEBP", (127, 127, 127)),
    ],
)
def test_other_colour_modes_are_converted(mode, colour, kind, expected):
    with opened(encode_image(saved(Image.new(mode, (32, 32), colour), kind))) as image:
        assert all(abs(a - b) <= 4 for a, b in zip(image.getpixel((16, 16)), expected, strict=True))


def test_a_palette_and_its_transparent_colour_are_converted():
    image = Image.new("P", (32, 32), 1)
    image.putpalette([255, 0, 0, 0, 0, 255] + [0] * 750)
    with opened(encode_image(saved(image, "PNG"))) as plain:
        assert plain.getpixel((9, 9))[2] > 240
    seen_through = encode_image(saved(image, "PNG", transparency=1))
    assert seen_through.notes == ("its transparent parts are white",)
    with opened(seen_through) as white:
        assert min(white.getpixel((9, 9))) > 250


def test_a_picture_is_turned_as_its_camera_says_and_forgets_it():
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.new("RGB", (40, 20), "white")
    image.paste((255, 0, 0), (0, 0, 20, 20))
    encoded = encode_image(saved(image, "JPEG", exif=exif, quality=95))
    assert (encoded.width, encoded.height) == (20, 40)
    assert encoded.notes == ("turned as its camera says",)
    with opened(encoded) as turned:
        assert turned.getexif() == {}
        top, bottom = turned.getpixel((10, 5)), turned.getpixel((10, 35))
        assert top[0] > 200 and top[1] < 60 and min(bottom) > 200


SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
RED_AND_BLUE_EXCHANGED = SRGB.replace(b"rXYZ", b"????").replace(b"bXYZ", b"rXYZ").replace(b"????", b"bXYZ")
NOT_OF_RGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (SRGB, (200, 30, 30)),
        (RED_AND_BLUE_EXCHANGED, (30, 30, 200)),
        (NOT_OF_RGB, (200, 30, 30)),
        (b"not a profile", (200, 30, 30)),
    ],
    ids=["sRGB", "another", "of another kind", "broken"],
)
def test_a_colour_profile_is_carried_into_the_pixels_and_dropped(profile, expected):
    image = Image.new("RGB", (32, 32), (200, 30, 30))
    with opened(encode_image(saved(image, "PNG", icc_profile=profile))) as shown:
        assert all(abs(a - b) < 6 for a, b in zip(shown.getpixel((9, 9)), expected, strict=True))
        assert "icc_profile" not in shown.info


def with_metadata():
    text = PngImagePlugin.PngInfo()
    text.add_text("Software", CANARY.decode())
    text.add_itxt("XML:com.adobe.xmp", CANARY.decode())
    exif = Image.Exif()
    exif[0x0131] = CANARY.decode()
    yield "png", saved(picture(), "PNG", pnginfo=text, exif=exif)
    yield "jpeg", saved(picture(), "JPEG", exif=exif, comment=CANARY)
    yield "webp", saved(picture(), "WEBP", exif=exif, xmp=CANARY)
    yield "gif", saved(picture(), "GIF", comment=CANARY)
    yield "png and more after its end", saved(picture(), "PNG") + b"<script>" + CANARY
    yield "gif and html", saved(picture(), "GIF", comment=b"*/=1;/*<html><script>" + CANARY)
    yield "jpeg and zip", saved(picture(), "JPEG") + b"PK\x03\x04" + CANARY


@pytest.mark.parametrize(
    ("kind", "data"), list(with_metadata()), ids=lambda each: each if isinstance(each, str) else ""
)
def test_nothing_but_pixels_survives(kind, data):
    assert CANARY in data
    encoded = encode_image(data)
    assert CANARY not in encoded.data
    assert b"script" not in encoded.data and b"EXIF" not in encoded.data and b"XMP" not in encoded.data


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_represents_a_film(kind):
    first, second = Image.new("RGB", (32, 32), "red"), Image.new("RGB", (32, 32), "blue")
    encoded = encode_image(saved(first, kind, save_all=True, append_images=[second], duration=100))
    assert encoded.notes == ("only the first of its frames is shown",)
    with opened(encoded) as image:
        assert getattr(image, "n_frames", 1) == 1
        assert image.getpixel((9, 9))[0] > 240


SVG = b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty (0 bytes)"),
        (SVG, "SVG"),
        (b"\xef\xbb\xbf  <svg onload=alert(1)>", "SVG"),
        (b"<!DOCTYPE html><script>alert(1)</script>", "web page or XML"),
        (b"GIF8", "not an image of a known kind"),
        (b"GIF89a/*<script>alert(1)</script>*/", "damaged or cut off"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "damaged or cut off"),
        (b"\xff\xd8\xff\xe0" + b"<html>" * 50, "damaged or cut off"),
        (b"RIFF\x24\0\0\0WEBPVP8 " + b"\0" * 30, "damaged or cut off"),
        (b"BM" + b"\0" * 60, "PNG, JPEG, WebP or GIF"),
        (b"II*\0" + b"\0" * 60, "PNG, JPEG, WebP or GIF"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "PNG, JPEG, WebP or GIF"),
        (b"%PDF-1.7", "PNG, JPEG, WebP or GIF"),
        (b"PK\x03\x04" + b"\0" * 60, "PNG, JPEG, WebP or GIF"),
        (b"just text", "PNG, JPEG, WebP or GIF"),
        (png_with_size(25_000, 25_000), "pixels"),
        (png_with_size(100_000, 100_000), "pixels"),
        (png_with_size(10_000, 9_000), "10,000 x 9,000 pixels"),
        (png_with_size(20_000, 10), "16,383 a side"),
        (png_with_size(0, 0), "damaged or cut off"),
        (b"\x89PNG\r\n\x1a\n" + b"x" * MAX_BYTES, "are allowed"),
    ],
)
def test_what_is_no_sound_image_is_refused_with_a_reason_and_at_once(data, message):
    began = time.process_time()
    with pytest.raises(ImageRefused) as refused:
        encode_image(data)
    assert message in str(refused.value)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_file_cut_off_is_refused(kind, share):
    noise = Image.effect_noise((120, 90), 60).convert("RGB")
    data = saved(noise, kind)
    with pytest.raises(ImageRefused, match="damaged or cut off"):
        encode_image(data[: int(len(data) * share)])


@pytest.mark.slow
def test_the_largest_image_allowed_is_encoded_in_bounded_time():
    side = int(images.MAX_PIXELS**0.5)
    data = saved(Image.new("L", (side, side), 200), "PNG")
    began = time.process_time()
    assert encode_image(data).width == side
    assert time.process_time() - began < 10


def test_an_image_is_stored_once_under_its_name(tmp_path):
    image = encode_image(saved(picture(), "PNG"))
    path = store_image(tmp_path, image)
    assert path == image_path(tmp_path, image.name) == tmp_path / image.name[:2] / image.name
    assert path.read_bytes() == image.data
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    before = path.stat().st_mtime_ns
    assert store_image(tmp_path, image) == path
    assert path.stat().st_mtime_ns == before
    assert [each.name for each in path.parent.iterdir()] == [image.name]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    image = encode_image(saved(picture(), "PNG"))

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(OSError, match="No space"):
        store_image(tmp_path, image)
    assert list((tmp_path / image.name[:2]).iterdir()) == []


GOOD = "a" * 64


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../../etc/passwd",
        "/etc/passwd",
        f"../{GOOD}.webp",
        f"{GOOD}.png",
        f"{GOOD}.webp\n",
        f"{GOOD}",
        f"{'A' * 64}.webp",
        f"{'a' * 63}.webp",
        f"{GOOD}.webp/..",
        "\uff41" * 64 + ".webp",
        f"{GOOD}.webp\0",
        None,
        5,
    ],
)
def test_no_other_name_leads_to_a_file(tmp_path, name):
    with pytest.raises(ImageRefused):
        image_path(tmp_path, name)
    with pytest.raises(ImageRefused):
        store_image(tmp_path, EncodedImage(b"x", 1, 1, name))


@pytest.mark.shared
def test_the_real_images_are_accepted():
    names = set()
    for path in sorted(IMAGES.iterdir())[:12]:
        encoded = encode_image(path.read_bytes())
        assert (encoded.width, encoded.height) == (256, 256)
        names.add(encoded.name)
    assert len(names) == 12
