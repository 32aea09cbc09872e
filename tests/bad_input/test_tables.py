"""Every reader of a table x everything that happens to tables on their way: the same rows are read, or the file is refused by its row.

Answers have a table of their own (tests/annotators/imports/test_answer_tables).
"""

import csv
import gzip
import io
import zipfile
from collections.abc import Callable

import pytest
from django.db import transaction
from django.utils import timezone

from analysis.metrics.files import ScoresFileSettings, read_scores_file
from analysis.planning.pilots import AnswersRefused, read_answers_file
from annotators.models import Assignment, Recruitment, SampleValue
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.sample import import_sample_demographics, replace_demographic_columns
from boards.services.submissions import read_outputs_file
from studies.imports.check_files import read_test_question_file, store_attention_checks_and_delete_test_runs
from studies.imports.tables import Options, import_stimuli_file
from studies.models import Output, Study
from studies.services.lifecycle import FileRefused
from studies.stimuli.texts import name_key
from tests.builders import add_rating, draft_study, spa_study, user
from tests.players import claimed

pytestmark = pytest.mark.django_db
Rows = list[list[str]]
Table = tuple[list[str], Rows]
TEXTS = ("“Yes”, she said; no\ttab", 'He said "no"', "Third.")
PEOPLE = [f"5f1{letter}" * 6 for letter in "abc"]


def refuse(problems) -> None:
    if problems:
        raise ValueError("\n".join(map(str, problems)))


def stimuli(study: Study, path):
    report = import_stimuli_file(study, path, by=None, options=Options(creates_systems=True))
    refuse(report.problems)
    return sorted(Output.objects.filter(system__name="new").values_list("prompt__key", "text"))


def scores(study, path):
    found = read_scores_file(study, path.name, path.read_bytes(), ScoresFileSettings(is_partial=True))
    # The name of a metric is the one of the file.
    return [(name_key(each.column), sorted(each.by_output.values())) for each in found.columns]


def checks(study, path):
    store_attention_checks_and_delete_test_runs(study, path.name, path.read_bytes(), by=None)
    section = study.sections.get(purpose="attention")
    return [(one.key, one.text, one.scale["options"]) for one in section.questions.order_by("position")]


def known_questions(study, path):
    section = study.sections.get(purpose="live")
    found = read_test_question_file(section, section.questions.get(), path.name, path.read_bytes())
    refuse(found.problems)
    return [(one.prompt, one.text) for one in found.questions]


def submission(study, path):
    return read_outputs_file(path.name, path.read_bytes(), ["p000", "p001", "p002"]).texts


def pilot(study, path):
    found = read_answers_file(path.name, path.read_bytes())
    return found.values, found.people, found.prompts


def panel_file(channel: str, settings=None):
    def read(study, path):
        link = Recruitment(channel=channel, settings=settings or {})
        found = REGISTRY[channel].read_export(link, path.read_text(encoding="utf-8-sig"), "60ab" * 6)
        return [(one.person, one.state) for one in found]

    return read


def sample(study, path):
    launched = spa_study(user("owner"), target_n=24)
    link = Recruitment.objects.create(study=launched, channel="prolific", pool="panel")
    for person in PEOPLE:
        claimed(launched, person, link)
    Assignment.objects.update(started_at=timezone.now(), submitted_at=timezone.now())
    replace_demographic_columns(launched, [("Age", "number", True)], by=None)
    import_sample_demographics(link, path.read_text(encoding="utf-8-sig"), "Participant id", by=None)
    return sorted(SampleValue.objects.values_list("value", flat=True))


NAMED = {"file_person": "Person", "file_state": "State", "file_words": "Paid = approved"}
KEYS = ("p000", "p001", "p002")
# The function that reads a file, and a good table of three rows.
READERS: dict[str, tuple[Callable, Table]] = {
    "stimuli": (stimuli, (["prompt_key", "system", "text"], [[key, "new", text] for key, text in zip(KEYS, TEXTS, strict=True)])),
    "scores": (scores, (["prompt", "system", "metric"], [[key, "ada", str(n)] for n, key in enumerate(KEYS)])),
    "submission": (submission, (["prompt", "output"], [[key, text] for key, text in zip(KEYS, TEXTS, strict=True)])),
    "answers of a pilot": (pilot, (["annotator", "prompt", "preferred"], [[f"w{n}", key, "xy"[n % 2]] for n, key in enumerate(KEYS)])),
    "attention checks": (checks, (["key", "text", "answers", "right"], [[f"c{n}", text, "Yes | No", "No"] for n, text in enumerate(TEXTS)])),
    "test questions": (known_questions, (["prompt", "text", "expected"], [[key, text, "low"] for key, text in zip(KEYS, TEXTS, strict=True)])),
    "file of Prolific": (
        panel_file("prolific"),
        (["Submission id", "Participant id", "Status", "Started at"], [[f"66f{n}" * 6, person, "APPROVED", "2026-11-20T10:00:00Z"] for n, person in enumerate(PEOPLE)]),
    ),
    "file of another panel": (panel_file("generic", NAMED), (["Person", "State"], [[person, "Paid"] for person in PEOPLE])),
    "sample": (sample, (["Participant id", "Age"], [[person, str(30 + n)] for n, person in enumerate(PEOPLE)])),
}  # fmt: skip
# Their text is pasted or decoded before it is read.
TEXT_READERS = {"file of Prolific", "file of another panel", "sample"}


