"""The words of a study's pages: keep them from the launch on."""

from typing import Any

from studies.design.serialization import serialize_translation
from studies.language.catalogues import shipped_language_for, shipped_text, version_of
from studies.models import Study, Translation


def keep(study: Study) -> dict[str, Any]:
    """Keep for a study that is launched now the words of its pages. Return what its design says of them.

    Without a translation for its language, these are the English words.
    """
    if study.translation is None:
        language = shipped_language_for(study.language) or "en"
        study.translation = stored(language, shipped_text(language), by=None)
        Study.objects.filter(pk=study.pk).update(translation=study.translation)
    return serialize_translation(study)


def stored(language: str, text: str, by: Any) -> Translation:
    """Return the row of a canonical catalogue. ``by``: who brought it, or None if it came with the program."""
    columns: dict[str, Any] = {"text": text, "by": by}
    return Translation.objects.get_or_create(language=language, version=version_of(text), defaults=columns)[0]
