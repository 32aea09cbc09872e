"""One person with a marked id, followed by every channel through every stage: the panel's id of them is found nowhere but where it is declared.

The places are searched whole: every column of every table, every file that is kept, the log, every export and every page of the site.
"""

import csv
import html
import io
import json
import logging
import zipfile
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pytest
from django.conf import settings as site
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from analysis.coding.codebook import EXPLANATIONS
from analysis.data import exports
from analysis.data.flat.selection import Selection
from analysis.models import ApiToken, CodingItem, CodingSample, CodingSeat
from analysis.report.archive import write_archive
from analysis.report.runs import run_analysis
from annotators import tasks
from annotators.models import (
    Annotator,
    Appeal,
    Assignment,
    Inquiry,
    PageVisit,
    PanelIdentity,
    PanelOrder,
    PanelSubmission,
    Payment,
    Recruitment,
    Response,
    Verdict,
)
from annotators.models.identity import ids_of, panel_id, panel_ids
from annotators.pages.record import standing_of
from annotators.pay import files, ledger
from annotators.places import assign
from annotators.places.exclude import exclude
from annotators.recruitment import sample
from annotators.recruitment.channels import OUTCOMES, REGISTRY
from annotators.recruitment.channels.invitation import token
from annotators.recruitment.panels import Message, Refused, Seen, news, sync
from annotators.recruitment.panels.orders import give
from annotators.recruitment.panels.reconcile import take_in
from annotators.recruitment.panels.secrets import HOOK, keep
from heval_site.runtime import logs
from studies.models import Job, Study
from studies.services import jobs
from tests.addresses import addresses, filled
from tests.annotators.test_tasks import closed_long_ago
from tests.builders import promised, spa_study, user
from tests.players import answered
from tests.traces import Hunt, columns, opened, spellings

from .pretend import Pretend

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

# Where the id of a person may be, and why. Anything else fails.
DECLARED_PAGES = {
    "admin/annotators/recruitment/<int:pk>/pay/file.csv": "somebody pays by it, while something is due",
    "admin/annotators/recruitment/<int:pk>/pay/": "lines for the panel's own form, while something is due",
    "admin/annotators/recruitment/<int:pk>/panel/": "lines for the panel's own form, and the names of submissions that are called like their people",
    "admin/annotators/recruitment/<int:pk>/panel/submission/<int:submission>/": "the name of a submission that is called like its person",
    "admin/annotators/recruitment/<path:object_id>/change/": "the links to send: those of invitations are made anew for the page, and are stored nowhere",
    "admin/annotators/recruitment/<int:pk>/panel/assignment/<int:assignment>/": "the same, found by the work",
    "admin/annotators/inquiry/study/<int:pk>/collecting/": "the links to send, as above",
    "p/<str:code>/done/": "the person's own way back to the panel",
}
# Of the database nothing is declared: ``PanelIdentity.ciphertext`` holds the id, and only who has the key can find it there.
DECLARED_COLUMNS: dict[str, str] = {}


@dataclass
class Case:
    """A link of one channel. ``query``: the parameters of the n-th person's address, and the panel's id of them."""

    slug: str
    query: Callable[[Recruitment, int], tuple[dict[str, str], str]]
    settings: dict = field(default_factory=dict)


def strange(n: int) -> str:
    """Everything that some encoding writes otherwise."""
    return f"Zoë&O'%41+\"=/\\Kq #{n}\u4e2d~marK"


def of_generic(door, n):
    return {"who": strange(n), "sess": f"session-{n}", "task": "task-1"}, strange(n)


def of_generic_by_person(door, n):
    """A panel that has one number for all of it."""
    return {"who": strange(n)}, strange(n)


def of_connect(door, n):
    return {
        "participantId": f"MARKED_pErson-{n}Xq",
        "assignmentId": f"ASSIGN000{n}",
        "projectId": "PROJECT1",
    }, f"MARKED_pErson-{n}Xq"


def of_prolific(door, n):
    person = f"5fac0ffee{n:02}badcafe0dd1e5a"[:24]
    return {"PROLIFIC_PID": person.upper(), "STUDY_ID": "a" * 24, "SESSION_ID": f"{n:024x}".replace("0", "b")}, person


