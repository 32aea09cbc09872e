"""Studies whose own texts are in Cyrillic letters and whose pages are in Greek ones. A Latin word on a page is then a fault of the frame."""

import re
from typing import Any
from unittest.mock import patch

from django.db.models import Model

from studies.design.wording import draft_page_language
from studies.models import Arm, Expected, Output, Prompt, Question, Section, Study
from studies.protocols import REGISTRY
from studies.protocols.base.fields import values_of_new_row
from tests import launching
from tests.pseudo_language import LANGUAGE, LATIN, give_pseudo_language

TO_CYRILLIC = str.maketrans(LATIN, "абцдефгхийклмнопярстувшъюзАБЦДЕФГХИЙКЛМНОПЯРСТУВШЪЮЗ")
KEPT = re.compile(r"\{\w+\}")
COLUMNS: dict[type[Model], tuple[str, ...]] = {
    Study: (
        "public_title",
        "purpose",
        "instructions",
        "consent",
        "debriefing",
        "institution",
        "approval_number",
        "contact",
        "retention",
        "content_warning",
    ),
    Arm: ("instructions",),
    Prompt: ("text", "source"),
    Output: ("text", "alt", "warning"),
    Question: ("text", "help"),
    Expected: ("explanation",),
}
CODEBOOK = ("categories", "severities")
SETTINGS = ("explanation", "tie", "pair_text", "noun", *CODEBOOK)
# Words for outputs that the program translates, because it proposes them.
OWN_NOUNS = ("text", "writer")


def foreign(text: str) -> str:
    """Return a text in Cyrillic letters. The names in braces that pages fill in stay."""
    parts, end = [], 0
    for kept in KEPT.finditer(text):
        parts += [text[end : kept.start()].translate(TO_CYRILLIC), kept[0]]
        end = kept.end()
    return "".join([*parts, text[end:].translate(TO_CYRILLIC)])


def _scale(scale: dict[str, Any]) -> dict[str, Any]:
    words = {name: foreign(scale[name]) for name in ("low", "middle", "high") if scale.get(name)}
    if "labels" in scale:
        words["labels"] = [foreign(label) for label in scale["labels"]]
    if "options" in scale:
        words["options"] = [option | {"label": foreign(option["label"])} for option in scale["options"]]
    return scale | words


def _settings(section: Section) -> dict[str, Any]:
    """Return the settings as a new section stores them. What is not the program's own is in Cyrillic letters."""
    own = values_of_new_row(REGISTRY[section.protocol].settings_form)
    found = own | section.settings
    words = {name: found[name] for name in SETTINGS if found.get(name) not in (None, "", own.get(name), *OWN_NOUNS)}
    for name, text in words.items():
        if name in CODEBOOK:
            keys_and_words = (line.split("|", 1) for line in text.splitlines())
            words[name] = "\n".join(f"{key}|{foreign(rest)}" for key, rest in keys_and_words)
        else:
            words[name] = foreign(text)
    return found | words


def in_foreign_letters(draft: Study) -> Study:
    """Write all texts of a draft that annotators read in Cyrillic letters."""
    rows = {
        Study: Study.objects.filter(pk=draft.pk),
        Arm: draft.arms.all(),
        Prompt: draft.prompts.all(),
        Output: Output.objects.filter(system__study=draft),
        Question: Question.objects.filter(section__study=draft),
        Expected: Expected.objects.filter(item__study=draft),
    }
    for model, columns in COLUMNS.items():
        found = list(rows[model])
        for row in found:
            for name in columns:
                setattr(row, name, foreign(getattr(row, name)))
            if isinstance(row, Question):
                row.scale = _scale(row.scale)
                row.skip_reasons = [reason | {"label": foreign(reason["label"])} for reason in row.skip_reasons]
        if model is Study:
            found[0].save()
        else:
            changed = [*columns, *(("scale", "skip_reasons") if model is Question else ())]
            model.objects.bulk_update(found, changed)
    for section in draft.sections.all():
        Section.objects.filter(pk=section.pk).update(settings=_settings(section))
    return Study.objects.get(pk=draft.pk)


def launched_abroad(draft: Study, by=None, language: str = LANGUAGE) -> Study:
    """Launch a draft with its texts in Cyrillic letters and its pages in Greek ones, or in those of another language.

    What the checklist would refuse is launched too: studies of earlier releases have it, and their pages say so.
    """
    with patch.object(launching, "_problems_of", lambda *_: []):
        study = launching.launched(give_pseudo_language(in_foreign_letters(draft), language), by)
    assert draft_page_language(study).words == study.language
    return study
