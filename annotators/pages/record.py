"""Store the answers to a page. Only ``record_page_answers`` and ``annotators.imports`` create Responses.

A page is recorded once. The same answers sent again change nothing; other answers are refused. A form is checked before
any lock. The transaction that stores it is a few conditional statements; a second request finds that a row has changed.
"""

import secrets
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Coalesce, Greatest, Now
from django.http import QueryDict

from annotators import fast_path
from annotators.fast_path import CompiledUpdate, columns_in_model_order, insert_missing_without_fsync
from annotators.models import Assignment, PageVisit, QualificationAttempt, Response
from annotators.models.identity import keyed_hash
from annotators.places.assign import (
    FINAL_RELEASE_REASONS,
    mark_started_and_extend_deadline,
    release_assignment,
    revive_assignment,
)
from annotators.places.places import extended_deadline_expression
from studies.models import Batch
from studies.protocols import PageField

from .form_data import (
    CONTROL_NAMES,
    NewResponse,
    PageForm,
    answer_value,
    build_new_responses,
    nonempty_answer_inputs,
    parse_active_seconds,
    parse_page_form,
)
from .sequence import (
    SECOND,
    AttemptScore,
    PageSequence,
    Step,
    answered_checks,
    build_page_sequence,
    get_section_itinerary,
    page_snapshot,
    restore_shown_page,
    score_attempt,
)

# Answers that end an assignment before its last page. The page that holds them is stored like any other.


Released = Assignment.Released
# The first wrong answer to an attention check changes nothing, because anybody can misread once.
FAILURES_THAT_END = 2


def early_end_reason(
    assignment: Assignment,
    step: Step,
    page_fields: Mapping[str, PageField],
    form: PageForm,
    attempt: AttemptScore | None,
) -> str:
    """Return why this valid form ends the assignment before its last page, or ''. ``attempt``: at a test, if it is complete."""
    if attempt and attempt.number == SECOND and not attempt.is_passed:
        return Released.SCREENED_OUT
    if step.purpose == "screening" and has_disqualifying_answer(page_fields, form):
        return Released.SCREENED_OUT
    return Released.FAILED_CHECKS if _fails_too_many_checks(assignment, page_fields, form) else ""


def has_disqualifying_answer(page_fields: Mapping[str, PageField], form: PageForm) -> bool:
    """Return whether an answer screens the annotator out."""
    return any(
        option.screens_out
        for slot, ask in page_fields.items()
        for option in getattr(ask.field, "options", ())
        if form.values.get(slot) == option.key
    )


def _fails_too_many_checks(assignment: Assignment, page_fields: Mapping[str, PageField], form: PageForm) -> bool:
    """Return whether the form holds the wrong answer that ends the assignment. No query unless it holds a wrong one."""
    n_wrong = sum(bool(ask.right_key) and form.values[slot] != ask.right_key for slot, ask in page_fields.items())
    if not n_wrong:
        return False
    return n_wrong + sum(not is_right for _, is_right in answered_checks(assignment)) >= FAILURES_THAT_END


# The statements that record a page, compiled once. Each changes a row only if it is in the expected state.


def filter_active_assignment(assignment_pk: int) -> QuerySet[Assignment]:
    return Assignment.objects.filter(pk=assignment_pk, released_at=None, submitted_at=None, withdrawn_at=None)


# Keep the place of a live assignment for this number of seconds from now.
extension = CompiledUpdate(
    lambda seconds, pk: (filter_active_assignment(pk), {"reserved_until": extended_deadline_expression(seconds)}),
    int,
    int,
)
SUBMITTED_VALUES = {
    "started_at": Coalesce("started_at", Now()),
    "submitted_at": Greatest(Coalesce("started_at", Now()), Now()),
}
submission = CompiledUpdate(lambda pk: (filter_active_assignment(pk), SUBMITTED_VALUES), int)


def _released_assignment(pk: int) -> QuerySet[Assignment]:
    """Return the assignment if its place was released but it may still go on."""
    released = Assignment.objects.filter(pk=pk, released_at__isnull=False, submitted_at=None, withdrawn_at=None)
    return released.exclude(released_reason__in=FINAL_RELEASE_REASONS)


