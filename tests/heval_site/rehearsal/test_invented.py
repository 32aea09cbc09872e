"""A draft's report with invented answers: from a copy that leaves nothing, marked wherever it is shown."""

import json
import re

import pytest
from django.db.models.functions import Now

from analysis.models import AnalysisRun
from analysis.report.runs import MISSING_TEXTS, request_invented_report, with_missing_texts
from annotators.models import Annotator, Assignment
from heval_site.rehearsal import rehearsal
from studies.design.checklist import find_design_problems
from studies.models import AuditEvent, Batch, Job, Study, StudyMember
from studies.services import jobs
from tests.admin_pages import forms_of, logged_in, press
from tests.browsing import look_at, shot
from tests.builders import add_choice, draft_study, launched, user

pytestmark = pytest.mark.django_db


def choice_draft(owner, **columns) -> Study:
    study = draft_study(owner=owner, target_n=8, prompts=24, systems=("alpha", "beta"), instructions="", **columns)
    add_choice(study, m=3)
    return study


def address(study) -> str:
    return f"/admin/studies/study/{study.pk}/new/invented/"


def made(study, by, **options) -> Job:
    job = request_invented_report(study, by, **{"are_systems_equal": False} | options)
    jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    assert job.state == "done", job.error
    return job


@pytest.mark.slow
def test_a_draft_without_texts_or_link_gets_its_report_and_keeps_no_answer():
    owner = user("owner")
    study = choice_draft(owner, public_title="", contact="", consent="", minutes=None)
    client, events = logged_in(owner), AuditEvent.objects.count()
    for _ in range(2):  # pressed twice it is one
        assert client.post(address(study), {"truth": "difference"}).status_code == 302
    job = Job.objects.get(kind="invented_report")
    assert "Making a report with invented answers" in client.get(address(study)).content.decode()
    jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    assert job.state == "done" and job.result["submitted"] == 8, job.error
    assert job.result["robots"]["strengths"] == {"alpha": 0.0, "beta": 0.5}
    assert client.get(f"/admin/studies/job/{job.code}.json").json()["url"] == address(study)
    for model in (Annotator, Assignment, Batch, AnalysisRun):
        assert not model.objects.exists(), model
    study.refresh_from_db()
    assert (study.state, study.contact, study.public_title) == (
        "draft",
        "",
        "",
    ) and AuditEvent.objects.count() == events
    page = client.get(address(study)).content.decode()
    assert "Robots answered with a stated difference. Nothing here is a result." in page
    assert "<bdi>alpha</bdi> 0, <bdi>beta</bdi> 0.5" in page
    assert "CSV" not in page and "PDF" not in page and "/analyses/" not in page.partition("<main")[2]
    figures = re.findall(r'src="(\?figure=[^"]+)"', page)
    assert figures and all(
        "Invented answers" in client.get(address(study) + figure).content.decode() for figure in figures
    )
    assert "The draft was changed" not in page
    assert f'<a href="/admin/studies/study/{study.pk}/change/">Back to the study</a>' in page
    Study.objects.filter(pk=study.pk).update(guide={})
    step = client.get(address(study)).content.decode().partition("These answers are invented")[2]
    assert f'href="/admin/studies/study/{study.pk}/launch/">Continue</a>' in step
    Study.objects.filter(pk=study.pk).update(version=study.version + 1)
    assert "The draft was changed" in client.get(address(study)).content.decode()
    # Equal systems, and only the newest report is kept.
    study.refresh_from_db()
    again = made(study, owner, are_systems_equal=True)
    assert set(again.result["robots"]["strengths"].values()) == {0.0}
    assert "Robots answered at random" in client.get(address(study)).content.decode()
    job.refresh_from_db()
    assert job.result is None and len(json.dumps(again.result)) < 2**20


