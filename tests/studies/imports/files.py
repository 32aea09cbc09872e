"""Files that the tests import, and what an import left in a study."""

import csv
import gzip
import io
import json
import zipfile

from studies.imports.tables.result import ImportReport
from studies.models import Output, Placement


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


def wide(batch, prompt, position=None, **outputs):
    row = {"batch": batch, "prompt_key": prompt, "prompt_text": f"Prompt {prompt}", "outputs": outputs}
    return row if position is None else row | {"position": position}


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


LONG = [long("p1", "ada", "One."), long("p1", "bo", "Two."), long("p2", "ada", "Three."), long("p2", "bo", "Four.")]
IMAGE_ROW = {"prompt_key": "p1", "prompt_text": "A square", "system": "ada", "image": "a.png"}
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
    ("double header", b"prompt_key,text,Text ,system\np1,a,b,ada\n", "t.csv", 1, "have the same name"),
    ("alias twice", b"prompt_key,prompt,prompt_text,system,text\np1,a,b,ada,x\n", "t.csv", 2, "mean the same"),
    ("ragged short", (GOOD + "p2,P,ada\n").encode(), "t.csv", 3, "has 3 cells"),
    ("ragged long", (GOOD + "p2,P,ada,a,b\n").encode(), "t.csv", 3, "has 5 cells"),
    ("unclosed quote", (HEAD + 'p1,P,ada,"One.\n').encode(), "t.csv", 2, "never closed"),
    (
        "unclosed quote late",
        (GOOD * 1 + "".join(f"p{n},P,ada,x\n" for n in range(2, 5000)) + 'p5000,P,ada,"x\n').encode(),
        "t.csv",
        5001,
        "never closed",
    ),
    ("trailing comma", b"prompt_key,prompt_text,system,text,\np1,P,ada,x,y\n", "t.csv", 2, "has no name"),
    ("array", b'[{"prompt_key": "p1"}', "t.jsonl", 2, "cut off"),
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
    ("gzip", gzip.compress(GOOD.encode(), mtime=0)[:-4], "t.csv", None, "cut off"),
    ("excel", b"PK\x03\x04 and so on", "t.csv", None, "zip archive"),
    ("not a zip", b"PK\x03\x04 and so on", "t.zip", None, "not a zip"),
    ("other kind", b"x", "t.docx", None, "not a table"),
    ("no Parquet", b"x", "t.parquet", None, "no Parquet file"),
    ("huge cell", (HEAD + f"p1,P,ada,{'x' * 1_000_001}\n").encode(), "t.csv", 2, "1,000,000 are allowed"),
    ("control character", (HEAD + "p1,P,ada,a\x1bb\n").encode(), "t.csv", 2, "control character"),
    ("no key", (HEAD + " ,P,ada,a\n").encode(), "t.csv", 2, "must not be empty"),
    ("zero width key", (HEAD + "\u200b,P,ada,a\n").encode(), "t.csv", 2, "empty"),
    ("hidden in key", (HEAD + "p\u200b1,P,ada,a\n").encode(), "t.csv", 2, "invisible"),
    ("long key", (HEAD + f"{'p' * 101},P,ada,a\n").encode(), "t.csv", 2, "100 are allowed"),
    ("no system", (HEAD + "p1,P,,a\n").encode(), "t.csv", 2, "names no system"),
    ("no system column", b"prompt_key,prompt_text,text\np1,P,a\n", "t.csv", 2, "name the system"),
    (
        "no text column",
        b"prompt_key,prompt_text,system,score\np1,P,ada,1\n",
        "t.csv",
        2,
        "no column text, image or is_empty",
    ),
    (
        "no text in an object",
        b'{"prompt_key": "p1", "prompt_text": "P", "system": "ada", "story": "a"}\n',
        "t.jsonl",
        1,
        "found are: prompt_key, prompt_text, system, story",
    ),
    ("keys alike in case", (GOOD + "P1,P,ada,Two.\n").encode(), "t.csv", 3, "only in case"),
    ("keys alike in width", (GOOD + "ｐ１,P,ada,Two.\n").encode(), "t.csv", 3, "only in case"),
    ("systems alike", (HEAD + "p1,P,Ada,a\n").encode(), "t.csv", 2, "only in case"),
    ("same output twice", (GOOD + "p1,P,ada,One.\n").encode(), "t.csv", 3, "already in row 2, with the same text"),
    (
        "two outputs unnumbered",
        (GOOD + "p1,P,ada,Two.\n").encode(),
        "t.csv",
        3,
        "of one system for a prompt in a column “sample”",
    ),
    ("another prompt text", (GOOD + "p1,Q,bo,Two.\n").encode(), "t.csv", 3, "differs from row 2"),
    ("mixed shapes", b"prompt_key,system,text,output:ada\np1,ada,a,b\n", "t.csv", 2, "mixed"),
    (
        "outputs no object",
        b'{"prompt_key": "p1", "prompt_text": "P", "outputs": ["a"]}\n',
        "t.jsonl",
        1,
        "must be an object",
    ),
    (
        "output a number",
        b'{"prompt_key": "p1", "prompt_text": "P", "outputs": {"ada": 7}}\n',
        "t.jsonl",
        1,
        "must be a text, not a number",
    ),
    (
        "output of odd parts",
        b'{"prompt_key": "p1", "prompt_text": "P", "outputs": {"ada": {"txt": "a"}}}\n',
        "t.jsonl",
        1,
        "has unknown parts: txt",
    ),
    ("blank wide cell", b"prompt_key,prompt_text,output:ada,output:bo\np1,P,a,\n", "t.csv", 2, "bo is empty"),
    ("key a float", b'{"prompt_key": 1.5, "prompt_text": "P"}\n', "t.jsonl", 1, "must be a text"),
    (
        "sample a word",
        (HEAD.replace("text\n", "text,sample\n") + "p1,P,ada,a,x\n").encode(),
        "t.csv",
        2,
        "whole number",
    ),
    (
        "sample negative",
        (HEAD.replace("text\n", "text,sample\n") + "p1,P,ada,a,-1\n").encode(),
        "t.csv",
        2,
        "whole number",
    ),
    (
        "sample arabic",
        (HEAD.replace("text\n", "text,sample\n") + "p1,P,ada,a,٣\n").encode(),
        "t.csv",
        2,
        "whole number",
    ),
    (
        "format unknown",
        (HEAD.replace("text\n", "text,format\n") + "p1,P,ada,a,html\n").encode(),
        "t.csv",
        2,
        "plain, markdown, code, turns",
    ),
    (
        "language odd",
        (HEAD.replace("text\n", "text,language\n") + "p1,P,ada,a,english!\n").encode(),
        "t.csv",
        2,
        "language tag",
    ),
    (
        "flag odd",
        (HEAD.replace("text\n", "text,is_empty\n") + "p1,P,ada,a,maybe\n").encode(),
        "t.csv",
        2,
        "true or false",
    ),
    (
        "text and image",
        (HEAD.replace("text\n", "text,image\n") + "p1,P,ada,a,b.png\n").encode(),
        "t.csv",
        2,
        "either a text or an image",
    ),
    ("unwanted batches", b"batch,prompt_key,prompt_text,output:ada\nb1,p1,P,a\n", "t.csv", 2, "ready-made batches"),
    (
        "attributes no object",
        b'{"prompt_key": "p1", "prompt_text": "P", "attributes": "x"}\n',
        "t.jsonl",
        1,
        "must be an object",
    ),
]


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


def sound(report) -> ImportReport:
    assert [str(problem) for problem in report.problems] == []
    return report


def texts(study) -> dict:
    rows = Output.objects.filter(system__study=study)
    return {(o[0], o[1], o[2]): o[3] for o in rows.values_list("system__name", "prompt__key", "sample", "text")}


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
