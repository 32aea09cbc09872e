"""The lines of files and archives: what cannot be read, and where."""

import io
import sys
import zipfile
from contextlib import ExitStack
from unittest import mock

from studies.imports.formats import dataset_folder, inspect_log
from studies.imports.formats.published import WmtXml
from studies.stimuli.columns import Columns
from studies.stimuli.images import ZipLimits, read_zip
from studies.stimuli.lines import UnreadableFile
from studies.stimuli.rows import TableLimits, TableProblems, read_rows
from tests.messages.importers.scenarios import bad, file, image_file
from tests.messages.lines import At, Shown, of_file
from tests.studies.imports import datasets, judged
from tests.studies.imports.files import HEAD, zipped
from tests.studies.imports.tools import eval_archive
from tests.studies.imports.tools import lines as tool_lines
from tests.studies.stimuli.workbooks import workbook


def limited(data, name="t.csv", **limits):
    """A file beyond a limit, which is set low for it."""

    def scenario():
        rows = read_rows(name, data.encode() if isinstance(data, str) else data, limits=TableLimits(**limits))
        list(rows)
        return of_file(rows.problems)

    return scenario


def archive(data, image="", **limits):
    """A zip that is read, and the image that is taken of it."""

    def scenario():
        with read_zip("t.zip", data() if callable(data) else data, zip_limits=ZipLimits(**limits)) as read:
            list(read.rows)
            shown = of_file(read.problems)
            if image:
                try:
                    read.image(image)
                except Exception as error:
                    shown += of_file([error])
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


def log(data, most):
    """An archive of Inspect that cannot be read."""

    def scenario():
        try:
            inspect_log.objects_of_archive(io.BytesIO(data), most)
        except UnreadableFile as error:
            return [Shown(error.text)]
        return []

    return scenario


def xml(data, most=10**6):
    def scenario():
        try:
            WmtXml.objects(io.BytesIO(data), most)
        except UnreadableFile as refused:
            return of_file([refused])
        return []

    return scenario


def dataset(members, **limits):
    def scenario():
        problems = TableProblems()
        with ExitStack() as stack:
            try:
                dataset_folder.rows_of_archive(
                    io.BytesIO(zipped(members)), "", stack, Columns(), TableLimits(**limits), problems
                )
            except UnreadableFile as refused:
                return of_file([refused])
        return of_file(problems)

    return scenario


def broken_member() -> bytes:
    """A folder of a dataset whose table lies elsewhere than its directory says."""
    data = bytearray(zipped({"README.md": b"-", "a.csv": b"x"}))
    data[data.index(b"PK\x03\x04", 4)] = 0
    return bytes(data)


def without_pyarrow():
    def scenario():
        with mock.patch.dict(sys.modules, {"pyarrow.parquet": None}):
            return limited(PARQUET, "a.parquet")()

    return scenario


