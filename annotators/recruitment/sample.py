"""The sample of a study, as a paper's table: declared columns of a panel's demographic file.

A value belongs to a person in a study, and is deleted when the person withdraws. This module reports only counts.
Counts below five are hidden unless the researcher declared otherwise for the column. Counts that would reveal a hidden
count are hidden too.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from statistics import median
from typing import Any

from django.db import transaction
from django.db.models import Q

from annotators.counting import Use, select
from annotators.models import Assignment, Recruitment, SampleColumn, SampleValue
from annotators.places import assign
from annotators.places.exclusions import annotate_is_excluded
from studies.access import Action, check_permission_or_404
from studies.models import Study, audit
from studies.stimuli.numbers import is_number
from studies.stimuli.rows import formula_safe_csv_text
from studies.stimuli.texts import name_key

from .channels import REGISTRY
from .channels.exported_file import read_panel_table, refuse_with_problems

# Panels write these words for unknown or withheld values.
MISSING = frozenset({"", "data expired", "consent revoked", "not applicable", "nan"})
REVOKED = "consent revoked"
SMALL_COUNT = 5
MAX_VALUE_LENGTH = 100


@dataclass(slots=True)
class SampleImportSummary:
    """The result of reading a file.

    ``strangers``: people in it who did not take part by this link; nothing about them is stored. ``not_numbers``: cells of columns
    of numbers with a word, which count as missing; ``words`` are the first of them.
    """

    people: int = 0
    strangers: int = 0
    values: int = 0
    missing: int = 0
    not_numbers: int = 0
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the table. ``n`` and ``percent`` are None if hidden."""

    value: str
    n: int | None
    percent: float | None


@dataclass(frozen=True, slots=True)
class ColumnSummary:
    """One column: ``cells`` for categories; ``median``, ``minimum`` and ``maximum`` for numbers.

    The statistics of a number are None if too few values are known.
    """

    name: str
    kind: str
    people: int
    known: int | None
    missing: int | None
    cells: tuple[Cell, ...] = ()
    median: Decimal | None = None
    minimum: Decimal | None = None
    maximum: Decimal | None = None


# Declaring


def replace_demographic_columns(study: Study, columns: Iterable[tuple[str, str, bool]], *, by) -> None:
    """Declare the columns to keep, before any file is read: (name, kind, whether small counts are shown).

    Values are deleted if their column is no longer declared or has another kind now.
    """
    check_permission_or_404(by, Action.PANEL, study)
    declared = {name: (kind, shows_small) for name, kind, shows_small in columns}
    with transaction.atomic():
        Study.objects.select_for_update(of=("self",), no_key=True).get(pk=study.pk)
        existing = {row.name: row for row in SampleColumn.objects.filter(study=study)}
        if declared == {name: (row.kind, row.shows_small) for name, row in existing.items()}:
            return
        deleted_pks = [
            row.pk for name, row in existing.items() if name not in declared or declared[name][0] != row.kind
        ]
        SampleValue.objects.filter(column__in=deleted_pks).delete()
        SampleColumn.objects.filter(pk__in=deleted_pks).delete()
        new_columns = [
            SampleColumn(study=study, name=name, kind=kind, shows_small=small)
            for name, (kind, small) in declared.items()
        ]
        SampleColumn.objects.bulk_create(
            new_columns, update_conflicts=True, unique_fields=["study", "name"], update_fields=["shows_small"]
        )
        descriptions = [
            f"{name} ({kind}{', small counts shown' if small else ''})" for name, (kind, small) in declared.items()
        ]
        audit.record("declare sample columns", study=study, by=by, columns=descriptions)


# Reading


