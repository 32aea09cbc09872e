"""The uses of PSEUDONYM_KEY: hashes that recognise people again, and encrypted texts in the database."""

import base64
import hashlib
import hmac
from enum import StrEnum
from functools import lru_cache

from django.conf import settings


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
