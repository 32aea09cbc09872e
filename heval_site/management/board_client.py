"""A client of another site's boards, over REST. It needs no database."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from django.core.management.base import CommandError

# httpcore logs headers, and one of them is the token.
for name in ("httpx", "httpcore"):
    logging.getLogger(name).setLevel(logging.WARNING)

TIMEOUT_SECONDS = 120
ATTEMPTS = 4
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
# The server is overloaded, restarting, or asks for patience. The same request may succeed later.
TRY_AGAIN = (429, 502, 503, 504)


class NotReachable(CommandError):
    """The site gave no usable response now. The same request may succeed later."""


@dataclass
class BoardClient:
    """Requests about one board. ``sleep`` and ``transport`` are replaced in tests."""

    site: str
    board: str
    token: str
    sleep: Callable[[float], object] = time.sleep
    transport: httpx.BaseTransport | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.site)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CommandError(f"--site {self.site} is not a web address. Enter one, such as https://eval.example.org.")
        if parts.scheme == "http" and parts.hostname not in LOCAL_HOSTS:
            raise CommandError(f"--site {self.site} is not encrypted, so others could read the token. Use https.")
        self._http = httpx.Client(
            base_url=f"{self.site.rstrip('/')}/api/v1/boards/{quote(self.board, safe='')}/",
            headers={"Authorization": f"Token {self.token}"},
            timeout=TIMEOUT_SECONDS,
            transport=self.transport,
        )

    def get(self, path: str, **parameters: Any) -> Any:
        return self._send("GET", path, params=parameters)

    def submit(self, path: Path, fields: Mapping[str, str], request_token: str) -> Any:
        """Upload a file of outputs. A repeated upload with the same ``request_token`` stores nothing new, so it is tried again."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise CommandError(f"{path} cannot be read: {error.strerror}. Name another file.") from None
        return self._send(
            "POST",
            "submissions/",
            data=dict(fields),
            files={"file": (path.name, content)},
            headers={"Idempotency-Key": request_token},
        )

    def _send(self, method: str, path: str, **options: Any) -> Any:
        """Return the JSON of a response. Raise NotReachable after some attempts, and CommandError for a refusal."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._send_once(method, path, **options)
            except NotReachable:
                if attempt == ATTEMPTS:
                    raise
                self.sleep(2.0**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _send_once(self, method: str, path: str, **options: Any) -> Any:
        try:
            response = self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            text = f"{self.site} cannot be reached ({type(error).__name__}). Check --site and the network."
            raise NotReachable(text) from None
        if response.status_code in TRY_AGAIN:
            raise NotReachable(f"{self.site} answered {response.status_code}. Try again later.")
        try:
            body = response.json()
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise CommandError(
                f"{self.site} answered {response.status_code} without JSON. Check that --site is the address of a heval site."
            )
        if response.is_success:
            return body
        raise CommandError("\n".join(refusal_lines(response.status_code, body)))


def refusal_lines(status: int, problem: Mapping[str, Any]) -> list[str]:
    """Return what a problem of REST says: its text, and a line for each error."""
    lines = [f"{problem.get('detail') or problem.get('title')} (status {status})"]
    for error in problem.get("errors", []):
        where = [f"row {error['row']}"] if error.get("row") is not None else []
        where += [str(error["field"])] if error.get("field") else []
        lines.append(f"  {', '.join(where)}: {error['message']}" if where else f"  {error['message']}")
    return lines
