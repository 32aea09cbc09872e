"""Read the texts of annotators' pages from one version of a design."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from studies.language import PageLanguage, gettext, gettext_noop, in_language
from studies.language.catalogues import shipped_page_language, stored_page_language
from studies.models import Design, Study, Translation
from studies.protocols.base.fields import ScaleSpec, parse_scale

from .serialization import LATER_STUDY_FIELDS, serialize_design

# People agreed to these sentences. A study whose annotators should read others needs another setting.
BARRING_SENTENCE = gettext_noop(
    "Some questions in this study have a known answer. If your answers to them show that you probably did not read the "
    "texts, you can finish the part that you have begun, and then you get no further part. You are paid for the parts "
    "that you submit. You can object, and a person reads your objection."
)
JOINING_SENTENCE = gettext_noop(
    "This task has several rounds. If you take part in more than one, a file for research shows that your answers come "
    "from one person, by a random name and nothing else about you."
)


@dataclass(frozen=True, slots=True)
class QuestionWording:
    key: str
    position: int
    text: str
    help: str
    scale: ScaleSpec
    required: bool
    skip_reasons: tuple[tuple[str, str], ...]
    criterion: str
    x: str | None
    y: str | None


@dataclass(frozen=True, slots=True)
class SectionWording:
    position: int
    protocol: str
    purpose: str
    m: int
    settings: dict[str, Any]
    reuses: int | None
    arms: tuple[str, ...]
    questions: tuple[QuestionWording, ...]
    pass_mark: int | None = None
    valid_days: int | None = None  # of its qualification; None if it has none


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts that pages take from one version of a design. Later amendments do not change them."""

    study: dict[str, Any]
    arms: dict[str, dict[str, Any]]
    sections: tuple[SectionWording, ...]
    is_balanced: bool  # the drawing: see Study.drawing_version
    language: PageLanguage

    @property
    def test(self) -> SectionWording | None:
        """Return the section that is a test before the work, or None."""
        return next((section for section in self.sections if section.pass_mark is not None), None)


def _study_wording(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the texts of the study. The consent text says what its settings mean for the annotator."""
    study = LATER_STUDY_FIELDS | stored
    for name, sentence in (("bars_flagged_annotators", BARRING_SENTENCE), ("joins_rounds", JOINING_SENTENCE)):
        if study[name] and study["consent"].strip():
            study["consent"] = f"{study['consent'].rstrip()}\n\n{gettext(sentence)}"
    return study


@lru_cache(maxsize=64)
def kept_page_language(tag: str, language: str, version: str) -> PageLanguage:
    """Return the language of pages whose words a study keeps since its launch, or that it was given."""
    text = Translation.objects.values_list("text", flat=True).get(language=language, version=version)
    return stored_page_language(tag, language, text)


def draft_page_language(study: Study) -> PageLanguage:
    """Return the language of a draft's pages: the words that it was given, or those that the program has now."""
    kept = study.translation
    return (
        kept_page_language(study.language, kept.language, kept.version)
        if kept
        else shipped_page_language(study.language)
    )


def page_language_of(study: Study, design_id: int | None) -> PageLanguage:
    return frozen_wording(design_id).language if design_id else draft_page_language(study)


def parse_wording(design: dict[str, Any], language: PageLanguage) -> Wording:
    with in_language(language):
        study = _study_wording(design["study"])
    return Wording(
        study=study,
        language=language,
        arms={arm["name"]: arm for arm in design["arms"]},
        sections=tuple(
            SectionWording(
                position=section["position"],
                protocol=section["protocol"],
                purpose=section["purpose"],
                m=section["m"],
                settings=section["settings"],
                reuses=section["reuses"],
                arms=tuple(section["arms"]),
                questions=tuple(
                    QuestionWording(
                        key=q["key"],
                        position=q["position"],
                        text=q["text"],
                        help=q["help"],
                        scale=parse_scale(q["scale"]),
                        required=q["required"],
                        skip_reasons=tuple((r["key"], r["label"]) for r in q["skip_reasons"]),
                        criterion=q["criterion"],
                        x=q["x"],
                        y=q["y"],
                    )
                    for q in section["questions"]
                ),
                pass_mark=section.get("pass_mark"),
                valid_days=(section.get("qualification") or {}).get("valid_days"),
            )
            for section in design["sections"]
        ),
        is_balanced=design.get("drawing_version", 1) >= Study.BALANCED_DRAWING,
    )


@lru_cache(maxsize=64)
def frozen_wording(design_id: int) -> Wording:
    """Return the texts of a Design row. The row never changes, so each process reads it once."""
    design = json.loads(Design.objects.values_list("canonical", flat=True).get(pk=design_id))
    tag, kept = design["study"]["language"], design.get("translation")
    # Studies from before there were translations keep their English words.
    language = kept_page_language(tag, kept["language"], kept["version"]) if kept else PageLanguage(tag)
    return parse_wording(design, language)


def wording_of(study: Study, design_id: int | None) -> Wording:
    """Return the texts of a Design version. Without a version (preview or test run of a draft), read the current rows."""
    if design_id:
        return frozen_wording(design_id)
    return parse_wording(serialize_design(study), draft_page_language(study))
