"""Leases: how long a place is kept for who holds it, by the database's clock."""

from django.db.models import F, Q, Value
from django.db.models.functions import Greatest, Now

from annotators.models import Assignment, Recruitment
from annotators.models.registry import REGISTRY as CHANNELS
from studies.models import Study


class NowPlusSeconds(Now):
    """Now, by the database's clock, and so many seconds. For ``Now() + timedelta`` SQLite calls Python, at each page."""

    def __init__(self, seconds: int):
        super().__init__(Value(seconds))

    def as_postgresql(self, compiler, connection, **extra):
        template = "STATEMENT_TIMESTAMP() + %(expressions)s * INTERVAL '1 second'"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_sqlite(self, compiler, connection, **extra):
        template = "STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f', 'NOW', %(expressions)s || ' seconds')"
        return self.as_sql(compiler, connection, template=template, **extra)


def extended_deadline(seconds: int):
    """A place that is held, for so many seconds from now; one that is kept for days already is not cut short."""
    return Greatest(F("reserved_until"), NowPlusSeconds(seconds))


def channel_reserved_seconds(recruitment: Recruitment | None) -> int:
    """How long the recruitment's channel keeps a place at least; 0 where the study's own times hold."""
    return CHANNELS[recruitment.channel].reserved_seconds(recruitment) if recruitment else 0


def expired_condition() -> Q:
    """Of whoever is inside: the time of the place has run out, or the study is closed, grace period and all."""
    # No join: the database looks at these conditions again when it had to wait for the row.
    return Q(reserved_until__lt=Now()) | Q(study__in=Study.objects.filter(state=Study.State.CLOSED))


def extend(assignment: Assignment) -> bool:
    """More time, as often as it is asked for, while the place is held."""
    seconds = max(assignment.study.idle_lease_seconds, channel_reserved_seconds(assignment.recruitment))
    live = Assignment.objects.filter(pk=assignment.pk, released_at=None, submitted_at=None)
    return bool(live.update(reserved_until=extended_deadline(seconds)))
