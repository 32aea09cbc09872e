"""A bad file ends in words that name its row, and nothing of it is stored."""

import gzip
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from studies.imports.bundle_files import bundle_text
from studies.imports.tables import Options, import_stimuli_file, run
from studies.models import Contrast, Output, Study
from studies.services import jobs
from tests import builders
from tests.studies.imports.files import BAD_FILES, HEAD, IMAGE_ROW, rows_of, table, zipped
from tests.studies.stimuli.png import png_with_size

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor(client, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    return client


@pytest.fixture
def shelf(owner):
    """A draft that holds nothing but two systems."""
    return builders.draft_study(owner=owner, systems=("ada", "bo"), prompts=0)


def text_of(response) -> str:
    words = re.sub(r"<[^>]+>", " ", response.content.decode())
    return " ".join(words.replace("&#x27;", "'").replace("&quot;", '"').replace("&amp;", "&").split())


@pytest.mark.parametrize(
    ("data", "name", "row", "said"), [case[1:] for case in BAD_FILES], ids=[case[0] for case in BAD_FILES]
)
def test_the_page_names_the_row_of_a_bad_file(editor, shelf, data, name, row, said):
    before = rows_of(shelf)
    sent = {"file": SimpleUploadedFile(name, data or b"")}
    response = editor.post(reverse("import", args=[shelf.pk]), sent, follow=True)
    assert response.status_code == (200 if data else 400)
    words = text_of(response)
    assert said in words and "Import into the study" not in words
    assert row is None or re.search(rf"Row Column What is wrong .*\b{row:,}\b", words) or f"line {row}" in words, words[
        :800
    ]
    assert rows_of(shelf) == before


SAME_KEYS = {
    "composed": ("caf\u00e9", "cafe\u0301"),
    "blanks": ("p1", " p1 "),
}
ODD_CELLS = {
    "next line": ("a\x85b", False), "line separator": ("a\u2028b", True), "direction": ("\u202eabc\u202c", True), "marks": ("Z\u0351\u0352", True),
    "template": ("{{ 7*7 }}{% x %}", True), "formula": ("=1+1", True), "None": ("None", True), "NA": ("NA", True), "form feed": ("a\x0cb", False),
    "zero width alone": ("\u200b", False), "an unpaired half": ("\ufffd", True),
}  # fmt: skip


@pytest.fixture
def put(shelf, tmp_path):
    def imported(data, name="t.csv"):
        path = tmp_path / name
        path.write_bytes(data)
        return import_stimuli_file(shelf, path, options=Options(), by=None)

    return imported


@pytest.mark.parametrize("keys", SAME_KEYS.values(), ids=SAME_KEYS)
def test_keys_that_are_one_are_one_prompt(shelf, put, keys):
    one, other = keys
    report = put((HEAD + f"{one},P,ada,One.\n{other},P,bo,Two.\n").encode())
    assert report.is_written and Output.objects.filter(system__study=shelf, prompt__key=one).count() == 2
    report = put((HEAD + f"{other},P,ada,Another.\n").encode())
    assert "other content" in str(report.problems.first[0])


@pytest.mark.parametrize(("cell", "is_taken"), ODD_CELLS.values(), ids=ODD_CELLS)
def test_a_cell_is_stored_unchanged_or_named(shelf, put, cell, is_taken):
    report = put(table([{"prompt_key": "new", "prompt_text": "P", "system": "ada", "text": cell}]))
    assert report.is_written is is_taken
    if is_taken:
        assert Output.objects.get(prompt__key="new").text == cell
    else:
        (problem,) = report.problems
        assert (problem.row, problem.column) == (2, "text") and not shelf.prompts.filter(key="new").exists()


def test_a_picture_that_would_fill_the_memory_is_named_by_its_row(shelf, put):
    row = IMAGE_ROW | {"system": "ada", "prompt_key": "new"}
    report = put(zipped({"t.csv": table([row]), "a.png": png_with_size(25_000, 25_000)}), "t.zip")
    (problem,) = report.problems
    assert (problem.row, problem.column) == (2, "image") and "pixels allowed" in problem.text
    assert not report.is_written and not shelf.prompts.filter(key="new").exists()


def test_an_import_for_which_the_memory_does_not_suffice_is_reported_and_undone(editor, shelf, monkeypatch):
    """A worker whose memory is limited gets this error where it would have needed more."""
    from studies.imports.tables import writing

    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(run, "SMALL_BYTES", 10)
    before = rows_of(shelf)
    sent = {"file": SimpleUploadedFile("t.csv", (HEAD + "new,P,ada,One.\n").encode())}
    page = editor.post(reverse("import", args=[shelf.pk]), sent).url
    assert jobs.run_waiting_jobs() == 1
    editor.post(page, {"confirm": "1"})
    with monkeypatch.context() as scarce:
        scarce.setattr(writing.StimuliWriter, "_store", no_memory)
        assert jobs.run_waiting_jobs() == 1
    assert "MemoryError" in text_of(editor.get(page)) and rows_of(shelf) == before
    editor.post(reverse("import", args=[shelf.pk]), sent | {"file": SimpleUploadedFile("t.csv", b"prompt_key\nx\n")})
    assert jobs.run_waiting_jobs() == 1


BUNDLES = {
    "UTF-16": (lambda text: text.encode("utf-16"), "not UTF-8"),
    "Latin-1": (lambda text: text.replace("Take your time", "\xe9").encode("latin-1"), "not UTF-8"),
    "gzip": (lambda text: gzip.compress(text.encode(), mtime=0), "not UTF-8"),
    "zip": (lambda text: zipped({"a.png": b"x"}), "not UTF-8"),
    "empty": (lambda text: b"", "empty"),
    "blank": (lambda text: b" \n", "empty"),
    "null": (lambda text: b"null", "one JSON object"),
    "a text": (lambda text: b'"x"', "one JSON object"),
    "cut off": (lambda text: text.encode()[:-20], "The file is not JSON at line"),
    "twice": (lambda text: text.encode() * 2, "The file is not JSON at line"),
    "surrogate": (
        lambda text: text.replace("Take your time", "\\ud800").encode(),
        "study.instructions: contains half of a surrogate",
    ),
    "NUL": (lambda text: text.replace("Take your time", "\\u0000").encode(), "study.instructions: contains a NUL"),
    "NaN": (
        lambda text: text.replace('"seed": 7', '"seed": NaN').encode(),
        "study.seed: contains NaN, which is not a number",
    ),
    "deep": (lambda text: b"[" * 100_000, "levels deep"),
}


@pytest.mark.parametrize(("data", "said"), BUNDLES.values(), ids=BUNDLES)
def test_the_page_refuses_what_is_no_bundle_and_makes_no_study(editor, study, data, said):
    sent = {"file": SimpleUploadedFile("b.json", data(bundle_text(study)))}
    response = editor.post(reverse("bundle_upload"), sent)
    assert response.status_code == 400 and said in text_of(response) and Study.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("texts.csv", b"prompt;alpha;beta\nA tale;One;Two\n"),
        ("texts.jsonl", b'{"instruction": "A tale", "output": "One"}\n'),
        ("texts.json", b'[{"instruction": "A tale", "output": "One", "generator": "alpha"}]'),
    ],
)
def test_the_page_of_bundles_knows_a_table_and_leads_to_a_new_study(editor, study, name, data):
    response = editor.post(reverse("bundle_upload"), {"file": SimpleUploadedFile(name, data)})
    said = text_of(response)
    assert response.status_code == 400 and "This file is a table" in said and "not JSON" not in said
    assert "New study from your texts" in said and Study.objects.count() == 1


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"manner": "characters", "limit": "1000000000"}, "less than or equal to"),
        ({"manner": "characters", "limit": "9" * 5000}, "whole number"),
        ({"manner": "\x00"}, "not one of the available choices"),
        ({"manner": "none", "ends": "x"}, "not one of the available choices"),
        ({"manner": "none", "minimum_words": "-1"}, "greater than or equal to 0"),
        ({"manner": "longest_of_others", "trimmed": ["\x00"]}, "not one of the available choices"),
        ({}, "required"),
    ],
)
def test_a_preparation_that_cannot_be_is_refused(editor, study, sent, said):
    address = reverse("import_preparation", args=[study.pk])
    response = editor.post(address, {"ends": "whole", "act": "look"} | sent)
    assert response.status_code == 400 and said in text_of(response)
    assert not Contrast.objects.filter(study=study, criterion=said).exists()
