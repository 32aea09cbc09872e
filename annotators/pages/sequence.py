"""The pages that an annotator sees.

The assignment's seed decides their order, and ``PageVisit.shown`` stores what they showed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from string import ascii_uppercase
from typing import Any, TypeVar

from annotators.models import Assignment, Response
from annotators.models.identity import keyed_hash
from annotators.places.batch_plan import BatchPlan, PlannedSection, frozen_batch_plan, get_batch_plan
from studies.design.draw import items_shown_again, seeded_random
from studies.design.wording import QuestionWording
from studies.models import Exposure, Study
from studies.protocols import (
    REGISTRY,
    Page,
    PageField,
    PageItem,
    PageQuestion,
    PageSection,
    Protocol,
    check_fields,
    with_shown_texts,
)
from studies.protocols.base.known_answers import KnownAnswer
from studies.protocols.base.pairs import draw_balanced_positions

# Attention checks: instructed questions on some pages of the live sections. The second wrong answer ends the
# assignment.
#
# A section with the purpose ``attention`` declares them. The assignment's seed decides which pages ask them.


def draw_checks_by_page(plan: BatchPlan, pages: Sequence[Page], seed: int) -> dict[str, tuple[PageQuestion, ...]]:
    """Return the attention checks of each page by page key, spread evenly over ``pages``, which must all be certain to come.

    The last page has a check only if there are no more pages than checks.
    """
    asking = [page for page in pages if page.questions]
    if not asking or not plan.checks:
        return {}
    rng = seeded_random(seed, "attention checks")
    checks = rng.sample(plan.checks, len(plan.checks))
    places = asking[:-1] if len(asking) > len(checks) else asking
    drawn: dict[str, tuple[PageQuestion, ...]] = {}
    for number, (pk, wording) in enumerate(checks):
        first = number * len(places) // len(checks)
        last = max(first, (number + 1) * len(places) // len(checks) - 1)
        page = places[rng.randint(first, last)]
        # Positions after those of the section's own questions, so that no two fields have the same name.
        position = len(page.section.questions) + number + 1
        question = PageQuestion(position, pk, wording.key, wording.text, wording.help, wording.scale)
        drawn[page.key] = (*drawn.get(page.key, ()), question)
    return drawn


def answered_checks(assignment: Assignment) -> list[tuple[Response, bool]]:
    """Return the stored answers to attention checks, each with whether it is right."""
    right_keys = {pk: wording.scale.right_key for pk, wording in get_batch_plan(assignment).checks}
    if not right_keys:
        return []
    stored = Response.objects.filter(assignment=assignment, question__in=right_keys, erased_at=None).order_by("pk")
    return [(response, response.choice == right_keys[response.question_id]) for response in stored]


# The order of sections and items on one person's pages, and the letters of outputs. All are drawn from the
# assignment's seed.


def letter_label(index: int) -> str:
    """Return the n-th label: A, B, … Z, AA, AB, …"""
    return (letter_label(index // 26 - 1) if index >= 26 else "") + ascii_uppercase[index % 26]


def order_sections(plan: BatchPlan, seed: int) -> Sequence[PlannedSection]:
    """Return the sections in order: screening, training, then live sections in the order of the design or at random.

    A section that reuses another always comes directly after it, because it asks about what was just read.
    """
    order = {"screening": 0, "training": 1, "live": 2}
    sections = sorted(plan.sections, key=lambda section: (order[section.purpose], section.position))
    if plan.wording.study["section_order"] != Study.SectionOrder.COUNTERBALANCED:
        return sorted(plan.sections, key=lambda section: (section.purpose != "screening", section.position))
    heads = [
        section
        for section in sections
        if section.purpose == "live" and section.reuses is None and REGISTRY[section.protocol].has_items
    ]
    shuffled = iter(seeded_random(seed, "sections").sample(heads, len(heads)))
    arranged: list[PlannedSection] = []
    for section in sections:
        if section in heads:
            head = next(shuffled)
            arranged.append(head)
            arranged += [section for section in sections if section.reuses == head.position]
        elif section.reuses is None:
            arranged.append(section)
    return arranged


def order_and_label_items(
    plan: BatchPlan, source: PlannedSection, seed: int, letters: tuple[str, ...]
) -> tuple[PageItem, ...]:
    """Return the section's items in this person's order, with the letters of their exposures.

    The letters belong to the section or are drawn for each item. Those of items are balanced: within the person, each pair of systems is shown
    each way equally often, and each system at each position.
    """
    order = seeded_random(seed, "items", source.position).sample(source.items, len(source.items))
    if REGISTRY[source.protocol].labels == "section" or source.settings.get("labels") == "fixed":
        item_letters = [letters] * len(order)
    elif plan.wording.is_balanced:
        sorted_letters = sorted(letters, key=_letter_key)
        systems = [[plan.source_numbers[exposure] for _, exposure in exposures] for _, exposures in order]
        positions = draw_balanced_positions(systems, seeded_random(seed, "positions", source.position))
        item_letters = [tuple(sorted_letters[position] for position in row) for row in positions]
    else:
        item_letters = [tuple(seeded_random(seed, "item", item).sample(letters, len(letters))) for item, _ in order]
    items = []
    for position, ((item, exposures), own) in enumerate(zip(order, item_letters, strict=True), 1):
        labelled = ((own[number], exposure) for number, exposure in exposures)
        items.append(PageItem(position, item, tuple(sorted(labelled, key=lambda pair: _letter_key(pair[0])))))
    return tuple(items)


def _letter_key(letter: str) -> tuple[int, str]:
    return len(letter), letter


# Tests before the work: two attempts at a section with a pass mark, and their scores.


FIRST, SECOND = 1, 2
Positioned = TypeVar("Positioned", bound=Any)


@dataclass(frozen=True, slots=True)
class AttemptScore:
    """The score of a complete attempt."""

    section_id: int
    number: int
    n_right: int
    n_asked: int
    is_passed: bool


def split_into_attempts(section: "OrderedSection", seed: int) -> list["OrderedSection"]:
    """Return the two attempts at a test. The second has other items if there are enough, else the same in another order.

    A test without items asks m of its questions; all of them if m is 0.
    """
    attempts = []
    for number in (FIRST, SECOND):
        rng = seeded_random(seed, "attempt", section.planned.position, number)
        position = section.section.position + number - 1
        items, questions = section.items, section.section.questions
        if items:
            items = tuple(_share(items, section.planned.m, number, rng))
        else:
            questions = tuple(_share(questions, section.planned.m, number, rng))
        own = replace(section.section, position=position, questions=questions)
        attempts.append(replace(section, section=own, items=items, attempt=number))
    return attempts


def _share(rows: Sequence[Positioned], wanted: int, number: int, rng) -> list[Positioned]:
    """Return the rows of one attempt with their new positions."""
    n = min(wanted or len(rows), len(rows))
    first = (number - 1) * n
    chosen = list(rows[first : first + n] if len(rows) >= 2 * n else rng.sample(rows[:n], n))
    return [replace(row, position=position) for position, row in enumerate(chosen, 1)]


def score_attempt(section: "OrderedSection", answers: Mapping[str, Any]) -> AttemptScore | None:
    """Return the score of an attempt, or None if a question with a right answer is not answered yet."""
    planned = section.planned
    protocol = REGISTRY[planned.protocol]
    n_right = n_asked = 0
    for page in protocol.pages(section.section, section.items, answers):
        for slot, ask in protocol.page_fields(page).items():
            right = planned.right_answers.get((ask.item_id, ask.question_id))
            if right is None or (right.about is not None and right.about != ask.exposure_id):
                continue
            if slot not in answers:
                return None
            n_asked += 1
            n_right += _is_right(right, ask, answers[slot])
    is_passed = planned.pass_mark is not None and n_right >= planned.pass_mark
    return AttemptScore(planned.pk, section.attempt, n_right, n_asked, is_passed)


def _is_right(right: KnownAnswer, ask: PageField, value: Any) -> bool:
    """Return whether an answer, as protocols see it, is the right one. A skipped question is not answered right."""
    given: dict[str, Any] = {"value": None}
    if isinstance(value, str):
        given["choice"] = value
    elif ask.answer_column == "chosen":
        given["chosen"] = value
    elif value is not None:
        given["value"] = float(value)
    return right.is_right(exposure=ask.exposure_id, **given) is True


# Pages without questions that no protocol of a section defines. Their visits record that they were read.


class InstructionsProtocol(Protocol):
    """The instructions page before the first text. It has no questions; its visit records that it was read."""

    slug = "instructions"
    has_items = False
    template = "annotate/instructions.html"

    def page_fields(self, page):
        return {}


INSTRUCTIONS = InstructionsProtocol()


class FeedbackProtocol(Protocol):
    """The feedback page after a practice page: the annotator's answer and the truth. It has no questions."""

    slug = "feedback"
    template = "annotate/feedback.html"

    def page_fields(self, page):
        return {}


