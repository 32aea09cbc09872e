import io
import stat
import struct
import time
import zipfile
import zlib

import pytest

from studies.stimuli.columns import Columns
from studies.stimuli.images import MAX_BYTES, MemberMissing, ZipLimits, read_zip

TABLE = ("study.csv", "system,image\na,images/1.png\n")
PIXEL = b"\x89PNG not decoded here"


def packed(*members, compression=zipfile.ZIP_DEFLATED):
    """A zip of (name or ZipInfo, data)."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, data in members:
            file.writestr(name, data)
    return stream.getvalue()


def only_problem(data, **options):
    with read_zip("study.zip", data, **options) as archive:
        list(archive.rows)
        assert archive.problems.count == 1, list(archive.problems)
        return archive.problems.first[0].text


def linked(name):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


@pytest.mark.parametrize(
    "table",
    [
        TABLE,
        ("data/rows.jsonl", '{"system": "a", "image": "images/1.png"}\n'),
        ("t.tsv", "system\timage\na\timages/1.png"),
    ],
)
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_table_and_its_images_are_read(table, compression):
    data = packed(
        table,
        ("images/", b""),
        ("images/1.png", PIXEL),
        ("images/2.JPEG", b"two"),
        ("__MACOSX/images/._1.png", b"left by a system"),
        ("images/.DS_Store", b"left by a system"),
        compression=compression,
    )
    for source in (data, io.BytesIO(data)):
        with read_zip("study.zip", source, columns=Columns(["system", "image"])) as archive:
            rows = [dict(row.values) for row in archive.rows]
            assert rows == [{"system": "a", "image": "images/1.png"}]
            assert archive.images == {"images/1.png", "images/2.JPEG"}
            assert archive.image("images/1.png") == archive.image("./images/1.png ") == PIXEL
            assert list(archive.problems) == []


def test_names_are_compared_composed():
    with read_zip("study.zip", packed(TABLE, ("re\u0301.png", PIXEL))) as archive:
        assert archive.image("r\u00e9.png") == archive.image("re\u0301.png") == PIXEL


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("2.png", "the image “2.png” is not in the archive."),
        ("IMAGES/1.PNG", "but “images/1.png” is: use this name in the table"),
        ("../images/1.png", "is not in the archive"),
        ("/etc/passwd", "is not in the archive"),
        ("study.csv", "is not in the archive"),
        ("", "is not in the archive"),
    ],
)
def test_an_image_that_is_not_there_is_named(name, message):
    with (
        read_zip("study.zip", packed(TABLE, ("images/1.png", PIXEL))) as archive,
        pytest.raises(MemberMissing) as missing,
    ):
        archive.image(name)
    assert message in str(missing.value)


PATH = "has a path that leads out of the archive or is not simple"


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("../x.png", PATH),
        ("images/../../x.png", PATH),
        ("/x.png", PATH),
        ("//host/x.png", PATH),
        ("C:/x.png", PATH),
        ("c:x.png", PATH),
        ("images\\x.png", PATH),
        ("..\\x.png", PATH),
        ("./x.png", PATH),
        ("images//x.png", PATH),
        ("x\u202egnp.png", "invisible characters"),
        ("x\n.png", "invisible characters"),
        ("x" * 600 + ".png", "too long"),
        ("STUDY.CSV", "has the same name as “study.csv”, except for case"),
        ("x.svg", "is neither a table nor a PNG, JPEG, WebP or GIF"),
        ("x.html", "is neither a table nor"),
        ("inner.zip", "is neither a table nor"),
        ("x.png.exe", "is neither a table nor"),
        ("README", "is neither a table nor"),
        ("other.jsonl", "exactly one table (CSV, JSON or a workbook). Tables in it: study.csv, other.jsonl"),
        (linked("x.png"), "is a symbolic link, not a file"),
        (linked("study2.csv"), "is a symbolic link, not a file"),
    ],
)
def test_members_that_have_no_place_are_refused_and_nothing_is_read(member, message):
    data = packed(TABLE, (member, PIXEL))
    assert message in only_problem(data)
    with read_zip("study.zip", data) as archive:
        assert list(archive.rows) == []
        with pytest.raises(MemberMissing):
            archive.image("x.png")


def test_windows_device_names_are_only_names():
    with read_zip("study.zip", packed(TABLE, ("CON.png", PIXEL))) as archive:
        assert archive.image("CON.png") == PIXEL


@pytest.mark.parametrize("pair", [("a.png", "A.png"), ("r\u00e9.png", "re\u0301.png"), ("a.png", "a.png")])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_collide_elsewhere_are_refused(pair):
    assert "has the same name as" in only_problem(packed(TABLE, *((name, PIXEL) for name in pair)))


def test_a_name_cut_short_by_nul_is_refused():
    data = packed(TABLE, ("x.png_y.csv", PIXEL)).replace(b"x.png_y.csv", b"x.png\0y.csv")
    assert "invisible characters" in only_problem(data)


def test_the_table_is_needed_once():
    assert "Tables in it: none" in only_problem(packed(("1.png", PIXEL)))
    assert "Tables in it: none" in only_problem(packed())


def test_problems_of_the_table_are_those_of_the_archive():
    assert only_problem(packed(("t.csv", "a,b\n1\n"))) == "has 1 cell, the header has 2."
    assert "no column text" in only_problem(packed(TABLE), columns=Columns(["text"]))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (ZipLimits(members=3), "has 5 members. At most 3 are allowed"),
        (ZipLimits(bytes=100), "bytes. At most 100 are allowed"),
        (ZipLimits(bytes=3000), "has 4,0"),
    ],
)
def test_every_limit_names_itself(limits, message):
    data = packed(TABLE, *((f"{n}.png", b"x" * 1000) for n in range(4)))
    assert message in only_problem(data, zip_limits=limits)


def test_what_grows_beyond_measure_is_refused_before_it_is_unpacked():
    began = time.process_time()
    assert "grows more than 100-fold" in only_problem(packed(TABLE, ("x.png", b"\0" * 5_000_000)))
    assert "grows more than 100-fold" in only_problem(packed(("t.csv", "a\n" + "x" * 5_000_000)))
    assert time.process_time() - began < 1


def test_an_image_too_large_is_refused_by_its_declared_size():
    data = packed(TABLE, ("x.png", b"\0" * (MAX_BYTES + 1)), compression=zipfile.ZIP_STORED)
    assert "are allowed for an image" in only_problem(data)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_uncommon_compression_is_refused(compression):
    problems = read_zip("study.zip", packed(TABLE, compression=compression)).problems
    assert "use ordinary (deflate) compression" in problems.first[0].text


def test_an_encrypted_member_is_refused():
    data = bytearray(packed(TABLE, ("x.png", PIXEL)))
    at = data.rfind(b"PK\x01\x02")
    data[at + 8] |= 1
    assert "is encrypted" in only_problem(bytes(data))


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04", b"just text" * 9, packed(TABLE)[:-30], packed(TABLE)[:-1], b"PK\x05\x06" + b"\0" * 4]
)
def test_what_is_no_archive_is_refused(data):
    assert "is not a zip archive, or is cut off" in only_problem(data)


def test_a_directory_of_many_members_is_refused_before_it_is_read():
    data = bytearray(packed(TABLE))
    at = data.rfind(b"PK\x05\x06")
    struct.pack_into("<HH", data, at + 8, 60_000, 60_000)
    assert "has 60,000 members. At most 2,000 are allowed" in only_problem(bytes(data))
    locator = b"PK\x06\x07" + b"\0" * 16
    plain = packed(TABLE)
    at = plain.rfind(b"PK\x05\x06")
    assert "64-bit zip format" in only_problem(plain[:at] + locator + plain[at:])


def test_a_damaged_image_is_named_and_the_rest_is_read():
    data = bytearray(packed(TABLE, ("1.png", PIXEL), ("2.png", b"sound"), compression=zipfile.ZIP_STORED))
    at = data.find(PIXEL)
    data[at + 5] ^= 0xFF
    with read_zip("study.zip", bytes(data)) as archive:
        assert len(list(archive.rows)) == 1
        assert archive.image("2.png") == b"sound"
        with pytest.raises(MemberMissing, match="1.png” is damaged"):
            archive.image("1.png")


def test_a_damaged_table_is_a_problem_of_the_archive():
    text = "a,b\n" + "1,2\n" * 10
    data = bytearray(packed(("t.csv", text), compression=zipfile.ZIP_STORED))
    data[data.find(text.encode()) + 6] ^= 1
    assert "“t.csv” is damaged in the archive" in only_problem(bytes(data))


def test_a_member_larger_than_it_says_gives_no_more_than_it_says():
    data = bytearray(packed(TABLE, ("1.png", b"x" * 400)))
    at = data.rfind(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 10)
    with read_zip("study.zip", bytes(data)) as archive, pytest.raises(MemberMissing, match="damaged"):
        archive.image("1.png")


@pytest.mark.parametrize("seed", range(200))
def test_no_damage_raises_anything_else(seed):
    data = bytearray(packed(TABLE, ("images/1.png", PIXEL), ("images/2.png", b"x" * 300)))
    for step in range(3):
        place = zlib.crc32(f"{seed}/{step}".encode())
        data[place % len(data)] = place >> 24
    with read_zip("study.zip", bytes(data)) as archive:
        list(archive.rows)
        for name in archive.images:
            try:
                archive.image(name)
            except MemberMissing as missing:
                assert name[:20] in str(missing)


@pytest.mark.parametrize("folder", ["study/", "a/b/"])
def test_a_folder_that_was_packed_whole_is_read_as_the_folder(folder):
    table = (f"{folder}study.csv", "system,image\na,images/1.png\nb,./2.png\n")
    data = packed(table, (f"{folder}images/1.png", PIXEL), (f"{folder}2.png", b"two"), ("2.png", b"elsewhere"))
    with read_zip("study.zip", data) as archive:
        assert [row.values["system"] for row in archive.rows] == ["a", "b"] and not archive.problems
        assert archive.image("images/1.png") == PIXEL
        # What lies beside the table is meant, unless the path leads there from the top.
        assert archive.image("2.png") == b"elsewhere"
        assert archive.image(f"{folder}2.png") == b"two"
        with pytest.raises(MemberMissing, match="“3.png” is not in the archive"):
            archive.image("3.png")
