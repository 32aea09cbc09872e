"""Who opens a link with somebody's id is not yet that person: what each channel shows to whom, at each stage of the work."""

import random
import re
from html import unescape
from urllib.parse import urlencode

import pytest
from django.test import Client

from annotators.models import Appeal, Assignment, PageVisit, Response, Verdict
from annotators.pages.record import full_page_state
from annotators.places import assign
from annotators.places.barrings import bar_annotator
from annotators.places.places import assignment_code, new_limited_address
from annotators.recruitment.channels import REGISTRY
from studies.models import Batch
from studies.protocols.base.fields import Robot
from tests.annotators.views.looking import DRAFT, WORDS, Look
from tests.annotators.views.visitors import DOORS, START, Person, Released, door_of, undone
from tests.builders import add_rating, add_survey, draft_study, humanlike_draft, launched, panel, spa_study, user
from tests.players import answered, claimed, open_page

pytestmark = pytest.mark.django_db
# How a link leads back: to everything, to what is not stored yet, or to nobody.
ALL, LIMITED, NOBODY = "all", "limited", "nobody"
LINKS = {
    "open_link": NOBODY,
    "invitation": ALL,
    "invitation, over days": ALL,
    "prolific": ALL,
    "mturk": ALL,
    "mturk_sandbox": ALL,
    "external_question": ALL,
    "generic": LIMITED,
    "generic, with a secret": LIMITED,
    "connect": LIMITED,
    "sona": LIMITED,
}
PLACES = DOORS | {"generic, with a secret": {"key_parameter": "k", "key_value": "a secret of the panel"}}


def begins(person):
    """Nobody has come yet."""


def takes_a_place(person):
    return person.starts()


def works_up_to(person, mine, key, draft=None):
    """Store the pages before this one, and save words on it that are not sent."""
    while (following := full_page_state(person.row(mine.code)).next_key) not in (key, None):
        answered(mine, following, comment=WORDS)
    if key:
        open_page(person.row(mine.code), key)
        PageVisit.objects.filter(assignment=mine, key=key).update(draft=draft)
    return person.row(mine.code)


def works(person):
    return works_up_to(person, person.starts(), "s2.p2", {"s9": [DRAFT]})


def saves_a_text(person):
    return works_up_to(person, works(person), "s3", {"s3.q1": [DRAFT]})


def finishes(person):
    return works_up_to(person, saves_a_text(person), None)


def is_rejected_and_barred(person):
    mine, owner = finishes(person), user("owner of all", is_superuser=True)
    Verdict.objects.create(assignment=mine, kind="reject", category="c", message=WORDS, by=owner)
    bar_annotator(mine.study, mine.annotator, "Copies.", owner)
    return mine


def withdraws(person):
    mine = finishes(person)
    Client().post(f"/p/{mine.code}/withdraw/", {"leave": "1"})
    return person.row(mine.code)


def ends_early(person):
    mine = works(person)
    assign.release_assignment(mine.pk, Released.SCREENED_OUT)
    return person.row(mine.code)


STAGES = {
    "before consent": begins,
    "place taken": takes_a_place,
    "mid-work": works,
    "text saved": saves_a_text,
    "finished": finishes,
    "rejected and barred": is_rejected_and_barred,
    "withdrawn": withdraws,
    "ended early": ends_early,
}
WHO = ("personal address", "panel link again", "the id of another person")
# By how the link leads back, and by stage: whether answers are seen, whether one can leave, and whose address is shown.
OWN = {
    "before consent": (False, False, "none"),
    "place taken": (False, True, "own"),
    "mid-work": (True, True, "own"),
    "text saved": (True, True, "own"),
    "finished": (True, True, "own"),
    "rejected and barred": (True, True, "own"),
    "withdrawn": (False, False, "own"),
    "ended early": (False, True, "own"),
}
SEEN = {
    (kind, who, stage): cell
    for kind in (ALL, LIMITED, NOBODY)
    for who in WHO
    for stage, cell in OWN.items()
    if kind == ALL or who == "personal address"
}
for again in WHO[1:]:
    # A first visit is the same everywhere: the place is the visitor's own, and they can leave it.
    SEEN |= {(kind, again, "before consent"): (False, True, "own") for kind in (ALL, LIMITED, NOBODY)}
    SEEN |= {(LIMITED, again, stage): (False, False, "limited") for stage in OWN if stage != "before consent"}
    # An open link knows nobody: each visitor begins anew.
    SEEN |= {(NOBODY, again, stage): (False, True, "another's") for stage in OWN if stage != "before consent"}


@pytest.fixture
def study():
    draft = draft_study(prompts=12, target_n=6, consent="I take part.", withdrawal_blanks_ratings=True)
    text = {"key": "why", "text": "What do you expect?", "scale": {"kind": "text"}}
    add_survey(draft, position=1, questions=[text])
    add_rating(draft, position=2, m=2)
    add_survey(draft, position=3, questions=[text | {"key": "comment"}])
    return launched(draft)


