import os

import django
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.db import connection
from django.urls import get_resolver

from .runtime.requests import CompleteBodyStream, RequestLockMiddleware

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "heval_site.settings")
django.setup(set_prefix=False)


class Request(WSGIRequest):
    """Requests must use UTF-8.

    The first middleware refuses other character sets. Without this, Django would apply them before errors can be
    handled.
    """

    def __init__(self, environ):
        super().__init__(environ)
        self._stream = CompleteBodyStream(environ["wsgi.input"], self._stream.limit)  # type: ignore[assignment, attr-defined]  # not a file

    @property
    def encoding(self):
        return None

    @encoding.setter
    def encoding(self, named):
        pass


class Application(WSGIHandler):
    request_class = Request


application = RequestLockMiddleware(Application()) if connection.vendor == "sqlite" else Application()
# Before the workers fork: their imports are shared, and a view that cannot be imported stops the start.
get_resolver().url_patterns  # noqa: B018 - reading it loads it
