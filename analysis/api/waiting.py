"""Long polling: with ``wait`` and If-None-Match, an answer waits until there is something new.

A request that waits holds a thread of the server, so only few may wait. It holds no connection to the database.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import connection
from rest_framework.generics import RetrieveAPIView
from rest_framework.response import Response

from .base import StudyView
from .permissions import caller_of
from .query import Parameter, integer_parser
from .tokens import OPERATOR_KEY

MAX_SECONDS = 30
RETRY_SECONDS = "15"  # for a request that may not wait
WAIT = Parameter(
    "wait",
    integer_parser(0, MAX_SECONDS),
    "With If-None-Match: at most so many seconds to wait for a change. Without a change the answer is 304.",
    0,
    int,
)
# Of two, and never of more than half of the threads.
_places = BoundedSemaphore(max(1, min(2, settings.WEB_THREADS // 2)))
# The server replaces it, so that a waiting request does not hold up its end.
is_stopping: Callable[[], bool] = bool


class WaitMixin(StudyView, RetrieveAPIView):
    """A resource of a study whose GET can wait. Its ETag says only what ``watched`` returns, because that is compared every few seconds."""

    parameters = (WAIT,)
    look_seconds = 3.0
    watched: Callable[[], Any]

    def get(self, request, *args, **kwargs):
        known, headers = request.headers.get("If-None-Match", ""), {}
        if known and self.values["wait"]:
            end = time.monotonic() + self.values["wait"]
            with _place(request) as may_wait:
                # Wait before the first look, too: in a busy study something has always changed.
                while may_wait and time.monotonic() < end and not is_stopping():
                    if not connection.in_atomic_block:
                        connection.close()
                    time.sleep(max(0, min(self.look_seconds, end - time.monotonic())))
                    self.study.refresh_from_db()
                    if self._tag() not in known:
                        break
            if not may_wait:
                headers["Retry-After"] = RETRY_SECONDS
        headers["ETag"] = self._tag()
        if headers["ETag"] in known:
            return Response(status=304, headers=headers)
        response = super().get(request, *args, **kwargs)
        for name, value in headers.items():
            response.headers[name] = value
        return response

    def _tag(self) -> str:
        return f'W/"{sha256(repr(self.watched()).encode()).hexdigest()[:32]}"'


@contextmanager
def _place(request) -> Iterator[bool]:
    """Hold one of the places for waiting requests: one for each token, two in each process, none for a command in this process."""
    key = f"heval:waits:{caller_of(request)}"
    if OPERATOR_KEY in request.META or not _places.acquire(blocking=False):
        yield False
        return
    try:
        # All processes share the cache. If this one is killed, the key ends by itself.
        has_place = cache.add(key, 1, MAX_SECONDS + 10)
        try:
            yield has_place
        finally:
            if has_place:
                cache.delete(key)
    finally:
        _places.release()