def link_of(name, person) -> str:
    if name == "generic, with a secret":
        return (
            f"{person.link}&{urlencode({'k': PLACES[name]['key_value']})}" if "k=" not in person.link else person.link
        )
    return person.link


def test_every_channel_says_how_its_link_leads_back():
    assert set(LINKS) == set(PLACES) and {name.partition(",")[0] for name in LINKS} == set(REGISTRY)
    assert set(SEEN) == {(kind, who, stage) for kind in (ALL, LIMITED, NOBODY) for who in WHO for stage in STAGES}


# One link of each kind is quick enough for every run, and one channel for both databases.
QUICK = ("open_link", "prolific", "generic")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[pytest.mark.slow] * (name not in QUICK) + [pytest.mark.postgres] * (name == "generic")
        )
        for name in LINKS
    ],
)
def test_what_is_shown_to_whom(study, name):
    wrong, tried = [], 0
    channel, door = door_of(study, name) if name in DOORS else door_of_secret(study, name)
    for stage, happens in STAGES.items():
        with undone():
            person = Person(channel, door)
            person.link = link_of(name, person)
            mine = happens(person)
            before = rows()
            for who in WHO:
                with undone():
                    found = looked_at(who, person, mine)
                    expected = SEEN[LINKS[name], who, stage]
                    if found != expected:
                        wrong.append(f"{name}: {who}, {stage}: {found}, not {expected}")
                    if mine and LINKS[name] != NOBODY and rows() != before:
                        wrong.append(f"{name}: {who}, {stage}: another place, or a freed one: {rows()}, not {before}")
                    tried += 1
    assert not wrong, "\n".join(wrong)
    assert tried == len(STAGES) * len(WHO)


def looked_at(who, person, mine) -> tuple[bool, bool, str]:
    if who == "personal address":
        return Look(f"/p/{mine.code}/" if mine else "/p/nobody/").cell(mine)
    link = person.link if who == "panel link again" else of_a_stranger(person.link)
    look = Look(link)
    look.starts(link)
    return look.cell(mine)


def rows() -> tuple:
    return (
        list(Assignment.objects.order_by("pk").values_list("pk", "released_at", "submitted_at", "withdrawn_at")),
        list(Batch.objects.order_by("pk").values_list("claimed", flat=True)),
        Response.objects.count(),
    )


def door_of_secret(study, name):
    channel, door = door_of(study, "generic")
    door.settings |= PLACES[name]
    door.save()
    return channel, door


def of_a_stranger(link: str) -> str:
    """The same id of the person in a visit of somebody else, where the link has a name of the visit."""
    return re.sub(r"(session|assignmentId|SESSION_ID)=[^&]*", lambda found: f"{found[1]}={'c' * 24}", link)


# Going on here


@pytest.fixture
def here(study):
    """Somebody in the middle of the work, and a browser that went on by the panel's link."""
    channel, door = door_of(study, "generic")
    person = Person(channel, door)
    mine = works(person)
    other = Person(channel, door)
    other.get(person.link)
    assert "Go on here" in other.words and "personal address" in other.words
    other.post(person.link, START)
    return mine, other


def address_of(other) -> str:
    return other.path.split("/")[2]


def sends(other, key, mine, **changes):
    """Send a page as a browser does, and follow where it leads."""
    step, _, asks = open_page(Person.row(mine.code), key)
    data = Robot(random.Random(1), "fine").answers(step.protocol, asks) | changes
    return other.post(f"/p/{address_of(other)}/{key}/", data | {"go": "1"})


def test_the_work_goes_on_here_to_the_page_with_the_code(here):
    mine, other = here
    assert other.path.endswith("/s2.p2/") and "Look at the previous page" not in other.words
    first = address_of(other)
    sends(other, "s2.p2", mine)
    assert other.path == f"/p/{first}/s3/"
    sends(other, "s3", mine, **{"s3.q1": "Done here."})
    assert other.path == f"/p/{first}/done/" and other.ways_back == {("RETURN_COMPLETE-7K", "")}
    assert Person.row(mine.code).submitted_at and Assignment.objects.count() == 1
    # The browser's back button, and pages that it has kept, ask for the address again.
    for key in ("s1", "s2.p1", "s2.p2", "s3"):
        other.get(f"/p/{first}/{key}/")
        assert other.path == f"/p/{first}/done/" and WORDS not in other.html, key
    # The personal address shows everything, also what was sent here.
    own = Person(other.channel, other.door)
    assert "Done here." in own.get(f"/p/{mine.code}/s3/").html and WORDS in own.get(f"/p/{mine.code}/s1/").html


def test_a_second_press_is_safe_and_tells_nothing(here):
    """The same answers and other answers give the same page, so nobody can try what is stored."""
    mine, other = here
    address, seen = address_of(other), []
    for words in (WORDS, "Another guess."):
        reply = other.client.post(f"/p/{address}/s1/", {"s1.q1": words, "go": "1"})
        seen.append((reply.status_code, reply.content.decode().replace(words, "")))
        saved = other.client.post(f"/p/{address}/s1/", {"s1.q1": words, "save": "auto"})
        assert saved.status_code == 409 and "already stored" in saved.content.decode()
    assert seen[0] == seen[1] and seen[0][0] == 409 and "This page is already stored" in seen[0][1]
    assert f"/p/{address}/" in seen[0][1] and mine.code not in seen[0][1]
    assert Response.objects.get(slot="s1.q1").text == WORDS
    again = other.client.post(other.link, START), other.client.post(other.link, START)
    assert all(assignment_code(reply["Location"].split("/")[2]) == mine.code for reply in again)
    assert Assignment.objects.count() == 1


