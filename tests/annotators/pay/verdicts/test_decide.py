"""Decisions about pay: what may be refused, on what evidence, and what becomes of it at the panel."""

from decimal import Decimal

import pytest
from django.utils import timezone

from annotators.models import Assignment, PanelOrder, PanelSubmission, Payment, Verdict
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.pay.decisions import (
    approve_matched_submissions,
    approve_work,
    create_rejection_reversal,
    get_work_by_assignment,
    order_return_request,
    reject_work,
)
from annotators.pay.evidence import (
    MESSAGE_PLACEHOLDER,
    FailedCheck,
    WorkEvidence,
    assess_rejection_grounds,
    draft_rejection_message,
    evidence_sentences,
    measure_work_evidence,
)
from annotators.pay.ledger import update_ledger
from annotators.places.exclusions import exclude_assignments
from annotators.recruitment.channels import REGISTRY
from annotators.recruitment.panels import RejectionPolicy
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from annotators.recruitment.panels.orders import send_due_orders
from studies.language import format_duration
from studies.models import AuditEvent
from studies.services.lifecycle import ActionRefused
from tests.builders import user

from .conftest import LONG, checks, lasting, sent, work

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


def found(**changes) -> WorkEvidence:
    failed = tuple(FailedCheck(n, "Which?", "80 to 100", "7") for n in range(changes.pop("failed", 0)))
    usual = {"minutes": 12, "seconds": 600, "z": 0.1, "people": 40, "answers": 20, "checks": max(3, len(failed))}
    return WorkEvidence(**usual | changes, failed=failed)


def open_to(refusals, evidence, is_finished=True) -> set[str]:
    return {one.category for one in assess_rejection_grounds(refusals, evidence, is_finished) if not one.missing}


