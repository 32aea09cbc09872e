"""``heval submit`` in this process: its requests go to Django's test client instead of a network."""

import io
from contextlib import contextmanager
from unittest import mock

import httpx
from django.core.management import call_command
from django.test import Client

from heval_site.management.commands.submit import Command
from heval_site.management.site_client import BoardClient


def through_django(request: httpx.Request) -> httpx.Response:
    headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
    content_type = headers.pop("content-type", "application/octet-stream")
    answer = Client().generic(
        request.method, request.url.raw_path.decode(), request.read(), content_type=content_type, headers=headers
    )
    return httpx.Response(answer.status_code, headers=dict(answer.headers), content=answer.content)


@contextmanager
def connected(sleep=lambda seconds: None, send=through_django):
    """Commands in this block reach this process. ``sleep``: what happens while they wait; ``send``: who answers."""

    def make_client(self, site, board, token):
        return BoardClient(site, board, token, sleep, httpx.MockTransport(send))

    with mock.patch.object(Command, "make_client", make_client):
        yield


def run_submit(*arguments, **options) -> tuple[int, str]:
    """The exit code and what is printed. A CommandError is raised."""
    printed = io.StringIO()
    try:
        call_command("submit", *map(str, arguments), stdout=printed, stderr=printed, **options)
    except SystemExit as end:
        return end.code, printed.getvalue()
    return 0, printed.getvalue()
