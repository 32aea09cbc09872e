"""Read an exported panel file of unknown format: the researcher names its columns and the meaning of its words."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar

from django import forms

from annotators.models.constants import (
    APPROVED,
    EXPIRED,
    MAX_EXTERNAL_ID_LENGTH,
    REJECTED,
    RETURNED,
    SUBMITTED,
    UNKNOWN,
    WORKING,
)
from annotators.recruitment.panels import SubmissionSnapshot
from studies.stimuli.columns import Columns
from studies.stimuli.rows import Rows, TableLimits, TableProblems, read_rows
from studies.stimuli.texts import is_blank, name_key

KNOWN_STATES = (SUBMITTED, APPROVED, REJECTED, RETURNED, EXPIRED, WORKING)
FIELD_NAMES = ("file_person", "file_session", "file_state", "file_words", "file_code")
COLUMNS = {"person": "file_person", "session": "file_session", "state": "file_state", "code": "file_code"}
LIMITS = TableLimits(bytes=64 * 1024 * 1024, rows=100_000, columns=1_000)


def parse_status_meanings(text: str) -> dict[str, str]:
    """Return the meaning of each word, by its normalised form. Raises ValueError naming the line."""
    meanings: dict[str, str] = {}
    lines: dict[str, int] = {}
    for n, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        word, is_told, meaning = line.rpartition("=")
        if not is_told or not name_key(word):
            raise ValueError(f"Line {n} has no word with a meaning. Write both, for example “Completed = submitted”.")
        if (meaning := meaning.strip().lower()) not in KNOWN_STATES:
            raise ValueError(
                f"Line {n}: “{meaning[:40]}” is not a known meaning. Use one of {', '.join(KNOWN_STATES)}."
            )
        if (earlier_line := lines.setdefault(name_key(word), n)) != n:
            raise ValueError(
                f"Line {n}: “{word.strip()[:40]}” is already in line {earlier_line}. Remove one of these lines."
            )
        meanings[name_key(word)] = meaning
    return meanings


class FileColumnsForm(forms.Form):
    """Settings for reading a panel's file. Without ``file_person`` no file can be read."""

    parts: ClassVar[dict[str, tuple[str, tuple[str, ...]]]] = {
        "The panel's exported file": (
            "Enter the column names of its first row. The panel page then accepts the file and compares it "
            "with heval's data. Leave empty if there is no file.",
            FIELD_NAMES,
        )
    }

    file_person = forms.CharField(
        required=False,
        max_length=200,
        label="column with the panel's participant id",
        help_text="The id that the link carries, not a name or an e-mail address.",
    )
    file_session = forms.CharField(
        required=False,
        max_length=200,
        label="column with the submission id",
        help_text="The session or assignment id in the link. Empty: one row per person.",
    )
    file_state = forms.CharField(
        required=False,
        max_length=200,
        label="column with the status",
        help_text=("Empty: every row counts as submitted."),
    )
    file_words = forms.CharField(
        required=False,
        strip=False,
        max_length=4000,
        label="meaning of the words in that column",
        widget=forms.Textarea(attrs={"rows": 4, "cols": 50}),
        help_text=(
            f"One per line, for example “Completed = submitted”. Meanings: {', '.join(KNOWN_STATES)}. "
            "Words that are not listed change nothing and are shown as they are."
        ),
    )
    file_code = forms.CharField(required=False, max_length=200, label="column with the code that the person entered")

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.move_file_fields_last()

    def move_file_fields_last(self) -> None:
        self.order_fields([name for name in self.fields if name not in FIELD_NAMES])

    def clean_file_words(self):
        meanings = self.cleaned_data["file_words"]
        try:
            parse_status_meanings(meanings)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return "\n".join(meanings.splitlines())

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        filled_in = [name for name in FIELD_NAMES if cleaned.get(name)]
        if filled_in and "file_person" not in filled_in and "file_person" not in self.errors:
            self.add_error("file_person", "Enter this column. No file can be read without it.")
        for name, other_name, message in (
            ("file_state", "file_words", "A column with the status is named. Enter the meaning of its words here."),
            ("file_words", "file_state", "The words have meanings, but no column. Name the column that contains them."),
        ):
            if name in filled_in and other_name not in filled_in and other_name not in self.errors:
                self.add_error(other_name, message)
        return cleaned


