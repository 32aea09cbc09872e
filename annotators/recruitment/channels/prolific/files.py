"""Prolific without a token: read its exported table of submissions, and write orders as text for its forms."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from annotators.models.constants import SUBMITTED
from annotators.recruitment.panels import BulkText, Order, PanelBusy, SubmissionSnapshot

from .client import ID_PATTERN, auto_approval_time, submission_state

REQUIRED_COLUMNS = ("Submission id", "Participant id", "Status")
MOST_ROWS = 100_000


def parse_submissions_csv(text: str, task: str = "") -> list[SubmissionSnapshot]:
    """Return the submissions of an export, in its order.

    The file's content names no study; its file name does, and the researcher chooses it. Raises ValueError with the
    row, as a spreadsheet counts it, and the column.
    """
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), strict=True)
    names: dict[str, int] = {}
    first_lines: dict[str, int] = {}
    submissions = []
    try:
        for line, row in enumerate(reader, 1):
            if not any(cell.strip() for cell in row):
                continue
            if not names:
                names = _columns(row)
                continue
            if len(row) <= max(names[name] for name in (n.lower() for n in REQUIRED_COLUMNS)):
                raise ValueError(
                    f"Row {line} has {len(row)} columns; the first row has {max(names.values()) + 1}. Export the file again."
                )
            cells = {name: row[index].strip() for name, index in names.items() if index < len(row)}
            for name in ("submission id", "participant id"):
                if not ID_PATTERN.fullmatch(cells[name]):
                    raise ValueError(
                        f"Row {line}, {name.capitalize()}: “{cells[name][:40]}” is not a Prolific id. Export the file again."
                    )
            if not cells["status"]:
                raise ValueError(f"Row {line}, Status: the cell is empty. Export the file again.")
            submission = cells["submission id"].lower()
            if submission in first_lines:
                raise ValueError(
                    f"Row {line}: the submission {submission} is already in row {first_lines[submission]}. Remove one of them."
                )
            first_lines[submission] = line
            if len(first_lines) > MOST_ROWS:
                raise ValueError(f"The file has more than {MOST_ROWS} rows. Split it into several files.")
            state, submitted = submission_state(cells["status"]), _parse_time(cells, "completed at", line)
            reviewed = _parse_time(cells, "reviewed at", line)
            submissions.append(
                SubmissionSnapshot(
                    task=task,
                    submission=submission,
                    person=cells["participant id"].lower(),
                    state=state,
                    word=cells["status"],
                    code=_cell_value(cells.get("completion code", "")),
                    started_at=_parse_time(cells, "started at", line),
                    submitted_at=submitted,
                    decided_at=None if state == SUBMITTED else reviewed,
                    decides_itself_at=auto_approval_time(state, submitted),
                )
            )
    except csv.Error as error:
        raise ValueError(f"Row {reader.line_num} is not valid CSV ({error}). Export the file again.") from None
    if not names:
        raise ValueError("The file is empty. Export it again.")
    return submissions


def _columns(row: Sequence[str]) -> dict[str, int]:
    indexes = {name.strip().lower(): index for index, name in enumerate(row) if name.strip()}
    if missing := [name for name in REQUIRED_COLUMNS if name.lower() not in indexes]:
        raise ValueError(
            f"Row 1 does not name the column {' and '.join(missing)}. Choose the file that Prolific exports "
            "from a study's submissions."
        )
    return indexes


def _cell_value(cell: str) -> str:
    return "" if cell.lower() in ("", "not applicable", "nan") else cell


def _parse_time(cells: dict[str, str], name: str, line: int) -> datetime | None:
    text = _cell_value(cells.get(name, ""))
    try:
        at = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise ValueError(
            f"Row {line}, {name.capitalize()}: “{text[:40]}” is not a time such as 2026-10-25T12:27:09Z. Export the file again."
        ) from None
    if at is not None and at.tzinfo is None:
        raise ValueError(f"Row {line}, {name.capitalize()}: “{text}” has no time zone. Export the file again.")
    return at


# Orders with a form at Prolific: the format of a line, and where to find the form. The forms list people, not
# submissions. In a study where each person takes part once, this is the same.
BULK_FORMS = {
    "approve": (
        "People to approve",
        lambda v: v["person"],
        "At Prolific, open the study's submissions and choose “Approve by ids”.",
    ),
    "bonus": (
        "Bonuses",
        lambda v: f"{v['person']},{v['amount']}",
        "At Prolific, open the study's submissions, choose More, then bulk bonus payment. Paste once: Prolific "
        "pays repeated lines again.",
    ),
    "screen_out": (
        "People to screen out",
        lambda v: v["person"],
        "At Prolific, open the study's submissions and choose “Screen out by ids”.",
    ),
}


def bulk_form_texts(orders: Sequence[Order]) -> list[BulkText]:
    """Return one text per study and kind of order. Rejections have none, because a person writes each of them."""
    texts = []
    for operation, (name, line, instructions) in BULK_FORMS.items():
        tasks = dict.fromkeys(order.values["task"] for order in orders if order.operation == operation)
        for task in tasks:
            lines = [
                line(order.values) for order in orders if order.operation == operation and order.values["task"] == task
            ]
            repeated = next((text for text, times in Counter(lines).items() if times > 1), None)
            if repeated and operation != "bonus":
                raise ValueError(f"{name}: {repeated} is ordered twice.")
            texts.append(
                BulkText(
                    name,
                    "".join(f"{text}\n" for text in lines),
                    f"Study {task}. {instructions}" if len(tasks) > 1 else instructions,
                )
            )
    return texts


# Read Prolific's submissions into the common form.


def parse_time(value: Any) -> datetime | None:
    """Parse Prolific's times. They are in UTC, even without a time zone."""
    try:
        at = datetime.fromisoformat(value) if value else None
    except (TypeError, ValueError):
        return None
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def parse_submission(row: Mapping[str, Any], task: str = "") -> SubmissionSnapshot:
    """Read a submission from the service: lists use ``participant_id``, single submissions use ``participant``."""
    if not isinstance(row, Mapping) or not row.get("id"):
        raise PanelBusy("Prolific shows a submission without an id. Try again later.")
    word = str(row.get("status") or "")
    state, submitted = submission_state(word), parse_time(row.get("completed_at"))
    return SubmissionSnapshot(
        task=str(row.get("study_id") or task),
        submission=str(row["id"]),
        state=state,
        word=word,
        person=str(row.get("participant_id") or row.get("participant") or ""),
        code=str(row.get("entered_code") or row.get("study_code") or ""),
        started_at=parse_time(row.get("started_at")),
        submitted_at=submitted,
        decides_itself_at=auto_approval_time(state, submitted),
    )
