"""Drawing the fields of annotators' pages."""

from functools import lru_cache

from django import template
from django.conf import settings
from django.template.defaultfilters import urlize
from django.template.loader import get_template

register = template.Library()

# ``urlize``, for words that stand on every page of a study.
register.filter("linked", lru_cache(maxsize=256)(urlize))


@register.simple_tag(takes_context=True)
def drawn(context, field) -> str:
    """A field by its own template, as ``include`` would draw it.

    Fields in which nobody has typed yet are alike from one annotator to the next, and drawing them is most of the work of a
    page: their HTML is kept. Such a field knows of its surroundings what ``_blank`` is given, and nothing else.
    """
    if field.is_blank and not settings.DEBUG:
        return _blank(field, context.get("nth", ""), getattr(context.get("page"), "noun", ""))
    with context.push(field=field):
        return get_template(field.template).template.render(context)


@lru_cache(maxsize=2048)
def _blank(field, nth: str, noun: str) -> str:
    words = template.Context({"field": field, "nth": nth, "page": {"noun": noun}}, use_l10n=False)
    return get_template(field.template).template.render(words)
