"""From the panel's link to its approval, over the panels' real protocols: stand-ins on this machine, a dropped reply on the way."""

import pytest
from django.test import Client

from annotators.models import Assignment, PanelOrder, PanelTask
from annotators.pay.decisions import get_work_by_assignment, reject_work
from annotators.recruitment.channels.prolific.stand_in import TOKEN, ProlificStandIn
from annotators.recruitment.panels.reconcile import count_submissions_and_missing_by_status
from annotators.recruitment.panels.sync import schedule_sync
from studies.models import Job
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from tests.annotators.recruitment.arrivals import PEOPLE, came, finished, recruited
from tests.builders import user

pytestmark = pytest.mark.django_db


def asked(recruitment, **how) -> dict:
    jobs.claim_and_run_job(schedule_sync(recruitment, by=user("owner"), **how).pk)
    # The next one is a job of its own, however soon it comes.
    Job.objects.filter(kind="panel_sync").update(request_token=None)
    return count_submissions_and_missing_by_status(recruitment)


@pytest.mark.slow
def test_prolific(settings):
    with ProlificStandIn() as fake:
        settings.PROLIFIC_API = fake.url
        recruitment = recruited("prolific", {"token": TOKEN}, code_complete="A2K7PQ", code_screened_out="B3T4RW")
        task = fake.add_study()
        PanelTask.objects.create(recruitment=recruitment, external_id=task)
        session = {name: fake.add_submission(task, person) for name, person in PEOPLE.items()}
        mine = {
            name: came(recruitment, PROLIFIC_PID=person, STUDY_ID=task, SESSION_ID=session[name])
            for name, person in PEOPLE.items()
        }
        assert "cc=A2K7PQ" in finished(mine["done"])
        for name in ("done", "half"):
            fake.submit_work(session[name], "A2K7PQ")
        fake.submissions[session["gone"]]["status"] = "RETURNED"
        assert asked(recruitment) == {"matched": 1, "left": 1, "orphan": 1}
        trust = dict(Assignment.objects.values_list("code", "trust"))
        assert [trust[mine[name].code] for name in PEOPLE] == ["confirmed", "claimed", "claimed"]
        assert Assignment.objects.get(code=mine["gone"].code).released_reason == "returned"
        fake.faults.append((f"POST /submissions/{session['done']}/transition/", "drop after"))
        asked(recruitment, approves=True)
        assert PanelOrder.objects.get(operation="approve").state == "sent"
        assert asked(recruitment, approves=True) == {"decided": 1, "left": 1, "orphan": 1}
        assert PanelOrder.objects.get(operation="approve").state == "done"
        told = [path for path, _ in fake.calls if path.startswith("POST") and "transition" in path]
        assert len(told) == 1 and fake.submissions[session["done"]]["status"] == "APPROVED"


NOTE = "The comment is letters at random, where two sentences were asked for."
WHY = "Where the study asks for two sentences about what you read there are letters at random, and the same ones in every place."


@pytest.mark.slow
def test_prolific_rejects_what_a_person_decided_and_nothing_with_too_few_words(settings):
    with ProlificStandIn() as fake:
        settings.PROLIFIC_API = fake.url
        recruitment = recruited("prolific", {"token": TOKEN}, code_complete="A2K7PQ")
        task = fake.add_study()
        PanelTask.objects.create(recruitment=recruitment, external_id=task)
        session = fake.add_submission(task, PEOPLE["done"])
        one = came(recruitment, PROLIFIC_PID=PEOPLE["done"], STUDY_ID=task, SESSION_ID=session)
        finished(one)
        fake.submit_work(session, "A2K7PQ")
        asked(recruitment)
        with pytest.raises(ActionRefused, match="at least 100"):
            reject_work(get_work_by_assignment(recruitment, one.pk), "LOW_EFFORT", "Letters.", user("owner"), NOTE)
        asked(recruitment)
        assert not PanelOrder.objects.filter(operation="reject").exists()
        assert not [path for path, _ in fake.calls if "transition" in path]
        reject_work(get_work_by_assignment(recruitment, one.pk), "LOW_EFFORT", WHY, user("owner"), NOTE)
        assert asked(recruitment) == {"decided": 1} and fake.submissions[session]["status"] == "REJECTED"
        (body,) = [body for path, body in fake.calls if "transition" in path]
        assert body == {"action": "REJECT", "message": WHY, "rejection_category": "LOW_EFFORT"}
        page = Client().get(f"/p/{one.code}/done/").content.decode()
        assert WHY in page and NOTE not in page
