"""On SQLite, a process answers annotators' pages one after the other.

SQLite lets one write at a time. Who finds it taken sleeps for milliseconds, longer each time, and looks again: threads of one
process that meet there wait for nobody, and each of their connections reads again what another's has changed. A turn is
waited for without sleeping. What a slow connection needs, to send its form and to take its page, happens outside of it.
"""

from io import BytesIO
from threading import Lock

ANNOTATOR_PATHS = ("/p/", "/e/")
# Whoever waited so long goes on without: the turn saves time, and holds nothing together.
LOCK_TIMEOUT_SECONDS = 1.0
# Forms of annotators are far smaller. What is larger is read where it is needed.
MAX_FORM_BYTES = 1_000_000


class RequestLockMiddleware:
    """A WSGI application that lets one request of annotators at a time into another."""

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
    """Read the form, however slowly it comes. False where it is too large for that, or does not say how large it is."""
    if environ.get("HTTP_TRANSFER_ENCODING"):
        return False
    length = environ.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > MAX_FORM_BYTES:
        return False
    environ["wsgi.input"] = BytesIO(environ["wsgi.input"].read(int(length)))
    return True
