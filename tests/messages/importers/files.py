"""The lines of files and archives: what cannot be read, and where."""

import io
import zipfile

from studies.stimuli.images import ZipLimits, read_zip
from studies.stimuli.rows import TableLimits, read_rows
from tests.messages.importers.scenarios import FILES, bad, file, image_file
from tests.messages.lines import FILE, Shown
from tests.studies.imports.files import HEAD, zipped


def limited(data, name="t.csv", **limits):
    """A file beyond a limit, which is set low for it."""

    def scenario():
        rows = read_rows(name, data.encode() if isinstance(data, str) else data, limits=TableLimits(**limits))
        list(rows)
        return [Shown(str(problem)) for problem in rows.problems]

    return scenario


def archive(data, image="", **limits):
    """A zip that is read, and the image that is taken of it."""

    def scenario():
        with read_zip("t.zip", data() if callable(data) else data, zip_limits=ZipLimits(**limits)) as read:
            list(read.rows)
            shown = [Shown(str(problem)) for problem in read.problems]
            if image:
                try:
                    read.image(image)
                except Exception as error:
                    shown.append(Shown(str(error)))
            return shown

    return scenario


def member(name="t.csv", content="prompt_key\np1\n", kind=0, flags=0, packing=None):
    """A zip of one member with unusual marks, written into its directory by hand."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        info = zipfile.ZipInfo("x" * len(name.encode()))
        info.external_attr = kind << 16
        made.writestr(info, content)
    data = bytearray(out.getvalue().replace(b"x" * len(name.encode()), name.encode()))
    at = data.rfind(b"PK\x01\x02")
    if flags:
        data[at + 8] |= flags
    if packing is not None:
        data[at + 10] = packing
    return bytes(data)


def damaged(inside=b"prompt_key", name="t.csv", content="prompt_key\np1\n"):
    """An archive in which the bytes of a member are others than when it was packed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as made:
        if name != "t.csv":
            made.writestr("t.csv", "prompt_key\np1\n")
        made.writestr(name, content)
    data = out.getvalue()
    at = data.rindex(inside, 0, data.index(b"PK\x01\x02"))
    return data[:at] + b"?" + data[at + 1 :]


def zip64():
    data = zipped({"t.csv": "prompt_key\np1\n"})
    at = data.rindex(b"PK\x05\x06")
    return data[:at] + b"PK\x06\x07" + b"\0" * 16 + data[at:]


def broken_directory():
    data = zipped({"t.csv": "prompt_key\np1\n"})
    return data.replace(b"PK\x01\x02", b"PK\x01\x09")


