"""Notice that PSEUDONYM_KEY is not the key of this database: with another key heval would count its annotators twice.

The audit log holds a keyed digest of a fixed text, from which the key cannot be computed. The newest one counts.
"""

import logging

from django.core.exceptions import ImproperlyConfigured
from django.db import Error

from annotators.models.identity import keyed_hash
from studies.models import audit

logger = logging.getLogger("heval.site")
VERB = "set pseudonym key"
WRONG_KEY = (
    "PSEUDONYM_KEY is not the key of this database. Restore it from your backup, or read “A lost key” in how-to/deploy."
)


def _digest() -> str:
    return keyed_hash("heval", "the fixed text of the check of PSEUDONYM_KEY")


def _stored_digest() -> str | None:
    events = audit.AuditEvent.objects.filter(verb=VERB).order_by("-pk")
    return events.values_list("data__digest", flat=True).first()


def has_wrong_key() -> bool:
    """Return whether the database was prepared with another key."""
    return _stored_digest() not in (None, _digest())


def store_or_compare_key(accept_new: bool = False) -> None:
    """Store the digest of this key if the database has none, or if the operator accepts a new key. Otherwise compare."""
    if _stored_digest() is None or (accept_new and has_wrong_key()):
        audit.record(VERB, by=None, digest=_digest())
    refuse_wrong_key()


def refuse_wrong_key() -> None:
    if has_wrong_key():
        raise ImproperlyConfigured(WRONG_KEY)


def refuse_wrong_key_at_start() -> None:
    """Let a process that serves refuse a wrong key. A database that is away or not prepared is another matter."""
    try:
        refuse_wrong_key()
    except Error as error:
        logger.warning("PSEUDONYM_KEY was not compared, because the database did not answer (%s)", type(error).__name__)
