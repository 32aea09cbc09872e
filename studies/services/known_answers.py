"""Practice items of training sections, and test questions: items of a draft whose answer is known."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Max, Q

from studies.design.draw import (
    BatchDraw,
    has_test_question_settings,
    item_content_hash,
    seeded_random,
    shows_one_output,
)
from studies.design.known_answer_texts import DAMAGES, KnownAnswerTexts, KnownText, PlannedTestQuestion
from studies.models import FIRST_TEST_NUMBER, Expected, Exposure, Item, Output, Question, Section, Study, System
from studies.protocols import REGISTRY
from studies.protocols.base.fields import parse_scale
from studies.protocols.base.known_answers import scale_middle
from studies.stimuli.texts import word_count

from . import drafts
from .lifecycle import ActionRefused

# Practice items of training sections. They are made in the draft, with their expected answers and explanations.
#
# A practice item's prompt is never shown in sections that count (studies.design.draw), because annotators know the
# truth about it.


def create_practice_item_and_delete_test_runs(
    section: Section, outputs: Sequence[Output], explanation: str = "", given: Mapping[str, str] | None = None, *, by
) -> Item:
    """Make an item from these outputs of one prompt.

    ``given``: the expected answers by question key, where the protocol does not find them itself. Ranges are about the first
    output.
    """
    with drafts.locked_draft(section.study_id, by, deletes_test_runs=True) as study:
        item = _build_item(section, outputs, explanation, given or {})
        drafts.record_edit_and_raise_version(
            study, by, made=f"practice item {item.number} of section {section.position}"
        )
    return item


@dataclass(frozen=True, slots=True)
class GivenPracticeItem:
    """A practice item of a file. ``given``: as in ``create_practice_item_and_delete_test_runs``."""

    row: int
    outputs: tuple[Output, ...]
    given: Mapping[str, str]
    explanation: str = ""

    @property
    def content(self) -> str:
        return item_content_hash(self.outputs[0].prompt_id, [output.pk for output in self.outputs], Item.Kind.PRACTICE)


def store_practice_items_and_delete_test_runs(section: Section, given: Sequence[GivenPracticeItem], *, by) -> int:
    """Store the practice items of a file. Those that exist already stay. Return how many are new.

    Raise GivenQuestionsRefused, and store nothing, if a row makes no item.
    """
    with drafts.locked_draft(section.study_id, by, deletes_test_runs=True) as study:
        stored = set(section.items.values_list("content", flat=True))
        new = [one for one in given if one.content not in stored]
        problems = []
        for one in new:
            try:
                _build_item(section, one.outputs, one.explanation, one.given)
            except ActionRefused as refused:
                problems.append((one.row, str(refused)))
        if problems:
            raise GivenQuestionsRefused(problems)
        if new:
            drafts.record_edit_and_raise_version(
                study, by, made=f"{len(new)} practice items of section {section.position}"
            )
    return len(new)


def _build_item(section: Section, outputs: Sequence[Output], explanation: str, given: Mapping[str, str]) -> Item:
    if section.purpose != Section.Purpose.TRAINING:
        raise ActionRefused("Only training sections can have practice items. Choose a training section.")
    if not outputs:
        raise ActionRefused("No text is chosen. Choose at least one.")
    prompts = {output.prompt_id for output in outputs}
    if len(prompts) > 1:
        raise ActionRefused("The texts have different prompts. Choose texts of the same prompt.")
    if len({output.pk for output in outputs}) < len(outputs):
        raise ActionRefused("The same text is chosen twice. Choose two different texts.")
    authors = [(output.system.name, output.system.is_human) for output in outputs]
    protocol = REGISTRY[section.protocol]
    if not protocol.practice_answers:
        raise ActionRefused(
            "This protocol has no expected answers, so it cannot have practice items. Use another protocol."
        )
    try:
        truths = protocol.expected_practice_answers(section, authors, given)
    except ValueError as refused:
        raise ActionRefused(str(refused)) from None
    questions = {question.key: question for question in section.questions.all()}
    (prompt,) = prompts
    content = item_content_hash(prompt, [output.pk for output in outputs], Item.Kind.PRACTICE)
    if section.items.filter(content=content).exists():
        raise ActionRefused("This practice item already exists. Choose other texts.")
    numbers = section.items.filter(number__lt=FIRST_TEST_NUMBER).aggregate(last=Max("number"))
    item = Item.objects.create(
        study_id=section.study_id,
        section=section,
        number=(numbers["last"] or 0) + 1,
        prompt_id=prompt,
        kind=Item.Kind.PRACTICE,
        content=content,
    )
    # By name, so that the place of an output on the page does not show which one the answer is about.
    places = {pk: n for n, pk in enumerate(o.pk for o in sorted(outputs, key=lambda output: output.system.name))}
    exposures = [Exposure.objects.create(item=item, output=output, number=places[output.pk]) for output in outputs]
    is_about_one = protocol.practice_answers == "points"
    for key, truth in truths.items():
        exposure, (low, high) = (exposures[truth], (None, None)) if isinstance(truth, int) else (None, truth)
        Expected.objects.create(
            item=item,
            question=questions[key],
            explanation=explanation,
            exposure=exposure,
            low=low,
            high=high,
            about=exposures[0] if is_about_one and low is not None and len(exposures) > 1 else None,
        )
    return item


def delete_practice_item_and_test_runs(item: Item, by) -> None:
    """Delete a practice item of a draft."""
    with drafts.locked_draft(item.study_id, by, deletes_test_runs=True) as study:
        item_text = f"practice item {item.number} of section {item.section.position}"
        drafts.delete_item_with_exposures_and_expected(item)
        drafts.record_edit_and_raise_version(study, by, deleted=item_text)


# Test questions of a draft: items with a known answer that annotators cannot tell from the others.
#
# They are made from the study's own outputs, or from given texts. ``studies.design.draw`` puts them
# into batches.


TEST_SOURCE_NAME = "texts of test questions"
MAX_TEST_QUESTIONS = 1000


@dataclass(frozen=True, slots=True)
class KnownAnswerRequest:
    """How many test questions of each type to make, about which question, with which reference system and damages."""

    question: Question
    counts: Mapping[str, int]
    reference: System | None = None
    damages: Sequence[str] = DAMAGES


@dataclass(frozen=True, slots=True)
class GivenTestQuestion:
    """A test question from row ``row`` of a file: a text for a prompt, with the range of right ratings, or with a worse text."""

    row: int
    prompt: str
    text: str
    low: float | None = None
    high: float | None = None
    worse: str = ""


class GivenQuestionsRefused(ActionRefused):
    """Rows of a file that cannot become test questions, or practice items. ``problems``: (row, text)."""

    def __init__(self, problems: Sequence[tuple[int, str]]):
        super().__init__("; ".join(f"row {row}: {text}" for row, text in problems[:5]))
        self.problems = problems


def make_test_questions_and_delete_test_runs(section: Section, request: KnownAnswerRequest, *, by) -> Counter[str]:
    """Make test questions from the outputs of a draft. Return how many were made of each type.

    Fewer than requested are made if too few prompts allow one.
    """
    with drafts.locked_draft(section.study_id, by, deletes_test_runs=True) as study:
        section = Section.objects.select_related("study", "reuses").get(pk=section.pk)
        _refuse_section(section)
        _refuse_request(section, request)
        planned = _planned_questions(study, section, request)
        made = _store(study, section, request.question, planned)
        if not made:
            raise ActionRefused(
                "No test question can be made from these texts. Import more prompts, or choose another reference or type."
            )
        drafts.record_edit_and_raise_version(
            study, by, made=f"{made.total()} test questions of section {section.position}"
        )
    return made


def store_given_test_questions_and_delete_test_runs(
    section: Section, question: Question, given: Sequence[GivenTestQuestion], *, by
) -> int:
    """Store the test questions of a file. Those that exist already stay. Return how many are new.

    Raise GivenQuestionsRefused, and store nothing, if a row fits no arm of the section.
    """
    with drafts.locked_draft(section.study_id, by, deletes_test_runs=True) as study:
        section = Section.objects.select_related("study", "reuses").get(pk=section.pk)
        _refuse_section(section)
        existing = section.items.filter(kind=Item.Kind.TEST).count()
        if existing + len(given) > MAX_TEST_QUESTIONS:
            raise ActionRefused(
                f"A section can have at most {MAX_TEST_QUESTIONS} test questions, and this one has {existing}. Give fewer."
            )
        planned = _planned_from_given(study, section, given)
        made = _store(study, section, question, planned)
        drafts.record_edit_and_raise_version(
            study, by, made=f"{made.total()} given test questions of section {section.position}"
        )
    return made.total()


def _planned_from_given(
    study: Study, section: Section, given: Sequence[GivenTestQuestion]
) -> list[PlannedTestQuestion]:
    """Return the given questions as they are shown: a rated text takes the place of a random system's output in each arm."""
    drawing = BatchDraw(study)
    prompts = dict(study.prompts.values_list("key", "pk"))
    names = dict(study.systems.values_list("pk", "name"))
    is_pair = REGISTRY[section.protocol].comparison_scope == "pair"
    systems_of_arms = {tuple(drawing.systems[arm.pk]) for arm in _arms_of_section(drawing, section)}
    planned, problems = [], []
    for question in given:
        prompt = prompts[question.prompt]
        rng = seeded_random(study.seed, "given test question", section.position, question.prompt, question.text)
        if is_pair:
            shown = rng.sample([question.text, question.worse], 2)
            place = shown.index(question.text)
            planned.append(PlannedTestQuestion(prompt, Item.TestType.GIVEN, tuple(shown), place, place))
            continue
        if shows_one_output(section):
            known_range = (question.low, question.high)
            planned.append(
                PlannedTestQuestion(prompt, Item.TestType.GIVEN, (question.text,), 0, low_and_high=known_range)
            )
            continue
        for systems in sorted(systems_of_arms):
            missing = [names[system] for system in systems if (prompt, system) not in drawing.outputs]
            if missing and len(systems) > 1:
                problems.append(
                    (
                        question.row,
                        f"{missing[0]} has no output for {question.prompt}, so the page would show fewer texts. Use another prompt.",
                    )
                )
                break
            place = rng.randrange(len(systems))
            texts = tuple(
                question.text if number == place else drawing.outputs[prompt, system][0]
                for number, system in enumerate(systems)
            )
            planned.append(
                PlannedTestQuestion(
                    prompt, Item.TestType.GIVEN, texts, place, low_and_high=(question.low, question.high)
                )
            )
    if problems:
        raise GivenQuestionsRefused(problems)
    return planned


