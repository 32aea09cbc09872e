"""Read a request's body completely, or fail."""

from django.core.exceptions import BadRequest
from django.core.handlers.wsgi import LimitedStream


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
