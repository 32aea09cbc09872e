"""Files of words: read a PO file for the language of a draft, check it, and take it away again."""

import re
from collections.abc import Sequence
from typing import Any

from studies.access import Action, check_permission_or_404
from studies.design.translations import base_language
from studies.language.catalogues import (
    CatalogueRefused,
    canonical_text,
    check_words,
    message_count,
    missing_messages,
    read_catalogue,
)
from studies.models import Study, Translation
from studies.stimuli.rows import TableProblem, TableProblems
from studies.stimuli.texts import LANGUAGE_TAG

from . import drafts, translations
from .lifecycle import ActionRefused, FileRefused

MAX_FILE_BYTES = 2**20
MAX_LISTED = 20
MAX_TAG = 12


def read_file(data: bytes, tag: str) -> tuple[str, str]:
    """Return the language of a PO file and its canonical text, for a study in the language ``tag``. Raise FileRefused."""
    if base_language(tag) == "en":
        raise _refused(
            ["The study is in English, and its words come with heval. Choose the language of the texts first."]
        )
    if len(data) > MAX_FILE_BYTES:
        raise _refused([f"The file has more than {MAX_FILE_BYTES:,} bytes. Send only the words of annotators' pages."])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refused(["The file is not UTF-8 text. Save it as UTF-8."]) from None
    try:
        catalogue = check_words(text)
    except CatalogueRefused as refused:
        raise _refused(list(map(str, refused.problems)) or [str(refused)]) from None
    language = (catalogue.locale_identifier or tag).replace("_", "-")
    if not re.fullmatch(LANGUAGE_TAG, language) or len(language) > MAX_TAG:
        raise _refused([f"The header Language of the file is “{language:.40}”. Write a tag such as {tag}."])
    if base_language(language) != base_language(tag):
        raise _refused(
            [
                f"The file is in the language {language}, and the study in {tag}. Change one of them: the header Language of the file, or "
                "the study's language."
            ]
        )
    words = canonical_text(catalogue, language)
    if len(missing_messages(read_catalogue(words))) == message_count():
        raise _refused(
            ["The file translates none of the messages. Download the file of words, translate it, and send it."]
        )
    return language, words


def _refused(texts: Sequence[str]) -> FileRefused:
    listed = [TableProblem(None, None, text) for text in texts[:MAX_LISTED]]
    return FileRefused(TableProblems(listed, len(texts)))


def use_file(study: Study, data: bytes, by: Any) -> Study:
    """Give a draft the words of a PO file. Raise FileRefused or ActionRefused; then nothing has changed."""
    _check_is_draft(study, by)
    language, text = read_file(data, study.language)
    return _give(study, translations.stored(language, text, by), by)


def remove_file(study: Study, by: Any) -> Study:
    """Give a draft the words that come with heval. Raise ActionRefused."""
    _check_is_draft(study, by)
    return _give(study, None, by)


def _check_is_draft(study: Study, by: Any) -> None:
    check_permission_or_404(by, Action.EDIT, study)
    if not study.is_draft:
        raise ActionRefused(
            "The study is launched, and the words of its pages are part of what was shown. Clone it to change them."
        )


def _give(study: Study, translation: Translation | None, by: Any) -> Study:
    with drafts.locked_draft(study.pk, by) as draft:
        if draft.translation != translation:
            Study.objects.filter(pk=draft.pk).update(translation=translation)
            drafts.record_edit_and_raise_version(draft, by, words=str(translation or "those of heval"))
        draft.refresh_from_db()
    return draft
