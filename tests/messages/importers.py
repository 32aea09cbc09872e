"""The lines of the importers: what is wrong with a file, and what is worth knowing of one.

Beside each problem the page names its row and column, and says once for all of them to correct the file and to upload it again; the test
of the page is beside this list.
"""

import io
import tempfile
import zipfile
from pathlib import Path

from django.test import override_settings

from annotators.imports import Options as AnswerOptions
from annotators.imports import import_answers
from annotators.models import Annotator, Assignment, Response
from studies.imports.preparation import Preparation
from studies.imports.tables import Options, import_file, import_job, uploads, writing
from studies.models import Arm, Job, Output, Study, System
from studies.services import lifecycle
from studies.stimuli.archives import ZipLimits, read_zip
from studies.stimuli.declared import SettingsRefused
from studies.stimuli.rows import Limits, read_rows
from tests import builders
from tests.studies.imports.files import BAD_FILES, HEAD, lines, long, table, wide, zipped

from .lines import FILE, NOTHING, Shown

BAD = {name: (data, file) for name, data, file, _, _ in BAD_FILES}
REFUSALS = (lifecycle.NotNow, SettingsRefused)
ROWS, COLUMNS = "studies/stimuli/rows", "studies/imports/tables/columns"
BATCHES, PLAN = "studies/imports/tables/batches", "studies/imports/tables/plan"
ANSWERS = "annotators/imports"


def small() -> Study:
    study = Study.objects.create(title="A draft")
    Arm.objects.create(study=study, name="all")
    System.objects.bulk_create(System(study=study, name=name) for name in ("ada", "bo"))
    return study


def shown_by(read) -> list[Shown]:
    """What a report says, or the refusal in its place."""
    try:
        report = read()
    except REFUSALS as refused:
        return [Shown(str(refused))]
    findings = [f"{finding.text} {' '.join(finding.examples)}" for finding in report.findings]
    return [Shown(text) for text in (*map(str, report.problems), *findings)]


def bad(name):
    """One of the files that the importers' own tests hold to be bad."""
    return file(*BAD[name])


def file(data, name="t.csv", *before, make=small, is_written=False, **options):
    """A scenario: a file read into a draft, after those in ``before`` were written into it."""

    def scenario():
        study = make()
        for change in before:
            change(study)
        with tempfile.TemporaryDirectory() as folder, override_settings(MEDIA_ROOT=Path(folder) / "media"):
            return shown_by(lambda: _imported(study, folder, data, name, is_dry_run=not is_written, **options))

    return scenario


def _imported(study, folder, data, name, is_dry_run=False, agreed=None, **options):
    path = Path(folder) / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return import_file(study, path, options=Options(**options), is_dry_run=is_dry_run, agreed=agreed, by=None)


def brings(data, name="t.csv", **options):
    """A file that is in the study already."""

    def change(study):
        with tempfile.TemporaryDirectory() as folder:
            report = _imported(study, folder, data, name, **options)
            assert report.is_written, list(map(str, report.problems))

    return change


def batches(rows, *before, **options):
    return file(lines(rows), "t.jsonl", *before, make=with_section, makes_batches=True, **options)


def with_section() -> Study:
    study = small()
    builders.add_spa(study, m=2)
    return study


def two_sections(study):
    builders.add_rating(study, position=2, m=2)


def pairs(text, **options):
    return file(text, "t.csv", make=small, makes_pairs=True, **{"pairs_within": 1, **options})


def limited(data, name="t.csv", **limits):
    """A file beyond a limit, which is set low for it."""

    def scenario():
        rows = read_rows(name, data.encode() if isinstance(data, str) else data, limits=Limits(**limits))
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


def moved_while_read(data):
    """Somebody changes the study between the reading and the writing, or in the midst of it."""

    def scenario():
        study = small()
        whole = writing.standing_of

        def standing(study, **options):
            if not options.get("with_profiles", True):
                study.prompts.create(key="other", text="Other.")
            return whole(study, **options)

        writing.standing_of = standing
        try:
            with tempfile.TemporaryDirectory() as folder:
                return shown_by(lambda: _imported(study, folder, data, "t.csv"))
        finally:
            writing.standing_of = whole

    return scenario


def moved_while_written(data):
    def scenario():
        study = small()
        whole = writing._replay

        def replay(study, journal):
            study.prompts.create(key="p1", text="By hand.")
            whole(study, journal)

        writing._replay = replay
        try:
            with tempfile.TemporaryDirectory() as folder:
                return shown_by(lambda: _imported(study, folder, data, "t.csv"))
        finally:
            writing._replay = whole

    return scenario


def launched_meanwhile(data):
    """The study is launched between the reading and the writing."""

    def scenario():
        study = builders.spa_draft(with_surveys=False, with_rating=False)
        warnings = builders.warnings_of(study)
        whole = writing.write

        def write(plan):
            lifecycle.launch(study, None, warnings)
            whole(plan)

        from studies.imports.tables import run

        run.write = write
        try:
            with tempfile.TemporaryDirectory() as folder:
                return shown_by(lambda: _imported(study, folder, data, "t.csv"))
        finally:
            run.write = whole

    return scenario


