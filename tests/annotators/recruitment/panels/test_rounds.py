"""Places in rounds: the next when the last are taken, as many as are expected to be needed, never beyond the cap, ordered once."""

from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db.models import QuerySet
from django.utils import timezone

from annotators.models import Assignment, PanelOrder, PanelPlan, PanelTask, Recruitment
from annotators.models.constants import APPROVED, RETURNED, SUBMITTED, WORKING
from annotators.recruitment.channels.prolific.stand_in import TOKEN, ProlificStandIn
from annotators.recruitment.panels import SubmissionSnapshot, orders
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import (
    count_further_places_needed,
    order_blocklist_and_publication,
    order_next_round,
)
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places
from annotators.recruitment.panels.sync import schedule_sync
from studies.models import AuditEvent, Job, Study
from studies.services import jobs
from tests.admin_pages import logged_in
from tests.builders import promised, spa_study, user
from tests.players import claimed, submitted

PUBLISHED = {"title": "t", "description": "d", "minutes": 10, "reward": Decimal("1.25"), "currency": "GBP"}


@pytest.fixture(autouse=True)
def public(settings):
    settings.SITE_URL = "https://eval.example.org"


@pytest.fixture
def recruitment(db):
    study = spa_study(user("owner"), target_n=24)
    made = Recruitment.objects.create(
        study=study, channel="prolific", pool="panel", settings={"code_complete": "A2K7PQ"}
    )
    store_or_delete_secrets(made, {"token": TOKEN}, by=None)
    return promised(made)


@pytest.fixture
def task(recruitment):
    """Published from here, with four places."""
    order = order_blocklist_and_publication(recruitment, by=None, **PUBLISHED, places=4)
    now = timezone.now()
    PanelOrder.objects.filter(pk=order.pk).update(state="done", sent_at=now, ended_at=now, result={"task": "T"})
    return PanelTask.objects.create(recruitment=recruitment, external_id="T", places=4)


def shows(recruitment, states: dict[str, str]) -> None:
    import_submissions_and_release_places(
        recruitment,
        [SubmissionSnapshot("T", f"S{person}", person, state) for person, state in states.items()],
        "service",
    )


def finished(recruitment, *people) -> None:
    """As many finished works, without playing each page."""
    for person in people:
        made = claimed(recruitment.study, person, recruitment, external_ids={"person": person, "session": f"S{person}"})
        now = timezone.now()
        Assignment.objects.filter(pk=made.pk).update(started_at=now, submitted_at=now)


def planned(recruitment, people=12, round_places=4, lost_percent=0) -> orders.RoundStatus:
    made = orders.save_round_plan(
        recruitment, by=user("owner"), people=people, round_places=round_places, lost_percent=lost_percent
    )
    return orders.round_status(PanelPlan.objects.select_related("recruitment__study").get(pk=made.pk))


def ended(order, state="done", words="") -> None:
    now = timezone.now()
    PanelOrder.objects.filter(pk=order.pk).update(state=state, sent_at=now, ended_at=now, panel_message=words)
    if state == "done":
        PanelTask.objects.update(places=order.values["places"])


@pytest.mark.parametrize(
    ("people", "done", "at_work", "lost", "places"),
    [
        (100, 0, 0, 0.0, 100),
        (100, 0, 0, 0.2, 125),
        (100, 99, 0, 0.2, 2),
        (20, 14, 5, 0.2, 3),
        (9, 9, 0, 0.5, 0),
        (9, 12, 3, 0.1, 0),
        (10, 0, 0, 0.1, 12),
    ],
)
def test_more_places_than_people_where_some_bring_nothing(people, done, at_work, lost, places):
    assert count_further_places_needed(people, done, at_work, lost) == places
    if places:  # it is enough, and one fewer is not
        assert (
            done + (at_work + places) * (1 - lost) >= people - 1e-9 > done + (at_work + places - 1) * (1 - lost) - 2e-9
        )


