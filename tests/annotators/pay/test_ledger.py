"""What is owed is written down once, whatever became of the person's answers, and what became of it is followed to its end."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from annotators.models import (
    Assignment,
    Exclusion,
    OutcomePay,
    PanelOrder,
    PanelSubmission,
    PanelTask,
    Payment,
    Recruitment,
)
from annotators.participation.parts import parts_overview_context
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.pay import ledger
from annotators.pay.ledger import ExtraPayment, order_due_payments_at_panel, payments_orderable_at_panel, update_ledger
from annotators.pay.promises import build_default_outcome_pays, is_pay_reduced, outcome_labels_missing_required_pay_rule
from annotators.places import assign
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels.orders import get_or_create_order, send_due_orders
from studies.models import Arm, AuditEvent, Study
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused
from tests.annotators.pay.submissions import shown
from tests.annotators.recruitment.pretend import Pretend, recruitment_of, speaks
from tests.builders import panel, promised, spa_study, user
from tests.players import answered, claimed, submitted
from tests.races import all_at_once

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]
State = Payment.State


def rows(recruitment):
    found = Payment.objects.filter(assignment__recruitment=recruitment).order_by("pk")
    return [(str(p.assignment.annotator.pk), p.kind, str(p.amount), p.way, p.state) for p in found]


def brief(recruitment):
    return [row[1:] for row in rows(recruitment)]


def half(study, recruitment, person, pages=2):
    """Somebody who sends so many pages and no more."""
    mine = claimed(study, person, recruitment)
    assign.mark_started_and_extend_deadline(mine)
    for _ in range(pages):
        answered(mine)
    return Assignment.objects.get(pk=mine.pk)


@pytest.fixture
def service(monkeypatch):
    made = Pretend()
    speaks(monkeypatch, made)
    monkeypatch.setattr(type(REGISTRY["generic"]), "pays_by", frozenset({"approval", "bonus", "screen_out"}))
    return made


def test_each_way_to_end_is_paid_what_was_promised_and_once():
    study = spa_study(user("owner"), target_n=12)
    recruitment = promised(
        panel(study), screened_out="0.30", failed_checks="all", full="0.10", fault="all", withdrawn="share"
    )
    for person, reason in (
        ("screened", "screened_out"),
        ("failed", "failed_checks"),
        ("gone", "expired"),
        ("back", "returned"),
    ):
        assign.release_assignment(half(study, recruitment, person, 1).pk, reason)
    withdraw_annotator_and_erase_texts(half(study, recruitment, "left"))
    withdraw_annotator_and_erase_texts(half(study, recruitment, "left at once", 0))
    late = half(study, recruitment, "in the middle")
    done = submitted(study, "done", recruitment=recruitment)
    # Finished and then withdrew: nothing is taken. Left out of the analysis: neither.
    withdraw_annotator_and_erase_texts(submitted(study, "done and left", recruitment=recruitment))
    Exclusion.objects.create(assignment=done, reason="too fast", by=user("owner"))
    turned_away = assign.get_or_create_annotator("panel", "late")
    Assignment.objects.create(
        study=study,
        annotator=turned_away,
        recruitment=recruitment,
        design=done.design,
        released_at=Now(),
        released_reason="full",
    )
    # They had come to a full study first, and were let in later: the place counts.
    let_in = Assignment.objects.create(
        study=study,
        annotator=done.annotator,
        recruitment=recruitment,
        design=done.design,
        ordinal=9,
        released_at=Now(),
        released_reason="full",
    )
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    assign.release_expired_places()
    assert Assignment.objects.get(pk=late.pk).released_reason == "expired"
    first = update_ledger(recruitment, by=None)
    by_person = {
        p.assignment_id: (p.kind, str(p.amount)) for p in Payment.objects.filter(assignment__recruitment=recruitment)
    }
    ways = {a.annotator_id: a.pk for a in Assignment.objects.exclude(pk=let_in.pk)}
    names = {
        name: ways[assign.get_or_create_annotator("panel", name).pk]
        for name in ("screened", "failed", "left", "in the middle", "done", "done and left", "late")
    }
    assert by_person == {
        names["screened"]: ("outcome", "0.30"),
        names["failed"]: ("outcome", "2.50"),
        names["late"]: ("outcome", "0.10"),
        names["in the middle"]: ("outcome", "2.50"),
        names["done"]: ("base", "2.50"),
        names["done and left"]: ("base", "2.50"),
        names["left"]: ("outcome", by_person[names["left"]][1]),
    }
    share = Decimal(by_person[names["left"]][1])
    pages = len(ledger.assignments_considered_for_pay(recruitment).get(pk=names["done"]).visits.all())
    assert share == (Decimal("2.50") * 2 / pages).quantize(Decimal("0.01"), "ROUND_UP") and 0 < share < Decimal("2.50")
    assert (first.due, first.amount) == (7, sum(Decimal(amount) for _, amount in by_person.values()))
    assert update_ledger(recruitment, by=None).due == 0 and len(rows(recruitment)) == 7
    assert AuditEvent.objects.filter(verb="pay due").count() == 1


def test_a_dry_look_writes_nothing_and_queries_do_not_grow_with_people():
    study = spa_study(user("owner"), target_n=12)
    recruitment = panel(study)
    submitted(study, "one", recruitment=recruitment)
    assert update_ledger(recruitment, by=None, dry_run=True).due == 1 and not Payment.objects.exists()
    with CaptureQueriesContext(connection) as few:
        update_ledger(recruitment, by=None, dry_run=True)
    for person in ("two", "three", "four"):
        submitted(study, person, recruitment=recruitment)
    with CaptureQueriesContext(connection) as more:
        assert update_ledger(recruitment, by=None, dry_run=True).due == 4
    assert len(more) == len(few)


@pytest.mark.django_db(transaction=True)
def test_two_looks_at_once_write_it_down_once():
    study = spa_study(user("owner"), target_n=12)
    recruitment = panel(study)
    for person in "abc":
        submitted(study, person, recruitment=recruitment)
    told = all_at_once(lambda _: update_ledger(recruitment, by=None).due, range(6), 6)
    assert sorted(told) == [0] * 5 + [3] and len(rows(recruitment)) == 3


def test_pay_raised_during_the_run_pays_the_difference_once():
    study = spa_study(user("owner"), target_n=12)
    recruitment = panel(study)
    submitted(study, "early", recruitment=recruitment)
    update_ledger(recruitment, by=None)
    ledger.mark_payments_paid_and_erase_withdrawn_ids(
        recruitment, list(Payment.objects.values_list("pk", flat=True)), user("owner")
    )
    arm = Arm.objects.get(study=study)
    lifecycle.amend(study, {"arm": {arm.pk: {"reward": Decimal("3.00")}}}, user("owner"), "Pay rises.")
    recruitment = Recruitment.objects.get(pk=recruitment.pk)
    submitted(study, "later", recruitment=recruitment)
    assert [update_ledger(recruitment, by=None).due for _ in range(2)] == [2, 0]
    assert brief(recruitment) == [
        ("base", "2.50", "hand", "paid"),
        ("difference", "0.50", "hand", "due"),
        ("base", "3.00", "hand", "due"),
    ]
    # The link's own pay goes before the arm's.
    Recruitment.objects.filter(pk=recruitment.pk).update(reward=Decimal("3.25"))
    update_ledger(recruitment, by=None)
    assert brief(recruitment)[3:] == [("difference", "0.25", "hand", "due"), ("difference", "0.25", "hand", "due")]
    # Who has a list of parts reads there what they are paid now.
    early = Assignment.objects.filter(recruitment=recruitment).select_related("study", "recruitment").first()
    assert parts_overview_context(early)["earned"] == Decimal("3.25")


def test_an_arm_that_names_no_pay_is_not_paid_less_than_the_study_by_an_amendment():
    study = spa_study(user("owner"), target_n=12)
    arm = Arm.objects.get(study=study)
    for lower in (Decimal("2.49"), Decimal(0)):
        with pytest.raises(lifecycle.ActionRefused, match="Pay can only rise"):
            lifecycle.amend(study, {"arm": {arm.pk: {"reward": lower}}}, user("owner"), "Cheaper.")
    lifecycle.amend(study, {"arm": {arm.pk: {"reward": Decimal("2.60")}}}, user("owner"), "Pay rises.")
    with pytest.raises(lifecycle.ActionRefused, match="Pay can only rise"):
        lifecycle.amend(study, {"arm": {arm.pk: {"reward": None}}}, user("owner"), "The study's again.")


def test_a_panel_pays_by_approving_and_the_rest_as_a_bonus(service):
    study = spa_study(user("owner"), target_n=12)
    recruitment = promised(recruitment_of(study), screened_out="0.30", withdrawn="1")
    done, rejected = (submitted(study, name, recruitment=recruitment) for name in ("done", "rejected"))
    screened = half(study, recruitment, "screened", 1)
    assign.release_assignment(screened.pk, "screened_out")
    shown(recruitment, (done, "submitted"), (rejected, "submitted"), (screened, "submitted"))
    assert brief(recruitment) == [
        ("base", "2.50", "approval", "due"),
        ("base", "2.50", "approval", "due"),
        ("outcome", "0.30", "screen_out", "due"),
    ]
    # The task was published for 2.50; the link pays more now.
    get_or_create_order(
        recruitment,
        "publish",
        "publish-1",
        by=None,
        title="t",
        description="d",
        url="u",
        reward="2.50",
        currency="USD",
        minutes=1,
        places=3,
        name="n",
    )
    PanelOrder.objects.update(state="done", sent_at=Now(), ended_at=Now(), result={"task": "T"})
    Recruitment.objects.filter(pk=recruitment.pk).update(reward=Decimal("3.00"))
    shown(recruitment, (done, "approved"), (rejected, "rejected"), (screened, "screened_out"))
    assert brief(recruitment) == [
        ("base", "2.50", "approval", "paid"),
        ("base", "2.50", "approval", "cancelled"),
        ("outcome", "0.30", "screen_out", "paid"),
        ("difference", "0.50", "bonus", "due"),
    ]
    # What was rejected and is approved after all is paid, difference and all.
    shown(recruitment, (rejected, "approved"))
    assert brief(recruitment)[4:] == [("base", "2.50", "approval", "paid"), ("difference", "0.50", "bonus", "due")]
    shown(recruitment, (rejected, "approved"))
    assert len(brief(recruitment)) == 6


def test_who_left_and_is_approved_all_the_same_is_not_paid_twice(service):
    study = spa_study(user("owner"), target_n=12)
    recruitment = promised(recruitment_of(study), withdrawn="1")
    left = half(study, recruitment, "left")
    withdraw_annotator_and_erase_texts(left)
    shown(recruitment, (left, "returned"))
    assert brief(recruitment) == [("outcome", "1.00", "bonus", "due")]
    shown(recruitment, (left, "approved"))
    assert brief(recruitment) == [("outcome", "1.00", "bonus", "cancelled"), ("outcome", "2.50", "approval", "paid")]


def test_a_bonus_whose_reply_was_lost_is_paid_once_and_becomes_paid(service):
    study = spa_study(user("owner"), target_n=12)
    recruitment = recruitment_of(study)
    done = submitted(study, "done", recruitment=recruitment)
    shown(recruitment, (done, "approved"))
    extra = ExtraPayment(done, Decimal("1.20"), "A long explanation.")
    assert [ledger.add_extra_payments(recruitment, [extra], "bonus", user("owner")) for _ in range(2)] == [1, 0]
    with pytest.raises(ActionRefused, match=r"The total is now 1\.20, but you entered 1\.00"):
        order_due_payments_at_panel(recruitment, service.operations, Decimal("1.00"), user("owner"))
    assert order_due_payments_at_panel(recruitment, service.operations, Decimal("1.20"), user("owner")) == 1
    with pytest.raises(ActionRefused, match="No due payment"):
        order_due_payments_at_panel(recruitment, service.operations, Decimal("1.20"), user("owner"))
    assert brief(recruitment)[1:] == [("bonus", "1.20", "bonus", "ordered")]
    service.faults = ["lost after"]
    send_due_orders(recruitment, service, lambda *_: None)
    update_ledger(recruitment, by=None)
    assert PanelOrder.objects.get().state == "sent" and brief(recruitment)[1][-1] == "ordered"
    send_due_orders(recruitment, service, lambda *_: None)
    assert update_ledger(recruitment, by=None).paid == 1 and brief(recruitment)[1][-1] == "paid"
    assert len(service.given) == len(service.done) == 1
    assert "person" not in PanelOrder.objects.get().values


def test_what_the_panel_refuses_is_due_by_hand(service):
    study = spa_study(user("owner"), target_n=12)
    recruitment = promised(recruitment_of(study), withdrawn="1")
    left = half(study, recruitment, "left")
    withdraw_annotator_and_erase_texts(left)
    shown(recruitment, (left, "returned"))
    order_due_payments_at_panel(recruitment, service.operations, Decimal("1.00"), user("owner"))
    service.faults = ["refused"]
    send_due_orders(recruitment, service, lambda *_: None)
    for _ in range(2):
        update_ledger(recruitment, by=None)
    assert brief(recruitment) == [("outcome", "1.00", "bonus", "failed"), ("outcome", "1.00", "hand", "due")]
    assert not payments_orderable_at_panel(recruitment, service.operations)


def test_a_bonus_that_the_panel_refuses_is_due_by_hand_once(service):
    study = spa_study(user("owner"), target_n=12)
    recruitment = recruitment_of(study)
    done = submitted(study, "done", recruitment=recruitment)
    shown(recruitment, (done, "approved"))
    extra = ExtraPayment(done, Decimal("1.20"), "A long explanation.")
    ledger.add_extra_payments(recruitment, [extra], "bonus", user("owner"))
    order_due_payments_at_panel(recruitment, service.operations, Decimal("1.20"), user("owner"))
    service.faults = ["refused"]
    send_due_orders(recruitment, service, lambda *_: None)
    assert [(row.kind, row.way, row.state) for row in ledger.preview_payments_after_ledger_update(recruitment)][1:] == [
        ("bonus", "hand", "due")
    ]
    assert Payment.objects.latest("pk").state == "ordered"
    assert [update_ledger(recruitment, by=None).due for _ in range(2)] == [1, 0]
    assert brief(recruitment)[1:] == [("bonus", "1.20", "bonus", "failed"), ("bonus", "1.20", "hand", "due")]
    by_hand = Payment.objects.latest("pk")
    assert (by_hand.reason, by_hand.by) == (extra.reason, user("owner"))
    # It is the same bonus, and may be taken back for good.
    assert ledger.add_extra_payments(recruitment, [extra], "bonus", user("owner")) == 0
    assert (
        ledger.cancel_extra_payment(recruitment, by_hand.pk, user("owner"))
        and update_ledger(recruitment, by=None).due == 0
    )


def test_compensation_replaces_an_approval_that_cannot_come(service):
    study = spa_study(user("owner"), target_n=12)
    recruitment = recruitment_of(study)
    unsent = submitted(study, "unsent", recruitment=recruitment)
    update_ledger(recruitment, by=None)
    extra = ExtraPayment(unsent, Decimal("2.50"), "The panel never saw the work.")
    ledger.add_extra_payments(recruitment, [extra], "compensation", user("owner"))
    assert brief(recruitment) == [("base", "2.50", "approval", "cancelled"), ("compensation", "2.50", "hand", "due")]
    # Taken back, what was promised is due again.
    assert ledger.cancel_extra_payment(recruitment, Payment.objects.get(kind="compensation").pk, user("owner"))
    assert [row[3] for row in brief(recruitment)] == ["cancelled", "cancelled", "due"]
    assert not ledger.cancel_extra_payment(recruitment, Payment.objects.get(state="due").pk, user("owner"))


def test_nobody_is_refused_by_default_and_promises_only_rise():
    study = spa_study(user("owner"), target_n=12)
    recruitment = panel(study, promises="")
    assert outcome_labels_missing_required_pay_rule(recruitment) == [
        "screened out",
        "no place left",
        "ended because of a fault of the study",
        "withdrew before the end",
    ]
    assert {row.outcome: row.rule for row in build_default_outcome_pays(recruitment, None)} == {
        "failed_checks": "all",
        "fault": "all",
        "withdrawn": "share",
    }
    all_of_it, nothing, share = (OutcomePay(rule=rule) for rule in ("all", "nothing", "share"))
    one, three = (OutcomePay(rule="amount", amount=Decimal(n)) for n in (1, 3))
    pay = [Decimal("2.50")]
    lower = [
        (nothing, one),
        (one, three),
        (one, all_of_it),
        (share, all_of_it),
        (share, one),
        (one, share),
        (None, one),
        (nothing, share),
    ]
    higher = [
        (one, nothing),
        (three, one),
        (three, all_of_it),
        (all_of_it, share),
        (share, share),
        (three, share),
        (one, None),
        (all_of_it, one),
    ]
    assert all(is_pay_reduced(new, old, pay) for new, old in lower)
    assert not any(is_pay_reduced(new, old, pay) for new, old in higher)
    assert is_pay_reduced(three, all_of_it, [Decimal("2.50"), Decimal("3.50")])


def test_somebody_idle_when_the_study_closes_is_no_fault_of_ours():
    study = spa_study(user("owner"), target_n=12)
    recruitment = promised(panel(study), fault="all")
    idle = half(study, recruitment, "idle", 1)
    Assignment.objects.filter(pk=idle.pk).update(reserved_until=Now() - timedelta(hours=1))
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(Study.objects.get(pk=study.pk), by=None)
    assign.release_expired_places()
    update_ledger(recruitment, by=None)
    assert not Payment.objects.exists() and not PanelTask.objects.exists() and not PanelSubmission.objects.exists()
