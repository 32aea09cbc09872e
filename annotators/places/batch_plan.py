"""The contents of a batch in the wording of one Design version.

Plans of frozen designs are cached, because they never change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.db.models.functions import Length, Now

from annotators.models import (
    Annotator,
    Assignment,
    Inquiry,
    OutcomePay,
    PageVisit,
    PanelSecret,
    Recruitment,
    RecruitmentArm,
    Response,
)
from studies.access import Action, check_permission_or_404
from studies.design.checklist import find_design_problems
from studies.design.draw import BatchDraw, DrawnBatch, UnfillableBatch, store_drawn_batches
from studies.design.wording import QuestionWording, Wording, wording_of
from studies.models import (
    FIRST_TEST_NUMBER,
    Arm,
    Batch,
    Design,
    Expected,
    Exposure,
    Item,
    Job,
    Placement,
    Section,
    Study,
)
from studies.models.fields import FIRST_IMPORT_NUMBER
from studies.models.guards import allowing_erasure
from studies.protocols import REGISTRY
from studies.protocols.base.known_answers import KnownAnswer, practice_answer
from studies.services.drafts import locked_draft
from studies.services.lifecycle import ActionRefused, refuse_during_import

from .assign import get_or_create_annotator
from .places import Offer, arm_offer


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
    id) of images and of outputs with a warning. ``test_items``: the ids of test questions. ``checks``: the attention checks, which pages of the live
    sections ask.
    """

    seed: int
    text_lengths: Mapping[int, int]
    source_numbers: Mapping[int, int]
    images: frozenset[tuple[str, int]]
    test_items: frozenset[int]
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
    test_items: set[int] = set()
    rows = Exposure.objects.filter(item__placements__batch=batch_id).order_by("item__placements__number", "number")
    if design_id:
        version = Design.objects.values_list("version", flat=True).get(pk=design_id)
        rows = rows.exclude(item__retired_in__version__lte=version)
    for item, section, number, exposure, system, kind, length, image, warning, prompt_image in rows.values_list(
        "item_id",
        "item__section__position",
        "number",
        "pk",
        "output__system__name",
        "item__kind",
        Length("output__text"),
        "output__media",
        "output__warning",
        "item__prompt__media",
    ):
        if kind == Item.Kind.TEST:
            test_items.add(item)
        if image or warning:
            images.add(("output", exposure))
        if prompt_image:
            images.add(("prompt", item))
        lengths[exposure] = length or 0
        sources[exposure] = kind, system
        placed.setdefault(section, {}).setdefault(item, []).append((number, exposure))
        numbers.setdefault(section, {})[system] = number
    for section in wording.sections:
        by_system = numbers.get(section.position, {})
        if REGISTRY[section.protocol].labels == "section" and len(set(by_system.values())) < len(by_system):
            # Items show one system each, so the letters of the section follow the names of all its systems.
            ranks = {system: rank for rank, system in enumerate(sorted(by_system))}
            numbers[section.position] = ranks
            placed[section.position] = {
                item: [(ranks[sources[exposure][1]], exposure) for _, exposure in exposures]
                for item, exposures in placed[section.position].items()
            }
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
        frozenset(test_items),
        tuple(sections),
        tuple(checks),
        instructions,
        wording,
        arm_offer(wording, arm),
    )


# Test runs: a researcher takes part in a draft.
#
# The batch and the assignment have the origin ``test`` and are never counted.
#
# Only this module, ``assign`` and ``annotators.imports`` create Assignments. The data of test runs have their own
# range of numbers and are deleted at the launch.


TEST_POOL = "test"


def draw_first_batch(study: Study, arm: Arm | None = None) -> DrawnBatch:
    """Return the first batch that the draft's design draws, of this arm if given.

    Raises ActionRefused with the reason.
    """
    if not study.arms.exists():
        raise ActionRefused("The study has no arm. Add one under Arms.")
    if unknown := [section for section in study.sections.all() if section.protocol not in REGISTRY]:
        raise ActionRefused(
            f"The protocol {unknown[0].protocol} of section {unknown[0].position} is not installed. Install it, or delete the section."
        )
    try:
        return next(batch for batch in BatchDraw(study).batches() if arm is None or batch.arm_id == arm.pk)
    except UnfillableBatch as unfillable:
        fields = ("arms", "prompts", "outputs", "systems", "contrasts")
        problems = (
            problem.text for problem in find_design_problems(study) if problem.is_blocking and problem.field in fields
        )
        raise ActionRefused(next(problems, str(unfillable))) from None