def moved_since_looked():
    study = small()
    with tempfile.TemporaryDirectory() as folder:
        agreed = _imported(study, folder, table([long("p1", "ada", "One.")]), "t.csv", is_dry_run=True).outcome()
        study.prompts.create(key="p1", text="By hand.")
        return shown_by(lambda: _imported(study, folder, table([long("p1", "ada", "One.")]), "t.csv", agreed=agreed))


def kept(*chunks):
    def scenario():
        most, uploads.MAX_BYTES = uploads.MAX_BYTES, 10
        try:
            with tempfile.TemporaryDirectory() as folder, override_settings(UPLOADS_ROOT=folder):
                return shown_by(lambda: uploads.keep(chunks, "t.csv", study=1, user=1, options={}))
        finally:
            uploads.MAX_BYTES = most

    return scenario


def gone(by_job):
    """The bytes of an upload are not there any more."""

    def scenario():
        study = small()
        with tempfile.TemporaryDirectory() as folder, override_settings(UPLOADS_ROOT=folder):
            upload = uploads.keep([b"prompt_key\n"], "t.csv", study=study.pk, user=1, options=Options().as_json())
            upload.drop_file()
            if by_job:
                job = Job(kind="import", study=study, arguments={"upload": "0" * 32, "is_confirmed": False})
                return shown_by(lambda: import_job.run(job, lambda *told: None))
            return shown_by(lambda: import_job.look(study, upload, None))

    return scenario


def options_of(kind, **given):
    return lambda: shown_by(lambda: kind(**given))


def answer_options(read, given):
    return lambda: shown_by(lambda: read(given))


# Answers that were given elsewhere

SAID = "annotator,prompt_key,shown:A,shown:B,chosen\n"


def choice_draft() -> Study:
    study = builders.draft_study(systems=("alpha", "beta"), prompts=12)
    builders.add_choice(study, strategy="any", stopping="none")
    return study


def rating_draft() -> Study:
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4)
    builders.add_rating(study, position=1, m=1)
    return study


def spa_draft() -> Study:
    return builders.spa_draft(with_surveys=False, with_rating=False, systems=("alpha", "beta"))


def full_draft() -> Study:
    return builders.spa_draft(systems=("alpha", "beta"))


def humanlike_draft() -> Study:
    return builders.humanlike_draft(domains=("news",))


def marks_draft() -> Study:
    study = builders.draft_study(systems=("alpha", "beta"), prompts=4)
    builders.add_marks(study, position=1, m=1)
    return study


def multiple(study):
    study.sections.get(protocol="rating").questions.update(
        scale={"kind": "multiple", "options": [{"key": "dull", "label": "Dull"}, {"key": "long", "label": "Long"}]}
    )


def answers(text, *before, make=choice_draft, columns=None, name="a.csv", is_written=False, agreed=None):
    def scenario():
        study = make()
        for change in before:
            change(study)
        return _answered(study, text, columns, name, is_written, agreed)

    return scenario


def _answered(study, text, columns=None, name="a.csv", is_written=False, agreed=None):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        options = AnswerOptions(columns or {})
        study = Study.objects.get(pk=study.pk)
        return shown_by(lambda: import_answers(study, path, options=options, is_dry_run=not is_written, agreed=agreed))


def answered_before(text):
    def change(study):
        shown = _answered(study, text, is_written=True)
        assert Response.objects.filter(assignment__study=study).exists(), shown

    return change


def withdrawn(study):
    from django.utils import timezone

    study.assignments.update(withdrawn_at=timezone.now())


def second_arm(study):
    Arm.objects.create(study=study, name="second")


def moved_answers():
    study = choice_draft()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(ONE, encoding="utf-8")
        agreed = import_answers(study, path, is_dry_run=True).outcome()
    return _answered(study, ONE + "w2,p003,alpha,beta,alpha\n", is_written=True, agreed=agreed)


def with_own_answers():
    study = builders.choice_study()
    Assignment.objects.create(
        study=study, batch=study.batches.first(), annotator=Annotator.objects.create(pool="p", external_id="x"),
        design=study.designs.get(),
    )  # fmt: skip
    lifecycle.close(study, by=None)
    lifecycle.finish(study, by=None)
    return study


ONE = SAID + "w1,p002,alpha,beta,beta\n"
GOOD = table([long("p1", "ada", "One.")])
IMAGE = [{"prompt_key": "p1", "prompt_text": "P", "system": "ada", "image": "img/a.png"}]
WIDE = "prompt_key,prompt_text,output:ada\n"
RATED = "annotator,prompt_key,system,value\n"


def image_file(name="img/a.png", rows=IMAGE, **more):
    from tests.studies.stimuli.test_images import png_with_size

    return zipped({"t.csv": table(rows), name: png_with_size(8, 8), **more})


