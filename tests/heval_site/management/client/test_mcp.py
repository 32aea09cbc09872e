"""The MCP server: a coding agent prepares a study, a person launches it, and the agent reads what became of it."""

import asyncio
import json
import os
import sys

import pytest
from mcp import Client, StdioServerParameters

from analysis.api.tokens import create_token
from analysis.report.runs import run_analysis
from studies.models import Study
from studies.services import jobs, lifecycle
from tests import ROOT
from tests.builders import user
from tests.docs.samples import FACTS, outputs_of, write_samples
from tests.in_process import person_choosing

pytestmark = pytest.mark.django_db(transaction=True)
MODULE = "heval_site.management.client.mcp"


async def answers_of(server, calls):
    """The answers of the tools, each of which may need those before. A refusal is a text."""
    async with Client(server) as agent:
        tools = {tool.name: tool for tool in (await agent.list_tools()).tools}
        assert "draft" in agent.instructions and all(tool.description for tool in tools.values())
        found = [sorted(tools)]
        for name, arguments in calls:
            result = await agent.call_tool(name, arguments)
            content = result.structured_content
            found.append(result.content[0].text if result.is_error else content.get("result", content))
        return found


def asked(live_server, token, calls):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", MODULE],
        env=os.environ | {"HEVAL_SITE": live_server.url, "HEVAL_TOKEN": token},
        cwd=str(ROOT),
    )
    return asyncio.run(asyncio.wait_for(answers_of(server, calls), 60))


def test_from_outputs_to_a_draft_and_after_a_person_launched_it_to_a_verdict(live_server, settings, tmp_path):
    settings.SITE_URL = live_server.url
    ada = user("ada")
    token = create_token(ada, "agent", scope="draft")[1]
    write_samples(tmp_path)
    draft = {
        "title": "Checkpoint 42",
        "outputs": {"new": str(tmp_path / "new.jsonl"), "old": outputs_of("old")},
        "people": 20,
        "minutes": 5,
        "pages": 4,
        "reward": "1.00",
        "public_title": "Comparing answers",
        "facts": json.loads(FACTS),
    }
    named = {"study": "Checkpoint 42"}
    names, made, cards, link, planned, checked, refused, wrong = asked(
        live_server,
        token,
        [
            ("create_draft", draft),
            ("list_cards", named),
            ("make_link", named),
            ("plan_draft", named),
            ("check_draft", named),
            ("get_status", {"study": "Checkpoint 7"}),
            ("create_draft", draft | {"criterion": "nothing"}),
        ],
    )
    assert " power " in planned["sentences"][1] and planned["advice"]
    assert not [name for name in names if "launch" in name or "pay" in name]
    study = Study.objects.get(code=made["code"])
    assert study.state == "draft" and "two_choice" in {card["card"] for card in cards}
    assert link["address"].startswith(f"{live_server.url}/e/")
    assert checked["problems"] == [] and checked["page"].endswith(f"/{study.pk}/launch/")
    assert "There is no study Checkpoint 7. Give its code" in refused
    assert "criterion: " in wrong and "(status 400)" in wrong
    assert "Choose one of: overall" in wrong and Study.objects.filter(archived_at=None).count() == 1, "no draft is left"

    lifecycle.request_launch(study, ada, [])
    jobs.run_waiting_jobs()
    for n in range(20):
        person_choosing(Study.objects.get(pk=study.pk), n, "new")
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=ada)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    run_analysis(Study.objects.get(pk=study.pk), {"resamples": 99}, by=ada)
    path = str(tmp_path / "answers.csv")
    named = {"study": made["code"]}  # two drafts have this title
    _, listed, waited, verdicts, results, written, again = asked(
        live_server,
        token,
        [
            ("list_studies", {}),
            ("wait", named | {"until": "closed", "minutes": 0.1}),
            ("get_verdict", named | {"claim": "new beats old"}),
            ("get_results", named | {"most": 3}),
            ("export_file", named | {"name": "responses.csv", "path": path}),
            ("export_file", named | {"name": "responses.csv", "path": path}),
        ],
    )
    assert [one["state"] for one in listed if one["code"] == made["code"]] == ["closed"]
    assert waited["state"] == "closed" and [one["verdict"] for one in verdicts] == ["yes"]
    assert (results["judgements"], len(results["rows"])) == (100, 3) and "chosen_system" in results["rows"][0]
    assert written["bytes"] == (tmp_path / "answers.csv").stat().st_size and "exists already" in again
