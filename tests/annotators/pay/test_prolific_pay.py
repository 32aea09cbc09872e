"""Pay over Prolific's real protocol: a stand-in on this machine, and a reply that is lost."""

from decimal import Decimal

import pytest

from annotators.models import PanelOrder, PanelTask, Payment
from annotators.pay import ledger
from annotators.places import assign
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific.stand_in import TOKEN, ProlificStandIn
from annotators.recruitment.panels.orders import resolve_order
from studies.models import Job
from studies.services import jobs
from tests.annotators.recruitment.arrivals import PEOPLE, came, finished, recruited
from tests.builders import promised, user

pytestmark = pytest.mark.django_db


def asked():
    from annotators.recruitment.panels.sync import schedule_sync

    recruitment = PanelTask.objects.select_related("recruitment__study").get().recruitment
    jobs.claim_and_run_job(schedule_sync(recruitment, by=user("owner")).pk)
    Job.objects.filter(kind="panel_sync").update(request_token=None)


def states():
    return sorted(Payment.objects.values_list("kind", "way", "amount", "state"))


@pytest.mark.slow
def test_screening_out_a_share_and_a_bonus_are_paid_once(settings):
    with ProlificStandIn() as fake:
        settings.PROLIFIC_API = fake.url
        recruitment = promised(
            recruited("prolific", {"token": TOKEN}, code_complete="A2K7PQ"), screened_out="0.30", withdrawn="share"
        )
        task = fake.add_study()
        PanelTask.objects.create(recruitment=recruitment, external_id=task)
        session = {name: fake.add_submission(task, person) for name, person in PEOPLE.items()}
        mine = {
            name: came(recruitment, PROLIFIC_PID=person, STUDY_ID=task, SESSION_ID=session[name])
            for name, person in PEOPLE.items()
        }
        page = finished(mine["done"])
        assert (
            "You are paid <b>2.50 USD</b>. You receive it through Prolific, once the researchers approve your work there."
            in page
        )
        assign.release_assignment(mine["half"].pk, "screened_out")
        fake.submit_work(session["done"], "A2K7PQ")
        fake.submit_work(session["half"], "B3T4RW")
        asked()
        assert states() == [
            ("base", "approval", Decimal("2.50"), "due"),
            ("outcome", "screen_out", Decimal("0.30"), "due"),
        ]
        ledger.add_extra_payments(
            recruitment, [ledger.ExtraPayment(mine["done"], Decimal("1.20"), "Thank you")], "bonus", user("owner")
        )
        can = REGISTRY["prolific"].service(recruitment, {"token": TOKEN}).operations
        assert ledger.order_due_payments_at_panel(recruitment, can, Decimal("1.50"), user("owner")) == 2
        # The bonus is paid and the reply is lost: Prolific cannot tell, nothing is sent again, a person looks.
        fake.faults.append(("POST /bulk-bonus-payments/", "drop after"))
        for _ in range(3):
            asked()
        assert fake.submissions[session["half"]]["bonus_payments"] == [30]
        assert fake.submissions[session["done"]]["bonus_payments"] == [120]
        assert states()[1:] == [
            ("bonus", "bonus", Decimal("1.20"), "ordered"),
            ("outcome", "screen_out", Decimal("0.30"), "paid"),
        ]
        assert resolve_order(PanelOrder.objects.get(operation="bonus"), True, user("owner"))
        fake.submissions[session["done"]]["status"] = "APPROVED"
        asked()
        assert [state for *_, state in states()] == ["paid"] * 3
        assert fake.submissions[session["done"]]["bonus_payments"] == [120]