LINES = {
    f"{ROWS}:read_rows": [("“t.parquet” is not a table", "are read", bad("other kind"))],
    f"{ROWS}:_csv_rows": [
        ("The file holds nothing but blank lines", FILE, file("\n \n")),
        ("no column a; the columns found are: b", FILE, lambda: _requiring("b\n1\n")),
    ],
    f"{ROWS}:_records": [
        ("a quote is opened and never closed (the row begins in line 2)", FILE, bad("unclosed quote")),
        ("a quote within a cell is not doubled", FILE, file(HEAD + 'p1,P,ada,"a"b\n')),
        ("a cell is too long; is there a quote that is never closed", FILE, lambda: _csv_limit()),
    ],
    f"{ROWS}:_columns": [
        ("the header has 3 columns, 2 are allowed", FILE, limited("a,b,c\n1,2,3\n", columns=2)),
        ("column 5 has no name", "a delimiter too many", bad("trailing comma")),
        ("the name of column 2 holds a NUL character", FILE, file("prompt_key,te\0xt\np1,x\n")),
        ("this name stands over columns 2 and 3", FILE, bad("double header")),
    ],
    f"{ROWS}:_checked_records": [
        ("the file has more than 1 rows", FILE, limited("a\n1\n2\n", rows=1)),
        ("has 3 cells, the header has 4", FILE, bad("ragged short")),
        ("There is no row below the header", FILE, bad("header only")),
    ],
    f"{ROWS}:_cells_are_sound": [
        ("has 5 characters, 4 are allowed", FILE, limited("a\n12345\n", cell_characters=4)),
        ("holds a NUL character", FILE, bad("nul byte")),
    ],
    f"{ROWS}:_json_rows": [
        ("This file is a bundle", "Make a new draft of it", file('{"schema": "heval.bundle/1", "study": {}}', "t.json")),
    ],
    f"{ROWS}:_json_records": [
        ("the file has more than 1 rows", FILE, limited('{"a": 1}\n{"a": 2}\n', "t.jsonl", rows=1)),
        ("The file holds nothing but blank lines", FILE, file("\n\n", "t.jsonl")),
    ],
    f"{ROWS}:_check_is_lines": [
        ("this is a JSON array", "write one object a line instead", bad("array")),
        ("an object is spread over several lines", "write one object a line", file('{\n"prompt_key": 1}\n', "t.jsonl")),
    ],
    f"{ROWS}:_json_values": [
        ("is not an object such as", "such as", bad("scalar line")),
        ("has 3 keys, 2 are allowed", FILE, limited('{"a": 1, "b": 2, "c": 3}\n', "t.jsonl", columns=2)),
    ],
    f"{ROWS}:_named": [
        ("has a key without a name", FILE, file('{" ": 1}\n', "t.jsonl")),
        ("has the keys “a” and “A”, which differ only in case", FILE, file('{"a": 1, "A": 2}\n', "t.jsonl")),
    ],
    f"{ROWS}:_values_are_sound": [
        ("“a”: is missing", FILE, lambda: _requiring('{"b": 1}\n', "t.jsonl")),
        ("has 5 characters, 4 are allowed", FILE, limited('{"a": "12345"}\n', "t.jsonl", cell_characters=4)),
    ],
    "studies/stimuli/lines:__next__": [
        ("a row grows beyond 20 characters in line 3", "is there a quote that is never closed", limited('a\n"1234567890\n1234567890\n1234567890\n', row_characters=20)),
    ],
    "studies/stimuli/lines:_split": [
        ("the file has more than 3 bytes", FILE, limited("a\n123\n", bytes=3)),
        ("line 2 has more than 20 characters", FILE, limited("a\n" + "1" * 30, row_characters=20)),
    ],
    "studies/stimuli/lines:_decoder": [
        ("The file is empty", FILE, bad("empty file")),
        ("is compressed with gzip", "unpack it first", bad("gzip")),
        ("The file is UTF-32", "Save it as “CSV UTF-8”", file("a".encode("utf-32"))),
        ("The file looks like UTF-16 without a byte order mark", "Save it as “CSV UTF-8”", bad("utf-16-le without mark")),
    ],
    "studies/stimuli/strict_json:loads": [
        ("is not UTF-8 (byte 2)", FILE, lambda: _json(b'"\xff"')),
        ("is empty", FILE, lambda: _json(b" ")),
        ("is not JSON at character 21", FILE, bad("trailing json comma")),
        ("is nested more than 32 levels deep", FILE, bad("deep")),
    ],
    "studies/stimuli/strict_json:unique": [("has the key “prompt_key” more than once", FILE, bad("duplicate keys"))],
    "studies/stimuli/strict_json:finite": [("holds 1e400, which is too large for a number", FILE, bad("infinite"))],
    "studies/stimuli/strict_json:short": [("holds an integer of 5,000 digits", "write it as a text", bad("long integer"))],
    "studies/stimuli/strict_json:constant": [("holds NaN, which is no number", FILE, bad("nan"))],
    "studies/stimuli/archives:image": [
        ("the image “b.png” is not in the archive", FILE, archive(image_file, "b.png")),
        ("the image “img/A.png” is not in the archive, but “img/a.png” is", "write it so", archive(image_file, "img/A.png")),
        ("the image “a.png” is damaged within the archive", FILE, archive(lambda: damaged(b"IHDR", "a.png", "....IHDR...."), "a.png")),
    ],
    "studies/stimuli/archives:read_zip": [
        ("The archive must hold exactly one table (CSV or JSON lines); found: none", "must hold exactly one table", archive(lambda: zipped({"a.png": b"x"}))),
        ("“t.zip” is damaged", FILE, archive(lambda: member().replace(b"PK\x03\x04", b"PK\x03\x09"))),
    ],
    "studies/stimuli/archives:read": [("“t.csv” is damaged within the archive", FILE, archive(damaged))],
    "studies/stimuli/archives:_opened": [("“t.zip” is not a zip archive, or is cut off", FILE, archive(broken_directory))],
    "studies/stimuli/archives:_check_directory": [
        ("“t.zip” has 19 bytes, 18 are allowed", FILE, archive(b"PK\x03\x04 and so on, ab.", bytes=18)),
        ("“t.zip” is not a zip archive, or is cut off", FILE, bad("not a zip")),
        ("“t.zip” uses the 64-bit zip format", FILE, archive(zip64)),
        ("“t.zip” has 2 members, 1 are allowed", FILE, archive(lambda: zipped({"t.csv": "a", "b.png": "b"}), members=1)),
    ],
    "studies/stimuli/archives:_members": [
        ("The archive has 2 members, 1 are allowed", FILE, lambda: _many_members()),
        ("The archive holds 300 bytes when unpacked, 200 are allowed", FILE, archive(lambda: zipped({"t.csv": "a" * 300}), bytes=200)),
        ("has a name with invisible characters", FILE, archive(lambda: member("a\x01.csv"))),
        ("has a path that leads out of the archive", "use names such as images/p01.png", archive(lambda: member("../t.csv"))),
        ("is a link or a device, not a file", FILE, archive(lambda: member(kind=0o020644))),
        ("is a symbolic link, not a file", FILE, archive(lambda: member(kind=0o120644))),
        ("is encrypted", FILE, archive(lambda: member(flags=1))),
        ("is packed in an uncommon way", "use ordinary (deflate) compression", archive(lambda: member(packing=14))),
        ("grows more than 2-fold when unpacked", FILE, archive(lambda: zipped({"t.csv": "a" * 2_000_000}), ratio=2)),
        ("are allowed for an image", FILE, archive(lambda: zipped({"t.csv": "a", "b.png": b"\0" * 60_000_000}), ratio=10**9)),
        ("has the same name as “A.png” but for case", FILE, archive(lambda: zipped({"t.csv": "a", "A.png": "b", "a.png": "c"}))),
        ("is neither a table nor a PNG, JPEG, WebP or GIF", FILE, archive(lambda: zipped({"t.csv": "a", "b.exe": "b"}))),
    ],
    f"{COLUMNS}:layout_of": [
        ("both shapes are mixed", "either a system and a text", bad("mixed shapes")),
        ("no column text, image or is_empty beside the system", "the columns found are", bad("no text column")),
        ("no column prompt_key (or key)", "the columns found are", bad("no header")),
        ("the columns “prompt” and “prompt_text” mean the same", FILE, bad("alias twice")),
    ],
    f"{COLUMNS}:_prompt": [
        ("column “prompt_key”: must not be empty", FILE, bad("no key")),
        ("“english!” is no language tag", "such as en or pt-BR", bad("language odd")),
    ],
    f"{COLUMNS}:_attributes": [("must be an object (JSON lines)", "in CSV write columns such as", bad("attributes no object"))],
    f"{COLUMNS}:_written_outputs": [("is missing: a text or image without the system that made it", FILE, bad("no system column"))],
    f"{COLUMNS}:_wide_outputs": [
        ("must be an object of outputs by system", "such as", bad("outputs no object")),
        ("has 501 systems, 500 are allowed", FILE, file(lines([{"prompt_key": "p1", "outputs": {f"s{n}": "a" for n in range(501)}}]), "t.jsonl")),
        ("does not know txt", "it knows", bad("output of odd parts")),
    ],
    f"{COLUMNS}:_output": [
        ("names no system", FILE, bad("no system")),
        ("is given beside a text", "an output is one or the other", bad("text and image")),
        ("says that the output is empty, but there is a text", FILE, file(HEAD.replace("text\n", "text,is_empty\n") + "p1,P,ada,a,yes\n")),
        ("the output of bo is empty", "say so", bad("blank wide cell")),
    ],
    f"{COLUMNS}:_batch": [
        ("names a batch", "say that the file holds ready-made batches", bad("unwanted batches")),
        ("is missing: the file was said to hold ready-made batches", FILE, file(GOOD, makes_batches=True)),
        ("column “batch”: must not be empty", FILE, file("batch," + WIDE + " ,p1,P,a\n", makes_batches=True)),
    ],
    "studies/imports/tables/cells:number_of": [("must be a whole number from 0 to 32,767, not 'x'", "must be a whole number", bad("sample a word"))],
    f"{COLUMNS}:_flag": [("must be true or false, not 'maybe'", "must be true or false", bad("flag odd"))],
    f"{COLUMNS}:_format": [("must be one of plain, markdown, turns, not “html”", "must be one of", bad("format unknown"))],
    f"{COLUMNS}:_language": [
        ("“deutsch!” is no language tag", "such as en or pt-BR", file(HEAD.replace("text\n", "text,output_language\n") + "p1,P,ada,a,deutsch!\n")),
    ],
    "studies/imports/tables/images:_encoded": [
        ("the image “img/a.png” comes with no file", "import a zip of the table and its images", file(table(IMAGE))),
    ],
    "studies/imports/tables/options:__post_init__": [
        ("a file of single texts to be paired cannot hold ready-made batches too", "cannot hold", options_of(Options, makes_pairs=True, makes_batches=True)),
        ("pairs_within and pairs_most are whole numbers from 0", "whole numbers from 0", options_of(Options, pairs_within=-1)),
    ],
    "studies/imports/tables/pairing:paired": [
        ("pairs are made of two systems; the file has 1: ada", FILE, pairs("system,text\nada,One.\n")),
        ("no two texts of the two systems are alike", FILE, pairs("system,text\nada,One.\nbo,Two words more than that.\n")),
    ],
    "studies/imports/tables/pairing:_candidates": [
        ("names no system; pairs are made of rows with a system and a text", FILE, pairs("system,text\n,One.\n")),
        ("is empty: there is nothing to pair", FILE, pairs("system,text\nada,\n")),
    ],
    "studies/imports/tables/pairing:_attribute": [
        ("column “tense”: is missing: texts are paired by it", FILE, pairs("system,text\nada,One.\nbo,Two.\n", pairs_by=("tense",))),
    ],
    f"{PLAN}:add": [("ada stands twice in this row", FILE, batches([wide("b", "p1", ada="a") | {"output:ada": "a"}]))],
    f"{PLAN}:_prompt": [("differs from what row 2 says of the prompt p1", FILE, bad("another prompt text"))],
    f"{PLAN}:_new_prompt": [
        ("“P1” and “p1” differ only in case", FILE, bad("keys alike in case")),
        ("the prompt p1 has no text here, and none in the study", FILE, file(HEAD + "p1,,ada,a\n")),
    ],
    f"{PLAN}:_output": [
        ("ada has more than 32,767 samples of one prompt", FILE, lambda: _many_samples()),
        ("ada on p1 stands already in row 2, with the same text", "are numbered in a column sample", bad("same output twice")),
        ("ada on p1 stands already in row 2, with another text", "are numbered in a column sample", bad("two outputs unnumbered")),
    ],
    f"{PLAN}:_system": [("the system “Ada” differs from “ada” only in case", FILE, bad("systems alike"))],
    f"{PLAN}:finish": [
        ("the study has no system “cy” (in 1 row)", "Make systems that the study does not have yet", file(HEAD + "p1,P,cy,a\n")),
        ("ada on p1 stands in the study with other content", "Replace what the study holds", file(HEAD + "p1,Prompt p1,ada,New.\n", "t.csv", brings(GOOD))),
    ],
    f"{PLAN}:_add_findings": [
        ("It may tell annotators which system they read", "It may tell", lambda: _surface()),
        ("Empty outputs: annotators read that the system gave no text. ada on p1 (row 2)", NOTHING, file(HEAD + "p1,P,ada,\n", allows_empty=True)),
        ("Two systems gave the same output. ada on p1 = bo on p1 (row 3)", NOTHING, file(table([long("p1", "ada", "One."), long("p1", "bo", "One.")]))),
        ("A system gave the same output to different prompts. ada on p1 = ada on p2", NOTHING, file(table([long("p1", "ada", "One."), long("p2", "ada", "One.")]))),
        ("New prompts have no text: the file has no column for it", NOTHING, file("prompt_key,output:ada\np1,a\n")),
        ("Systems that will be made", "say of each whether it is a human author", file(HEAD + "p1,P,cy,a\n", creates_systems=True)),
        ("Images in the archive that no row names; they are left out. b.png", NOTHING, lambda: _unused_image()),
        ("Images that look other than their files", NOTHING, lambda: _noted_image()),
    ],
    f"{BATCHES}:add": [
        ("the arm second does not see section 1", FILE, batches([wide("b", "p1", ada="a", bo="b") | {"arm": "second"}], second_arm, lambda s: s.sections.get().arms.set(s.arms.filter(name="all")))),
        ("ada stands twice for p1 in batch b", "number its places in a column position", batches([
            {"batch": "b", "prompt_key": "p1", "prompt_text": "P", "system": "ada", "text": "a", "sample": n} for n in (0, 1)])),
        ("the arm all does not see bo", FILE, batches([wide("b", "p1", ada="a", bo="b")], lambda s: s.arms.get().systems.set(s.systems.filter(name="ada")))),
    ],
    f"{BATCHES}:_section": [
        ("The study has no section that shows items", "define it before its ready-made batches", file(lines([wide("b", "p1", ada="a")]), "t.jsonl", makes_batches=True)),
        ("is missing: several sections show items (1, 2)", FILE, batches([wide("b", "p1", ada="a")], two_sections)),
        ("no section 7 draws items; sections that do: 1", FILE, batches([wide("b", "p1", ada="a") | {"section": 7}])),
    ],
    f"{BATCHES}:_batch": [
        ("the study has no arm “x”; it has all", FILE, batches([wide("b", "p1", ada="a") | {"arm": "x"}])),
        ("batch b is of the arm all in row 1", FILE, batches([wide("b", "p1", ada="a") | {"arm": "all"}, wide("b", "p2", ada="a") | {"arm": "second"}], second_arm)),
        ("“B” and “b” differ only in case", FILE, batches([wide("b", "p1", ada="a"), wide("B", "p2", ada="a")])),
        ("is missing; the study has 2", FILE, batches([wide("b", "p1", ada="a")], second_arm)),
        ("is missing; the study has none", FILE, batches([wide("b", "p1", ada="a")], lambda s: s.arms.all().delete())),
    ],
    f"{BATCHES}:_place": [
        ("is given in some rows of batch b and not in others (row 1)", FILE, batches([wide("b", "p1", ada="a"), wide("b", "p2", 1, ada="a")])),
        ("place 1 of batch b holds p1 in row 1", FILE, batches([wide("b", "p1", 1, ada="a"), wide("b", "p2", 1, ada="a")])),
    ],
    f"{BATCHES}:finish": [("“B” differs from “b” of the study only in case", FILE, batches([wide("B", "p1", ada="a", bo="b")], brings(lines([wide("b", "p1", ada="a", bo="b")]), "t.jsonl", makes_batches=True)))],
    f"{BATCHES}:_check_items": [
        ("batch b holds p1 without any output", FILE, batches([{"batch": "b", "prompt_key": "p1", "prompt_text": "P", "outputs": {"ada": None}}])),
        ("batch b holds p1 with these very outputs already (row 1)", FILE, batches([wide("b", "p1", 1, ada="a", bo="b"), wide("b", "p1", 2, ada="a", bo="b")])),
    ],
    f"{BATCHES}:_add_findings": [
        ("A prompt stands more than once in one batch: its annotator meets it again. b: p1, 2 times", NOTHING, batches([wide("b", "p1", 1, ada="a", bo="b"), wide("b", "p1", 2, ada="c", bo="d")])),
        ("Items of ready-made batches lack the output of a system. b: p1 lacks bo", NOTHING, batches([wide("b", "p1", ada="a")])),
        ("Ready-made batches hold more or fewer items than their section's m. b: 1 in section 1, whose m is 2", NOTHING, batches([wide("b", "p1", ada="a", bo="b")])),
        ("Ready-made batches hold nothing for a section that shows items. b: nothing in section 2", NOTHING, batches([wide("b", "p1", ada="a", bo="b") | {"section": 1}], two_sections)),
    ],
    "studies/imports/tables/run:import_file": [
        ("1 pairs of texts were made", NOTHING, pairs("system,text\nada,One.\nbo,Two.\n")),
        ("The study's declared preparation will be applied", NOTHING, file(GOOD, "t.csv", lambda s: _prepared(s))),
        ("The declared preparation changed", NOTHING, file(table([long("p1", "ada", "  One.  ")]), "t.csv", lambda s: _prepared(s), is_written=True)),
    ],
    "studies/imports/tables/run:check_agreed": [
        ("The study was changed since the file was looked at", "Look at what the file would do now", moved_since_looked),
        ("The study was changed since the file was looked at", "Look at what the file would do now", moved_answers),
    ],
    "studies/imports/tables/run:note_reading": [
        ("Columns that are not imported. extra", NOTHING, file(HEAD.replace("text\n", "text,extra\n") + "p1,P,ada,a,b\n")),
        ("This very file was imported on", NOTHING, file(GOOD, "t.csv", brings(GOOD))),
    ],
    "studies/imports/tables/uploads:keep": [
        ("The file has more than 10 bytes", FILE, kept(b"01234567890")),
        ("The file is empty", FILE, kept(b"")),
    ],
    "studies/imports/tables/import_job:_check": [("The uploaded file is no longer here", "Upload it once more", gone(False))],
    "studies/imports/tables/import_job:run": [("The uploaded file is no longer here", "Upload it once more", gone(True))],
    "studies/imports/tables/writing:write": [
        ("Stimuli can be imported into a draft alone", "clone the study", lambda: _into_a_launched_study()),
        ("Stimuli can be imported into a draft alone", "clone the study", launched_meanwhile(table([long("new", "alpha", "One.")]))),
        ("The study was changed while the file was being read", "Look at the file once more", moved_while_read(GOOD)),
        ("The study was changed while the file was being written", "Look at the file once more", moved_while_written(GOOD)),
    ],
    f"{ANSWERS}/columns:_layout": [
        ("there is no column “worker”, which was said to be annotator", FILE, answers(ONE, columns={"annotator": "worker"})),
        ("no column annotator; the columns found are: who, prompt_key", "write its name under “Columns that have other names in the file”", answers("who,prompt_key,chosen\nw,p001,alpha\n")),
        ("no column holds an answer", "write its name under “Columns that have other names in the file”", answers("annotator,prompt_key,naturalness\nw,p001,4\n")),
        ("the columns “prompt” and “prompt_key” mean the same", FILE, answers("annotator,prompt,prompt_key,chosen\nw,p,p,alpha\n")),
    ],
    f"{ANSWERS}/columns:_said": [
        ("column “annotator”: must not be empty", FILE, answers(SAID + ",p002,alpha,beta,beta\n")),
        ("“7” is no letter as A or B", FILE, answers("annotator,prompt_key,label\nw,p002,7\n")),
        ("one system is said to stand in two places", FILE, answers(SAID + "w,p002,alpha,alpha,alpha\n")),
    ],
    f"{ANSWERS}/columns:_value": [("must be a number, not 'high'", "must be a number", answers(RATED + "w,p002,alpha,high\n", make=rating_draft))],
    f"{ANSWERS}/columns:_time": [
        ("must be a time such as 2026-11-21T10:00:00Z, not 'noon'", "such as", answers("annotator,prompt_key,chosen,time\nw,p002,alpha,noon\n")),
        ("lies in the future: '2999-01-01'", FILE, answers("annotator,prompt_key,chosen,time\nw,p002,alpha,2999-01-01\n")),
    ],
    f"{ANSWERS}/options:from_json": [("must be an object with “columns” alone", "must be an object", answer_options(AnswerOptions.from_json, {"x": 1}))],
    f"{ANSWERS}/options:from_text": [
        ("line 1: write a name of ours, =, and the file's", "annotator = worker", answer_options(AnswerOptions.from_text, "annotator: worker")),
        ("line 2: annotator is there twice", FILE, answer_options(AnswerOptions.from_text, "annotator = a\nannotator = b")),
    ],
    f"{ANSWERS}/options:checked": [
        ("'annotator' must be the name of a column of the file", "must be the name", answer_options(AnswerOptions.from_json, {"columns": {"annotator": 7}})),
        ("there is no “worker”", "there are", answer_options(AnswerOptions.from_text, "worker = annotator")),
        ("“a” is named twice", FILE, answer_options(AnswerOptions.from_text, "annotator = a\nprompt_key = a")),
    ],
    f"{ANSWERS}/run:import_answers": [
        ("never stand beside those that a study still collects", "clone it", lambda: _answered(builders.choice_study(), ONE)),
        ("The study has answers of its own", "clone it", lambda: _answered(with_own_answers(), ONE)),
        ("The study is not ready: Section 1, question better: There is no scale 'stars'", "not ready", answers(ONE, lambda s: s.sections.get().questions.update(scale={"kind": "stars"}))),
    ],
    f"{ANSWERS}/run:_count": [
        ("“w1” is stored with another answer to this", FILE, answers(SAID + "w1,p002,alpha,beta,alpha\n", answered_before(ONE))),
        ("1 answers were erased or withdrawn since they were imported", NOTHING, answers(ONE, answered_before(ONE), withdrawn)),
    ],
    f"{ANSWERS}/run:_tell": [
        ("The study is a draft. Writing these answers freezes its design", "Clone it to collect", answers(ONE)),
        ("1 times do not say how far from UTC they are; they are read as UTC", NOTHING, answers("annotator,prompt_key,chosen,time\nw,p002,alpha,2021-05-17T15:52:44\n")),
        ("The file has no times", NOTHING, answers(ONE)),
        ("The file does not say what stood where", NOTHING, answers("annotator,prompt_key,chosen\nw,p002,alpha\n")),
    ],
    f"{ANSWERS}/sittings:_arm": [
        ("must say in which arm “w1” was; the arms are all, second", "must say in which arm", answers(ONE, second_arm)),
        ("puts “w1” into several arms: all, second", FILE, answers("annotator,arm,prompt_key,chosen\nw1,all,p001,alpha\nw1,second,p002,alpha\n", second_arm)),
        ("the study has no arm “x”; the arms are all", FILE, answers("annotator,arm,prompt_key,chosen\nw1,x,p001,alpha\n")),
    ],
    f"{ANSWERS}/sittings:_about": [
        ("“gpt” is not among the outputs shown", FILE, answers("annotator,question,prompt_key,shown:A,system,value\nw,source,p002,human,gpt,3\n", make=lambda: _one_shown())),
        ("must say of which prompt: a system is named", FILE, answers("annotator,system,value\nw,alpha,3\n", make=rating_draft)),
    ],
    f"{ANSWERS}/sittings:_asked": [
        ("the study has no section 9", FILE, answers("annotator,section,prompt_key,chosen\nw,9,p002,alpha\n")),
        ("the study does not ask “worse”; its questions are better", FILE, answers("annotator,question,prompt_key,chosen\nw,worse,p002,alpha\n")),
        ("could be several: fluent in section 1", "Say which in the columns question and section", answers("annotator,prompt_key,system,value\nw,p002,alpha,3\n", make=full_draft)),
    ],
    f"{ANSWERS}/sittings:_output": [
        ("the study has no system “omega”; it has alpha, beta", FILE, answers(SAID + "w,p002,alpha,omega,alpha\n")),
        ("“alpha” has no output for “p002”", FILE, answers(ONE, lambda s: Output.objects.filter(system__study=s, system__name="alpha", prompt__key="p002").delete())),
        ("“alpha” has no sample 3 for “p002”", FILE, answers("annotator,prompt_key,shown:A,shown:B,chosen,sample\nw1,p002,alpha,beta,beta,3\n")),
    ],
    f"{ANSWERS}/sittings:_item": [
        ("the study has no prompt “x”", FILE, answers(SAID + "w,x,alpha,beta,beta\n")),
        ("section 1 shows no texts: leave it empty", "leave it empty", answers("annotator,question,prompt_key,choice\nw,fluent,p002,yes\n", make=full_draft)),
        ("section 1 shows 2 outputs at a time, here are 1", "must say which outputs were shown", answers("annotator,prompt_key,shown:A,chosen\nw,p002,alpha,alpha\n")),
        ("stands otherwise than in row 2, of the same item", FILE, answers("annotator,prompt_key,shown:A,shown:B,system,value\nw,p002,alpha,beta,alpha,3\nw,p002,beta,alpha,beta,3\n", make=rating_draft)),
    ],
    f"{ANSWERS}/sittings:_unnamed": [
        ("must say whose text was shown", FILE, answers("annotator,question,prompt_key,value\nw,source,news-human-001,3\n", make=humanlike_draft)),
    ],
    f"{ANSWERS}/sittings:_lay": [
        ("answers again what row 2 answered", FILE, answers(ONE + "w1,p002,alpha,beta,alpha\n")),
        ("“why” is not asked after what was answered before", FILE, lambda: _not_asked()),
        ("says A, but by the columns shown:… that stood under B", FILE, answers("annotator,prompt_key,shown:A,shown:B,chosen,label\nw1,p002,alpha,beta,beta,A\n")),
    ],
    f"{ANSWERS}/sittings:_found": [
        ("must be one of dull, long: “overall” has a row for each", "must be one of", answers("annotator,prompt_key,system,value\nw,p002,alpha,1\n", multiple, make=rating_draft)),
        ("“overall” is asked about texts: say of which prompt", "say of which prompt", answers("annotator,value\nw,3\n", make=rating_draft)),
        ("is not asked about one text: leave it empty", "leave it empty", answers("annotator,question,prompt_key,shown:A,shown:B,value\nw,beta-alpha,p002,alpha,beta,60\n", make=spa_draft)),
        ("“overall” is asked about each output: say of which system", "say of which system", answers("annotator,prompt_key,value\nw,p002,3\n", make=rating_draft)),
        ("is asked about all outputs together: leave it empty", "leave it empty", answers("annotator,prompt_key,shown:A,shown:B,system,chosen\nw,p002,alpha,beta,alpha,alpha\n")),
    ],
    f"{ANSWERS}/sittings:_value": [
        ("have several parts, which are not read from files", FILE, answers("annotator,question,prompt_key,system,part,value\nw,errors,p001,alpha,1,1\n", make=marks_draft)),
        ("is empty: give the answer or a skip_reason", "leave the row out", answers(RATED + "w,p002,alpha,\n", make=rating_draft)),
        ("must be empty: “overall” is answered in value", "must be empty", answers("annotator,prompt_key,system,value,text\nw,p002,alpha,3,Good\n", make=rating_draft)),
        ("“9” is no answer to “overall”", FILE, answers(RATED + "w,p002,alpha,9\n", make=rating_draft)),
    ],
    f"{ANSWERS}/sittings:_sent": [
        ("nothing stood under “C”", FILE, answers("annotator,prompt_key,shown:A,shown:B,label\nw,p002,alpha,beta,C\n")),
        ("“beta” is not among the outputs shown", FILE, lambda: _not_shown()),
    ],
}  # fmt: skip


