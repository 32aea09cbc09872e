"""Requests to Prolific's interface: answers are objects, and lists are read page by page."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from django.conf import settings as site

from annotators.recruitment.panels import Busy, Unclear
from annotators.recruitment.panels.wire import Wire

HOST = "api.prolific.com"


class Client:
    """``token`` has all rights of its account: it is held by the wire alone."""

    def __init__(self, token: str, origin: str = ""):
        self.wire = Wire(origin or site.PROLIFIC_API, (HOST,), secret=token, header="Authorization: Token ")

    def get(self, path: str) -> dict[str, Any]:
        return whole(self.wire.get_json(f"/api/v1/{path}"), Busy)

    def order(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return whole(self.wire.order_json(method, f"/api/v1/{path}", body), Unclear)

    def order_answer(self, method: str, path: str, body: Mapping[str, Any]) -> tuple[Any, Mapping[str, str]]:
        """What the answer holds, as it comes, and its headers."""
        return self.wire.order_answer(method, f"/api/v1/{path}", body)

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Every row, by the links from page to page: a page asked for past the last one is an error at Prolific."""
        passed = set()
        following: str | None = f"/api/v1/{path}"
        while following:
            passed.add(following)
            page = whole(self.wire.get_json(following), Busy)
            yield from page.get("results") or []
            link = ((page.get("_links") or {}).get("next") or {}).get("href")
            parts = urlsplit(link or "")
            # The host of a link is never followed: the token goes to one host alone.
            following = f"{parts.path}?{parts.query}" if link else None
            if following in passed or (following and not following.startswith("/api/v1/")):
                raise Busy("Prolific's pages lead in a circle.")


def in_path(value: Any) -> str:
    """An id as a part of a path."""
    return quote(str(value), safe="")


def whole(body: Any, otherwise: type[Exception]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise otherwise("Prolific's answer is not an object.")
    return body
