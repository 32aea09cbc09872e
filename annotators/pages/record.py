"""record_page: beside ``importing`` the only creator of Response. A page is recorded once; the same sent again changes nothing,
another is refused.

What was sent is read and checked before any lock; the transaction that stores it is a few conditional statements long, and
whoever comes second finds that a row was changed already.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import QuerySet, Value
from django.db.models.functions import Coalesce, Greatest, Now
from django.http import QueryDict

from annotators.models import Assignment, PageVisit, Response
from annotators.places.assign import FINAL_RELEASE_REASONS, Released, begin, release, revive
from annotators.places.leases import extended_deadline
from studies.models import Batch
from studies.protocols import PageField

from .compiled_queries import CompiledUpdate, columns_of, insert_missing_without_fsync, update_then_insert
from .form_data import (
    CONTROL_NAMES,
    NewResponse,
    PageForm,
    active_seconds,
    answer_value,
    build_new_responses,
    has_screening_answer,
    nonempty_inputs,
    parse_page_form,
    validate_unseen_images,
)
from .sequence import PageSequence, Step, build_page_sequence, get_itinerary, page_snapshot, restore_shown_page

# Characters, names and all; and how many names and values.
MAX_DRAFT_CHARACTERS, MAX_DRAFT_TEXTS = 200_000, 2_000


class PageNotStored(Exception):
    """What was sent to a page is not stored. The sender is shown it again, with the reason. Each reason is a subclass."""


class ConflictingAnswers(PageNotStored):
    """This page was recorded before, with other answers."""


class PageOutOfOrder(PageNotStored):
    """Another page has to be answered before this one."""


class NoSuchPage(PageNotStored):
    """The assignment has no page with this key."""


class AssignmentClosed(PageNotStored):
    """The assignment takes no answers any more: it was submitted, withdrawn or ended, or it never had a place."""


class AlreadyStored(PageNotStored):
    """A draft of a page that is recorded, with nothing in it that is not stored."""


class DraftTooLong(PageNotStored):
    """A draft is larger than what is kept of one."""


@dataclass(frozen=True, slots=True)
class PageState:
    """Where an assignment is: its visits by page key, its answers by slot, its pages as far as they are determined.

    ``around``: only the visits of this page and of the one before it are here, and no answers.
    """

    assignment: Assignment
    visits: Mapping[str, PageVisit]
    answers: Mapping[str, Any]
    walk: PageSequence
    partial_key: str = ""

    @property
    def steps(self) -> Mapping[str, Step]:
        return self.walk.steps

    def is_recorded(self, key: str) -> bool:
        return key in self.visits and self.visits[key].recorded_at is not None

    def is_next(self, key: str) -> bool:
        """Whether this page is the one to be answered now. Fixed pages are recorded in order: the one before it tells."""
        if not self.partial_key:
            return key == self.next_key
        before = self.walk.before(key)
        return not self.is_recorded(key) and (not before or self.is_recorded(before))

    @property
    def next_key(self) -> str | None:
        """The first page that is not recorded; None when all are."""
        whole = page_state(self.assignment) if self.partial_key else self
        return next((key for key in whole.walk.keys if not whole.is_recorded(key)), None)


def page_state(assignment: Assignment) -> PageState:
    """Two queries, whatever the length of the study."""
    visits = {visit.key: visit for visit in PageVisit.objects.filter(assignment=assignment)}
    answers = {}
    if get_itinerary(assignment).fixed is None and any(visit.recorded_at for visit in visits.values()):
        answers = {r.slot: answer_value(r) for r in Response.objects.filter(assignment=assignment)}
    return PageState(assignment, visits, answers, build_page_sequence(assignment, answers))


# What a page needs of its own visit, and of the one before it.
VISIT_COLUMNS = columns_of(PageVisit, "id", "key", "shown", "layout", "draft", "recorded_at", "unseen")
PREVIOUS_VISIT_COLUMNS = columns_of(PageVisit, "id", "key", "layout", "recorded_at")
# What is written of a new visit; its moment is the database's own.
NEW_VISIT_COLUMNS = ("assignment", "key", "shown", "layout", "active_seconds")


def page_state_near(assignment: Assignment, key: str) -> PageState:
    """As much of it as this page needs. Where pages are fixed nothing that is read grows with what was answered before.

    ``assignment.preloaded_visits``: the keys of the page before it and of this one with their visits, where they were read with the
    assignment just now. They serve once: whoever looks again wants to see what has happened since.
    """
    walk = get_itinerary(assignment).fixed
    if walk is None or key not in walk.places:
        return page_state(assignment)
    wanted = (walk.before(key), key)
    read, visits = assignment.__dict__.pop("preloaded_visits", (None, None))
    if read != wanted:
        visits = {visit.key: visit for visit in PageVisit.objects.filter(assignment=assignment, key__in=wanted)}
    return PageState(assignment, visits, {}, walk, partial_key=key)


@dataclass(frozen=True, slots=True)
class NewVisit:
    """A PageVisit to be: its columns alone."""

    assignment_id: int
    key: str
    shown: Mapping[str, Any]
    layout: str
    active_seconds: int = 0
    shown_at: None = None


def new_visit(state: PageState, step: Step, key: str) -> NewVisit:
    """The visit of a page that has none, not yet stored. A page begins in the layout that was chosen on the one before."""
    before = state.visits.get(state.walk.before(key))
    return NewVisit(state.assignment.pk, key, page_snapshot(step.page), before.layout if before else "")


def recreate_lost_visit(state: PageState, step: Step, key: str) -> PageVisit:
    """Make the visit of the page that is next again. The page comes out the same, for it is drawn from the assignment's seed.

    Nobody knows when it was shown. Where another request was quicker, its row is the one that counts.
    """
    insert_missing_without_fsync(PageVisit, (*NEW_VISIT_COLUMNS, "shown_at"), new_visit(state, step, key))
    return PageVisit.objects.get(assignment=state.assignment, key=key)


def restore_shown_step(step: Step, visit: PageVisit) -> Step:
    """The page as its visit says that it was shown: nearly always as it is laid now."""
    if visit.shown == page_snapshot(step.page):
        return step
    return Step(step.protocol, restore_shown_page(step.page, visit.shown), step.purpose)


def resolve_submitted_page(assignment: Assignment, key: str) -> tuple[PageState, Step, PageVisit]:
    """The page that something was sent to, as it was shown, with its visit: recorded, or taking answers now. Raises NotStored."""
    if assignment.withdrawn_at or assignment.batch_id is None:
        raise AssignmentClosed
    standing = page_state_near(assignment, key)
    step, visit = standing.steps.get(key), standing.visits.get(key)
    if step is None:
        raise NoSuchPage
    if visit is None or not visit.recorded_at:
        if assignment.submitted_at or assignment.released_reason in FINAL_RELEASE_REASONS:
            raise AssignmentClosed
        if not standing.is_next(key):
            raise PageOutOfOrder
    if visit is None:
        visit = recreate_lost_visit(standing, step, key)
    return standing, restore_shown_step(step, visit), visit


def _answer_key(response: Response | NewResponse) -> tuple:
    value = None if response.value is None else Decimal(response.value).normalize()
    return (
        response.slot,
        value,
        response.chosen_id,
        response.choice,
        response.part,
        response.text,
        response.skip_reason,
    )


@dataclass(frozen=True, slots=True)
class RecordResult:
    """What came of a page: the next page's key (None: all done), or the form with its messages, or who left."""

    next_key: str | None = None
    sent: PageForm | None = None
    asks: Mapping[str, PageField] | None = None
    step: Step | None = None