late_page = CompiledUpdate(lambda pk: (_released_assignment(pk), {"is_late": False}), int)
late_end = CompiledUpdate(lambda reason, pk: (_released_assignment(pk), {"released_reason": Value(reason)}), str, int)
late_submission = CompiledUpdate(lambda pk: (_released_assignment(pk), SUBMITTED_VALUES | {"is_late": True}), int)
# If the clock was set back, an answer must still be stored: it is never earlier than the showing of its page. If the
# time of showing is unknown, Coalesce is needed, because Greatest of NULL and a time is NULL in SQLite.
RECORDED_VALUES = {"recorded_at": Greatest(Coalesce("shown_at", Now()), Now()), "draft": None}
recording = CompiledUpdate(
    lambda seconds, unseen, pk: (
        PageVisit.objects.filter(pk=pk, recorded_at=None),
        RECORDED_VALUES | {"active_seconds": Greatest("active_seconds", Value(seconds)), "unseen": Value(unseen)},
    ),
    int,
    str,
    int,
)
RESPONSE_COLUMNS = (
    "assignment", "question", "item", "exposure", "slot", "value", "chosen", "choice", "part", "text", "skip_reason", "label",
    "position",
)  # fmt: skip


# The limits of a draft: the characters of all names and values, and the number of names and values.
MAX_DRAFT_CHARACTERS, MAX_DRAFT_TEXTS = 200_000, 2_000
# The name under which a draft says at which address it was typed, if not at the personal one.
DRAFT_MARK = "typed_at"
# The name under which a draft says in which tab it was typed.
DRAFT_TAB = "typed_in"


class PageNotStored(Exception):
    """The sent answers are not stored. The sender sees them again with the reason. Each reason is a subclass."""


class ConflictingAnswers(PageNotStored):
    """This page is already recorded with other answers."""


class PageOutOfOrder(PageNotStored):
    """Another page has to be answered before this one."""


class NoSuchPage(PageNotStored):
    """The assignment has no page with this key."""


class AssignmentClosed(PageNotStored):
    """The assignment takes no more answers: it was submitted, withdrawn or ended, or it never had a place."""


class AlreadyStored(PageNotStored):
    """A draft of a recorded page that contains nothing new, or a stored page at an address that shows no stored answers."""


class DraftTooLong(PageNotStored):
    """A draft exceeds MAX_DRAFT_CHARACTERS or MAX_DRAFT_TEXTS."""


class StaleDraft(PageNotStored):
    """The page has a newer draft from another tab or device, which the sender has not seen."""


@dataclass(frozen=True, slots=True)
class PageState:
    """The state of an assignment: visits by page key, answers by slot, and pages as far as answers determine them.

    If ``partial_key`` is set, it contains only the visits of this page and the one before it, and no answers.
    """

    assignment: Assignment
    visits: Mapping[str, PageVisit]
    answers: Mapping[str, Any]
    sequence: PageSequence
    partial_key: str = ""

    @property
    def steps(self) -> Mapping[str, Step]:
        return self.sequence.steps

    def is_recorded(self, key: str) -> bool:
        return key in self.visits and self.visits[key].recorded_at is not None

    def is_next(self, key: str) -> bool:
        """Return whether this page is the next to answer."""
        # Fixed pages are recorded in order, so the page before this one decides.
        if not self.partial_key:
            return key == self.next_key
        previous_key = self.sequence.before(key)
        return not self.is_recorded(key) and (not previous_key or self.is_recorded(previous_key))

    @property
    def next_key(self) -> str | None:
        """Return the key of the first page that is not recorded, or None if all are recorded."""
        state = full_page_state(self.assignment) if self.partial_key else self
        return next((key for key in state.sequence.keys if not state.is_recorded(key)), None)


def full_page_state(assignment: Assignment) -> PageState:
    """Return the full state of an assignment. It takes two queries, whatever the length of the study."""
    visits = {visit.key: visit for visit in PageVisit.objects.filter(assignment=assignment)}
    answers = {}
    if get_section_itinerary(assignment).fixed is None and any(visit.recorded_at for visit in visits.values()):
        answers = {response.slot: answer_value(response) for response in Response.objects.filter(assignment=assignment)}
    return PageState(assignment, visits, answers, build_page_sequence(assignment, answers))


