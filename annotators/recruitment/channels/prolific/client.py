"""Requests to Prolific's API: answers are objects, and lists are read page by page."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote, urlsplit

from django.conf import settings as site

from annotators.models.constants import APPROVED, EXPIRED, REJECTED, RETURNED, SCREENED_OUT, SUBMITTED, UNKNOWN, WORKING
from annotators.recruitment.panels import (
    FAILED_CHECKS,
    NO_ANSWERS,
    OBSERVED,
    TOO_FAST,
    TOO_SLOW,
    ChargedFees,
    PanelBusy,
    RejectionPolicy,
    RequestRefused,
    ResultUnclear,
    WebhookMessage,
)
from annotators.recruitment.panels.http_client import PanelHttpClient

# Prolific's rejection policy as data with its source.


REJECTION_POLICY = RejectionPolicy(
    categories={
        "TOO_QUICKLY": "The whole study took more than three standard deviations less than the mean.",
        "TOO_SLOWLY": "It took far longer than the study needs, so the answers cannot be used.",
        "FAILED_INSTRUCTIONS": "A clear and essential instruction of the study was not followed.",
        "INCOMP_LONGITUDINAL": ("A part of a multi-part study is missing, although the listing said that all "
                               "are needed."),
        "FAILED_CHECK": ("Attention checks failed: at least one in a study shorter than five minutes, otherwise "
                        "at least two."),
        "LOW_EFFORT": "Obvious lack of effort, for example random letters instead of a paragraph.",
        "MALINGERING": "The answers show that the person lied about who they are.",
        "NO_CODE": "No code was entered, and no work was found.",
        "BAD_CODE": "A wrong code was entered, and no work was found.",
        "NO_DATA": "There are no answers from this person.",
        "UNSUPP_DEVICE": "The person used a device that the listing excluded.",
        "OTHER": "None of these; the message states the reason.",
    },
    min_message_length=100,
    evidence_by_category={
        "TOO_QUICKLY": (TOO_FAST,), "TOO_SLOWLY": (TOO_SLOW,), "FAILED_CHECK": (FAILED_CHECKS,), "NO_CODE": (NO_ANSWERS,), "BAD_CODE": (NO_ANSWERS,),
        "NO_DATA": (NO_ANSWERS,), "LOW_EFFORT": (OBSERVED,),
    },
    source=(
        "Prolific's own rules. A stored copy was read on 2026-11-22. Rules change, and Prolific's current "
        "rules apply.", "https://prolific-researcher.dixa.help/en/article/f75ea9",
    ),
    rules=(
        "Ask for a return first, and wait at least five days.",
        "Never reject for: failed comprehension questions, screening out, unanswered demographic questions, "
        "speed on one page, technical faults, or only a missing code.",
        "An attention check must be in the question itself, need no memory and hide nothing in small print.",
        "Prolific's service cannot take back a rejection. To reverse one, write to Prolific.",
        "An exclusion from the analysis is not a reason.",
        "The categories are those of Prolific's command line tool, read on 2026-11-21.",
    ),
)  # fmt: skip

# Prolific approves undecided work after this number of days.
DECIDES_AFTER_DAYS = 21


# Prolific's vocabulary: its ids and addresses, and its submission states mapped to heval's.


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


# Prolific's amounts of money: hundredths of a currency, in requests and in the cost of a study.


def to_minor_units(amount: Any) -> int:
    """Convert 1.60 to 160, because Prolific uses pence or cents.

    Raises RequestRefused for amounts below one cent and for invalid numbers.
    """
    try:
        hundredths = Decimal(str(amount)) * 100
        is_money = 0 < hundredths < 10**8 and hundredths == int(hundredths)
    except InvalidOperation:
        is_money = False
    if not is_money:
        raise RequestRefused(f"{amount} is not a positive amount of money with two decimals. Correct the amount.")
    return int(hundredths)


def parse_charged_fees(answer: Mapping[str, Any]) -> ChargedFees | None:
    """Return the fees in a study's cost: amounts in hundredths, for rewards and bonuses separately.

    Returns None if a required field is missing or has another meaning.
    """
    rewards, bonuses = answer.get("rewards"), answer.get("bonuses") or {}
    if not isinstance(rewards, Mapping) or not isinstance(bonuses, Mapping) or "fees" not in rewards:
        return None
    currencies: set[str] = set()
    try:
        reward_fees = sum(_hundredths(rewards, name, currencies) for name in ("fees", "rep_sample_fees"))
        bonus_fees = _hundredths(bonuses, "fees", currencies)
        tax = sum(_hundredths(rewards, name, currencies) for name in ("tax", "rep_sample_tax"))
        tax += _hundredths(bonuses, "tax", currencies)
    except ValueError:
        return None
    if len(currencies) != 1:
        return None
    return ChargedFees(Decimal(reward_fees) / 100, Decimal(bonus_fees) / 100, Decimal(tax) / 100, currencies.pop())


def _hundredths(part: Mapping[str, Any], name: str, currencies: set[str]) -> int:
    """Return an amount; 0 if it is missing. Raises ValueError if it is not an amount of money."""
    money = part.get(name)
    if money is None:
        return 0
    amount, currency = (money.get("amount"), money.get("currency")) if isinstance(money, Mapping) else (None, None)
    if not isinstance(amount, int | float) or isinstance(amount, bool) or not 0 <= amount < 10**12:
        raise ValueError(name)
    if not (isinstance(currency, str) and currency):
        raise ValueError(name)
    currencies.add(currency)
    return round(amount)


HOST = "api.prolific.com"


class ProlificClient:
    """A client for Prolific's API. Only the HTTP client holds ``token``, which has all rights of its account."""

    def __init__(self, token: str, origin: str = ""):
        self.http = PanelHttpClient(origin or site.PROLIFIC_API, (HOST,), secret=token, header="Authorization: Token ")

    def get(self, path: str) -> dict[str, Any]:
        return require_json_object(self.http.get_json(f"/api/v1/{path}"), PanelBusy)

    def send_order(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return require_json_object(self.http.send_json(method, f"/api/v1/{path}", body), ResultUnclear)

    def send_with_headers(self, method: str, path: str, body: Mapping[str, Any]) -> tuple[Any, Mapping[str, str]]:
        """Return the parts of the answer as they arrive, and its headers."""
        return self.http.send_json_with_headers(method, f"/api/v1/{path}", body)

    def rows_of_all_pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Return every row, following the links from page to page.

        Prolific answers a page after the last with an error.
        """
        visited = set()
        following: str | None = f"/api/v1/{path}"
        while following:
            visited.add(following)
            page = require_json_object(self.http.get_json(following), PanelBusy)
            yield from page.get("results") or []
            link = ((page.get("_links") or {}).get("next") or {}).get("href")
            parts = urlsplit(link or "")
            # The host of a link is never followed: the token is sent to one host only.
            following = f"{parts.path}?{parts.query}" if link else None
            if following in visited or (following and not following.startswith("/api/v1/")):
                raise PanelBusy("Prolific's page links form a loop. Try again later.")


def quote_id(value: Any) -> str:
    """Return an id as a path segment."""
    return quote(str(value), safe="")


def require_json_object(body: Any, error_class: type[Exception]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise error_class("Prolific's answer is not an object. Look at Prolific before you try again.")
    return body


# Webhook notifications from Prolific: verify the signature and read the submission id.
#
# No network, no database. A notification says that something changed, not the new state. Notifications arrive twice,
# late and in any order, so the caller asks the service.


SIGNATURE = "X-Prolific-Request-Signature"
TIMESTAMP = "X-Prolific-Request-Timestamp"
EVENT_ID = "X-Event-ID"
SUBMISSION_EVENT = "submission.status.change"
MAX_FIELD_LENGTH = 64


def compute_signature(secret: str, timestamp: str, body: bytes) -> str:
    digest = hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def is_signature_valid(secret: str, timestamp: str, body: bytes, signature: str) -> bool:
    """Verify the signature over the raw bytes. An old timestamp is accepted, because Prolific retries for days."""
    return bool(secret) and hmac.compare_digest(compute_signature(secret, timestamp, body).encode(), signature.encode())


def parse_notification(event_id: str, raw: bytes) -> WebhookMessage:
    """Read a notification. Raises ValueError if it is not valid."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("The notification is not JSON.") from None
    if not isinstance(body, dict):
        raise ValueError("The notification is not an object.")
    if not 1 <= len(event_id) <= 200:
        raise ValueError(f"The notification has no {EVENT_ID}.")
    kind = body.get("event_type")
    is_submission = kind == SUBMISSION_EVENT
    texts = [body.get(name) if is_submission else "" for name in ("resource_id", "participant_id", "status")]
    if not all(
        isinstance(text, str) and len(text) <= MAX_FIELD_LENGTH and (text.isprintable() or not text) for text in texts
    ) or (is_submission and not texts[0]):
        raise ValueError("The notification names no submission.")
    submission, person, word = map(str, texts)
    return WebhookMessage(
        event_id,
        submission,
        person,
        word,
        kind if isinstance(kind, str) and len(kind) <= MAX_FIELD_LENGTH and kind.isprintable() else "",
    )
