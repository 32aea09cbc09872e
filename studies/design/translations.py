"""What the words of a study's pages are, who wrote them, and how many of them there are."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from studies.language.catalogues import (
    CatalogueRefused,
    check_words,
    file_to_translate,
    header_field,
    message_count,
    missing_messages,
    shipped_file,
    shipped_language_for,
    shipped_languages,
    shipped_text,
    version_of,
)
from studies.models import Study, Translation
from studies.protocols import Problem


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a study's pages. ``origin``: "heval", or "file" for those that a researcher brought.

    ``is_kept``: since the launch. ``untranslated``: messages that the translation lacks.
    """

    study_language: str
    language: str
    origin: str
    version: str | None
    is_kept: bool
    messages: int
    untranslated: int
    translated_by: str
    read_by: str


def base_language(tag: str) -> str:
    return tag.partition("-")[0].lower()


def brought_translation(study: Study) -> Translation | None:
    """Return the words that somebody brought, or None if they are those of heval: from an earlier release, or as this one has them."""
    row = study.translation
    if row is None or row.by_id is None:
        return None
    shipped = shipped_language_for(row.language)
    return None if shipped and row.version == version_of(shipped_text(shipped)) else row


def words_of(study: Study) -> Words:
    row = study.translation
    language = row.language if row else shipped_language_for(study.language) or "en"
    brought = brought_translation(study)
    by = ("", "") if language == "en" else (str(brought.by), "") if brought else _authors(language)
    # Studies that were launched before there were translations have English words without a version.
    version = row.version if row else version_of(shipped_text(language)) if study.is_draft else None
    return Words(
        study_language=study.language,
        language=language,
        origin="file" if brought else "heval",
        version=version,
        is_kept=not study.is_draft,
        messages=message_count(),
        untranslated=_lacks(row.language, row.version)[0] if row else 0,
        translated_by=by[0],
        read_by=by[1],
    )


def words_file(study: Study) -> str:
    """Return a PO file to translate: all messages, with the words that the study's pages have now."""
    row, language = study.translation, study.language
    if row and row.language != "en":
        return file_to_translate(row.language, row.text)
    shipped = shipped_language_for(language)
    return file_to_translate(language, shipped_text(shipped) if shipped not in ("", "en") else "")


def words_file_name(study: Study) -> str:
    return f"heval-words-{study.language}.po"


@lru_cache(maxsize=64)
def _lacks(language: str, version: str) -> tuple[int, str]:
    """Return how many messages a stored catalogue lacks, and the first reason why it cannot be used any more."""
    text = Translation.objects.values_list("text", flat=True).get(language=language, version=version)
    try:
        return len(missing_messages(check_words(text))), ""
    except CatalogueRefused as refused:
        return 0, str(refused)


@lru_cache(maxsize=32)
def _authors(language: str) -> tuple[str, str]:
    text = shipped_file(language).read_text()
    return header_field(text, "X-Translated-By"), header_field(text, "X-Read-By")


def translation_problems(study: Study) -> Iterator[Problem]:
    """Yield what is wrong with the words around a draft's texts."""
    row, tag = study.translation, study.language
    if row is None:
        if not shipped_language_for(tag):
            yield Problem(
                f"Annotators read the words around the texts in English: heval has none in {tag}. Bring a file, or choose "
                f"{', '.join(['en', *shipped_languages()])}.",
                "translation",
                False,
                "words_in_english",
            )
        return
    if base_language(row.language) != base_language(tag):
        yield Problem(
            f"The file of words is in the language {row.language}, and the study in {tag}. Remove the file, or change the study's language.",
            "translation",
        )
        return
    n_missing, problem = _lacks(row.language, row.version)
    if problem:
        yield Problem(
            f"The file of words cannot be used any more. {problem} Correct it, and bring it again.", "translation"
        )
    elif n_missing:
        yield Problem(
            f"The file of words lacks {n_missing} of {message_count()} messages. Annotators may read them in English. Add them, and bring the "
            "file again.",
            "translation",
            False,
            "words_are_missing",
        )
