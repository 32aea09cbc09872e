"""A study is played before anybody is paid: what is expected, what is found where something is wrong, and that nothing stays or leaves."""

import json
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client

from annotators.models import Annotator, Assignment, PanelOrder, Recruitment
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.http_client import store_or_delete_secrets, stored_secret_dates
from heval_site.management.rehearsal_lines import report_lines
from heval_site.rehearsal import network_guard, rehearsal
from heval_site.rehearsal.browser import Browser, HttpReply, Page, UnexpectedPage
from heval_site.rehearsal.context import ROLES, choose_roles
from heval_site.rehearsal.rehearsal import Rehearsal, entry_url
from heval_site.rehearsal.results import build_report
from studies.models import AuditEvent, Batch, Job, StudyMember
from studies.services import jobs
from tests import study_command
from tests.admin_pages import logged_in
from tests.builders import choice_study, promised, spa_draft, spa_study, user
from tests.messages.checklist.qualification import asks_for_test_of_draft

pytestmark = pytest.mark.django_db
SITE = "https://eval.example.org"
CODES = {
    "code_complete": "A2K7PQWX",
    "code_screened_out": "B3T4RWYZ",
    "code_full": "D5XNUVCD",
    "code_no_consent": "E6Y7GHJK",
}
GENERIC = {
    "person_parameter": "who",
    "session_parameter": "session",
    "return_complete": "https://panel.example.org/done?cc=C1&s={session}",
    "return_screened_out": "https://panel.example.org/out?s={session}",
    "return_full": "FULL-9",
    "return_no_consent": "NO-4",
}


def in_process(number):
    client = Client()

    def ask(method, path, body):
        sent = {"data": body, "content_type": "application/x-www-form-urlencoded"} if body is not None else {}
        answer = client.generic(method, path, **sent, HTTP_HOST="eval.example.org", secure=True)
        return HttpReply(
            answer.status_code, answer.content.decode(), answer.get("Location", ""), answer.cookies.output()
        )

    return ask


@pytest.fixture
def site(settings):
    settings.SITE_URL = SITE
    settings.ALLOWED_HOSTS = ["eval.example.org"]
    return settings


def played(site, channel, settings, people=11, study=None, **columns) -> dict:
    """In this process and database, without a socket to the site."""
    study = study or spa_study(user("owner"), m=1, both=False, prompts=14, target_n=12)
    recruitment = promised(Recruitment.objects.create(study=study, channel=channel, settings=settings, **columns))
    panel = REGISTRY[channel].stand_in(recruitment, entry_url(recruitment))
    store_or_delete_secrets(
        recruitment, dict.fromkeys(REGISTRY[channel].secrets, "rehearsal") | dict(panel.secrets), by=None
    )
    with panel:
        site.PROLIFIC_API = panel.url
        rehearsal = Rehearsal(recruitment, panel, in_process, 1, lambda *_: None)
        rehearsal.play(people)
    return build_report(rehearsal)


def wrong(report, role) -> str:
    return " ".join(next(row["faults"] for row in report["roles"] if row["key"] == role))


