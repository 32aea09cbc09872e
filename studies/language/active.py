"""The language of the page that is being made, and the functions that translate its words and write its dates and numbers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from gettext import NullTranslations
from typing import Literal

from django.conf import settings
from django.utils.functional import lazy


def text_direction(language: str) -> str:
    """Return the direction of texts in this language. If it is not known, the browser looks at the letters."""
    if not language:
        return "auto"
    return "rtl" if language.split("-")[0].lower() in settings.LANGUAGES_BIDI else "ltr"


@dataclass(frozen=True, slots=True)
class PageLanguage:
    """The language of a study's pages.

    ``tag``: the language of the study's own texts. ``words``: the language of the words around them, which is English if
    there is no translation. ``version``: the version of the catalogue of these words.
    """

    tag: str = "en"
    words: str = "en"
    version: str = ""
    translations: NullTranslations = field(default_factory=NullTranslations, compare=False)
    # What templates have shown of them, as HTML: messages, and names of outputs by their noun and label.
    html: dict[str | tuple[str, str], str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def direction(self) -> str:
        return text_direction(self.words)

    @property
    def locale(self) -> str:
        """Return the name by which Babel knows how dates and numbers are written. English is that of most countries."""
        return "en_GB" if self.words == "en" else self.words.replace("-", "_")


ENGLISH = PageLanguage()
_active: ContextVar[PageLanguage] = ContextVar("page_language", default=ENGLISH)


def active_language() -> PageLanguage:
    return _active.get()


def activate(language: PageLanguage) -> None:
    """Make the rest of this request's page in this language. The views of annotators' pages begin in English."""
    _active.set(language)


@contextmanager
def in_language(language: PageLanguage) -> Iterator[None]:
    token = _active.set(language)
    try:
        yield
    finally:
        _active.reset(token)


def gettext(message: str) -> str:
    return _active.get().translations.gettext(message)


def ngettext(singular: str, plural: str, n: int) -> str:
    return _active.get().translations.ngettext(singular, plural, n)


def gettext_noop(message: str) -> str:
    """Mark a message for the catalogues. The code that shows it translates it."""
    return message


# For constants, which are made before any page is: the text is translated where it is shown.
gettext_lazy = lazy(gettext, str)


def format_day(value: date) -> str:
    from babel.dates import format_date

    day = value.astimezone(UTC).date() if isinstance(value, datetime) else value
    return format_date(day, "long", locale=_locale())


def format_moment(value: datetime) -> str:
    """Return the day and the time of day in UTC, and say that it is UTC."""
    return f"{format_day(value)}, {value.astimezone(UTC):%H:%M} UTC"


def format_number(value: int | Decimal | float) -> str:
    """Return a number with the signs of the language. Its digits are those of the scales on the pages: 0 to 9."""
    pattern, exponent = copy(_locale().decimal_formats[None]), Decimal(str(value)).as_tuple().exponent
    # As many decimals as the number has: 2.50, an amount of money, does not become 2.5.
    places = max(0, -exponent) if isinstance(exponent, int) else 0
    pattern.frac_prec = (places, places)
    return pattern.apply(value, _locale())


def format_amount(amount: Decimal, currency: str) -> str:
    """Return an amount of money: the number in the form of the language, then the currency's code."""
    return f"{format_number(amount)} {currency}"


def format_duration(seconds: int) -> str:
    """Return minutes and seconds in words."""
    from babel.units import format_unit

    parts = dict(zip(("minute", "second"), divmod(int(seconds), 60), strict=True))
    shown = {unit: n for unit, n in parts.items() if n} or {"second": 0}
    return format_list([format_unit(n, f"duration-{unit}", locale=_locale()) for unit, n in shown.items()])


def format_list(parts: Sequence[str], style: Literal["standard", "or"] = "standard") -> str:
    """Return the parts as a list in words: "a, b and c", or "a, b or c" in the style "or"."""
    from babel.lists import format_list as join_parts

    return join_parts(list(parts), style, locale=_locale())


def _locale():
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(_active.get().locale)
    except (UnknownLocaleError, ValueError):
        return Locale("en", "GB")
