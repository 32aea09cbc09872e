"""What a connection of PostgreSQL's pool does in its own way: two things that each request paid for without need."""

import select
from datetime import UTC, datetime
from time import monotonic
from typing import Any, Self

import psycopg
from psycopg.adapt import Loader

CHECK_INTERVAL_SECONDS = 1.0
LIVENESS_QUERY = ""


class TimestampLoader(Loader):
    """Moments as Django wants them, by Python's own reader: Django's takes them apart by a regular expression.

    Django asks a reader for its time zone, and sees to it that sessions are in this one.
    """

    timezone = UTC

    def load(self, data: Any) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii"))
        except ValueError:
            raise psycopg.DataError(f"Python knows no such moment: {str(data, 'utf-8', 'replace')}") from None


class PooledConnection(psycopg.Connection[Any]):
    """The pool asks each connection that it hands out for an answer, by an empty statement: a round trip with each request.

    A server that ended a connection has closed its end, which the socket tells without one. A server that vanished without
    a word (its machine is gone, the network is cut) does not: so a connection that nobody had for ``QUIET_SECONDS``, or that
    has something to tell, is asked all the same.
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
