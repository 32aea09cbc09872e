"""The pages that an annotator sees.

The assignment's seed decides their order, and ``PageVisit.shown`` stores what they showed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any

from annotators.models import Assignment
from annotators.models.crypto import keyed_hash
from annotators.places.batch_plan import BatchPlan, PlannedSection, frozen_batch_plan, get_batch_plan
from studies.design.seeds import seeded_random
from studies.design.wording import QuestionWording
from studies.models import Exposure
from studies.protocols import REGISTRY, Page, PageField, PageItem, PageQuestion, PageSection, Protocol, check_fields

from .attention import draw_checks_by_page
from .order import letter_label, order_and_label_items, order_sections
from .qualification import SECOND, score_attempt, split_into_attempts
from .special_pages import FEEDBACK, INSTRUCTIONS, SECOND_ATTEMPT

CHARACTERS_PER_WORD = 6


@dataclass(frozen=True, slots=True)
class Step:
    """One page with its protocol. ``purpose`` never reaches a template."""

    protocol: Protocol
    page: Page
    purpose: str
    attempt: int = 0

    def page_fields(self) -> dict[str, PageField]:
        """Return the form fields of the page: those of its protocol, then its attention checks."""
        return self.protocol.page_fields(self.page) | check_fields(self.page)


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
        width = max((len(exposures) for _, exposures in source.items), default=0)
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
            items[: planned.m] if planned.reuses else items,
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
