"""Read a request's body completely or fail, and answer annotators' pages one at a time on SQLite."""

from io import BytesIO
from threading import Lock

from django.core.exceptions import BadRequest
from django.core.handlers.wsgi import LimitedStream

# Read a request's body completely, or fail.


class IncompleteBody(BadRequest):
    """The connection ended before the announced length had arrived."""


class CompleteBodyStream(LimitedStream):
    """Raise an error for incomplete bodies.

    Django would accept them, and a number without its last digit is a different answer.
    """

    def read(self, size=-1, /):
        left = self.limit - self._pos  # type: ignore[attr-defined]  # private in Django
        n_bytes = left if size is None or size < 0 else min(size, left)
        data = super().read(n_bytes)
        while len(data) < n_bytes:
            chunk = super().read(n_bytes - len(data))
            if not chunk:
                raise IncompleteBody
            data += chunk
        return data


# On SQLite, let a process answer annotators' pages one at a time.
#
# SQLite allows one write at a time. A blocked connection sleeps for milliseconds, longer each time, and tries again.
# Connections of one process would waste time in this way, and each would read again what another has changed. A lock
# lets them wait without sleeping. Slow network parts, receiving the form and sending the page, happen outside the
# lock.


ANNOTATOR_PATHS = ("/p/", "/e/")
# After this wait the request continues without the lock, which only saves time and is not needed for correctness.
LOCK_TIMEOUT_SECONDS = 1.0
# Annotators' forms are far smaller. Larger bodies are read by the view.
MAX_FORM_BYTES = 1_000_000


class RequestLockMiddleware:
    """A WSGI application that lets one annotator request at a time into another application."""

    def __init__(self, application, timeout: float = LOCK_TIMEOUT_SECONDS):
        self.application, self.timeout = application, timeout
        self.lock = Lock()

    def __call__(self, environ, start_response):
        if not environ["PATH_INFO"].startswith(ANNOTATOR_PATHS) or not _buffer_body(environ):
            return self.application(environ, start_response)
        has_turn = self.lock.acquire(timeout=self.timeout)
        try:
            return self.application(environ, start_response)
        finally:
            if has_turn:
                self.lock.release()


def _buffer_body(environ) -> bool:
    """Read the form, however slowly it arrives. Return False if it is too large or has no declared length."""
    if environ.get("HTTP_TRANSFER_ENCODING"):
        return False
    length = environ.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > MAX_FORM_BYTES:
        return False
    environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(int(length)))
    return True
