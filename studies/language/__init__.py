"""The languages of annotators' pages: the catalogues of their words, and the language of the page that is being made.

Researchers' pages are in English. Words for annotators go through ``gettext`` of this package, in Python and in the
templates of ``annotate/`` and ``protocols/``. ``python -m tools.messages`` collects them.
"""

from .active import (
    ENGLISH,
    PageLanguage,
    activate,
    active_language,
    format_amount,
    format_duration,
    format_list,
    format_number,
    gettext,
    gettext_lazy,
    gettext_noop,
    in_language,
    ngettext,
)

__all__ = [
    "ENGLISH",
    "PageLanguage",
    "activate",
    "active_language",
    "format_amount",
    "format_duration",
    "format_list",
    "format_number",
    "gettext",
    "gettext_lazy",
    "gettext_noop",
    "in_language",
    "ngettext",
]
