"""Read-only links: who makes them, what a reader without an account sees, and what an anonymous page never says."""

import io
import json
import re
import zipfile
import zlib
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from analysis.models import ReportLink
from analysis.report import link_views
from analysis.report.links import MAX_DAYS, create_link, find_link, submit_analyses_after_withdrawals
from analysis.report.runs import run_analysis
from annotators.models import Assignment
from annotators.participation.simulate import CrowdSettings, record_simulated_answers
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from studies.models import AuditEvent, Job, Prompt, Question, ResearcherFacts, Study, StudyMember
from studies.protocols.base import fields
from studies.services import jobs
from studies.services.lifecycle import ActionRefused, FieldsRefused
from tests.analysis.api.rest import api_of
from tests.analysis.report.reported import QUICK, closed
from tests.builders import add_rating, draft_study, launched, spa_study, user

pytestmark = pytest.mark.django_db

TITLE, PUBLIC_TITLE = "Do our writers beat the Graz corpus", "Reading for the Language Laboratory"
CONSENT = "You agree that the Graz Language Laboratory keeps your answers. Ask Maren Kessler."
IDENTIFYING = (
    TITLE,
    PUBLIC_TITLE,
    "maren",
    "kessler",
    "tobias",
    "Graz Language Laboratory",
    "graz-language",
    "eval.graz-host.example",
    "EK 2026-7",
    "Dean Ortner",
)
IMAGE = f"{'a' * 64}.webp"


@pytest.fixture(autouse=True)
def _site(settings, tmp_path):
    cache.clear()
    settings.SITE_URL, settings.MEDIA_ROOT = "https://eval.graz-host.example", tmp_path
    (tmp_path / "aa").mkdir()
    (tmp_path / "aa" / IMAGE).write_bytes(b"the image")


@pytest.fixture
def owner():
    one = user("maren.k", email="maren.k@graz-language.example", first_name="Maren", last_name="Kessler")
    ResearcherFacts.objects.create(user=one, institution="Graz Language Laboratory", responsible="Dean Ortner, Vienna")
    return one


def rated_study(owner, monkeypatch, systems=("alpha", "beta"), **columns) -> Study:
    """A closed study of ratings with comments, whose texts, answers and facts say who made it."""
    monkeypatch.setattr(fields, "COMMENTS", ("I know this one from the Graz Language Laboratory, says Tobias.",))
    columns = {"title": TITLE, "public_title": PUBLIC_TITLE, "approval_number": "EK 2026-7"} | columns
    facts = {"institution": "Graz Language Laboratory", "contact": "Maren Kessler, office@graz-language.example"}
    draft = draft_study(owner=owner, systems=systems, prompts=8, target_n=10, consent=CONSENT, **facts, **columns)
    StudyMember.objects.create(study=draft, user=user("tobias"), role="editor")
    Prompt.objects.filter(study=draft).update(text="Write a letter to Maren Kessler.", media=IMAGE)
    section = add_rating(draft, position=1, m=4)
    Question.objects.create(
        section=section,
        position=2,
        key="why",
        text="Why? Tobias wants to know.",
        scale={"kind": "text"},
        required=False,
    )
    draft.contrasts.create(x=draft.systems.get(name=systems[1]), y=draft.systems.get(name=systems[0]), expected=">")
    study = launched(draft)
    strengths = {name: float(number) for number, name in enumerate(systems)}
    record_simulated_answers(study, 10, strengths, crowd=CrowdSettings(commenting=1.0))
    study.assignments.update(origin="live")  # robots count as people here
    return closed(study)


@pytest.fixture
def study(owner, monkeypatch):
    return rated_study(owner, monkeypatch)


@pytest.fixture
def run(study, owner):
    return run_analysis(study, QUICK, by=owner)


def address(token: str, name: str = "") -> str:
    return f"/r/{token}/{name}"


def pdf_text(content: bytes) -> bytes:
    """The bytes of a PDF with its streams unpacked."""
    streams = re.findall(rb"stream\r?\n(.*?)endstream", content, re.DOTALL)
    return content + b"".join(zlib.decompressobj().decompress(one) for one in streams if one[:1] == b"x")