def test_the_next_round_waits_until_all_places_are_taken_and_is_ordered_once(recruitment, task):
    assert (
        planned(recruitment).waits.startswith("0 of 4 places are taken")
        and order_next_round(recruitment, by=None) is None
    )
    finished(recruitment, "A", "B")
    claimed(recruitment.study, "C", recruitment, external_ids={"session": "SC"})
    shows(recruitment, {"A": SUBMITTED, "B": APPROVED})
    assert planned(recruitment).waits.startswith("3 of 4")
    # Who returned has left the place to the next one; who works there and is not here yet has one.
    shows(recruitment, {"D": RETURNED, "E": WORKING})
    now = planned(recruitment)
    assert (now.taken, now.next_places, now.waits) == (4, 4, "")
    order = order_next_round(recruitment, by=None)
    assert order.values == {"task": "T", "places": 8} and AuditEvent.objects.filter(verb="order extend").count() == 1
    assert order_next_round(recruitment, by=None) is None and "to be sent" in planned(recruitment).waits
    ended(order)
    assert planned(recruitment).waits.startswith("4 of 8") and order_next_round(recruitment, by=None) is None
    assert PanelOrder.objects.filter(operation="extend").count() == 1


def test_the_last_round_is_as_large_as_what_is_missing(recruitment, task):
    finished(recruitment, *"ABCD")
    shows(recruitment, dict.fromkeys("ABCD", SUBMITTED))
    assert planned(recruitment, people=6).next_places == 2
    assert planned(recruitment, people=6, lost_percent=50).next_places == 4  # of a round; two more than are missing
    assert "have finished" in planned(recruitment, people=4).waits
    # Work that came late, was replaced, or whose person left counts for nobody: somebody else is invited.
    now = timezone.now()
    for columns in (
        {"is_late": True, "released_at": now, "released_reason": "expired"},
        {"replaced_at": now},
        {"withdrawn_at": now},
    ):
        before = Assignment.objects.order_by("pk").values(*columns).first()
        first = QuerySet(Assignment).filter(pk=Assignment.objects.order_by("pk").first().pk)
        first.update(**columns)
        assert planned(recruitment, people=4).next_places == 1, columns
        first.update(**before)
    QuerySet(Study).filter(pk=recruitment.study.pk).update(target_n=5, target_cap=5)
    assert planned(recruitment).next_places == 1
    PanelTask.objects.update(places=5)
    finished(recruitment, "E")
    assert "capped at 5" in planned(recruitment).waits


def test_what_is_lost_is_measured_once_there_is_enough(recruitment, task):
    people = [f"P{n:02}" for n in range(20)]
    PanelTask.objects.update(places=19)
    finished(recruitment, *people[:15])
    shows(recruitment, dict.fromkeys(people[:19], SUBMITTED))
    now = planned(recruitment, people=24, round_places=30, lost_percent=10)
    assert (now.is_measured, now.used, now.lost, now.next_places) == (False, 19, 0.1, 10)
    PanelTask.objects.update(places=20)
    shows(recruitment, {people[19]: SUBMITTED})
    now = planned(recruitment, people=24, round_places=30, lost_percent=10)
    assert (now.is_measured, now.used, now.lost, now.next_places) == (True, 20, 0.25, 12)
    shows(recruitment, {f"Q{n}": SUBMITTED for n in range(12)})
    assert "53% of the places brought no finished work" in planned(recruitment, people=24, round_places=30).waits


def test_a_refused_round_waits_for_a_person(recruitment, task):
    finished(recruitment, *"ABCD")
    shows(recruitment, dict.fromkeys("ABCD", SUBMITTED))
    planned(recruitment)
    ended(order_next_round(recruitment, by=None), "refused", "Your balance is too low.")
    assert "Your balance is too low" in planned(recruitment).waits and order_next_round(recruitment, by=None) is None
    client = logged_in(user("owner"))
    address = f"/admin/annotators/recruitment/{recruitment.pk}/panel/rounds/"
    assert "Order the refused round again" in client.get(address).content.decode()
    client.post(address, {"again": "1"})
    assert list(PanelOrder.objects.filter(operation="extend").values_list("state", flat=True).order_by("pk")) == [
        "refused",
        "waiting",
    ]
    assert "There is no refused round" in client.post(address, {"again": "1"}, follow=True).content.decode()
    assert PanelOrder.objects.filter(operation="extend").count() == 2


