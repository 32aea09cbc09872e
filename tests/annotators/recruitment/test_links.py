"""Whether a link is open: one answer, with the reason, and the door says the same."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotators.models import Recruitment
from annotators.recruitment.links import LinkState, recruitment_link_state
from studies.models import Study
from tests.builders import panel, spa_study

State = Study.State
HOUR = timedelta(hours=1)
OVER = {LinkState.CLOSED, LinkState.STOPPED, LinkState.ENDED}
CASES = [
    (State.DRAFT, {}, LinkState.UNPUBLISHED),
    (State.LAUNCHING, {}, LinkState.UNPUBLISHED),
    (State.LAUNCHED, {}, LinkState.OPEN),
    (State.LAUNCHED, {"opens_at": -HOUR, "closes_at": HOUR}, LinkState.OPEN),
    (State.LAUNCHED, {"opens_at": HOUR}, LinkState.NOT_YET),
    (State.LAUNCHED, {"closes_at": -HOUR}, LinkState.ENDED),
    (State.LAUNCHED, {"stopped_at": -HOUR, "opens_at": HOUR}, LinkState.STOPPED),
    (State.PAUSED, {}, LinkState.PAUSED),
    (State.PAUSED, {"opens_at": HOUR}, LinkState.NOT_YET),
    (State.CLOSING, {"stopped_at": -HOUR}, LinkState.CLOSED),
    (State.CLOSED, {}, LinkState.CLOSED),
]


def link(state: str, times: dict[str, timedelta]) -> Recruitment:
    return Recruitment(study=Study(state=state), **{name: timezone.now() + by for name, by in times.items()})


@pytest.mark.parametrize(("state", "times", "expected"), CASES)
def test_the_first_reason_that_applies_is_the_answer(state, times, expected):
    found = link(state, times)
    assert recruitment_link_state(found.study, found) is expected
    assert expected.is_over == (expected in OVER)


def test_every_answer_has_a_case():
    # The case of a link without promises needs its rows (test_new_study).
    assert {expected for *_, expected in CASES} == set(LinkState) - {LinkState.INCOMPLETE}
    assert not LinkState.INCOMPLETE.is_over


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("times", "words"),
    [
        ({}, "Start"),
        ({"opens_at": HOUR}, "This link is not open yet"),
        ({"closes_at": -HOUR}, "The study is closed"),
        ({"stopped_at": -HOUR}, "The study is closed"),
    ],
)
def test_the_door_says_so(times, words):
    study = spa_study(target_n=1)
    door = panel(study, **{name: timezone.now() + by for name, by in times.items()})
    assert words in Client().get(f"/e/{door.key}/?who=w").content.decode()
