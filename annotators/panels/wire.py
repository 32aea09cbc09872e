"""Requests to a panel's service: one host, no redirect, and every failure told as what it means for an order.

``http.client`` and not a library above it, because the difference that matters is where it broke: before anything was sent the
order was not given, afterwards nobody knows.
"""

import contextlib
import json
import re
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from . import Busy, Refused, Unclear

LARGEST = 20_000_000
CONNECT_SECONDS = 5
ANSWER_SECONDS = 30
LONGEST_WAIT = 600
# What may stand in a header; anything else would make http.client print the secret in its complaint.
SECRET = re.compile(r"[!-~]{1,500}", re.ASCII)


class Missing(Refused):
    """The panel has nothing under this id."""


def is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def clean_secret(secret: str) -> str:
    """Raises Refused, without the words of the secret."""
    secret = secret.strip()
    if not SECRET.fullmatch(secret):
        raise Refused("The token is empty, or has blanks or other characters that no token has.")
    return secret


class Wire:
    """Requests to ``origin``: https at one of ``hosts`` (a name, or ``.name`` for all below it), or this machine.

    ``secret`` is sent as ``header`` and appears nowhere else: not in a repr, not in words that a panel sends back.
    """

    def __init__(self, origin: str, hosts: tuple[str, ...], *, secret: str = "", header: str = ""):
        parts = urlsplit(origin)
        host = (parts.hostname or "").lower()
        is_known = (
            parts.scheme in ("http", "https") and parts.path in ("", "/") and not parts.query and not parts.username
        )
        is_panel = parts.scheme == "https" and any(
            host == one or (one.startswith(".") and host.endswith(one)) for one in hosts
        )
        if not is_known or not (is_panel or is_loopback(host)):
            raise Refused(f"{parts.scheme}://{host} is not an address of this panel.")
        self.host, self.port, self.is_encrypted = host, parts.port, parts.scheme == "https"
        self._secret = clean_secret(secret) if header else secret
        self._header = header
        self._throttled = 0

    def __repr__(self):
        return f"Wire({self.host})"

    def get(self, path: str, *, accepts="application/json") -> bytes:
        """Asking changes nothing: whatever breaks, it may be asked again."""
        return self._answer("GET", path, None, accepts, is_order=False)[0]

    def order(self, method: str, path: str, body: bytes | None = None, *, accepts="application/json") -> bytes:
        """Raises Busy only where nothing was done, Unclear where that cannot be known."""
        return self._answer(method, path, body, accepts, is_order=True)[0]

    def get_json(self, path: str) -> Any:
        return self._read(self.get(path), Busy)

    def order_json(self, method: str, path: str, body: Any) -> Any:
        return self.order_answer(method, path, body)[0]

    def order_answer(self, method: str, path: str, body: Any) -> tuple[Any, Message]:
        """What the answer holds, and its headers."""
        raw, headers = self._answer(method, path, json.dumps(body).encode(), "application/json", is_order=True)
        return self._read(raw, Unclear), headers

    def _read(self, raw: bytes, otherwise: type[Exception]) -> Any:
        try:
            return json.loads(raw) if raw.strip() else {}
        except (ValueError, RecursionError):
            raise otherwise("The panel's answer is not JSON.") from None

    def _answer(self, method, path, body, accepts, *, is_order) -> tuple[bytes, Message]:
        lost = Unclear if is_order else Busy
        kind = HTTPSConnection if self.is_encrypted else HTTPConnection
        line = kind(self.host, self.port, timeout=CONNECT_SECONDS)
        try:
            try:
                line.connect()
            except OSError as error:
                raise Busy(f"The panel cannot be reached ({self._words(error)}).") from None
            line.sock.settimeout(ANSWER_SECONDS)
            headers = {"Accept": accepts, "User-Agent": "heval"}
            if body is not None:
                headers["Content-Type"] = "application/json"
            if self._header:
                name, _, before = self._header.partition(": ")
                headers[name] = f"{before}{self._secret}"
            try:
                line.request(method, path, body=body, headers=headers)
                response = line.getresponse()
                raw = response.read(LARGEST + 1)
            except (OSError, HTTPException) as error:
                raise lost(f"The connection broke before the answer came ({type(error).__name__}).") from None
        finally:
            line.close()
        if len(raw) > LARGEST:
            raise lost("The panel's answer is larger than any that it should send.")
        return self._judged(response.status, response.headers.get("Retry-After", ""), raw, lost), response.headers

    def _judged(self, status: int, wait: str, raw: bytes, lost: type[Exception]) -> bytes:
        if status == 429:
            self._throttled += 1
            seconds = float(wait) if wait.isascii() and wait.isdigit() else 5.0 * 2**self._throttled
            raise Busy("The panel asks to come back later.", min(seconds, LONGEST_WAIT))
        self._throttled = 0
        if 200 <= status < 300:
            return raw
        words = self._words(said(raw) or "no words")
        if status == 408 or status >= 500:
            raise lost(f"The panel's server failed ({status}): {words}")
        if status < 400:
            raise Refused(f"The panel answers with a redirect ({status}), which is not followed.")
        raise (Missing if status == 404 else Refused)(f"{words} ({status})")

    def _words(self, words: object) -> str:
        told = str(words)
        return told.replace(self._secret, "…") if self._secret else told


def said(raw: bytes) -> str:
    """The panel's words in an error that it sent: of JSON what tells, of anything else the beginning."""
    text = raw[:20_000].decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return " ".join(re.sub(r"<[^>]*>", " ", text).split())[:500]
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    if not isinstance(body, dict):
        return in_words(body)[:500]
    told = [
        in_words(body[name])
        for name in ("title", "message", "error", "detail", "additional_information")
        if body.get(name)
    ]
    return ". ".join(dict.fromkeys(told or [in_words(body)]))[:500]


def in_words(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {in_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(in_words(part) for part in value)
    return str(value)
