import csv
import gzip
import io
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from studies.imports.preparation import prepare, preview
from studies.imports.tables import Moved, Options, import_file, writing
from studies.imports.tables.result import Report
from studies.models import Arm, AuditEvent, Exposure, Output, Placement, Prompt, Study, System
from studies.services.lifecycle import NotNow
from tests import ROOT
from tests.builders import add_spa, draft_study, launched, spa_draft


def table(rows, columns=None) -> bytes:
    """A CSV of these dicts."""
    columns = columns or list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def lines(rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def long(prompt, system, text, **more):
    return {"prompt_key": prompt, "prompt_text": f"Prompt {prompt}", "system": system, "text": text, **more}


LONG = [long("p1", "ada", "One."), long("p1", "bo", "Two."), long("p2", "ada", "Three."), long("p2", "bo", "Four.")]


@pytest.fixture
def study(db):
    study = Study.objects.create(title="A draft")
    Arm.objects.create(study=study, name="all")
    System.objects.bulk_create(System(study=study, name=name) for name in ("ada", "bo"))
    return study


@pytest.fixture
def put(tmp_path, study):
    """Import bytes under a name; gives the report."""

    def imported(data, name="table.csv", is_dry_run=False, agreed=None, into=None, **options) -> Report:
        path = tmp_path / name
        path.write_bytes(data)
        return import_file(
            into or study, path, options=Options(**options), is_dry_run=is_dry_run, agreed=agreed, by=None
        )

    return imported


def rows_of(study) -> tuple:
    """Everything that an import may write."""
    return (
        list(study.systems.order_by("name").values_list("name", flat=True)),
        list(study.prompts.order_by("key").values_list("key", "text", "source", "domain", "language", "media")),
        list(
            Output.objects.filter(system__study=study)
            .order_by("system__name", "prompt__key", "sample")
            .values_list("system__name", "prompt__key", "sample", "text", "media", "is_empty", "format", "alt")
        ),
        list(study.items.order_by("section", "number").values_list("number", "content")),
        list(study.batches.order_by("number").values_list("number", "key", "arm__name", "wanted", "origin")),
        list(
            Placement.objects.filter(batch__study=study)
            .order_by("batch__number", "number")
            .values_list("batch__number", "number", "item__number")
        ),
    )


def sound(report) -> Report:
    assert [str(problem) for problem in report.problems] == []
    return report


def texts(study) -> dict:
    rows = Output.objects.filter(system__study=study)
    return {(o[0], o[1], o[2]): o[3] for o in rows.values_list("system__name", "prompt__key", "sample", "text")}


# Shapes


@pytest.mark.parametrize("name", ["long.csv", "long.jsonl", "wide.csv", "wide.jsonl", "objects.jsonl"])
def test_either_shape_in_either_format_gives_the_same_rows(study, put, name):
    wide = [
        {"prompt_key": key, "prompt_text": f"Prompt {key}", "outputs": {row["system"]: row["text"] for row in LONG if row["prompt_key"] == key}}
        for key in ("p1", "p2")
    ]  # fmt: skip
    data = {
        "long.csv": table(LONG),
        "long.jsonl": lines(LONG),
        "wide.jsonl": lines(wide),
        "wide.csv": table(
            [
                {k: v for k, v in row.items() if k != "outputs"} | {f"output:{s}": t for s, t in row["outputs"].items()}
                for row in wide
            ]
        ),
        "objects.jsonl": lines(
            [row | {"outputs": {s: {"text": t, "format": "plain"} for s, t in row["outputs"].items()}} for row in wide]
        ),
    }[name]
    report = sound(put(data, name))
    assert report.is_written and report.rows == (4 if name.startswith("long") else 2)
    assert texts(study) == {
        ("ada", "p1", 0): "One.",
        ("bo", "p1", 0): "Two.",
        ("ada", "p2", 0): "Three.",
        ("bo", "p2", 0): "Four.",
    }
    assert list(study.prompts.values_list("key", "text")) == [("p1", "Prompt p1"), ("p2", "Prompt p2")]


def test_every_column_is_stored(study, put):
    row = {
        "prompt_key": "p1", "prompt_text": "Continue.", "source": "A document.", "domain": "news", "language": "pt-BR",
        "attributes": {"length": 3}, "system": "ada", "sample": 2, "text": "**Bold**", "format": "markdown", "output_language": "de",
    }  # fmt: skip
    sound(put(lines([row, {"prompt_key": "p1", "system": "bo", "text": "ok"}]), "a.jsonl"))
    prompt = study.prompts.get()
    assert (prompt.text, prompt.source, prompt.domain, prompt.language) == ("Continue.", "A document.", "news", "pt-BR")
    assert prompt.attributes == {"length": 3}
    output = Output.objects.get(system__name="ada")
    assert (output.sample, output.format, output.language, output.text) == (2, "markdown", "de", "**Bold**")


def test_attributes_stand_in_csv_as_columns_of_their_own(study, put):
    sound(put(b"key,prompt,attribute:topic,attribute:year\np1,Go.,sea,1867\np2,Go.,,\n"))
    assert dict(study.prompts.values_list("key", "attributes")) == {"p1": {"topic": "sea", "year": "1867"}, "p2": {}}


def test_texts_are_stored_as_they_stand(study, put):
    odd = ["NA", "None", "null", "0", "False", "007", "&amp; &hellip;", "=1+1", "<<light> </p>", "ú" * 789, "  two  ", "a\u2028b", "\u202eright", "e\u0301 é", "👩‍👩‍👧", "H軍は…", "{{ x }}", "“a” ``b''", "a\tb\n\nc"]  # fmt: skip
    sound(put(table([long(f"p{n:02}", "ada", text) for n, text in enumerate(odd)])))
    assert [texts(study)["ada", f"p{n:02}", 0] for n in range(len(odd))] == odd


def test_a_dry_run_writes_nothing_and_says_what_would_be(study, put):
    before = rows_of(study)
    report = sound(put(table(LONG), is_dry_run=True))
    assert (report.counts["prompts"].new, report.counts["outputs"].new, report.counts["systems"].same) == (2, 4, 2)
    assert report.has_news and not report.is_written
    assert rows_of(study) == before and not AuditEvent.objects.exists()
    assert report.first[0] == {
        "row": 2, "batch": None, "prompt": "p1", "prompt_text": "Prompt p1", "outputs": [["ada", "One."]],
    }  # fmt: skip


def test_a_report_survives_json(study, put):
    report = put(table([*LONG, long("p3", "ada", "One."), long("p3", "zoe", "x")]), is_dry_run=True)
    stored = json.loads(json.dumps(report.as_json()))
    assert Report.from_json(stored).as_json() == stored
    assert Report.from_json(stored).outcome() == report.outcome()


def test_the_same_file_twice_changes_nothing(study, put):
    sound(put(table(LONG)))
    before, events, version = rows_of(study), AuditEvent.objects.count(), Study.objects.get().version
    report = sound(put(table(LONG)))
    assert not report.is_written and not report.has_news
    assert (report.counts["outputs"].same, report.counts["outputs"].new) == (4, 0)
    assert (rows_of(study), AuditEvent.objects.count(), Study.objects.get().version) == (before, events, version)
    assert "imported_before" in {finding.kind for finding in report.findings}


def test_an_import_is_in_the_audit_log(study, put):
    put(table(LONG))
    event = AuditEvent.objects.get(study=study)
    assert event.verb == "import" and event.data["counts"]["outputs"]["new"] == 4 and len(event.data["sha256"]) == 64
    assert Study.objects.get().version == 1


# What must be said outright


def test_an_unknown_system_is_one_problem_however_often_it_stands(study, put):
    before = rows_of(study)
    report = put(table([*LONG, long("p1", "zoe", "x"), long("p2", "zoe", "y")]))
    assert [str(problem) for problem in report.problems] == [
        "row 6, column “system”: the study has no system “zoe” (in 2 rows); correct the name, or tick “Make systems that the study does not have yet”."
    ]
    assert rows_of(study) == before
    assert sound(put(table([*LONG, long("p1", "zoe", "x")]), creates_systems=True)).counts["systems"].new == 1
    assert study.systems.filter(name="zoe").exists()


def test_an_empty_output_needs_a_word(study, put):
    rows = [long("p1", "ada", ""), long("p1", "bo", "Two.")]
    report = put(table(rows))
    assert (report.problems.first[0].row, report.problems.first[0].column) == (2, "text")
    assert "ada is empty" in str(report.problems.first[0]) and not study.prompts.exists()
    flagged = [rows[0] | {"is_empty": "true"}, rows[1]]
    report = sound(put(table(flagged), is_dry_run=True))
    assert [f.examples for f in report.findings if f.kind == "empty"] == [("ada on p1 (row 2)",)]
    sound(put(table(rows), allows_empty=True))
    assert Output.objects.get(system__name="ada").is_empty and texts(study)["ada", "p1", 0] == ""


@pytest.mark.parametrize("text", ["\u200b\u00a0", "\u0301", " \n "])
def test_what_nobody_sees_is_empty(study, put, text):
    assert "is empty" in str(put(table([long("p1", "ada", text)])).problems.first[0])


def test_a_column_of_texts_that_is_called_otherwise_makes_no_empty_outputs(study, put):
    """Empty outputs are allowed, the texts stand in a column “story”: once all of them were stored as empty."""
    report = put(b"prompt_key,prompt_text,system,story\np1,P,ada,One.\np2,P,ada,Two.\n", "t.csv", allows_empty=True)
    (problem,) = report.problems
    assert problem.row == 2 and "story" in problem.text and not study.prompts.exists()


def test_an_output_is_empty_or_has_a_text(study, put):
    report = put(table([long("p1", "ada", "A text", is_empty="yes")]))
    assert report.problems.first[0].column == "is_empty"


def test_changed_content_is_replaced_only_when_asked(study, put):
    sound(put(table(LONG)))
    before = rows_of(study)
    changed = [
        LONG[0] | {"text": "One, anew."},
        *LONG[1:2],
        *[row | {"prompt_text": "Another prompt"} for row in LONG[2:]],
    ]
    report = put(table(changed))
    assert report.problems.count == 1 and "other content" in str(report.problems.first[0]) and rows_of(study) == before
    assert (report.counts["outputs"].changed, report.counts["prompts"].changed, report.changes_count) == (1, 1, 2)
    shown = next(change for change in report.changes if change.what.startswith("ada"))
    assert (shown.row, shown.before, shown.after) == (2, "One.", "One, anew.")
    report = sound(put(table(changed), replaces_changed=True))
    assert report.is_written and texts(study)["ada", "p1", 0] == "One, anew."
    assert study.prompts.get(key="p2").text == "Another prompt"
    assert texts(study)["bo", "p2", 0] == "Four."


def test_a_change_keeps_what_the_file_does_not_say(study, put):
    row = long("p1", "ada", "x", domain="news", source="S", format="markdown", output_language="de")
    sound(put(table([row])))
    sound(put(table([long("p1", "ada", "y")]), replaces_changed=True))
    prompt, output = study.prompts.get(), Output.objects.get(system__study=study)
    assert (prompt.domain, prompt.source, output.format, output.language, output.text) == (
        "news",
        "S",
        "markdown",
        "de",
        "y",
    )


def test_only_a_draft_takes_stimuli(put):
    study = launched(spa_draft(prompts=12))
    with pytest.raises(NotNow, match="draft alone"):
        put(table([long("p900", "alpha", "x")]), into=study)
    assert not study.prompts.filter(key="p900").exists()


def test_what_was_confirmed_is_what_is_written(study, put):
    agreed = put(table(LONG), is_dry_run=True).outcome()
    put(table(LONG[:1]))  # somebody else was quicker
    with pytest.raises(Moved, match="Look at what"):
        put(table(LONG), agreed=agreed)
    assert Output.objects.filter(system__study=study).count() == 1
    again = put(table(LONG), is_dry_run=True)
    assert (again.counts["outputs"].new, again.counts["outputs"].same) == (3, 1)
    assert put(table(LONG), agreed=again.outcome()).is_written


def test_a_study_that_moves_while_the_file_is_read_is_left_alone(study, put, monkeypatch):
    from studies.imports.tables import run

    def meddled(plan):
        Prompt.objects.create(study=study, key="by hand")
        return write(plan)

    write = run.write
    monkeypatch.setattr(run, "write", meddled)
    with pytest.raises(Moved, match="while the file was being read"):
        put(table(LONG))
    assert not Output.objects.filter(system__study=study).exists()


def test_a_failure_while_writing_leaves_no_row(study, put, monkeypatch):
    from studies.imports.tables import writing

    monkeypatch.setattr(writing, "CHUNK", 3)  # the first prompts and outputs are written by then
    monkeypatch.setattr(writing, "_change_outputs", _fails_at_the_second_chunk())
    before = rows_of(study)
    with pytest.raises(MemoryError):
        put(table(LONG))
    assert rows_of(study) == before and not AuditEvent.objects.exists()


def _fails_at_the_second_chunk():
    calls = []

    def change(systems, prompts, changes):
        calls.append(1)
        if len(calls) == 2:
            raise MemoryError

    return change


def test_rows_refer_to_a_prompt_given_before(study, put):
    sound(put(table([LONG[0], {"prompt_key": "p1", "system": "bo", "text": "Two."}])))
    assert study.prompts.get().text == "Prompt p1"
    report = put(table([{"prompt_key": "p9", "prompt_text": "", "system": "bo", "text": "x"}]))
    assert (
        str(report.problems.first[0])
        == "row 2, column “prompt_text”: the prompt p9 has no text here, and none in the study."
    )


def test_prompts_come_without_outputs_and_outputs_later(study, put):
    sound(put(b"prompt_key,prompt_text\np1,One\np2,Two\n"))
    report = sound(put(b"prompt_key,system,text\np1,ada,A.\np1,bo,B.\np2,ada,C.\n", "later.csv"))
    assert report.counts["prompts"].same == 2
    assert (report.missing, report.missing_count) == ([("p2", "bo")], 1)


def test_missing_pairs_are_listed_exactly(study, put):
    rows = [long(f"p{n}", system, f"{n}{system}") for n in range(5) for system in ("ada", "bo", "cy") if (n, system) not in {(1, "bo"), (4, "ada"), (4, "cy")}]  # fmt: skip
    report = sound(put(table(rows), creates_systems=True, is_dry_run=True))
    assert report.missing == [("p1", "bo"), ("p4", "ada"), ("p4", "cy")]


def test_equal_outputs_are_reported_with_both_places(study, put):
    rows = [long("p1", "ada", "Same words."), long("p1", "bo", "Same words. "), long("p2", "ada", "Same words."), long("p2", "bo", "Other.")]  # fmt: skip
    found = {f.kind: f.examples for f in sound(put(table(rows), is_dry_run=True)).findings}
    assert found["same_between_systems"] == ("ada on p1 = bo on p1 (row 3)",)
    assert found["same_within_system"] == ("ada on p1 = ada on p2 (row 4)",)


def test_what_betrays_a_system_is_said(study, put):
    rows = [long(f"p{n}", system, f"Text {n} {'``so`` it went' if system == 'bo' else 'so it went'}.") for n in range(25) for system in ("ada", "bo")]  # fmt: skip
    report = sound(put(table(rows)))
    assert "surface:tokeniser_quotes" in {finding.kind for finding in report.findings}
    # And also where the other system stands in the study already.
    later = [long(f"p{n}", "cy", f"So <b>it</b> went {n}.") for n in range(25)]
    report = put(table(later), "cy.csv", creates_systems=True, is_dry_run=True)
    assert "surface:markup" in {finding.kind for finding in report.findings}


def test_unknown_columns_are_named(study, put):
    report = sound(put(table([row | {"note": "x", "langauge": "en"} for row in LONG]), is_dry_run=True))
    assert [f.examples for f in report.findings if f.kind == "ignored_columns"] == [("langauge", "note")]


# Images


def picture(colour="red", size=(8, 8), kind="PNG", **options) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new(options.pop("mode", "RGB"), size, colour).save(out, kind, **options)
    return out.getvalue()


def zipped(members) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def test_a_zip_brings_images(study, put, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    rows = [
        {"prompt_key": "p1", "prompt_text": "A square", "system": "ada", "image": "img/a.png", "alt": "a red square"},
        {"prompt_key": "p1", "system": "bo", "image": "img/b.jpg"},
    ]
    data = zipped(
        {
            "t.csv": table(rows),
            "img/a.png": picture(),
            "img/b.jpg": picture("blue", kind="JPEG"),
            "img/c.png": picture("green"),
        }
    )
    report = sound(put(data, "images.zip", is_dry_run=True))
    assert not settings.MEDIA_ROOT.exists()
    assert [f.examples for f in report.findings if f.kind == "images_unused"] == [("img/c.png",)]
    sound(put(data, "images.zip", agreed=report.outcome()))
    outputs = Output.objects.filter(system__study=study)
    assert {o.alt for o in outputs} == {"a red square", ""} and len({o.media for o in outputs}) == 2
    assert sorted(path.name for path in settings.MEDIA_ROOT.glob("*/*")) == sorted(o.media for o in outputs)
    assert not sound(put(data, "images.zip")).has_news


def files_below(root):
    return sorted(path.name for path in root.rglob("*") if path.is_file())


def test_an_import_that_fails_leaves_no_image_but_those_of_others(study, put, settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    assert put(zipped({"t.csv": table([IMAGE_ROW]), "a.png": picture()}), "i.zip").is_written
    (before,) = files_below(settings.MEDIA_ROOT)
    rows = [IMAGE_ROW | {"prompt_key": f"q{n}", "image": f"{n}.png"} for n in range(3)]
    data = zipped({"t.csv": table(rows)} | {"0.png": picture("blue"), "1.png": picture("green")} | {"2.png": picture()})
    seen = []

    def broken(*_):
        seen.extend(files_below(settings.MEDIA_ROOT))
        raise MemoryError

    with monkeypatch.context() as scarce:
        scarce.setattr(writing, "_replay", broken)
        with pytest.raises(MemoryError):
            put(data, "j.zip")
    assert len(seen) == 3 and files_below(settings.MEDIA_ROOT) == [before]
    assert put(data, "j.zip").is_written and files_below(settings.MEDIA_ROOT) == sorted(seen)


def test_an_image_that_another_failed_import_removed_is_stored_again(study, put, settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    replay = writing._replay

    def meanwhile(*given):
        replay(*given)
        for path in settings.MEDIA_ROOT.glob("*/*"):
            path.unlink()

    monkeypatch.setattr(writing, "_replay", meanwhile)
    assert put(zipped({"t.csv": table([IMAGE_ROW]), "a.png": picture()}), "i.zip").is_written
    assert files_below(settings.MEDIA_ROOT) == [Output.objects.get(system__study=study).media]


IMAGE_ROW = {"prompt_key": "p1", "prompt_text": "A square", "system": "ada", "image": "a.png"}


@pytest.mark.parametrize(
    ("image", "members", "said"),
    [
        ("b.png", {}, "not in the archive"),
        ("A.png", {}, "write it so"),
        ("../x.png", {}, "not in the archive"),
        ("/etc/passwd", {}, "not in the archive"),
        ("CON", {}, "not in the archive"),
        ("a.png", {"a.png": b""}, "empty (0 bytes)"),
        ("a.png", {"a.png": b"<svg xmlns='x'/>"}, "SVG"),
        ("a.png", {"a.png": picture()[:40]}, "damaged"),
        ("a.png", {"a.png": b"text"}, "not an image"),
    ],
)
def test_a_bad_image_is_a_problem_of_its_row(study, put, image, members, said):
    data = zipped({"t.csv": table([IMAGE_ROW | {"image": image}]), "a.png": picture()} | members)
    report = put(data, "images.zip")
    assert report.problems.first[0].row == 2 and said in str(report.problems.first[0])
    assert not study.prompts.exists()


@pytest.mark.parametrize(
    "members",
    [
        {"../a.png": picture()},
        {"/a.png": picture()},
        {"a.png": picture(), "A.PNG": picture()},
        {"big.png": b"\0" * 30_000_000},
        {"second.csv": b"a\n1\n"},
        {"run.exe": b"MZ"},
    ],
)
def test_an_unsafe_archive_writes_nothing(study, put, members):
    report = put(zipped({"t.csv": table(LONG)} | members), "images.zip")
    assert report.problems and not study.prompts.exists()


@pytest.mark.parametrize(
    "image", [picture(kind="JPEG", mode="CMYK", colour=0), picture(kind="PNG", mode="I;16", colour=9)]
)
def test_odd_but_sound_images_are_taken(study, put, image, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    assert sound(put(zipped({"t.csv": table([IMAGE_ROW]), "a.png": image}), "i.zip")).is_written


def test_an_image_without_a_zip_is_refused(study, put):
    assert "import a zip" in str(put(table([IMAGE_ROW])).problems.first[0])


# Bad input: each case ends in a report that names row and column, and nothing is written

HEAD = "prompt_key,prompt_text,system,text\n"
GOOD = HEAD + "p1,P,ada,One.\n"
BAD_FILES = [
    ("utf-16-le without mark", GOOD.encode("utf-16-le"), "t.csv", None, "UTF-16"),
    ("cp1252", (HEAD + "p1,P,ada,“Hm”\n").encode("cp1252"), "t.csv", 2, "not UTF-8"),
    ("latin-1", (HEAD + "p1,P,ada,é!\n").encode("latin-1"), "t.csv", 2, "not UTF-8"),
    ("shift-jis", (HEAD + "p1,P,ada,軍は\n").encode("shift-jis"), "t.csv", 2, "not UTF-8"),
    ("bad byte mid-file", GOOD.encode() + b"p2,P,ada,\xff\n", "t.csv", 3, "0xFF"),
    ("overlong", GOOD.encode() + b"p2,P,ada,\xc0\xaf\n", "t.csv", 3, "overlong"),
    ("cesu", GOOD.encode() + b"p2,P,ada,\xed\xa0\x80\n", "t.csv", 3, "surrogate"),
    ("empty file", b"", "t.csv", None, "empty"),
    ("header only", HEAD.encode(), "t.csv", None, "no row below"),
    ("no header", b"p1,P,ada,One.\np2,P,ada,Two.\n", "t.csv", 2, "no column prompt_key"),
    ("double header", b"prompt_key,text,Text ,system\np1,a,b,ada\n", "t.csv", 1, "stands over"),
    ("alias twice", b"prompt_key,prompt,prompt_text,system,text\np1,a,b,ada,x\n", "t.csv", 2, "mean the same"),
    ("ragged short", (GOOD + "p2,P,ada\n").encode(), "t.csv", 3, "has 3 cells"),
    ("ragged long", (GOOD + "p2,P,ada,a,b\n").encode(), "t.csv", 3, "has 5 cells"),
    ("unclosed quote", (HEAD + 'p1,P,ada,"One.\n').encode(), "t.csv", 2, "never closed"),
    ("unclosed quote late", (GOOD * 1 + "".join(f"p{n},P,ada,x\n" for n in range(2, 5000)) + 'p5000,P,ada,"x\n').encode(), "t.csv", 5001, "never closed"),
    ("trailing comma", b"prompt_key,prompt_text,system,text,\np1,P,ada,x,\n", "t.csv", 1, "has no name"),
    ("array", b'[{"prompt_key": "p1"}]', "t.jsonl", 1, "JSON array"),
    ("trailing json comma", b'{"prompt_key": "p1",}\n', "t.jsonl", 1, "not JSON"),
    ("nan", b'{"prompt_key": "p1", "position": NaN}\n', "t.jsonl", 1, "NaN"),
    ("infinite", b'{"prompt_key": "p1", "position": 1e400}\n', "t.jsonl", 1, "too large"),
    ("long integer", b'{"prompt_key": ' + b"9" * 5000 + b"}\n", "t.jsonl", 1, "digits"),
    ("duplicate keys", b'{"prompt_key": "p1", "prompt_key": "p2"}\n', "t.jsonl", 1, "more than once"),
    ("scalar line", b"7\n", "t.jsonl", 1, "not an object"),
    ("deep", b'{"prompt_key": "p1", "attributes": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "t.jsonl", 1, "nested"),
    ("surrogate", b'{"prompt_key": "p1", "prompt_text": "\\ud800"}\n', "t.jsonl", 1, "surrogate"),
    ("nul escape", b'{"prompt_key": "p1", "prompt_text": "a\\u0000"}\n', "t.jsonl", 1, "NUL"),
    ("nul byte", (HEAD + "p1,P,ada,a\0b\n").encode(), "t.csv", 2, "NUL"),
    ("gzip", gzip.compress(GOOD.encode(), mtime=0), "t.csv", None, "gzip"),
    ("excel", b"PK\x03\x04 and so on", "t.csv", None, "zip archive"),
    ("not a zip", b"PK\x03\x04 and so on", "t.zip", None, "not a zip"),
    ("other kind", b"x", "t.parquet", None, "not a table"),
    ("huge cell", (HEAD + f"p1,P,ada,{'x' * 1_000_001}\n").encode(), "t.csv", 2, "1,000,000 are allowed"),
    ("control character", (HEAD + "p1,P,ada,a\x1bb\n").encode(), "t.csv", 2, "control character"),
    ("no key", (HEAD + " ,P,ada,a\n").encode(), "t.csv", 2, "must not be empty"),
    ("zero width key", (HEAD + "\u200b,P,ada,a\n").encode(), "t.csv", 2, "empty"),
    ("hidden in key", (HEAD + "p\u200b1,P,ada,a\n").encode(), "t.csv", 2, "invisible"),
    ("long key", (HEAD + f"{'p' * 101},P,ada,a\n").encode(), "t.csv", 2, "100 are allowed"),
    ("no system", (HEAD + "p1,P,,a\n").encode(), "t.csv", 2, "names no system"),
    ("no system column", b"prompt_key,prompt_text,text\np1,P,a\n", "t.csv", 2, "without the system"),
    ("no text column", b"prompt_key,prompt_text,system,output\np1,P,ada,a\n", "t.csv", 2, "no column text, image or is_empty"),
    ("no text in an object", b'{"prompt_key": "p1", "prompt_text": "P", "system": "ada", "story": "a"}\n', "t.jsonl", 1, "found are: prompt_key, prompt_text, system, story"),
    ("keys alike in case", (GOOD + "P1,P,ada,Two.\n").encode(), "t.csv", 3, "only in case"),
    ("keys alike in width", (GOOD + "ｐ１,P,ada,Two.\n").encode(), "t.csv", 3, "only in case"),
    ("systems alike", (HEAD + "p1,P,Ada,a\n").encode(), "t.csv", 2, "only in case"),
    ("same output twice", (GOOD + "p1,P,ada,One.\n").encode(), "t.csv", 3, "already in row 2, with the same text"),
    ("two outputs unnumbered", (GOOD + "p1,P,ada,Two.\n").encode(), "t.csv", 3, "numbered in a column sample"),
    ("another prompt text", (GOOD + "p1,Q,bo,Two.\n").encode(), "t.csv", 3, "row 2 says"),
    ("mixed shapes", b"prompt_key,system,text,output:ada\np1,ada,a,b\n", "t.csv", 2, "mixed"),
    ("outputs no object", b'{"prompt_key": "p1", "prompt_text": "P", "outputs": ["a"]}\n', "t.jsonl", 1, "must be an object"),
    ("output a number", b'{"prompt_key": "p1", "prompt_text": "P", "outputs": {"ada": 7}}\n', "t.jsonl", 1, "must be a text, not a number"),
    ("output of odd parts", b'{"prompt_key": "p1", "prompt_text": "P", "outputs": {"ada": {"txt": "a"}}}\n', "t.jsonl", 1, "does not know txt"),
    ("blank wide cell", b"prompt_key,prompt_text,output:ada,output:bo\np1,P,a,\n", "t.csv", 2, "bo is empty"),
    ("key a float", b'{"prompt_key": 1.5, "prompt_text": "P"}\n', "t.jsonl", 1, "must be a text"),
    ("sample a word", (HEAD.replace("text\n", "text,sample\n") + "p1,P,ada,a,x\n").encode(), "t.csv", 2, "whole number"),
    ("sample negative", (HEAD.replace("text\n", "text,sample\n") + "p1,P,ada,a,-1\n").encode(), "t.csv", 2, "whole number"),
    ("sample arabic", (HEAD.replace("text\n", "text,sample\n") + "p1,P,ada,a,٣\n").encode(), "t.csv", 2, "whole number"),
    ("format unknown", (HEAD.replace("text\n", "text,format\n") + "p1,P,ada,a,html\n").encode(), "t.csv", 2, "plain, markdown, turns"),
    ("language odd", (HEAD.replace("text\n", "text,language\n") + "p1,P,ada,a,english!\n").encode(), "t.csv", 2, "language tag"),
    ("flag odd", (HEAD.replace("text\n", "text,is_empty\n") + "p1,P,ada,a,maybe\n").encode(), "t.csv", 2, "true or false"),
    ("text and image", (HEAD.replace("text\n", "text,image\n") + "p1,P,ada,a,b.png\n").encode(), "t.csv", 2, "one or the other"),
    ("unwanted batches", b"batch,prompt_key,prompt_text,output:ada\nb1,p1,P,a\n", "t.csv", 2, "ready-made batches"),
    ("attributes no object", b'{"prompt_key": "p1", "prompt_text": "P", "attributes": "x"}\n', "t.jsonl", 1, "must be an object"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "name", "row", "said"), [case[1:] for case in BAD_FILES], ids=[case[0] for case in BAD_FILES]
)
def test_a_bad_file_ends_in_a_report_and_writes_nothing(study, put, data, name, row, said):
    before = rows_of(study)
    report = put(data, name)
    assert said in " ".join(map(str, report.problems)), [str(problem) for problem in report.problems]
    assert any(problem.row == row or (row and f"line {row}" in problem.text) for problem in report.problems), list(
        report.problems
    )
    assert rows_of(study) == before
    json.dumps(report.as_json(), ensure_ascii=False).encode()  # a page can show it


@pytest.mark.parametrize(
    "data",
    [
        GOOD.encode("utf-8-sig"), GOOD.encode("utf-16"), GOOD.replace("\n", "\r\n").encode(), GOOD.replace(",", ";").encode(),
        GOOD.replace(",", "\t").encode(), GOOD[:-1].encode(), GOOD.replace("prompt_key", " Prompt_KEY ").encode(),
        (GOOD + "\n\n").encode(), GOOD.replace("One.", '"One."').encode(),
    ],
)  # fmt: skip
def test_a_table_is_taken_however_it_was_saved(study, put, data):
    sound(put(data))
    assert texts(study) == {("ada", "p1", 0): "One."}


def test_every_problem_is_counted_and_the_first_hundred_kept(study, put):
    report = put(table([long(f"p{n}", "ada", "") for n in range(250)]))
    assert (report.problems.count, len(report.problems), report.more_problems) == (250, 100, 150)


def test_ids_keep_their_digits(study, put):
    sound(put(b'{"prompt_key": 12345678901234567890, "prompt_text": "P", "outputs": {"ada": "x"}}\n', "t.jsonl"))
    sound(put((HEAD + "007,P,ada,y\n").encode()))
    assert set(study.prompts.values_list("key", flat=True)) == {"12345678901234567890", "007"}


# Ready-made batches


def wide(batch, prompt, position=None, **outputs):
    row = {"batch": batch, "prompt_key": prompt, "prompt_text": f"Prompt {prompt}", "outputs": outputs}
    return row if position is None else row | {"position": position}


@pytest.fixture
def spa(study):
    add_spa(study, m=2)
    return study


BATCHES = [wide("r1", "p1", ada="A1", bo="B1"), wide("r1", "p2", ada="A2", bo="B2"), wide("r2", "p1", ada="A1 anew", bo="B1"), wide("r2", "p3", ada="A3", bo="B3")]  # fmt: skip


def contents(study) -> dict:
    """What lies in each batch, in order."""
    found: dict = {}
    rows = (
        Placement.objects.filter(batch__study=study)
        .order_by("batch__number", "number")
        .select_related("batch", "item__prompt")
    )
    for row in rows:
        shown = row.item.exposures.order_by("number").values_list("output__text", flat=True)
        found.setdefault(row.batch.key, []).append((row.item.prompt.key, *shown))
    return found


def test_ready_made_batches_hold_what_the_file_says(spa, put):
    report = sound(put(lines(BATCHES), "b.jsonl", makes_batches=True))
    assert (report.counts["batches"].new, report.counts["outputs"].new) == (2, 7)
    assert contents(spa) == {
        "r1": [("p1", "A1", "B1"), ("p2", "A2", "B2")],
        "r2": [("p1", "A1 anew", "B1"), ("p3", "A3", "B3")],
    }
    assert list(spa.batches.values_list("number", "key", "origin", "wanted")) == [
        (0, "r1", "imported", 1),
        (1, "r2", "imported", 1),
    ]
    # The same prompt with another output is another sample; the same output is the same.
    assert texts(spa)["ada", "p1", 1] == "A1 anew" and ("bo", "p1", 1) not in texts(spa)
    before = rows_of(spa)
    assert not sound(put(lines(BATCHES), "b.jsonl", makes_batches=True)).has_news
    assert rows_of(spa) == before


def test_ready_made_batches_in_the_long_shape_are_the_same(spa, put, study):
    rows = [
        {
            "batch": row["batch"],
            "prompt_key": row["prompt_key"],
            "prompt_text": row["prompt_text"],
            "system": system,
            "text": text,
        }
        for row in BATCHES
        for system, text in row["outputs"].items()
    ]
    sound(put(table(rows), makes_batches=True))
    assert contents(spa)["r2"] == [("p1", "A1 anew", "B1"), ("p3", "A3", "B3")]
    assert not sound(put(lines(BATCHES), "b.jsonl", makes_batches=True)).has_news


def test_positions_order_the_items(spa, put):
    rows = [wide("r1", "p1", 2, ada="A", bo="B"), wide("r1", "p2", 1, ada="C", bo="D")]
    sound(put(lines(rows), "b.jsonl", makes_batches=True))
    assert [place[0] for place in contents(spa)["r1"]] == ["p2", "p1"]


def test_a_prompt_twice_in_one_batch_is_a_warning(spa, put):
    rows = [wide("r1", "p1", ada="A", bo="B"), wide("r1", "p1", ada="A again", bo="B")]
    report = sound(put(lines(rows), "b.jsonl", makes_batches=True))
    assert [f.examples for f in report.findings if f.kind == "prompt_twice_in_batch"] == [("r1: p1, 2 times",)]
    assert contents(spa)["r1"] == [("p1", "A", "B"), ("p1", "A again", "B")]


@pytest.mark.parametrize(
    ("rows", "row", "column", "said"),
    [
        ([wide("r1", "p1", ada="A", bo="B")] * 2, 2, "prompt_key", "very outputs already (row 1)"),
        ([wide("", "p1", ada="A", bo="B")], 1, "batch", "must not be empty"),
        ([{k: v for k, v in BATCHES[0].items() if k != "batch"}], 1, "batch", "was said to hold"),
        ([wide("r1", "p1", 1, ada="A", bo="B"), wide("r1", "p2", ada="C", bo="D")], 2, "position", "in others (row 1)"),
        ([wide("r1", "p1", 1, ada="A", bo="B"), wide("r1", "p2", 1, ada="C", bo="D")], 2, "position", "holds p1 in row 1"),
        ([wide("r1", "p1", ada="A", bo="B") | {"arm": "none"}], 1, "arm", "no arm “none”"),
        ([wide("r1", "p1", ada="A", bo="B") | {"section": 9}], 1, "section", "no section 9"),
        ([wide("r1", "p1", ada="A", bo="B"), wide("R1", "p2", ada="A", bo="B")], 2, "batch", "only in case"),
        ([wide("r1", "p1", "x", ada="A", bo="B")], 1, "position", "whole number"),
        ([wide("r1", "p1")], 1, None, "without any output"),
    ],
)  # fmt: skip
def test_a_batch_that_cannot_be_is_refused(spa, put, rows, row, column, said):
    before = rows_of(spa)
    report = put(lines(rows), "b.jsonl", makes_batches=True)
    first = report.problems.first[0]
    assert (first.row, first.column) == (row, column) and said in first.text, list(report.problems)
    assert rows_of(spa) == before


def test_batches_need_a_section_that_shows_items(study, put):
    report = put(lines(BATCHES), "b.jsonl", makes_batches=True)
    assert [str(problem) for problem in report.problems] == [
        "The study has no section that shows items: define it before its ready-made batches."
    ]


def test_where_several_arms_are_a_batch_names_its_own(spa, put):
    Arm.objects.create(study=spa, name="second")
    assert "is missing; the study has 2: all, second" in str(
        put(lines(BATCHES), "b.jsonl", makes_batches=True).problems.first[0]
    )
    sound(put(lines([row | {"arm": "second"} for row in BATCHES]), "b.jsonl", makes_batches=True))
    assert set(spa.batches.values_list("arm__name", flat=True)) == {"second"}


def test_lacking_outputs_and_odd_sizes_are_warnings(spa, put):
    rows = [wide("r1", "p1", ada="A", bo="B"), wide("r1", "p2", ada="A2"), wide("r2", "p1", ada="A", bo="B")]
    found = {f.kind: f.examples for f in sound(put(lines(rows), "b.jsonl", makes_batches=True)).findings}
    assert found["item_incomplete"] == ("r1: p2 lacks bo",)
    assert found["batch_size"] == ("r2: 1 in section 1, whose m is 2",)


def test_a_changed_batch_is_replaced_without_leaving_gaps(spa, put):
    sound(put(lines(BATCHES), "b.jsonl", makes_batches=True))
    changed = [wide("r1", "p4", ada="A4", bo="B4"), *BATCHES[1:]]
    report = put(lines(changed), "b.jsonl", makes_batches=True)
    assert report.problems.count == 1 and "batch r1 stands in the study" in str(report.problems.first[0])
    sound(put(lines(changed), "b.jsonl", makes_batches=True, replaces_changed=True))
    assert contents(spa)["r1"] == [("p4", "A4", "B4"), ("p2", "A2", "B2")]
    assert sorted(spa.items.values_list("number", flat=True)) == [1, 2, 3, 4]
    assert spa.batches.count() == 2
    assert not sound(put(lines(changed), "b.jsonl", makes_batches=True)).has_news


def test_a_replaced_batch_with_fewer_items_closes_the_gap(spa, put):
    sound(put(lines(BATCHES), "b.jsonl", makes_batches=True))
    sound(put(lines(BATCHES[1:]), "b.jsonl", makes_batches=True, replaces_changed=True))
    assert sorted(spa.items.values_list("number", flat=True)) == [1, 2, 3]


def test_a_study_of_ready_made_batches_can_be_launched_and_read(spa, put):
    sound(put(lines(BATCHES), "b.jsonl", makes_batches=True))
    Study.objects.filter(pk=spa.pk).update(public_title="T", contact="c", target_n=2, minutes=5)
    launched(Study.objects.get(pk=spa.pk))
    assert Study.objects.get(pk=spa.pk).open_to == 2


# Preparation


TOKENISED = [long("p1", "ada", "``So ;'' it went ( on )."), long("p1", "bo", "Plain. Twice."), long("p2", "ada", "Fine."), long("p2", "bo", "Fine too.")]  # fmt: skip
SETTINGS = {"normalisation": {"tokeniser_quotes": True, "tokenised_spacing": True}}


def test_preparation_is_shown_then_done_and_undone(study, put):
    put(table(TOKENISED))
    report = preview(study, SETTINGS)
    assert (report.outputs, report.changed_outputs, report.by_step) == (
        4,
        1,
        {"tokeniser_quotes": 1, "tokenised_spacing": 1},
    )
    assert texts(study)["ada", "p1", 0] == TOKENISED[0]["text"] and report.examples[0].after == '"So;" it went (on).'
    prepare(study, SETTINGS, by=None)
    output = Output.objects.get(system__name="ada", prompt__key="p1")
    assert (output.text, output.original) == ('"So;" it went (on).', TOKENISED[0]["text"])
    study.refresh_from_db()
    assert study.preparation["normalisation"]["tokeniser_quotes"] is True
    event = AuditEvent.objects.filter(verb="prepare stimuli").get()
    assert event.data["outputs"] == 1 and event.data["settings"] == study.preparation
    assert (
        not prepare(study, SETTINGS, by=None).has_news
        and AuditEvent.objects.filter(verb="prepare stimuli").count() == 1
    )
    prepare(study, {}, by=None)
    output.refresh_from_db()
    study.refresh_from_db()
    assert (output.text, output.original, study.preparation) == (TOKENISED[0]["text"], "", {})


def test_prompts_keep_their_original_too(study, put):
    put(table([long("p1", "ada", "(Laughing) he went.") | {"prompt_text": "[WP] A cat."}]))
    prepare(study, {"normalisation": {"leading_tag": True}}, by=None)
    prompt = study.prompts.get()
    assert (prompt.text, prompt.attributes) == ("A cat.", {"original_text": "[WP] A cat."})
    assert texts(study)["ada", "p1", 0] == "(Laughing) he went."  # a tag in front is a prompt's
    prepare(study, {}, by=None)
    prompt.refresh_from_db()
    assert (prompt.text, prompt.attributes) == ("[WP] A cat.", {})


def test_no_text_is_emptied_by_preparation(study, put):
    put(
        table(
            [long("p1", "ada", "A very long sentence without an end that nobody could cut"), long("p1", "bo", "Short.")]
        )
    )
    settings = {"length": {"manner": "longest_of_others", "trimmed": ["ada"]}}
    report = preview(study, settings)
    assert report.changed_outputs == 0 and "no sentence end" in report.warnings[0]


def test_lengths_follow_those_that_are_read_together(spa, put):
    put(lines([wide("r1", "p1", ada="One. Two. Three.", bo="Mmmmm."), wide("r2", "p1", ada="One. Two. Four.", bo="Mmmmmmmm mm.")]), "b.jsonl", makes_batches=True)  # fmt: skip
    prepare(spa, {"length": {"manner": "longest_of_others", "trimmed": ["ada"]}}, by=None)
    assert contents(spa) == {"r1": [("p1", "One.", "Mmmmm.")], "r2": [("p1", "One. Two.", "Mmmmmmmm mm.")]}


def test_filters_leave_prompts_out_and_say_why(study, put):
    put(table([long("p1", "ada", "A") | {"prompt_text": "Why?"}, long("p2", "ada", "B")]))
    settings = {"prompt_filters": [{"filter": "has_no_question"}]}
    assert [each.key for each in preview(study, settings).dropped] == ["p1"] and study.prompts.count() == 2
    prepare(study, settings, by=None)
    assert list(study.prompts.values_list("key", flat=True)) == ["p2"] and Output.objects.count() == 1
    assert AuditEvent.objects.get(verb="prepare stimuli").data["dropped"] == [
        ["p1", "has_no_question", "has a question mark"]
    ]


def test_a_prompt_in_a_batch_is_not_filtered_away(spa, put):
    put(lines([wide("r1", "p1", ada="A", bo="B") | {"prompt_text": "Why?"}]), "b.jsonl", makes_batches=True)
    with pytest.raises(NotNow, match="p1"):
        prepare(spa, {"prompt_filters": [{"filter": "has_no_question"}]}, by=None)
    assert spa.prompts.exists()


def test_what_is_imported_later_is_prepared_as_declared(study, put):
    put(table(LONG))
    prepare(study, SETTINGS, by=None)
    study.refresh_from_db()
    report = sound(put(table([long("p9", "ada", "``Hm''")]), "later.csv"))
    assert texts(study)["ada", "p9", 0] == '"Hm"' and "prepared" in {f.kind for f in report.findings}
    # The file's text is compared with the original, not with what was made of it.
    assert not sound(put(table([long("p9", "ada", "``Hm''")]), "later.csv")).has_news


def test_a_launched_study_is_not_prepared(db):
    study = launched(spa_draft(prompts=12))
    with pytest.raises(NotNow, match="draft alone"):
        prepare(study, SETTINGS, by=None)
    study.refresh_from_db()
    assert study.preparation == {}


# The story study


LETTERS = dict(zip("ABCDE", ["ada", "babbage", "curie", "davinci", "human"], strict=True))


def stories(path: Path) -> list[dict]:
    """The published rows as ready-made batches; the one empty text is said to be empty."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        {
            "batch": f"reader-{row['reader_id']:03}", "position": row["position"], "prompt_key": row["prompt_id"],
            "prompt_text": row["prompt"],
            "outputs": {LETTERS[letter]: text or {"is_empty": True} for letter, text in row["texts"].items()},
        }
        for row in rows
    ]  # fmt: skip


@pytest.mark.shared
def test_the_published_stories_are_imported_whole(db, put, shared):
    study = draft_study(systems=(), prompts=0)
    add_spa(study, m=5, pairs=[])
    rows = stories(shared / "spa_stories.jsonl.gz")
    options = {"into": study, "makes_batches": True, "creates_systems": True}
    began = time.process_time()
    dry = sound(put(lines(rows), "stories.jsonl", is_dry_run=True, **options))
    assert not study.prompts.exists()
    report = sound(put(lines(rows), "stories.jsonl", agreed=dry.outcome(), **options))
    seconds = time.process_time() - began
    counts = {kind: count.new for kind, count in report.counts.items()}
    # Three human texts were shown to two readers each: 747 of 750 human outputs, so 3,747 outputs in 3,750 exposures.
    assert counts == {"systems": 5, "prompts": 601, "outputs": 3747, "batches": 150}
    assert study.items.count() == 750 and Exposure.objects.filter(item__study=study).count() == 3750
    assert Placement.objects.filter(batch__study=study).count() == 750
    assert Output.objects.filter(system__study=study, is_empty=True).values_list("system__name", "prompt__key").get() == ("human", "p600697fb")  # fmt: skip
    found = {finding.kind: finding for finding in report.findings}
    assert (
        found["prompt_twice_in_batch"].examples[0].startswith("reader-042")
        and found["prompt_twice_in_batch"].count == 3
    )
    assert {"surface:tokeniser_quotes", "surface:tokenised_spacing", "surface:other_scripts", "surface:words"} <= set(
        found
    )
    assert "human" in found["surface:tokeniser_quotes"].text and "ada" in found["surface:other_scripts"].text
    assert found["empty"].count == 1 and report.missing_count == 0
    assert contents(study)["reader-110"][1][-1] == ""
    assert {row["prompt_key"] for row in rows if row["batch"] == "reader-007"} == {
        place[0] for place in contents(study)["reader-007"]
    }
    _check_stored_as_published(study, rows)
    assert not sound(put(lines(rows), "stories.jsonl", **options)).has_news
    assert seconds < 30, f"{seconds:.1f} s"


def _check_stored_as_published(study, rows) -> None:
    published = {
        (row["prompt_key"], system, text)
        for row in rows
        for system, text in row["outputs"].items()
        if isinstance(text, str)
    }
    stored = set(
        Output.objects.filter(system__study=study, is_empty=False).values_list("prompt__key", "system__name", "text")
    )
    assert stored == published
    every = [text for _, _, text in stored]
    assert sum("&amp;" in text for text in every) == 1 and max(text.count("ú") for text in every) >= 789
    assert any("</story>" in text for text in every) and any("<<light>" in text for text in every)
    assert any("軍" in text for text in every)


# Size


MEASURED = """
import os, sys, time
os.environ["DJANGO_SETTINGS_MODULE"] = "heval_site.settings"
sys.path.insert(0, {root!r})
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from pathlib import Path
from studies.imports.tables import Options, import_file
from studies.models import Arm, Output, Study
study = Study.objects.create(title="large")
Arm.objects.create(study=study, name="all")
began = time.process_time()
report = import_file(study, Path({path!r}), options=Options(creates_systems=True), by=None)
assert report.is_written, list(report.problems)[:3]
# Not getrusage: what it tells begins with the peak of whoever started this process.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time() - began, int(peak) / 1024, Output.objects.count())
"""


@pytest.mark.slow
def test_100_megabytes_and_100_000_rows_fit_in_a_minute_and_300_megabytes(tmp_path):
    path = tmp_path / "large.csv"
    words = "It was a warm day and nobody had seen the fox come down to the river. " * 14
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["prompt_key", "prompt_text", "system", "text"])
        for n in range(100_000):
            writer.writerow([f"p{n // 5}", f"Prompt {n // 5}", f"s{n % 5}", f"{n} {words}"])
    assert path.stat().st_size > 95e6
    code = MEASURED.format(root=str(ROOT), path=str(path))
    environment = os.environ | {"HEVAL_HOME": str(tmp_path / "home")}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    seconds, megabytes, outputs = map(float, done.stdout.split())
    assert outputs == 100_000 and seconds <= 60 and megabytes <= 300