def test_nothing_goes_out_where_nobody_may_come(recruitment, task):
    finished(recruitment, *"ABCD")
    shows(recruitment, dict.fromkeys("ABCD", SUBMITTED))
    planned(recruitment)
    Recruitment.objects.update(stopped_at=timezone.now())
    assert (
        order_next_round(Recruitment.objects.get(), by=None) is None
        and "stopped" in planned(Recruitment.objects.get()).waits
    )
    Recruitment.objects.update(stopped_at=None)
    PanelTask.objects.update(closed_at=timezone.now())
    assert "The task is stopped" in planned(Recruitment.objects.get()).waits
    PanelOrder.objects.filter(operation="publish").update(state="cancelled")
    assert "first round on the Publish page" in planned(Recruitment.objects.get()).waits


@pytest.mark.slow
def test_a_plan_is_declared_on_its_page(recruitment):
    client = logged_in(user("owner"))
    address = f"/admin/annotators/recruitment/{recruitment.pk}/panel/rounds/"
    assert 'name="people" value="24"' in client.get(address).content.decode()
    for wrong, words in (
        ({"people": "25", "round_places": "9", "lost_percent": "0"}, "The study needs only 24 people"),
        ({"people": "", "round_places": "9", "lost_percent": "0"}, "required"),
        ({"people": "9", "round_places": "0", "lost_percent": "51"}, "less than or equal to 50"),
    ):
        refused = client.post(address, wrong)
        assert refused.status_code == 400 and words in refused.content.decode()
    client.post(address, {"people": "24", "round_places": "9", "lost_percent": "10"})
    assert AuditEvent.objects.get(verb="plan rounds").data["round_places"] == 9
    page = client.get(address).content.decode()
    assert (
        "No round now." in page
        and "Publish the first round on the Publish page" in page
        and "10 %, as declared" in page
    )
    publish_page = client.get(f"/admin/annotators/recruitment/{recruitment.pk}/panel/publish/").content.decode()
    assert 'name="places" value="9"' in publish_page
    assert "Rounds: 24 people, 9 places at a time" in client.get(address.replace("rounds/", "")).content.decode()
    Recruitment.objects.update(channel="sona")  # without a panel to publish at, the link itself opens its places
    assert "Places in steps" in client.get(address).content.decode()


@pytest.mark.slow
def test_the_look_at_the_panel_orders_the_round_and_the_panel_has_it(settings, recruitment):
    cache.clear()
    with ProlificStandIn() as fake:
        settings.PROLIFIC_API = fake.url
        order_blocklist_and_publication(recruitment, by=None, **PUBLISHED, places=2)
        orders.save_round_plan(recruitment, by=None, people=6, round_places=2, lost_percent=0)

        def asked():
            job = schedule_sync(recruitment, by=None)
            jobs.claim_and_run_job(job.pk)
            Job.objects.update(request_token=None)
            return next(iter(fake.studies.values()))

        study = asked()
        assert study["total_available_places"] == 2
        people = [f"{n:x}f1a" * 6 for n in range(1, 3)]
        for person in people:
            session = fake.add_submission(study["id"], person)
            submitted(
                recruitment.study,
                person,
                recruitment=recruitment,
                external_ids={"person": person, "session": session, "task": study["id"]},
            )
            fake.submit_work(session, "A2K7PQ")
        assert asked()["total_available_places"] == 4 and PanelTask.objects.get().places == 4
        assert asked()["total_available_places"] == 4
