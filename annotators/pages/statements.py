"""The statements that record a page, compiled once. Each changes a row only if it is in the expected state."""

from django.db.models import QuerySet, Value
from django.db.models.functions import Coalesce, Greatest, Now

from annotators.models import Assignment, PageVisit
from annotators.places.assign import FINAL_RELEASE_REASONS
from annotators.places.leases import extended_deadline_expression

from .compiled_queries import CompiledUpdate


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
