"""The tutorial for programs is followed: exactly its lines of Python, and of the command line, run against a site while people answer."""

import json
import shlex
import sys
from datetime import timedelta
from io import StringIO

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db.models import F, QuerySet

from analysis.api.tokens import create_token
from heval_site.management import client
from heval_site.management.client import http
from heval_site.views import docs
from studies.models import Study
from studies.services import jobs
from tests.builders import user
from tests.docs.pages import FENCE
from tests.in_process import person_choosing

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
BLOCKS = FENCE.findall(docs.read_pages()["tutorial/evaluate-a-checkpoint"].text)
(PROGRAM,) = (code for language, _, code in BLOCKS if language == "python")
(SAMPLE, COMMANDS) = (code for language, _, code in BLOCKS if language == "text")
(FACTS,) = (code for language, _, code in BLOCKS if language == "json")


def the_world_goes_on(seconds):
    """What happens while the program waits: jobs run, people answer, and the minute after the closing passes."""
    cache.clear()
    if jobs.run_waiting_jobs():
        return
    study = Study.objects.get()
    if study.state == "launched" and not study.assignments.exists():
        for n in range(study.target_n):
            person_choosing(study, n, "new")
    elif study.state == "closing":
        minute = timedelta(seconds=61)
        QuerySet(Study).update(launched_at=F("launched_at") - minute, closing_at=F("closing_at") - minute)
        jobs.run_due_functions_and_record_heartbeat()


@pytest.fixture
def site(live_server, settings, monkeypatch, tmp_path):
    """A site with the files of the tutorial in the working folder; gives its address."""
    settings.SITE_URL = live_server.url
    monkeypatch.setattr(http, "sleep", the_world_goes_on)
    monkeypatch.setenv("HEVAL_TOKEN", create_token(user("ada"), "pipeline", scope="write")[1])
    monkeypatch.setitem(sys.modules, "heval_client", client)
    monkeypatch.chdir(tmp_path)
    fields = json.loads(SAMPLE)
    for name in ("new", "old"):
        rows = [dict.fromkeys(fields, f"The {name} answer {n}.") | {"prompt": f"Question {n}?"} for n in range(20)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "facts.json").write_text(FACTS)
    return live_server.url


def here(text, site):
    assert "https://eval.example.org" in text
    return text.replace("https://eval.example.org", site)


def test_the_program_is_short_and_runs(site, capsys):
    lines = [line for line in PROGRAM.splitlines() if line.strip()]
    assert len(lines) <= 15
    exec(compile(here(PROGRAM, site), "tutorial", "exec"), {})
    checked, link = capsys.readouterr().out.splitlines()
    assert checked == "()" and link.startswith(f"{site}/e/")
    assert Study.objects.get().state == "closed"


def test_the_lines_of_the_command_line_run(site):
    printed = []
    for line in here(COMMANDS, site).replace("\\\n", " ").splitlines():
        program, name, *arguments = shlex.split(line)
        assert (program, name) == ("heval", "study")
        out = StringIO()
        call_command(name, *arguments, stdout=out, stderr=StringIO())
        printed.append(out.getvalue())
    assert printed[3].startswith(f"{site}/e/") and printed[-1].startswith("yes: ")
    assert Study.objects.get().state == "closed"
