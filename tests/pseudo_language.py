"""A language for tests: every message of annotators' pages, in Greek letters. Latin letters that a page shows are then its study's or a fault."""

import re
from io import BytesIO

from babel.messages import Catalog
from babel.messages.pofile import write_po

from studies.language import PageLanguage
from studies.language.catalogues import (
    PLACEHOLDER,
    TAG,
    canonical_text,
    message_ids,
    message_template,
    read_catalogue,
    stored_page_language,
    version_of,
)
from studies.models import Study, Translation

# Babel writes dates and numbers in this language.
LANGUAGE = "el"
LATIN, GREEK = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "αβψδεφγηιξκλμνοπχρστθωϕυζςΑΒΨΔΕΦΓΗΙΞΚΛΜΝΟΠΧΡΣΤΘΩΪΫΖΆ",
)
TO_GREEK = str.maketrans(LATIN, GREEK)
KEPT = re.compile(f"{PLACEHOLDER.pattern}|{TAG.pattern}")


def in_pseudo(text: str) -> str:
    parts, end = [], 0
    for kept in KEPT.finditer(text):
        parts += [text[end : kept.start()].translate(TO_GREEK), kept[0]]
        end = kept.end()
    return "".join([*parts, text[end:].translate(TO_GREEK)])


def pseudo_file() -> str:
    """Return a PO file with all messages."""
    catalogue = Catalog(locale=LANGUAGE)
    for message in message_template():
        if message.id:
            forms = tuple(map(in_pseudo, message_ids(message)))
            catalogue.add(message.id, forms if len(forms) > 1 else forms[0])
    written = BytesIO()
    write_po(written, catalogue)
    return written.getvalue().decode()


def pseudo_text() -> str:
    return canonical_text(read_catalogue(pseudo_file()), LANGUAGE)


def pseudo_page_language() -> PageLanguage:
    return stored_page_language(LANGUAGE, LANGUAGE, pseudo_text())


def give_pseudo_language(study: Study) -> Study:
    """Give a draft pages in this language. Call it before the launch."""
    text = pseudo_text()
    study.translation, _ = Translation.objects.get_or_create(
        language=LANGUAGE, version=version_of(text), defaults={"text": text}
    )
    study.language = LANGUAGE
    study.save()
    return study
