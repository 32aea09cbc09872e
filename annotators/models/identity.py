"""The panel's id of a person: encrypted, in its own table, until it is no longer needed for pay.

No other row contains it. If a panel uses the person's id as the id of a visit, a placeholder is stored instead.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from types import SimpleNamespace

from django.conf import settings

from annotators.fast_path import insert_missing

from . import Annotator, Assignment, PanelIdentity, PanelSubmission

# The uses of PSEUDONYM_KEY: hashes that recognise people again, and encrypted texts in the database.


def keyed_hash(*parts: str) -> str:
    """Return a keyed hash of the parts.

    The same parts give the same hash. The parts cannot be computed without the key.
    """
    message = "\x1f".join(parts).encode()
    return hmac.new(settings.PSEUDONYM_KEY.encode(), message, hashlib.sha256).hexdigest()


class Purpose(StrEnum):
    """The purpose of an encrypted text. Each purpose has its own key.

    The values are part of the keys: if a value changes, stored texts become unreadable.
    """

    IDENTITY = "panel identity"
    CREDENTIAL = "panel secret"
    ADDRESS = "address without stored answers"


def encrypt(purpose: Purpose, text: str) -> bytes:
    return _cipher(purpose, settings.PSEUDONYM_KEY).encrypt(text.encode())


def decrypt(purpose: Purpose, ciphertext: bytes | memoryview) -> str:
    """Decrypt a text.

    Raises cryptography.fernet.InvalidToken if it was encrypted with another key or for another purpose.
    """
    return _cipher(purpose, settings.PSEUDONYM_KEY).decrypt(bytes(ciphertext)).decode()


@lru_cache(maxsize=len(Purpose))
def _cipher(purpose: Purpose, secret: str):
    from cryptography.fernet import Fernet  # imported late, because most pages do not need it

    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(f"{purpose}{secret}".encode()).digest()))


# Prefixes of ids that are keyed hashes: in place of a person's own id, and in place of an erased id.
PERSON_PREFIX, ERASED_PREFIX = "person-", "erased-"


def store_person_id(annotator: Annotator, person_id: str) -> None:
    """Store the panel's raw id of a person, encrypted and once per person. Pay and the way back to the panel use it."""
    if not person_id:
        return
    row = SimpleNamespace(annotator_id=annotator.pk, ciphertext=encrypt(Purpose.IDENTITY, person_id))
    if insert_missing(PanelIdentity, ("annotator", "ciphertext"), row) is None:
        # An erased id leaves its row.
        PanelIdentity.objects.filter(annotator=annotator, ciphertext=None).update(ciphertext=row.ciphertext)


def store_person_ids(person_ids: Mapping[int, str]) -> None:
    """Store the raw ids of many new people, by annotator id."""
    PanelIdentity.objects.bulk_create(
        (
            PanelIdentity(annotator_id=pk, ciphertext=encrypt(Purpose.IDENTITY, person))
            for pk, person in person_ids.items()
        ),
        ignore_conflicts=True,
        batch_size=500,
    )


def get_person_id(annotator: Annotator) -> str | None:
    """Return the raw id, or None if it was never known or is erased."""
    return get_person_ids([annotator.pk]).get(annotator.pk)


def get_person_ids(annotator_ids: Iterable[int]) -> dict[int, str]:
    """Return the raw ids of many people by annotator id, without those that were never known or are erased."""
    identities = PanelIdentity.objects.filter(annotator__in=annotator_ids, ciphertext__isnull=False)
    return {
        pk: decrypt(Purpose.IDENTITY, text)
        for pk, text in identities.values_list("annotator", "ciphertext")
        if text is not None
    }


def person_id_placeholder(annotator_key: str) -> str:
    """Return the placeholder for a person's own id.

    ``annotator_key``: ``Annotator.external_id``, which is a keyed hash.
    """
    return f"{PERSON_PREFIX}{annotator_key[:40]}"


def external_ids_without_person(annotator: Annotator, external_ids: Mapping[str, str]) -> dict[str, str]:
    """Return the ids from an address that an assignment may store: without the person's own id."""
    person = external_ids.get("person")
    others = {name: value for name, value in external_ids.items() if name != "person"}
    return {
        name: person_id_placeholder(annotator.external_id) if value == person else value
        for name, value in others.items()
    }


def restored_external_ids(assignment: Assignment) -> dict[str, str]:
    """Return the ids as they were in the address, for the way back to the panel, without erased ids."""
    return external_ids_with_person(assignment, get_person_id(assignment.annotator) or "")


def external_ids_with_person(assignment: Assignment, person_id: str) -> dict[str, str]:
    """Return the ids as they were in the address, if ``person_id`` is already known ('' if it is erased)."""
    ids = {
        name: person_id if value.startswith(PERSON_PREFIX) else value for name, value in assignment.external_ids.items()
    }
    return {name: value for name, value in ids.items() if value} | ({"person": person_id} if person_id else {})


def set_display_ids(submissions: Sequence[PanelSubmission]) -> None:
    """Set ``named`` on each row for researchers' pages: its id at the panel, or the placeholder of an erased id."""
    people = get_person_ids({row.annotator_id for row in submissions if row.external_id.startswith(PERSON_PREFIX)})
    for row in submissions:
        row.named = submission_id_at_panel(row, people.get(row.annotator_id, "")) or row.external_id


def submission_id_at_panel(submission: PanelSubmission, person_id: str) -> str:
    """Return the panel's id of a submission, or '' if it is erased. ``person_id`` is the id of its person."""
    if submission.external_id.startswith(ERASED_PREFIX):
        return ""
    return person_id if submission.external_id.startswith(PERSON_PREFIX) else submission.external_id