FEEDBACK = FeedbackProtocol()


class SecondAttemptProtocol(Protocol):
    """The page between two attempts at a test. It has no questions and does not say which answers were wrong."""

    slug = "second_attempt"
    has_items = False
    template = "annotate/second_attempt.html"

    def page_fields(self, page):
        return {}


SECOND_ATTEMPT = SecondAttemptProtocol()


CHARACTERS_PER_WORD = 6


def _exposure_texts(exposures: Collection[int]) -> dict[int, str]:
    return dict(Exposure.objects.filter(pk__in=exposures).values_list("pk", "output__text"))


@dataclass(frozen=True, slots=True)
class Step:
    """One page with its protocol. ``purpose`` never reaches a template."""

    protocol: Protocol
    page: Page
    purpose: str
    attempt: int = 0

    def page_fields(self) -> dict[str, PageField]:
        """Return the form fields of the page: those of its protocol, then its attention checks."""
        return with_shown_texts(self.protocol.page_fields(self.page) | check_fields(self.page), _exposure_texts)


@dataclass(frozen=True, slots=True)
class OrderedSection:
    """A section in this annotator's order."""

    planned: PlannedSection
    section: PageSection
    items: tuple[PageItem, ...]
    attempt: int = 0  # the first or second attempt at a test; 0: no test


