"""``heval study VERB`` in this process."""

import io
from contextlib import contextmanager
from unittest import mock

import pytest
from django.core.management import CommandError, call_command
from django.db import connections


@contextmanager
def connection_stays():
    """The end of a request in this process is not the end of the test's connection."""
    with mock.patch.object(connections["default"], "close_if_unusable_or_obsolete", lambda: None):
        yield


def run(*arguments) -> tuple[int, str]:
    """The exit code, and what is printed. Jobs run in this process."""
    printed = io.StringIO()
    with connection_stays():
        try:
            call_command("study", *map(str, arguments), stdout=printed, stderr=io.StringIO())
        except SystemExit as end:
            return end.code, printed.getvalue()
    return 0, printed.getvalue()


def refusal(*arguments) -> tuple[int, str]:
    with pytest.raises(CommandError) as refused:
        run(*arguments)
    return refused.value.returncode, str(refused.value)


def exported(study, file: str, folder, *options) -> bytes:
    """What ``heval study export`` writes of the study, as its owner."""
    assert run("export", study.code, file, "--output", folder / file, *options)[0] == 0
    return (folder / file).read_bytes()
