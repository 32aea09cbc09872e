"""Requests to a panel's service: one host, no redirects, and failures classified by what they mean for an order.

If the connection broke before anything was sent, the order was not given. If it broke afterwards, the result is
unknown. httpx is imported inside functions, because web processes load this module but send nothing.
"""

import contextlib
import json
import logging
import re
import ssl
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction

from annotators.models import PanelSecret, Recruitment
from annotators.models.identity import Purpose, decrypt, encrypt
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, check_permission_or_404
from studies.models import audit
from studies.services.lifecycle import ActionRefused

from . import PanelBusy, PanelService, RequestRefused, ResultUnclear

MAX_ANSWER_BYTES = 20_000_000
CONNECT_SECONDS = 5
ANSWER_SECONDS = 30
LONGEST_WAIT = 600
# httpx logs addresses and httpcore logs headers, both of which contain secrets.
for name in ("httpx", "httpcore"):
    logging.getLogger(name).setLevel(logging.WARNING)
# Valid characters of a header. The HTTP library would repeat others in its errors.
SECRET_PATTERN = re.compile(r"[!-~]{1,500}", re.ASCII)


class NotFound(RequestRefused):
    """The panel has nothing with this id."""


def is_loopback_host(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def clean_secret(secret: str) -> str:
    """Return the secret without surrounding spaces. Raises RequestRefused, without repeating the secret."""
    secret = secret.strip()
    if not SECRET_PATTERN.fullmatch(secret):
        raise RequestRefused("The token is empty, or contains spaces or invalid characters. Copy it again.")
    return secret


class PanelHttpClient:
    """An HTTP client for ``origin``: https at one of ``hosts`` (a name, or ``.name`` for all below it), or this
    machine.
    ``secret`` is sent as ``header`` and appears nowhere else: not in a repr and not in the panel's messages.
    """

    def __init__(self, origin: str, hosts: tuple[str, ...], *, secret: str = "", header: str = ""):
        parts = urlsplit(origin)
        host = (parts.hostname or "").lower()
        is_known = (
            parts.scheme in ("http", "https") and parts.path in ("", "/") and not parts.query and not parts.username
        )
        is_panel = parts.scheme == "https" and any(
            host == known_host or (known_host.startswith(".") and host.endswith(known_host)) for known_host in hosts
        )
        if not is_known or not (is_panel or is_loopback_host(host)):
            raise RequestRefused(f"{parts.scheme}://{host} is not an address of this panel. Correct it.")
        self.host, self._origin = host, f"{parts.scheme}://{parts.netloc}"
        self._secret = clean_secret(secret) if header else secret
        self._header = header
        self._throttled = 0
        self._trust = ssl.create_default_context()

    def __repr__(self):
        return f"Wire({self.host})"

    def get(self, path: str, *, accepts="application/json") -> bytes:
        """Send a request that changes nothing, so it may be repeated after any failure."""
        return self._request("GET", path, None, accepts, is_order=False)[0]

    def send_order(self, method: str, path: str, body: bytes | None = None, *, accepts="application/json") -> bytes:
        """Send a request that changes something. Raises PanelBusy only if nothing was done, ResultUnclear if that is unknown."""
        return self._request(method, path, body, accepts, is_order=True)[0]

    def get_json(self, path: str) -> Any:
        return self._parse_json(self.get(path), PanelBusy)

    def send_json(self, method: str, path: str, body: Any) -> Any:
        return self.send_json_with_headers(method, path, body)[0]

    def send_json_with_headers(self, method: str, path: str, body: Any) -> tuple[Any, Mapping[str, str]]:
        """Return the parts of the answer, and its headers."""
        raw, headers = self._request(method, path, json.dumps(body).encode(), "application/json", is_order=True)
        return self._parse_json(raw, ResultUnclear), headers

    def _parse_json(self, raw: bytes, error_class: type[Exception]) -> Any:
        try:
            return json.loads(raw) if raw.strip() else {}
        except (ValueError, RecursionError):
            raise error_class("The panel's answer is not JSON. Look at the panel before you try again.") from None

    def _request(self, method, path, body, accepts, *, is_order) -> tuple[bytes, Mapping[str, str]]:
        import httpx

        error_class = ResultUnclear if is_order else PanelBusy
        # Uncompressed, because a small compressed answer may exceed memory.
        headers = {"Accept": accepts, "Accept-Encoding": "identity", "User-Agent": "heval"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._header:
            name, _, prefix = self._header.partition(": ")
            headers[name] = f"{prefix}{self._secret}"
        try:
            # Each request has its own connection, because a kept connection may be closed by the server and an order
            # lost. The environment is ignored: no proxy, and no password from a file.
            alone: dict[str, Any] = {"verify": self._trust, "trust_env": False}
            timeout = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
            url = self._origin + path
            with httpx.stream(method, url, content=body, headers=headers, timeout=timeout, **alone) as response:
                raw = bytearray()
                for part in response.iter_raw():
                    raw += part
                    if len(raw) > MAX_ANSWER_BYTES:
                        raise error_class("The panel's answer is too large. Look at the panel before you try again.")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise PanelBusy(f"The panel cannot be reached ({self._redact_secret(error)}). Try again later.") from None
        except httpx.InvalidURL:
            raise PanelBusy("The panel cannot be asked: its address is not valid. Correct it.") from None
        except httpx.HTTPError as error:
            raise error_class(
                f"The connection broke before the answer arrived ({type(error).__name__}). "
                "Look at the panel before you try again."
            ) from None
        self._check(response.status_code, response.headers, bytes(raw), error_class)
        return bytes(raw), response.headers

    def _check(self, status: int, headers: Mapping[str, str], raw: bytes, error_class: type[Exception]) -> None:
        """Raise the exception for an answer that is not a success."""
        if status == 429:
            self._throttled += 1
            wait = headers.get("Retry-After", "")
            seconds = float(wait) if wait.isascii() and wait.isdigit() else 5.0 * 2**self._throttled
            raise PanelBusy("The panel receives too many requests. Try again later.", min(seconds, LONGEST_WAIT))
        self._throttled = 0
        if 200 <= status < 300:
            return
        message = self._redact_secret(parse_error_text(raw) or "no message")
        if status == 408 or status >= 500:
            raise error_class(
                f"The panel's server failed ({status}). Look at the panel before you try again. Its message: {message}"
            )
        if status < 400:
            raise RequestRefused(
                f"The panel answers with a redirect ({status}), which heval does not follow. Correct the address."
            )
        raise (NotFound if status == 404 else RequestRefused)(f"{message} ({status})")

    def _redact_secret(self, message: object) -> str:
        text = str(message)
        return text.replace(self._secret, "…") if self._secret else text


def parse_error_text(raw: bytes) -> str:
    """Return the panel's message in an error: the relevant fields of JSON, otherwise the beginning of the text."""
    text = raw[:20_000].decode("utf-8", "replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return " ".join(re.sub(r"<[^>]*>", " ", text).split())[:500]
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    if not isinstance(body, dict):
        return json_value_as_plain_text(body)[:500]
    texts = [
        json_value_as_plain_text(body[name])
        for name in ("title", "message", "error", "detail", "additional_information")
        if body.get(name)
    ]
    return ". ".join(dict.fromkeys(texts or [json_value_as_plain_text(body)]))[:500]


def json_value_as_plain_text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{name}: {json_value_as_plain_text(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(json_value_as_plain_text(part) for part in value)
    return str(value)


# Tokens of panels, encrypted in the database.
#
# Jobs and the verification of notifications read them. This module is the only reader and writer of PanelSecret.


# The panel signs its notifications with it. It gives no access to the panel.
WEBHOOK_SECRET = "hook"  # noqa: S105 - the name of a secret


class NoService(ActionRefused):
    """This recruitment's channel cannot contact its panel, or lacks a required secret."""


def store_or_delete_secrets(recruitment: Recruitment, secrets: Mapping[str, str], *, by) -> None:
    """Store secrets by name; delete those given as an empty value.

    The audit log records who and which, not the values.
    """
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    with transaction.atomic():
        for name, secret in secrets.items():
            stored = PanelSecret.objects.filter(recruitment=recruitment, name=name)
            stored.delete()
            if secret:
                PanelSecret.objects.create(
                    recruitment=recruitment, name=name, ciphertext=encrypt(Purpose.CREDENTIAL, secret)
                )
            audit.record(
                "keep secret" if secret else "forget secret",
                study=recruitment.study,
                by=by,
                recruitment=recruitment.key,
                name=name,
            )


def stored_secret_dates(recruitment: Recruitment) -> dict[str, object]:
    """Return the names and dates of the stored secrets. Pages may show nothing more."""
    return dict(PanelSecret.objects.filter(recruitment=recruitment).values_list("name", "written_at"))


def has_service_secret(recruitment: Recruitment) -> bool:
    """Return whether a secret is stored that allows heval to contact the panel."""
    return PanelSecret.objects.filter(recruitment=recruitment).exclude(name=WEBHOOK_SECRET).exists()


def decrypt_panel_secret(recruitment: Recruitment, name: str) -> str:
    """Return one secret; '' if it is not stored."""
    if not recruitment.pk:  # a form that is not saved yet
        return ""
    ciphertext = (
        PanelSecret.objects.filter(recruitment=recruitment, name=name).values_list("ciphertext", flat=True).first()
    )
    return decrypt(Purpose.CREDENTIAL, ciphertext) if ciphertext else ""


def get_panel_service(recruitment: Recruitment) -> PanelService:
    """Return the panel's service with the stored secrets. Raises NoService with a message for researchers."""
    channel = REGISTRY.get(recruitment.channel)
    encrypted = (
        PanelSecret.objects.filter(recruitment=recruitment)
        .exclude(name=WEBHOOK_SECRET)
        .values_list("name", "ciphertext")
    )
    secrets = {name: decrypt(Purpose.CREDENTIAL, ciphertext) for name, ciphertext in encrypted}
    try:
        service = channel.service(recruitment, secrets) if channel else None
    except RequestRefused as error:
        raise NoService(str(error)) from error
    if service is None:
        raise NoService(
            f"{recruitment} has no panel token, or its channel has no service. Store the token on the panel page."
        )
    return service


def available_operations(recruitment: Recruitment) -> Collection[str]:
    """Return the operations that this recruitment's panel supports; empty without a stored secret."""
    try:
        return get_panel_service(recruitment).operations
    except NoService:
        return ()