# The columns that a page reads of its own visit, and of the visit of the page before it.
VISIT_COLUMNS = columns_in_model_order(PageVisit, "id", "key", "shown", "layout", "draft", "recorded_at", "unseen")
PREVIOUS_VISIT_COLUMNS = columns_in_model_order(PageVisit, "id", "key", "layout", "recorded_at")
# The columns that are written for a new visit. The database sets its time.
NEW_VISIT_COLUMNS = ("assignment", "key", "shown", "layout", "active_seconds")


def partial_page_state(assignment: Assignment, page_key: str) -> PageState:
    """Return the part of the state that this page needs.

    If pages are fixed, its cost does not grow with earlier answers.

    ``assignment.preloaded_visits`` may hold the keys of the page before this one and of this page, with their visits.
    They are used once, because a second call wants the present state.
    """
    sequence = get_section_itinerary(assignment).fixed
    if sequence is None or page_key not in sequence.places:
        return full_page_state(assignment)
    keys = (sequence.before(page_key), page_key)
    preloaded, visits = assignment.__dict__.pop("preloaded_visits", (None, None))
    if preloaded != keys:
        visits = {visit.key: visit for visit in PageVisit.objects.filter(assignment=assignment, key__in=keys)}
    return PageState(assignment, visits, {}, sequence, partial_key=page_key)


@dataclass(frozen=True, slots=True)
class NewVisit:
    """The columns of a new PageVisit."""

    assignment_id: int
    key: str
    shown: Mapping[str, Any]
    layout: str
    active_seconds: int = 0
    shown_at: None = None


def build_new_visit(state: PageState, step: Step, page_key: str) -> NewVisit:
    """Return a new visit, not yet stored. The page starts with the layout that was chosen on the page before it."""
    previous_visit = state.visits.get(state.sequence.before(page_key))
    return NewVisit(
        state.assignment.pk, page_key, page_snapshot(step.page), previous_visit.layout if previous_visit else ""
    )


def recreate_lost_visit(state: PageState, step: Step, page_key: str) -> PageVisit:
    """Store the visit of the next page again. The page is the same, because it is drawn from the assignment's seed.

    The time when it was shown is unknown. If another request was faster, its row counts.
    """
    insert_missing_without_fsync(PageVisit, (*NEW_VISIT_COLUMNS, "shown_at"), build_new_visit(state, step, page_key))
    return PageVisit.objects.get(assignment=state.assignment, key=page_key)


def restore_shown_step(step: Step, visit: PageVisit) -> Step:
    """Return the page as it was shown according to its visit. This is nearly always the page as it is drawn now."""
    if visit.shown == page_snapshot(step.page):
        return step
    return replace(step, page=restore_shown_page(step.page, visit.shown))


def validate_page_and_get_or_create_visit(assignment: Assignment, page_key: str) -> tuple[PageState, Step, PageVisit]:
    """Return the state, the page as it was shown, and its visit, if the page is recorded or can be answered now.

    Raises PageNotStored.
    """
    if assignment.withdrawn_at or assignment.batch_id is None:
        raise AssignmentClosed
    state = partial_page_state(assignment, page_key)
    step, visit = state.steps.get(page_key), state.visits.get(page_key)
    if step is None:
        raise NoSuchPage
    if visit is None or not visit.recorded_at:
        if assignment.submitted_at or assignment.released_reason in FINAL_RELEASE_REASONS:
            raise AssignmentClosed
        if not state.is_next(page_key):
            raise PageOutOfOrder
    if visit is None:
        visit = recreate_lost_visit(state, step, page_key)
    return state, restore_shown_step(step, visit), visit


def _answer_key(response: Response | NewResponse) -> tuple:
    value = None if response.value is None else Decimal(response.value).normalize()
    chosen = (response.chosen_id, response.choice, response.part)
    return response.slot, value, chosen, response.text, response.skip_reason


@dataclass(frozen=True, slots=True)
class RecordResult:
    """The result of recording a page: the key of the next page (None after the last page), or the form with its errors."""

    next_key: str | None = None
    sent: PageForm | None = None
    asks: Mapping[str, PageField] | None = None
    step: Step | None = None