def everything(client, token: str) -> dict[str, bytes]:
    """The page and each file that it names, by name; and those in the zip."""
    page = client.get(address(token))
    found = {"": page.content}
    for name in sorted(set(re.findall(r'(?:href|src)="([^"#/][^"]*)"', page.content.decode()))):
        answer = client.get(address(token, name))
        assert answer.status_code == 200 and not answer.cookies, name
        found[name] = answer.content
    with zipfile.ZipFile(io.BytesIO(found.pop("report.zip"))) as archive:
        found |= {f"zip/{name}": archive.read(name) for name in archive.namelist()}
    return {name: pdf_text(content) if name.endswith("pdf") else content for name, content in found.items()}


def words_in(found: dict[str, bytes]) -> set[tuple[str, str]]:
    """Identifying words in the bytes, by file, also as Markdown, LaTeX and JSON escape them."""
    plain = {
        name: re.sub(rb"\\([^\w])", rb"\1", content).decode(errors="replace").lower() for name, content in found.items()
    }
    return {(name, word) for name, text in plain.items() for word in IDENTIFYING if word.lower() in text}


@pytest.mark.parametrize("systems", [("alpha", "beta"), pytest.param(("alpha", "kessler_7"), marks=pytest.mark.slow)])
def test_an_anonymous_link_says_nowhere_who_made_the_study(owner, monkeypatch, client, systems):
    study = rated_study(owner, monkeypatch, systems)
    run = run_analysis(study, QUICK, by=owner)
    named, anonymous = create_link(run, owner)[1], create_link(run, owner, is_anonymous=True)[1]
    shown = everything(client, anonymous)
    assert not words_in(shown)
    assert f"Study {study.code}: analysis 1" in shown[""].decode() and b"[removed]" in shown[""]
    assert b"I know this one" not in shown[""] and b"What annotators read" not in shown[""]
    # The same words are found where nothing is left out, so the search would find them.
    others = everything(client, named)
    assert {word for name, word in words_in(others) if name == ""} >= {
        TITLE,
        "maren",
        "kessler",
        "Graz Language Laboratory",
    }
    has_figures = any(name.startswith("figures/") for name in shown)
    assert has_figures is (systems[1] == "beta") and any(name.startswith("figures/") for name in others)
    assert (b"left out; the tables have the numbers" in shown[""]) is not has_figures


def test_parts_that_may_say_who_you_are_are_ticked_one_by_one(study, run, owner, client):
    printed = {
        "comments": "I know this one",
        "purpose": "You read a few short stories",
        "consent": "You agree that the",
    }
    for part, words in printed.items():
        page = client.get(address(create_link(run, owner, is_anonymous=True, parts=[part])[1])).content.decode()
        assert [name for name, text in printed.items() if text in page] == [part] and words in page
        assert "Graz Language Laboratory" not in page and "Maren" not in page
    page = client.get(address(create_link(run, owner, is_anonymous=True, parts=["contact"])[1])).content.decode()
    assert "Maren Kessler, office@graz-language.example" in page and TITLE not in page


def test_the_link_shows_the_report_and_its_zip_has_the_same_files(study, run, owner, client):
    token = create_link(run, owner)[1]
    found = everything(client, token)
    page = found[""].decode()
    assert TITLE in page and "I know this one from" in page and run.result["answer"]["methods"] in page
    assert json.loads(found["result.json"]) == run.result
    figure = run.figures.first()
    assert found[f"figures/{figure.name}.svg"].decode() == figure.svg
    assert found[f"media/{IMAGE}"] == b"the image"
    files = {name for name in found if name and not name.startswith(("zip/", "/"))}
    assert files <= {name.removeprefix("zip/") for name in found} and "zip/report.html" in found
    stored = found["zip/report.html"].decode()
    assert (
        stored.count("<link ") == 1
        and 'rel="stylesheet" href="data:text/css;base64,' in stored
        and token not in stored
        and token not in page
    )
    # Nothing leads to a page that needs an account, or away from the site.
    for text in (page, stored):
        assert {
            link for link in re.findall(r'(?:href|src|action)="((?!data:)[^"#][^"]*)"', text) if link not in files
        } <= {
            "report.zip",
            *(f"/static/{name}" for name in (*link_views.STYLES, "icon.svg")),
        }


