"""What a coding agent reads: each line of it runs, and names what is there."""

import re

import pytest
from django.core.cache import cache

from analysis.api.tokens import create_token
from analysis.report.runs import run_analysis
from heval_site.management.client import http
from heval_site.views import agents
from studies.models import Study
from studies.services import jobs, lifecycle
from tests.builders import user
from tests.docs.pages import FENCE, PAGES
from tests.docs.reader import Reader
from tests.docs.samples import write_samples
from tests.in_process import person_choosing

BLOCKS = FENCE.findall(PAGES[agents.PAGE].text)
DRAFT, RESULT = (code for language, _, code in BLOCKS if language == "python")
COMMANDS, REQUESTS = (code for language, _, code in BLOCKS if language == "sh")


@pytest.fixture
def ada(transactional_db):
    return user("ada")


@pytest.fixture
def reader(ada, live_server, settings, monkeypatch, tmp_path):
    """An agent with a token for drafts."""
    settings.SITE_URL = live_server.url
    monkeypatch.setattr(http, "sleep", lambda seconds: jobs.run_waiting_jobs())
    write_samples(tmp_path)
    return Reader(tmp_path, live_server.url, create_token(ada, "agent", scope="draft")[1], monkeypatch)


def a_person_launches_it_and_people_answer(study, by):
    lifecycle.request_launch(study, by, [])
    jobs.run_waiting_jobs()
    study.refresh_from_db()
    for n in range(study.target_n):
        person_choosing(study, n, "new")
    lifecycle.start_closing(study, by, "")
    lifecycle.end_grace_period(study, None)
    run_analysis(study, {"resamples": 99}, by=by)


def test_an_agent_prepares_a_study_and_reads_what_became_of_it(reader, ada, client, capsys):
    reader.python(DRAFT)
    link, planned, *sentences, missing, warnings, page = capsys.readouterr().out.splitlines()
    study = Study.objects.get()
    assert study.state == "draft" and (missing, warnings) == ("Missing:", "Warnings:")
    assert planned == "What it can show:" and " power " in sentences[1]
    client.force_login(ada)
    assert client.get(page.split(": ")[1].removeprefix(reader.site)).status_code == 200
    a_person_launches_it_and_people_answer(study, ada)
    assert client.get(link.split(": ")[1].removeprefix(reader.site)).status_code == 200
    reader.python(RESULT)
    verdict, answers = capsys.readouterr().out.splitlines()
    assert verdict.startswith("yes ") and answers == "100 answers"


def test_its_lines_for_the_command_line_and_for_curl_make_drafts_that_can_be_launched(reader):
    for code in (COMMANDS, REQUESTS):
        cache.clear()
        status, printed = reader.shell(code)
        assert status == 0, printed
        assert "/launch/" in printed
    assert [study.state for study in Study.objects.all()] == ["draft", "draft"]
    status, printed = reader.shell('heval study launch "Checkpoint 43" --site https://eval.example.org')
    assert status == 1 and "may only make, change and delete drafts" in printed


def test_the_text_is_one_page_with_the_address_of_the_site(client, settings):
    settings.SITE_URL = "https://heval.a-university.example"
    response = client.get("/llms.txt")
    text = response.content.decode()
    assert response["Content-Type"] == "text/plain; charset=utf-8" and "public" in response["Cache-Control"]
    assert (
        len(response.content) <= 8000 and "eval.example.org" not in text and ".md" not in text.replace("SKILL.md", "")
    )
    for address in re.findall(r"\]\(https://heval\.a-university\.example(/[^)]*)\)", text):
        assert client.get(address).status_code == 200, address
    listed = re.findall(r"^- \w+ `([^`]+)`: \S", text, re.MULTILINE)
    assert {path.removesuffix("/").rpartition("/")[2] for path in listed} >= {
        "question",
        "texts",
        "checklist",
        "verdict",
    }
    skill = client.get("/docs/SKILL.md").content.decode()
    assert skill == agents.SKILL_HEADER + text and re.match(r"---\nname: heval\ndescription: .+\n---\n", skill)


def test_every_name_for_the_addresses_is_one_of_the_interface():
    from analysis.api.urls import urlpatterns

    assert {f"api-{name}" for name in agents.RESOURCES} <= {pattern.name for pattern in urlpatterns}