def _requiring(text, name="t.csv"):
    rows = read_rows(name, text.encode(), required=("a",))
    list(rows)
    return [Shown(str(problem)) for problem in rows.problems]


def _csv_limit():
    """The csv module's own limit, which is that of the process."""
    from studies.stimuli.rows import _csv_error

    return [Shown(f"{_csv_error('field larger than field limit (131072)')} (the row begins in line 2).")]


def _json(data):
    from studies.stimuli import strict_json

    try:
        strict_json.loads(data)
    except strict_json.BadJson as error:
        return [Shown(str(error))]
    return []


def _many_members():
    from studies.stimuli.archives import _members
    from studies.stimuli.rows import Problems

    problems = Problems()
    with zipfile.ZipFile(io.BytesIO(zipped({"t.csv": "a", "b.png": "b"}))) as file:
        _members(file, ZipLimits(members=1), problems)
    return [Shown(str(problem)) for problem in problems]


def _many_samples():
    from studies.imports.tables import plan

    most, plan.MAX_NUMBER = plan.MAX_NUMBER, 0
    try:
        shown = file(HEAD.replace("text\n", "text,sample\n") + "p1,P,ada,a,1\n")()
    finally:
        plan.MAX_NUMBER = most
    return [Shown(one.text.replace("more than 0 samples", "more than 32,767 samples")) for one in shown]