def record_page(assignment: Assignment, key: str, data: QueryDict, has_files: bool = False) -> RecordResult:
    """Store one page's answers, once. Raises NotStored.

    A released assignment takes its place again if that is still free; else its answers are kept all the same and are marked
    late when the last page is sent.
    """
    standing, step, visit = resolve_submitted_page(assignment, key)
    asks = step.protocol.asks(step.page)
    sent = parse_page_form(step, asks, data, has_files)
    unseen = validate_unseen_images(assignment, step.page, data, sent)
    if visit.recorded_at:
        return _resolve_repeat(standing, step, asks, sent)
    if assignment.started_at is None:
        begin(assignment)
    if not sent.is_valid:
        return RecordResult(key, sent, asks, step)
    rows = build_new_responses(assignment.pk, asks, sent)
    following = _next_key(standing, key, rows)
    is_screened_out = step.purpose == "screening" and has_screening_answer(asks, sent)
    if is_screened_out:
        following = None
    try:
        _store(assignment, visit, rows, following, is_screened_out, active_seconds(data), unseen)
    except _LostRace:
        return _resolve_repeat(page_state(assignment), step, asks, sent)
    return RecordResult(following)


def _next_key(standing: PageState, key: str, rows: list[NewResponse]) -> str | None:
    """The next page once this one is recorded; None when it was the last that was missing."""
    if standing.partial_key and (following := standing.walk.after(key)):
        return following
    # The end is only believed when every page was looked at.
    whole = page_state(standing.assignment) if standing.partial_key else standing
    answers = {**whole.answers, **{row.slot: answer_value(row) for row in rows}}
    walk = build_page_sequence(whole.assignment, answers)
    return next((other for other in walk.keys if other != key and not whole.is_recorded(other)), None)


