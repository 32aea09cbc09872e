"""What Prolific sends by itself: proof that it was Prolific, and which submission to look at. No network, no database.

A message says that something changed, not what holds: they come twice, late and in any order. Who reads one asks the service.
"""

import base64
import hashlib
import hmac
import json

from annotators.recruitment.panels import WebhookMessage

SIGNATURE = "X-Prolific-Request-Signature"
TIMESTAMP = "X-Prolific-Request-Timestamp"
EVENT_ID = "X-Event-ID"
SUBMISSION_EVENT = "submission.status.change"
MAX_FIELD_LENGTH = 64


def compute_signature(secret: str, timestamp: str, raw: bytes) -> str:
    digest = hmac.new(secret.encode(), timestamp.encode() + raw, hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def is_genuine(secret: str, timestamp: str, raw: bytes, sent: str) -> bool:
    """Over the bytes as they came. An old timestamp is no reason: Prolific tries again for days."""
    return bool(secret) and hmac.compare_digest(compute_signature(secret, timestamp, raw).encode(), sent.encode())


def read_message(event: str, raw: bytes) -> WebhookMessage:
    """Raises ValueError for what is no message."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise ValueError("The message is not JSON.") from None
    if not isinstance(body, dict):
        raise ValueError("The message is not an object.")
    if not 1 <= len(event) <= 200:
        raise ValueError(f"The message has no {EVENT_ID}.")
    kind = body.get("event_type")
    is_submission = kind == SUBMISSION_EVENT
    told = [body.get(name) if is_submission else "" for name in ("resource_id", "participant_id", "status")]
    if not all(
        isinstance(one, str) and len(one) <= MAX_FIELD_LENGTH and (one.isprintable() or not one) for one in told
    ) or (is_submission and not told[0]):
        raise ValueError("The message names no submission.")
    return WebhookMessage(
        event, *told, kind if isinstance(kind, str) and len(kind) <= MAX_FIELD_LENGTH and kind.isprintable() else ""
    )
