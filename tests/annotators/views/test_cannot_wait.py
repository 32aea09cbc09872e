"""No place right now, and no time to wait: who leaves is written down, led back and paid, and may still come again."""

import time
from decimal import Decimal

import pytest
from django.test import Client

from annotators.models import Annotator, Assignment, Payment
from annotators.models.constants import SUBMITTED
from annotators.models.identity import restored_external_ids
from annotators.pay import ledger
from annotators.pay.ledger import assignments_considered_for_pay
from annotators.places import assign
from annotators.places.places import compute_receipt
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import SubmissionSnapshot
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places, submissions_with_match_status
from tests.annotators.recruitment.channels.sona.stand_in import SETTINGS
from tests.annotators.views.visitors import of_code
from tests.builders import launched, panel, promised, recruitment, spa_draft, spa_study, user
from tests.players import claimed, submitted
from tests.robots import Page

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    """One place, and somebody in it."""
    made = spa_study(user("owner"), target_n=1)
    claimed(made, "inside")
    return made


def knocks(door, person="W1", session="1", **posted):
    """The answer to a form sent to the door; Start where nothing else is said."""
    address = f"/e/{door.key}/?who={person}&session=S{session}"
    return Client().post(address, posted or {"agree": "1", "start": "1"})


def waited(answer) -> str:
    """The field of "I cannot wait"; "" where that is not offered."""
    form = next((form for form in Page(answer.content.decode()).forms if "leave" in dict(form.buttons)), None)
    return form.fields["waiting_token"][0] if form else ""


def words(answer) -> str:
    return " ".join(answer.content.decode().split())


def left() -> list[Assignment]:
    return list(Assignment.objects.filter(released_reason="full").order_by("pk"))


def test_who_cannot_wait_leaves_a_row_and_is_led_back_and_paid(study):
    door = promised(panel(study), full="0.10")
    answer = knocks(door)
    assert "No place right now" in words(answer) and "Try again" in words(answer)
    # Before anybody says so, nothing is written and no code is shown.
    assert "what you are paid for coming" in words(answer)
    assert waited(answer) and not left() and "FULL-9" not in words(answer)
    gone = knocks(door, leave="1", waiting_token=waited(answer))
    (row,) = left()
    assert gone.status_code == 302 and of_code(gone.url) == f"/p/{row.code}/"
    assert (row.batch, row.recruitment, row.origin, row.consented_at) == (None, door, "live", None)
    assert row.external_ids == {"session": "S1"} and row.annotator.pool == "panel"
    assert restored_external_ids(row) == {"person": "W1", "session": "S1"}
    page = Client().get(gone.url, follow=True)
    assert [of_code(path) for path, _ in page.redirect_chain] == [f"/p/{row.code}/done/"]
    assert "No place was free" in words(page) and "no more are needed" not in words(page)
    assert "FULL-9" in words(page) and compute_receipt(row.code) in words(page)
    assert "You are paid <b>0.10 USD</b>." in words(page)
    ledger.update_ledger(door, by=None)
    assert [(one.assignment, one.amount, one.state) for one in Payment.objects.all()] == [(row, Decimal("0.10"), "due")]
    assert assign.find_miscounted_batches() == []


def test_said_twice_it_is_one_row_and_leads_to_the_task_taken_last(study):
    door = promised(panel(study), full="0.10")
    door.settings["return_full"] = "https://panel.example.org/full?s={session}"
    door.save()
    field = waited(knocks(door))
    first, second = (of_code(knocks(door, leave="1", waiting_token=field).url) for _ in range(2))
    assert first == second
    assert knocks(door, session="2", leave="1", waiting_token=field).status_code == 302
    (row,) = left()
    assert row.external_ids["session"] == "S2"
    assert "https://panel.example.org/full?s=S2" in words(Client().get(f"/p/{row.code}/done/"))
    # Told again to wait, and by another link: a row for that one.
    assert waited(knocks(door))
    other = promised(panel(study), full="0.20")
    knocks(other, leave="1", waiting_token=waited(knocks(other)))
    assert [one.recruitment for one in left()] == [door, other]
    assert Annotator.objects.filter(pool="panel").count() == 2