class PageSequence:
    """Pages in order and by key.

    ``left``: for each page, the fraction of all work on this page and the pages after it.
    """

    __slots__ = ("keys", "left", "places", "steps")

    def __init__(self, steps: Iterable[Step], plan: BatchPlan):
        self.steps = {step.page.key: step for step in steps}
        self.keys = tuple(self.steps)
        self.places = {key: index for index, key in enumerate(self.keys)}
        self.left = _parts_left([step.page for step in self.steps.values()], plan)

    def before(self, key: str) -> str:
        """Return the key of the page before this one, or ''."""
        index = self.places[key]
        return self.keys[index - 1] if index else ""

    def after(self, key: str) -> str | None:
        """Return the key of the page after this one, or None."""
        index = self.places[key] + 1
        return self.keys[index] if index < len(self.keys) else None


def _parts_left(pages: Sequence[Page], plan: BatchPlan) -> list[float]:
    """Estimate the work by time: a text counts where it is first shown, and a question takes a quarter of a minute."""
    characters_per_minute = plan.wording.study["words_per_minute"] * CHARACTERS_PER_WORD
    read: set[int] = set()
    work = []
    for page in pages:
        shown_exposures = {exposure for item in page.items for _, exposure in item.exposures}
        characters = sum(plan.text_lengths.get(exposure, 0) for exposure in shown_exposures - read)
        read |= shown_exposures
        times_asked = 1 if any(question.label for question in page.questions) else max(1, len(shown_exposures))
        characters += len(plan.instructions) if page.key == "start" else 0
        n_questions = len(page.questions) * times_asked + len(page.checks)
        work.append(characters / characters_per_minute + n_questions / 4 + 0.1)
    total = sum(work)
    return [part / total for part in accumulate(reversed(work))][::-1]


