"""The admin as a browser meets it: forms are read from the HTML, changed and sent as they are."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

from django.test import Client

# What a browser makes of a value that it cannot show in a field of this type: nothing.
SHAPES = {
    "number": re.compile(r"-?(\d+(\.\d+)?|\.\d+)([eE][-+]?\d+)?"),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "datetime-local": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,3})?)?"),
}


def _shown(kind: str, value: str) -> str:
    """The value of an input as a browser holds it."""
    if kind in SHAPES and not SHAPES[kind].fullmatch(value):
        return ""
    if kind in ("email", "url"):
        value = value.strip()
    return value if kind == "hidden" else re.sub(r"[\r\n]", "", value)


@dataclass
class Form:
    """A form of a page: what a browser sends of it, and the buttons that send it."""

    attrs: dict
    fields: list[tuple[str, str]] = field(default_factory=list)
    # Names of what a person may fill in, sent or not.
    inputs: list[str] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)

    def __iter__(self):
        return iter((self.attrs, self.fields))

    @property
    def is_post(self) -> bool:
        return self.attrs.get("method", "get").lower() == "post"

    def sent(self, button: tuple[str, str] = ("", "")) -> dict[str, list[str]]:
        """What a browser sends; it writes every line break as CR LF."""
        data: dict[str, list[str]] = {}
        for name, value in [*self.fields, *([button] if button[0] else [])]:
            data.setdefault(name, []).append(re.sub(r"\r\n|\r|\n", "\r\n", value))
        return data


def forms_of(response) -> list[Form]:
    parser = _Forms()
    parser.feed(response.content.decode())
    return parser.forms


def press(client: Client, url: str, form: Form, button: tuple[str, str] = ("", "")):
    """Send an untouched form by one of its buttons."""
    return client.post(urljoin(url, form.attrs.get("action") or url), form.sent(button))


class _Forms(HTMLParser):
    def __init__(self):
        super().__init__()
        self.forms: list[Form] = []
        self.is_open = False
        self.select = self.area = self.option = None

    @property
    def fields(self):
        return self.forms[-1].fields if self.is_open else []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        name = attrs.get("name")
        if tag == "form":
            self.forms.append(Form(attrs))
            self.is_open = True
        elif not self.is_open:
            return
        elif (
            tag == "button"
            and attrs.get("type", "submit") == "submit"
            and "formaction" not in attrs
            or tag == "input"
            and attrs.get("type") == "submit"
        ):
            self.forms[-1].buttons.append((name or "", attrs.get("value", "")))
        elif tag == "input" and name:
            kind = attrs.get("type", "text")
            if "disabled" in attrs or kind == "button":
                return
            if kind != "hidden":
                self.forms[-1].inputs.append(name)
            if kind == "file":
                return
            if kind in ("checkbox", "radio"):
                if "checked" in attrs:
                    self.fields.append((name, attrs.get("value", "on")))
            else:
                self.fields.append((name, _shown(kind, attrs.get("value") or "")))
        elif "disabled" in attrs:
            return
        elif tag == "select" and name:
            self.forms[-1].inputs.append(name)
            self.select = [name, [], "multiple" in attrs]
        elif tag == "option" and self.select:
            self.option = attrs.get("value", "")
            self.select[1].append((self.option, "selected" in attrs))
        elif tag == "textarea" and name:
            self.forms[-1].inputs.append(name)
            self.area = [name, ""]

    def handle_data(self, data):
        if self.area:
            self.area[1] += data

    def handle_endtag(self, tag):
        if tag == "form":
            self.is_open = False
        elif tag == "select" and self.select:
            name, options, is_multiple = self.select
            chosen = [value for value, is_selected in options if is_selected]
            if not chosen and options and not is_multiple:
                chosen = [options[0][0]]
            self.fields.extend((name, value) for value in chosen)
            self.select = None
        elif tag == "textarea" and self.area:
            # A browser drops the newline after the tag.
            self.fields.append((self.area[0], self.area[1].removeprefix("\n")))
            self.area = None


def form_of(response, form_id: str = "", number: int | None = None) -> dict[str, list[str]]:
    """The fields of one form of a page, as a browser would send them untouched."""
    forms = forms_of(response)
    form = forms[number] if number is not None else next(one for one in forms if one.attrs.get("id") == form_id)
    return form.sent()


def changed(data: dict, **changes) -> dict:
    """The form with some fields typed anew; ``None`` takes a field away. Dashes of a name are written ``__``."""
    data = {name: list(values) for name, values in data.items()}
    for name, value in changes.items():
        name = name if name in data or "__" not in name else name.replace("__", "-")
        if value is None:
            data.pop(name, None)
        else:
            data[name] = value if isinstance(value, list) else [str(value)]
    return data


def logged_in(user) -> Client:
    client = Client()
    client.force_login(user)
    return client


def study_url(study, what="change/") -> str:
    return f"/admin/studies/study/{study.pk}/{what}"


def errors_of(response) -> str:
    """All messages of a page, as text."""
    html = response.content.decode()
    found = re.findall(r'<ul class="errorlist[^"]*"[^>]*>(.*?)</ul>', html, re.S)
    found += re.findall(r'<(div|p) class="errornote"[^>]*>(.*?)</\1>', html, re.S)
    found += re.findall(r'<ul class="messagelist">(.*?)</ul>', html, re.S)
    texts = [one if isinstance(one, str) else one[1] for one in found]
    return re.sub(r"<[^>]+>", " ", " ".join(texts)).replace("&quot;", '"').replace("&#x27;", "'")