def test_full_is_a_row_for_each_link_too():
    study = spa_study(user("owner"), target_n=1)
    submitted(study, "inside")
    doors = [panel(study), panel(study)]
    for door in [*doors, *doors]:
        assert "The study is full" in words(knocks(door))
    assert [one.recruitment for one in left()] == doors


def test_who_comes_again_is_let_in_and_paid_once(study):
    door = promised(panel(study), full="0.10")
    knocks(door, leave="1", waiting_token=waited(knocks(door)))
    ledger.update_ledger(door, by=None)
    assert Payment.objects.get().state == "due"
    assign.release_assignment(Assignment.objects.get(batch__isnull=False).pk, "returned")
    assert of_code(knocks(door).url) != f"/p/{left()[0].code}/"
    mine = Assignment.objects.get(batch__isnull=False, released_at=None)
    assert mine.annotator == left()[0].annotator and list(assignments_considered_for_pay(door)) == [mine]
    assert "No place was free" in words(at_end := Client().get(f"/p/{left()[0].code}/done/")) and "paid" not in words(
        at_end
    )
    submitted(study, "W1", recruitment=door)
    for _ in range(2):
        ledger.update_ledger(door, by=None)
    assert list(Payment.objects.order_by("pk").values_list("amount", "state")) == [
        (Decimal("0.10"), "cancelled"),
        (Decimal("2.50"), "due"),
    ]


def test_what_was_paid_for_coming_in_vain_stays_paid(study):
    door = promised(panel(study), full="0.10")
    knocks(door, leave="1", waiting_token=waited(knocks(door)))
    ledger.update_ledger(door, by=None)
    ledger.mark_payments_paid_and_erase_withdrawn_ids(door, [Payment.objects.get().pk], user("owner"))
    assign.release_assignment(Assignment.objects.get(batch__isnull=False).pk, "returned")
    knocks(door)
    ledger.update_ledger(door, by=None)
    assert Payment.objects.get().state == "paid"


def test_who_has_a_place_meanwhile_keeps_it(study):
    door = panel(study)
    answer = knocks(door)
    field = waited(answer)
    assert field and "what you are paid" not in words(answer)
    assign.release_assignment(Assignment.objects.get().pk, "returned")
    place = knocks(door).url
    assert of_code(knocks(door, leave="1", waiting_token=field).url) == place and not left()


@pytest.mark.parametrize("field", ["", "x", "another's", "another link's", "old"])
def test_only_who_was_asked_to_wait_can_say_so(study, field, monkeypatch):
    door, other = promised(panel(study), full="0.10"), promised(panel(study), full="0.10")
    told = {"another's": knocks(door, "W2"), "another link's": knocks(other), "old": knocks(door)}
    if field == "old":
        tomorrow = time.time() + 86_401
        monkeypatch.setattr("django.core.signing.time.time", lambda: tomorrow)
    answer = knocks(door, leave="1", waiting_token=waited(told[field]) if field in told else field)
    assert answer.status_code == 302 and answer.url == f"/e/{door.key}/?who=W1&session=S1" and not left()
    assert knocks(door, leave="1").status_code == 302 and not left()


def test_where_there_is_nothing_to_go_back_with_nobody_is_asked_to_say_so(study):
    link = recruitment(study, "open_link")
    address = f"/e/{link.key}/"
    start = {"agree": "1", "start": "1"}
    answer = Client().post(address, start)
    assert "No place right now" in words(answer) and not waited(answer)
    # With pay it is offered there too; who nobody knows is still one person.
    promised(link, full="0.10")
    field = waited(Client().post(address, start))
    people = Annotator.objects.count()
    urls = {Client().post(address, {"leave": "1", "waiting_token": field}).url for _ in range(2)}
    assert len(urls) == len(left()) == 1 and Annotator.objects.count() == people
    assert "You are paid <b>0.10 USD</b>" in words(Client().get(urls.pop(), follow=True))
    # An amount of a link that pays nothing is no promise: the first page does not tell it either.
    type(link).objects.filter(pk=link.pk).update(reward=Decimal(0))
    assert not waited(Client().post(address, start))


