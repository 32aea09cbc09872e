"""What a page says of time is what the database knows: in every state of a place, without a script."""

import re
from contextlib import contextmanager
from datetime import timedelta
from html import unescape

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from annotators.models import Assignment
from annotators.pages.record import full_page_state
from annotators.places import assign
from annotators.places.deadlines import EXPIRED_TEXTS, PlaceState
from annotators.views.lookup import has_assignment_ended
from studies.models import Batch, Study
from studies.services import lifecycle
from tests.annotators.places.passing_time import COUNT, LATE, MAY_BE_LATE, close, give_away, pass_time, row, truth
from tests.builders import panel, promised, spa_study
from tests.players import answered, claimed

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def study():
    return spa_study(target_n=8, prompts=16)


@contextmanager
def undone():
    point = transaction.savepoint()
    try:
        yield
    finally:
        transaction.savepoint_rollback(point)


def begun(study, person="w", answers=2, **door):
    link = promised(panel(study, **door), fault="all")
    mine = claimed(study, person, recruitment=link, is_consented=True)
    Client().get(f"/p/{mine.code}/", follow=True)
    for _ in range(answers):
        answered(row(mine))
    Client().get(f"/p/{mine.code}/", follow=True)
    return mine


def finish(mine):
    lifecycle.end_grace_period(Study.objects.get(pk=mine.study_id), by=None)


def draft(mine):
    mine = row(mine)
    key = full_page_state(mine).next_key
    assert Client().post(f"/p/{mine.code}/{key}/", {"save": "auto"}).status_code == 200


def another_part(mine):
    assign.release_assignment(mine.pk, "returned")
    other = Batch.objects.filter(study=mine.study_id).exclude(pk=mine.batch_id).first()
    Assignment.objects.create(
        study=mine.study,
        batch=other,
        annotator=mine.annotator,
        recruitment=mine.recruitment,
        design=mine.design,
        reserved_until=timezone.now() + timedelta(hours=1),
    )


# State of time: what happens to somebody who has begun.
HAPPENS = {
    "started": [],
    "extended by a draft": [lambda m: pass_time(m, minutes=20), draft],
    "extended by a page that was sent": [lambda m: pass_time(m, minutes=20), lambda m: answered(row(m))],
    "five minutes left": [lambda m: pass_time(m, minutes=31)],
    "half a minute left": [lambda m: pass_time(m, minutes=35, seconds=30)],
    "over": [lambda m: pass_time(m, minutes=40)],
    "over, and extended by a draft": [lambda m: pass_time(m, minutes=40), draft],
    "over and given back": [lambda m: pass_time(m, minutes=40), lambda m: assign.release_expired_places()],
    "returned": [lambda m: assign.release_assignment(m.pk, "returned")],
    "given away": [give_away],
    "in another part": [another_part],
    "closed within grace": [close],
    "closed within grace, and idle": [close, lambda m: pass_time(m, minutes=40)],
    "closed within grace, idle and given back": [
        close,
        lambda m: pass_time(m, minutes=40),
        lambda m: assign.release_expired_places(),
    ],
    "last minutes of the grace": [close, draft, lambda m: pass_time(m, minutes=118), draft],
    "grace over, not closed yet": [close, lambda m: pass_time(m, minutes=121)],
    "closed and over": [close, finish],
    "closed and swept": [close, finish, lambda m: assign.release_expired_places()],
    "given away, and closed": [give_away, close, finish],
}
PAUSED = {
    f"paused, {words}": [*steps, lambda m: lifecycle.pause(m.study, by=None)]
    for words, steps in HAPPENS.items()
    if close not in steps
}
CASES = HAPPENS | PAUSED


def line(response) -> tuple[str, str]:
    """The line of the place and its state; ("", "") where there is none."""
    found = re.search(r'<span id="place-status"[^>]*data-state="(\w+)"[^>]*>([^<]*)<', response.content.decode())
    return (unescape(found[2]), found[1]) if found else ("", "")


def wrong_words(words, minutes, promise, is_closed) -> list[str]:
    wrong = []
    number = re.search(r"(\d+) more minute|less than a minute", words)
    if minutes is not None:
        said = int(number[1] or 0) if number else None
        if said is None or not said <= minutes < said + 1.1:
            wrong.append(f"{minutes:.1f} minutes are left")
    elif number:
        wrong.append("the time is over")
    for one in (COUNT, MAY_BE_LATE, LATE):
        if (one in words) != (one == promise):
            wrong.append(f"{one!r} should be {'there' if one == promise else 'missing'}")
    if ("study has been closed" in words) != is_closed:
        wrong.append("says otherwise of the closing")
    return [f"{words!r}: {each}" for each in wrong]


