"""A minimal browser for one person: addresses, forms and the way back, read from the HTML."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin, urlsplit

from annotators.recruitment.panels.stand_in import ShownWayBack

MAX_REDIRECTS = 5


@dataclass(frozen=True, slots=True)
class HttpReply:
    status: int
    html: str = ""
    location: str = ""
    cookies: str = ""


# Maps (method, path with query, body) to an answer: over a socket, or in one process for tests.
SendRequest = Callable[[str, str, bytes | None], HttpReply]


class UnexpectedPage(Exception):
    """A page is unusable for a person; the message is for the report."""


@dataclass
class Form:
    action: str
    method: str
    names: set[str] = field(default_factory=set)
    hidden: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    """The heading, the forms, the code to copy and the button that leads away."""

    def __init__(self, html: str, url: str):
        super().__init__()
        self.forms: list[Form] = []
        self.url, self.heading, self.code, self.panel_url = url, "", "", ""
        self._into = ""
        self.feed(html)
        self.heading = " ".join(self.heading.split())

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(urljoin(self.url, attributes.get("action", "")), attributes.get("method", "get")))
        elif tag in ("input", "textarea", "select", "button") and self.forms and attributes.get("name"):
            self.forms[-1].names.add(attributes["name"])
            if attributes.get("type") == "hidden":
                self.forms[-1].hidden[attributes["name"]] = attributes.get("value", "")
        elif tag == "h1" and not self.heading:
            self._into = "heading"
        elif attributes.get("id") == "code":
            self._into = "code"
        elif tag == "a" and "button" in attributes.get("class", "").split() and "://" in attributes.get("href", ""):
            self.panel_url = attributes["href"]

    def handle_endtag(self, tag):
        if tag in ("h1", "span"):
            self._into = ""

    def handle_data(self, data):
        if self._into:
            setattr(self, self._into, getattr(self, self._into) + data)

    def find_form(self, name: str) -> Form | None:
        return next((form for form in self.forms if name in form.names), None)

    @property
    def way_back(self) -> ShownWayBack:
        own_host = urlsplit(self.url).netloc
        form = next((form for form in self.forms if urlsplit(form.action).netloc not in ("", own_host)), None)
        if form is not None:
            return ShownWayBack(self.code, form.action, form.hidden)
        return ShownWayBack(self.code, self.panel_url)


class Browser:
    """The browser of one person. ``site_url``: the origin of the panel's links; ``send`` reaches the server behind it."""

    def __init__(self, site_url: str, send: SendRequest):
        self.site, self.send, self.url = site_url, send, ""

    def get(self, address: str) -> Page:
        return self._open("GET", address, None)

    def post(self, address: str, fields: Mapping[str, list[str] | str]) -> Page:
        """Send a form."""
        return self._open("POST", address, urlencode(fields, doseq=True).encode())

    def post_and_lose_reply(self, address: str, fields: Mapping[str, list[str] | str]) -> None:
        """Send a form. The connection breaks after everything was sent."""
        self.send("POST", self._path(address), urlencode(fields, doseq=True).encode())

    def _path(self, address: str) -> str:
        parts = urlsplit(address)
        if f"{parts.scheme}://{parts.netloc}" != self.site:
            raise UnexpectedPage(f"The page leads to {parts.scheme}://{parts.netloc}, but the study is at {self.site}.")
        return f"{parts.path}?{parts.query}" if parts.query else parts.path

    def _open(self, method: str, address: str, body: bytes | None) -> Page:
        for _ in range(MAX_REDIRECTS):
            answer = self.send(method, self._path(address), body)
            if answer.cookies:
                raise UnexpectedPage(f"{urlsplit(address).path} sets a cookie; annotators' pages need none.")
            if answer.status not in (301, 302, 303):
                break
            address, method, body = urljoin(address, answer.location), "GET", None
        if answer.status >= 500 or answer.status == 404:
            raise UnexpectedPage(f"{urlsplit(address).path} answers with {answer.status}.")
        self.url = address
        return Page(answer.html, address)
