"""The network of the client: it sends calls and makes pauses. Only this module knows httpx."""

import asyncio
import logging
import os
from collections.abc import Callable
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import httpx

from .calls import Call, NotReachable, Pause, Response, Steps, T, WrongUse

# httpcore logs headers, and one of them is the token.
for name in ("httpx", "httpcore"):
    logging.getLogger(name).setLevel(logging.WARNING)

TIMEOUT_SECONDS = 120
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def checked_address(address: str) -> str:
    """Return the address of a site without a slash at its end. Raise WrongUse if a token must not be sent there."""
    try:
        parts = urlsplit(address)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongUse(f"{address} is not a web address. Enter one, such as https://eval.example.org.")
    if parts.scheme == "http" and parts.hostname not in LOCAL_HOSTS:
        raise WrongUse(f"{address} is not encrypted, so others could read the token. Use https.")
    return address.rstrip("/")


def checked_token(token: str | None) -> str:
    """Return the token, by default that of HEVAL_TOKEN. Raise WrongUse without one."""
    token = (os.environ.get("HEVAL_TOKEN", "") if token is None else token).strip()
    if not token:
        raise WrongUse("There is no token. Set HEVAL_TOKEN to a token of your account, or to the key of your team.")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise WrongUse("The token has characters that no token has. Copy it again.")
    return token


def wsgi_transport(application: Any) -> httpx.WSGITransport:
    """Return a transport to an application in this process."""
    return httpx.WSGITransport(application)


class _Connection:
    def __init__(self, address: str, token: str | None, on_wait: Callable[[str], object] | None = None):
        self.site = checked_address(address) if token else address.rstrip("/")
        self.on_wait = on_wait or (lambda reason: None)
        self._options: dict[str, Any] = {
            "base_url": f"{self.site}/api/v1/",
            "headers": {"Authorization": f"Token {token}"} if token else {},
            "timeout": TIMEOUT_SECONDS,
        }

    def _request(self, call: Call) -> dict[str, Any]:
        return {
            "method": call.method,
            "url": call.path,
            # An empty dict would remove the query of the address.
            "params": {name: value for name, value in call.parameters.items() if value is not None} or None,
            "json": call.body,
            "data": dict(call.form) or None,
            "files": {"file": call.file} if call.file else None,
            "headers": dict(call.headers),
        }

    def _response(self, response: httpx.Response, has_content: bool) -> Response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Response(self.site, response.status_code, headers, response.content if has_content else b"")

    def _not_reachable(self, error: httpx.HTTPError) -> NotReachable:
        reason = (
            "it gave no answer in time" if isinstance(error, httpx.TimeoutException) else str(error) or "no connection"
        )
        return NotReachable(f"{self.site} cannot be reached: {reason}. Check the address and the network.")


class Connection(_Connection):
    """``token``: None if none is sent. ``sleep`` and ``transport`` replace the clock and the network."""

    def __init__(self, address, token, *, transport: httpx.BaseTransport | None = None, sleep=None, on_wait=None):
        super().__init__(address, token, on_wait)
        self._sleep: Callable[[float], object] | None = sleep
        self._http = httpx.Client(transport=transport, **self._options)

    def run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self.on_wait(step.reason)
                    (self._sleep or sleep)(step.seconds)
                    step = steps.send(None)
                    continue
                try:
                    response = self._exchange(step)
                except httpx.HTTPError as error:
                    step = steps.throw(self._not_reachable(error))
                else:
                    step = steps.send(response)
        except StopIteration as end:
            return end.value

    def _exchange(self, call: Call) -> Response:
        with self._http.stream(**self._request(call)) as response:
            if call.target is None or not response.is_success:
                response.read()
                return self._response(response, True)
            with call.target.open("wb") as file:
                for block in response.iter_bytes():
                    file.write(block)
            return self._response(response, False)

    def close(self) -> None:
        self._http.close()


class AsyncConnection(_Connection):
    def __init__(self, address, token, *, transport: httpx.AsyncBaseTransport | None = None, sleep=None, on_wait=None):
        super().__init__(address, token, on_wait)
        self._sleep = sleep or asyncio.sleep
        self._http = httpx.AsyncClient(transport=transport, **self._options)

    async def run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self.on_wait(step.reason)
                    await self._sleep(step.seconds)
                    step = steps.send(None)
                    continue
                try:
                    response = await self._exchange(step)
                except httpx.HTTPError as error:
                    step = steps.throw(self._not_reachable(error))
                else:
                    step = steps.send(response)
        except StopIteration as end:
            return end.value

    async def _exchange(self, call: Call) -> Response:
        async with self._http.stream(**self._request(call)) as response:
            if call.target is None or not response.is_success:
                await response.aread()
                return self._response(response, True)
            with call.target.open("wb") as file:
                async for block in response.aiter_bytes():
                    file.write(block)
            return self._response(response, False)

    async def close(self) -> None:
        await self._http.aclose()