@dataclass(frozen=True, slots=True)
class Itinerary:
    """The sections of one assignment in its order.

    ``fixed`` holds its pages, or None if answers decide which pages come.
    """

    plan: BatchPlan
    sections: tuple[OrderedSection, ...]
    checks: Mapping[str, tuple[PageQuestion, ...]]
    fixed: PageSequence | None


def get_section_itinerary(assignment: Assignment) -> Itinerary:
    if assignment.design_id:
        is_qualified = assignment.qualified_by_id is not None
        return _cached_itinerary(assignment.batch_id, assignment.design_id, assignment.seed, is_qualified)
    return _build_itinerary(get_batch_plan(assignment), assignment.seed)


# About the number of people who answer at the same time. An itinerary of a hundred pages takes 50 kB.
@lru_cache(maxsize=256)
def _cached_itinerary(batch_id: int, design_id: int, seed: int, is_qualified: bool) -> Itinerary:
    return _build_itinerary(frozen_batch_plan(batch_id, design_id), seed, is_qualified)


@lru_cache(maxsize=4096)
def _itinerary_key(code: str) -> tuple[int, int, int, bool]:
    """Return the batch, design and seed of an assignment and whether it skips the test, which never change.

    Raises LookupError if no design is frozen.
    """
    frozen = Assignment.objects.filter(code=code, batch__isnull=False, design__isnull=False)
    row = frozen.values_list("batch_id", "design_id", "seed", "qualified_by").first()
    if row is None:
        raise LookupError(code)
    return (*row[:3], row[3] is not None)


def previous_fixed_page_key(assignment_code: str, page_key: str) -> str:
    """Return the key of the page before this one if pages are fixed, else ''. This does not load the assignment."""
    try:
        sequence = _cached_itinerary(*_itinerary_key(assignment_code)).fixed
    except LookupError:
        return ""
    return sequence.before(page_key) if sequence and page_key in sequence.places else ""


def _build_itinerary(plan: BatchPlan, seed: int, is_qualified: bool = False) -> Itinerary:
    sections = _build_ordered_sections(plan, seed, is_qualified)
    # Without answers a protocol returns the pages that come whatever the annotator answers.
    certain_pages = (
        page
        for section in sections
        if section.planned.purpose == "live"
        for page in REGISTRY[section.planned.protocol].pages(section.section, section.items, {})
    )
    checks = draw_checks_by_page(plan, list(certain_pages), seed) if plan.checks else {}
    return Itinerary(plan, sections, checks, _fixed_sequence(plan, sections, checks))


def _build_ordered_sections(plan: BatchPlan, seed: int, is_qualified: bool) -> tuple[OrderedSection, ...]:
    by_position = {section.position: section for section in plan.sections}
    letters: dict[int, tuple[str, ...]] = {}
    shown: dict[int, tuple[PageItem, ...]] = {}
    n_used = 0
    sections: list[OrderedSection] = []
    for planned in order_sections(plan, seed):
        if is_qualified and planned.accepts_earlier_pass:
            continue
        source = by_position.get(planned.reuses, planned) if planned.reuses else planned
        width = max((number + 1 for _, exposures in source.items for number, _ in exposures), default=0)
        if width and source.position not in letters:
            label_order = source.settings.get("labels", "random")
            start = n_used if label_order == "continue" else 0
            names = [letter_label(n) for n in range(start, start + width)]
            if label_order != "fixed":
                seeded_random(seed, "labels", source.position).shuffle(names)
            letters[source.position] = tuple(names)
            n_used = max(n_used, start + width)
        if source.position not in shown:
            shown[source.position] = order_and_label_items(plan, source, seed, letters.get(source.position, ()))
        items = shown[source.position]
        section = _build_ordered_section(
            plan,
            planned,
            seed,
            len(sections) + 1,
            letters.get(source.position, ()),
            items_shown_again(items, planned.m, lambda item: item.id in plan.test_items) if planned.reuses else items,
        )
        sections += [section] if planned.pass_mark is None else split_into_attempts(section, seed)
    return tuple(sections)