def test_the_page_try_it_starts_the_report_with_one_press():
    owner = user("owner")
    study = choice_draft(owner)
    client = logged_in(owner)
    page = client.get(f"/admin/studies/study/{study.pk}/new/try/")
    form = next(one for one in forms_of(page) if one.attrs.get("action") == address(study))
    started = press(client, page.request["PATH_INFO"], form, ("last", "1"))
    job = Job.objects.get(kind="invented_report")
    assert started.url == f"/admin/studies/job/{job.code}/" and not job.arguments["are_systems_equal"]
    # While the draft is as it was, its report is shown and not made again.
    Job.objects.filter(pk=job.pk).update(state="done", ended_at=Now(), result={"robots": {}})
    assert press(client, page.request["PATH_INFO"], form, ("last", "1")).url == address(study)
    assert Job.objects.filter(kind="invented_report").count() == 1
    Study.objects.filter(pk=study.pk).update(version=study.version + 1)
    assert "/job/" in press(client, page.request["PATH_INFO"], form, ("last", "1")).url


def test_what_is_missing_in_the_design_is_listed_with_links():
    owner = user("owner")
    study = choice_draft(owner, contact="")
    study.sections.update(m=30)
    page = logged_in(owner).post(address(study), {"truth": "difference"})
    assert page.status_code == 422 and not Job.objects.exists()
    shown = page.content.decode()
    assert "Complete this first" in shown and "Add an address that they can write to" not in shown
    assert re.search(r'<li><a href="/[^"]+">[^<]*24 prompts|<li><a href="/[^"]+">[^<]*items', shown), shown
    assert "Show me the report" in logged_in(owner).get(address(study)).content.decode()


def test_every_text_that_the_copy_gets_is_one_that_blocks_a_launch():
    study = choice_draft(user("owner"), **dict.fromkeys(MISSING_TEXTS, "") | {"minutes": None})
    missing = {problem.field for problem in find_design_problems(study)} - {
        problem.field for problem in find_design_problems(with_missing_texts(study))
    }
    assert missing == set(MISSING_TEXTS)
    study.refresh_from_db()
    assert study.contact == ""


def test_places_left_to_fill_in_block_the_launch_and_no_invented_report():
    study = choice_draft(user("owner"), guide={}, consent="You agree with [… the institution].")
    assert "consent" in {problem.field for problem in find_design_problems(study) if problem.is_blocking}
    assert not [problem for problem in find_design_problems(with_missing_texts(study)) if problem.is_blocking]


def test_a_copy_that_fails_says_what_was_asked_for(monkeypatch):
    study = choice_draft(user("owner"))
    monkeypatch.setattr(rehearsal, "TIMEOUT_SECONDS", 0)
    with pytest.raises(
        rehearsal.RehearsalRefused, match="^The report with invented answers was stopped after 0 seconds"
    ):
        rehearsal.run_invented_report(study, are_systems_equal=False)


def test_only_editors_of_a_draft_ask_for_it():
    owner = user("owner")
    study = choice_draft(owner)
    StudyMember.objects.create(study=study, user=user("looker"), role=StudyMember.Role.VIEWER)
    for name, status in (("looker", 403), ("stranger", 404)):
        for ask in (logged_in(user(name)).get, logged_in(user(name)).post):
            assert ask(address(study)).status_code == status
    client = logged_in(owner)
    assert address(study) in client.get(f"/admin/studies/study/{study.pk}/change/").content.decode()
    assert client.post(address(study), {"truth": "everything"}).status_code == 400
    launched(study, owner)
    page = client.get(address(study))
    assert page.status_code == 302 and page["Location"].endswith(f"/{study.pk}/change/")
    said = logged_in(owner).get(address(study), follow=True).content.decode()
    assert "was of the draft. <a href=" in said and f"/{study.pk}/analyses/" in said
    assert not Job.objects.filter(kind="invented_report").exists()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_the_page_can_be_used_on_a_phone_and_is_marked_on_paper(live_server, browser, client):
    owner = user("owner")
    study = choice_draft(owner)
    client.force_login(owner)
    context = browser.new_context()
    context.add_cookies([{"name": "heval", "value": client.cookies["heval"].value, "url": live_server.url}])
    page, wrong = context.new_page(), []
    for name in ("start", "report"):
        if name == "report":
            made(study, owner)
        page.goto(live_server.url + address(study))
        shot(page, f"invented-{name}")
        look_at(page, name, wrong)
    assert not wrong, "\n".join(wrong)
    page.emulate_media(media="print")
    mark = "getComputedStyle(document.querySelector('main'), '::after')"
    assert page.evaluate(f"[{mark}.content, {mark}.position]") == ['"Invented answers"', "fixed"]
