"""Prolific without a token: read its exported table of submissions, and write orders as text for its forms."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from annotators.models.constants import SUBMITTED
from annotators.recruitment.channels.exported_file import read_panel_table, refuse_with_problems
from annotators.recruitment.panels import BulkText, Order, PanelBusy, SubmissionSnapshot
from studies.stimuli.rows import TableProblems
from studies.stimuli.texts import name_key

from .client import ID_PATTERN, auto_approval_time, submission_state

REQUIRED_COLUMNS = ("Submission id", "Participant id", "Status")
TIME_COLUMNS = ("Started at", "Completed at", "Reviewed at")


def parse_submissions_csv(text: str, task: str = "") -> list[SubmissionSnapshot]:
    """Return the submissions of an export, in its order.

    The file's content names no study; its file name does, and the researcher chooses it. Times without a time zone are in UTC, as
    Prolific writes them. Raises ValueError with the row, as a spreadsheet counts it, and the column.
    """
    table = read_panel_table(text, REQUIRED_COLUMNS, may_be_empty=True)
    if not table.columns:
        refuse_with_problems(table.problems, "Choose the file that Prolific exports from a study's submissions.")
    first_rows: dict[str, int] = {}
    submissions = []
    for row in table:
        cells = {name_key(name): cell.strip() for name, cell in row.values.items()}
        before = table.problems.count
        _add_problems(table.problems, row.number, cells, first_rows)
        if table.problems.count == before:
            submissions.append(_snapshot(cells, task))
    refuse_with_problems(table.problems)
    return submissions


def _add_problems(problems: TableProblems, row: int, cells: Mapping[str, str], first_rows: dict[str, int]) -> None:
    """Add a problem for each column with a fault in this row."""
    for column in ("Submission id", "Participant id"):
        if not ID_PATTERN.fullmatch(cells[column.lower()]):
            problems.add(row, column, f"“{cells[column.lower()][:40]}” is not a Prolific id. Export the file again.")
    if not cells["status"]:
        problems.add(row, "Status", "the cell is empty. Export the file again.")
    submission = cells["submission id"].lower()
    first = first_rows.setdefault(submission, row)
    if first != row:
        problems.add(
            row, "Submission id", f"the submission {submission[:40]} is already in row {first}. Remove one of them."
        )
    for column in TIME_COLUMNS:
        text = _cell_value(cells.get(column.lower(), ""))
        if text and parse_time(text) is None:
            problems.add(
                row, column, f"“{text[:40]}” is not a time such as 2026-10-25T12:27:09Z. Export the file again."
            )


def _snapshot(cells: Mapping[str, str], task: str) -> SubmissionSnapshot:
    state = submission_state(cells["status"])
    started, submitted, reviewed = (parse_time(_cell_value(cells.get(name.lower(), ""))) for name in TIME_COLUMNS)
    return SubmissionSnapshot(
        task=task,
        submission=cells["submission id"].lower(),
        person=cells["participant id"].lower(),
        state=state,
        word=cells["status"],
        code=_cell_value(cells.get("completion code", "")),
        started_at=started,
        submitted_at=submitted,
        decided_at=None if state == SUBMITTED else reviewed,
        decides_itself_at=auto_approval_time(state, submitted),
    )


def _cell_value(cell: str) -> str:
    return "" if cell.lower() in ("", "not applicable", "nan") else cell


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