class _LostRace(Exception):
    """Another request recorded this page first."""


def unfinished_assignment(pk: int) -> QuerySet[Assignment]:
    return Assignment.objects.filter(pk=pk, released_at=None, submitted_at=None, withdrawn_at=None)


# A live assignment's place is kept for so long from now.
_extension = CompiledUpdate(
    lambda seconds, pk: (unfinished_assignment(pk), {"reserved_until": extended_deadline(seconds)}), int, int
)
SUBMITTED_VALUES = {
    "started_at": Coalesce("started_at", Now()),
    "submitted_at": Greatest(Coalesce("started_at", Now()), Now()),
}
_submission = CompiledUpdate(lambda pk: (unfinished_assignment(pk), SUBMITTED_VALUES), int)


def _released_assignment(pk: int) -> QuerySet[Assignment]:
    """Whose place was given back, and who may go on all the same."""
    released = Assignment.objects.filter(pk=pk, released_at__isnull=False, submitted_at=None, withdrawn_at=None)
    return released.exclude(released_reason__in=FINAL_RELEASE_REASONS)


_late_page = CompiledUpdate(lambda pk: (_released_assignment(pk), {"is_late": False}), int)
_late_screening = CompiledUpdate(lambda pk: (_released_assignment(pk), {"released_reason": Released.SCREENED_OUT}), int)
_late_submission = CompiledUpdate(lambda pk: (_released_assignment(pk), SUBMITTED_VALUES | {"is_late": True}), int)
# A clock that was set back must cost nobody an answer: what followed is no earlier than what it followed. Where it is not known
# when the page was shown, there is nothing to follow; SQLite's greatest of nothing and a moment would be nothing.
RECORDED_VALUES = {"recorded_at": Greatest(Coalesce("shown_at", Now()), Now()), "draft": None}
_recording = CompiledUpdate(
    lambda seconds, unseen, pk: (
        PageVisit.objects.filter(pk=pk, recorded_at=None),
        {
            **RECORDED_VALUES,
            "active_seconds": Greatest("active_seconds", Value(seconds)),
            "unseen": Value(unseen),
        },
    ),
    int,
    str,
    int,
)
RESPONSE_COLUMNS = (
    "assignment", "question", "item", "exposure", "slot", "value", "chosen", "choice", "part", "text", "skip_reason", "label",
    "position",
)  # fmt: skip


