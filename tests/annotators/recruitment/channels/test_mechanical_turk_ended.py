"""Links of Mechanical Turk in a filled database: the service has ended, and what they hold is read as before."""

from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone

from analysis.api import pay
from analysis.report.build import build_report
from annotators.models import (
    Annotator,
    Assignment,
    PanelOrder,
    PanelSubmission,
    PanelTask,
    Payment,
    Verdict,
)
from annotators.pay import ledger
from annotators.places import assign
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.reconcile import (
    count_submissions_and_missing_by_status,
    import_submissions_and_release_places,
)
from annotators.recruitment.panels.sync import recruitments_to_sync
from tests.admin_pages import logged_in
from tests.builders import promised, recruitment, spa_study, user
from tests.players import submitted

pytestmark = pytest.mark.django_db
SETTINGS = {
    "variant": "frame",
    "submits": ["screened_out"],
    "keywords": "stories",
    "countries": "US, GB",
    "approved_percent": 95,
}
WORDS = "The work was not done as the HIT asked."


@pytest.fixture
def door():
    """One person approved and paid, one rejected there, one whose bonus was ordered, one whose approval was never sent."""
    study = spa_study(user("owner"), target_n=6)
    door = promised(recruitment(study, "mturk", settings=SETTINGS, currency="USD"))
    task = PanelTask.objects.create(recruitment=door, external_id="heval-0123456789abcdef01234567", places=9)
    now = timezone.now()
    sent = {"state": "done", "sent_at": now, "ended_at": now}
    PanelOrder.objects.create(
        recruitment=door,
        operation="publish",
        token="publish-1",
        values={"reward": "2.50", "places": 9},
        result={"task": task.external_id, "hits": ["3HIT1"]},
        **sent,
    )
    rows = {}
    for n, (name, state) in enumerate(
        [("paid", "approved"), ("no", "rejected"), ("extra", "approved"), ("new", "submitted")]
    ):
        ids = {"session": f"3ASG{n}", "task": "3HIT1", "submit_to": "https://www.mturk.com"}
        one = submitted(study, f"A{n}WORKER", recruitment=door, external_ids=ids)
        key = assign.hash_person_id("mturk", f"A{n}WORKER")
        Annotator.objects.filter(pk=one.annotator_id).update(pool="mturk", external_id=key)
        rows[name] = PanelSubmission.objects.create(
            recruitment=door,
            task=task,
            external_id=f"3ASG{n}",
            annotator=one.annotator,
            assignment=one,
            state=state,
            word=state.title(),
            source="service",
        )
    rejection = Verdict.objects.create(
        submission=rows["no"],
        assignment=rows["no"].assignment,
        kind="reject",
        category="work",
        message=WORDS,
        by=user("owner"),
    )
    PanelOrder.objects.create(
        recruitment=door, operation="reject", token=f"reject-{rejection.pk}", submission=rows["no"], **sent
    )
    ledger.update_ledger(door, by=None)
    bonus = {"recruitment": door, "operation": "bonus", "values": {"amount": "1.00"}, "submission": rows["extra"]}
    order = PanelOrder.objects.create(**bonus, token="payment-1", state="unclear", sent_at=now)
    Payment.objects.create(
        assignment=rows["extra"].assignment,
        kind="bonus",
        amount=1,
        currency="USD",
        way="bonus",
        state="ordered",
        order=order,
        reason="thanks",
    )
    PanelOrder.objects.create(
        recruitment=door,
        operation="approve",
        token="approve-1",
        submission=rows["new"],
        state="cancelled",
        ended_at=now,
    )
    return door


def payments() -> list[tuple]:
    return list(Payment.objects.order_by("pk").values_list("kind", "amount", "way", "state"))


