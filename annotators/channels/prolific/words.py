"""Prolific's words: its ids, and its states of a submission in ours."""

import re
from datetime import datetime, timedelta

from ...panels import APPROVED, EXPIRED, REJECTED, RETURNED, SCREENED_OUT, SUBMITTED, UNKNOWN, WORKING
from .rules import DECIDES_AFTER_DAYS

ID = re.compile(r"[0-9a-f]{24}", re.ASCII | re.IGNORECASE)
# PROCESSING passes by. PARTIALLY APPROVED is paid in a way that is never ordered here.
STATES = {
    "RESERVED": WORKING, "ACTIVE": WORKING, "AWAITING REVIEW": SUBMITTED, "APPROVED": APPROVED, "REJECTED": REJECTED,
    "RETURNED": RETURNED, "TIMED OUT": EXPIRED, "SCREENED OUT": SCREENED_OUT,
}  # fmt: skip


def state_of(word: str) -> str:
    return STATES.get(" ".join(word.upper().replace("_", " ").replace("-", " ").split()), UNKNOWN)


def decides_at(state: str, submitted: datetime | None) -> datetime | None:
    return submitted + timedelta(days=DECIDES_AFTER_DAYS) if state == SUBMITTED and submitted else None
