"""One person, one outcome, one code: who returns after the end, by whatever address, is led to that end.

Every channel, every way to end and every address of an assignment are taken from where the site itself has them.
"""

import re
from itertools import product

import pytest
from django.db.models import F
from django.test import Client

from annotators.models import Annotator, Assignment
from annotators.pages.record import full_page_state
from annotators.places import assign, places
from annotators.places.places import compute_receipt
from annotators.recruitment.channels import OUTCOMES, REGISTRY
from annotators.views.urls import assignment_urlpatterns
from studies.models import Batch, Study
from studies.services import lifecycle
from tests.annotators.views.visitors import (
    DECLINE,
    DOORS,
    ENDS,
    HEADINGS,
    START,
    Person,
    Released,
    close,
    door_of,
    finds_it_full,
    finishes,
    given_away,
    undone,
)
from tests.builders import panel, recruitment, spa_study
from tests.players import claimed, submitted

pytestmark = pytest.mark.django_db
# Left out: what puts the person out of the study, and is tried last.
LEAVING = "withdraw/"


@pytest.fixture
def study():
    return spa_study(target_n=4, prompts=10, m=2, systems=("alpha", "beta"), with_rating=False)


def addresses(mine: Assignment) -> list[str]:
    """Every address below the person's own: a page of each kind (the first, the texts, the last), and one that there is not."""
    walk = full_page_state(mine).sequence.keys if mine.batch_id else ("s1",)
    keys = dict.fromkeys([walk[0], walk[len(walk) // 2], walk[-1], "nonsense"])
    found = []
    for pattern in assignment_urlpatterns:
        route = str(pattern.pattern)
        found += (
            [route.replace("<str:key>", key) for key in keys]
            if "<str:key>" in route
            else [route.replace("<str:name>", "x")]
        )
    return [f"/p/{mine.code}/{route}" for route in found]


def outcome_in_database(mine):
    row = Assignment.objects.values("submitted_at", "withdrawn_at", "released_reason", "is_late", "external_ids").get(
        pk=mine.pk
    )
    return row | {"of": Assignment.objects.filter(annotator=mine.annotator_id).count()}


def expected_way_back(person, mine, outcome) -> set:
    back = person.channel.way_back(person.door, outcome, mine.external_ids, compute_receipt(mine.code))
    return {(back.code, back.url)} if back.code or back.url else set()


def wrong_after(person, mine, outcome, is_everywhere=True) -> list[str]:
    """Return by every address (or by the link and to the end alone); what is seen, and what is stored, against how it ended."""
    wrong = []
    mine = person.row(mine.code)
    expected = expected_way_back(person, mine, outcome) if outcome else set()
    before = outcome_in_database(mine)
    end = f"/p/{mine.code}/done/"
    open_again = (
        outcome == "full" and mine.study.state == Study.State.LAUNCHED
    )  # a place may have become free: they may try

    def look(what):
        if not person.ways_back <= expected:
            wrong.append(f"{what}: shows {person.ways_back - expected}")
            person.ways_back &= expected
        now = outcome_in_database(mine)
        wrong.extend(f"{what}: changes {name} to {now[name]}" for name in now if now[name] != before[name])
        before.update(now)
        if "Your answers so far are stored" in person.words and outcome:
            wrong.append(f"{what}: welcomes back")

    if person.channel.identifies_people:
        sent = [("GET", lambda: person.get(person.link)), ("POST", lambda: person.post(person.link, START))]
        sent += [("old page, declined", lambda: person.post(person.link, DECLINE))]
        for what, send in sent if outcome else ():
            send()
            look(f"link {what}")
            has_list = places.channel_min_reserved_seconds(person.door) and "Your work" in person.heading
            if person.at != end and not open_again and not has_list:
                wrong.append(f"link {what}: leads to {person.at}")
    keys = tuple(f"/{key}/" for key in full_page_state(mine).sequence.keys) if mine.batch_id else ("/s1/",)
    for path in addresses(mine) if is_everywhere else ():
        person.get(path)
        look(f"GET {path}")
        if not path.endswith(LEAVING) and outcome:
            person.post(path, {"text": "x", "go": "1", "s1.q1": "yes"})
            look(f"POST {path}")
        if path.endswith(keys) and outcome:
            reply = person.client.post(path, {"save": "auto"})
            # Nothing may be called saved that is not kept; a page that was stored says so.
            if (
                reply.status_code == 200
                and b'id="place-status"' in reply.content
                and mine.study.state != Study.State.CLOSED
            ):
                wrong.append(f"autosave {path}: says that it is saved")
    person.get(end)
    if outcome:
        shown = "withdrawn" if mine.withdrawn_at else outcome
        if person.heading != HEADINGS[shown]:
            wrong.append(f"the end is headed {person.heading!r}, not {HEADINGS[shown]!r}")
        if person.ways_back != expected:
            wrong.append(f"the end shows {person.ways_back}, not {expected}")
    elif person.at == end:
        wrong.append("led to an end, although there is none")
    return wrong


def some_and_all(rows, columns):
    """Pairs of two lists: every one of each list with some of the other; and, where time does not matter, all of them."""
    some = [(one, two) for (n, one), (k, two) in product(enumerate(rows), enumerate(columns)) if (n + k) % 7 == 0]
    # Nothing of either list is left out.
    assert [one for one in rows if one not in [pair[0] for pair in some]] == []
    assert [two for two in columns if two not in [pair[1] for pair in some]] == []
    return [
        pytest.param(some, id="some"),
        pytest.param(list(product(rows, columns)), id="all", marks=pytest.mark.slow),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("returns", some_and_all(list(DOORS), list(ENDS.items())))
def test_an_annotator_who_returns_after_the_end_is_led_to_that_end_and_sees_one_code(study, returns):
    assert set(OUTCOMES) == set(HEADINGS) and len(ENDS) > len(Released) > 0 and len(DOORS) > len(REGISTRY) > 0
    wrong, tried = [], 0
    for name, (words, (end, outcome)) in returns:
        with undone():
            channel, door = door_of(study, name)
            person = Person(channel, door)
            mine = end(person)
            wrong += [f"{name}: {words}: {found}" for found in wrong_after(person, mine, outcome)]
            # Whoever leaves the study afterwards keeps the code that they have seen.
            person.post(f"/p/{mine.code}/{LEAVING}", {"leave": "1"})
            left = person.row(mine.code)
            if left.withdrawn_at:
                found = wrong_after(person, left, outcome or "withdrawn", False)
                wrong += [f"{name}: {words}, then left: {one}" for one in found]
            tried += bool(left.withdrawn_at) + 1
    assert not wrong, "\n".join(wrong)
    assert tried > len(returns)


HAPPENED = {
    "nothing": lambda mine: None,
    "given back": lambda mine: assign.release_assignment(mine.pk, Released.EXPIRED),
    "returned": lambda mine: assign.release_assignment(mine.pk, Released.RETURNED),
    "paused": lambda mine: lifecycle.pause(mine.study, by=None),
    "closing": lambda mine: lifecycle.start_closing(mine.study, by=None),
    "closing and given back": lambda mine: (
        lifecycle.start_closing(mine.study, by=None),
        assign.release_assignment(mine.pk, Released.EXPIRED),
    ),
    "closed": lambda mine: close(mine.study),
    "all full": lambda mine: (given_away(mine), Batch.objects.update(claimed=F("wanted"))),
}
IDENTIFYING = [name for name in DOORS if REGISTRY[name.partition(",")[0]].identifies_people]


@pytest.mark.slow
@pytest.mark.parametrize("cases", some_and_all(IDENTIFYING, list(HAPPENED.items())))
def test_an_annotator_who_has_begun_comes_back_to_their_own_pages_and_to_no_end(study, cases):
    """Also where the place is lost, the study is paused or closing, or they declined in an old copy of the first page."""
    wrong = []
    assert len(IDENTIFYING) > 5
    for name, (words, happens) in cases:
        with undone():
            channel, door = door_of(study, name)
            person = Person(channel, door)
            mine = person.answers(person.starts(), 2)
            happens(mine)
            for sent in (START, DECLINE):
                person.get(person.link)
                if "Welcome back" not in person.words and "Continue part 1" not in person.words:
                    wrong.append(f"{name}: {words}: {person.words[:90]}")
                person.post(person.link, sent)
                if sent is START and not person.at.startswith(f"/p/{mine.code}/s"):
                    wrong.append(f"{name}: {words}: Continue leads to {person.at}")
            if person.ways_back or Assignment.objects.filter(annotator=mine.annotator).count() != 1:
                wrong.append(f"{name}: {words}: {person.ways_back}, or a second assignment")
            # The one code of the one end.
            mine = person.answers(mine)
            wrong += [f"{name}: {words}: {found}" for found in wrong_after(person, mine, "complete", False)]
    assert not wrong, "\n".join(wrong)


def test_a_visitor_who_does_not_agree_is_not_stored_and_may_come_again(study):
    for name in DOORS:
        channel, door = door_of(study, name)
        person = Person(channel, door)
        person.post(person.link, DECLINE)
        assert person.heading == HEADINGS["no_consent"] and not Annotator.objects.exists(), name
        back = channel.way_back(door, "no_consent", {}, "")
        assert not back.code or back.code in person.html, name
        assert 'name="agree"' in person.get(person.link).html, name


def test_who_comes_while_the_study_is_paused_can_try_again_from_there(study):
    channel, door = door_of(study, next(iter(DOORS)))
    lifecycle.pause(study, by=None)
    person = Person(channel, door)
    assert "paused" in person.get(person.link).heading and "Try again</a>" in person.html


# Several parts


@pytest.mark.slow
def test_another_part_is_offered_where_one_is_left_and_nowhere_else():
    study = spa_study(target_n=4, prompts=24, batches_per_annotator=2)
    door = panel(study)
    person = Person(REGISTRY["generic"], door)
    first = finishes(person)
    person.get(f"/p/{first.code}/done/")
    assert "Do another part" in person.words
    person.get(person.link)
    assert "finished 1 of the 2 parts" in person.words and "Do another part" in person.words
    assert "so far are stored" not in person.words
    with undone():
        Batch.objects.update(claimed=F("wanted"))
        for path in (f"/p/{first.code}/done/", person.link):
            person.get(path)
            assert person.at == f"/p/{first.code}/done/", path
            assert "There is no other part for you right now" in person.words and "Do another part" not in person.words
    with undone():
        close(study)
        assert "Do another part" not in person.get(person.link).words and person.at == f"/p/{first.code}/done/"
    second = person.starts()
    assert second.pk != first.pk
    assert "You have begun another part" in person.get(f"/p/{first.code}/done/").words
    person.answers(second)
    for code in (first.code, second.code):
        person.get(f"/p/{code}/done/")
        assert "You have done all parts" in person.words and "Do another part" not in person.words
    for send in (lambda: person.get(person.link), lambda: person.post(person.link, START)):
        send()
        assert person.at == f"/p/{second.code}/done/" and person.heading == "Thank you"
    assert Assignment.objects.count() == 2


# One tab leaves, the other goes on


def test_the_other_tab_says_that_the_study_was_left(study):
    mine = submitted(study, "w", until="s2.ask", recruitment=panel(study))
    client = Client()
    page = f"/p/{mine.code}/s2.ask/"
    assert client.get(page).status_code == 200
    saved = client.post(page, {"save": "auto", "s2.q1": "5"})
    assert saved.status_code == 200 and b'id="place-status"' in saved.content
    client.post(f"/p/{mine.code}/withdraw/", {"leave": "1"})
    told = client.post(page, {"save": "auto", "s2.q1": "6"})
    assert told.status_code == 409 and "You have left this study" in told.content.decode()
    assert client.get(page)["Location"] == f"/p/{mine.code}/done/"


def test_autosave_says_why_it_did_not_save(study):
    client = Client()

    def told(mine, key, data):
        client.get(f"/p/{mine.code}/{key}/")
        return client.post(f"/p/{mine.code}/{key}/", data | {"save": "auto"})

    stored = submitted(study, "a", until="s2.ask")
    assert "already stored" in told(stored, "s2.read", {}).content.decode()
    too_long = told(stored, "s2.ask", {"s2.q1": "x" * 200_001})
    assert too_long.status_code == 422 and "too long to be saved" in too_long.content.decode()
    out = claimed(study, "b")
    client.get(f"/p/{out.code}/s1/")
    assign.release_assignment(out.pk, Released.SCREENED_OUT)
    ended = client.post(f"/p/{out.code}/s1/", {"s1.q1": "yes", "save": "auto"})
    assert ended.status_code == 409 and "has ended" in ended.content.decode()


def test_what_was_agreed_to_is_offered_to_those_who_agreed(study):
    channel, door = door_of(study, "generic")
    agreed = finishes(Person(channel, door))
    person = Person(channel, door, 2)
    found_no_place = finds_it_full(person)
    assert "What you agreed to" in person.get(f"/p/{agreed.code}/done/").words
    assert "What you agreed to" not in person.get(f"/p/{found_no_place.code}/done/").words
    assert "What you agreed to" not in person.get(f"/p/{found_no_place.code}/consent/").words


@pytest.mark.slow
def test_another_task_of_the_panel_is_given_no_code_of_an_end_that_it_did_not_have(study, monkeypatch):
    """Who takes a second task after the end did nothing for it: the page says so, and gives no code that might be paid."""
    channel, door = door_of(study, "generic")
    monkeypatch.setattr(type(channel), "is_retaken_task", lambda *_: False)
    ends = {words: end for words, (end, outcome) in ENDS.items() if outcome and outcome != "full"}
    assert len(ends) > 5
    for words, end in ends.items():
        with undone():
            person = Person(channel, door)
            end(person)
            person.ways_back.clear()
            for send in (
                lambda person=person: person.get(person.link),
                lambda person=person: person.post(person.link, START),
            ):
                send()
                assert person.ways_back == {("RETURN_DONE-7K", "")} and person.path == person.link, words


def test_a_second_press_of_an_open_links_button_opens_the_same_place():
    """Also if the first answer was lost on its way. The link itself, opened again, offers a new start."""
    link = recruitment(spa_study(), "open_link")
    address = f"/e/{link.key}/"
    token = re.search(r'name="form" value="([^"]+)"', Client().get(address).content.decode())[1]
    doors = {Client().post(address, START | {"form": token})["Location"] for _ in range(2)}
    assert len(doors) == 1 and Assignment.objects.count() == Annotator.objects.count() == 1
    fresh_token = re.search(r'name="form" value="([^"]+)"', Client().get(address).content.decode())[1]
    assert fresh_token != token
    assert Client().post(address, START | {"form": fresh_token})["Location"] not in doors


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) AppleWebKit/605 Version/19 Mobile/15E148 Safari/604",
            "phone",
        ),
        ("Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537 Chrome/150.0 Mobile Safari/537", "phone"),
        ("Mozilla/5.0 (Linux; Android 15; SM-X900) AppleWebKit/537 Chrome/150.0 Safari/537", "tablet"),
        ("Mozilla/5.0 (iPad; CPU OS 12_2 like Mac OS X) AppleWebKit/605 Mobile/15E148 Safari/604", "tablet"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0", "computer"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537 Chrome/150.0 Safari/537", "computer"),
        ("curl/8", ""),
    ],
)
def test_only_the_class_of_the_device_is_stored(agent, device):
    link = panel(spa_study())
    client = Client(headers={"User-Agent": agent})
    client.post(f"/e/{link.key}/?who=anna&session=1", START)
    assert Assignment.objects.get().device == device