def import_sample_demographics(
    recruitment: Recruitment, csv_file_text: str, person_column: str, *, by, dry_run: bool = False
) -> SampleImportSummary:
    """Import a file: store the declared columns of people who took part by this link, and nothing about others.

    A newer file replaces older values. Values are deleted if the person revoked consent for them. Raises ValueError
    naming the row and the column.
    """
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    columns = list(SampleColumn.objects.filter(study=recruitment.study).order_by("pk"))
    if not columns:
        raise ValueError("No column is declared yet. Declare the columns to keep first.")
    values_by_person, not_numbers = _read_values(recruitment, csv_file_text, person_column, columns)
    joined = SampleImportSummary(not_numbers=len(not_numbers), words=tuple(dict.fromkeys(not_numbers))[:3])
    people = _find_participants(recruitment, values_by_person)
    joined.people, joined.strangers = len(people), len(values_by_person) - len(people)
    values = [
        SampleValue(column=column, annotator_id=annotator, value=value)
        for person, annotator in people.items()
        for column in columns
        if (value := values_by_person[person][column.pk]) is not None
    ]
    joined.values, joined.missing = len(values), len(people) * len(columns) - len(values)
    if not dry_run:
        with transaction.atomic():
            SampleValue.objects.filter(column__in=columns, annotator__in=people.values()).delete()
            SampleValue.objects.bulk_create(values, batch_size=500)
            audit.record(
                "read sample", study=recruitment.study, by=by, recruitment=recruitment.key, people=joined.people
            )
    return joined


def _read_values(
    recruitment, text: str, person_column: str, columns: list[SampleColumn]
) -> tuple[dict[str, dict[int, str | None]], list[str]]:
    """Return the declared values of each person in the file, None for missing values; and the words in the place of numbers."""
    channel = REGISTRY[recruitment.channel]
    names = {name_key(name): name for name in (person_column, *(column.name for column in columns))}
    table = read_panel_table(text, list(names.values()))
    if not table.columns:
        refuse_with_problems(table.problems, "Correct this row, or the names on this page.")
    values_by_person: dict[str, dict[int, str | None]] = {}
    revoked: set[tuple[str, int]] = set()
    not_numbers: list[str] = []
    for row in table:
        person = channel.normalize_person_id(row.values[names[name_key(person_column)]])
        if not person:
            table.problems.add(row.number, person_column, "the cell is empty. Fill it in, or remove the row.")
            continue
        person_values = values_by_person.setdefault(person, {column.pk: None for column in columns})
        for column in columns:
            cell = row.values[names[name_key(column.name)]].strip()
            if _in_words(cell) in MISSING:
                value = None
            elif len(cell) > MAX_VALUE_LENGTH or not cell.isprintable():
                text = f"the value is longer than {MAX_VALUE_LENGTH} characters, or not text. Correct it."
                table.problems.add(row.number, column.name, text)
                continue
            elif channel.normalize_person_id(cell) == person:
                text = (
                    "this is the person's panel id, which heval does not store. Remove the column from the declaration and "
                    "import again."
                )
                table.problems.add(row.number, column.name, text)
                continue
            elif column.kind == SampleColumn.Kind.NUMBER and not is_number(cell):
                # People who withhold a number write a word, and each panel has its own.
                not_numbers.append(cell)
                value = None
            else:
                value = cell
            if _in_words(cell) == REVOKED:
                revoked.add((person, column.pk))
            person_values[column.pk] = person_values[column.pk] if value is None else value
    refuse_with_problems(table.problems)
    # A person has one row per submission; consent revoked in one row is revoked in all.
    for person, pk in revoked:
        values_by_person[person][pk] = None
    return values_by_person, not_numbers


def _in_words(cell: str) -> str:
    return " ".join(cell.lower().replace("_", " ").split())


def _find_participants(recruitment: Recruitment, person_ids: Iterable[str]) -> dict[str, int]:
    """Return the annotators in the file who came by this link and did not withdraw."""
    keys = {assign.hash_person_id(recruitment.pool, person): person for person in person_ids}
    participants = Assignment.objects.filter(recruitment=recruitment, origin=Assignment.Origin.LIVE, withdrawn_at=None)
    rows = participants.order_by().values_list("annotator__external_id", "annotator").distinct()
    # Query the people who came, not the people in the file: a file of the whole panel would make a very long query.
    return {keys[external]: annotator for external, annotator in rows if external in keys}


# The table


