"""The admin as a browser meets it: forms are read from the HTML, changed and sent as they are."""

from html.parser import HTMLParser

from django.test import Client


class _Forms(HTMLParser):
    def __init__(self):
        super().__init__()
        self.forms: list[tuple[dict, list[tuple[str, str]]]] = []
        self.select = self.area = self.option = None

    @property
    def fields(self):
        return self.forms[-1][1] if self.forms else []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        name = attrs.get("name")
        if tag == "form":
            self.forms.append((attrs, []))
        elif tag == "input" and name:
            kind = attrs.get("type", "text")
            if "disabled" in attrs or kind in ("submit", "button", "file"):
                return
            if kind in ("checkbox", "radio"):
                if "checked" in attrs:
                    self.fields.append((name, attrs.get("value", "on")))
            else:
                self.fields.append((name, attrs.get("value", "")))
        elif tag == "select" and name:
            self.select = [name, [], "multiple" in attrs]
        elif tag == "option" and self.select:
            self.option = attrs.get("value", "")
            self.select[1].append((self.option, "selected" in attrs))
        elif tag == "textarea" and name:
            self.area = [name, ""]

    def handle_data(self, data):
        if self.area:
            self.area[1] += data

    def handle_endtag(self, tag):
        if tag == "select" and self.select:
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
    parser = _Forms()
    parser.feed(response.content.decode())
    if number is not None:
        fields = parser.forms[number][1]
    else:
        fields = next(fields for attrs, fields in parser.forms if attrs.get("id") == form_id)
    data: dict[str, list[str]] = {}
    for name, value in fields:
        data.setdefault(name, []).append(value)
    return data


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
    import re

    html = response.content.decode()
    found = re.findall(r'<ul class="errorlist[^"]*"[^>]*>(.*?)</ul>', html, re.S)
    found += re.findall(r'<(div|p) class="errornote"[^>]*>(.*?)</\1>', html, re.S)
    found += re.findall(r'<ul class="messagelist">(.*?)</ul>', html, re.S)
    texts = [one if isinstance(one, str) else one[1] for one in found]
    return re.sub(r"<[^>]+>", " ", " ".join(texts)).replace("&quot;", '"').replace("&#x27;", "'")
