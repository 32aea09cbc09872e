"""The study in which people come to every end there is, for every recount."""

from decimal import Decimal

import pytest
from django.test import Client

from analysis import tasks as analysis_tasks
from annotators.models import (
    PanelOrder,
    PanelSubmission,
    Payment,
)
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.pay import ledger
from annotators.pay.decisions import answer_appeal, create_appeal, get_work_by_submission, reject_work
from annotators.places import assign, places
from annotators.places.batch_plan import start_test_run
from annotators.places.exclusions import create_exclusion_reversal, exclude_assignments
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.channels.prolific.client import REJECTION_POLICY
from annotators.recruitment.panels import SubmissionSnapshot
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import send_due_orders
from annotators.recruitment.panels.reconcile import import_submissions_and_release_places
from studies.models import Arm, Study, StudyMember
from studies.services import lifecycle
from studies.services.copying import clone_study
from tests.annotators.pay.recount.world import EARLY, again, finished_late, imported, screened_out, show, slow, started
from tests.annotators.pay.verdicts.conftest import LONG, checks
from tests.annotators.recruitment.pretend import Pretend, recruitment_of, speaks
from tests.builders import launched, promised, recruitment, spa_draft, user
from tests.players import answered, claimed, submitted


@pytest.fixture(scope="module")
def service():
    with pytest.MonkeyPatch.context() as patch:
        made = Pretend()
        speaks(patch, made)
        patch.setattr(type(REGISTRY["generic"]), "pays_by", frozenset({"approval", "bonus", "screen_out"}))
        patch.setattr(type(REGISTRY["generic"]), "rejection_policy", REJECTION_POLICY)
        yield made


@pytest.fixture
def world(stored_world, db):
    return tuple(type(row).objects.get(pk=row.pk) for row in stored_world)


@pytest.fixture(scope="module")
def stored_world(service, module_transaction):
    """The study, a link by a panel, and a link whose people are paid by hand in another currency."""
    owner = user("owner")
    draft = spa_draft(
        owner=owner,
        m=1,
        both=False,
        with_rating=False,
        prompts=20,
        target_n=18,
        target_kind="kept",
        batches_per_annotator=2,
        wage_per_hour=Decimal("12.00"),
        rules=[("too_fast", {"words_per_minute": 700, "z": None})],
    )
    Arm.objects.create(study=draft, name="paid more", reward=Decimal("3.00"))
    StudyMember.objects.create(study=draft, user=user("colleague"), role="editor")
    answered(start_test_run(draft, owner))  # the launch clears it
    study = launched(draft, owner)
    panel, by_hand = recruitment_of(study), recruitment(study, currency="EUR", reward=Decimal("2.00"))
    for link in (panel, by_hand):
        promised(link, **EARLY)
    store_or_delete_secrets(panel, {"token": "t"}, by=None)

    # Nobody is written down who does not agree.
    assert Client().post(f"/e/{by_hand.key}/", {"start": "1"}).status_code == 422
    done = {name: slow(submitted(study, name, recruitment=panel)) for name in ("ann", "bob", "cy", "dan", "eve", "flo")}
    done |= {name: slow(submitted(study, name, recruitment=by_hand)) for name in ("gus", "hal")}
    screened = screened_out(study, "ida", panel)
    gone, back = started(study, "joe", panel), started(study, "kim", panel)
    late = finished_late(study, "lea", panel, taken_by="max")
    assert late.is_late
    assign.release_assignment(gone.pk, "expired")
    assign.release_assignment(back.pk, "returned")
    asked = started(study, "ned", by_hand)
    assert places.extend_reservation(asked)
    claimed(study, "oda", by_hand)
    withdraw_annotator_and_erase_texts(started(study, "pam", panel))
    withdraw_annotator_and_erase_texts(slow(submitted(study, "quy", recruitment=panel)))
    slow(submitted(study, "ann", recruitment=panel))  # a second batch of the same person
    submitted(study, "ray", recruitment=panel)  # in no time at all: a rule finds them
    exclude_assignments([done["bob"]], "too_fast", owner, should_reopen_places=True)
    (taken_back,) = exclude_assignments([done["cy"]], "copied_text", owner)
    exclude_assignments([done["gus"], late], "misunderstood", owner)
    create_exclusion_reversal(taken_back, owner)
    assert (
        analysis_tasks.open_places_replacing_excluded_annotators() == 3
    )  # who withdrew after the end, who was too fast, who was left out
    submitted(study, "robot 1", origin="robot")
    claimed(study, "robot 2", origin="robot")
    imported(study)
    assign.record_turned_away_annotator(study, assign.get_or_create_annotator("panel", "sue"), panel)
    assign.record_turned_away_annotator(study, assign.get_or_create_annotator("panel", "tim"), by_hand)

    # What the panel shows, somebody unknown with the rest; a rejection that holds, and one that is taken back on appeal.
    show(panel, done, "submitted")
    show(panel, {"late": late, "ida": screened}, "submitted")
    import_submissions_and_release_places(
        panel, [SubmissionSnapshot("T", "S-nobody", "a stranger", "submitted")], "service"
    )
    clone_study(study, owner, "A clone")
    for name in ("dan", "eve"):
        shown = PanelSubmission.objects.get(assignment=done[name])
        checks(shown, 1, 2)
        reject_work(get_work_by_submission(panel, shown.pk), "FAILED_CHECK", LONG, owner)
    objection = create_appeal(done["eve"], "I answered as well as I could, and say so.")
    answer_appeal(objection, "So you did.", True, user("colleague"))
    send_due_orders(panel, service, lambda *_: None)
    show(panel, {"ann": done["ann"], "bob": done["bob"], "eve": done["eve"]}, "approved")
    show(panel, {"dan": done["dan"]}, "rejected")
    show(panel, {"ida": screened}, "screened_out")

    # Pay rises in one arm while the study is paused.
    lifecycle.pause(study, owner)
    arm = Arm.objects.get(study=study, name="paid more")
    lifecycle.amend(study, {"arm": {arm.pk: {"reward": Decimal("3.50")}}}, owner, "It takes longer.")
    lifecycle.resume(study, owner)
    study, panel, by_hand = Study.objects.get(pk=study.pk), again(panel), again(by_hand)
    for link in (panel, by_hand):
        ledger.update_ledger(link, by=None)
    # A bonus that is carried out, one that the panel refuses, one that waits; one reward is paid by hand.
    for name, amount in (("ann", "1.20"), ("bob", "0.75"), ("flo", "0.40")):
        ledger.add_extra_payments(
            panel, [ledger.ExtraPayment(done[name], Decimal(amount), "Thank you.")], "bonus", owner
        )
    total = ledger.total_amount(ledger.payments_orderable_at_panel(panel, service.operations))
    ledger.order_due_payments_at_panel(panel, service.operations, total, owner)
    refused = Payment.objects.get(assignment=done["bob"], kind="bonus").order
    service.faults = [
        "refused" if one == refused else "" for one in PanelOrder.objects.filter(state="waiting").order_by("pk")
    ]
    send_due_orders(panel, service, lambda *_: None)
    ledger.update_ledger(panel, by=None)
    ledger.mark_payments_paid_and_erase_withdrawn_ids(
        by_hand, [Payment.objects.filter(assignment=done["hal"]).get().pk], owner
    )
    slow(submitted(study, "uli", recruitment=by_hand))  # after the last look
    return study, panel, by_hand
