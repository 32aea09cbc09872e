"""Some people of one link, followed through every stage, and the search for the panel's ids of them."""

from collections import Counter
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from django.conf import settings as site
from django.core.cache import cache
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from analysis.coding.codebook import EXPLANATIONS_CODEBOOK
from analysis.data import exports
from analysis.data.flat_rows import Selection
from analysis.models import ApiToken, CodingItem, CodingSample, CodingSeat
from analysis.report.archive import archive_blocks
from analysis.report.runs import run_analysis
from annotators.models import (
    Appeal,
    Assignment,
    Inquiry,
    PanelSubmission,
    Recruitment,
    Response,
    Verdict,
)
from annotators.pages.record import full_page_state
from annotators.places.exclusions import exclude_assignments
from annotators.places.places import assignment_code
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import RequestRefused
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import get_or_create_order
from studies.services import jobs
from tests.addresses import addresses, filled
from tests.annotators.recruitment.people_of_channels import Case
from tests.annotators.recruitment.pretend import Pretend
from tests.builders import promised, spa_study, user
from tests.players import answered
from tests.traces import Hunt, opened

# Where the id of a person may be, and why. Anything else fails.
DECLARED_PAGES = {
    "admin/annotators/recruitment/<int:pk>/pay/file.csv": "somebody pays by it, while something is due",
    "api/v1/studies/<uuid:code>/links/<slug:key>/payments.csv": "the same file for a program whose token may read ids of people; the log says who took it",
    "admin/annotators/recruitment/<int:pk>/pay/": "lines for the panel's own form, while something is due",
    "admin/annotators/recruitment/<int:pk>/panel/": "lines for the panel's own form, and the names of submissions that are called like their people",
    "admin/annotators/recruitment/<int:pk>/panel/submission/<int:submission>/": "the name of a submission that is called like its person",
    "admin/annotators/recruitment/<path:object_id>/change/": "the links to send: those of invitations are made anew for the page, and are stored nowhere",
    "admin/annotators/recruitment/<int:pk>/panel/assignment/<int:assignment>/": "the same, found by the work",
    "admin/studies/study/<int:pk>/collecting/": "the links to send, as above",
    "p/<str:code>/done/": "the person's own way back to the panel",
}
# Of the database nothing is declared: ``PanelIdentity.ciphertext`` holds the id, and only who has the key can find it there.
DECLARED_COLUMNS: dict[str, str] = {}
PEOPLE = (
    "looks", "declines", "twice", "fails", "finishes", "is paid and leaves", "leaves at once", "leaves part-way", "is screened out", "works on",
    "never came", "holds the only place", "waits", "comes in vain",
)  # fmt: skip


class Echo(Pretend):
    """A panel that repeats in its words whom an order was about."""

    def carry_out(self, order):
        self.given.append(order)
        fault = self.faults.pop(0) if self.faults else ""
        if fault:
            raise RequestRefused(
                f"Nothing for “{order.values.get('person') or order.values.get('people')}”: {dict(order.values)}"
            )
        return super().carry_out(order)

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
                store_or_delete_secrets(door, dict.fromkeys(self.channel.secrets, "f" * 32), by=None)

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
        return self.channel.read_arrival(door or self.door, dict(parse_qsl(urlsplit(self.address(who, door)).query)))

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
        return fresh(Assignment.objects.get(code=assignment_code(answer.url.split("/")[2])))

    def works(self, assignment: Assignment, pages: int | None = None) -> Assignment:
        while (key := full_page_state(fresh(assignment)).next_key) and pages != 0:
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
            for name, table in exports.TABLES.items():
                for form in table.formats:
                    if form == "parquet" or table.find_problem(study):
                        continue
                    for options in ({}, {"raw": True}) if form == "csv" else ({},):
                        rows = Selection(study, withdrawn=table.is_streamed)
                        blocks = table.maker(form)(name, rows, tally=exports.ExportDigest(), **options)
                        whole = opened(b"".join(blocks)) if form == "zip" else b"".join(blocks)
                        assert not hunt.within(whole), (stage, name, form)
                        made += 1
            archive = b"".join(archive_blocks(study))
            assert not hunt.within(opened(archive)), (stage, "archive")
        assert made >= 2 * 4 * sum(table.is_streamed for table in exports.TABLES.values()) > 0

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
            exclude_assignments([done], "technical", by=owner)
            run = run_analysis(study, {"resamples": 99}, by=owner)
            job = jobs.submit("analyse", study=study, by=owner)
            seat = CodingSample.objects.create(
                study=study,
                number=1,
                kind="explanations",
                rule="union",
                codebook=EXPLANATIONS_CODEBOOK.as_json(),
                per_arm=1,
                origin="live",
            )
            CodingSeat.objects.create(sample=seat, number=1, user=owner)
            written = Response.objects.exclude(text="").filter(assignment=done).first()
            CodingItem.objects.create(sample=seat, number=1, assignment=done, response=written)
            order = get_or_create_order(door, "stop", "stop-1", by=None, task="T")
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
