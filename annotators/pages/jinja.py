"""Jinja2 for annotators' templates. It renders a field in a quarter of the time of Django's templates.

Only ``annotate/`` and ``protocols/`` use Jinja2. All other templates use Django's language.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from django.template import defaultfilters
from django.templatetags.static import static
from jinja2 import BaseLoader, Environment, FileSystemLoader, PrefixLoader, nodes
from jinja2.visitor import NodeTransformer
from markupsafe import Markup, escape

from studies.language import (
    PageLanguage,
    active_language,
    format_amount,
    format_list,
    gettext,
    in_language,
    ngettext,
)
from studies.language.active import format_day, format_moment, text_direction
from studies.protocols.base.pages import labelled, shown_noun

from .script_texts import script_texts_in

JINJA_FOLDERS = ("annotate", "protocols")
INCLUDE_TAG = re.compile(r'{% include "([^"]+)" %}')
# A placeholder for the slot in cached HTML of blank fields. Its control characters cannot occur in texts.
SLOT_MARK = "\x02.\x03"
SLOT_ID_MARK = SLOT_MARK.replace(".", "-")
Grouped = TypeVar("Grouped")


def group_fields_by_question(fields: Iterable[Grouped]) -> list[Sequence[Grouped]]:
    """Group consecutive fields by their question. The boxes of a multiple choice share one question."""
    return [tuple(group) for _, group in groupby(fields, attrgetter("group"))]


def split_and_mark_quotes(text: str, feedback) -> tuple:
    """Split a practice text into parts, and mark the parts that an explanation quotes."""
    from .presentation import split_at_quotes

    return split_at_quotes(text, [quote for result in feedback for quote in result.quotes])


def output_name(page, label: str = "") -> str:
    """Return the name of the output with this label, such as "Story A", or the word for an output of this page."""
    language, key = active_language(), (page.noun if page else "", label or "")
    try:
        return language.html[key]
    except KeyError:
        noun = key[0] or shown_noun({})
        return language.html.setdefault(key, escape(labelled(noun, label) if label else noun))


@lru_cache(maxsize=256)
def _list_in(language: PageLanguage, parts: tuple[str, ...]) -> str:
    with in_language(language):
        return format_list(parts)


def listed(parts: Iterable[str]) -> str:
    return _list_in(active_language(), tuple(parts))


def signed(number: int) -> str:
    """Return a number whose sign stays at its left in a text from right to left."""
    return f"\u200e{number}" if number < 0 else str(number)


@lru_cache(maxsize=256)
def linked(text: str) -> Markup:
    """Return a text with its addresses as links. Its direction is its own. Cached, because it is on every page of a study."""
    return Markup("<bdi>{}</bdi>").format(defaultfilters.urlize(text, autoescape=True))


class InliningLoader(PrefixLoader):
    """Put included templates into the including template when it is loaded.

    Each include at render time takes as long as a form field, and a page has about twenty includes.
    """

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        source, path, is_current = super().get_source(environment, template)
        parts = [is_current]

        def inline(match: re.Match) -> str:
            inner, _, inner_is_current = self.get_source(environment, match[1])
            parts.append(inner_is_current)
            return inner.removesuffix("\n")

        source = INCLUDE_TAG.sub(inline, source)
        return source, path, lambda: all(check is None or check() for check in parts)

    # PrefixLoader.load delegates to the folder's loader, which would ignore get_source above.
    load = BaseLoader.load


class Messages:
    """The messages of the catalogues in the active language, as HTML."""

    def __getitem__(self, message: str) -> str:
        language = active_language()
        try:
            return language.html[message]
        except KeyError:
            html = Markup(language.translations.gettext(message))  # noqa: S704 - it has the tags of its message and no other sign
            return language.html.setdefault(message, html)


class MessageLookups(NodeTransformer):
    """Look up each message of a template in ``Messages``. A call of gettext takes ten times as long."""

    def visit_Call(self, node: nodes.Call) -> nodes.Node:
        self.generic_visit(node)
        if not (isinstance(node.node, nodes.Name) and node.node.name in ("_", "gettext")):
            return node
        message = nodes.Getitem(nodes.EnvironmentAttribute("messages"), node.args[0], "load", lineno=node.lineno)
        values = [nodes.Pair(nodes.Const(one.key), one.value) for one in node.kwargs]
        return nodes.Mod(message, nodes.Dict(values), lineno=node.lineno) if values else message


class MessageEnvironment(Environment):
    messages = Messages()

    def _generate(self, source: nodes.Template, *args, **kwargs) -> str:
        return super()._generate(MessageLookups().visit(source), *args, **kwargs)


def _blank_field_renderer(environment: Environment, cache_size: int) -> Callable:
    """Return a cached renderer of blank fields: a question looks the same below each output, for all annotators."""

    @lru_cache(maxsize=cache_size)
    def once(field, nth: tuple[int, ...], language: PageLanguage) -> Markup:
        return environment.get_template(field.template).make_module({"field": field, "nth": nth}).__html__()

    def blank(field, nth: tuple[int, ...]) -> Markup:
        html = once(replace(field, slot=SLOT_MARK, label="", position=None), nth, active_language())
        return html.replace(SLOT_MARK, field.slot).replace(SLOT_ID_MARK, field.id)

    return blank


def environment(loader: FileSystemLoader, auto_reload: bool, **_) -> Environment:
    """Return the Jinja2 environment for ``annotate/`` and ``protocols/``.

    It escapes everything that is not marked as HTML.
    """
    folders = {name: FileSystemLoader([f"{path}/{name}" for path in loader.searchpath]) for name in JINJA_FOLDERS}
    jinja = MessageEnvironment(loader=InliningLoader(folders), autoescape=True, auto_reload=auto_reload)
    jinja.add_extension("jinja2.ext.i18n")
    jinja.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]  # by the extension
    jinja.globals |= {
        "page_language": active_language,
        "money": format_amount,
        "script_texts": lambda *groups: script_texts_in(active_language(), groups),
    }
    jinja.globals["blank"] = _blank_field_renderer(jinja, 0 if auto_reload else 512)
    jinja.filters |= {
        "date": defaultfilters.date,
        "day": format_day,
        "moment": format_moment,
        "direction": text_direction,
        "grouped": group_fields_by_question,
        "linked": linked,
        "listed": listed,
        "marked": split_and_mark_quotes,
        "named": output_name,
        "signed": signed,
        # For a constant name, Jinja2 computes the address once, when it compiles the template.
        "static": static,
        "truncatechars": defaultfilters.truncatechars,
    }
    return jinja
