"""People who visit a study by its link, and the ways in which they come to its end."""

import re
from contextlib import contextmanager
from html import unescape

from django.db import transaction
from django.db.models import F
from django.test import Client

from annotators.models import Assignment
from annotators.pages.record import full_page_state
from annotators.places import assign
from annotators.places.places import assignment_code
from annotators.recruitment.channels import REGISTRY
from studies.models import Batch, Study
from studies.services import lifecycle
from tests.builders import promised, recruitment
from tests.players import answered

Released = Assignment.Released
START, DECLINE = {"agree": "1", "start": "1"}, {"agree": "1", "decline": "1"}
HEADINGS = {
    "complete": "Thank you", "screened_out": "This study is not for you", "failed_checks": "The study ends here for you",
    "full": "No place was free", "withdrawn": "You have left the study", "closed": "This study has ended",
    "no_consent": "You did not agree to take part", "done": "You have already taken part",
}  # fmt: skip


def settings_of(channel, **more) -> dict:
    """Its settings as its form proposes them, with a code of its own for each way to end."""
    fields = channel.settings_form().fields if channel.settings_form else {}
    found = {name: field.initial for name, field in fields.items() if field.initial is not None}
    found = {name: value() if callable(value) else value for name, value in found.items()}
    return found | {name: f"{name.upper()}-7K" for name in fields if re.match("return_|code_", name)} | more


# Each channel as it is by default, and one of them with another setting that changes where its link leads.
DOORS = {slug: {} for slug in REGISTRY} | {"invitation, over days": {"days": 14}}


def door_of(study, name):
    channel = REGISTRY[name.partition(",")[0]]
    made = recruitment(study, channel.slug, settings=settings_of(channel, **DOORS[name]), currency="USD")
    return channel, promised(made, screened_out="0.30", full="0.10", withdrawn="share", fault="all")


def of_code(path: str) -> str:
    return re.sub(r"^/p/([^/]+)/", lambda found: f"/p/{assignment_code(found[1])}/", path)


class Person:
    """Somebody with a browser: what they see is kept, and every way back that they are shown."""

    def __init__(self, channel, door, number=1):
        address, _ = channel.rehearsal_entry(door, f"/e/{door.key}/", number)
        # A panel's own placeholders, filled in as its ids look.
        address = re.sub(r"\{\{%(\w+)%\}\}", lambda name: f"{name[1]}{number}".encode().hex()[-24:].zfill(24), address)
        self.client, self.channel, self.door, self.link = Client(), channel, door, address
        self.ways_back: set[tuple] = set()
        self.path = self.html = ""

    def seen(self, response):
        while response.status_code in (301, 302):
            self.path = response["Location"]
            response = self.client.get(self.path)
        assert response.status_code in (200, 404, 405, 409, 422), (self.path, response.status_code)
        self.html = unescape(response.content.decode()) if response["Content-Type"].startswith("text/html") else ""
        code = re.search(r'id="code">([^<]*)<', self.html)
        button = re.search(
            r'class="button first" href="(https:[^"]*)"|<form method="post" action="(https:[^"]*)"', self.html
        )
        if code or button:
            self.ways_back.add((code[1] if code else "", (button[1] or button[2]) if button else ""))
        return self

    def get(self, path):
        self.path = path
        return self.seen(self.client.get(path))

    def post(self, path, data):
        self.path = path
        return self.seen(self.client.post(path, data))

    @property
    def at(self) -> str:
        """The path, with the assignment's code in place of an address that shows no stored answers."""
        return of_code(self.path)

    @property
    def heading(self) -> str:
        return (re.search(r"<h1[^>]*>(.*?)</h1>", self.html) or ["", ""])[1]

    @property
    def words(self) -> str:
        return " ".join(re.sub(r"<[^>]+>", " ", self.html).split())

    def starts(self) -> Assignment:
        self.post(self.link, START)
        code = assignment_code(re.match(r"/p/([^/]+)/", self.path)[1])
        self.get(f"/p/{code}/")
        return self.row(code)

    @staticmethod
    def row(code) -> Assignment:
        return Assignment.objects.select_related("study", "recruitment").get(code=code)

    def answers(self, mine, pages=99):
        for _ in range(pages):
            mine = self.row(mine.code)
            if mine.submitted_at or full_page_state(mine).next_key is None:
                break
            answered(mine)
        return self.row(mine.code)


def given_away(mine):
    """Somebody else is given the place."""
    assign.release_assignment(mine.pk, Released.EXPIRED)
    Batch.objects.filter(pk=mine.batch_id).update(claimed=F("wanted"))


def ends_by_release(reason):
    def end(person):
        mine = person.answers(person.starts(), 1)
        assign.release_assignment(mine.pk, reason)
        return mine

    return end


def leaves(person):
    mine = person.answers(person.starts(), 2)
    person.post(f"/p/{mine.code}/withdraw/", {"leave": "1"})
    return mine


def finishes(person):
    return person.answers(person.starts())


def finishes_late(person):
    mine = person.answers(person.starts(), 2)
    given_away(mine)
    return person.answers(mine)


def finishes_and_leaves(person):
    mine = finishes(person)
    person.post(f"/p/{mine.code}/withdraw/", {"leave": "1"})
    return mine


def close(study):
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    assign.release_expired_places()


def is_closed_before_an_answer(person):
    mine = person.starts()
    close(mine.study)
    return mine


def finishes_after_the_closing(person):
    mine = person.answers(person.starts(), 2)
    close(mine.study)
    return person.answers(mine)


def finds_it_full(person):
    Batch.objects.update(claimed=F("wanted"))
    person.post(person.link, START)
    code = Assignment.objects.get(recruitment=person.door, batch=None).code
    person.get(f"/p/{code}/")
    return person.row(code)


def finds_it_full_and_then_closed(person):
    mine = finds_it_full(person)
    close(mine.study)
    return mine


# How each way to release ends; None: it is no end, the person may go on.
RELEASES = {
    Released.EXPIRED: (ends_by_release(Released.EXPIRED), None),
    Released.RETURNED: (ends_by_release(Released.RETURNED), None),
    Released.SCREENED_OUT: (ends_by_release(Released.SCREENED_OUT), "screened_out"),
    Released.FAILED_CHECKS: (ends_by_release(Released.FAILED_CHECKS), "failed_checks"),
    # The code that the person was shown stays.
    Released.FAULT: (ends_by_release(Released.FAULT), "failed_checks"),
    Released.FULL: (finds_it_full, "full"),
    Released.WITHDRAWN: (leaves, "withdrawn"),
}
ENDS = {f"released: {reason}": RELEASES[reason] for reason in Released} | {
    "finished": (finishes, "complete"),
    "finished late": (finishes_late, "complete"),
    "finished and left": (finishes_and_leaves, "complete"),
    "closed before an answer": (is_closed_before_an_answer, "closed"),
    "finished after the closing": (finishes_after_the_closing, "complete"),
    "full, and closed since": (finds_it_full_and_then_closed, "full"),
}


@contextmanager
def undone():
    """What one case does is not there for the next: the study is launched once for all."""
    point = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)
