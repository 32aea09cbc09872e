"""Adapt connections of PostgreSQL's pool, to avoid two costs in each request."""

import select
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Self

import psycopg
from psycopg.adapt import Loader

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

    The pool's own check is a round trip in each request.
    If a server ends a connection, the socket shows it. If a server vanishes (its machine or the network is down), the
    socket shows nothing. So connections unused for ``QUIET_SECONDS``, or with unread data, are still checked by a
    query.
    """

    asked = -CHECK_INTERVAL_SECONDS

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().connect(*args, **kwargs)
        made.adapters.register_loader("timestamptz", TimestampLoader)
        return made

    def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
        if query == LIVENESS_QUERY:
            now, before = monotonic(), self.asked
            self.asked = now
            if now - before < CHECK_INTERVAL_SECONDS and not _has_input(self.fileno()):
                return None
        return super().execute(query, *args, **kwargs)


def _has_input(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