PARQUET = datasets.parquet()
IMPORTERS = {
    "is not a table": bad("other kind"),
    "_records_below: The file has only blank": file("\n \n"),
    "has one cell": file("Results of May\na,b\n1,2\n"),
    "repeats the header": file(HEAD + HEAD),
    "no column …; the columns": lambda: _requiring("b\n1\n"),
    "a quote is opened": bad("unclosed quote"),
    "a quote in a cell": file(HEAD + 'p1,P,ada,"a"b\n'),
    "a cell is too": lambda: _csv_limit(),
    "the header has … columns": limited("a,b,c\n1,2,3\n", columns=2),
    "column … has no name": bad("trailing comma"),
    "the name of column": file("prompt_key,te\0xt\np1,x\n"),
    "columns … and … have the same": bad("double header"),
    "_checked_records: the file has more than … rows": limited("a\n1\n2\n", rows=1),
    "has … cell": bad("ragged short"),
    "The file has no row": bad("header only"),
    "_cells_are_sound: has … characters": limited("a\n12345\n", cell_characters=4),
    "_cells_are_sound: contains a NUL": bad("nul byte"),
    "This is a bundle": file('{"schema": "heval.bundle/1", "study": {}}', "t.json"),
    "_json_records: the file has more than … rows": limited('{"a": 1}\n{"a": 2}\n', "t.jsonl", rows=1),
    "_json_records: The file has only blank": file("\n\n", "t.jsonl"),
    "is not an object such": bad("scalar line"),
    "The file has several lists": file('{"a": [{"b": 1}], "c": [{"d": 1}]}', "t.json"),
    "_unwrapped: has more than": limited('{"a":\n"1234567890"}\n{"a":\n"1"}', "t.json", row_characters=15),
    "check_between: The file has “…” after": file('[{"prompt_key": "p1"}]\n[]', "t.json"),
    "a comma before": file('[{"prompt_key": "p1"} {}]', "t.json"),
    "is not an object, but": file('[{"prompt_key": "p1"}, 3, {}]', "t.json"),
    "is the text": file('[{"prompt_key": "p1"}, "b"]', "t.json"),
    "characters; check for a bracket": limited('[{"a": "1234567890"', "t.json", row_characters=9),
    "the file ends inside": bad("array"),
    "json_elements: The file has “…” after": file('[{"prompt_key": "p1"}] 7', "t.json"),
    "counts … rows": file('{"prompt_key": "p1"}\n{"_end": true, "rows": 3}\n', "t.jsonl"),
    "ends the export": file('{"prompt_key": "p1"}\n{"_end": true, "rows": 1}\n{"prompt_key": "p2"}\n', "t.jsonl"),
    "is damaged, or cut": bad("gzip"),
    "is not a zip archive or workbook": file(b"PK\x03\x04 and so on"),
    "contains … files": file(zipped({"a.csv": "a", "b.csv": "b"})),
    "bytes when unpacked. Split": limited(zipped({"a.csv": "a" * 300}), bytes=250),
    "_whole: “…” has more than": limited(b"PK\x03\x04" + b"0" * 300, bytes=250),
    "is encrypted, or": file(member(flags=1)),
    "is a workbook that": file(b"\xd0\xcf\x11\xe0 and so on", "t.xls"),
    "The file is a web": file("<html>", "t.xls"),
    "has no sheet with content": file(workbook({"s": []}), "t.xlsx"),
    "has no sheet “…”": lambda: of_file(
        read_rows("t.xlsx", workbook({"s": [["a"]], "t": [["a"]]}), sheet="u").problems
    ),
    "has several sheets": file(workbook({"s": [["a"]], "t": [["a"]]}), "t.xlsx"),
    "but a part of it": file('{"eval": {}, "samples": [1]}', "t.json"),
    "has another form than": file('{"question_id": 1, "turns": ["a"]}\n{"b": 1}\n', "t.jsonl"),
    "The votes have no texts": file(
        tool_lines({"model_a": "a", "model_b": "b", "winner": "tie", "turn": 1}), "a.jsonl"
    ),
    "The file has two evaluations": file(
        judged.EVERY_EVAL + judged.EVERY_EVAL.replace(b"facts/org/m/1", b"facts/org/m/2"), "a.jsonl"
    ),
    "The file is a summary of": file(
        '{\n"schema_version": "1", "evaluation_id": "x", "evaluation_results": []}', "a.json"
    ),
    "The file holds scores": file(judged.APPRAISE, "a.csv"),
    "The XML has more than": xml(judged.WMT_XML, 20),
    "line …: the XML": xml(judged.WMT_XML[:-20]),
    "The file has no segment": xml(b"<dataset/>"),
    "document “…” has a translation": xml(judged.WMT_XML.replace(b' system="A"', b"")),
    "The XML declares": xml(judged.WMT_XML.replace(b"<dataset", b'<!DOCTYPE d [<!ENTITY a "b">]><dataset')),
    "The folder of the dataset": file(zipped({"README.md": b"-"}), "a.zip"),
    "The dataset has several": file(zipped({"README.md": b"-", "a.csv": b"x", "b.csv": b"x"}), "a.zip"),
    "The dataset has more": dataset({"README.md": b"-", "a.csv": b"x" * 300}, bytes=250),
    "is damaged in the archive. Pack": file(broken_member(), "a.zip"),
    "is a Parquet": without_pyarrow(),
    "Split the Parquet file": limited(datasets.parquet(), "a.parquet", bytes=250),
    "is damaged or cut off, or no Parquet": file(datasets.parquet()[:-9], "a.parquet"),
    "column “…” has bytes": file(datasets.parquet([{"question": "Q?", "picture": b"x"}]), "a.parquet"),
    "The log has more than": log(eval_archive(), 20),
    "The archive is no log": log(zipped({"a.json": "{}"}), 10**6),
    "The log is damaged": log(b"no zip", 10**6),
    "has … keys": limited('{"a": 1, "b": 2, "c": 3}\n', "t.jsonl", columns=2),
    "has a key": file('{" ": 1}\n', "t.jsonl"),
    "has the keys": file('{"a": 1, "A": 2}\n', "t.jsonl"),
    "studies/stimuli:_with_required: is missing.": At("“a”", lambda: _requiring('{"b": 1}\n', "t.jsonl")),
    "_values_are_sound: has … characters": limited('{"a": "12345"}\n', "t.jsonl", cell_characters=4),
    "a row has more than … characters": limited('a\n"' + 9 * "1234567890\n", row_characters=20),
    "the file has more than … bytes": limited("a\n123\n", bytes=3),
    "line … has more than … characters": limited("a\n" + "1" * 30, row_characters=20),
    "_decoder: The file is empty": bad("empty file"),
    "The file ….": file(b"%PDF-1.7 and so on"),
    "The file is UTF-32": file("a".encode("utf-32")),
    "The file looks like UTF-16": bad("utf-16-le without mark"),
    "is not UTF-8": lambda: _json(b'"\xff"'),
    "loads: is empty": lambda: _json(b" "),
    "is not JSON": bad("trailing json comma"),
    "is nested more than … levels": bad("deep"),
    "has the key “…” more than once": bad("duplicate keys"),
    "contains …, which is too": bad("infinite"),
    "contains an integer": bad("long integer"),
    "contains …, which is not a number": bad("nan"),
    "the image “…” is not in the archive.": archive(image_file, "b.png"),
    "the image “…” is not in the archive, but “…” is: use": archive(image_file, "img/A.png"),
    "the image “…” is damaged": archive(lambda: damaged(b"IHDR", "a.png", "....IHDR...."), "a.png"),
    "The archive must contain": archive(lambda: zipped({"a.png": b"x"})),
    "is damaged.": archive(lambda: member().replace(b"PK\x03\x04", b"PK\x03\x09")),
    "read: “…” is damaged in the archive": archive(damaged),
    "_opened: “…” is not a zip": archive(broken_directory),
    "_check_directory: “…” has … bytes": archive(b"PK\x03\x04 and so on, ab.", bytes=18),
    "_check_directory: “…” is not a zip": bad("not a zip"),
    "uses the 64-bit": archive(zip64),
    "_check_directory: “…” has … members": archive(lambda: zipped({"t.csv": "a", "b.png": "b"}), members=1),
    "The archive has … members": lambda: _many_members(),
    "The archive has … bytes": archive(lambda: zipped({"t.csv": "a" * 300}), bytes=200),
    "in the archive has a name": archive(lambda: member("a\x01.csv")),
    "in the archive has a path": archive(lambda: member("../t.csv")),
    "in the archive is a link": archive(lambda: member(kind=0o020644)),
    "in the archive is a symbolic": archive(lambda: member(kind=0o120644)),
    "in the archive is encrypted": archive(lambda: member(flags=1)),
    "in the archive is packed": archive(lambda: member(packing=14)),
    "in the archive grows": archive(lambda: zipped({"t.csv": "a" * 2_000_000}), ratio=2),
    "in the archive has … bytes": archive(lambda: zipped({"t.csv": "a", "b.png": b"\0" * 60_000_000}), ratio=10**9),
    "in the archive has the same": archive(lambda: zipped({"t.csv": "a", "A.png": "b", "a.png": "c"})),
    "in the archive is neither": archive(lambda: zipped({"t.csv": "a", "b.exe": "b"})),
}


def _requiring(text, name="t.csv"):
    rows = read_rows(name, text.encode(), columns=Columns(["a"]))
    list(rows)
    return of_file(rows.problems)


def _csv_limit():
    """The csv module's own limit, which is that of the process."""
    from studies.stimuli.rows import _csv_error

    return [Shown(f"{_csv_error('field larger than field limit (131072)')} (the row begins in line 2).")]


def _json(data):
    from studies.stimuli import texts

    try:
        texts.loads(data)
    except texts.BadJson as error:
        return of_file([error])
    return []


def _many_members():
    from studies.stimuli.images import _members
    from studies.stimuli.rows import TableProblems

    problems = TableProblems()
    with zipfile.ZipFile(io.BytesIO(zipped({"t.csv": "a", "b.png": "b"}))) as file:
        _members(file, ZipLimits(members=1), problems)
    return of_file(problems)