@pytest.mark.parametrize(
    ("channel", "settings", "query"),
    [
        ("sona", SETTINGS, "survey_code=40351"),
        ("prolific", {}, f"PROLIFIC_PID={'5f1a' * 6}&STUDY_ID={'6a1b' * 6}&SESSION_ID={'7c1d' * 6}"),
        ("mturk", {}, "assignmentId=3ASG1&hitId=3HIT1&workerId=A1WORKER&turkSubmitTo=https%3A%2F%2Fwww.mturk.com"),
    ],
)
def test_at_a_panel_that_leads_back_somehow_it_is_offered(study, channel, settings, query):
    door = recruitment(study, channel, settings=settings)
    address = f"/e/{door.key}/?{query}"
    field = waited(Client().post(address, {"agree": "1", "start": "1"}))
    page = Client().post(address, {"leave": "1", "waiting_token": field}, follow=True)
    back = REGISTRY[channel].way_back(door, "full", {}, "")
    assert "No place was free" in words(page) and (back.label in words(page) or back.instructions in words(page))


def test_who_had_begun_and_finds_no_place_is_led_to_their_own_page_and_given_no_code(study):
    """They can still finish there, and are given the code of that end: they must not have been given another before."""
    door = promised(panel(study), full="0.10")
    assign.release_assignment(Assignment.objects.get().pk, "returned")
    knocks(door)
    mine = Assignment.objects.get(annotator__pool="panel", recruitment=door)
    assign.release_assignment(mine.pk, "expired")
    claimed(study, "another")
    answer = knocks(door, session="2")
    assert answer.status_code == 302 and of_code(answer.url) == f"/p/{mine.code}/"
    assert not left() and Assignment.objects.get(pk=mine.pk).external_ids["session"] == "S2"
    assert "Another person has your place now" in words(Client().get(answer.url, follow=True))


def test_who_wanted_another_part_tries_again_by_a_form_and_keeps_their_last_page():
    study = spa_study(user("owner"), target_n=2, batches_per_annotator=2, prompts=16)
    done = submitted(study, "W1", recruitment=panel(study))
    claimed(study, "inside")
    address = f"/p/{done.code}/another/"
    answer = Client().post(address)
    assert "No place right now" in words(answer) and not waited(answer)
    (form,) = Page(answer.content.decode()).forms
    assert (form.action, form.method) == (address, "post")
    assert (
        f'href="/p/{done.code}/done/"' in words(answer)
        and Client().post(form.action, {"start": "1"}).status_code == 200
    )
    assert f'href="{address}"' not in words(answer)


def test_who_found_no_place_and_took_part_elsewhere_since_is_kept_out():
    mine = launched(spa_draft(owner=user("owner"), target_n=1, exclusion_group="stories"))
    other = launched(spa_draft(target_n=2, exclusion_group="stories"))
    claimed(mine, "inside")
    door = panel(mine)
    knocks(door, leave="1", waiting_token=waited(knocks(door)))
    submitted(other, "W1")
    assign.release_assignment(Assignment.objects.get(study=mine, batch__isnull=False).pk, "returned")
    assert "You have already taken part" in words(knocks(door))


def test_at_the_panel_they_are_turned_away_and_not_unknown(study):
    door = panel(study)
    knocks(door, leave="1", waiting_token=waited(knocks(door)))
    import_submissions_and_release_places(door, [SubmissionSnapshot("T", "S1", "W1", SUBMITTED)], "service")
    assert (
        submissions_with_match_status(door).get().standing == "turned_away"
        and submissions_with_match_status(door).get().assignment == left()[0]
    )
