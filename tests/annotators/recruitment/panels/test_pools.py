"""Who took part is kept out at the panel too: of one list, many in an order, nobody twice, and never in place of our own door."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db.models import QuerySet
from django.utils import timezone

from annotators import tasks
from annotators.models import Annotator, Assignment, PanelBar, PanelOrder, PanelTask, Recruitment
from annotators.models.identity import store_person_id
from annotators.places import assign
from annotators.places.barrings import is_kept_out_by_other_study
from annotators.recruitment.channels.prolific.stand_in import TOKEN, ProlificStandIn
from annotators.recruitment.panels import orders
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import (
    annotators_to_block_at_panel,
    barred_annotators_with_panel_id,
    blocklist_name,
    order_blocklist_additions,
    order_blocklist_and_publication,
)
from annotators.recruitment.panels.sync import schedule_sync
from studies.models import Job, Study
from studies.services import jobs
from tests.builders import promised, spa_study, user
from tests.players import claimed, submitted

pytestmark = pytest.mark.django_db
PEOPLE = [f"{n:x}f1a" * 6 for n in range(1, 8)]


def changed(study, **columns) -> Study:
    QuerySet(Study).filter(pk=study.pk).update(**columns)
    return Study.objects.get(pk=study.pk)


def link(study, channel="prolific", secrets=None, pool="panel") -> Recruitment:
    made = Recruitment.objects.create(study=study, channel=channel, pool=pool, settings={"code_complete": "A2K7PQ"})
    store_or_delete_secrets(made, secrets or {"token": TOKEN}, by=None)
    return promised(made)


def known(assignment, person) -> Assignment:
    store_person_id(assignment.annotator, person)
    return assignment


def wanted(**changes):
    values = {
        "title": "t",
        "description": "d",
        "places": 9,
        "minutes": 10,
        "reward": Decimal("1.25"),
        "currency": "GBP",
    }
    return values | changes


def run_jobs():
    for job in Job.objects.filter(state="waiting"):
        jobs.claim_and_run_job(job.pk)
    assert not Job.objects.filter(state="failed").exists(), Job.objects.values_list("error")
    Job.objects.update(request_token=None)


@pytest.fixture(autouse=True)
def public(settings):
    cache.clear()
    settings.SITE_URL = "https://eval.example.org"


def test_a_group_shares_a_list_and_its_name_tells_nothing():
    one, other, alone = (Study(exclusion_group=group) for group in ("humour", "humour", ""))
    assert blocklist_name(one) == blocklist_name(other) != blocklist_name(alone) and blocklist_name(
        alone
    ) != blocklist_name(Study())
    assert "humour" not in blocklist_name(one) and len(blocklist_name(one)) < 40
    # People of the group may be asked there again: the list of the others would keep them out.
    several = Study(exclusion_group="humour", batches_per_annotator=3)
    assert blocklist_name(several) not in ("", blocklist_name(one))
    clone = Study(exclusion_group="humour", clone_of_id=7)
    assert blocklist_name(clone) != blocklist_name(one) and blocklist_name(Study(batches_per_annotator=2)) == ""


@pytest.mark.slow
def test_the_list_holds_whom_our_own_door_would_refuse():
    before = spa_study(user("owner"), target_n=12, exclusion_group="tales")
    study = spa_study(user("owner"), target_n=12, exclusion_group="tales", title="second")
    elsewhere = spa_study(user("owner"), target_n=12, title="elsewhere")
    here = link(study)
    known(submitted(before, PEOPLE[0]), PEOPLE[0])
    known(submitted(elsewhere, PEOPLE[1]), PEOPLE[1])
    known(claimed(study, PEOPLE[2], here), PEOPLE[2])
    back = known(claimed(study, PEOPLE[3], here), PEOPLE[3])
    assign.release_assignment(back.pk, "returned")
    claimed(before, PEOPLE[4])  # their id was never known, or is erased
    known(submitted(before, PEOPLE[5]), PEOPLE[5])
    Annotator.objects.filter(external_id=assign.hash_person_id("panel", PEOPLE[5])).update(pool="another")
    codes = {assign.hash_person_id("panel", person): n for n, person in enumerate(PEOPLE)}
    found = {
        codes[external] for external in barred_annotators_with_panel_id(here).values_list("external_id", flat=True)
    }
    assert found == {0, 2}
    refused = {
        n
        for n, person in enumerate(PEOPLE)
        if n not in (4, 5) and is_kept_out_by_other_study(study, assign.get_or_create_annotator("panel", person))
    }
    assert refused == {0}, "the list holds them, and those who are here already"
    changed(study, batches_per_annotator=2)
    assert {
        codes[e]
        for e in barred_annotators_with_panel_id(Recruitment.objects.get(pk=here.pk)).values_list(
            "external_id", flat=True
        )
    } == {0}


def test_many_are_one_order_and_nobody_is_ordered_twice(monkeypatch):
    monkeypatch.setattr(orders, "PEOPLE_PER_ORDER", 4)
    before = spa_study(user("owner"), target_n=12, exclusion_group="tales")
    for person in PEOPLE:
        known(claimed(before, person), person)
    here = link(spa_study(user("owner"), exclusion_group="tales", title="second"))
    assert order_blocklist_additions(here, by=None) == 7 and order_blocklist_additions(here, by=None) == 0
    assert [order.bars.count() for order in PanelOrder.objects.order_by("pk")] == [4, 3]
    kept = str(list(PanelOrder.objects.values())) + str(list(PanelBar.objects.values()))
    assert not [person for person in PEOPLE if person in kept]
    # Refused ones are tried again, and not before an hour is over.
    first = PanelOrder.objects.order_by("pk").first()
    PanelOrder.objects.filter(pk=first.pk).update(state="refused", sent_at=timezone.now(), ended_at=timezone.now())
    assert order_blocklist_additions(here, by=None) == 0
    PanelOrder.objects.filter(pk=first.pk).update(ended_at=timezone.now() - timedelta(hours=2))
    assert (
        annotators_to_block_at_panel(here).count() == 4 == order_blocklist_additions(here, by=None)
        and order_blocklist_additions(here, by=None) == 0
    )
    assert orders.count_listed_people_and_doubtful_orders(here) == {"listed": 0, "doubtful": 1}


def test_a_panel_without_lists_is_ordered_nothing():
    study = spa_study(user("owner"), target_n=12)
    here = link(study, "generic")
    known(claimed(study, PEOPLE[0], here), PEOPLE[0])
    assert order_blocklist_additions(here, by=None) == 0 and not PanelOrder.objects.exists()


def test_nothing_is_made_at_a_panel_where_nothing_was_published_from_here():
    study = spa_study(user("owner"), target_n=12)
    here = link(study)
    known(claimed(study, PEOPLE[0], here), PEOPLE[0])
    assert orders.order_blocklist_additions_if_published(here) == 0 and not PanelOrder.objects.exists()


@pytest.mark.slow
def test_at_prolific_those_of_the_first_study_do_not_see_the_second(settings, client):
    with ProlificStandIn() as fake:
        settings.PROLIFIC_API = fake.url
        before = spa_study(user("owner"), target_n=12, exclusion_group="tales")
        for person in PEOPLE[:3]:
            known(claimed(before, person), person)
        study = spa_study(user("owner"), target_n=12, exclusion_group="tales", title="second")
        here = link(study)
        another = fake.get_or_create_group_id(f"{blocklist_name(study)}x")
        fake.faults.append(("POST /participant-groups/", "drop after"))  # the group is made, and nobody hears of it
        order_blocklist_and_publication(here, by=None, **wanted())
        schedule_sync(here, by=None)
        run_jobs()
        schedule_sync(here, by=None)
        run_jobs()
        (group,) = set(fake.groups) - {another}
        assert (
            not fake.groups[another]
            and fake.group_names[group] == blocklist_name(study)
            and fake.groups[group] == sorted(PEOPLE[:3])
        )
        (made,) = fake.studies.values()
        assert made["filters"] == [{"filter_id": "participant_group_blocklist", "selected_values": [group]}]
        posts = [call for call, _ in fake.calls if call.startswith("POST")]
        assert posts.index(f"POST /participant-groups/{group}/participants/") < posts.index("POST /studies/")
        # Who starts now is on the list within a minute, in one request for all.
        for person in PEOPLE[3:5]:
            known(claimed(study, person, here), person)
        asked = len(fake.calls)
        assert tasks.schedule_pending_panel_syncs() == 1
        run_jobs()
        assert set(fake.groups[group]) == set(PEOPLE[:5])
        assert sum(call.endswith("/participants/") and call.startswith("POST") for call, _ in fake.calls[asked:]) == 1
        tasks.schedule_pending_panel_syncs()
        run_jobs()
        assert PanelOrder.objects.filter(operation="bar").count() == 2 and PanelTask.objects.count() == 1
        client.force_login(user("owner"))
        page = client.get(f"/admin/annotators/recruitment/{here.pk}/panel/").content.decode()
        assert "5 people who took part here" in page