def _build_ordered_section(
    plan: BatchPlan,
    planned: PlannedSection,
    seed: int,
    section_number: int,
    letters: tuple[str, ...],
    items: tuple[PageItem, ...],
) -> OrderedSection:
    declared = [question for _, question in planned.questions]
    ids = {question.key: pk for pk, question in planned.questions}
    arranged = REGISTRY[planned.protocol].order_questions(
        declared, planned.settings, seeded_random(seed, "questions", planned.position), plan.wording.is_balanced
    )
    questions = tuple(
        build_page_question(n, ids[question.key], question, planned.exposure_numbers, letters)
        for n, question in enumerate(arranged, 1)
    )
    return OrderedSection(planned, PageSection(section_number, planned.m, planned.settings, questions), items)


def build_page_question(
    position: int,
    question_id: int,
    wording: QuestionWording,
    exposure_numbers: Mapping[str, int],
    labels: Sequence[str],
) -> PageQuestion:
    def label(system):
        return labels[exposure_numbers[system]] if system in exposure_numbers and labels else ""

    x, y = (label(wording.x), label(wording.y)) if wording.x else ("", "")
    text = wording.text.replace("{x}", x).replace("{y}", y)
    return PageQuestion(
        position, question_id, wording.key, text, wording.help.replace("{x}", x).replace("{y}", y), wording.scale, wording.required,
        wording.skip_reasons, f"{x}{y}" if x else "",
    )  # fmt: skip


def build_page_sequence(assignment: Assignment, answers: Mapping[str, Any]) -> PageSequence:
    """Return the pages in order, as far as the answers so far determine them."""
    itinerary = get_section_itinerary(assignment)
    if itinerary.fixed:
        return itinerary.fixed
    return PageSequence(_steps(itinerary.plan, itinerary.sections, itinerary.checks, answers), itinerary.plan)


def _steps(
    plan: BatchPlan,
    sections: Sequence[OrderedSection],
    checks: Mapping[str, tuple[PageQuestion, ...]],
    answers: Mapping[str, Any],
) -> list[Step]:
    steps: list[Step] = []
    instructions = plan.instructions
    for previous, section in zip((None, *sections), sections, strict=False):
        if section.attempt == SECOND and previous is not None:
            first = score_attempt(previous, answers)
            if first is None or first.is_passed:
                continue
            steps.append(_second_attempt_step(section))
        if instructions and section.planned.purpose != "screening":
            steps.append(_instructions_step())
            instructions = ""
        protocol = REGISTRY[section.planned.protocol]
        for page in protocol.pages(section.section, section.items, answers):
            if page.key in checks:
                page = replace(page, checks=checks[page.key])
            steps.append(Step(protocol, page, section.planned.purpose, section.attempt))
            if feedback_ids := next_page_feedback_question_ids(page, section.planned.feedback_pairs):
                questions = tuple(question for question in page.questions if question.id in feedback_ids)
                feedback_page = Page(f"{page.key}t", page.section, page.items, questions, step=protocol.slug)
                steps.append(Step(FEEDBACK, feedback_page, section.planned.purpose))
    return steps


def next_page_feedback_question_ids(page: Page, feedback_pairs: frozenset[tuple[int, int]]) -> set[int]:
    """Return the ids of this page's questions that get feedback on the next page."""
    return {
        question.id for question in page.questions for item in page.items if (item.id, question.id) in feedback_pairs
    }


class _AnswersNeeded(Exception):
    """A protocol asked for an answer to determine its pages."""