def test_texts_that_may_not_be_passed_on_are_left_out(owner, monkeypatch, client):
    study = rated_study(owner, monkeypatch, stimuli_source="The corpus at https://example.org/corpus.")
    run = run_analysis(study, QUICK, by=owner)
    found = everything(client, create_link(run, owner)[1])
    page = found[""].decode()
    assert "This text may not be passed on" in page and "Write a letter" not in page and "The tale number" not in page
    assert f"media/{IMAGE}" not in found


def test_tokens_that_show_nothing_get_the_same_answer(study, run, owner, client):
    (expired, old), (revoked, ended), (_, works) = (create_link(run, owner) for _ in range(3))
    ReportLink.objects.filter(pk=expired.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    client.force_login(owner)
    assert client.post(reverse("report_link_revoke", args=[study.pk, revoked.pk])).status_code == 302
    dead = [old, ended, "heval_report_" + "x" * 43, "nothing"]
    answers = [client.get(address(token, name)) for token in dead for name in ("", "result.json", "report.zip")]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers}) == 1
    answers += [client.get(address(works)), client.get(address(works, "tables/none.csv"))]
    assert [answer.status_code for answer in answers[-2:]] == [200, 404]
    for answer in answers:
        assert answer.headers["Cache-Control"] == "private, no-store" and not answer.cookies
        assert answer.headers["Referrer-Policy"] == "no-referrer" and answer.headers["X-Robots-Tag"] == "noindex"
        assert "Cookie" not in answer.headers.get("Vary", "")
    assert client.post(address(works)).status_code == 405
    with pytest.raises(ActionRefused, match="revoked already"):
        revoked.refresh_from_db()
        link_views.revoke_link(revoked, owner)


def test_requests_are_limited(run, owner, client, monkeypatch):
    monkeypatch.setattr(link_views, "MAX_PER_MINUTE", 2)
    monkeypatch.setattr(link_views, "MAX_WRONG_PER_MINUTE", 2)
    for token in (create_link(run, owner)[1], "nothing"):
        codes = [client.get(address(token)).status_code for _ in range(4)]
        assert codes.count(429) >= 1 and codes[0] != 429, "two of the four are in one minute with a third"
        assert client.get(address(token)).headers["Retry-After"] == "60"


def test_the_token_is_shown_once_and_stored_as_a_hash(study, run, owner, client):
    client.force_login(owner)
    sent = {"analysis": 1, "days": 30, "is_anonymous": "on", "parts": ["consent"]}
    made = client.post(reverse("report_link_make", args=[study.pk]), sent)
    (token,) = re.findall(r"<code>https://eval\.graz-host\.example/r/(\S+?)/</code>", made.content.decode())
    assert made.status_code == 200 and "no-store" in made.headers["Cache-Control"]
    link = find_link(token)
    assert link and (link.is_anonymous, link.parts, link.by) == (True, ["consent"], owner)
    assert abs(link.expires_at - timezone.now() - timedelta(days=30)) < timedelta(minutes=1)
    share = client.get(reverse("share", args=[study.pk])).content.decode()
    assert "Link" in share and token not in share and "Revoke" in share
    with connection.cursor() as cursor:
        for table in (ReportLink, AuditEvent):
            cursor.execute(f"SELECT * FROM {table._meta.db_table}")
            assert token not in repr(cursor.fetchall())
    event = AuditEvent.objects.get(verb="make report link")
    assert event.by == owner and event.data["number"] == 1 and event.data["is_anonymous"]


@pytest.mark.parametrize("days", ["0", str(MAX_DAYS + 1), "", "many"])
def test_a_link_expires_within_a_year(study, run, owner, client, days):
    client.force_login(owner)
    refused = client.post(reverse("report_link_make", args=[study.pk]), {"analysis": 1, "days": days})
    assert refused.status_code == 400 and "No link was made" in refused.content.decode()
    with pytest.raises(FieldsRefused):
        create_link(run, owner, days=int(days) if days.isdigit() else 0)
    assert not ReportLink.objects.exists()