def _arms_of_section(drawing: BatchDraw, section: Section) -> list[Any]:
    arm_ids = drawing.section_arms[section.pk]
    return [arm for arm in drawing.arms if not arm_ids or arm.pk in arm_ids]


def delete_test_question_and_test_runs(item: Item, by) -> None:
    """Delete a test question of a draft, with the text that only it shows."""
    with drafts.locked_draft(item.study_id, by, deletes_test_runs=True) as study:
        item_text = f"test question {item.number} of section {item.section.position}"
        own_texts = Output.objects.filter(exposures__item=item, system__reference=System.Reference.TEST)
        pks = list(own_texts.values_list("pk", flat=True))
        drafts.delete_item_with_exposures_and_expected(item)
        Output.objects.filter(pk__in=pks, exposures=None).delete()
        drafts.record_edit_and_raise_version(study, by, deleted=item_text)


def _refuse_section(section: Section) -> None:
    if not has_test_question_settings(section):
        raise ActionRefused("This protocol cannot have test questions. Use ratings, two choices or a relative scale.")
    if section.purpose != Section.Purpose.LIVE:
        raise ActionRefused("Only live sections can have test questions. Choose a live section.")
    if section.reuses_id:
        source = section.reuses.position
        raise ActionRefused(
            f"This section repeats the items of section {source}, and their test questions with them. Choose section {source}."
        )


