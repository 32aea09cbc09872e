"""The lines of columns, cells, images and pairs in a table of stimuli."""

from studies.imports.tables import Options
from studies.imports.tables.mapping import parse_mapping
from tests.messages.importers.scenarios import GOOD, IMAGE, bad, file, pairs, shown_by
from tests.messages.lines import At
from tests.studies.imports.files import HEAD, lines, table


def options_of(kind, **given):
    return lambda: shown_by(lambda: kind(**given))


def mapped(*columns):
    return lambda: shown_by(lambda: parse_mapping(columns))


WIDE = "prompt_key,prompt_text,output:ada\n"
IMPORTERS = {
    "two formats are mixed": bad("mixed shapes"),
    "no column text": bad("no text column"),
    "no column prompt_key": bad("no header"),
    "parse_stimulus_columns: the columns “…” and “…” mean": bad("alias twice"),
    "_prompt: must not be empty": At("column “prompt_key”", bad("no key")),
    "_prompt: “…” is not a language": bad("language odd"),
    "must be an object (JSON": bad("attributes no object"),
    "is missing: name": bad("no system column"),
    "must be an object of outputs": bad("outputs no object"),
    "has … systems": file(lines([{"prompt_key": "p1", "outputs": {f"s{n}": "a" for n in range(501)}}]), "t.jsonl"),
    "has unknown parts": bad("output of odd parts"),
    "names no system.": bad("no system"),
    "is given together": bad("text and image"),
    "marks the output": file(HEAD.replace("text\n", "text,is_empty\n") + "p1,P,ada,a,yes\n"),
    "the output of … is empty": bad("blank wide cell"),
    "names a batch": bad("unwanted batches"),
    "is missing: you": file(GOOD, makes_batches=True),
    "_batch: must not be empty": At("column “batch”", file("batch," + WIDE + " ,p1,P,a\n", makes_batches=True)),
    "parse_whole_number: must be a whole": bad("sample a word"),
    "is a word for a missing": file(HEAD + "nan,P,ada,a\n"),
    "maps no column": mapped("prompt"),
    "The column “…” has two": mapped("text=x", "system=x"),
    "Two columns have the role": mapped("text=x", "text=y"),
    "no column …, which is mapped": file(GOOD, columns=("text=z",)),
    "_flag: must be true": bad("flag odd"),
    "_format: must be one of …, not “…”": bad("format unknown"),
    "_language: “…” is not a language": file(
        HEAD.replace("text\n", "text,output_language\n") + "p1,P,ada,a,deutsch!\n"
    ),
    "the image “…” has no file": file(table(IMAGE)),
    "options: a file": options_of(Options, makes_pairs=True, makes_batches=True),
    "options: the maximum": options_of(Options, max_length_difference=-1),
    "options: groups_by must be empty": options_of(Options, groups_by="page"),
    "pairs need exactly": pairs("system,text\nada,One.\n"),
    "no two texts": pairs("system,text\nada,One.\nbo,Two words more than that.\n"),
    "names no system: each": pairs("system,text\n,One.\n"),
    "is empty: there": pairs("system,text\nada,\n"),
    "is missing: texts": At("column “tense”", pairs("system,text\nada,One.\nbo,Two.\n", pairs_by=("tense",))),
}
