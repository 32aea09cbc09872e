"""The elements of a page, read off its HTML."""

from html.parser import HTMLParser

from django.template.loader import render_to_string

from annotators.models import Assignment
from annotators.pages.presentation import ShownField
from tests import ROOT

TEMPLATES = sorted([*ROOT.glob("templates/annotate/**/*.html"), *ROOT.glob("templates/protocols/**/*.html")])


class Elements(HTMLParser):
    """Start tags with their attributes, and all the words."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data

    def named(self, name):
        return [attrs for _, attrs in self.tags if attrs.get("name") == name]

    def of(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def seen(response) -> Elements:
    return Elements(response.content.decode())


def at(assignment: Assignment, key: str = "") -> str:
    return f"/p/{assignment.code}/{key}/" if key else f"/p/{assignment.code}/"


def shown(field, **more) -> ShownField:
    return ShownField(
        **{"slot": "s1.q1", "field": field, "text": "How good?", "help": "", "label": "", "position": 1} | more
    )


def drawn(field: ShownField) -> Elements:
    return Elements(render_to_string("annotate/_fields.html", {"fields": (field,)}))
