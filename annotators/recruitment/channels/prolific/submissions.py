"""Read Prolific's submissions into the common form."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from annotators.recruitment.panels import PanelBusy, SubmissionSnapshot

from .vocabulary import auto_approval_time, submission_state


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
