"""What is said to a site, without a network. An operation is a generator: it yields calls and pauses, and gets the responses."""

import json
import uuid
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

ATTEMPTS = 4
# The server is overloaded, restarting, or asks for patience. The same request may succeed later.
TRY_AGAIN = (429, 502, 503, 504)
# A limit that ends later than this is a refusal, and its text says when it ends.
PATIENCE_SECONDS = 60
NOT_MODIFIED = 304


class ClientError(Exception):
    """What was asked of a site did not succeed. The text says why, and what to do."""


class WrongUse(ClientError, ValueError):
    """What the caller gave cannot be sent."""


class NotReachable(ClientError):
    """The site gave no usable response now. The same request may succeed later."""


class TimedOut(ClientError):
    """What was waited for has not happened yet."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that the site refused: a row (from 1) or a field, or the key of a warning that a launch must name."""

    message: str
    row: int | None = None
    field: str | None = None
    key: str | None = None

    def __str__(self) -> str:
        where = [f"row {self.row}"] if self.row is not None else []
        where += [self.field] if self.field else []
        text = f"{', '.join(where)}: {self.message}" if where else self.message
        return f"{text} [{self.key}]" if self.key else text


class Refused(ClientError):
    """The site refused a request."""

    def __init__(self, status: int, detail: str, errors: Iterable[Fault] = ()):
        self.status, self.detail, self.errors = status, detail, tuple(errors)
        super().__init__("\n".join([f"{detail} (status {status})", *(f"  {fault}" for fault in self.errors)]))

    @classmethod
    def of(cls, status: int, problem: Any) -> "Refused":
        """Return what a problem of REST says."""
        if not isinstance(problem, dict):
            problem = {}
        faults = [
            Fault(str(one.get("message", "")), one.get("row"), one.get("field"), one.get("key"))
            for one in problem.get("errors", [])
        ]
        return cls(status, str(problem.get("detail") or problem.get("title") or "The site refused this."), faults)


@dataclass(frozen=True, slots=True)
class Call:
    """A request below ``/api/v1/``. ``form`` and ``file`` (name and content) are sent as a form, ``body`` as JSON.

    ``target``: the file to which the content of a success is written while it arrives.
    """

    method: str
    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    form: Mapping[str, Any] = field(default_factory=dict)
    file: tuple[str, bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    target: Path | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """``reason``: what is waited for, to be shown to a person."""

    seconds: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """``headers`` have lower-case names."""

    site: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.content)
        except ValueError:
            text = f"{self.site} answered without JSON. Check that this is the address of a heval site."
            raise Refused(self.status, text) from None


T = TypeVar("T")
Steps: TypeAlias = Generator[Call | Pause, Any, T]


def ask(method: str, path: str, body: Any = None, **options: Any) -> Steps[Any]:
    """Return the JSON of the response."""
    response = yield from send(method, path, body, **options)
    return response.json()


def send(
    method: str,
    path: str,
    body: Any = None,
    request_key: str = "",
    headers: Mapping[str, str] | None = None,
    **options: Any,
) -> Steps[Response]:
    """Return the response of a request, which is repeated while the site is not reachable. A POST has a key, so that it is done once.

    Raise NotReachable or Refused. ``options``: other parts of the Call.
    """
    _check_json(body)
    key = {"Idempotency-Key": request_key or uuid.uuid4().hex} if method == "POST" else {}
    call = Call(method, path, body=body, headers={**key, **(headers or {})}, **options)
    for attempt in range(1, ATTEMPTS + 1):
        wait = 2.0**attempt
        try:
            response: Response = yield call
            if not _is_passing(response):
                return _accepted(response)
            wait = max(wait, _retry_after(response) or 0)
            raise NotReachable(f"{response.site} answered {response.status}. Try again later.")
        except NotReachable as error:
            if attempt == ATTEMPTS:
                raise
            reason = str(error)
        yield Pause(wait, reason)
    raise AssertionError("the last attempt returns or raises")


def _check_json(body: Any) -> None:
    for name, value in body.items() if isinstance(body, Mapping) else [("body", body)]:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            raise WrongUse(
                f"{name}: This cannot be sent as JSON. Give finite numbers, texts, lists and dicts."
            ) from None


def _retry_after(response: Response) -> int | None:
    text = response.headers.get("retry-after", "")
    return int(text) if text.isdecimal() else None


def _is_passing(response: Response) -> bool:
    return response.status in TRY_AGAIN and (_retry_after(response) or 0) <= PATIENCE_SECONDS


def _accepted(response: Response) -> Response:
    if 200 <= response.status < 300 or response.status == NOT_MODIFIED:
        return response
    raise Refused.of(response.status, response.json())
