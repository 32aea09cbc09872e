"""Texts about an annotator's place: how long it is kept, and whether answers that are sent now still count."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from annotators.models import Assignment, Response
from studies.language import gettext, gettext_noop, ngettext
from studies.models import Study

from . import assign, places

# The page's script fills in the time of day.
RESERVED_UNTIL_TEXT = gettext_noop("Place kept until %(time)s.")
CLOSING_UNTIL_TEXT = gettext_noop("The study has been closed. You can finish until %(time)s.")


class PlaceState(StrEnum):
    """The state of a place in the database.

    A new member needs its text below, and its case in tests/annotators/places/test_deadlines.py.
    """

    KEPT = "kept"
    EXPIRED = "over"
    GIVEN_AWAY = "given"
    OTHER_PART = "other_part"
    CLOSING = "closing"
    CLOSING_EXPIRED = "closing_over"
    CLOSED = "closed"


# With more time than this, the page shows no clock of the place. static/place.js has the same number.
SHOWN_BELOW_SECONDS = 600
# The texts that annotators read after the time is over.
EXPIRED_TEXTS = {
    PlaceState.EXPIRED: gettext_noop(
        "Your place is no longer kept. You can still go on: your answers count if no other person takes the place."
    ),
    PlaceState.GIVEN_AWAY: gettext_noop(
        "Another person has your place now. You can still go on: your answers are stored and marked as late."
    ),
    PlaceState.OTHER_PART: gettext_noop(
        "This place is no longer kept, because you have started another part. You can still go on here: your answers "
        "are stored and marked as late."
    ),
    PlaceState.CLOSING_EXPIRED: gettext_noop(
        "The study has been closed, and your place is no longer kept. You can still go on: your answers are stored. "
        "They may be marked as late."
    ),
    PlaceState.CLOSED: gettext_noop(
        "The study has been closed. You can still go on: your answers are stored and marked as late."
    ),
}


@dataclass(frozen=True, slots=True)
class PlaceStatus:
    """The status of a place for its page.

    ``seconds``: how long it is kept, if less than a day. ``until_text``: the text into which the page's script puts the
    local time. ``may_extend``: whether "More time" can help.
    """

    state: PlaceState
    text: str
    seconds: int | None = None
    until_text: str = ""
    may_extend: bool = True

    @property
    def is_over(self) -> bool:
        return self.state in EXPIRED_TEXTS

    @property
    def is_calm(self) -> bool:
        """Return whether so much time is left that nobody needs a clock. static/place.js shows it later."""
        return self.state == PlaceState.KEPT and (self.seconds or 0) > SHOWN_BELOW_SECONDS


def place_status(assignment: Assignment) -> PlaceStatus | None:
    """Return the status of the place; None for previews and test runs, which have no time limit.

    No query while it is kept.
    """
    deadline, study = assignment.reserved_until, assignment.study
    if deadline is None:
        return None
    now, is_held = timezone.now(), assignment.released_at is None
    if study.state == Study.State.CLOSED:
        return _expired_status(PlaceState.CLOSED, may_ask=False)
    if study.state == Study.State.CLOSING:
        last_moment = study.closing_at + timedelta(seconds=study.grace_seconds)
        if not is_held:
            return _expired_status(PlaceState.CLOSED, may_ask=False)
        if now >= min(deadline, last_moment):
            return _expired_status(PlaceState.CLOSING_EXPIRED, may_ask=now < last_moment)
        return _closing_status(min(deadline, last_moment) - now, may_ask=deadline < last_moment)
    if is_held:
        return _reserved_status(deadline, now) if now < deadline else _expired_status(PlaceState.EXPIRED)
    return _expired_status(_released_state(assignment))


def is_closed_before_first_answer(assignment: Assignment) -> bool:
    """Return whether the study was closed before this person had answered anything, so that no answer would count."""
    return (
        assignment.study.state == Study.State.CLOSED
        and assignment.submitted_at is None
        and assignment.origin != Assignment.Origin.TEST
        and not Response.objects.filter(assignment=assignment).exists()
    )


def release_place_if_study_closed(assignment: Assignment) -> None:
    """Release the place of a closed study now, so that the page is right.

    The periodic job would do it within a minute.
    """
    is_held = not assignment.released_at and not assignment.submitted_at
    if (
        is_held
        and assignment.study.state == Study.State.CLOSED
        and assignment.origin != Assignment.Origin.TEST
        and assign.release_assignment(assignment.pk, Assignment.Released.EXPIRED, only_if_expired=True)
    ):
        assignment.refresh_from_db(fields=["released_at", "released_reason"])


def extend_or_revive_place(assignment: Assignment) -> bool:
    """Keep the place longer, or take it again if it is free. Return False if neither is possible."""
    return places.extend_reservation(assignment) or (
        assign.is_place_revivable(assignment) and assign.revive_assignment(assignment.pk)
    )


def _reserved_status(deadline: datetime, now: datetime) -> PlaceStatus:
    time_left = deadline - now
    if time_left >= timedelta(days=1):
        return PlaceStatus(PlaceState.KEPT, "")  # with days left, annotators need no clock
    minutes = time_left.seconds // 60
    text = ngettext(
        "Your place is kept for %(n)s more minute.", "Your place is kept for %(n)s more minutes.", minutes
    ) % {"n": minutes}
    return PlaceStatus(
        PlaceState.KEPT,
        text if minutes else gettext("Your place is kept for less than a minute."),
        int(time_left.total_seconds()),
        gettext(RESERVED_UNTIL_TEXT),
    )


def _closing_status(time_left: timedelta, may_ask: bool) -> PlaceStatus:
    if days := time_left.days:
        text = ngettext(
            "The study has been closed. You can finish within %(n)s more day.",
            "The study has been closed. You can finish within %(n)s more days.",
            days,
        ) % {"n": days}
        return PlaceStatus(PlaceState.CLOSING, text, may_extend=may_ask)
    if minutes := time_left.seconds // 60:
        text = ngettext(
            "The study has been closed. You can finish within %(n)s more minute.",
            "The study has been closed. You can finish within %(n)s more minutes.",
            minutes,
        ) % {"n": minutes}
    else:
        text = gettext("The study has been closed. You can finish within less than a minute.")
    until_text = gettext(CLOSING_UNTIL_TEXT)
    return PlaceStatus(PlaceState.CLOSING, text, int(time_left.total_seconds()), until_text, may_ask)


def _expired_status(state: PlaceState, may_ask: bool = True) -> PlaceStatus:
    return PlaceStatus(state, gettext(EXPIRED_TEXTS[state]), may_extend=may_ask)


def _released_state(assignment: Assignment) -> PlaceState:
    """Return the state of a place that was released in a running study: free again, given away, or replaced by a part."""
    unfinished = Assignment.objects.filter(
        study=assignment.study_id, annotator=OuterRef("annotator"), released_at=None, submitted_at=None
    )
    row = Assignment.objects.filter(pk=assignment.pk).annotate(
        has_another=Exists(unfinished.exclude(origin=Assignment.Origin.TEST)),
        is_free=F("batch__wanted") - F("batch__claimed"),
    )
    has_another, free = row.values_list("has_another", "is_free").get()
    if has_another:
        return PlaceState.OTHER_PART
    return PlaceState.EXPIRED if free > 0 else PlaceState.GIVEN_AWAY