def questions_about_items(section: Section) -> list[Question]:
    """Return the questions that test questions of the section can be about: its own, and those of sections that repeat its items.

    Of questions with the same key only the first can be chosen, because archives name them by their keys.
    """
    rows = Question.objects.filter(Q(section=section) | Q(section__reuses=section)).select_related("section")
    first: dict[str, Question] = {}
    for question in sorted(rows, key=lambda row: (row.section_id != section.pk, row.section.position, row.position)):
        first.setdefault(question.key, question)
    return [row for row in first.values() if row.section.protocol == section.protocol]


def _refuse_request(section: Section, request: KnownAnswerRequest) -> None:
    if request.question not in questions_about_items(section):
        raise ActionRefused("The question belongs to another section. Choose a question of this one.")
    if set(request.damages) - set(DAMAGES):
        raise ActionRefused(f"Texts can be damaged in these ways: {', '.join(DAMAGES)}. Choose among them.")
    if not any(request.counts.values()):
        raise ActionRefused("No test question is requested. Enter how many to make of at least one type.")
    existing = section.items.filter(kind=Item.Kind.TEST).count()
    if existing + sum(request.counts.values()) > MAX_TEST_QUESTIONS:
        raise ActionRefused(
            f"A section can have at most {MAX_TEST_QUESTIONS} test questions, and this one has {existing}. Make fewer."
        )
    if request.reference is None and (request.counts.get("positive") or request.counts.get("negative")):
        raise ActionRefused(
            "Positive and negative test questions need a reference system. Choose one, or make damaged texts only."
        )


