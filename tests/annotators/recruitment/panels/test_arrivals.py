"""Who has just arrived is asked about at their panel, by a job: trust rises, doubts reach a researcher, and nobody is refused."""

import pytest
from django.core.cache import cache
from django.test import Client

from annotators import tasks
from annotators.models import Annotator, Assignment, PanelEvent, PanelTask
from annotators.models.constants import APPROVED, EXPIRED, RETURNED, SCREENED_OUT, SUBMITTED, UNKNOWN, WORKING
from annotators.places.assign import hash_person_id
from annotators.recruitment.channels.prolific.stand_in import TOKEN, ProlificStandIn
from annotators.recruitment.panels import SubmissionSnapshot, arrival_checks, sync
from annotators.recruitment.panels.arrival_checks import (
    HAS_LEFT,
    OTHER_PERSON,
    UNKNOWN_TO_PANEL,
    VERIFIED,
    classify_arrival,
)
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from studies.models import Job
from studies.services import jobs
from tests import builders
from tests.admin_pages import logged_in
from tests.builders import spa_study, user

PERSON, OTHER = "5f1a" * 6, "6f1a" * 6


@pytest.fixture
def fake(settings, db):
    cache.clear()
    with ProlificStandIn() as fake:
        settings.PROLIFIC_API = fake.url
        yield fake


@pytest.fixture
def recruitment(fake):
    made = builders.recruitment(spa_study(user("owner"), target_n=12), "prolific", settings={"code_complete": "A2K7PQ"})
    store_or_delete_secrets(made, {"token": TOKEN}, by=None)
    PanelTask.objects.create(recruitment=made, external_id=fake.add_study())
    return made


def came(recruitment, session, person=PERSON) -> Assignment:
    task = PanelTask.objects.get(recruitment=recruitment).external_id
    asked = f"PROLIFIC_PID={person}&STUDY_ID={task}&SESSION_ID={session}"
    answer = Client().post(f"/e/{recruitment.key}/", {"agree": "1"}, QUERY_STRING=asked)
    assert answer.status_code == 302 and answer.url.startswith("/p/"), answer.content
    return Assignment.objects.get(code=answer.url.split("/")[2])


def looked(times=1) -> None:
    for _ in range(times):
        tasks.schedule_pending_panel_syncs()
        for job in Job.objects.filter(state="waiting"):
            jobs.claim_and_run_job(job.pk)
            job.refresh_from_db()
            assert job.state == "done", job.error
        Job.objects.update(request_token=None)


def trusts() -> list[str]:
    return list(Assignment.objects.order_by("pk").values_list("trust", flat=True))


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (SubmissionSnapshot("T", "S", "W", WORKING), VERIFIED),
        (SubmissionSnapshot("T", "S", "W", SUBMITTED), VERIFIED),
        (SubmissionSnapshot("T", "S", "W", APPROVED), VERIFIED),
        (SubmissionSnapshot("T", "S", "V", WORKING), OTHER_PERSON),
        (SubmissionSnapshot("U", "S", "W", WORKING), OTHER_PERSON),
        (None, UNKNOWN_TO_PANEL),
        (SubmissionSnapshot("T", "S", "W", UNKNOWN), ""),
        (SubmissionSnapshot("T", "S", "W", RETURNED), HAS_LEFT),
        (SubmissionSnapshot("T", "S", "W", EXPIRED), HAS_LEFT),
        (SubmissionSnapshot("T", "S", "W", SCREENED_OUT), HAS_LEFT),
    ],
)
def test_an_arrival_is_verified_by_person_task_and_state(shown, said):
    whose = Annotator(pool="prolific", external_id=hash_person_id("prolific", "W"))
    assert classify_arrival(Assignment(annotator=whose, external_ids={"task": "T", "session": "S"}), shown) == said
    if shown and shown.task == "T":
        assert classify_arrival(Assignment(annotator=whose, external_ids={"session": "S"}), shown) == said


@pytest.mark.slow
def test_trust_rises_after_the_start_and_the_start_asks_nobody(fake, recruitment):
    session = fake.add_submission(PanelTask.objects.get().external_id, PERSON)
    came(recruitment, session)
    assert not fake.calls and trusts() == ["claimed"] and not Job.objects.exists()
    looked()
    assert trusts() == ["verified"] and not arrival_checks.doubtful_arrivals(recruitment)
    asked = len(fake.calls)
    looked(2)
    assert len(fake.calls) == asked, "nobody is asked about twice"
    Assignment.objects.update(trust="confirmed")
    PanelEvent.objects.all().delete()
    looked()
    assert trusts() == ["confirmed"], "trust never falls"
    # Also where it rose while the panel was asked.
    mine = Assignment.objects.get()
    shown = SubmissionSnapshot(mine.external_ids["task"], session, PERSON, WORKING)
    assert arrival_checks.record_checks_and_verify_arrivals([mine], {session: shown}) == 0 and trusts() == ["confirmed"]


def test_doubts_reach_the_researcher_and_nobody_is_refused(fake, recruitment):
    task = PanelTask.objects.get().external_id
    theirs = fake.add_submission(task, OTHER)
    liar, nobody = came(recruitment, theirs), came(recruitment, "77aa" * 6, "7f1a" * 6)
    looked()
    assert trusts() == ["claimed", "claimed"]
    assert {one.pk: words for one, words in arrival_checks.doubtful_arrivals(recruitment)} == {
        liar.pk: arrival_checks.FLAG_MESSAGES[OTHER_PERSON],
        nobody.pk: arrival_checks.FLAG_MESSAGES[UNKNOWN_TO_PANEL],
    }
    client = logged_in(user("owner"))
    page = client.get(f"/admin/annotators/recruitment/{recruitment.pk}/panel/").content.decode()
    assert "Arrivals that do not match the panel" in page and liar.code[:8] in page and nobody.code[:8] in page
    assert Client().get(f"/p/{liar.code}/").status_code == 302
    # They come again from their own submission: what they did stays, the doubt goes.
    came(recruitment, fake.add_submission(task, PERSON))
    looked()
    assert trusts() == ["verified", "claimed"] and [
        one.pk for one, _ in arrival_checks.doubtful_arrivals(recruitment)
    ] == [nobody.pk]


def test_a_state_that_passes_by_and_a_busy_panel_are_asked_again(fake, recruitment):
    session = fake.add_submission(PanelTask.objects.get().external_id, PERSON, "PROCESSING")
    came(recruitment, session)
    looked()
    assert trusts() == ["claimed"] and not PanelEvent.objects.exists()
    fake.submissions[session]["status"] = "ACTIVE"
    fake.faults.append((f"GET /submissions/{session}/", "429"))
    looked()
    assert trusts() == ["claimed"] and sync.is_panel_backing_off(recruitment)
    asked = len(fake.calls)
    looked()
    assert len(fake.calls) == asked, "a panel that asked for quiet has it"
    cache.clear()
    looked()
    assert trusts() == ["verified"]


def test_a_token_that_is_wrong_throws_doubt_on_nobody(fake, recruitment):
    came(recruitment, fake.add_submission(PanelTask.objects.get().external_id, PERSON))
    store_or_delete_secrets(recruitment, {"token": "another-token-0123"}, by=None)
    looked()
    assert trusts() == ["claimed"] and not PanelEvent.objects.exists()


def test_no_id_of_the_panel_is_kept_with_an_arrival(fake, recruitment):
    session = fake.add_submission(PanelTask.objects.get().external_id, PERSON)
    came(recruitment, session)
    looked()
    told = str(PanelEvent.objects.values())
    assert PERSON not in told and session not in told
