"""The batch file that the requester's site exports ("Download CSV"): its columns as published files of many studies have them."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

from ...panels import APPROVED, REJECTED, SUBMITTED, UNKNOWN, Seen

NEEDED = ("HITId", "AssignmentId", "WorkerId", "AssignmentStatus")
# Our own form's field; that of the site's template for links to surveys.
RECEIPTS = ("Answer.receipt", "Answer.surveycode")
STATES = {"Submitted": SUBMITTED, "Approved": APPROVED, "Rejected": REJECTED}
# The site writes the hours of its own coast.
ZONES = {"PDT": -7, "PST": -8, "UTC": 0, "GMT": 0}


def read_batch(text: str) -> Iterator[Seen]:
    """What the file says of each submission. Raises ValueError naming the row and the column that cannot be read."""
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    try:
        if missing := [name for name in NEEDED if name not in (reader.fieldnames or ())]:
            raise ValueError(f"The first row lacks the column {missing[0]}. Export the batch with “Download CSV”.")
        for number, row in enumerate(reader, 2):
            yield _seen(number, row)
    except csv.Error as wrong:
        raise ValueError(f"Row {reader.line_num}: this is no CSV ({wrong}).") from wrong


def _seen(number: int, row: dict) -> Seen:
    if None in row or None in row.values():
        raise ValueError(f"Row {number} has another number of cells than the first row.")
    for name in NEEDED:
        if not row[name].strip():
            raise ValueError(f"Row {number}: {name} is empty.")
    word = row["AssignmentStatus"].strip()
    decided = _moment(number, row, "ApprovalTime") or _moment(number, row, "RejectionTime")
    return Seen(
        task=row["HITId"].strip(), submission=row["AssignmentId"].strip(), person=row["WorkerId"].strip(),
        state=STATES.get(word, UNKNOWN), word=word,
        receipt=next((row[name].strip() for name in RECEIPTS if row.get(name, "").strip()), ""),
        started_at=_moment(number, row, "AcceptTime"), submitted_at=_moment(number, row, "SubmitTime"), decided_at=decided,
        decides_itself_at=_moment(number, row, "AutoApprovalTime"),
    )  # fmt: skip


def _moment(number: int, row: dict, name: str) -> datetime | None:
    """``Tue May 05 11:52:41 PDT 2026``, or ISO 8601."""
    value = (row.get(name) or "").strip()
    if not value:
        return None
    words = value.split()
    try:
        if len(words) == 6 and words[4] in ZONES:
            zone = timezone(timedelta(hours=ZONES[words[4]]))
            return datetime.strptime(" ".join([*words[:4], words[5]]), "%a %b %d %H:%M:%S %Y").replace(tzinfo=zone)
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"Row {number}: {name} is no moment: {value[:40]!r}.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
