import os

import django
from django.core.handlers.wsgi import LimitedStream, WSGIHandler, WSGIRequest
from django.db import connection
from django.urls import get_resolver

from heval_site.turns import Turns

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")
django.setup(set_prefix=False)

from heval_site.unavailable import CutOff  # noqa: E402 - it knows channels, and they know models: after the set-up


class Whole(LimitedStream):
    """A body of as many bytes as were announced. Django takes what has come when the connection ended for all of it: a number
    that lost its last digit is another answer."""

    def read(self, size=-1, /):
        left = self.limit - self._pos
        wanted = left if size is None or size < 0 else min(size, left)
        data = super().read(wanted)
        while len(data) < wanted:
            more = super().read(wanted - len(data))
            if not more:
                raise CutOff
            data += more
        return data


class Request(WSGIRequest):
    """A request is in UTF-8. One that names another character set is refused by the first middleware; Django would believe it
    while the request is being made, where an error is answered by nobody."""

    def __init__(self, environ):
        super().__init__(environ)
        self._stream = Whole(environ["wsgi.input"], self._stream.limit)

    @property
    def encoding(self):
        return None

    @encoding.setter
    def encoding(self, named):
        pass


class Application(WSGIHandler):
    request_class = Request


application = Turns(Application()) if connection.vendor == "sqlite" else Application()
# Before the workers part: what all of them import is shared, and a view that does not import stops the start.
get_resolver().url_patterns  # noqa: B018 - reading it loads it
