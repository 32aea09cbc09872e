"""``heval submit`` in this process: its requests go to Django's test client instead of a network."""

import io
from contextlib import contextmanager
from unittest import mock

import httpx
from django.core.management import call_command

from heval_site.management.client import Site
from heval_site.management.client.http import Connection
from heval_site.management.site_command import SiteCommand
from tests.in_process import through_django


@contextmanager
def connected(sleep=lambda seconds: None, send=through_django):
    """Commands in this block reach this process. ``sleep``: what happens while they wait; ``send``: who answers."""

    def make_site(self, address, token):
        transport = httpx.MockTransport(send)
        return Site(
            "", connection=Connection(address, token, transport=transport, sleep=sleep, on_wait=self.say_progress)
        )

    with mock.patch.object(SiteCommand, "make_site", make_site):
        yield


def run_submit(*arguments, **options) -> tuple[int, str]:
    """The exit code and what is printed. A CommandError is raised."""
    printed = io.StringIO()
    options = {"site": "http://localhost"} | options
    try:
        call_command("submit", *map(str, arguments), stdout=printed, stderr=printed, **options)
    except SystemExit as end:
        return end.code, printed.getvalue()
    return 0, printed.getvalue()
