"""Catalogues: the words of annotators' pages in one language, as files in the format of gettext (PO).

A catalogue's file is checked before it is used: a translation with a wrong placeholder or tag would break a page.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from .active import PageLanguage

if TYPE_CHECKING:
    from babel.messages import Catalog, Message

LOCALE = Path(__file__).parent / "locale"
DOMAIN = "annotate"
TEMPLATE = LOCALE / f"{DOMAIN}.pot"
PLACEHOLDER = re.compile(r"%(?:\(\w+\))?.?")
TAG = re.compile(r"<[^<>]*>")
MAX_FORMS = 9
# Numbers with which a rule of plurals is tried: of pages, texts, minutes and people.
COUNTED = range(1001)
# These signs would end an attribute or begin a tag. Typographic quotation marks do neither.
FORBIDDEN = frozenset('"<>&')


@dataclass(frozen=True, slots=True)
class MessageProblem:
    """Why a translation cannot be used. ``line``: where it is in the file, if known."""

    message: str
    text: str
    line: int | None = None

    def __str__(self):
        place = f"Line {self.line}: " if self.line else ""
        message = self.message if len(self.message) <= 80 else f"{self.message[:79]}…"
        return f"{place}“{message}”: {self.text}"


class CatalogueRefused(Exception):
    """A file is no usable catalogue. ``problems`` lists the reasons."""

    def __init__(self, problems: list[MessageProblem] | str):
        self.problems = problems if isinstance(problems, list) else []
        super().__init__(problems if isinstance(problems, str) else " ".join(map(str, problems[:5])))


def read_catalogue(text: str) -> "Catalog":
    """Parse a PO file. Raise CatalogueRefused if it is not one."""
    from babel.messages import Catalog
    from babel.messages.pofile import PoFileError, PoFileParser

    class BoundedCatalog(Catalog):
        @property
        def num_plurals(self) -> int:
            # Babel makes so many places in each message, and no language has more than six.
            if super().num_plurals > MAX_FORMS:
                raise ValueError(f"nplurals is above {MAX_FORMS}")
            return super().num_plurals

    catalogue = BoundedCatalog(charset="utf-8")
    try:
        PoFileParser(catalogue, abort_invalid=True).parse(BytesIO(text.encode()))
    # Babel raises AttributeError for a date without a time.
    except (PoFileError, ValueError, LookupError, AttributeError) as error:
        raise CatalogueRefused(
            f"This is not a PO file ({error}). Download the file of words, translate it with an editor of PO files, and upload it."
        ) from None
    return catalogue


@cache
def message_template() -> "Catalog":
    """Return all messages of annotators' pages, in English."""
    return read_catalogue(TEMPLATE.read_text())


def message_forms(message: "Message") -> tuple[str, ...]:
    """Return the translations of a message: one, or one for each plural form. Those that are missing are ''."""
    return tuple(message.string) if isinstance(message.string, list | tuple) else (message.string or "",)


def message_ids(message: "Message") -> tuple[str, ...]:
    return tuple(message.id) if isinstance(message.id, list | tuple) else (message.id,)


def language_name(tag: str) -> str:
    """Return the English name of a language, or its tag if it is not known."""
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(tag.replace("-", "_")).get_display_name("en") or tag
    except (UnknownLocaleError, ValueError):
        return tag


def message_count() -> int:
    return sum(bool(message.id) for message in message_template())


def header_field(text: str, name: str) -> str:
    """Return a field of a PO file's header, or ''. Babel reads only the fields that it knows."""
    found = re.search(rf'^"{name}: *(.*?) *\\n"$', text, re.MULTILINE)
    return found[1] if found else ""


def find_message_problems(catalogue: "Catalog") -> list[MessageProblem]:
    """Return what is wrong with translations: other placeholders or tags than in English, or signs that break a page."""
    problems = []
    for message in catalogue:
        if not message.id or not any(message_forms(message)):
            continue
        singular, *plural = message_ids(message)
        in_singular, in_all = _parts(singular), _parts((plural or [singular])[0])
        for text in message_forms(message):
            reason = ""
            if not text:
                reason = "one of its plural forms is missing. Translate all of them, or none."
            # A form for one thing may leave the number out: "one page".
            elif _parts(text) != in_all and not (plural and _parts(text) == in_singular):
                reason = f"the placeholders and tags must be {_described(in_all)}, and are {_described(_parts(text))}."
            elif FORBIDDEN & set(TAG.sub("", text)):
                reason = 'the signs " < > & are not allowed. Use typographic quotation marks.'
            if reason:
                problems.append(MessageProblem(singular, reason, message.lineno))
                break
    return problems


def _parts(text: str) -> Counter[str]:
    return Counter(PLACEHOLDER.findall(text) + TAG.findall(text))


def _described(parts: Counter[str]) -> str:
    return ", ".join(sorted(parts.elements())) or "none"


def check_words(text: str) -> "Catalog":
    """Return the catalogue of a PO file. Raise CatalogueRefused if it is not one, or would break a page."""
    catalogue = read_catalogue(text)
    problems = find_message_problems(catalogue)
    if not problems and not _can_make_plurals(text, catalogue.num_plurals):
        problems = [MessageProblem("Plural-Forms", "this header is wrong. Copy it from the file that heval gives.")]
    if problems:
        raise CatalogueRefused(problems)
    return catalogue


