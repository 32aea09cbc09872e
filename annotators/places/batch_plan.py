"""The contents of a batch in the wording of one Design version.

Plans of frozen designs are cached, because they never change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.db.models.functions import Length

from annotators.models import Assignment
from studies.design.wording import QuestionWording, Wording, wording_of
from studies.models import Batch, Design, Expected, Exposure, Section
from studies.protocols import REGISTRY
from studies.protocols.base.test_questions import KnownAnswer, practice_answer

from .offers import Offer, arm_offer


@dataclass(frozen=True, slots=True)
class PlannedSection:
    """A section of one batch. ``items``: (item id, ((number, exposure id), ...)). ``exposure_numbers``: by system name.

    ``feedback_pairs``: (item id, question id) of practice items that get feedback after the question was answered.
    ``right_answers``: of a test, by item id (None without an item) and question id.
    """

    position: int
    protocol: str
    purpose: str
    m: int
    settings: Mapping[str, Any]
    reuses: int | None
    items: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    questions: tuple[tuple[int, QuestionWording], ...]
    exposure_numbers: Mapping[str, int]
    feedback_pairs: frozenset[tuple[int, int]] = frozenset()
    pk: int = 0
    pass_mark: int | None = None
    accepts_earlier_pass: bool = False
    right_answers: Mapping[tuple[int | None, int], KnownAnswer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Everything that the pages of a batch need, except the texts of prompts and outputs.

    ``text_lengths``: the characters of each exposure's text. ``source_numbers``: a number for each exposure, the same for
    texts of one system in items of one kind. Only the draw of positions reads it, and only in studies whose positions are
    balanced. ``images``: ("output", exposure id) and ("prompt", item
    id) of images. ``checks``: the attention checks, which pages of the live sections ask.
    """

    seed: int
    text_lengths: Mapping[int, int]
    source_numbers: Mapping[int, int]
    images: frozenset[tuple[str, int]]
    sections: tuple[PlannedSection, ...]
    checks: tuple[tuple[int, QuestionWording], ...]
    instructions: str
    wording: Wording
    offer: Offer


def get_batch_plan(assignment: Assignment) -> BatchPlan:
    """Return the plan of the assignment's batch in the wording of its Design version.

    Plans of drafts are not cached.
    """
    if assignment.design_id:
        return frozen_batch_plan(assignment.batch_id, assignment.design_id)
    return _plan(assignment.batch_id, None)


@lru_cache(maxsize=1024)
def frozen_batch_plan(batch_id: int | None, design_id: int) -> BatchPlan:
    return _plan(batch_id, design_id)


def _plan(batch_id: int | None, design_id: int | None) -> BatchPlan:
    batch = Batch.objects.select_related("study", "arm").get(pk=batch_id)  # type: ignore[misc]  # None: not found
    wording = wording_of(batch.study, design_id)
    placed: dict[int, dict[int, list[tuple[int, int]]]] = {}
    numbers: dict[int, dict[str, int]] = {}
    lengths: dict[int, int] = {}
    sources: dict[int, tuple[str, str]] = {}
    images: set[tuple[str, int]] = set()
    rows = Exposure.objects.filter(item__placements__batch=batch_id).order_by("item__placements__number", "number")
    if design_id:
        version = Design.objects.values_list("version", flat=True).get(pk=design_id)
        rows = rows.exclude(item__retired_in__version__lte=version)
    for item, section, number, exposure, system, kind, length, image, prompt_image in rows.values_list(
        "item_id",
        "item__section__position",
        "number",
        "pk",
        "output__system__name",
        "item__kind",
        Length("output__text"),
        "output__media",
        "item__prompt__media",
    ):
        if image:
            images.add(("output", exposure))
        if prompt_image:
            images.add(("prompt", item))
        lengths[exposure] = length or 0
        sources[exposure] = kind, system
        placed.setdefault(section, {}).setdefault(item, []).append((number, exposure))
        numbers.setdefault(section, {})[system] = number
    ids, section_pks = {}, {}
    for position, section_pk, key, pk in Section.objects.filter(
        study=batch.study_id, questions__isnull=False
    ).values_list("position", "pk", "questions__key", "questions__pk"):
        ids[position, key], section_pks[position] = pk, section_pk
    practice: dict[tuple[int | None, int], KnownAnswer] = {}
    if any(section.purpose == Section.Purpose.TRAINING for section in wording.sections):
        expected = Expected.objects.filter(item__placements__batch=batch_id, item__section__purpose="training")
        scales = {
            ids[section.position, question.key]: question.scale
            for section in wording.sections
            for question in section.questions
        }
        practice = {
            (row.item_id, row.question_id): practice_answer(row, scales[row.question_id])
            for row in expected
            if row.question_id in scales
        }
    has_all_sections = batch.origin not in (Batch.Origin.TOP_UP,)
    sections = []
    checks: list[tuple[int, QuestionWording]] = []
    for section in wording.sections:
        if section.arms and batch.arm.name not in section.arms:
            continue
        if section.purpose == Section.Purpose.ATTENTION:
            if has_all_sections:
                checks += [(ids[section.position, question.key], question) for question in section.questions]
            continue
        source = section.reuses or section.position
        items = tuple((item, tuple(exposures)) for item, exposures in placed.get(source, {}).items())
        has_items = REGISTRY[section.protocol].has_items
        is_test = section.pass_mark is not None
        questions = tuple((ids[section.position, question.key], question) for question in section.questions)
        keyed: dict[tuple[int | None, int], KnownAnswer] = {
            (None, pk): KnownAnswer(key=wording.scale.right_key) for pk, wording in questions if wording.scale.right_key
        }
        if (has_items and not items) or (not has_items and not has_all_sections):
            continue  # a top-up batch has items of one section only
        sections.append(
            PlannedSection(
                position=section.position,
                protocol=section.protocol,
                purpose=section.purpose,
                m=section.m,
                settings=section.settings,
                reuses=section.reuses,
                items=items if has_items else (),
                questions=questions,
                exposure_numbers=numbers.get(source, {}),
                # A test shows no truth: people who failed could tell it to the next ones.
                feedback_pairs=frozenset(practice)  # type: ignore[arg-type]  # practice items are items
                if section.purpose == Section.Purpose.TRAINING and not is_test
                else frozenset(),
                pk=section_pks[section.position],
                pass_mark=section.pass_mark,
                accepts_earlier_pass=section.valid_days is not None,
                right_answers=(practice if has_items else keyed) if is_test else {},
            )
        )
    arm = wording.arms[batch.arm.name]
    instructions = arm["instructions"] or wording.study["instructions"]
    # Sorted, because the order of rows with equal numbers may differ between databases.
    numbered = {source: number for number, source in enumerate(sorted(set(sources.values())))}
    source_numbers = {exposure: numbered[source] for exposure, source in sources.items()}
    return BatchPlan(
        batch.study.seed,
        lengths,
        source_numbers if wording.is_balanced else {},
        frozenset(images),
        tuple(sections),
        tuple(checks),
        instructions,
        wording,
        arm_offer(wording, arm),
    )
