"""The language of annotators' templates: Jinja2, which draws a page in a fifth of the time that Django's own takes.

``annotate/`` and ``protocols/`` are drawn by it; every other template, which a researcher sees now and then, by Django's.
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
from django.utils.text import capfirst
from jinja2 import BaseLoader, Environment, FileSystemLoader, PrefixLoader
from markupsafe import Markup

JINJA_FOLDERS = ("annotate", "protocols")
INCLUDE_TAG = re.compile(r'{% include "([^"]+)" %}')
# Stands for a field's slot where it is drawn for all who will see it blank: characters that no text holds.
SLOT_MARK = "\x02.\x03"
SLOT_ID_MARK = SLOT_MARK.replace(".", "-")
Grouped = TypeVar("Grouped")


def group_fields(fields: Iterable[Grouped]) -> list[Sequence[Grouped]]:
    """Fields by the question that they share, in their order: the boxes of a multiple choice are one question."""
    return [tuple(group) for _, group in groupby(fields, attrgetter("group"))]


def mark_quotes(text: str, feedback) -> tuple:
    """A practice text in parts, those marked that some explanation quotes."""
    from .feedback import split_at_quotes

    return split_at_quotes(text, [quote for one in feedback for quote in one.quotes])


class InliningLoader(PrefixLoader):
    """What is included by its name stands in the including template from the start: an inclusion while a page is drawn takes as
    long as a field, and a page has twenty."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        source, path, is_current = super().get_source(environment, template)
        parts = [is_current]

        def put(found: re.Match) -> str:
            inner, _, inner_is_current = self.get_source(environment, found[1])
            parts.append(inner_is_current)
            return inner.removesuffix("\n")

        source = INCLUDE_TAG.sub(put, source)
        return source, path, lambda: all(one is None or one() for one in parts)

    # PrefixLoader's own asks the folder's loader, and what was put together here would never be drawn.
    load = BaseLoader.load


def _blank_field_renderer(environment: Environment, kept: int) -> Callable:
    """What draws blank fields: the same question stands under each output of each page, for everybody who takes part."""

    @lru_cache(maxsize=kept)
    def once(field, nth: str) -> Markup:
        return environment.get_template(field.template).make_module({"field": field, "nth": nth}).__html__()

    def blank(field, nth: str) -> Markup:
        drawn = once(replace(field, slot=SLOT_MARK, label="", position=None), nth)
        return drawn.replace(SLOT_MARK, field.slot).replace(SLOT_ID_MARK, field.id)

    return blank


def environment(loader: FileSystemLoader, auto_reload: bool, **_) -> Environment:
    """What Django makes its templates of ``annotate/`` and ``protocols/`` with. Everything is escaped that is not marked as HTML."""
    folders = {name: FileSystemLoader([f"{path}/{name}" for path in loader.searchpath]) for name in JINJA_FOLDERS}
    made = Environment(loader=InliningLoader(folders), autoescape=True, auto_reload=auto_reload)
    made.globals["blank"] = _blank_field_renderer(made, 0 if auto_reload else 512)
    made.filters |= {
        "capfirst": capfirst,
        "date": defaultfilters.date,
        "grouped": group_fields,
        # Words that stand on every page of a study.
        "linked": lru_cache(maxsize=256)(defaultfilters.urlize),
        "marked": mark_quotes,
        "plural": defaultfilters.pluralize,
        # Of a name that is written in a template: Jinja2 then writes the address once, when it compiles the template.
        "static": static,
        "truncatechars": defaultfilters.truncatechars,
    }
    return made