def _surface():
    rows = [long(f"p{n}", "ada", f"**Bold** {n}.") for n in range(30)] + [
        long(f"p{n}", "bo", f"Plain {n}.") for n in range(30)
    ]
    return file(table(rows))()


def _unused_image():
    from tests.studies.stimuli.test_images import png_with_size

    return file(image_file(**{"b.png": png_with_size(8, 8)}), "t.zip")()


def _noted_image():
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGBA", (40, 40), (255, 0, 0, 90)).save(out, "PNG")
    return file(zipped({"t.csv": table(IMAGE), "img/a.png": out.getvalue()}), "t.zip")()


def _into_a_launched_study():
    study = builders.spa_study(with_surveys=False, with_rating=False)
    with tempfile.TemporaryDirectory() as folder:
        return shown_by(lambda: _imported(study, folder, GOOD, "t.csv"))


def _prepared(study):
    study.preparation = Preparation().as_json()
    study.save()


def _one_shown():
    """A section that shows one output of a prompt, of which both systems have one."""
    study = builders.draft_study(systems=("human", "gpt"), prompts=8)
    builders.add_humanlike(study, m=4)
    return study


def _not_asked():
    head = "annotator,question,prompt_key,system,value,text\n"
    return answers(head + "w,source,p001,gpt,4,\nw,why,p001,gpt,,It rambles.\n", make=_one_shown)()


def _not_shown():
    return answers(
        "annotator,prompt_key,shown:A,shown:B,chosen\nw,p002,alpha,gamma,beta\n", make=lambda: _three_systems()
    )()


def _three_systems():
    study = builders.draft_study(systems=("alpha", "beta", "gamma"), prompts=12)
    builders.add_choice(study, strategy="any", stopping="none")
    return study
