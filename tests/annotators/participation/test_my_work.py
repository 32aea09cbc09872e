"""Invited experts: places kept for days, and a page that lists what is done, begun and still to be had."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotators.models import Assignment
from annotators.places import assign
from annotators.recruitment.channels.generic import invitation_token
from studies.models import Study
from studies.services import lifecycle
from tests.annotators.participation.expert_studies import PARTS, expert_study
from tests.players import answered
from tests.robots import Robot

pytestmark = pytest.mark.django_db


def best(name, kind, values, asked, page, robot):
    return values[-1]


def words_of(response) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def last(study) -> Assignment:
    return Assignment.objects.filter(study=study).select_related("study", "recruitment").latest("pk")


def later(**elapsed):
    """So much time passes for every place."""
    Assignment.objects.filter(submitted_at=None).update(reserved_until=F("reserved_until") - timedelta(**elapsed))


def test_a_place_is_kept_for_days_and_work_on_it_takes_nothing_away():
    study, door = expert_study()
    robot = Robot(door, best)
    page = robot.start()
    one = last(study)
    assert (one.reserved_until - one.claimed_at).days == 14
    assert (
        "Place kept" not in robot.responses[-1].content.decode()
        and "Your place is kept" not in robot.responses[-1].content.decode()
    )
    robot.post(page.forms[0].action, robot.fill(page.forms[0], page))
    robot.post(robot.url, {"save": "auto"})
    assert last(study).reserved_until == one.reserved_until
    later(days=13)
    assign.release_expired_places()
    assert last(study).released_at is None
    robot.get(f"/p/{one.code}/")
    assert "Your place is kept for" in robot.responses[-1].content.decode(), "on the last day the clock is told"
    robot.post(f"/p/{one.code}/time/", {})
    assert last(study).reserved_until >= one.reserved_until - timedelta(minutes=1), "more time is days again"
    later(days=15)
    assign.release_expired_places()
    assert last(study).released_reason == "expired"


def test_a_study_without_days_keeps_its_own_times():
    study, door = expert_study(days=0)
    robot = Robot(door, best)
    robot.start()
    one = last(study)
    assert (one.reserved_until - one.started_at).total_seconds() == pytest.approx(study.idle_lease_seconds, abs=2)
    assert robot.client.get(f"/p/{one.code}/parts/")["Location"] == f"/p/{one.code}/"
    assert "Welcome back" in words_of(robot.client.get(door))


def test_the_link_leads_to_the_work_and_the_work_to_its_end():
    study, door = expert_study()
    robot = Robot(door, best)
    assert "I have read this and agree" in words_of(robot.get(door)), "the first time it is the door"
    assert robot.play() == "Thank you"
    assert "Your work" in words_of(robot.responses[-1])
    for done in range(1, PARTS):
        said = words_of(robot.get(door))
        assert f"Your work: {done} of {PARTS}" in said and f"you earn {done * 2.5:.2f} " in said, said
        assert said.count("done on") == done and f"{PARTS - done} more part" in said
        action = re.search(r'action="([^"]+another/)"', robot.responses[-1].content.decode())[1]
        page = robot.post(action, {"start": "1"})
        first = robot.url
        said = words_of(robot.get(door))
        assert (
            f"Continue part {done + 1}" in said
            and "you are at page 1 of 2" in said
            and "your place is kept until" in said
        )
        answered(last(study), rng=None)
        assert "you are at page 2 of 2" in words_of(robot.get(door)) and page.status_code == 200 and first
        answered(last(study), rng=None)
    said = words_of(robot.get(door))
    assert (
        f"Your work: {PARTS} of {PARTS}" in said
        and "You have done all parts" in said
        and "another/" not in robot.responses[-1].content.decode()
    )
    codes = list(Assignment.objects.values_list("code", flat=True))
    assert len(codes) == PARTS and all(
        f"Your work: {PARTS}" in words_of(robot.get(f"/p/{code}/parts/")) for code in codes
    )


def test_looking_writes_nothing_and_costs_the_same_however_much_was_done():
    study, door = expert_study(parts=6)
    robot = Robot(door, best)
    counts = []
    for done in range(4):
        robot.start() if not done else robot.post(f"/p/{last(study).code}/another/", {})
        if done in (1, 3):
            before = list(Assignment.objects.order_by("pk").values())
            with CaptureQueriesContext(connection) as queries:
                assert Client().get(f"/p/{last(study).code}/parts/").status_code == 200
            assert list(Assignment.objects.order_by("pk").values()) == before
            counts.append(len(queries))
        answered(last(study)), answered(last(study))
    assert counts[0] == counts[1], counts


def test_the_page_says_what_is_left():
    study, door = expert_study(target_n=2)
    robot = Robot(door, best)
    assert robot.play() == "Thank you"
    other = Robot(door.replace(re.search(r"i=(.*)", door)[1], invitation_token(last(study).recruitment.key, 2)), best)
    other.start()
    said = words_of(robot.get(door))
    assert "there are 0 more parts for you" in said and "There is no part for you right now" in said
    lifecycle.start_closing(Study.objects.get(pk=study.pk), by=None)
    assert "You cannot start a new part" in words_of(robot.get(door))


def test_a_part_that_was_given_back_is_listed_and_taken_up_again():
    study, door = expert_study()
    robot = Robot(door, best)
    page = robot.start()
    robot.post(page.forms[0].action, robot.fill(page.forms[0], page))
    later(days=30)
    assign.release_expired_places()
    said = words_of(robot.get(door))
    assert "started, but given back on" in said and "Continue part 1" in said and "Start part" not in said
    answered(last(study))
    assert last(study).submitted_at and "Your work: 1 of 3" in words_of(robot.get(door))


def test_an_annotator_who_left_or_whose_invitation_was_revoked_has_no_list():
    study, door = expert_study()
    robot = Robot(door, best)
    robot.start()
    code = last(study).code
    door_row = last(study).recruitment
    door_row.settings = door_row.settings | {"revoked": "1"}
    door_row.save()
    assert "no longer valid" in words_of(robot.get(door))
    robot.post(f"/p/{code}/withdraw/", {"leave": "1"})
    assert Client().get(f"/p/{code}/parts/")["Location"] == f"/p/{code}/"
    assert Client().get("/p/nobody/parts/").status_code == 404 and Client().post(f"/p/{code}/parts/").status_code == 405


def test_the_list_tells_no_batch_arm_or_system():
    study, door = expert_study(title="qqsecretqq")
    robot = Robot(door, best)
    robot.play()
    seen = robot.get(door)
    assert not seen.cookies and "no-store" in seen["Cache-Control"]
    text = seen.content.decode()
    assert not [word for word in ("qqsecretqq", "qqarmqq", "alpha", "beta", "batch") if word in text.lower()]