def of_external(door, n):
    ids = {"assignmentId": f"3ASSIGNMENT{n}", "hitId": "3HIT1", "workerId": f"AMARKED{n}WORKERXQ"}
    return ids | {"turkSubmitTo": "https://www.mturk.com"}, ids["workerId"]


def of_another_site(door, n):
    ids = {"assignmentId": f"asg:{n}", "hitId": "task.1", "workerId": f"mark.ed:{n}@w-Xq"}
    return ids | {"turkSubmitTo": SITE}, ids["workerId"]


def of_sona(door, n):
    return {"survey_code": str(7391840 + n)}, str(7391840 + n)


def of_invitation(door, n):
    return {"i": token(door.key, n)}, token(door.key, n)


def of_open_link(door, n):
    """Nobody is known: what a panel adds to the address by itself is kept nowhere either."""
    return {"PROLIFIC_PID": strange(n)}, strange(n)


SITE = "https://tasks.example.org"
BACK = {
    f"return_{outcome}": f"https://panel.example.org/{outcome}?p={{person}}&s={{session}}&c={{code}}"
    for outcome in OUTCOMES
}
FILE = {"file_person": "id"}
GENERIC = {"person_parameter": "who", "task_parameter": "task", **FILE, **BACK}
CASES = {
    "generic": Case("generic", of_generic, GENERIC | {"session_parameter": "sess", "file_session": "work"}),
    "generic, by person": Case("generic", of_generic_by_person, GENERIC | {"session_parameter": "who"}),
    "connect": Case("connect", of_connect, {"return_complete": "CODE-1", **FILE}),
    "prolific": Case("prolific", of_prolific, {f"code_{outcome}": f"CODE{n}XYZ" for n, outcome in enumerate(OUTCOMES)}),
    "mturk": Case("mturk", of_external, {"submits": ["withdrawn", "screened_out"]}),
    "mturk_sandbox": Case("mturk_sandbox", of_external, {"variant": "link"}),
    "external_question": Case("external_question", of_another_site, {"site": SITE}),
    "sona": Case("sona", of_sona, {"site": "yourschool.sona-systems.com", "experiment_id": "123"}),
    "invitation": Case("invitation", of_invitation, {"people": 20}),
    "open_link": Case("open_link", of_open_link),
}  # fmt: skip


def test_every_channel_has_a_person_to_follow():
    assert REGISTRY and {case.slug for case in CASES.values()} == set(REGISTRY), "say in CASES how its people come"


PEOPLE = (
    "looks", "declines", "twice", "fails", "finishes", "is paid and leaves", "leaves at once", "leaves part-way", "is screened out", "works on",
    "never came", "holds the only place", "waits", "comes in vain",
)  # fmt: skip


class Echo(Pretend):
    """A panel that repeats in its words whom an order was about."""

    def do(self, order):
        self.given.append(order)
        fault = self.faults.pop(0) if self.faults else ""
        if fault:
            raise Refused(
                f"Nothing for “{order.values.get('person') or order.values.get('people')}”: {dict(order.values)}"
            )
        return super().do(order)

    def submission(self, name):
        return self.by_name.get(name)


