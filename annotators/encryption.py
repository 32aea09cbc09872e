"""Texts that the database keeps encrypted: each purpose has its own key, derived from PSEUDONYM_KEY."""

import base64
import hashlib
from enum import StrEnum
from functools import lru_cache

from django.conf import settings


class Purpose(StrEnum):
    """What a text is. The values are part of the keys: a value that changes makes stored texts unreadable."""

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
