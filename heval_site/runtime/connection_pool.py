"""Adapt PostgreSQL's pool: no needless cost in each request, and no long pause after an outage."""

import select
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Self

import psycopg
from psycopg.adapt import Loader
from psycopg_pool.base import AttemptWithBackoff

# The pool doubles its pauses: a server that was away for 20 s would be noticed up to 30 s after its return.
AttemptWithBackoff.INITIAL_DELAY, AttemptWithBackoff.DELAY_BACKOFF = 0.5, 1.0
CHECK_INTERVAL_SECONDS = 1.0
LIVENESS_QUERY = ""


class TimestampLoader(Loader):
    """Load timestamps with Python's own parser, because Django's uses a slow regular expression.

    Django gives a loader its time zone, and makes sessions use this zone.
    """

    timezone = UTC

    def load(self, data: Any) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii"))
        except ValueError:
            raise psycopg.DataError(f"Python cannot read this timestamp: {str(data, 'utf-8', 'replace')}") from None


class PooledConnection(psycopg.Connection[Any]):
    """Check a pooled connection without a query.

    The pool's own check is a round trip in each request. If a server ends a connection, the socket shows it. If a server
    vanishes (its machine or the network is down), the socket shows nothing. So connections that were not checked for
    ``CHECK_INTERVAL_SECONDS``, or that have unread data, are still checked by a query.
    """

    checked_at = -CHECK_INTERVAL_SECONDS

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Self:
        new_connection = super().connect(*args, **kwargs)
        new_connection.adapters.register_loader("timestamptz", TimestampLoader)
        return new_connection

    def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        if query == LIVENESS_QUERY:
            checked_at, last_checked_at = monotonic(), self.checked_at
            self.checked_at = checked_at
            if checked_at - last_checked_at < CHECK_INTERVAL_SECONDS and not _has_input(self.fileno()):
                return None
        return super().execute(query, *args, **kwargs)


def _has_input(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