def test_only_owners_make_list_and_revoke_links(study, run, owner):
    link = create_link(run, owner)[0]
    path, revoke = f"studies/{study.code}/report-links/", f"studies/{study.code}/report-links/{link.pk}/revoke/"
    editor = api_of(user("tobias"))
    browser = Client()
    browser.force_login(user("tobias"))
    assert "Make a link" not in browser.get(reverse("share", args=[study.pk])).content.decode()
    assert browser.post(reverse("report_link_make", args=[study.pk]), {"analysis": 1, "days": 3}).status_code == 403
    for method, at in (("GET", path), ("POST", path), ("POST", revoke)):
        assert editor.send(method, at, None if method == "GET" else {"analysis": 1}).status_code == 403
    api = api_of(owner)
    made = api.send("POST", path, {"analysis": 1, "is_anonymous": True})
    assert made.status_code == 201 and made.json()["parts"] == [] and find_link(made.json()["url"].split("/")[-2])
    assert abs(timezone.now() + timedelta(days=90) - ReportLink.objects.first().expires_at) < timedelta(minutes=1)
    listed = api.send("GET", path).json()["results"]
    assert [one["number"] for one in listed] == sorted(ReportLink.objects.values_list("pk", flat=True))
    assert all("url" not in one and one["analysis"] == 1 for one in listed)
    assert api.send("POST", revoke).json()["revoked_at"] and api.send("POST", revoke).status_code == 409
    for body in ({"analysis": 9}, {"analysis": 1, "days": 400}, {"analysis": 1, "parts": ["names"]}, {}):
        refused = api.send("POST", path, body)
        assert refused.status_code == 400 and refused.json()["errors"], body


def test_no_link_while_outcomes_are_hidden(owner, client):
    study = spa_study(owner, target_n=2)
    run = run_analysis(study, QUICK, by=owner)
    with pytest.raises(ActionRefused, match="Close the study"):
        create_link(run, owner)
    client.force_login(owner)
    page = client.get(reverse("share", args=[study.pk])).content.decode()
    assert "Outcomes are hidden until" in page and "Make a link" not in page
    assert client.post(reverse("report_link_make", args=[study.pk]), {"analysis": 1, "days": 3}).status_code == 400
    # Outcomes of robots are never hidden.
    robots = run_analysis(study, QUICK | {"origins": ["robot"]}, by=owner)
    token = create_link(robots, owner)[1]
    assert client.get(address(token)).status_code == 200


def test_a_withdrawal_replaces_the_analysis_by_one_without_the_person(study, run, owner, client):
    token = create_link(run, owner)[1]
    assert submit_analyses_after_withdrawals() == 0
    withdraw_annotator_and_erase_texts(Assignment.objects.filter(study=study).first())
    page = client.get(address(token)).content.decode()
    assert "1 assignment was withdrawn since this analysis" in page and "replaced analysis" not in page
    assert submit_analyses_after_withdrawals() == submit_analyses_after_withdrawals() == 1
    job = Job.objects.get(kind="analyse", study=study)
    assert job.by is None and job.arguments["parameters"] == {k: v for k, v in run.parameters.items() if k != "job"}
    run_analysis(study, QUICK | {"level": 0.9}, by=owner)  # other settings replace nothing
    jobs.run_waiting_jobs()
    page = client.get(address(token)).content.decode()
    newest = study.analyses.first()
    assert newest.parameters["job"] == str(job.code) and "withdrawn since this analysis" not in page
    assert f"with n = {newest.result['n']['kept']} replaced analysis 1 of" in page
    assert (newest.result["n"]["kept"], run.result["n"]["kept"]) == (9, 10) and "with n = 10." in page
    assert client.get(address(token, "result.json")).json() == newest.result
    # A later analysis of the same people replaces nothing, and no second job is asked for.
    run_analysis(study, QUICK, by=owner)
    assert client.get(address(token, "result.json")).json()["data"] == newest.result["data"]
    assert f"analysis {newest.number}" in client.get(address(token)).content.decode()
    assert submit_analyses_after_withdrawals() == 1 and Job.objects.filter(kind="analyse").count() == 1


def test_no_analysis_is_asked_for_where_no_link_works(study, run, owner):
    for name, value in (("revoked_at", timezone.now()), ("expires_at", timezone.now() - timedelta(days=1))):
        link = create_link(run, owner)[0]
        ReportLink.objects.filter(pk=link.pk).update(**{name: value})
    withdraw_annotator_and_erase_texts(Assignment.objects.filter(study=study).first())
    assert submit_analyses_after_withdrawals() == 0 and not Job.objects.filter(kind="analyse").exists()
