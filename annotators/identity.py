"""The panel's own id of a person: enciphered, in a table of its own, until it is no longer needed for pay."""

import base64
import hashlib
from collections.abc import Iterable, Mapping

from django.conf import settings

from .models import Annotator, PanelIdentity


def _cipher():
    from cryptography.fernet import Fernet

    key = hashlib.sha256(b"panel identity" + settings.PSEUDONYM_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))


def keep_identity(annotator: Annotator, person: str) -> None:
    """Remember the raw id that a panel sent. Written once a person; nothing but pay reads it."""
    if person and not PanelIdentity.objects.filter(annotator=annotator, ciphertext__isnull=False).exists():
        kept = PanelIdentity(annotator=annotator, ciphertext=_cipher().encrypt(person.encode()))
        PanelIdentity.objects.bulk_create(
            [kept], update_conflicts=True, unique_fields=["annotator"], update_fields=["ciphertext"]
        )


def keep_identities(people: Mapping[int, str]) -> None:
    """The same for many, whom nobody has met before: raw ids by annotator."""
    cipher = _cipher()
    PanelIdentity.objects.bulk_create(
        (PanelIdentity(annotator_id=pk, ciphertext=cipher.encrypt(person.encode())) for pk, person in people.items()),
        ignore_conflicts=True, batch_size=500,
    )  # fmt: skip


def panel_id(annotator: Annotator) -> str | None:
    """The raw id, or None where it was never known or is erased."""
    ciphertext = PanelIdentity.objects.filter(annotator=annotator).values_list("ciphertext", flat=True).first()
    return _cipher().decrypt(bytes(ciphertext)).decode() if ciphertext else None


def panel_ids(annotators: Iterable[int]) -> dict[int, str]:
    """The raw ids of many, by annotator; those that were never known or are erased are left out."""
    cipher = _cipher()
    kept = PanelIdentity.objects.filter(annotator__in=annotators, ciphertext__isnull=False)
    return {pk: cipher.decrypt(bytes(text)).decode() for pk, text in kept.values_list("annotator", "ciphertext")}