def _can_make_plurals(text: str, n_forms: int) -> bool:
    try:
        plural = compile_catalogue(text).plural  # type: ignore[attr-defined]  # made of the header
        return all(0 <= plural(n) < n_forms for n in COUNTED)
    except (ValueError, ArithmeticError, RecursionError):
        return False


def missing_messages(catalogue: "Catalog") -> list[str]:
    """Return the messages that a catalogue does not translate. Annotators would read them in English."""
    return [
        message_ids(message)[0]
        for message in message_template()
        if message.id and not ((other := catalogue.get(message.id)) and all(message_forms(other)))
    ]


def canonical_text(catalogue: "Catalog", language: str) -> str:
    """Return the catalogue's translations as a PO file without comments, in the order of their messages.

    Equal words give equal text. Messages that no page has are left out. English is its own translation.
    """
    from babel.messages import Catalog
    from babel.messages.pofile import write_po

    # The catalogue's own rule of plurals: an uploaded file may have another than Babel's for the language.
    plural = f"nplurals={catalogue.num_plurals}; plural={catalogue.plural_expr};"
    stored = Catalog(locale=language.replace("-", "_"), project="heval", header_comment="", fuzzy=False)
    stored.mime_headers = [("Plural-Forms", plural)]
    for message in message_template():
        other = message if language == "en" else catalogue.get(message.id) if message.id else None
        if not message.id or other is None or other.fuzzy:
            continue
        forms = message_ids(message) if language == "en" else message_forms(other)
        if all(forms):
            stored.add(message.id, forms if len(message_ids(message)) > 1 else forms[0])
    header = f'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n"Plural-Forms: {plural}\\n"\n\n'
    written = BytesIO()
    write_po(written, stored, omit_header=True, sort_output=True, width=0)
    return header + written.getvalue().decode()


LEFT_OUT = tuple(
    f'"{name}'
    for name in (
        "POT-Creation-Date",
        "PO-Revision-Date",
        "Generated-By",
        "Project-Id",
        "Report-Msgid",
        "Last-Tr",
        "Language-Team",
    )
)


def po_text(catalogue: "Catalog", fields: str = "") -> str:
    """Return a catalogue as a PO file for people, with comments. ``fields``: more lines of its header."""
    from babel.messages.pofile import write_po

    written = BytesIO()
    write_po(written, catalogue, width=100, include_lineno=False, sort_output=False, include_previous=True)
    # The time of writing would change the file although no message has changed, and Babel fills other fields with examples.
    lines = written.getvalue().decode().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith(LEFT_OUT))
    return text.replace('"MIME-Version', f'{fields}"MIME-Version', 1)


def file_to_translate(language: str, text: str) -> str:
    """Return a PO file with all messages. ``text``: the catalogue with the translations that there are, or ''."""
    from babel.messages import Catalog

    catalogue = read_catalogue(text) if text else Catalog(locale=language.replace("-", "_"))
    catalogue.update(message_template(), no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    catalogue.header_comment = "# The words of annotators' pages."
    catalogue.project, catalogue.fuzzy = "heval", False
    return po_text(catalogue)


def version_of(text: str) -> str:
    """Return the version of a canonical catalogue: the sha256 of its text."""
    return hashlib.sha256(text.encode()).hexdigest()


def compile_catalogue(text: str) -> GNUTranslations:
    from babel.messages.mofile import write_mo

    compiled = BytesIO()
    write_mo(compiled, read_catalogue(text))
    compiled.seek(0)
    return GNUTranslations(compiled)


# The languages that come with the program.


def shipped_languages() -> list[str]:
    """Return the languages of the catalogues that come with the program, without English."""
    return sorted(path.parent.parent.name for path in LOCALE.glob(f"*/LC_MESSAGES/{DOMAIN}.po"))


def shipped_file(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / f"{DOMAIN}.po"


def shipped_language_for(tag: str) -> str:
    """Return the shipped language in which a study's pages are shown, or '' if heval has no words in it."""
    # Chinese is written in two scripts. The catalogue has the simplified one.
    if re.match(r"zh-(tw|hk|mo|hant)\b", tag.lower()):
        return ""
    base = tag.split("-")[0].lower()
    return base if base == "en" or base in shipped_languages() else ""


@lru_cache(maxsize=32)
def shipped_text(language: str) -> str:
    """Return the canonical text of a shipped catalogue."""
    file = TEMPLATE if language == "en" else shipped_file(language)
    return canonical_text(read_catalogue(file.read_text()), language)


@lru_cache(maxsize=32)
def shipped_translations(language: str) -> GNUTranslations:
    return compile_catalogue(shipped_text(language))


@lru_cache(maxsize=64)
def shipped_page_language(tag: str) -> PageLanguage:
    """Return the language of a draft's pages: the shipped one for its tag, or English."""
    words = shipped_language_for(tag) or "en"
    if words == "en":
        return PageLanguage(tag)
    return PageLanguage(tag, words, version_of(shipped_text(words)), shipped_translations(words))


def stored_page_language(tag: str, words: str, text: str) -> PageLanguage:
    """Return the language of pages whose words were kept. Words that a later release added come from that release."""
    translations = compile_catalogue(text)
    if words != "en" and shipped_language_for(words):
        translations.add_fallback(shipped_translations(shipped_language_for(words)))
    return PageLanguage(tag, words, version_of(text), translations)