def sample_demographics_table(study: Study) -> list[ColumnSummary]:
    """Return the table of the sample.

    It covers everyone who submitted in time, did not withdraw and was not excluded by hand. Columns are in the order of
    their declaration.
    """
    submitted = select(Use.PROGRESS, Assignment.objects.filter(study=study), [Assignment.Origin.LIVE])
    kept = annotate_is_excluded(submitted).filter(is_excluded=False)
    people = set(kept.values_list("annotator", flat=True))
    columns = list(SampleColumn.objects.filter(study=study).order_by("pk"))
    values: dict[int, list[str]] = {column.pk: [] for column in columns}
    for column, annotator, value in SampleValue.objects.filter(Q(column__in=columns)).values_list(
        "column", "annotator", "value"
    ):
        if annotator in people:
            values[column].append(value)
    return [
        summarize_sample_column(column.name, column.kind, len(people), values[column.pk], column.shows_small)
        for column in columns
    ]


def summarize_sample_column(
    name: str, kind: str, n_people: int, values: list[str], shows_small: bool = False
) -> ColumnSummary:
    """Describe one column of ``n_people``, given the known values.

    >>> summarize_sample_column("Sex", "category", 20, ["Female"] * 12 + ["Male"] * 6).cells
    (Cell(value='Female', n=12, percent=60.0), Cell(value='Male', n=6, percent=30.0))
    """
    missing = n_people - len(values)
    if kind == SampleColumn.Kind.NUMBER:
        numbers = sorted(Decimal(value) for value in values)
        if not numbers or (len(numbers) < SMALL_COUNT and not shows_small):
            return ColumnSummary(name, kind, n_people, *((len(numbers), missing) if not numbers else (None, None)))
        return ColumnSummary(
            name, kind, n_people, len(numbers), missing, (), Decimal(median(numbers)), numbers[0], numbers[-1]
        )
    counted = sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0]))
    hidden = {} if shows_small else {value: n for value, n in counted if n < SMALL_COUNT}
    visible_pairs = [(value, n) for value, n in reversed(counted) if value not in hidden]
    # The sum of the hidden counts is known minus shown. Hide more counts until several values are possible for each.
    while is_told := bool(hidden) and _are_known(hidden.values()):
        if not visible_pairs:
            break
        value, n = visible_pairs.pop(0)
        hidden[value] = n
    visible = tuple(Cell(value, n, round(100 * n / n_people, 1)) for value, n in counted if value not in hidden)
    # Sorted by name, because an order by count would reveal the counts.
    cells = visible + tuple(Cell(value, None, None) for value in sorted(hidden))
    n_known, n_unknown = (None, None) if is_told else (len(values), missing)
    return ColumnSummary(name, kind, n_people, n_known, n_unknown, cells)


def _are_known(counts: Iterable[int]) -> bool:
    """Return whether hidden counts follow from their sum, if a reader knows that each is at least one and below the limit."""
    hidden = list(counts)
    least, most = len(hidden), (SMALL_COUNT - 1) * len(hidden)
    return len(hidden) == 1 or sum(hidden) == least or (max(hidden) < SMALL_COUNT and sum(hidden) == most)


def sample_demographics_csv(columns: list[ColumnSummary]) -> str:
    """Return the table as a file: one row per value, and one row per numeric column."""
    rows: list[list[Any]] = [["column", "value", "n", "percent", "median", "minimum", "maximum"]]
    for column in columns:
        if column.kind == SampleColumn.Kind.NUMBER:
            rows.append(
                [column.name, "", _count_or_hidden(column.known), "", column.median, column.minimum, column.maximum]
            )
        rows += [[column.name, cell.value, _count_or_hidden(cell.n), cell.percent, "", "", ""] for cell in column.cells]
        rows.append([column.name, "(missing)", _count_or_hidden(column.missing), "", "", "", ""])
    return formula_safe_csv_text(rows)


def sample_lines(columns: Iterable[ColumnSummary]) -> Iterable[str]:
    """Yield each column that has known values, in a line."""
    for column in columns:
        if column.cells:
            known = [f"{cell.value} {'(hidden)' if cell.n is None else cell.n}" for cell in column.cells]
            yield f"{column.name}: {', '.join(known)}"
        elif column.median is not None:
            yield f"{column.name}: median {column.median}, from {column.minimum} to {column.maximum}"


def _count_or_hidden(n: int | None) -> int | str:
    return "hidden" if n is None else n