SEEN_ONLY = {"FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "LOW_EFFORT", "MALINGERING", "UNSUPP_DEVICE", "OTHER"}


@pytest.mark.parametrize(
    ("evidence", "more"),
    [
        ({}, set()),
        ({"failed": 1}, set()),  # from five minutes on it takes two
        ({"failed": 2}, {"FAILED_CHECK"}),
        ({"failed": 1, "minutes": 5}, set()),
        ({"failed": 1, "minutes": 4}, {"FAILED_CHECK"}),
        ({"failed": 1, "minutes": None}, set()),  # nobody knows how long it is
        ({"z": -3.0}, set()),
        ({"z": -3.01}, {"TOO_QUICKLY"}),
        ({"z": 3.01}, {"TOO_SLOWLY"}),
        ({"z": None}, set()),
        ({"answers": 0}, {"NO_CODE", "BAD_CODE", "NO_DATA"}),
    ],
)
def test_a_category_is_open_where_its_evidence_is_there(panel, evidence, more):
    from annotators.recruitment.channels.prolific.client import REJECTION_POLICY

    assert open_to(REJECTION_POLICY, found(**evidence)) == SEEN_ONLY | more
    notes = {
        one.category
        for one in assess_rejection_grounds(REJECTION_POLICY, found(**evidence), True)
        if one.needs_note and not one.missing
    }
    assert notes == SEEN_ONLY


def test_who_has_not_finished_is_refused_for_nothing_but_that_nothing_is_there():
    from annotators.recruitment.channels.prolific.client import REJECTION_POLICY

    assert open_to(REJECTION_POLICY, found(failed=3, z=-5), is_finished=False) == set()
    assert open_to(REJECTION_POLICY, found(answers=0), is_finished=False) == {"NO_CODE", "BAD_CODE", "NO_DATA"}


def test_a_category_may_rest_on_several_kinds_of_evidence():
    refusals = RejectionPolicy(categories={"work": "w"}, evidence_by_category={"work": ("checks", "seen")})
    by_note, by_checks = (assess_rejection_grounds(refusals, found(failed=n), True)[0] for n in (0, 2))
    assert by_note.needs_note and not by_checks.needs_note and not by_note.missing + by_checks.missing


@pytest.mark.slow
def test_what_is_measured(recruitment, django_assert_max_num_queries):
    one = sent(recruitment)
    checks(one, 90, 7, 100, 79.5)
    lasting(one, 0.5, others=11)
    one = work(one)
    with django_assert_max_num_queries(16):
        seen = measure_work_evidence(one.assignment)
    assert (seen.checks, [check.answered for check in seen.failed]) == (4, ["7", "79.5"])
    assert {check.expected for check in seen.failed} == {"80 to 100"} and seen.failed[0].question
    assert seen.seconds == 30 and seen.people == 12 and seen.z < -3 and seen.minutes == 12
    # What its person may read tells how many, and neither which nor what was expected.
    words = " ".join(evidence_sentences(seen.as_json()))
    assert "2 of 4 questions with a known answer were not answered as expected" in words and "30 seconds" in words
    assert "much less than others needed. People who finished: 12." in words
    assert not any(mark in words for mark in ("80", "100", "79.5", seen.failed[0].question))
    assert MESSAGE_PLACEHOLDER in draft_rejection_message(seen) and "2 of the 4 questions" in draft_rejection_message(
        seen
    )


def rejected(recruitment):
    one = sent(recruitment)
    checks(one, 1, 2, 90)
    return reject_work(work(one), "FAILED_CHECK", LONG, user("owner"))


def test_a_rejection_is_one_decision_with_its_evidence_and_one_order(recruitment, panel):
    made = rejected(recruitment)
    assert made.evidence["failed"] == 2 and made.evidence["failed_checks"][0]["answered"] == "1"
    order = PanelOrder.objects.get()
    assert order.values == {"category": "FAILED_CHECK", "message": LONG} and order.by == user("owner")
    send_due_orders(recruitment, panel, lambda *_: None)
    assert panel.given[0].operation == "reject" and panel.given[0].values["person"] == "W1"
    act = AuditEvent.objects.get(verb="reject")
    assert act.data == {"category": "FAILED_CHECK"} and act.assignment_code == made.assignment.code
    # Answers stay, the place stays taken, and nothing is left out of the analysis.
    one = Assignment.objects.get(pk=made.assignment_id)
    assert one.responses.count() > 3 and one.released_at is None and not one.exclusions.exists()
    with pytest.raises(ActionRefused, match="rejected already"):
        reject_work(work(made.submission), "FAILED_CHECK", LONG, user("owner"))
    with pytest.raises(ActionRefused, match="Take back the rejection"):
        approve_work(work(made.submission), user("owner"))
    # Whoever approves everybody passes over who was rejected, also while the panel does not know it yet.
    assert approve_matched_submissions(recruitment, user("owner")) == 0


def test_a_rejection_without_what_it_needs_is_refused(recruitment):
    one = sent(recruitment)
    checks(one, 1, 2, 90)
    for category, message, words in (
        ("FAILED_CHECK", "Too short.", "at least 100"),
        ("FAILED_CHECK", LONG + MESSAGE_PLACEHOLDER, "Replace this with your own words"),
        ("FAILED_CHECK", LONG + " Alpha was right.", "names the system “alpha”"),
        ("FAILED_CHECK", LONG * 30, "at most 2000"),
        ("TOO_QUICKLY", LONG, "cannot be chosen: the time cannot be compared"),
        ("LOW_EFFORT", LONG, "Describe your observations in the note"),
        ("whim", LONG, "Choose one of its categories"),
    ):
        with pytest.raises(ActionRefused, match=words):
            reject_work(work(one), category, message, user("owner"))
    assert not Verdict.objects.exists() and not PanelOrder.objects.exists()


def test_whom_nobody_can_reject(recruitment, monkeypatch):
    owner = user("owner")
    one = sent(recruitment)
    checks(one, 1, 2)

    def refused(words, submission=one):
        with pytest.raises(ActionRefused, match=words):
            reject_work(work(submission), "FAILED_CHECK", LONG, owner)

    stranger = PanelSubmission.objects.create(
        recruitment=recruitment, external_id="S-x", annotator=one.annotator, state="submitted", source="service"
    )
    refused("unknown in heval. This is never a reason", stranger)
    for state, words in (
        ("working", "in progress"),
        ("returned", "returned at the panel"),
        ("approved", "approved or rejected"),
    ):
        PanelSubmission.objects.filter(pk=one.pk).update(state=state)
        refused(words)
    PanelSubmission.objects.filter(pk=one.pk).update(state="submitted")
    for columns, words in (
        ({"withdrawn_at": timezone.now()}, "has withdrawn"),
        (
            {"submitted_at": None, "released_at": timezone.now(), "released_reason": "screened_out"},
            "ended this visit early",
        ),
        ({"origin": "robot"}, "it is from a robot"),
    ):
        was = Assignment.objects.filter(pk=one.assignment_id).values(*columns)[0]
        Assignment.objects.filter(pk=one.assignment_id).update(**columns)
        refused(words)
        Assignment.objects.filter(pk=one.assignment_id).update(**was)
    other = sent(recruitment, "W2")
    PanelSubmission.objects.filter(pk=other.pk).delete()
    with pytest.raises(ActionRefused, match="finished in heval, not submitted at the panel"):
        reject_work(get_work_by_assignment(recruitment, other.assignment_id), "FAILED_CHECK", LONG, owner)
    assert not Verdict.objects.exists()


def test_who_is_left_out_of_the_analysis_is_approved_and_paid_all_the_same(recruitment, panel, monkeypatch):
    one = sent(recruitment)
    exclude_assignments([one.assignment], "too_fast", user("owner"))
    # Being left out is no evidence: nothing may be refused for it.
    assert all(
        ground.missing or ground.needs_note
        for ground in assess_rejection_grounds(work(one).rejection_policy, measure_work_evidence(one.assignment), True)
    )
    for _ in range(2):
        made = approve_work(work(one), user("owner"))
    assert Verdict.objects.get() == made and PanelOrder.objects.get().operation == "approve"
    with pytest.raises(ActionRefused, match="approved already"):
        reject_work(work(one), "OTHER", LONG, user("owner"), note="seen")
    monkeypatch.setattr(type(REGISTRY["generic"]), "pays_by", frozenset({"approval"}))
    PanelSubmission.objects.filter(pk=one.pk).update(state="approved", decided_at=timezone.now())
    update_ledger(recruitment, by=None)
    assert Payment.objects.get(assignment=one.assignment).state == "paid"


def test_everybody_whose_work_came_to_both_is_approved_in_one_go(recruitment, django_assert_num_queries):
    for n in range(3):
        sent(recruitment, f"W{n}")
    with django_assert_num_queries(12):
        assert approve_matched_submissions(recruitment, user("owner")) == 3
    assert Verdict.objects.filter(kind="approve", by=user("owner")).count() == PanelOrder.objects.count() == 3
    assert AuditEvent.objects.filter(verb="order approve").count() == 3
    assert approve_matched_submissions(recruitment, user("owner")) == 0 and PanelOrder.objects.count() == 3
    with pytest.raises(ValueError, match="Somebody approves"):
        approve_matched_submissions(recruitment, None)


def test_a_rejection_that_was_not_sent_is_taken_back_and_approved(recruitment):
    made = rejected(recruitment)
    back = create_rejection_reversal(made, user("colleague"))
    assert back.evidence == {"way": "unsent"}
    assert dict(PanelOrder.objects.values_list("operation", "state")) == {"reject": "cancelled", "approve": "waiting"}
    with pytest.raises(ActionRefused, match="taken back already"):
        create_rejection_reversal(made, user("colleague"))
    with pytest.raises(ActionRefused, match="not a rejection"):
        create_rejection_reversal(back, user("colleague"))


def test_a_rejection_that_the_panel_carried_out_is_taken_back_by_a_compensation(recruitment, panel):
    made = rejected(recruitment)
    send_due_orders(recruitment, panel, lambda *_: None)
    PanelSubmission.objects.update(state="rejected")
    back = create_rejection_reversal(made, user("colleague"))
    paid = Payment.objects.get(kind="compensation")
    assert (str(paid.amount), paid.way, paid.state) == ("2.50", "hand", "due")
    assert back.evidence == {"way": "hand", "compensation": "2.50", "currency": paid.currency}


def test_a_return_is_asked_for_once_and_only_where_the_panel_can(recruitment, panel):
    one = sent(recruitment)
    order_return_request(work(one), "Could you give the task back? Two checks failed.", user("owner"))
    assert PanelOrder.objects.get().operation == "request_return"
    with pytest.raises(ActionRefused, match="asked already"):
        order_return_request(work(one), "Again?", user("owner"))
    store_or_delete_secrets(recruitment, {"token": ""}, by=None)
    with pytest.raises(ActionRefused, match="cannot ask"):
        order_return_request(work(one), "Again?", user("owner"))


def test_who_leaves_a_study_that_deletes_ratings_leaves_its_evidence_too(recruitment):

    made = rejected(recruitment)
    one = Assignment.objects.select_related("study").get(pk=made.assignment_id)
    one.study.withdrawal_blanks_ratings = True
    withdraw_annotator_and_erase_texts(one)
    made.refresh_from_db()
    assert "failed_checks" not in made.evidence and made.evidence["failed"] == 2 and made.message == LONG


def test_times_are_said_in_words():
    assert [format_duration(n) for n in (0, 1, 60, 125)] == [
        "0 seconds",
        "1 second",
        "1 minute",
        "2 minutes and 5 seconds",
    ]


def test_without_a_panel_who_is_rejected_is_owed_nothing_until_it_is_taken_back(recruitment):
    store_or_delete_secrets(recruitment, {"token": ""}, by=None)  # decided here, and entered there by hand
    one = sent(recruitment, "W1")
    update_ledger(recruitment, by=None)
    assert Payment.objects.get().state == "due"
    verdict = reject_work(work(one), "LOW_EFFORT", LONG, user("owner"), "Letters.")
    update_ledger(recruitment, by=None)
    assert Payment.objects.get().state == "cancelled" and not PanelOrder.objects.exists()
    create_rejection_reversal(verdict, user("colleague"))
    update_ledger(recruitment, by=None)
    standing = Payment.objects.exclude(state="cancelled").get()
    assert (standing.kind, standing.amount, standing.state) == ("compensation", Decimal("2.50"), "due")