def as_csv(
    table: Table, mark=",", end="\n", before="", encoding="utf-8", quoting=csv.QUOTE_MINIMAL, name="a.csv", blank=""
) -> tuple[str, bytes]:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=mark, lineterminator=end, quoting=quoting)
    writer.writerows([table[0], *table[1]])
    return name, (before + out.getvalue() + blank).encode(encoding)


def zipped(name: str):
    def write(table: Table) -> tuple[str, bytes]:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr(name, as_csv(table)[1])
            archive.writestr("__MACOSX/._a.csv", b"x")
        return "a.zip", out.getvalue()

    return write


def with_names(change: Callable[[str], str]) -> Callable[[Table], tuple[str, bytes]]:
    return lambda table: as_csv(([change(name) for name in table[0]], table[1]))


def with_rows(change: Callable[[list[str], Rows], Table]) -> Callable[[Table], tuple[str, bytes]]:
    return lambda table: as_csv(change(*table))


def full_width(cell: str) -> str:
    return "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in cell)


def with_keys(change: Callable[[str], str]) -> Callable[[Table], tuple[str, bytes]]:
    return with_rows(
        lambda head, rows: (head, [[change(cell) if cell in KEYS else cell for cell in row] for row in rows])
    )


# How a file is written, and '' if the same rows are read, or words of the refusal.
ARTEFACTS: dict[str, tuple[Callable[[Table], tuple[str, bytes]], str]] = {
    "semicolons": (lambda table: as_csv(table, ";"), ""),
    "tabs": (lambda table: as_csv(table, "\t", name="a.tsv"), ""),
    "bars": (lambda table: as_csv(table, "|"), ""),
    "Excel": (lambda table: as_csv(table, ";", "\r\n", before="\ufeff"), ""),
    "sep=;": (lambda table: as_csv(table, ";", before="sep=;\n"), ""),
    "every cell in quotes": (lambda table: as_csv(table, quoting=csv.QUOTE_ALL), ""),
    "UTF-16": (lambda table: as_csv(table, "\t", encoding="utf-16", name="a.txt"), ""),
    "gzip": (lambda table: ("a.csv.gz", gzip.compress(as_csv(table)[1])), ""),
    "zip": (zipped("a.csv"), ""),
    "zipped folder": (zipped("folder/a.csv"), ""),
    "blank lines": (lambda table: as_csv(table, blank="\n\n"), ""),
    "names in capitals": (with_names(str.upper), ""),
    "names with blanks": (with_names(lambda name: f" {name} "), ""),
    "names in full width": (with_names(full_width), ""),
    "numbers of rows": (with_rows(lambda head, rows: (["", *head], [[str(n), *row] for n, row in enumerate(rows)])), ""),
    "Unnamed: 0": (with_rows(lambda head, rows: (["Unnamed: 0", *head], [[str(n), *row] for n, row in enumerate(rows)])), ""),
    "prompts in capitals": (with_keys(str.upper), ""),
    "prompts with blanks": (with_keys(lambda key: f" {key} "), ""),
    "prompts in full width": (with_keys(full_width), ""),
    "header repeated": (with_rows(lambda head, rows: (head, [*rows[:1], head, *rows[1:]])), "epeats the header"),
    "title line": (with_rows(lambda head, rows: (["Results of May"], [head, *rows])), "Remove the lines above the header"),
}  # fmt: skip
BYTES_ONLY = {"UTF-16", "gzip", "zip", "zipped folder"}
# These compare names of prompts with stored ones. Texts with names that look alike are refused, and a pilot has no stored prompts.
NAMES_PROMPTS = {"scores", "submission", "test questions"}


def concerns(artefact: str, reader: str) -> bool:
    if artefact.startswith("prompts "):
        return reader in NAMES_PROMPTS
    return not (artefact in BYTES_ONLY and reader in TEXT_READERS)


@pytest.fixture
def study():
    made = draft_study(systems=("ada", "bo"), prompts=3, contact="", consent="")
    add_rating(made, position=1)
    return made


def read(study: Study, reader: str, name: str, data: bytes, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    with transaction.atomic():
        try:
            return READERS[reader][0](Study.objects.get(pk=study.pk), path)
        finally:
            transaction.set_rollback(True)


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_reads_what_programs_write(study, tmp_path, reader):
    plain = read(study, reader, *as_csv(READERS[reader][1]), tmp_path)
    assert len(plain) >= 1
    for artefact, (write, said) in ARTEFACTS.items():
        if not concerns(artefact, reader):
            continue
        try:
            found = read(study, reader, *write(READERS[reader][1]), tmp_path)
        except (FileRefused, AnswersRefused, ValueError) as refused:
            words = "\n".join(map(str, getattr(refused, "problems", None) or [refused]))
            assert said and said in words, (artefact, words)
        else:
            assert not said and found == plain, (artefact, found)
