"""Languages for tests: every message of annotators' pages, in the letters of another script. Latin letters that a page shows are then its study's or a fault."""

import re
from functools import cache
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
LATIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
GREEK = "αβψδεφγηιξκλμνοπχρστθωϕυζςΑΒΨΔΕΦΓΗΙΞΚΛΜΝΟΠΧΡΣΤΘΩΪΫΖΆ"
# Scripts without capital letters; the second is written from right to left.
GEORGIAN, ARABIC = "აბცდეფგჰიჯკლმნოპქრსტუვწხყზ", "ابتثجحخدذرزسشصضطظعغفقكلمنه"
LETTERS = {"el": GREEK, "ka": GEORGIAN * 2, "ar": ARABIC * 2}
KEPT = re.compile(f"{PLACEHOLDER.pattern}|{TAG.pattern}")


def in_pseudo(text: str, language: str = LANGUAGE) -> str:
    parts, end, letters = [], 0, str.maketrans(LATIN, LETTERS[language])
    for kept in KEPT.finditer(text):
        parts += [text[end : kept.start()].translate(letters), kept[0]]
        end = kept.end()
    return "".join([*parts, text[end:].translate(letters)])


def pseudo_file(language: str = LANGUAGE) -> str:
    """Return a PO file with all messages."""
    catalogue = Catalog(locale=language)
    for message in message_template():
        if message.id:
            one, *many = (in_pseudo(text, language) for text in message_ids(message))
            # The form for one thing is the first of two, and the second of the six of Arabic.
            before = many * (catalogue.num_plurals > 2)
            after = many * (catalogue.num_plurals - 1 - len(before))
            catalogue.add(message.id, (*before, one, *after) if many else one)
    written = BytesIO()
    write_po(written, catalogue)
    return written.getvalue().decode()


@cache
def pseudo_text(language: str = LANGUAGE) -> str:
    return canonical_text(read_catalogue(pseudo_file(language)), language)


def pseudo_page_language() -> PageLanguage:
    return stored_page_language(LANGUAGE, LANGUAGE, pseudo_text())


def give_pseudo_language(study: Study, language: str = LANGUAGE) -> Study:
    """Give a draft pages in this language. Call it before the launch."""
    text = pseudo_text(language)
    study.translation, _ = Translation.objects.get_or_create(
        language=language, version=version_of(text), defaults={"text": text}
    )
    study.language = language
    study.save()
    return study