def _planned_questions(study: Study, section: Section, request: KnownAnswerRequest) -> list[PlannedTestQuestion]:
    """Return the test questions to make. Arms that show other systems get their own."""
    drawing = BatchDraw(study)
    is_pair = REGISTRY[section.protocol].comparison_scope == "pair"
    prompts_by_systems: dict[tuple[int, ...], set[int]] = {}
    for arm in _arms_of_section(drawing, section):
        prompts_by_systems.setdefault(tuple(drawing.systems[arm.pk]), set()).update(drawing.prompts[arm.pk])
    rows = Output.objects.filter(system__study=study, is_empty=False).order_by("prompt__key", "system__name", "sample")
    texts = [
        KnownText(pk, prompt, system, text, word_count(text))
        for pk, prompt, system, text in rows.exclude(system__reference=System.Reference.TEST).values_list(
            "pk", "prompt_id", "system_id", "text"
        )
    ]
    keys = dict(study.prompts.values_list("pk", "key"))
    reference = request.reference.pk if request.reference else None
    source = KnownAnswerTexts(texts, reference, dict(study.prompts.values_list("pk", "domain")))
    # The same request again makes other questions, because those that exist are counted in the seed.
    n_existing = section.items.filter(kind=Item.Kind.TEST).count()
    planned = []
    for systems, prompts in prompts_by_systems.items():
        for test_type, wanted in request.counts.items():
            rng = seeded_random(study.seed, "test questions", section.position, test_type, n_existing)
            questions = source.plan(
                test_type,
                sorted(prompts, key=keys.__getitem__),
                systems,
                is_pair=is_pair,
                shows_one=shows_one_output(section),
                damages=tuple(request.damages),
                rng=rng,
            )
            planned += [question for _, question in zip(range(wanted), questions, strict=False)]
    return planned