def has_file_column_settings(settings: Mapping[str, Any]) -> bool:
    """Return whether the settings describe how to read the panel's file."""
    return bool(settings.get("file_person"))


def parse_submissions_file(
    settings: Mapping[str, Any], text: str, id_pattern: re.Pattern[str] | None = None
) -> list[SubmissionSnapshot]:
    """Return the submissions of a file with these columns, in its order.

    Identical rows count once.
    ``id_pattern``: the pattern of the panel's ids, if known. Raises ValueError with the row, as a spreadsheet counts it, and
    the column.
    """
    if not has_file_column_settings(settings):
        raise ValueError(
            "This link's settings do not name the columns of the panel's file. Enter them in the link's settings first."
        )
    column_settings = {field_name: settings[field] for field_name, field in COLUMNS.items() if settings.get(field)}
    # Two settings may name the same column with different capitalisation.
    canonical = {name_key(name): name for name in column_settings.values()}
    columns = {field_name: canonical[name_key(name)] for field_name, name in column_settings.items()}
    meanings = parse_status_meanings(settings.get("file_words") or "")
    table = read_panel_table(text, list(canonical.values()))
    submissions: dict[tuple[str, str], tuple[int, SubmissionSnapshot]] = {}
    for number, snapshot in _read_submissions(table, columns, meanings, id_pattern):
        row, earlier = submissions.setdefault((snapshot.person, snapshot.submission), (number, snapshot))
        if earlier.state != snapshot.state:
            subject = (
                f"the submission {snapshot.submission} of {snapshot.person}"
                if "session" in columns
                else snapshot.person
            )
            state = f"{earlier.word} ({earlier.state}) in row {row} and {snapshot.word} ({snapshot.state}) here"
            table.problems.add(number, columns["state"], f"{subject} is {state}. Correct one of them.")
    refuse_with_problems(table.problems)
    return [snapshot for _, snapshot in submissions.values()]


def _read_submissions(
    table: Rows, columns: Mapping[str, str], meanings: Mapping[str, str], ids: re.Pattern[str] | None
) -> Iterator[tuple[int, SubmissionSnapshot]]:
    """Yield each row that contains a submission, with its number."""
    for row in table:
        cells = {field_name: row.values[column].strip() for field_name, column in columns.items()}
        faults = [
            (columns[field_name], _describe_fault(cells[field_name], ids))
            for field_name in ("person", "session")
            if field_name in cells
        ]
        for column, fault in faults:
            if fault:
                table.problems.add(row.number, column, fault)
        if not any(fault for _, fault in faults):
            word = cells.get("state", "")
            state = meanings.get(name_key(word), UNKNOWN) if "state" in columns else SUBMITTED
            session = cells.get("session", cells["person"])
            yield (
                row.number,
                SubmissionSnapshot("", session, cells["person"], state, word=word, code=cells.get("code", "")),
            )


def _describe_fault(cell: str, ids: re.Pattern[str] | None) -> str:
    if is_blank(cell):
        return "the cell is empty. Fill it in, or remove the row."
    if len(cell) > MAX_EXTERNAL_ID_LENGTH:
        return f"the cell has {len(cell)} characters, but an id has at most {MAX_EXTERNAL_ID_LENGTH}. Correct the cell."
    return f"“{cell}” is not an id of this panel. Correct the cell." if ids and not ids.fullmatch(cell) else ""


def read_panel_table(text: str, required_columns: Collection[str], *, may_be_empty: bool = False) -> Rows:
    """Return the rows of a file that a panel exports, whatever separates its cells."""
    return read_rows(
        "export.csv", text.encode(), columns=Columns(required_columns), limits=LIMITS, may_be_empty=may_be_empty
    )


def refuse_with_problems(problems: TableProblems, next_step: str = "") -> None:
    """Raise ValueError with the first problem, the number of further ones, and what to do, if there is any problem."""
    if problems:
        first, n_further = str(problems.first[0]), problems.count - 1
        more = f" There are {n_further} more errors like these." if n_further else ""
        raise ValueError(f"{first[:1].upper()}{first[1:]}{more} {next_step}".strip())