class _UnreadableAnswers(Mapping):
    """Answers that raise _AnswersNeeded on any access."""

    def _refuse(self, *_):
        raise _AnswersNeeded

    __getitem__ = __iter__ = __len__ = _refuse


def _fixed_sequence(
    plan: BatchPlan, sections: Sequence[OrderedSection], checks: Mapping[str, tuple[PageQuestion, ...]]
) -> PageSequence | None:
    """Return all pages if no answer can change them, else None."""
    try:
        return PageSequence(_steps(plan, sections, checks, _UnreadableAnswers()), plan)
    except _AnswersNeeded:
        return None


def _instructions_step() -> Step:
    return Step(INSTRUCTIONS, Page("start", PageSection(0, 0, {}, ())), "live")


def _second_attempt_step(section: OrderedSection) -> Step:
    page = Page(f"s{section.section.position}.again", replace(section.section, questions=()))
    return Step(SECOND_ATTEMPT, page, section.planned.purpose)


def page_snapshot(page: Page) -> dict[str, Any]:
    """Return what this page shows as JSON: the items in order with labels, and the questions in order with texts."""
    checks = [[check.position, check.id, check.text] for check in page.checks]
    return {
        "items": [
            [item.position, item.id, [[label, exposure] for label, exposure in item.exposures]] for item in page.items
        ],
        "questions": [[question.position, question.id, question.text, question.label] for question in page.questions],
    } | ({"checks": checks} if checks else {})


def restore_shown_page(page: Page, snapshot: Mapping[str, Any]) -> Page:
    """Return the page as it was first shown, so that a later version of the code cannot reorder it."""
    by_id = {question.id: question for question in page.section.questions}
    questions = tuple(
        replace(by_id[pk], position=position, text=text, label=label)
        for position, pk, text, label in snapshot["questions"]
    )
    items = tuple(
        PageItem(position, pk, tuple((label, exposure) for label, exposure in exposures))
        for position, pk, exposures in snapshot["items"]
    )
    shown_check_ids = {pk for _, pk, _ in snapshot.get("checks", ())}
    checks = tuple(check for check in page.checks if check.id in shown_check_ids)
    return replace(page, items=items, questions=questions, checks=checks)


_PARTS = {"start": "instructions", "read": "reading", "ask": "questions", "again": "second attempt"}
_NUMBERED = {"s": "section", "p": "page"}
_BEHIND = {"f": "reasons", "t": "the truth"}


def describe_page_key(key: str) -> str:
    """Describe a page key for researchers: "s2.ask" is "section 2, questions".

    The numbers are in this annotator's order.
    """
    descriptions = []
    for part in key.split("."):
        letter, number = part[:1], part[1:].rstrip("".join(_BEHIND))
        if letter in _NUMBERED and number.isdigit():
            suffixes = part[1 + len(number) :]
            descriptions += [f"{_NUMBERED[letter]} {number}", *(_BEHIND[suffix] for suffix in suffixes)]
        else:
            descriptions.append(_PARTS.get(part, part))
    return ", ".join(descriptions)


def opaque_media_id(assignment_code: str, exposure_or_item_id: int, kind: str = "output") -> str:
    """Return the name of an image on this assignment's pages.

    It is a keyed hash: it reveals nothing and cannot be guessed.
    """
    return keyed_hash("media", assignment_code, kind, str(exposure_or_item_id))[:32]


def media_file_names_by_id(assignment: Assignment) -> dict[str, str]:
    """Return the images of this assignment: the opaque id and the stored file name of each."""
    rows = Exposure.objects.filter(item__placements__batch=assignment.batch_id).values_list(
        "pk", "output__media", "item_id", "item__prompt__media"
    )
    names = {}
    for exposure, output, item, prompt in rows:
        if output:
            names[opaque_media_id(assignment.code, exposure)] = output
        if prompt:
            names[opaque_media_id(assignment.code, item, "prompt")] = prompt
    return names