@pytest.mark.slow
def test_prolific_without_a_fault(site):
    report = played(site, "prolific", CODES, currency="GBP")
    assert report["is_ok"], report
    assert {row["key"] for row in report["roles"]} == {role.key for role in ROLES}
    assert {row["key"]: row["at_panel"] for row in report["roles"]}["rejected"] == "rejected"
    assert (
        "the reply to publishing was lost: the task still exists only once at the panel" in report["proofs"]
        and len(report["proofs"]) == 6
    )
    assert (report["money"]["paid"], report["money"]["rehearsed"]) == (3, "8.00")
    # Those who gave the task back and took it again are no riddle to anybody.
    assert not any("returned at the panel" in row["match_status"] for row in report["roles"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "channel, wanted",
    [
        ("open_link", {}),
        ("external_question", {"site": "https://tasks.example.org", "submits": ["screened_out"]}),
        ("external_question", {"site": "https://tasks.example.org", "variant": "link"}),
        ("invitation", {"people": 20, "days": 0, "revoked": ""}),
        ("sona", {"site": "x.sona-systems.com", "experiment_id": "12", "credit_token": "abc"}),
        (
            "connect",
            {
                "return_complete": "https://connect.cloudresearch.com/x?c=1",
                "return_in_part": "https://connect.cloudresearch.com/x?c=2",
            },
        ),
    ],
)
def test_channels_without_a_service(site, channel, wanted):
    site.EXTERNAL_QUESTION_SITES = ("https://tasks.example.org",)
    report = played(site, channel, wanted)
    assert report["is_ok"], report
    assert not report["proofs"] and sum(row["people"] for row in report["roles"]) == 11


def test_a_robot_that_must_wait_and_cannot_leaves_as_a_person_would(site, monkeypatch):
    monkeypatch.setattr("annotators.places.assign.can_places_become_free_or_be_added", lambda study: True)
    report = played(site, "generic", GENERIC)
    (row,) = [row for row in report["roles"] if row["key"] == "full"]
    assert row["is_ok"] and row["in_heval"] == "full", row


@pytest.mark.slow
def test_a_code_that_the_panel_does_not_know_is_found(site, monkeypatch):
    from annotators.recruitment.channels.prolific import service

    told = service.completion_codes
    monkeypatch.setattr(service, "completion_codes", lambda settings: told(settings | {"code_complete": "Z9Z8Z7Z6"}))
    report = played(site, "prolific", CODES, people=3, currency="GBP")
    assert not report["is_ok"]
    assert "Prolific does not know the code A2K7PQWX: the study there was published with Z9Z8Z7Z6" in wrong(
        report, "finishes"
    )
    assert "At the panel they are “working”" in wrong(report, "finishes")


def test_who_is_screened_out_must_not_go_back_as_who_completed(site):
    report = played(site, "generic", GENERIC | {"return_screened_out": GENERIC["return_complete"]})
    assert not report["is_ok"]
    assert "return exactly like those who completed" in wrong(report, "screened_out")
    assert [row["key"] for row in report["roles"] if not row["is_ok"]] == ["screened_out"], report


def test_pages_that_lose_people_are_found(site, monkeypatch):
    """An end that shows no way back, and a study that forgets who came before."""
    from annotators.places import assign
    from annotators.recruitment.channels import WayBack
    from annotators.recruitment.channels.generic import Generic

    monkeypatch.setattr(Generic, "way_back", lambda *_: WayBack())
    report = played(site, "generic", GENERIC, people=3)
    assert "Their last page shows no way back" in wrong(report, "finishes") and not report["is_ok"]
    monkeypatch.undo()
    monkeypatch.setattr(assign, "release_expired_places", lambda: 0)
    report = played(site, "generic", GENERIC, people=5)
    assert "In heval they are “at work”" in wrong(report, "leaves")


def test_without_pay_nothing_is_published(site):
    recruitment = played(site, "prolific", CODES, people=3, currency="GBP", reward=Decimal(0))
    assert recruitment["faults"] == [
        "No pay is set for the link or the study, so nothing can be published at a panel that pays. Set the pay first."
    ]


def test_a_study_with_few_items_is_rehearsed_by_as_many_as_it_has_places_for(site):
    """Two batches of six prompts each, and nothing left to draw."""
    study = choice_study(m=6, prompts=12, target_n=2, by=user("owner"))
    report = played(site, "generic", GENERIC, people=11, study=study)
    assert report["is_ok"], report
    assert sum(row["people"] for row in report["roles"] if row["key"] not in ("never_starts", "full", "declines")) == 2
    assert "are left out (of those who" in " ".join(report["notes"]), report["notes"]


def test_everybody_else_finishes():
    keys = [role.key for role in choose_roles(20, {"screened_out"})]
    assert len(keys) == 20 and keys.count("finishes") == 11 and "screened_out" not in keys
    assert [role.key for role in choose_roles(3, set())] == [role.key for role in ROLES[:3]]


def test_a_browser_that_is_led_elsewhere_or_given_a_cookie_says_so():
    def answering(**how):
        return Browser(SITE, lambda *_: HttpReply(**{"status": 200} | how))

    with pytest.raises(UnexpectedPage, match="leads to https://elsewhere"):
        answering().get("https://elsewhere.example.org/e/")
    with pytest.raises(UnexpectedPage, match="sets a cookie"):
        answering(cookies="a=1").get(f"{SITE}/e/")
    with pytest.raises(UnexpectedPage, match="answers with 500"):
        answering(status=500).get(f"{SITE}/e/")
    away = Page(
        '<h1>End</h1><p><span id="code">C1</span></p><a class="button first" href="https://p.example/?c=1">Go</a>', SITE
    )
    assert (away.heading, away.way_back.code, away.way_back.url) == ("End", "C1", "https://p.example/?c=1")


# The process


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Where homes of rehearsals are made, to see that they go."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.slow
def test_a_draft_is_played_in_a_process_of_its_own_and_nothing_of_it_stays(folders):
    study = spa_draft(owner=user("owner"), m=1, both=False)
    asks_for_test_of_draft(study)  # robots need no pass
    recruitment = Recruitment.objects.create(study=study, channel="prolific", settings=CODES, currency="GBP", wanted=40)
    store_or_delete_secrets(recruitment, {"token": "canary-of-the-true-token"}, by=None)
    kept, events = stored_secret_dates(recruitment), AuditEvent.objects.count()
    code, printed = study_command.run("rehearse", study.code, "--people", "11", "--json")
    report = json.loads(printed)
    assert code == 0 and report["is_ok"] and report["money"]["rewards"] == "100.00" and "canary" not in printed
    assert "Everything was as expected." in list(report_lines(report))
    assert "The study is not launched, so people could not take part. Launch it first." in report["before"]
    study.refresh_from_db()
    assert study.state == "draft" and AuditEvent.objects.count() == events and stored_secret_dates(recruitment) == kept
    for model in (Annotator, Assignment, PanelOrder, Batch):
        assert not model.objects.exists(), model
    assert not list(folders.iterdir())


@pytest.mark.slow
def test_the_button_starts_a_job_and_the_page_shows_what_was_wrong(folders, monkeypatch):
    study = spa_study(user("owner"), m=1, both=False)
    same = GENERIC | {"return_screened_out": GENERIC["return_complete"]}
    recruitment = Recruitment.objects.create(study=study, channel="generic", settings=same)
    client, address = logged_in(user("owner")), f"/admin/annotators/recruitment/{recruitment.pk}/rehearsal/"
    assert address in client.get(address.replace("rehearsal", "panel")).content.decode()
    assert address in client.get(address.replace("rehearsal", "change")).content.decode()
    assert client.post(address, {"people": "2"}).status_code == 400 and not Job.objects.exists()
    for _ in range(2):  # pressed twice it is one
        assert client.post(address, {"people": "10"}).status_code == 302
    job = Job.objects.get(kind="rehearsal")
    assert "It will start after shorter jobs" in client.get(address).content.decode()
    jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    assert job.state == "done" and not job.result["is_ok"], job.error
    assert "return exactly like those who completed" in wrong(job.result, "screened_out")
    assert Assignment.objects.count() == 0 and not list(folders.iterdir())
    told = "\n".join(report_lines(job.result))
    assert "NOT   1 answer so that they are screened out" in told and told.endswith("Something was not as expected.")
    page = client.get(address).content.decode()
    assert (
        "Something was not as expected" in page
        and "the panel cannot tell them apart" in page
        and "Rehearse again" in page
    )
    # The command says no by its exit code, whatever it prints.
    monkeypatch.setattr(rehearsal, "run_rehearsal", lambda *_: job.result)
    assert study_command.run("rehearse", study.code, "--link", recruitment.key)[0] == 10


def test_only_editors_rehearse_and_they_read_what_failed():
    study = spa_study(user("owner"))
    recruitment = Recruitment.objects.create(study=study, channel="open_link")
    StudyMember.objects.create(study=study, user=user("looker"), role=StudyMember.Role.VIEWER)
    address = f"/admin/annotators/recruitment/{recruitment.pk}/rehearsal/"
    for name, status in (("looker", 403), ("stranger", 404)):
        for ask in (logged_in(user(name)).get, logged_in(user(name)).post):
            assert ask(address, {"people": "5"}).status_code == status
    assert not Job.objects.exists()
    client = logged_in(user("owner"))
    client.post(address, {"people": "5"})
    Job.objects.update(arguments={"recruitment": recruitment.pk, "people": 1})
    jobs.claim_and_run_job(Job.objects.get().pk)
    page = client.get(address).content.decode()
    assert "The last rehearsal failed" in page and "3 to 200 people, not 1" in page


@pytest.mark.slow
def test_a_rehearsal_that_takes_too_long_or_is_cancelled_ends_and_leaves_nothing(folders, monkeypatch):
    started = []

    class Noted(subprocess.Popen):
        def __init__(self, *arguments, **how):
            started.append(self)
            super().__init__(*arguments, **how)

    monkeypatch.setattr(rehearsal.subprocess, "Popen", Noted)
    recruitment = Recruitment.objects.create(study=spa_study(user("owner")), channel="open_link")
    with pytest.raises(rehearsal.RehearsalRefused, match="was stopped after 0 seconds"):
        rehearsal.run_rehearsal(recruitment, timeout_seconds=0)

    def cancel(*_):
        raise jobs.Cancelled

    with pytest.raises(jobs.Cancelled):
        rehearsal.run_rehearsal(recruitment, progress=cancel)
    assert [child.returncode for child in started] == [-signal.SIGKILL] * 2 and not list(folders.iterdir())


def test_the_process_ends_with_its_parent_and_takes_its_folder_along(folders):
    home = folders / "heval-rehearsal-orphan"
    home.mkdir()
    (home / "plan.json").write_text("{}")
    child = subprocess.Popen(
        [sys.executable, "-m", "heval_site.rehearsal.child_process", str(home)],
        cwd=home,
        env=rehearsal.child_environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    child.stdin.close()
    assert child.wait(30) == 3 and not home.exists()


def test_the_copy_knows_nothing_of_the_sites_secrets(monkeypatch, settings):
    for name in ("DATABASE_URL", "SECRET_KEY", "PSEUDONYM_KEY", "REDIS_URL", "AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"canary-{name}")
    settings.SITE_URL = "http://127.0.0.1:8000"
    given = rehearsal.child_environment(Path("/nowhere"))
    assert (
        "canary" not in str(given)
        and given["SITE_URL"] == rehearsal.PLACEHOLDER_SITE_URL
        and given["HEVAL_HOME"] == "/nowhere/home"
    )


@pytest.mark.parametrize(
    "event, arguments",
    [
        ("socket.connect", (None, ("192.0.2.1", 443))),
        ("socket.connect", (None, ("2001:db8::1", 443, 0, 0))),
        ("socket.connect", (None, "/run/postgres.sock")),
        ("socket.getaddrinfo", ("api.prolific.com", 443, 0, 0, 0)),
        ("socket.sendto", (None, ("198.51.100.7", 53))),
        ("socket.bind", (None, ("0.0.0.0", 0))),
    ],
)
def test_nothing_but_this_machine_is_reached(event, arguments, monkeypatch):
    monkeypatch.setattr(network_guard, "refused_hosts", [])
    with pytest.raises(network_guard.ConnectionBlocked):
        network_guard._audit_hook(event, arguments)
    assert network_guard.refused_hosts
    network_guard._audit_hook("socket.connect", (None, ("127.0.0.1", 8000)))
    network_guard._audit_hook("socket.getaddrinfo", ("localhost", 8000, 0, 0, 0))
    assert len(network_guard.refused_hosts) == 1


def test_the_guard_holds_in_a_process():
    words = (
        "import socket; from heval_site.rehearsal import network_guard; network_guard.block_outgoing_connections()\n"
        "try: socket.create_connection(('192.0.2.1', 80), timeout=5)\n"
        "except network_guard.ConnectionBlocked as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, cwd=Path(rehearsal.__file__).parents[2]
    )
    assert run.stdout == "A rehearsal may contact only this machine: 192.0.2.1 is refused.\n", run.stderr


def test_what_cannot_be_rehearsed_is_reported_before_anything_starts(monkeypatch):
    def of(study, channel="open_link"):
        return Recruitment.objects.create(study=study, channel=channel)

    monkeypatch.setattr(rehearsal, "_run_child", lambda *_: pytest.fail("nothing may start"))
    launched = spa_study(user("owner"))
    for made, people, words in (
        (of(launched), 2, "3 to 200 people, not 2"),
        (
            of(spa_draft(owner=user("owner"), target_n=None)),
            12,
            "cannot be launched as it is. Correct this first: .*target",
        ),
        (of(launched, "gone"), 12, "not installed"),
    ):
        with pytest.raises(rehearsal.RehearsalRefused, match=words):
            rehearsal.run_rehearsal(made, people)
    code, said = study_command.refusal("rehearse", launched.code)
    assert code == 2 and "The study has 2 links. Name the one to rehearse: " in said
