"""Places of any link in steps: the next people may come when the last ones have finished."""

import json

import pytest
from django.test import Client
from django.utils import timezone

from annotators.models import Assignment, PanelPlan
from annotators.places.steps import step_status, steps_of_study
from annotators.recruitment.channels import REGISTRY
from studies.models import AuditEvent
from tests.admin_pages import errors_of, logged_in
from tests.analysis.api.rest import api_of, body_of
from tests.builders import add_choice, draft_study, launched, panel, promised, user

pytestmark = pytest.mark.django_db


@pytest.fixture
def link():
    study = draft_study(owner=user("owner"), systems=("alpha", "beta"), prompts=20, target_n=10, consent="")
    add_choice(study, m=2, stopping="none", strategy="any")
    return promised(panel(launched(study)))


def planned(link, people=6, places=2) -> PanelPlan:
    return PanelPlan.objects.create(recruitment=link, people=people, round_places=places)


def comes(link, person):
    """Press Start on the link's page."""
    return Client().post(f"/e/{link.key}/?who={person}&session=S{person}", {"start": "1"})


def works(link) -> list[Assignment]:
    return list(link.assignments.filter(batch__isnull=False).order_by("pk"))


def finish(assignment) -> None:
    now = timezone.now()
    Assignment.objects.filter(pk=assignment.pk).update(started_at=now, submitted_at=now)


def test_the_next_step_opens_when_the_last_one_is_finished(link):
    plan = planned(link)
    assert [comes(link, person).status_code for person in ("A", "B")] == [302, 302]
    waits = comes(link, "C")
    assert waits.status_code == 200 and "No place right now" in waits.content.decode()
    assert comes(link, "A").status_code == 302, "who has begun goes on"
    first, second = works(link)
    finish(first)
    assert "No place right now" in comes(link, "C").content.decode(), "the step is not finished"
    finish(second)
    assert [comes(link, person).status_code for person in ("C", "D")] == [302, 302]
    status = step_status(plan)
    assert (status.number, status.opened, status.finished, status.at_work, status.free) == (2, 4, 2, 2, 0)
    assert "No place right now" in comes(link, "E").content.decode()
    Assignment.objects.filter(pk=works(link)[-1].pk).update(released_at=timezone.now(), released_reason="returned")
    assert comes(link, "E").status_code == 302, "a place that was given back is free again"


def test_after_the_last_step_the_link_is_full_although_the_study_has_places(link):
    planned(link, people=2, places=2)
    for person in ("A", "B"):
        comes(link, person)
    for work in works(link):
        finish(work)
    full = comes(link, "C").content.decode()
    assert "No place right now" not in full and len(works(link)) == 2
    assert link.assignments.get(batch=None).released_reason == "full", "the panel's word for it is known"
    other = promised(panel(link.study, key="another"))
    assert comes(other, "D").status_code == 302, "another link of the study has no plan"


def test_every_link_at_which_heval_publishes_nothing_has_the_page_of_steps(link):
    client = logged_in(link.study.owner)
    for channel in ("open_link", "invitation", "connect", "sona", "generic"):
        assert not REGISTRY[channel].publishes
    page = client.get(f"/admin/annotators/recruitment/{link.pk}/change/").content.decode()
    address = f"/admin/annotators/recruitment/{link.pk}/panel/rounds/"
    assert address in page
    assert "Plan the steps" in client.get(address).content.decode()
    assert client.post(address, {"people": "99", "round_places": "2"}).status_code == 400
    done = client.post(address, {"people": "6", "round_places": "2"}, follow=True)
    assert "The plan is saved." in errors_of(done)
    comes(link, "A")
    text = client.get(address).content.decode()
    assert "<b>Step 1</b>: 1 place free." in text
    assert AuditEvent.objects.get(verb="plan rounds").data["round_places"] == 2


def test_rest_says_how_far_the_steps_are(link):
    planned(link)
    comes(link, "A")
    found = json.loads(body_of(api_of(link.study.owner).send("GET", f"studies/{link.study.code}/progress/")))
    assert found["steps"] == [
        {
            "link": link.pk,
            "channel": "generic",
            "people": 6,
            "step_places": 2,
            "opened": 2,
            "finished": 0,
            "at_work": 1,
            "free": 1,
        }
    ]
    assert [status.free for _, status in steps_of_study(link.study)] == [1]
