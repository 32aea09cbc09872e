"""The words of annotators' pages are messages of the catalogues, and a page has those of one language."""

import re
from gettext import NullTranslations
from html.parser import HTMLParser

import pytest
from django.template import engines
from django.template.loader import render_to_string

from annotators.pages.jinja import listed, output_name
from annotators.pages.presentation import ShownField
from annotators.pages.script_texts import TEXTS, script_texts_in
from studies.language import ENGLISH, PageLanguage, in_language
from studies.protocols.base.fields import TextField, WholeNumberField
from tests import ROOT
from tests.annotators.pages.elements import TEMPLATES

LETTER = re.compile(r"[^\W\d_]")
SHOWN_ATTRIBUTE = re.compile(r'\b(aria-label|alt|title|placeholder|data-[\w-]+)="([^"]*)"')
# Data attributes whose values are names or addresses, and no text.
NAMES = {"data-page", "data-state", "data-script", "data-copies", "data-zoom", "data-labels"}
# Blocks inside a tag: classes and attributes of state.
INSIDE_TAG = re.compile(r"{% block (?:width|place) %}.*?{% endblock %}")
# By group of texts, the script that shows them.
SCRIPTS = {"copy": "annotate", "save": "annotate"} | {
    name: name for name in ("answers", "place", "images", "marks", "look", "open-link")
}
LITERAL = r"\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'"
SHOWN_BY_SCRIPT = re.compile(
    rf"(?:\b(?:textContent|innerText|ariaLabel|ariaValueText|title|alt|placeholder)\s*[:=]|\b(?:say|append|push|replaceChildren)\()\s*({LITERAL})"
)


class Words(HTMLParser):
    def __init__(self, html: str):
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_data(self, data):
        if LETTER.search(data):
            self.found.append(data.strip())


def without_jinja(source: str) -> tuple[str, list[str]]:
    """Return the HTML of a template without its expressions and messages, and the words in its expressions that are no message."""
    html, words = "", []
    block, is_message, before = "", False, ["", ""]
    for _, kind, value in environment().lex(INSIDE_TAG.sub("", source)):
        if kind == "data":
            html += "" if is_message else value
        elif kind in ("block_begin", "variable_begin"):
            block = kind
        elif kind == "name" and block == "block_begin" and value in ("trans", "endtrans"):
            is_message = value == "trans"
        elif kind == "string":
            text = value[1:-1]
            is_wording = re.search(r"^[A-Z]|\w\s\w", text) and not text.endswith(".html")
            if is_wording and before != ["_", "("] and before[1] not in ("==", "!="):
                words.append(text)
        if kind != "whitespace":
            before = [before[1], value]
    return html, words


def environment():
    return next(engine.env for engine in engines.all() if hasattr(engine, "env"))


def words_outside_messages(source: str) -> list[str]:
    html, words = without_jinja(source)
    in_attributes = [
        value for name, value in SHOWN_ATTRIBUTE.findall(html) if name not in NAMES and LETTER.search(value)
    ]
    return [*Words(html).found, *in_attributes, *words]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_word_of_a_template_is_a_message(template):
    assert words_outside_messages(template.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "<p>{% if a %}Here{% endif %}</p>",
        '<a href="/x" aria-label="Here">{{ a }}</a>',
        '{% with words = "Here it is" %}{{ words }}{% endwith %}',
        "{{ a ~ ', Prompt ' ~ b }}{{ 'Prompt ' ~ b }}",
        "{% trans %}Here{% endtrans %} there",
    ],
)
def test_a_word_outside_messages_is_found(source):
    assert words_outside_messages(source)


def script(name: str) -> str:
    """Return a script without its comments."""
    return re.sub(r"(?m)(^|\s)//.*$", "", (ROOT / f"static/{name}.js").read_text())


@pytest.mark.parametrize("name", sorted({*SCRIPTS.values(), "way-back"}))
def test_every_word_of_a_script_is_among_its_texts(name):
    code = script(name)
    shown = [re.sub(r"\$\{.*?\}", "", literal)[1:-1] for literal in SHOWN_BY_SCRIPT.findall(code)]
    sentences = re.findall(r"[\"`]([A-Z][a-z]+[ :.].*?)[\"`]", code)
    assert [text for text in shown if LETTER.search(text)] + sentences == []
    asked = {key for call in re.findall(r"\btext\(([^()]*)", code) for key in re.findall(r"\"(\w+)\"", call)}
    assert asked == {key for group, of in SCRIPTS.items() if of == name for key in TEXTS[group]}


def test_no_two_texts_of_scripts_have_one_name():
    names = [name for texts in TEXTS.values() for name in texts]
    assert len(names) == len(set(names)) and TEXTS.keys() == SCRIPTS.keys()


class Loud(NullTranslations):
    def gettext(self, message):
        return re.sub(r"%\(\w+\)s|[a-z]+", lambda part: part[0] if part[0][0] == "%" else part[0].upper(), message)


LOUD = PageLanguage("de", "de", "1", Loud())


def test_a_page_in_one_language_has_no_words_of_another():
    """What is kept between pages is kept for each language."""
    fields = [
        ShownField(slot="s1", field=TextField(required=False), text="12?", help="", label="A", position=1),
        ShownField(
            slot="s2",
            field=WholeNumberField(0, 9),
            text="34?",
            help="",
            label="",
            position=1,
            skip_reasons=(("k", "56"),),
        ),
    ]

    def made() -> list[str]:
        names = [output_name(None, "1"), output_name(None), listed(("1", "2", "3")), script_texts_in_use()]
        return [render_to_string("annotate/_questions.html", {"fields": fields}), *names]

    def script_texts_in_use() -> str:
        return environment().from_string('{{ script_texts("copy", "save") }}').render()

    def in_loud() -> list[str]:
        with in_language(LOUD):
            return made()

    english, loud = made(), in_loud()
    assert (made(), in_loud(), made()) == (english, loud, english)
    assert "You may leave this empty." in english[0] and "Cannot answer?" in english[0]
    assert "YOU MAY LEAVE THIS EMPTY." in loud[0] and "CANNOT ANSWER?" in loud[0] and "You may" not in loud[0]
    assert english[1:4] == ["Text 1", "Text", "1, 2 and 3"] and loud[1:4] == ["TEXT 1", "TEXT", "1, 2 und 3"]
    assert "Copied" in english[4] and "COPIED" in loud[4] and "Saved %(time)s" not in loud[4]


def test_texts_of_scripts_cannot_leave_their_attribute():
    class Quoting(NullTranslations):
        def gettext(self, message):
            return "d'accord <b>“&amp;”</b>"

    texts = script_texts_in(PageLanguage("fr", "fr", "2", Quoting()), ("copy",))
    assert texts == '{"copied":"d&#39;accord &lt;b&gt;“&amp;amp;”&lt;/b&gt;"}'
    assert script_texts_in(ENGLISH, ("copy", False, "")) == '{"copied":"Copied"}'