@pytest.mark.slow
def test_what_it_holds_is_read_on_every_page(door):
    assert payments() == [
        ("base", Decimal("2.50"), "approval", "paid"),
        ("base", Decimal("2.50"), "approval", "paid"),
        ("base", Decimal("2.50"), "approval", "due"),
        ("bonus", Decimal("1.00"), "bonus", "ordered"),
    ]
    ledger.update_ledger(door, by=None)
    assert len(payments()) == 4, "nothing is owed a second time"
    client, link = logged_in(user("owner")), f"/admin/annotators/recruitment/{door.pk}"
    no = PanelSubmission.objects.get(state="rejected")
    pages = {
        f"{link}/change/": ["Amazon Mechanical Turk (ended)", "The service has ended."],
        f"{link}/panel/": ["approved or rejected", "The panel's exported file", "heval-0123456789abcdef"],
        f"{link}/pay/": ["2.50", "thanks", "ordered at the panel"],
        f"{link}/panel/submission/{no.pk}/": [WORDS],
        f"{link}/rehearsal/": ["Rehearse"],
        f"{link}/demographics/": [],
        f"/admin/studies/study/{door.study_id}/pay/": [door.key],
        f"/admin/studies/study/{door.study_id}/collecting/": ["Amazon Mechanical Turk (ended)"],
        f"/admin/annotators/assignment/{no.assignment_id}/change/": [],
        "/admin/annotators/recruitment/": [door.key],
        "/admin/annotators/recruitment/?channel__exact=mturk": [door.key],
        f"/api/v1/studies/{door.study.code}/exports/assignments.csv": [",mturk,"],
    }
    for address, words in pages.items():
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.status_code)
        text = answer.getvalue().decode()
        assert not [one for one in words if one not in text], address
    assert build_report(door.study, {"resamples": 99})["n"]["kept"] == 4
    (money,) = pay.build_pay_report_by_arm_and_link(door.study)["links"]
    assert (money["paid"], money["ordered"], money["due"]) == ("5.00", "1.00", "2.50")


@pytest.mark.slow
def test_their_last_page_leads_to_the_panel_and_may_be_framed_by_it(door):
    for channel, site in (("mturk", "https://www.mturk.com"), ("mturk_sandbox", "https://workersandbox.mturk.com")):
        type(door).objects.filter(pk=door.pk).update(channel=channel)
        one = Assignment.objects.exclude(panel_submissions__state="submitted").first()
        PanelSubmission.objects.filter(assignment=one).delete()
        page = Client().get(f"/p/{one.code}/done/")
        assert f'action="{site}/mturk/externalSubmit"' in page.content.decode()
        assert site in page["Content-Security-Policy"].split("frame-ancestors")[1]


@pytest.mark.slow
def test_no_new_link_is_made(admin_client, door):
    address = "/admin/annotators/recruitment/add/"
    page = admin_client.get(address).content.decode()
    assert 'value="mturk"' not in page and 'value="mturk_sandbox"' not in page and 'value="external_question"' in page
    refused = admin_client.post(address, {"study": door.study.pk, "channel": "mturk"})
    assert refused.status_code == 200 and "not one of the available choices" in refused.content.decode()


@pytest.mark.slow
def test_the_file_of_its_site_is_read(door):
    head = "HITId,Reward,AssignmentId,WorkerId,AssignmentStatus,AutoApprovalTime,Answer.receipt\n"
    row = "3HIT1,$2.50,3ASG3,A3WORKER,Approved,Tue May 05 11:52:41 PDT 2026,R1\n"
    channel = REGISTRY["mturk"]
    assert channel.can_read_export_file(door)
    before = count_submissions_and_missing_by_status(door)
    summary = import_submissions_and_release_places(door, channel.read_export(door, head + row), "file")
    assert (summary.seen, summary.new, summary.changed) == (1, 0, 1)
    assert count_submissions_and_missing_by_status(door)["decided"] == before["decided"] + 1
    assert payments()[2] == ("base", Decimal("2.50"), "approval", "paid")
    # The task under which it was published stays.
    assert set(PanelSubmission.objects.values_list("task__external_id", flat=True)) == {
        "heval-0123456789abcdef01234567"
    }


@pytest.mark.slow
def test_of_an_order_whose_answer_never_came_a_person_says_what_became(door):
    other = recruitment(door.study, "prolific")
    store_or_delete_secrets(other, {"token": "t"}, by=None)
    assert list(recruitments_to_sync()) == [other]
    order = PanelOrder.objects.get(token="payment-1")
    address = f"/admin/annotators/recruitment/{door.pk}/panel/order/{order.pk}/"
    assert logged_in(user("owner")).post(address, {"carried_out": "yes"}).status_code == 302
    ledger.update_ledger(door, by=None)
    assert payments()[3] == ("bonus", Decimal("1.00"), "bonus", "paid")
