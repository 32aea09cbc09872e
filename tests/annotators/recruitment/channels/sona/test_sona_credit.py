"""Credit by itself: who finishes is credited once, whatever breaks on the way."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.db.models import F
from django.test import Client
from django.utils import timezone

from annotators import tasks
from annotators.models import Annotator, Assignment, PanelOrder, PanelSubmission, Payment, Recruitment
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.pay import decisions, ledger
from annotators.pay.verdict_status import work_status
from annotators.recruitment.panels import alerts, orders, sync
from annotators.recruitment.panels.http_client import get_panel_service, store_or_delete_secrets
from annotators.recruitment.panels.orders import cancel_order
from annotators.recruitment.panels.reconcile import submissions_with_match_status
from annotators.recruitment.panels.sync import send_orders_and_sync_panel
from studies.models import AuditEvent, Job
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from tests.admin_pages import logged_in
from tests.annotators.closed_studies import closed_long_ago
from tests.annotators.recruitment.channels.sona.stand_in import (
    ANSWER,
    CREDIT,
    ERROR,
    NO_RESULT,
    SECRETS,
    SETTINGS,
    TOKEN,
)
from tests.builders import recruitment, spa_study, user
from tests.players import answered, claimed, submitted
from tests.robots import Robot


def finished(door, code="40351", **options) -> Assignment:
    ids = {"person": code, "session": code}
    return submitted(door.study, f"yourschool:123:{code}", recruitment=door, external_ids=ids, **options)


def asked(door) -> None:
    send_orders_and_sync_panel(door, lambda *_: None)


def looked() -> None:
    """As the job does it every minute."""
    tasks.schedule_pending_panel_syncs()
    for job in Job.objects.filter(state="waiting"):
        jobs.claim_and_run_job(job.pk)
        job.refresh_from_db()
        assert job.state == "done", job.error
    Job.objects.update(request_token=None)


def written() -> tuple:
    return (
        list(PanelSubmission.objects.order_by("pk").values()),
        list(PanelOrder.objects.order_by("pk").values()),
        list(Assignment.objects.order_by("pk").values()),
        list(Payment.objects.order_by("pk").values()),
        Annotator.objects.count(),
        AuditEvent.objects.count(),
    )


def half_an_hour_passes() -> None:
    Assignment.objects.update(
        **{name: F(name) - timedelta(minutes=31) for name in ("claimed_at", "started_at", "submitted_at")}
    )


def last_page(assignment) -> str:
    return " ".join(Client().get(f"/p/{assignment.code}/done/").content.decode().replace("&amp;", "&").split())


@pytest.mark.slow
def test_who_finishes_is_credited_within_a_minute_and_never_twice(door, fake, monkeypatch):
    robot = Robot(f"/e/{door.key}/?survey_code=40351")
    assert robot.play() == "Thank you"
    one = Assignment.objects.get()
    before = last_page(one)
    assert CREDIT in before and "You will receive your credit within a few minutes" in before
    looked()
    assert [code["survey_code"] for _, code in fake.asked] == ["40351"] and fake.granted == {"40351"}
    row, order = PanelSubmission.objects.get(), PanelOrder.objects.get()
    assert (row.state, row.assignment, row.annotator, row.decided_at) == (
        "approved",
        one,
        one.annotator,
        order.ended_at,
    )
    assert (order.token, order.state, order.by) == (f"approve-{row.pk}", "done", None)
    one.refresh_from_db()
    assert one.trust == "confirmed" and submissions_with_match_status(door).get().standing == "decided"
    after = last_page(one)
    assert "You have received your credit." in after and "within a few minutes" not in after
    assert "webstudy_credit" not in after and TOKEN not in after and "Return to SONA" in after
    assert "<b>Approved</b> · " in after and "<b>Paid</b>: not yet" not in after
    # Again, by either job, it changes nothing, and no job is asked for.
    as_it_stands, jobs_before = written(), Job.objects.count()
    monkeypatch.delattr(alerts, "import_submissions_and_release_places")
    monkeypatch.delattr(orders, "create_orders")
    looked()
    assert Job.objects.count() == jobs_before
    asked(door)
    sync.send_orders_sync_changes_and_verify_arrivals(door, get_panel_service(door), lambda *_: None)
    assert written() == as_it_stands and len(fake.asked) == 1


@pytest.mark.parametrize("broke_off_after", ["rows", "order", "answer"])
def test_a_run_that_broke_off_is_gone_on_with(door, fake, monkeypatch, broke_off_after):
    finished(door)
    name = {"rows": "create_orders", "order": "record_granted_credits", "answer": "record_granted_credits"}[
        broke_off_after
    ]
    with monkeypatch.context() as broken:
        if broke_off_after == "order":
            broken.setattr("annotators.recruitment.panels.sync.send_due_orders", lambda *_: None)

        def fails(*_, **__):
            raise KeyboardInterrupt

        broken.setattr(alerts, name, fails)
        with pytest.raises(KeyboardInterrupt):
            asked(door)
    assert not PanelSubmission.objects.filter(state="approved").exists()
    looked()
    assert PanelSubmission.objects.get().state == "approved" and PanelOrder.objects.get().state == "done"
    assert len(fake.asked) == 1


def test_a_lost_reply_is_asked_for_again_because_credit_is_a_state(door, fake):
    one = finished(door)
    fake.next_answer = "drop"
    asked(door)
    assert PanelOrder.objects.get().state == "sent" and PanelSubmission.objects.get().state == "working"
    assert "You will receive your credit within a few minutes" in last_page(one)
    looked()
    assert PanelOrder.objects.get().state == "done" and PanelSubmission.objects.get().state == "approved"
    assert len(fake.asked) == 2 and fake.granted == {"40351"}


@pytest.mark.slow
def test_what_sona_refuses_is_shown_and_never_ordered_again_by_itself(door, fake):
    one, other = finished(door), finished(door, "40352")
    fake.next_answer = ANSWER.format(ERROR.format("x") + NO_RESULT)  # with HTTP 200
    looked()
    order = PanelOrder.objects.get(submission__assignment=one)
    assert order.state == "refused" and "Invalid token x" in order.panel_message
    assert fake.asked[-1][1]["survey_code"] == "40352" and alerts.credit_status(other) == "given"
    page = last_page(one)
    assert CREDIT in page and "within a few minutes" not in page and "You have received your credit" not in page
    n = len(fake.asked)
    looked()
    asked(door)
    assert len(fake.asked) == n and not alerts.recruitment_ids_with_pending_credits([door])
    half_an_hour_passes()
    row = submissions_with_match_status(door).get(assignment=one)
    assert row.standing == "unsent"
    client = logged_in(user("owner"))
    panel = client.get(f"/admin/annotators/recruitment/{door.pk}/panel/").content.decode()
    assert (
        "Invalid token x" in panel
        and "no credit yet, 40351<" in panel  # and nothing that they entered there
        and "finished in heval, not submitted at the panel" in panel
    )
    # A person may order it anew, and only after a refusal.
    work = decisions.get_work_by_submission(door, row.pk)
    decisions.approve_work(work, user("owner"))
    asked(door)
    assert list(PanelOrder.objects.filter(submission=row).values_list("state", flat=True)) == ["refused", "done"]
    assert alerts.credit_status(one) == "given" and len(fake.asked) == n + 1


@pytest.mark.slow
def test_a_refusal_of_what_the_person_fetched_before_is_corrected_by_anyone_who_looks(door, fake):
    one = finished(door)
    fake.next_answer = ANSWER.format(ERROR.format("x") + NO_RESULT)
    looked()
    order, client = PanelOrder.objects.get(), logged_in(user("owner"))
    address = f"/admin/annotators/recruitment/{door.pk}/panel/"
    button = 'name="carried_out" value="yes">The panel shows it as done'
    assert button in client.get(address).content.decode()
    # Not to be sent again: that is what Approve is for.
    client.post(f"{address}order/{order.pk}/", {"carried_out": "no"})
    assert PanelOrder.objects.get().state == "refused"
    client.post(f"{address}order/{order.pk}/", {"carried_out": "yes"})
    n = len(fake.asked)
    asked(door)
    assert alerts.credit_status(one) == "given" and len(fake.asked) == n
    assert (
        submissions_with_match_status(door).get().standing == "decided"
        and Assignment.objects.get().trust == "confirmed"
    )
    assert button not in client.get(address).content.decode()


def test_an_order_that_waits_is_not_given_a_second_time_by_hand(door, fake):
    finished(door)
    fake.status = 429
    asked(door)
    row, order = PanelSubmission.objects.get(), PanelOrder.objects.get()
    assert order.state == "waiting"
    with pytest.raises(ActionRefused, match="ordered already"):
        decisions.approve_work(decisions.get_work_by_submission(door, row.pk), user("owner"))
    assert cancel_order(order, by=user("owner"))
    looked()
    assert PanelOrder.objects.count() == 1 and alerts.credit_status(row.assignment) == ""


def test_several_without_credit_are_an_alert_that_leads_to_the_answers(door, fake):
    for code in ("40351", "40352"):
        finished(door, code)
    fake.status = 500
    asked(door)
    half_an_hour_passes()
    (alert,) = alerts.find_panel_alerts(door)
    assert alert.kind == "unsent" and "was not granted" in alert.advice


@pytest.mark.slow
def test_without_a_token_nothing_is_ordered_and_the_last_page_is_as_ever(door, fake):
    store_or_delete_secrets(door, {"credit_token": ""}, by=None)
    one = finished(door)
    looked()
    assert not fake.asked and not PanelSubmission.objects.exists() and not PanelOrder.objects.exists()
    page = last_page(one)
    assert "Return to SONA" in page and "credit is given" not in page
    assert "Until then people get credit when they return" in (
        logged_in(user("owner")).get(f"/admin/annotators/recruitment/{door.pk}/panel/").content.decode()
    )
    # Kept later, it serves those who finished before.
    store_or_delete_secrets(door, SECRETS, by=None)
    looked()
    assert fake.granted == {"40351"}


@pytest.mark.django_db
def test_where_the_service_lacks_a_setting_nobody_is_promised_anything_and_no_job_fails():
    cache.clear()
    door = recruitment(spa_study(target_n=1), "sona", settings={})
    store_or_delete_secrets(door, SECRETS, by=None)
    one = finished(door)
    assert not alerts.recruitment_ids_with_pending_credits([door]) and alerts.credit_status(one) == ""
    looked()
    assert not Job.objects.filter(kind=sync.NOTIFICATIONS_KIND).exists()


@pytest.mark.slow
def test_who_leaves_after_the_last_page_is_credited_and_who_leaves_before_is_not(door, fake):
    done, left = finished(door), claimed(door.study, "left", door, external_ids={"session": "40352"})
    answered(left)
    for one in (done, left):
        withdraw_annotator_and_erase_texts(one)
    looked()
    assert fake.granted == {"40351"} and PanelSubmission.objects.get().assignment == done
    page = last_page(done)
    assert (
        "You have left the study" in page and "You have received your credit." in page and "webstudy_credit" not in page
    )


@pytest.mark.slow
def test_robots_and_people_without_a_sign_up_are_not_credited(door, fake):
    finished(door, origin="robot")
    submitted(door.study, "nobody", recruitment=door)
    submitted(door.study, "empty", recruitment=door, external_ids={"session": ""})
    asked(door)
    assert not fake.asked and not PanelSubmission.objects.exists()


def test_a_rehearsal_of_the_look_writes_nothing(door, fake):
    finished(door)
    before = written()
    call_command("study", "reconcile", door.study.code, "--dry-run")
    assert written() == before and not fake.asked


def test_a_sign_up_of_several_parts_is_credited_once_and_at_the_first(door, fake):
    first, second = finished(door), finished(door)
    third = claimed(door.study, "yourschool:123:40351", door, external_ids=first.external_ids)
    answered(third)
    looked()
    assert len(fake.asked) == 1 and PanelSubmission.objects.get().assignment == first
    assert alerts.credit_status(second) == "given" and alerts.credit_status(third) == ""
    asked(door)
    assert len(fake.asked) == 1 and not alerts.recruitment_ids_with_pending_credits([door])


def test_a_setting_that_was_mended_meanwhile_makes_nobody_twice(door, fake):
    """Who somebody is at SONA holds the study's number there: mended after they came, they are the same person all the same."""
    one = finished(door)
    people = Annotator.objects.count()
    Recruitment.objects.filter(pk=door.pk).update(settings=SETTINGS | {"experiment_id": "124"})
    looked()
    assert Annotator.objects.count() == people and PanelSubmission.objects.get().annotator == one.annotator


