"""The tutorial for programs is followed: exactly its lines of Python, and of the command line, run against a site while people answer."""

import pytest

from analysis.api.tokens import create_token
from heval_site.management.client import http
from studies.models import Study
from tests.builders import user
from tests.docs.reader import Reader
from tests.docs.samples import TUTORIAL, write_samples
from tests.in_process import the_world_goes_on

pytestmark = pytest.mark.django_db(transaction=True)
(PROGRAM,) = (code for language, _, code in TUTORIAL if language == "python")
COMMANDS = next(code for language, _, code in TUTORIAL if code.startswith("heval study create"))


@pytest.fixture
def reader(live_server, settings, monkeypatch, tmp_path):
    """A reader with the files of the tutorial in the working folder."""
    settings.SITE_URL = live_server.url
    monkeypatch.setattr(http, "sleep", the_world_goes_on)
    write_samples(tmp_path)
    return Reader(tmp_path, live_server.url, create_token(user("ada"), "pipeline", scope="write")[1], monkeypatch)


def test_the_program_is_short_and_runs(reader, capsys):
    assert len([line for line in PROGRAM.splitlines() if line.strip()]) <= 15
    reader.python(PROGRAM)
    checked, link = capsys.readouterr().out.splitlines()
    assert checked == "()" and link.startswith(f"{reader.site}/e/")
    assert Study.objects.get().state == "closed"


def test_the_lines_of_the_command_line_run(reader):
    status, printed = reader.shell(COMMANDS)
    assert status == 0, printed
    assert f"\n{reader.site}/e/" in printed and printed.splitlines()[-1].startswith("yes: ")
    assert Study.objects.get().state == "closed"