def record_page_answers(
    assignment: Assignment, page_key: str, data: QueryDict, has_files: bool = False
) -> RecordResult:
    """Store one page's answers, once. Raises PageNotStored.

    A released assignment takes its place again if it is still free. If not, its answers are still stored, and the
    assignment is marked late when the last page is sent.
    """
    state, step, visit = validate_page_and_get_or_create_visit(assignment, page_key)
    asks = step.page_fields()
    form = parse_page_form(step, asks, data, has_files, assignment)
    if visit.recorded_at:
        return _resolve_repeat(state, step, asks, form)
    if assignment.started_at is None:
        mark_started_and_extend_deadline(assignment)
    if not form.is_valid:
        return RecordResult(page_key, form, asks, step)
    rows = build_new_responses(assignment.pk, asks, form)
    following = _next_key(state, page_key, rows)
    attempt = _completed_attempt(state, step, rows) if step.attempt else None
    early_end = early_end_reason(assignment, step, asks, form, attempt)
    if early_end:
        following = None
    try:
        _store(assignment, visit, rows, following, early_end, attempt, parse_active_seconds(data), form.unseen)
    except _LostRace:
        return _resolve_repeat(full_page_state(assignment), step, asks, form)
    return RecordResult(following)


def _completed_attempt(state: PageState, step: Step, rows: list[NewResponse]) -> AttemptScore | None:
    """Return the score of the attempt at a test that this page completes, or None."""
    # Answers decide about the second attempt, so such a state is always full.
    sections = get_section_itinerary(state.assignment).sections
    section = next(section for section in sections if section.attempt == step.attempt)
    if score_attempt(section, state.answers) is not None:
        return None  # an earlier page completed it
    return score_attempt(section, {**state.answers, **{row.slot: answer_value(row) for row in rows}})


def _next_key(state: PageState, key: str, rows: list[NewResponse]) -> str | None:
    """Return the key of the next page after this one is recorded; None if this was the last missing page."""
    if state.partial_key and (following := state.sequence.after(key)):
        return following
    # Check all pages before deciding that this is the end.
    full_state = full_page_state(state.assignment) if state.partial_key else state
    answers = {**full_state.answers, **{row.slot: answer_value(row) for row in rows}}
    sequence = build_page_sequence(full_state.assignment, answers)
    return next(
        (other_key for other_key in sequence.keys if other_key != key and not full_state.is_recorded(other_key)), None
    )


class _LostRace(Exception):
    """Another request recorded this page first."""


def _store(assignment, visit, rows, following, early_end, attempt, active_seconds, unseen) -> None:
    is_last = following is None and not early_end
    recorded = (recording, (active_seconds, unseen, visit.pk))

    def write(lock: tuple[CompiledUpdate, tuple], is_released_then: bool = False) -> bool:
        """Wait for the row, and return whether ``lock`` found the assignment in the expected state."""
        # If another request was first, all changes must be rolled back; only an extended place may stay.
        with transaction.atomic() if following is None or attempt else nullcontext():
            if is_released_then and assignment.batch_id:
                # The place goes back in the same transaction: batch before assignment.
                Batch.objects.select_for_update(no_key=True, of=("self",)).get(pk=assignment.batch_id)
            n_updated = fast_path.update_then_insert_if_all_matched([lock, recorded], Response, RESPONSE_COLUMNS, rows)
            if n_updated == 1:
                raise _LostRace
            if n_updated and attempt and assignment.origin != Assignment.Origin.TEST:
                QualificationAttempt.objects.create(assignment_id=assignment.pk, **asdict(attempt))
            if n_updated and is_released_then:
                release_assignment(assignment.pk, early_end)
            return bool(n_updated)

    pk_only = (assignment.pk,)
    lock = (submission, pk_only) if is_last else (extension, (assignment.study.idle_lease_seconds, *pk_only))
    for _ in range(2):
        if write(lock, is_released_then=bool(early_end)):
            return
        # The place was released meanwhile. Take it again if it is free (locks: annotator, batch, assignment).
        if not revive_assignment(assignment.pk):
            break
    late = (late_end, (early_end, *pk_only)) if early_end else (late_submission if is_last else late_page, pk_only)
    if not write(late):
        raise _LostRace