LINES = {
    f"{FILES}:read_rows": [("“t.parquet” is not a table", "Use one of these file types", bad("other kind"))],
    f"{FILES}:_csv_rows": [
        ("The file has only blank lines", FILE, file("\n \n")),
        ("no column a; the columns found are: b", FILE, lambda: _requiring("b\n1\n")),
    ],
    f"{FILES}:_records": [
        ("a quote is opened and never closed (the row begins in line 2)", FILE, bad("unclosed quote")),
        ("a quote in a cell is not doubled", FILE, file(HEAD + 'p1,P,ada,"a"b\n')),
        ("a cell is too long; check for a quote that is never closed", FILE, lambda: _csv_limit()),
    ],
    f"{FILES}:_columns": [
        ("the header has 3 columns. At most 2 are allowed", FILE, limited("a,b,c\n1,2,3\n", columns=2)),
        ("column 5 has no name", "remove an extra delimiter", bad("trailing comma")),
        ("the name of column 2 contains a NUL character", FILE, file("prompt_key,te\0xt\np1,x\n")),
        ("columns 2 and 3 have the same name", "Rename one of them", bad("double header")),
    ],
    f"{FILES}:_checked_records": [
        ("the file has more than 1 rows", FILE, limited("a\n1\n2\n", rows=1)),
        ("has 3 cells, the header has 4", FILE, bad("ragged short")),
        ("The file has no row below the header", FILE, bad("header only")),
    ],
    f"{FILES}:_cells_are_sound": [
        ("has 5 characters. At most 4 are allowed", FILE, limited("a\n12345\n", cell_characters=4)),
        ("contains a NUL character", FILE, bad("nul byte")),
    ],
    f"{FILES}:_json_rows": [
        (
            "This is a bundle",
            "Choose “New study from a file”",
            file('{"schema": "heval.bundle/1", "study": {}}', "t.json"),
        ),
    ],
    f"{FILES}:_json_records": [
        ("the file has more than 1 rows", FILE, limited('{"a": 1}\n{"a": 2}\n', "t.jsonl", rows=1)),
        ("The file has only blank lines", FILE, file("\n\n", "t.jsonl")),
    ],
    f"{FILES}:_check_is_lines": [
        ("this is a JSON array", "write one object per line instead", bad("array")),
        ("an object has several lines", "write one object per line", file('{\n"prompt_key": 1}\n', "t.jsonl")),
    ],
    f"{FILES}:_json_values": [
        ("is not an object such as", "such as", bad("scalar line")),
        ("has 3 keys. At most 2 are allowed", FILE, limited('{"a": 1, "b": 2, "c": 3}\n', "t.jsonl", columns=2)),
    ],
    f"{FILES}:_named": [
        ("has a key without a name", FILE, file('{" ": 1}\n', "t.jsonl")),
        ("has the keys “a” and “A”, which differ only in case", FILE, file('{"a": 1, "A": 2}\n', "t.jsonl")),
    ],
    f"{FILES}:_values_are_sound": [
        ("“a”: is missing", FILE, lambda: _requiring('{"b": 1}\n', "t.jsonl")),
        ("has 5 characters. At most 4 are allowed", FILE, limited('{"a": "12345"}\n', "t.jsonl", cell_characters=4)),
    ],
    f"{FILES}:__next__": [
        (
            "a row has more than 20 characters in line 3",
            "check for a quote that is never closed",
            limited('a\n"1234567890\n1234567890\n1234567890\n', row_characters=20),
        ),
    ],
    f"{FILES}:_split": [
        ("the file has more than 3 bytes", FILE, limited("a\n123\n", bytes=3)),
        ("line 2 has more than 20 characters", FILE, limited("a\n" + "1" * 30, row_characters=20)),
    ],
    f"{FILES}:_decoder": [
        ("The file is empty", FILE, bad("empty file")),
        ("is compressed with gzip", "unpack it first", bad("gzip")),
        ("The file is UTF-32", "Save it as “CSV UTF-8”", file("a".encode("utf-32"))),
        (
            "The file looks like UTF-16 without a byte order mark",
            "Save it as “CSV UTF-8”",
            bad("utf-16-le without mark"),
        ),
    ],
    f"{FILES}:loads": [
        ("is not UTF-8 (byte 2)", FILE, lambda: _json(b'"\xff"')),
        ("is empty", FILE, lambda: _json(b" ")),
        ("is not JSON at character 21", FILE, bad("trailing json comma")),
        ("is nested more than 32 levels deep", FILE, bad("deep")),
    ],
    f"{FILES}:unique": [("has the key “prompt_key” more than once", FILE, bad("duplicate keys"))],
    f"{FILES}:finite": [("contains 1e400, which is too large for a number", FILE, bad("infinite"))],
    f"{FILES}:short": [("contains an integer of 5,000 digits", "write it as a text", bad("long integer"))],
    f"{FILES}:constant": [("contains NaN, which is not a number", FILE, bad("nan"))],
    f"{FILES}:image": [
        ("the image “b.png” is not in the archive", FILE, archive(image_file, "b.png")),
        (
            "the image “img/A.png” is not in the archive, but “img/a.png” is",
            "use this name in the table",
            archive(image_file, "img/A.png"),
        ),
        (
            "the image “a.png” is damaged in the archive",
            FILE,
            archive(lambda: damaged(b"IHDR", "a.png", "....IHDR...."), "a.png"),
        ),
    ],
    f"{FILES}:read_zip": [
        (
            "The archive must contain exactly one table (CSV or JSON lines). Tables in it: none",
            "must contain exactly one table",
            archive(lambda: zipped({"a.png": b"x"})),
        ),
        ("“t.zip” is damaged", FILE, archive(lambda: member().replace(b"PK\x03\x04", b"PK\x03\x09"))),
    ],
    f"{FILES}:read": [("“t.csv” is damaged in the archive", FILE, archive(damaged))],
    f"{FILES}:_opened": [("“t.zip” is not a zip archive, or is cut off", FILE, archive(broken_directory))],
    f"{FILES}:_check_directory": [
        ("“t.zip” has 19 bytes. At most 18 are allowed", FILE, archive(b"PK\x03\x04 and so on, ab.", bytes=18)),
        ("“t.zip” is not a zip archive, or is cut off", FILE, bad("not a zip")),
        ("“t.zip” uses the 64-bit zip format", FILE, archive(zip64)),
        (
            "“t.zip” has 2 members. At most 1 are allowed",
            FILE,
            archive(lambda: zipped({"t.csv": "a", "b.png": "b"}), members=1),
        ),
    ],
    f"{FILES}:_members": [
        ("The archive has 2 members. At most 1 are allowed", FILE, lambda: _many_members()),
        (
            "The archive has 300 bytes when unpacked. At most 200 are allowed",
            FILE,
            archive(lambda: zipped({"t.csv": "a" * 300}), bytes=200),
        ),
        ("has a name with invisible characters", FILE, archive(lambda: member("a\x01.csv"))),
        (
            "has a path that leads out of the archive",
            "use names such as images/p01.png",
            archive(lambda: member("../t.csv")),
        ),
        ("is a link or a device, not a file", FILE, archive(lambda: member(kind=0o020644))),
        ("is a symbolic link, not a file", FILE, archive(lambda: member(kind=0o120644))),
        ("is encrypted", FILE, archive(lambda: member(flags=1))),
        ("is packed in an uncommon way", "use ordinary (deflate) compression", archive(lambda: member(packing=14))),
        ("grows more than 2-fold when unpacked", FILE, archive(lambda: zipped({"t.csv": "a" * 2_000_000}), ratio=2)),
        (
            "are allowed for an image",
            FILE,
            archive(lambda: zipped({"t.csv": "a", "b.png": b"\0" * 60_000_000}), ratio=10**9),
        ),
        (
            "has the same name as “A.png”, except for case or composition",
            FILE,
            archive(lambda: zipped({"t.csv": "a", "A.png": "b", "a.png": "c"})),
        ),
        (
            "is neither a table nor a PNG, JPEG, WebP or GIF",
            FILE,
            archive(lambda: zipped({"t.csv": "a", "b.exe": "b"})),
        ),
    ],
}


def _requiring(text, name="t.csv"):
    rows = read_rows(name, text.encode(), required_columns=("a",))
    list(rows)
    return [Shown(str(problem)) for problem in rows.problems]


def _csv_limit():
    """The csv module's own limit, which is that of the process."""
    from studies.stimuli.rows import _csv_error

    return [Shown(f"{_csv_error('field larger than field limit (131072)')} (the row begins in line 2).")]


def _json(data):
    from studies.stimuli import texts

    try:
        texts.loads(data)
    except texts.BadJson as error:
        return [Shown(str(error))]
    return []


def _many_members():
    from studies.stimuli.images import _members
    from studies.stimuli.rows import TableProblems

    problems = TableProblems()
    with zipfile.ZipFile(io.BytesIO(zipped({"t.csv": "a", "b.png": "b"}))) as file:
        _members(file, ZipLimits(members=1), problems)
    return [Shown(str(problem)) for problem in problems]
