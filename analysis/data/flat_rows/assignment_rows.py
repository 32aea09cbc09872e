"""Read and format the cells of an assignment and its pages once, for all rows of its answers."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, TextField
from django.db.models.functions import Cast

from annotators.models import Assignment, Exclusion, PageVisit
from studies.models import Study

from .cells import fetch_raw_rows_from_default_db, format_time, parse_time
from .selection import Selection, annotator_pseudonym, assignment_pseudonym

ASSIGNMENTS_AT_ONCE = 1000


@dataclass(slots=True)
class AssignmentRow:
    """The cells of an assignment, and its pages in the order in which they were recorded."""

    pk: int
    identity: tuple
    times: tuple
    recorded_times: list[datetime]
    pages: list[tuple]

    def page_cells_at(self, received: datetime | None) -> tuple:
        """Return the cells of the page on which an answer was given: the last page recorded when the answer was stored."""
        n_recorded = bisect_right(self.recorded_times, received) if received else 0
        page, layout, shown_at, active, unseen = self.pages[n_recorded - 1] if n_recorded else (None,) * 5
        return (page, layout, shown_at, format_time(received), active, unseen)


_SEAT = (
    "pk", "code", "annotator__code", "ordinal", "recruitment__channel", "batch__number", "batch__arm__name", "batch__arm__condition",
    "origin", "trust", "design__version", "is_late", "released_reason",
)  # fmt: skip
_SEAT_TIMES = ("claimed_at", "consented_at", "started_at", "submitted_at", "released_at", "withdrawn_at")


def _as_text(*names: str) -> list[Cast]:
    """Read times as text. The driver's time objects cost ten times more, and a damaged one raises an error."""
    return [Cast(name, TextField()) for name in names]


def read_assignment_rows(study: Study, assignments: QuerySet) -> list[AssignmentRow]:
    """Return assignments with their pages and exclusions, in three queries. Pass at most ``ASSIGNMENTS_AT_ONCE``."""
    rows = fetch_raw_rows_from_default_db(assignments.order_by("pk").values_list(*_SEAT, *_as_text(*_SEAT_TIMES)))
    ids = [row[0] for row in rows]
    visits: dict[int, list] = {pk: [] for pk in ids}
    recorded = PageVisit.objects.filter(assignment__in=ids, recorded_at__isnull=False).order_by("pk")
    for pk, key, layout, shown_at, recorded_at, active, unseen in fetch_raw_rows_from_default_db(
        recorded.values_list(
            "assignment_id", "key", "layout", *_as_text("shown_at", "recorded_at"), "active_seconds", "unseen"
        )
    ):
        if time := parse_time(recorded_at):
            seconds = active if isinstance(active, int) else None
            visits[pk].append((time, (key, layout or None, format_time(parse_time(shown_at)), seconds, unseen or None)))
    reasons: dict[int, list[str]] = {pk: [] for pk in ids}
    active = Exclusion.objects.filter(assignment__in=ids, reverses=None).filter(
        ~Exists(Exclusion.objects.filter(reverses=OuterRef("pk")))
    )
    for pk, reason in fetch_raw_rows_from_default_db(active.order_by("pk").values_list("assignment_id", "reason")):
        reasons[pk].append(reason)
    return [_seat(study, row, sorted(visits[row[0]], key=lambda visit: visit[0]), reasons[row[0]]) for row in rows]


def _seat(study: Study, row: tuple, visits: list, reasons: list[str]) -> AssignmentRow:
    pk, code, annotator, ordinal, channel, batch, arm, condition, origin, trust, version, is_late, reason, *rest = row
    claimed, consented, started, submitted, released, withdrawn = map(parse_time, rest)
    identity = (
        assignment_pseudonym(code),
        None if withdrawn else annotator_pseudonym(study, _dashed(annotator)),
        ordinal,
        channel,
        batch,
        arm,
        condition,
        origin,
        trust,
        version,
        submitted is not None,
        bool(is_late),
        withdrawn is not None,
        ";".join(reasons) or None,
    )
    is_timed = origin != Assignment.Origin.IMPORTED
    seconds = round((submitted - started).total_seconds(), 3) if submitted and started and is_timed else None
    active = sum(visit[1][3] for visit in visits if isinstance(visit[1][3], int))
    times = (
        *(format_time(time) for time in (claimed, consented, started, submitted, released)),
        reason or None,
        format_time(withdrawn),
        seconds,
        active,
        len(visits),
        _unseen(visits),
    )
    return AssignmentRow(pk, identity, times, [visit[0] for visit in visits], [visit[1] for visit in visits])


def _unseen(visits: list) -> str | None:
    """Return the images that the annotator could not see, each with its page."""
    return ";".join(f"{page[0]}:{name}" for _, page in visits if page[4] for name in page[4].split(";")) or None


def _dashed(code: Any) -> str:
    """Return a UUID as text with dashes. SQLite stores it without them."""
    text = str(code)
    return (
        text
        if "-" in text or len(text) != 32
        else "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    )


def assignment_row_chunks(selection: Selection) -> Iterator[list[AssignmentRow]]:
    """Yield all assignments of the selection in stable order, ``ASSIGNMENTS_AT_ONCE`` at a time."""
    last = 0
    while True:
        following = selection.assignments.filter(pk__gt=last).order_by("pk")
        ids = list(following.values_list("pk", flat=True)[:ASSIGNMENTS_AT_ONCE])
        if not ids:
            return
        yield read_assignment_rows(selection.study, Assignment.objects.filter(pk__in=ids))
        last = ids[-1]
