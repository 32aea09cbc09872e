"""The lines of columns, cells, images and pairs in a table of stimuli."""

from studies.imports.tables import Options
from tests.messages.importers.scenarios import GOOD, IMAGE, TABLES, bad, file, pairs, shown_by
from tests.messages.lines import FILE
from tests.studies.imports.files import HEAD, lines, table


def options_of(kind, **given):
    return lambda: shown_by(lambda: kind(**given))


WIDE = "prompt_key,prompt_text,output:ada\n"
LINES = {
    f"{TABLES}:parse_stimulus_columns": [
        ("two formats are mixed", "one system with a text", bad("mixed shapes")),
        ("no column text, image or is_empty beside the system", "the columns found are", bad("no text column")),
        ("no column prompt_key (or key)", "the columns found are", bad("no header")),
        ("the columns “prompt” and “prompt_text” mean the same", FILE, bad("alias twice")),
    ],
    f"{TABLES}:_prompt": [
        ("column “prompt_key”: must not be empty", FILE, bad("no key")),
        ("“english!” is not a language tag", "such as en or pt-BR", bad("language odd")),
    ],
    f"{TABLES}:_attributes": [
        ("must be an object (JSON lines)", "In CSV, use columns such as", bad("attributes no object"))
    ],
    f"{TABLES}:_written_outputs": [
        ("is missing: name the system that made this text or image", FILE, bad("no system column"))
    ],
    f"{TABLES}:_wide_outputs": [
        ("must be an object of outputs by system", "such as", bad("outputs no object")),
        (
            "has 501 systems. At most 500 are allowed",
            FILE,
            file(lines([{"prompt_key": "p1", "outputs": {f"s{n}": "a" for n in range(501)}}]), "t.jsonl"),
        ),
        ("has unknown parts: txt", "Allowed are", bad("output of odd parts")),
    ],
    f"{TABLES}:_output": [
        ("names no system", FILE, bad("no system")),
        ("is given together with a text", "an output is either a text or an image", bad("text and image")),
        (
            "marks the output as empty, but it has a text",
            FILE,
            file(HEAD.replace("text\n", "text,is_empty\n") + "p1,P,ada,a,yes\n"),
        ),
        ("the output of bo is empty", "set is_empty or allow empty outputs", bad("blank wide cell")),
    ],
    f"{TABLES}:_batch": [
        ("names a batch", "remove the column", bad("unwanted batches")),
        ("is missing: you ticked “The file contains ready-made batches”", FILE, file(GOOD, makes_batches=True)),
        ("column “batch”: must not be empty", FILE, file("batch," + WIDE + " ,p1,P,a\n", makes_batches=True)),
    ],
    f"{TABLES}:parse_non_negative_integer_cell": [
        ("must be a whole number from 0 to 32,767, not 'x'", "must be a whole number", bad("sample a word"))
    ],
    f"{TABLES}:_flag": [("must be true or false, not 'maybe'", "must be true or false", bad("flag odd"))],
    f"{TABLES}:_format": [
        ("must be one of plain, markdown, turns, not “html”", "must be one of", bad("format unknown"))
    ],
    f"{TABLES}:_language": [
        (
            "“deutsch!” is not a language tag",
            "such as en or pt-BR",
            file(HEAD.replace("text\n", "text,output_language\n") + "p1,P,ada,a,deutsch!\n"),
        ),
    ],
    f"{TABLES}:_encoded": [
        ("the image “img/a.png” has no file", "import a zip with the table and its images", file(table(IMAGE))),
    ],
    f"{TABLES}:__post_init__": [
        (
            "a file of single texts cannot contain ready-made batches",
            "Choose makes_pairs or makes_batches",
            options_of(Options, makes_pairs=True, makes_batches=True),
        ),
        (
            "the maximum difference in length and the maximum number of pairs",
            "whole numbers from 0",
            options_of(Options, max_length_difference=-1),
        ),
        (
            "groups_by must be empty or one of document, doc_id, dialogue, topic, source",
            "must be empty or one of",
            options_of(Options, groups_by="page"),
        ),
    ],
    f"{TABLES}:pair_texts_by_attributes_and_length": [
        ("pairs need exactly two systems; the file has 1: ada", FILE, pairs("system,text\nada,One.\n")),
        (
            "no two texts of the two systems have equal attributes",
            FILE,
            pairs("system,text\nada,One.\nbo,Two words more than that.\n"),
        ),
    ],
    f"{TABLES}:_candidates": [
        ("names no system: each row needs a system and a text", FILE, pairs("system,text\n,One.\n")),
        ("is empty: there is nothing to pair", FILE, pairs("system,text\nada,\n")),
    ],
    f"{TABLES}:_attribute": [
        (
            "column “tense”: is missing: texts are paired by it",
            FILE,
            pairs("system,text\nada,One.\nbo,Two.\n", pairs_by=("tense",)),
        ),
    ],
}