def test_credit_pays_no_money_that_is_owed(door, fake):
    Recruitment.objects.filter(pk=door.pk).update(reward=Decimal("2.50"))
    door.refresh_from_db()
    one = finished(door)
    ledger.update_ledger(door, by=None)
    looked()
    assert PanelSubmission.objects.get().state == "approved"
    assert list(Payment.objects.values_list("way", "state", "amount")) == [("hand", "due", Decimal("2.50"))]
    assert [stage.name for stage in work_status(Assignment.objects.get(pk=one.pk)).stages] == [
        "Received",
        "Approved",
        "Paid",
    ]


def test_nobody_promises_credit_that_does_not_come(door, fake):
    one = finished(door)
    assert alerts.credit_status(one) == "coming"
    one.is_late = True
    assert alerts.credit_status(one) == ""
    one.is_late, one.submitted_at = False, timezone.now() - timedelta(minutes=31)
    assert alerts.credit_status(one) == ""


def test_once_ids_are_erased_credit_stays_given(door, fake):
    one = finished(door)
    looked()
    withdraw_annotator_and_erase_texts(one)
    closed_long_ago(door.study, 400)
    tasks.erase_due_person_and_panel_ids()
    one = Assignment.objects.select_related("recruitment__study").get(pk=one.pk)
    assert one.external_ids == {} and alerts.credit_status(one) == "given"
    before = written()
    asked(door)
    assert written() == before and len(fake.asked) == 1
