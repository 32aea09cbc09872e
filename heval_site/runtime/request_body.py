"""What is read of a request's body: as many bytes as were announced, or nothing."""

from django.core.exceptions import BadRequest
from django.core.handlers.wsgi import LimitedStream


class IncompleteBody(BadRequest):
    """The connection ended before all had come that was announced."""


class CompleteBodyStream(LimitedStream):
    """Django takes what has come when the connection ended for all of it: a number that lost its last digit is another answer."""

    def read(self, size=-1, /):
        left = self.limit - self._pos
        wanted = left if size is None or size < 0 else min(size, left)
        data = super().read(wanted)
        while len(data) < wanted:
            more = super().read(wanted - len(data))
            if not more:
                raise IncompleteBody
            data += more
        return data
