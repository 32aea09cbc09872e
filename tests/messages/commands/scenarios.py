"""A scenario runs a command as an operator would, or reads the settings from an environment, and gives what is said."""

import os
import runpy
import tempfile
import warnings
from contextlib import ExitStack, redirect_stderr
from io import StringIO
from pathlib import Path
from unittest import mock

from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from analysis.data.snapshot import TooManySnapshots
from heval_site.management.client import ClientError
from heval_site.rehearsal.rehearsal import RehearsalRefused
from studies.models import Study
from tests import builders
from tests.messages.lines import Shown
from tests.study_command import connection_stays

REFUSALS = (ClientError, CommandError, ImproperlyConfigured, ValueError, RehearsalRefused, TooManySnapshots)


def draft() -> Study:
    return builders.draft_study(owner=builders.user())


def launched() -> Study:
    return builders.spa_study(builders.user())


def link(**columns):
    return builders.recruitment(launched(), **columns)


def said(act) -> list[Shown]:
    """The refusal of an act, or what it writes for the operator."""
    written = StringIO()
    with redirect_stderr(written):
        try:
            act()
        except REFUSALS as refused:
            return [Shown(str(refused))]
        except SystemExit:
            pass
    return [Shown(line) for line in written.getvalue().splitlines()]


def command(name, *arguments, make=draft, **changes):
    """A command on a study, a link or a file. ``changes`` replaces objects of the code, by their full names.

    The arguments may contain {code} of what ``make`` creates, and {folder}, which has the files of ``FILES``.
    """

    def scenario():
        made = make()
        with ExitStack() as stack:
            stack.enter_context(connection_stays())
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            for file, data in FILES.items():
                (Path(folder) / file).write_bytes(data)
            for target, value in changes.items():
                stack.enter_context(mock.patch(target, value))
            names = {"code": getattr(made, "code", ""), "folder": folder}
            filled = [text.format(**names) for text in arguments]
            return said(lambda: call_command(name, *filled, stdout=StringIO()))

    return scenario


FILES = {
    "rows.csv": b"prompt_key,prompt_text\np1,A prompt.\n",
    "own.csv": b"question,ada\nWhat is it about?,It is about a text of some length.\n",
    "binary.csv": b"\xff\xfe\x00",
    "b.json": b'{\n"schema": "heval.bundle/2"}',
}
KEY, OTHER_KEY = "k1" + "abcdefghij" * 6, "k2" + "abcdefghij" * 6
DEPLOYED = {
    "DATABASE_URL": "postgres://heval:secret@db:5432/heval",
    "SECRET_KEY": KEY,
    "PSEUDONYM_KEY": OTHER_KEY,
    "SITE_URL": "https://eval.example.org",
}


def environment(**changes):
    """What the settings say of the environment of a deployed site with these changes."""

    def scenario():
        with tempfile.TemporaryDirectory() as home, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            variables = {"PATH": os.environ["PATH"], "HEVAL_HOME": f"{home}/home", **DEPLOYED, **changes}
            (Path(home) / "a file").write_bytes(b"\xff")
            variables = {name: value.format(home=home) for name, value in variables.items()}
            with mock.patch.dict(os.environ, variables, clear=True):
                return said(lambda: runpy.run_module("heval_site.settings"))

    return scenario


def printed(act):
    return lambda: said(act)