class Follower:
    """Some people of one link, by the stage that each comes to, and what is searched for them."""

    def __init__(self, case: Case, monkeypatch, handler):
        self.case, self.channel = case, REGISTRY[case.slug]
        self.owner = user("owner")
        self.study = spa_study(
            self.owner, target_n=9, prompts=40, reward="2.00", erase_after_days=30, exclusion_group="tales"
        )
        self.small = spa_study(self.owner, target_n=1, title="small", reward="2.00", erase_after_days=30)
        self.door, self.full = (self._link(study) for study in (self.study, self.small))
        self.panel, self.handler = Echo(), handler
        self.panel.by_name = {}
        if self.channel.secrets:
            monkeypatch.setattr(
                type(self.channel), "service", lambda channel, recruitment, secrets: self.panel if secrets else None
            )
            for door in (self.door, self.full):
                keep(door, dict.fromkeys(self.channel.secrets, "f" * 32))

    def _link(self, study):
        pool = f"pool of {self.case.slug}"
        made = Recruitment.objects.create(study=study, channel=self.case.slug, pool=pool, settings=self.case.settings)
        return promised(made, screened_out="0.30", full="0.10", withdrawn="share", failed_checks="all")

    def address(self, who: str, door=None) -> str:
        door = door or self.door
        query, _ = self.case.query(door, PEOPLE.index(who) + 1)
        return f"/e/{door.key}/?{urlencode(query | {'utm_term': self.person(who, door)})}"

    def person(self, who: str, door=None) -> str:
        return self.case.query(door or self.door, PEOPLE.index(who) + 1)[1]

    def arrival(self, who: str, door=None):
        return self.channel.arrive(door or self.door, dict(parse_qsl(urlsplit(self.address(who, door)).query)))

    def client(self, who: str, door=None) -> Client:
        referrer = f"https://panel.example.org{self.address(who, door)}".encode("ascii", "replace").decode()
        return Client(headers={"referer": referrer, "user-agent": "Browser 1.0"})

    def posts(self, who: str, door=None, **fields):
        return self.client(who, door).post(self.address(who, door), {"agree": "1", **fields})

    def comes(self, who: str, door=None) -> Assignment:
        answer = self.posts(who, door)
        assert answer.status_code == 302 and answer.url.startswith("/p/"), (
            who,
            answer.status_code,
            answer.content[-2000:],
        )
        return Assignment.objects.select_related("study", "recruitment", "annotator").get(code=answer.url.split("/")[2])

    def works(self, assignment: Assignment, pages: int | None = None) -> Assignment:
        while (key := standing_of(fresh(assignment)).next_key) and pages != 0:
            assert answered(fresh(assignment), key, comment="fine").sent is None
            pages = pages - 1 if pages else pages
        return fresh(assignment)

    # What is looked for

    @cached_property
    def hunt(self) -> Hunt:
        """For everybody, also who comes later: what was clean once need not be read again."""
        needles = {}
        for who in PEOPLE:
            for door in (self.door, self.full):
                needles[f"{who}, {door.study.title}"] = self.person(who, door)
                needles[f"{who} for {door.study.title}, as the pool knows them"] = self.arrival(who, door).person
        return Hunt({what: text for what, text in needles.items() if text})

    def is_clean(self, stage: str) -> None:
        hunt = self.hunt
        found = {place: what for place, what in hunt.database().items() if place not in DECLARED_COLUMNS}
        found |= hunt.files([Path(site.MEDIA_ROOT), Path(site.HEVAL_HOME) / "uploads"])
        if lines := hunt.within(self.handler.stream.getvalue().encode()):
            found["the log"] = lines
        assert not found, (self.case.slug, stage, found)

    def exports_are_clean(self, stage: str) -> None:
        hunt, made = self.hunt, 0
        for study in (self.study, self.small):
            for name in exports.TABLES:
                for form in exports.BLOCKS:
                    for options in ({}, {"raw": True}) if form == "csv" else ({},):
                        whole = b"".join(exports.stream(name, form, Selection(study, withdrawn=True), **options))
                        assert not hunt.within(whole), (stage, name, form)
                        made += 1
            archive = io.BytesIO()
            write_archive(study, archive)
            assert not hunt.within(opened(archive.getvalue())), (stage, "archive")
        assert made == 2 * 3 * len(exports.TABLES) and exports.TABLES

    def pages_are_clean(self, stage: str, done: Assignment, live: Assignment) -> Counter:
        """Every address of the site, as an administrator opens it; gives where the id was seen."""
        hunt, seen = self.hunt, Counter()
        client = Client()
        client.force_login(user("administrator", is_superuser=True))
        world = self._world(done, live)
        routes = sorted(set(addresses(get_resolver())))
        assert len(routes) > 100
        for route in routes:
            cache.clear()
            response = client.get(filled(route, world).removesuffix("?who=new"))
            body = b"".join(response) if response.streaming else response.content
            if hunt.within(opened(body)) or hunt.within(str(dict(response.items())).encode()):
                seen[route] += 1
        undeclared = set(seen) - set(DECLARED_PAGES)
        assert not undeclared, (self.case.slug, stage, undeclared)
        return seen

    def _world(self, done, live) -> dict:
        study, door, owner = self.study, self.door, self.owner
        if not hasattr(self, "world"):
            exclude([done], "technical", by=owner)
            run = run_analysis(study, {"resamples": 99}, by=owner)
            job = jobs.submit("analyse", study=study, by=owner)
            seat = CodingSample.objects.create(
                study=study,
                number=1,
                kind="explanations",
                rule="union",
                codebook=EXPLANATIONS.as_json(),
                per_arm=1,
                origin="live",
            )
            CodingSeat.objects.create(sample=seat, number=1, user=owner)
            written = Response.objects.exclude(text="").filter(assignment=done).first()
            CodingItem.objects.create(sample=seat, number=1, assignment=done, response=written)
            order = give(door, "stop", "stop-1", task="T")
            inquiry = Inquiry.objects.create(assignment=live, kind="question", text="?")
            shown = PanelSubmission.objects.filter(assignment=done).first() or PanelSubmission.objects.create(
                recruitment=door,
                external_id="S",
                annotator=done.annotator,
                assignment=done,
                state="rejected",
                source="file",
            )
            verdict = Verdict.objects.create(assignment=done, kind="reject", category="c", message="m", by=owner)
            appeal = Appeal.objects.create(
                verdict=verdict, rejected_by=owner, text="Why?", due_at=timezone.now() + timedelta(days=9)
            )
            key = ApiToken.objects.create(user=owner, name="t", hash="0" * 64)
            self.world = {
                "study": study, "door": door, "done": done, "live": live, "run": run, "job": job, "token": key, "sample": seat, "order": order,
                "inquiry": inquiry, "submission": shown, "appeal": appeal,
            }  # fmt: skip
        return self.world


