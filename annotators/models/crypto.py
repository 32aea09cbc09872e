"""What PSEUDONYM_KEY is used for: hashes by which people are known again, and texts that the database keeps encrypted."""

import base64
import hashlib
import hmac
from enum import StrEnum
from functools import lru_cache

from django.conf import settings


def keyed_hash(*parts: str) -> str:
    """A keyed hash: the same parts give the same name, and nobody without the key can find the parts."""
    message = "\x1f".join(parts).encode()
    return hmac.new(settings.PSEUDONYM_KEY.encode(), message, hashlib.sha256).hexdigest()


class Purpose(StrEnum):
    """What a text is; each purpose has a key of its own. The values are part of the keys: a value that changes makes stored texts unreadable."""

    IDENTITY = "panel identity"
    CREDENTIAL = "panel secret"


def encrypt(purpose: Purpose, text: str) -> bytes:
    return _cipher(purpose, settings.PSEUDONYM_KEY).encrypt(text.encode())


def decrypt(purpose: Purpose, stored: bytes | memoryview) -> str:
    """Raises cryptography.fernet.InvalidToken where the text was encrypted with another key or for another purpose."""
    return _cipher(purpose, settings.PSEUDONYM_KEY).decrypt(bytes(stored)).decode()


@lru_cache(maxsize=len(Purpose))
def _cipher(purpose: Purpose, secret: str):
    from cryptography.fernet import Fernet  # a page that needs no cipher does not load it

    return Fernet(base64.urlsafe_b64encode(hashlib.sha256(f"{purpose}{secret}".encode()).digest()))
