"""The page of the languages that come with heval, from the headers of their PO files."""

from studies.language.catalogues import (
    header_field,
    language_name,
    message_count,
    missing_messages,
    read_catalogue,
    shipped_file,
    shipped_languages,
)

from .markdown import build_page, inline_code, markdown_table

HEADERS = ("X-Translated-By", "X-Read-By")
NOBODY = "nobody yet"


def languages_page() -> str:
    rows = []
    for language in shipped_languages():
        text = shipped_file(language).read_text(encoding="utf-8")
        n = message_count() - len(missing_messages(read_catalogue(text)))
        rows.append((language_name(language), inline_code(language), n, *(header_field(text, one) for one in HEADERS)))
    return build_page(
        "Languages that come with heval",
        "The language of a study chooses the words around its texts. [Other languages](../how-to/other-languages.md) says how, and how to bring one.",
        f"**No native speaker has read a translation whose last column says “{NOBODY}”.** Let somebody who speaks the language read your study's pages "
        "before people are paid to answer. To have your name here, see "
        "[Read a translation](../how-to/other-languages.md#read-a-translation-of-heval-or-add-one).",
        markdown_table(
            ("Language", "Tag", "Messages", "Translated by", "Read by"),
            [("English", "`en`", message_count(), "its authors", "its authors"), *rows],
        ),
    )
