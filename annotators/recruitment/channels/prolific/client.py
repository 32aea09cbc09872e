"""Requests to Prolific's API: answers are objects, and lists are read page by page."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from django.conf import settings as site

from annotators.recruitment.panels import PanelBusy, ResultUnclear
from annotators.recruitment.panels.http_client import PanelHttpClient

HOST = "api.prolific.com"


class ProlificClient:
    """A client for Prolific's API. Only the HTTP client holds ``token``, which has all rights of its account."""

    def __init__(self, token: str, origin: str = ""):
        self.http = PanelHttpClient(origin or site.PROLIFIC_API, (HOST,), secret=token, header="Authorization: Token ")

    def get(self, path: str) -> dict[str, Any]:
        return require_json_object(self.http.get_json(f"/api/v1/{path}"), PanelBusy)

    def send_order(self, method: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return require_json_object(self.http.send_json(method, f"/api/v1/{path}", body), ResultUnclear)

    def send_with_headers(self, method: str, path: str, body: Mapping[str, Any]) -> tuple[Any, Mapping[str, str]]:
        """Return the parts of the answer as they arrive, and its headers."""
        return self.http.send_json_with_headers(method, f"/api/v1/{path}", body)

    def rows_of_all_pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Return every row, following the links from page to page.

        Prolific answers a page after the last with an error.
        """
        visited = set()
        following: str | None = f"/api/v1/{path}"
        while following:
            visited.add(following)
            page = require_json_object(self.http.get_json(following), PanelBusy)
            yield from page.get("results") or []
            link = ((page.get("_links") or {}).get("next") or {}).get("href")
            parts = urlsplit(link or "")
            # The host of a link is never followed: the token is sent to one host only.
            following = f"{parts.path}?{parts.query}" if link else None
            if following in visited or (following and not following.startswith("/api/v1/")):
                raise PanelBusy("Prolific's page links form a loop. Try again later.")


def quote_id(value: Any) -> str:
    """Return an id as a path segment."""
    return quote(str(value), safe="")


def require_json_object(body: Any, error_class: type[Exception]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise error_class("Prolific's answer is not an object. Look at Prolific before you try again.")
    return body
