"""Robots that take part over HTTP as people do: they read the HTML and nothing else, and fail when what they need is missing."""

import random
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

from django.test import Client

SLOT = re.compile(
    r"s[0-9]+\.q[0-9]+(\.i[0-9]+)?(\.[A-Z]+)?(\.o[0-9]+)?(\.p[0-9]+)?(\.(skip|where|category|severity|words))?"
)


@dataclass
class Form:
    action: str = ""
    method: str = "get"
    fields: dict[str, list[str]] = field(default_factory=dict)  # name: values that may be sent
    kinds: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)  # name: the words of its legend or label
    buttons: list[tuple[str, str]] = field(default_factory=list)

    def takes(self, name: str, value: str) -> bool:
        """Whether a browser can send this: one of what is offered, or words where words are typed."""
        is_typed = self.kinds.get(name) in ("text", "textarea", "hidden")
        return (name, value) in self.buttons or (name in self.fields and (is_typed or value in self.fields[name]))


class Page(HTMLParser):
    """The forms of a page, its texts (or the addresses of its images) under their labels, its links and headings."""

    def __init__(self, html: str):
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.heading = ""
        self.code = ""
        self._label = self._into = None
        self._words: list[str] = []
        self._asking = ""
        self._depth = 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        classes = (a.get("class") or "").split()
        if tag == "form":
            self.forms.append(Form(a.get("action") or "", a.get("method") or "get"))
        elif tag in ("input", "textarea", "select", "button") and self.forms and a.get("name"):
            form, name = self.forms[-1], a["name"]
            if tag == "button":
                form.buttons.append((name, a.get("value") or ""))
            elif "disabled" not in a:
                form.fields.setdefault(name, []).extend([] if tag == "select" else [a.get("value") or ""])
                form.kinds[name] = a.get("type") or tag
                form.asked.setdefault(name, self._asking)
        elif tag == "img" and self._label:
            self.texts.setdefault(self._label, []).append(a["src"])
        elif tag == "option" and self.forms and self.forms[-1].fields:
            form = self.forms[-1]
            name = next(reversed(form.fields))
            if form.kinds[name] == "select":
                form.fields[name].append(a.get("value") or "")
        elif tag == "a" and a.get("href"):
            self.links.append(a["href"])
        elif tag == "h2":
            self._label = None  # a new prompt: its words are nobody's
        if (
            tag == "h1"
            or (tag in ("h2", "h3") and "label" in classes)
            or tag in ("legend",)
            or "ask" in classes
            or "words" in classes
        ):
            self._begin(tag, "words" if "words" in classes else "ask" if tag == "legend" or "ask" in classes else tag)

    def _begin(self, tag, into):
        self._into, self._words, self._tag = into, [], tag

    def handle_data(self, data):
        if self._into:
            self._words.append(data)

    def handle_endtag(self, tag):
        if not self._into or tag != self._tag:
            return
        words = " ".join("".join(self._words).split())
        if self._into == "h1":
            self.heading = words
        elif self._into in ("h2", "h3"):
            self._label = words.split()[-1]
        elif self._into == "ask":
            self._asking = words
        elif self._label:
            self.texts.setdefault(self._label, []).append(words)
        self._into = None


class Robot:
    """One annotator. ``answer(name, kind, values, asked, page, robot)`` gives what to send for a field, or None.

    Without it the robot sends what is plausible, as far as the page offers it.
    """

    def __init__(self, address: str, answer=None, seed: int | str = 0):
        self.client = Client(enforce_csrf_checks=True)
        self.address, self.answer, self.rng = address, answer, random.Random(seed)
        self.read: dict[str, list[str]] = {}
        self.responses: list = []
        self.url = ""

    def _seen(self, response):
        assert response.status_code < 500, (response.request["PATH_INFO"], response.status_code)
        assert not response.cookies, response.cookies
        self.responses.append(response)
        while response.status_code in (301, 302, 303):
            self.url = urljoin(self.url or "/", response["Location"])
            response = self.client.get(self.url)
            assert response.status_code < 500 and not response.cookies
            self.responses.append(response)
        return response

    def get(self, url):
        self.url = url
        return self._seen(self.client.get(url))

    def post(self, url, data):
        self.url = url.partition("?")[0]
        return self._seen(self.client.post(url, data))

    def start(self):
        page = Page(self.get(self.address).content.decode())
        form = next((form for form in page.forms if "start" in dict(form.buttons) or "agree" in form.fields), None)
        if form is None:
            return page
        hidden = {name: form.fields[name][0] for name, kind in form.kinds.items() if kind == "hidden"}
        data = hidden | {name: "1" for name in form.fields if name == "agree"}
        return Page(self.post(urljoin(self.address, form.action), data).content.decode())

    def play(self, until=None) -> str:
        """Everything to the end; gives the heading of the last page."""
        page = self.start()
        for _ in range(200):
            form = next((form for form in page.forms if "go" in dict(form.buttons)), None)
            if form is None or (until and until in self.url):
                return page.heading
            page = Page(self.post(form.action, self.fill(form, page)).content.decode())
        raise AssertionError("the study has no end")

    def fill(self, form: Form, page: Page) -> dict:
        for label, texts in page.texts.items():
            self.read.setdefault(label, []).extend(text for text in texts if text not in self.read.get(label, []))
        if self.answer is None:
            from tests.players import sent_from  # needs the models, which a reader of pages does not

            data = sent_from(form.action, self.rng)
            missing = {name: value for name, value in data.items() if not form.takes(name, value)}
            assert not missing, (form.action, missing)
            return data
        data = {"go": "1"}
        for name, values in form.fields.items():
            if not name.startswith("s") or name in ("save", "seen"):
                continue
            assert SLOT.fullmatch(name), name
            sent = self.answer(name, form.kinds[name], values, form.asked[name], page, self)
            if sent is not None:
                data[name] = sent
        return data


def clipped(value: float, low: int, high: int) -> int:
    return max(low, min(high, round(value)))


def preferring(quality: dict[str, float], system_of, noise=12, strength=25):
    """Answers of a person with these preferences: what is better is read off the texts, as far as they tell."""

    def answer(name, kind, values, asked, page, robot):
        if name.endswith(".skip"):
            return None
        if kind == "textarea":
            return ""
        if kind == "text":
            x, y = re.search(r"writer (\w+) is.* writer (\w+)\?", asked).groups()
            meant = {label: {system_of(text) for text in texts} for label, texts in robot.read.items()}
            assert len(meant[x]) == len(meant[y]) == 1, "one letter means one system"
            difference = quality[meant[x].copy().pop()] - quality[meant[y].copy().pop()]
            return str(clipped(50 + strength * difference + robot.rng.gauss(0, noise), 0, 100))
        if kind == "radio" and values[0] == "yes":
            return "yes"
        if kind == "radio":
            (system,) = {system_of(text) for text in page.texts[name.rsplit(".", 1)[1]]}
            return str(clipped(2.5 + 1.2 * quality[system] + robot.rng.gauss(0, 0.8), 1, len(values)))
        raise AssertionError((name, kind, values))

    return answer


def system_of(text):
    """The tale says its teller's name backwards."""
    return re.search(r"\((\w+)\)", text)[1][::-1]


def address(study, person, channel=None):
    return f"/e/{channel.key}/?who={person}&session=S{person}"