def fresh(assignment: Assignment) -> Assignment:
    return Assignment.objects.select_related("study", "recruitment", "annotator").get(pk=assignment.pk)


@pytest.fixture
def follower(request, monkeypatch, settings, tmp_path):
    """Of the case that the test names. Every line of the log is caught as the site writes it."""
    settings.EXTERNAL_QUESTION_SITES = (SITE,)
    settings.SITE_URL = "https://heval.example.org"
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logs.Json())
    root = logging.getLogger()
    monkeypatch.setattr(root, "level", logging.INFO)
    root.addHandler(handler)
    cache.clear()
    yield Follower(CASES[request.param], monkeypatch, handler)
    root.removeHandler(handler)


@pytest.mark.parametrize("follower", CASES, indirect=True)
def test_the_id_of_a_person_is_found_nowhere_at_any_stage(follower, monkeypatch):
    they = follower
    is_known = they.channel.identifies_people and "person" in they.arrival("looks").ids
    # Looking, refusing, a broken address and an error of ours.
    assert they.client("looks").get(they.address("looks")).status_code == 200
    assert they.client("declines").post(they.address("declines"), {"decline": "1"}).status_code == 200
    assert (
        they.client("twice").get(f"{they.address('twice')}&{they.address('twice').partition('?')[2]}").status_code
        == 200
    )
    assert they.client("twice").get(f"/e/nobody/?{they.address('twice').partition('?')[2]}").status_code == 404
    with monkeypatch.context() as broken:
        broken.setattr(assign, "claim_batch", lambda *_, **__: 1 / 0)
        they.client("fails").raise_request_exception = False
        client = they.client("fails")
        client.raise_request_exception = False
        assert client.post(they.address("fails"), {"agree": "1"}).status_code == 500
    logging.getLogger("django.server").info('"%s" %s %s', f"GET {they.address('looks')} HTTP/1.1", 200, 5)
    assert "ZeroDivisionError" in they.handler.stream.getvalue()
    assert not PanelIdentity.objects.exists() and not Assignment.objects.exists()
    they.is_clean("looked")

    # Working, and coming again.
    done, paid, left = they.comes("finishes"), they.comes("is paid and leaves"), they.comes("leaves at once")
    share, out, live = they.comes("leaves part-way"), they.comes("is screened out"), they.comes("works on")
    people = [done, paid, left, share, out, live]
    assert [panel_id(one.annotator) is not None for one in people] == [is_known] * 6
    they.works(share, pages=2), they.works(live, pages=1)
    PageVisit.objects.filter(assignment=live, recorded_at=None).update(draft={"s4.q1": ["typed"]})
    if they.channel.identifies_people:
        assert they.comes("works on").pk == live.pk
    they.is_clean("at work")

    # The panel shows them, and tells of them by itself.
    done, paid = they.works(done), they.works(paid)
    assert done.submitted_at and paid.submitted_at
    assign.release(out.pk, "screened_out")
    shown = []
    names = {
        "finishes": done,
        "is paid and leaves": paid,
        "leaves part-way": share,
        "is screened out": out,
        "works on": live,
    }
    if is_known and they.channel.shows_submissions:
        for who, one in names.items():
            arrival = they.arrival(who)
            state = "submitted" if one.submitted_at else "working"
            shown.append(
                Seen(
                    arrival.ids.get("task", "T"),
                    arrival.ids.get("session", arrival.person),
                    arrival.person,
                    state,
                    code=arrival.person,
                )
            )
        take_in(they.door, shown, "file")
        stranger = they.arrival("never came")
        take_in(
            they.door, [Seen("T", stranger.ids.get("session", stranger.person), stranger.person, "submitted")], "file"
        )
        assert PanelSubmission.objects.filter(assignment__in=[done, paid, share, out, live]).count() == 5
        they.is_clean("shown by the panel")
    if they.channel.sends_messages:
        keep(they.door, {HOOK: "h" * 32})
        person = they.person("finishes")
        message = Message(
            "event-1", they.arrival("finishes").ids["session"], person, "AWAITING REVIEW", "submission.status.change"
        )
        monkeypatch.setattr(type(they.channel), "read_message", lambda *_: message)
        assert (
            Client()
            .post(f"/e/{they.door.key}/hook/", {"participant_id": person}, content_type="application/json")
            .status_code
            == 200
        )
        they.is_clean("told by the panel")
    if is_known:
        sample.declare(they.study, [("Age", "number", False), ("Nick", "category", False)], they.owner)
        text = io.StringIO()
        lines = [["id", "Age", "Nick"], *([they.arrival(who).person, "30", they.arrival(who).person] for who in names)]
        csv.writer(text).writerows(lines)
        with pytest.raises(ValueError, match="id of the person"):
            sample.read(they.door, text.getvalue(), "id", they.owner)
        sample.declare(they.study, [("Age", "number", False)], they.owner)
        assert sample.read(they.door, text.getvalue(), "id", they.owner).values == 5
        they.is_clean("described by a file")

    # Orders, which name them at the panel and nowhere else.
    ledger.settle(they.door, they.owner)
    if they.channel.secrets:
        they.panel.faults = ["refused"] * 2
        for _ in range(2):
            job = sync.ask_soon(they.door, they.owner, approves=True)
            jobs.run(job.pk)
            Job.objects.update(request_token=None)
            job.refresh_from_db()
            assert job.state == "done", job.error
        ordered = [order for order in they.panel.given if order.operation == "approve"]
        assert {order.values["person"] for order in ordered} == {
            they.arrival("finishes").ids["person"],
            they.arrival("is paid and leaves").ids["person"],
        }
        assert {order.values["submission"] for order in ordered} <= {they.arrival(who).ids["session"] for who in names}
        assert PanelOrder.objects.exclude(words="").exists()
        they.is_clean("ordered")
        news.look_soon(they.door)
        for job in Job.objects.filter(state="waiting"):
            jobs.run(job.pk)
        they.is_clean("looked at again")
    if is_known:
        theirs = files.payment_file(they.door) + "".join(text.text for text in files.bulk_of(they.door))
        assert panel_id(out.annotator) == they.arrival("is screened out").ids["person"]
        assert _in_csv(theirs, they.arrival("is screened out").ids["person"]), "somebody has to be able to pay them"
    they.exports_are_clean("submitted")

    # Turned away.
    busy = they.comes("holds the only place", they.full)
    waits = they.posts("waits", they.full)
    assert "No place right now" in waits.content.decode()
    key = assign.pool_key(they.full.pool, they.arrival("waits", they.full).person)
    assert not PanelIdentity.objects.filter(annotator__external_id=key).exists()
    they.is_clean("waits")
    they.works(busy)
    full = they.posts("comes in vain", they.full)
    assert full.status_code == 200 and "The study is full" in full.content.decode()
    they.is_clean("turned away")

    # The last page.
    end = Client().get(f"/p/{done.code}/done/")
    assert end.status_code == 200
    if is_known:
        assert ids_of(done)["person"] == they.arrival("finishes").ids["person"]
    seen = they.pages_are_clean("submitted", done, live)
    if they.case.slug == "generic":
        assert seen["p/<str:code>/done/"] == 0  # that address is of somebody who still works
        assert "panel.example.org/complete?p=" in end.content.decode()

    # Leaving: at once, part-way with pay owed, and after the end.
    kept = "panel's id of you"
    for one, stays in ((left, False), (share, True)):
        page = Client().get(f"/p/{one.code}/withdraw/").content.decode()
        assert ("encrypted, until you are paid" in page) is (stays and is_known)
        answer = Client().post(f"/p/{one.code}/withdraw/", {"leave": "1"})
        assert answer.status_code in (200, 302)
        assert (panel_id(one.annotator) is not None) is (stays and is_known)
        last = Client().get(f"/p/{one.code}/done/").content.decode()
        assert kept in last and ("stays stored, encrypted" in last) is (stays and is_known)
        if they.case.slug == "generic":
            assert answer.status_code == (302 if stays else 200)
            assert "panel.example.org/withdrawn?p=" in (last if stays else answer.content.decode())
    they.posts("leaves at once")
    if they.channel.identifies_people:
        assert panel_id(left.annotator) is None, "coming again brings nothing back"
    they.is_clean("withdrawn")

    # Paid, and then leaving.
    ledger.settle(they.door, they.owner)
    due = Payment.objects.filter(assignment__recruitment=they.door, state="due")
    assert due.exists()
    ledger.mark_paid(they.door, list(due.values_list("pk", flat=True)), they.owner)
    if they.channel.credits_who_finish or they.channel.pays_by:
        rows = PanelSubmission.objects.filter(assignment=paid)
        rows.update(state="approved")
        ledger.settle(they.door, they.owner)
    assert panel_id(share.annotator) is None
    Client().post(f"/p/{paid.code}/withdraw/", {"leave": "1"})
    assert panel_id(paid.annotator) is None, "nothing is owed any more"
    they.is_clean("paid")
    they.exports_are_clean("withdrawn and paid")

    # Purged.
    for study in (they.study, they.small):
        for door in study.recruitments.all():
            ledger.settle(door, they.owner)
            rows = Payment.objects.filter(assignment__recruitment=door, state="due")
            ledger.mark_paid(door, list(rows.values_list("pk", flat=True)), they.owner)
        closed_long_ago(study, 40)
    Payment.objects.filter(state="ordered").update(state="paid", ended_at=timezone.now())
    tasks.erase_panel_ids()
    assert not PanelIdentity.objects.exclude(ciphertext=None).exists()
    assert not Assignment.objects.exclude(external_ids={}).exists()
    if shown:
        # The panel goes on showing them: nothing is written down anew, and nothing breaks.
        rows = PanelSubmission.objects.count()
        take_in(they.door, shown, "file")
        tasks.erase_panel_ids()
        assert PanelSubmission.objects.count() == rows and not PanelIdentity.objects.exclude(ciphertext=None).exists()
    they.is_clean("purged")
    they.exports_are_clean("purged")
    assert Annotator.objects.exists() and panel_ids(Annotator.objects.values_list("pk", flat=True)) == {}