def _resolve_repeat(state: PageState, step: Step, asks: Mapping[str, PageField], form: PageForm) -> RecordResult:
    """Handle a page that is sent again.

    Equal answers continue to the next page; other answers raise ConflictingAnswers.
    """
    visit = state.visits.get(step.page.key)
    if visit is None or not visit.recorded_at:
        raise AssignmentClosed
    if state.assignment.limited_address:
        raise AlreadyStored  # a comparison would tell what is stored
    responses = Response.objects.filter(assignment=state.assignment, slot__in=list(asks))
    stored = {_answer_key(response) for response in responses}
    new_responses = build_new_responses(state.assignment.pk, asks, form) if form.is_valid else []
    if not form.is_valid or {_answer_key(response) for response in new_responses} != stored:
        raise ConflictingAnswers
    return RecordResult(state.next_key)


def _draft_mark(assignment: Assignment) -> str:
    return keyed_hash("draft", assignment.limited_address)[:16] if assignment.limited_address else ""


def get_visible_draft(assignment: Assignment, visit: PageVisit | None) -> dict[str, Any] | None:
    """Return the draft of a page. An address that shows no stored answers shows only what was typed there."""
    draft = visit.draft if visit else None
    is_hidden = draft and assignment.limited_address and draft.get(DRAFT_MARK) != [_draft_mark(assignment)]
    return None if is_hidden else draft


def draft_tab(draft: Mapping[str, Any] | None) -> str:
    """Return the tab in which a draft was typed, or ''."""
    return ((draft or {}).get(DRAFT_TAB) or [""])[0]


def save_page_draft_and_extend_deadline(assignment: Assignment, page_key: str, data: QueryDict) -> None:
    """Save the draft of a page that is not recorded. Raises PageNotStored."""
    draft = {
        _strip_unstorable(name): [_strip_unstorable(value) for value in values]
        for name, values in data.lists()
        if name not in CONTROL_NAMES
    }
    if mark := _draft_mark(assignment):
        draft[DRAFT_MARK] = [mark]
    # A page says which draft it has shown, and its script in which tab it is open. An address that shows no stored answers
    # cannot have seen the newer draft.
    tabs = None
    if "seen" in data and not mark:
        tab = _strip_unstorable(data.get("tab", "")[:40]) or secrets.token_hex(6)
        draft[DRAFT_TAB], tabs = [tab], {tab, _strip_unstorable(data.get("seen", "")[:40])}
    sizes = [len(text) for name, values in draft.items() for text in (name, *values)]
    fits = sum(sizes) <= MAX_DRAFT_CHARACTERS and len(sizes) <= MAX_DRAFT_TEXTS
    # No join, so that the database checks these conditions again after a wait for the row.
    at_work = Assignment.objects.filter(pk=assignment.pk, withdrawn_at=None, submitted_at=None)
    at_work = at_work.exclude(released_reason__in=FINAL_RELEASE_REASONS)
    open_visit = PageVisit.objects.filter(assignment__in=at_work, key=page_key, recorded_at=None)
    if tabs is not None:
        own_or_seen = Q(draft__typed_in__isnull=True) | Q(draft__typed_in__0__in=sorted(tabs))
        open_visit = open_visit.filter(own_or_seen)
    changes: dict[str, Any] = {"draft": draft}
    if data.get("layout") in ("side", "one"):
        changes["layout"] = data["layout"]
    if seconds := parse_active_seconds(data):
        changes["active_seconds"] = seconds
    for _ in range(3):
        if fits and open_visit.update(**changes):
            break
        assignment.__dict__.pop("preloaded_visits", None)  # the update found another state than the preloaded one
        state, step, visit = validate_page_and_get_or_create_visit(assignment, page_key)
        if visit.recorded_at:
            if nonempty_answer_inputs(data):
                asks = step.page_fields()
                _resolve_repeat(state, step, asks, parse_page_form(step, asks, data, assignment=assignment))
            raise AlreadyStored
        if not fits:
            raise DraftTooLong
        if tabs is not None and draft_tab(visit.draft) not in {"", *tabs}:
            raise StaleDraft
    else:
        raise AssignmentClosed  # the annotator withdrew while this request was on its way
    # A person who types is active and has started.
    Assignment.objects.filter(pk=assignment.pk, released_at=None, submitted_at=None).update(
        started_at=Coalesce("started_at", Now()),
        reserved_until=extended_deadline_expression(assignment.study.idle_lease_seconds),
    )


def _strip_unstorable(text: str) -> str:
    """Remove the characters that a database cannot store."""
    return text.replace("\x00", "").encode("utf-8", "ignore").decode()
