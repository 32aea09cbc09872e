"""Prolific's vocabulary: its ids and addresses, and its submission states mapped to heval's."""

import re
from datetime import datetime, timedelta

from annotators.models.constants import APPROVED, EXPIRED, REJECTED, RETURNED, SCREENED_OUT, SUBMITTED, UNKNOWN, WORKING

from .policy import DECIDES_AFTER_DAYS

# heval's names of the ids, and the parameters that Prolific fills in. SESSION_ID is the id of the submission.
PARAMETERS = {"person": "PROLIFIC_PID", "task": "STUDY_ID", "session": "SESSION_ID"}
COMPLETE_URL = "https://app.prolific.com/submissions/complete?cc="
ID_PATTERN = re.compile(r"[0-9a-f]{24}", re.ASCII | re.IGNORECASE)
# PROCESSING is temporary. PARTIALLY APPROVED is paid in a way that heval never orders.
STATES = {
    "RESERVED": WORKING, "ACTIVE": WORKING, "AWAITING REVIEW": SUBMITTED, "APPROVED": APPROVED, "REJECTED": REJECTED,
    "RETURNED": RETURNED, "TIMED OUT": EXPIRED, "SCREENED OUT": SCREENED_OUT,
}  # fmt: skip


def submission_state(status_word: str) -> str:
    return STATES.get(" ".join(status_word.upper().replace("_", " ").replace("-", " ").split()), UNKNOWN)


def auto_approval_time(state: str, submitted_at: datetime | None) -> datetime | None:
    return submitted_at + timedelta(days=DECIDES_AFTER_DAYS) if state == SUBMITTED and submitted_at else None