def _store(assignment, visit, rows, following, is_screened_out, active_seconds, unseen) -> None:
    is_last = following is None and not is_screened_out
    recording = (_recording, (active_seconds, unseen, visit.pk))

    def write(lock: tuple[CompiledUpdate, tuple], is_released_then: bool = False) -> bool:
        """Whether the assignment was as ``lock`` wants it. It waits for whoever holds the row and then finds the truth."""
        # Where another was first, a place that is kept longer may stay so; nothing else may.
        with transaction.atomic() if following is None else nullcontext():
            if is_released_then and assignment.batch_id:
                # The place goes back in the same transaction: batch before assignment.
                Batch.objects.select_for_update(no_key=True, of=("self",)).get(pk=assignment.batch_id)
            found = update_then_insert([lock, recording], Response, RESPONSE_COLUMNS, rows)
            if found == 1:
                raise _LostRace
            if found and is_released_then:
                release(assignment.pk, Released.SCREENED_OUT)
            return bool(found)

    this = (assignment.pk,)
    lock = (_submission, this) if is_last else (_extension, (assignment.study.idle_lease_seconds, *this))
    for _ in range(2):
        if write(lock, is_released_then=is_screened_out):
            return
        # Released meanwhile: take the place again if it is free (annotator, batch, assignment), else be late.
        if not revive(assignment.pk):
            break
    if not write((_late_screening if is_screened_out else _late_submission if is_last else _late_page, this)):
        raise _LostRace


def _resolve_repeat(standing: PageState, step: Step, asks: Mapping[str, PageField], sent: PageForm) -> RecordResult:
    """The same page again: what is stored decides. Equal answers go on as if they had come once."""
    visit = standing.visits.get(step.page.key)
    if visit is None or not visit.recorded_at:
        raise AssignmentClosed
    stored = {_answer_key(r) for r in Response.objects.filter(assignment=standing.assignment, slot__in=list(asks))}
    if not sent.is_valid or {_answer_key(r) for r in build_new_responses(standing.assignment.pk, asks, sent)} != stored:
        raise ConflictingAnswers
    return RecordResult(standing.next_key)


def save_draft(assignment: Assignment, key: str, data: QueryDict) -> None:
    """Keep what was typed on a page that is not recorded. Raises NotStored."""
    kept = {
        _strip_unstorable(name): [_strip_unstorable(value) for value in values]
        for name, values in data.lists()
        if name not in CONTROL_NAMES
    }
    sizes = [len(one) for name, values in kept.items() for one in (name, *values)]
    fits = sum(sizes) <= MAX_DRAFT_CHARACTERS and len(sizes) <= MAX_DRAFT_TEXTS
    # No join: the database looks at these conditions again when it had to wait for the row.
    at_work = Assignment.objects.filter(pk=assignment.pk, withdrawn_at=None, submitted_at=None)
    at_work = at_work.exclude(released_reason__in=FINAL_RELEASE_REASONS)
    open_visit = PageVisit.objects.filter(assignment__in=at_work, key=key, recorded_at=None)
    changes: dict[str, Any] = {"draft": kept}
    if data.get("layout") in ("side", "one"):
        changes["layout"] = data["layout"]
    if seconds := active_seconds(data):
        changes["active_seconds"] = seconds
    for _ in range(3):
        if fits and open_visit.update(**changes):
            break
        assignment.__dict__.pop("preloaded_visits", None)  # what was read before is not what the statement has found
        standing, step, visit = resolve_submitted_page(assignment, key)
        if visit.recorded_at:
            if nonempty_inputs(data):
                asks = step.protocol.asks(step.page)
                _resolve_repeat(standing, step, asks, parse_page_form(step, asks, data))
            raise AlreadyStored
        if not fits:
            raise DraftTooLong
    else:
        raise AssignmentClosed  # its annotator left while this was on its way
    # A person who types is still there, and has begun.
    held = Assignment.objects.filter(pk=assignment.pk, released_at=None, submitted_at=None)
    held.update(
        started_at=Coalesce("started_at", Now()), reserved_until=extended_deadline(assignment.study.idle_lease_seconds)
    )


def _strip_unstorable(text: str) -> str:
    """Without what a database cannot hold in a text."""
    return text.replace("\x00", "").encode("utf-8", "ignore").decode()