def test_a_draft_is_seen_where_it_was_typed_and_at_the_personal_address(here):
    mine, other = here
    answered(Person.row(mine.code), "s2.p2")
    path = f"/p/{address_of(other)}/s3/"
    assert other.client.post(path, {"s3.q1": "Typed here.", "save": "auto"}).status_code == 200
    assert "Typed here." in other.get(path).html
    stranger = Person(other.channel, other.door)
    assert "Typed here." not in stranger.post(other.link, START).html and stranger.path.endswith("/s3/")
    own = Person(other.channel, other.door)
    assert "Typed here." in own.get(f"/p/{mine.code}/s3/").html
    assert own.client.post(f"/p/{mine.code}/s3/", {"s3.q1": DRAFT, "save": "auto"}).status_code == 200
    assert DRAFT not in other.get(path).html and DRAFT not in stranger.get(stranger.path).html
    # What is sent in this moment is shown, no matter who sends it.
    reply = stranger.client.post(f"{stranger.path.removesuffix('s3/')}time/?page=s3", {"s3.q1": "Kept longer."})
    assert reply.status_code == 302 and "Kept longer." in stranger.get(stranger.path).html


def test_nothing_can_be_left_objected_to_or_begun_here(here):
    mine, other = here
    address = address_of(other)
    for route, data in (
        ("withdraw/", {"leave": "1"}),
        ("another/", {}),
        ("appeal/", {"text": "Why?", "about": "checks"}),
    ):
        before = rows()
        for path in (f"/p/{address}/{route}", f"/p/{address}/{route}"):
            assert other.client.post(path, data).status_code == 302
        assert rows() == before and not Appeal.objects.exists(), route
    assert Client().get(f"/p/{address[:-1]}/").status_code == 404
    assert Client().get(f"/p/{'x' * 120}/s1/").status_code == 404 and Client().get(f"/p/{'ü' * 40}/").status_code == 404


def test_another_part_begins_by_the_link_and_not_at_the_end_that_it_shows():
    """Several parts: the link may begin the next one, whose pages show no answers either."""
    study = spa_study(target_n=4, prompts=24, batches_per_annotator=2, with_surveys=False)
    channel, door = REGISTRY["generic"], panel(study)
    first = works_up_to(Person(channel, door), Person(channel, door).starts(), None)
    address = new_limited_address(first)
    end = Client().get(f"/p/{address}/done/").content.decode()
    assert "open the panel's link again" in unescape(end) and "another/" not in end
    before = rows()
    assert Client().post(f"/p/{address}/another/")["Location"] == f"/p/{address}/" and rows() == before
    second = Person(channel, door)
    second.post(second.link, START)
    assert "Leave the study" not in second.html and len(second.path.split("/")[2]) > 32
    assert Assignment.objects.count() == 2


def test_the_first_form_leads_to_the_own_pages_however_often_it_is_pressed(study):
    """A double click, a lost reply or the back button: the form that claimed the place is known again, and no other."""
    channel, door = door_of(study, "generic")
    person = Person(channel, door)
    token = re.search(r'name="form" value="([^"]+)"', person.get(person.link).html)[1]
    paths = [person.post(person.link, START | {"form": token}).path for _ in range(3)]
    mine = Assignment.objects.get()
    assert {path.split("/")[2] for path in paths} == {mine.code} and "withdraw/" in person.html
    other = Person(channel, door, 2)
    for link, data in (
        (person.link, START),
        (person.link, START | {"form": "x" * 22}),
        (other.link, START | {"form": token}),
    ):
        visitor = Person(channel, door)
        address = visitor.post(link, data).path.split("/")[2]
        assert address != mine.code, (link, data)
    assert Assignment.objects.count() == 2
    assert 'name="form"' not in person.get(person.link).html


@pytest.mark.slow
@pytest.mark.parametrize("limited", [False, True])
def test_pages_that_repeat_an_answer_do_so_only_at_the_personal_address(limited):
    """A question about the answer before it, and the truth after a guess in training."""
    repeated = set()
    study = launched(humanlike_draft(conditions=("examples",), target_n=6))
    mine = claimed(study, "ann", panel(study))
    while (key := full_page_state(Person.row(mine.code)).next_key) is not None:
        row = Person.row(mine.code)
        address = new_limited_address(row) if limited else row.code
        html = Client().get(f"/p/{address}/{key}/").content.decode()
        assert ("You answered" in html) <= (not limited), key
        repeated |= {key[-1]} if "You answered" in html else set()
        answered(row, key)
    assert repeated == (set() if limited else {"f", "t"})