@pytest.mark.slow
def test_the_words_are_those_of_the_row_and_come_true(study):
    wrong, met = [], set()
    for name, steps in CASES.items():
        with undone():
            mine = begun(study)
            for step in steps:
                step(mine)
            client = Client()
            key = full_page_state(row(mine)).next_key
            page = f"/p/{mine.code}/{key}/"
            words, state = line(client.get(page))
            met.add(state)
            found = wrong_words(words, *truth(mine))
            # The pay of those who finish is the same, late or not: the page says so where they might doubt it.
            if ("you are still paid" in words) != (PlaceState(state) in EXPIRED_TEXTS):
                found.append(f"{words!r}: and the pay?")
            # "More time" gives it, or says why it does not.
            with undone():
                _, promise, _ = truth(mine)
                moved = client.post(f"/p/{mine.code}/time/?page={key}", {}, follow=True)
                found += [f"more time: {each}" for each in wrong_words(line(moved)[0], *truth(mine))]
                if promise in ("", COUNT) and truth(mine)[1]:
                    found.append("more time was not given")
            # What a draft is answered, and what becomes of the answers.
            with undone():
                _, promise, _ = truth(mine)
                saved = client.post(page, {"save": "auto"})
                found += [f"draft: {each}" for each in wrong_words(line(saved)[0], *truth(mine))]
            while not row(mine).submitted_at:
                answered(row(mine))
            is_late = row(mine).is_late
            if promise != MAY_BE_LATE and is_late != (promise == LATE):
                found.append(f"{words!r}: late is {is_late}")
            end = client.get(f"/p/{mine.code}/done/").content.decode()
            if ("marked as late" in end) != is_late or "<b>2.50 USD</b>" not in end:
                found.append("the end says otherwise")
            wrong += [f"{name}: {each}" for each in found]
    assert not wrong, "\n".join(wrong)
    assert met == set(PlaceState) and len(CASES) > len(PlaceState)


def test_pay_is_spoken_of_only_where_it_was_promised():
    mine = begun(spa_study(target_n=4, reward="0"))
    give_away(mine)
    words, _ = line(Client().get(f"/p/{mine.code}/", follow=True))
    assert "Another person has your place" in words and "paid" not in words


def test_who_has_answered_nothing_when_the_study_is_closed_is_led_to_the_end_with_the_pay(study):
    for is_swept in (False, True):
        with undone():
            mine = begun(study, answers=0)
            close(mine)
            assert "You can finish within" in line(Client().get(f"/p/{mine.code}/", follow=True))[0]
            finish(mine)
            if is_swept:
                assign.release_expired_places()
            page = Client().get(f"/p/{mine.code}/s1/", follow=True)
            assert page.redirect_chain[-1][0] == f"/p/{mine.code}/done/" and has_assignment_ended(row(mine))
            said = " ".join(page.content.decode().split())
            assert "This study has ended" in said and "You are paid <b>2.50 USD</b>" in said
            assert row(mine).released_reason == "expired"
            # What they had typed meanwhile and send all the same is stored, as it is for everybody.
            sent = Client().post(f"/p/{mine.code}/s1/", {"s1.q1": "yes", "go": "1"})
            assert sent.status_code == 302 and not has_assignment_ended(row(mine))


def test_the_first_page_says_how_long_its_place_is_kept_for_every_annotator(study):
    """Starting makes the place last longer than it was held for a start; of two tabs the second did not do it."""
    mine = claimed(study, "w")
    first, second = row(mine), row(mine)
    for one in (first, second):
        assign.mark_started_and_extend_deadline(one)
        kept = Assignment.objects.get(pk=mine.pk).reserved_until
        assert abs((one.reserved_until - kept).total_seconds()) < 1 and one.started_at
    assert (kept - timezone.now()).total_seconds() > 35 * 60


def test_places_that_are_kept_for_days_have_no_clock_until_the_study_is_closed(study):
    mine = begun(study)
    pass_time(mine, days=-3)
    assert line(Client().get(f"/p/{mine.code}/", follow=True)) == ("", "kept")
    close(mine)
    words, state = line(Client().get(f"/p/{mine.code}/", follow=True))
    assert state == "closing" and re.search(r"within 1\d\d more minutes", words)
