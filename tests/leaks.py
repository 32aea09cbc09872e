"""Whether a secret word is in what was sent, in any common coding."""

import base64
import binascii
import hashlib
import html
import json
import urllib.parse


def all_bytes(responses) -> bytes:
    parts = []
    for response in responses:
        parts.append(f"{response.status_code} {response.headers}".encode())
        parts.append(b"".join(response.streaming_content) if response.streaming else response.content)
    return b"\n".join(parts)


def codings(word: str) -> set[bytes]:
    raw = word.encode()
    found = {
        raw,
        raw[::-1],
        html.escape(word).encode(),
        urllib.parse.quote(word).encode(),
        json.dumps(word)[1:-1].encode(),
        raw.hex().encode(),
    }
    for offset in range(3):
        coded = base64.b64encode(b"x" * offset + raw)
        found.add(coded[4 if offset else 0 : -4])
        found.add(base64.b64encode(b"x" * offset + raw[::-1])[4 if offset else 0 : -4])
    for name in ("md5", "sha1", "sha256"):
        digest = hashlib.new(name, raw)
        found |= {digest.hexdigest().encode(), base64.b64encode(digest.digest())}
    found.add(f"{binascii.crc32(raw):08x}".encode())
    return found


def leaks(haystack: bytes, words: dict[str, str]) -> list[str]:
    low = haystack.lower()
    return [secret for secret, word in words.items() if any(c in haystack or c.lower() in low for c in codings(word))]
