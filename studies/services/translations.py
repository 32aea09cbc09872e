"""The words of a study's pages: keep them from the launch on, and take a file that brings another language."""

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
        text = shipped_text(language)
        study.translation, _ = Translation.objects.get_or_create(
            language=language, version=version_of(text), defaults={"text": text}
        )
        Study.objects.filter(pk=study.pk).update(translation=study.translation)
    return serialize_translation(study)