def _in_csv(text: str, person: str) -> bool:
    return any(person in cell.removeprefix("'") for row in csv.reader(io.StringIO(text)) for cell in row)


def test_the_search_finds_what_is_there(tmp_path):
    """Every spelling of a text is found in the database and in an archive, and the text itself is not taken for another."""
    study, needle = Study.objects.create(title="x"), strange(1)
    written = {
        "as it is": needle, "percent": quote(needle, safe=""), "HTML": html.escape(needle), "JSON": json.dumps({"a": needle}), "hex": needle.encode().hex(),
        "other case": needle.swapcase(), **{f"base64, from {n}": b64encode(b"x" * n + needle.encode() + b"yz").decode() for n in range(3)},
    }  # fmt: skip
    assert len(spellings(needle)) > 20 and len(list(columns())) > 300
    for how, text in written.items():
        Study.objects.filter(pk=study.pk).update(purpose=f"before {text} after")
        assert f"it ({how})" in Hunt({"it": needle}).database()["studies_study.purpose"], how
        assert not Hunt({"it": strange(2)}).database(), how
    with zipfile.ZipFile(tmp_path / "kept.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("inside.json", json.dumps({"a": needle}))
    assert list(Hunt({"it": needle}).files([tmp_path])) == [str(tmp_path / "kept.zip")]
