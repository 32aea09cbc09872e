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
from django.utils.text import capfirst
from jinja2 import BaseLoader, Environment, FileSystemLoader, PrefixLoader
from markupsafe import Markup

from studies.language import active_language, gettext, ngettext
from studies.language.active import format_day, format_moment, format_number, text_direction

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


def _blank_field_renderer(environment: Environment, cache_size: int) -> Callable:
    """Return a cached renderer of blank fields: a question looks the same below each output, for all annotators."""

    @lru_cache(maxsize=cache_size)
    def once(field, nth: str, language) -> Markup:
        return environment.get_template(field.template).make_module({"field": field, "nth": nth}).__html__()

    def blank(field, nth: str) -> Markup:
        html = once(replace(field, slot=SLOT_MARK, label="", position=None), nth, active_language())
        return html.replace(SLOT_MARK, field.slot).replace(SLOT_ID_MARK, field.id)

    return blank


def environment(loader: FileSystemLoader, auto_reload: bool, **_) -> Environment:
    """Return the Jinja2 environment for ``annotate/`` and ``protocols/``.

    It escapes everything that is not marked as HTML.
    """
    folders = {name: FileSystemLoader([f"{path}/{name}" for path in loader.searchpath]) for name in JINJA_FOLDERS}
    jinja = Environment(loader=InliningLoader(folders), autoescape=True, auto_reload=auto_reload)
    jinja.add_extension("jinja2.ext.i18n")
    jinja.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]  # by the extension
    jinja.globals["page_language"] = active_language
    jinja.globals["blank"] = _blank_field_renderer(jinja, 0 if auto_reload else 512)
    jinja.filters |= {
        "capfirst": capfirst,
        "date": defaultfilters.date,
        "day": format_day,
        "moment": format_moment,
        "number": format_number,
        "direction": text_direction,
        "grouped": group_fields_by_question,
        # Cached, because its texts are on every page of a study.
        "linked": lru_cache(maxsize=256)(defaultfilters.urlize),
        "marked": split_and_mark_quotes,
        "plural": defaultfilters.pluralize,
        # For a constant name, Jinja2 computes the address once, when it compiles the template.
        "static": static,
        "truncatechars": defaultfilters.truncatechars,
    }
    return jinja