@transaction.atomic
def create_test_batch_and_assignment(study: Study, arm: Arm | None = None, seed: int | None = None) -> Assignment:
    """Create a batch and an assignment of origin ``test``.

    The batch and its new items have numbers from FIRST_TEST_NUMBER.
    """
    study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
    if study.state != Study.State.DRAFT:
        raise ActionRefused("Test runs are possible only in a draft. Open the study's link, or look at the preview.")
    drawn = draw_first_batch(study, arm)
    earlier_pks = set(study.items.values_list("pk", flat=True))
    last = study.batches.filter(number__gte=FIRST_TEST_NUMBER).aggregate(n=Max("number"))["n"]
    number = FIRST_TEST_NUMBER if last is None else last + 1
    batch = store_drawn_batches(study, [drawn], places_per_batch=1, origin=Batch.Origin.TEST, first_number=number)[0]
    new_items = Item.objects.filter(study=study, number__lt=FIRST_TEST_NUMBER).exclude(pk__in=earlier_pks)
    _renumber(new_items)
    options = {} if seed is None else {"seed": seed}
    assignment = Assignment.objects.create(
        study=study,
        batch=batch,
        annotator=get_or_create_annotator(TEST_POOL, ""),
        origin=Assignment.Origin.TEST,
        started_at=Now(),
        **options,
    )
    assignment.refresh_from_db()
    return assignment


def _renumber(items) -> None:
    # Move the numbers out of the range that the launch will use. One UPDATE, because a number must be unique at every
    # step.
    top = Item.objects.filter(pk__in=items.values("pk")).aggregate(n=Max("number"))["n"]
    if top is None:
        return
    numbered_items = Item.objects.filter(section__in=items.values("section"), number__gte=FIRST_TEST_NUMBER)
    start = max(FIRST_TEST_NUMBER, (numbered_items.aggregate(n=Max("number"))["n"] or 0) + 1)
    items.update(number=F("number") + start)


def start_test_run(study: Study, by, arm: Arm | None = None) -> Assignment:
    """Start a test run of this researcher, who answers on the annotators' own pages. Raises ActionRefused."""
    check_permission_or_404(by, Action.EDIT, study)
    if study.archived_at:
        raise ActionRefused("The study is archived. Bring it back first.")
    refuse_during_import(study)
    return create_test_batch_and_assignment(study, arm)


def test_runs() -> QuerySet[Assignment]:
    """Return the test runs of people, without the rows of an import that is not complete."""
    return Assignment.objects.filter(origin=Assignment.Origin.TEST, source=None).select_related("batch__arm")


def delete_test_runs(study: Study, by) -> int:
    """Delete the test runs of a draft and return their number."""
    with locked_draft(study.pk, by) as draft:
        return erase_test_run_data(draft)


def erase_test_run_data(
    study: Study, *, spares_imports: bool = False, job: Job | None = None, **signal_kwargs: object
) -> int:
    """Delete all data of test runs: answers, visits, assignments, batches, and the items that only they used.

    Until an import of answers is complete, its rows are marked like these. They are deleted, too, if the import has ended early.
    ``spares_imports``: the import itself deletes the test runs. ``job``: it does so before it has rows of its own.
    """
    tests = Assignment.objects.filter(study=study, origin=Assignment.Origin.TEST)
    batches = Batch.objects.filter(study=study, origin=Batch.Origin.TEST)
    if spares_imports:
        tests, batches = tests.filter(source=None), batches.filter(number__lt=FIRST_IMPORT_NUMBER)
    else:
        refuse_during_import(study, job)
    if not tests.exists() and not batches.exists():
        return 0
    with allowing_erasure():
        people = list(tests.values_list("annotator_id", flat=True))
        Response.objects.filter(assignment__in=tests).delete()
        PageVisit.objects.filter(assignment__in=tests).delete()
        Inquiry.objects.filter(assignment__in=tests).delete()
        n, _ = tests.delete()
        Annotator.objects.filter(pk__in=people, assignments=None).delete()
        Placement.objects.filter(batch__in=batches).delete()
        batches.delete()
        alone = Item.objects.filter(study=study, number__gte=FIRST_TEST_NUMBER, placements=None)
        Expected.objects.filter(item__in=alone).delete()
        Exposure.objects.filter(item__in=alone).delete()
        alone.delete()
    return n


def delete_draft_recruitments(study: Study, **signal_kwargs: object) -> None:
    """Delete the recruitments of a draft before the draft itself is deleted. Drafts have no real annotators."""
    PanelSecret.objects.filter(recruitment__study=study).delete()
    RecruitmentArm.objects.filter(recruitment__study=study).delete()
    OutcomePay.objects.filter(recruitment__study=study).delete()
    Recruitment.objects.filter(study=study).delete()
