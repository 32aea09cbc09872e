"""Clients of another site's boards and studies, over REST, and their commands. They need no database."""

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

import httpx
from django.core.management.base import BaseCommand, CommandError, handle_default_options

# httpcore logs headers, and one of them is the token.
for name in ("httpx", "httpcore"):
    logging.getLogger(name).setLevel(logging.WARNING)

TIMEOUT_SECONDS = 120
ATTEMPTS = 4
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
# The server is overloaded, restarting, or asks for patience. The same request may succeed later.
TRY_AGAIN = (429, 502, 503, 504)
# A limit that ends later than this is a refusal, and its text says when it ends.
PATIENCE_SECONDS = 60


class NotReachable(CommandError):
    """The site gave no usable response now. The same request may succeed later."""


@dataclass
class SiteClient:
    """Requests about one thing below ``root``. ``sleep`` and ``transport`` are replaced in tests."""

    root: ClassVar[str]

    site: str
    name: str
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
            base_url=f"{self.site.rstrip('/')}/api/v1/{self.root}/{quote(self.name, safe='')}/",
            headers={"Authorization": f"Token {self.token}"},
            timeout=TIMEOUT_SECONDS,
            transport=self.transport,
        )

    def get(self, path: str, **parameters: Any) -> Any:
        return self._send("GET", path, params=parameters)

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
        wait = response.headers.get("Retry-After", "")
        if response.status_code in TRY_AGAIN and not (wait.isdecimal() and int(wait) > PATIENCE_SECONDS):
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


class BoardClient(SiteClient):
    """Requests about one board."""

    root = "boards"

    def submit(self, path: Path, fields: Mapping[str, Any], request_token: str) -> Any:
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


class StudyClient(SiteClient):
    """Requests about one study, by its code."""

    root = "studies"


class SiteCommand(BaseCommand):
    """A command that talks to a site. It starts without the applications, and reads the settings only for the address of this site."""

    requires_system_checks = []
    # Of wrong arguments: argparse exits with 2, which has another meaning here.
    failed: ClassVar[int]

    def create_parser(self, prog_name, subcommand, **options):
        parser = super().create_parser(prog_name, subcommand, **options)

        def fail(message: str) -> None:
            parser.print_usage()
            parser.exit(self.failed, f"{parser.prog}: {message}\n")

        parser.error = fail  # type: ignore[method-assign]  # argparse has no setting for it
        return parser

    def run_from_argv(self, argv):
        """Run as Django does, which would then read the settings to close connections to databases."""
        options = self.create_parser(*argv[:2]).parse_args(argv[2:])
        handle_default_options(options)
        try:
            self.execute(**vars(options))
        except CommandError as error:
            if options.traceback:
                raise
            self.stderr.write(f"{type(error).__name__}: {error}")
            sys.exit(error.returncode)


def read_token(path: Path | None) -> str:
    """Return the token of a file or of HEVAL_TOKEN. Raise CommandError without one."""
    token = os.environ.get("HEVAL_TOKEN", "")
    if path is not None:
        try:
            token = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise CommandError(f"{path} cannot be read as text. Correct --token-file.") from None
    token = token.strip()
    if not token:
        raise CommandError(
            "There is no token. Set HEVAL_TOKEN to the key of your team or to a token of your account, or use --token-file."
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CommandError("The token has characters that no token has. Copy it again.")
    return token


def refusal_lines(status: int, problem: Mapping[str, Any]) -> list[str]:
    """Return what a problem of REST says: its text, and a line for each error."""
    lines = [f"{problem.get('detail') or problem.get('title')} (status {status})"]
    for error in problem.get("errors", []):
        where = [f"row {error['row']}"] if error.get("row") is not None else []
        where += [str(error["field"])] if error.get("field") else []
        lines.append(f"  {', '.join(where)}: {error['message']}" if where else f"  {error['message']}")
    return lines
