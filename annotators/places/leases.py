"""Leases: how long a place is kept for its annotator, by the database's clock."""

from django.db.models import F, Q, Value
from django.db.models.functions import Greatest, Now

from annotators.models import Assignment, Recruitment
from annotators.models.registry import REGISTRY as CHANNELS
from studies.models import Study


class NowPlusSeconds(Now):
    """The database's present time plus a number of seconds.

    ``Now() + timedelta`` would call Python from SQLite on each page.
    """

    def __init__(self, seconds: int):
        super().__init__(Value(seconds))

    def as_postgresql(self, compiler, connection, **extra):
        template = "STATEMENT_TIMESTAMP() + %(expressions)s * INTERVAL '1 second'"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_sqlite(self, compiler, connection, **extra):
        template = "STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW', %(expressions)s || ' seconds')"
        return self.as_sql(compiler, connection, template=template, **extra)


def extended_deadline_expression(seconds: int) -> Greatest:
    """Return the new deadline of a held place: this number of seconds from now, but never before the old deadline."""
    return Greatest(F("reserved_until"), NowPlusSeconds(seconds))


def channel_min_reserved_seconds(recruitment: Recruitment | None) -> int:
    """Return the minimum time for which the recruitment's channel keeps a place; 0 if the study's times apply."""
    return CHANNELS[recruitment.channel].min_reserved_seconds(recruitment) if recruitment else 0


def expired_place_condition() -> Q:
    """Return the condition that the time of a place is over, or that the study is closed after its grace period."""
    # No join, so that the database checks these conditions again after a wait for the row.
    return Q(reserved_until__lt=Now()) | Q(study__in=Study.objects.filter(state=Study.State.CLOSED))


def extend_reservation(assignment: Assignment) -> bool:
    """Keep a held place longer. Return False if the place is not held. This may be repeated without limit."""
    seconds = max(assignment.study.idle_lease_seconds, channel_min_reserved_seconds(assignment.recruitment))
    live = Assignment.objects.filter(pk=assignment.pk, released_at=None, submitted_at=None)
    return bool(live.update(reserved_until=extended_deadline_expression(seconds)))
