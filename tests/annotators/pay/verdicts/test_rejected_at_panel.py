"""Work that was rejected at the panel's own site, where nobody decided here: an annotator who reads so may object here too."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from annotators.models import Appeal, Assignment, PanelOrder, PanelSubmission, Payment, Verdict
from annotators.pay.decisions import (
    answer_appeal,
    appeals_awaiting_answer,
    approve_matched_submissions,
    approve_work,
    create_appeal,
    create_rejection_reversal,
    effective_rejection,
    eligible_appeal_answerers,
    reject_work,
)
from annotators.pay.ledger import update_ledger
from annotators.pay.verdict_status import work_status
from annotators.recruitment.channels import REGISTRY
from studies.models import AuditEvent
from studies.services.lifecycle import ActionRefused
from tests.builders import user
from tests.races import all_at_once

from .conftest import LONG, checks, sent, work
from .objections import WHY, last_page, objecting, stages_of, url

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def shown(recruitment) -> PanelSubmission:
    return sent(recruitment, state="rejected", submitted_at=timezone.now())


def shows(submission, state) -> PanelSubmission:
    PanelSubmission.objects.filter(pk=submission.pk).update(state=state)
    submission.refresh_from_db()
    return submission


def appealed(shown) -> Appeal:
    return create_appeal(Assignment.objects.get(pk=shown.assignment_id), WHY)


def test_who_reads_that_the_panel_rejected_their_work_objects_here(shown):
    page = last_page(shown.assignment)
    assert stages_of(page) == ["Received", "Rejected"] and "There is no reason here" in page
    due = timezone.now() + timedelta(days=14)
    assert "Object to the rejection" in page and f"They answer on this page by {due.day} {due:%B %Y}" in page
    refused = Client().post(f"/p/{shown.assignment.code}/appeal/", {"text": ""})
    assert (
        refused.status_code == 422
        and "Your work was rejected on the panel. There is no reason here." in refused.content.decode()
    )
    # Looking and a refused form write nothing.
    assert not Verdict.objects.exists()
    assert objecting(shown).status_code == 302
    noted, made = Verdict.objects.get(), Appeal.objects.get()
    assert (noted.kind, noted.category, noted.by, noted.submission, noted.evidence) == (
        "reject",
        "at_panel",
        None,
        shown,
        {},
    )
    assert noted.message == "The work was rejected at the panel. No reason was written here."
    assert (made.verdict, made.rejected_by, made.text) == (noted, None, WHY)
    acts = AuditEvent.objects.filter(assignment_code=shown.assignment.code, by=None)
    assert {"note rejection at the panel", "appeal"} <= set(acts.values_list("verb", flat=True))
    page = last_page(shown.assignment)
    assert "You objected on" in page and "There is no reason here" in page and "<textarea" not in page
    assert stages_of(page) == ["Received", "Rejected"] and "What the researchers wrote" not in page
    # What the panel measured, if it did, nobody here knows.
    assert work_status(shown.assignment).rejection.evidence == []
    assert objecting(shown).status_code == 302
    with pytest.raises(ActionRefused, match="already sent an objection"):
        appealed(shown)
    assert Verdict.objects.count() == Appeal.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_objecting_several_times_at_once_is_objecting_once(shown):
    answers = all_at_once(lambda _: objecting(shown).status_code, range(6), 6)
    assert set(answers) <= {302, 422} and Verdict.objects.count() == Appeal.objects.count() == 1


def test_nothing_is_written_down_where_nothing_is_rejected_there(recruitment, shown):
    for state in ("working", "submitted", "approved", "returned", "expired", "screened_out", "unknown"):
        with pytest.raises(ActionRefused, match="Your work is not rejected"):
            appealed(shows(shown, state))
    # A later work of the same person that the panel has not decided is what counts.
    shows(shown, "rejected")
    again = PanelSubmission.objects.create(
        recruitment=recruitment,
        external_id="S-again",
        annotator=shown.annotator,
        assignment=shown.assignment,
        state="submitted",
        source="service",
    )
    with pytest.raises(ActionRefused, match="Your work is not rejected"):
        appealed(shown)
    assert not Verdict.objects.exists() and not AuditEvent.objects.filter(verb__contains="rejection").exists()
    PanelSubmission.objects.filter(pk=again.pk).update(state="rejected")
    assert appealed(shown).verdict.submission == again


def test_a_rejection_of_ours_is_the_one_that_is_appealed(recruitment):
    one = sent(recruitment)
    checks(one, 1, 2)
    ours = reject_work(work(one), "FAILED_CHECK", LONG, user("owner"))
    made = appealed(shows(one, "rejected"))
    assert made.verdict == ours and made.rejected_by == user("owner")
    # What was taken back here is not written down anew while the panel has not heard of it.
    other = sent(recruitment, "W2")
    checks(other, 1, 2)
    create_rejection_reversal(reject_work(work(other), "FAILED_CHECK", LONG, user("owner")), user("owner"))
    with pytest.raises(ActionRefused, match="Your work is not rejected"):
        appealed(shows(other, "rejected"))
    assert not Verdict.objects.filter(category="at_panel").exists()


def test_any_editor_answers_and_says_that_it_was_not_they(recruitment, shown, clients):
    checks(shown, 1, 2, 90)
    made, owner = appealed(shown), clients["owner"]
    assert {one.username for one in eligible_appeal_answerers(recruitment.study, None)} == {"owner", "colleague"}
    collecting = f"/admin/studies/study/{recruitment.study_id}/collecting/"
    assert "<td>someone at the panel</td>" in owner.get(collecting).content.decode()
    here = url(recruitment, f"appeal/{made.pk}")
    page = owner.get(here).content.decode()
    assert WHY in page and "made at the panel" in page and "by None" not in page
    # Nobody here measured anything then: it is measured for who answers, and called so.
    assert "Current measurements" in page and "2 of 3 questions" in page and "80 to 100" in page
    assert "by None" not in owner.get(url(recruitment, f"submission/{shown.pk}")).content.decode()
    typed = {"is_upheld": "no", "answer": "We looked at all of it."}
    assert owner.post(here, typed).status_code == 422
    with pytest.raises(ActionRefused, match="Confirm that it was not you"):
        answer_appeal(made, "No.", False, user("owner"))
    assert Appeal.objects.get().answered_at is None
    assert owner.post(here, typed | {"says_another": "on"}).status_code == 302
    assert Appeal.objects.get().answered_by == user("owner")
    assert AuditEvent.objects.get(verb="answer appeal").data == {"is_upheld": False, "says_another": True}
    assert "the rejection stays" in last_page(shown.assignment) and effective_rejection(shown.assignment)


def upheld(shown):
    return answer_appeal(appealed(shown), "You are right.", True, user("colleague"), denies_rejecting=True)


def test_who_was_right_is_compensated(recruitment, shown):
    update_ledger(recruitment, by=None)
    assert not Payment.objects.exists()
    back = upheld(shown)
    assert (back.evidence["way"], back.evidence["compensation"]) == ("hand", "2.50") and not PanelOrder.objects.exists()
    assert back.by == user("colleague")
    page = last_page(shown.assignment)
    assert stages_of(page)[:2] == ["Received", "Approved"] and "You objected, and you were right" in page
    with pytest.raises(ActionRefused, match="Your work is not rejected"):
        appealed(shown)
    update_ledger(recruitment, by=None)
    owed = Payment.objects.get()
    assert (owed.kind, str(owed.amount), owed.way, owed.state) == ("compensation", "2.50", "hand", "due")


def test_the_panel_that_approves_meanwhile_is_believed(recruitment, shown, clients, monkeypatch):
    monkeypatch.setattr(type(REGISTRY["generic"]), "pays_by", frozenset({"approval"}))
    made = appealed(shown)
    update_ledger(recruitment, by=None)
    assert not Payment.objects.exists() and list(appeals_awaiting_answer([recruitment])) == [made]
    shows(shown, "approved")
    update_ledger(recruitment, by=None)
    assert Payment.objects.get(assignment=shown.assignment).state == "paid"
    assert stages_of(last_page(shown.assignment)) == ["Received", "Approved", "Paid"]
    assert effective_rejection(shown.assignment) is None and not list(appeals_awaiting_answer([recruitment]))
    page = clients["owner"].get(url(recruitment, f"appeal/{made.pk}")).content.decode()
    assert "o answer is needed" in page and "<textarea" not in page
    made.refresh_from_db()
    with pytest.raises(ActionRefused, match="o answer is needed"):
        answer_appeal(Appeal.objects.get(), "No.", False, user("owner"), denies_rejecting=True)


def test_the_panel_that_opens_it_again_is_believed_too(recruitment, shown):
    made = appealed(shown)
    shows(shown, "submitted")
    update_ledger(recruitment, by=None)
    assert Payment.objects.get().state == "due"
    assert stages_of(last_page(shown.assignment)) == ["Received", "approved", "paid"]
    with pytest.raises(ActionRefused, match="Your work is not rejected"):
        appealed(shown)
    # Upheld, or simply with all the others, it is approved like any work.
    back = answer_appeal(Appeal.objects.get(pk=made.pk), "You are right.", True, user("owner"), denies_rejecting=True)
    assert back.evidence == {"way": "unsent"} and PanelOrder.objects.get().operation == "approve"
    other = sent(recruitment, "W2", state="rejected")
    appealed(other)
    shows(other, "submitted")
    assert approve_matched_submissions(recruitment, user("owner")) == 1
    assert approve_work(work(other), user("owner")).kind == "approve"


def test_both_databases_take_any_answerer_where_nobody_is_known_to_have_rejected(shown):
    """NULL is unlike everybody: the constraint that tells who rejected from who answers must not refuse, on either database."""
    made = appealed(shown)
    assert Appeal.objects.filter(pk=made.pk).update(
        answer="No.", is_upheld=False, answered_by=user("owner"), answered_at=timezone.now()
    ), connection.vendor