def _store(study: Study, section: Section, question: Question, planned: Sequence[PlannedTestQuestion]) -> Counter[str]:
    """Store the planned questions that do not exist yet, with their known answers. Return how many by type."""
    numbers = section.items.filter(number__lt=FIRST_TEST_NUMBER).aggregate(last=Max("number"))
    number = numbers["last"] or 0
    existing = set(section.items.values_list("content", flat=True))
    outputs = _stored_outputs(study, planned)
    items, exposures, known = [], [], []
    for plan, shown in zip(planned, outputs, strict=True):
        content = item_content_hash(plan.prompt, shown, Item.Kind.TEST)
        if content in existing:
            continue
        existing.add(content)
        number += 1
        item = Item(
            study=study,
            section=section,
            number=number,
            prompt_id=plan.prompt,
            kind=Item.Kind.TEST,
            test_type=plan.test_type,
            content=content,
        )
        items.append(item)
        own = [Exposure(item=item, output_id=output, number=place) for place, output in enumerate(shown)]
        exposures += own
        known.append((plan, item, own))
    Item.objects.bulk_create(items)
    Exposure.objects.bulk_create(exposures)
    Expected.objects.bulk_create(_expected(question, *row) for row in known)
    return Counter(item.test_type for item in items)


def _expected(question: Question, plan: PlannedTestQuestion, item: Item, exposures: Sequence[Exposure]) -> Expected:
    if plan.better is not None:
        return Expected(item=item, question=question, exposure=exposures[plan.better])
    if plan.low_and_high is not None:
        low, high = plan.low_and_high
    else:
        bottom, middle, top = scale_ends(question)
        low, high = (middle, top) if plan.test_type == Item.TestType.POSITIVE else (bottom, middle)
    return Expected(
        item=item,
        question=question,
        low=low,
        high=high,
        about=exposures[plan.planted] if len(exposures) > 1 else None,
    )


def scale_ends(question: Question) -> tuple[float, float, float]:
    """Return the low end, the middle and the high end of a question's scale. Raise ActionRefused if it has none."""
    try:
        scale: Any = parse_scale(question.scale)
        middle = scale_middle(scale)
    except (ValueError, TypeError, KeyError, AttributeError):
        middle = None
    if middle is None:
        raise ActionRefused(
            f"Question {question.key} has no scale with a middle. Choose a question that rates outputs."
        )
    return float(scale.minimum), middle, float(scale.maximum)


def _stored_outputs(study: Study, planned: Sequence[PlannedTestQuestion]) -> list[tuple[int, ...]]:
    """Return the ids of each question's outputs, after storing the texts that were made for it."""
    made_up = [(plan.prompt, text) for plan in planned for text in plan.shown if isinstance(text, str)]
    ids: dict[tuple[int, str], int] = {}
    if made_up:
        source = study.systems.filter(reference=System.Reference.TEST).first() or System.objects.create(
            study=study, name=_free_name(study), reference=System.Reference.TEST
        )
        stored = Output.objects.filter(system=source)
        ids = {(prompt, text): pk for pk, prompt, text in stored.values_list("pk", "prompt_id", "text")}
        n_samples = Counter(stored.values_list("prompt_id", flat=True))
        new = []
        for prompt, text in dict.fromkeys(made_up):
            if (prompt, text) not in ids:
                new.append(Output(system=source, prompt_id=prompt, sample=n_samples[prompt], text=text))
                n_samples[prompt] += 1
        Output.objects.bulk_create(new)
        ids |= {(output.prompt_id, output.text): output.pk for output in new}
    return [tuple(text if isinstance(text, int) else ids[plan.prompt, text] for text in plan.shown) for plan in planned]


def _free_name(study: Study) -> str:
    names = set(study.systems.values_list("name", flat=True))
    return next(
        name
        for number in range(1, len(names) + 2)
        if (name := TEST_SOURCE_NAME if number == 1 else f"{TEST_SOURCE_NAME} {number}") not in names
    )
