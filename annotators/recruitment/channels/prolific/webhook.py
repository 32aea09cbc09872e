"""Webhook notifications from Prolific: verify the signature and read the submission id.

No network, no database.
A notification says that something changed, not the new state. Notifications arrive twice, late and in any order, so the
caller asks the service.
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
